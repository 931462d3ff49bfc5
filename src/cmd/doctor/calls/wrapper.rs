//! Programs that run the command in their arguments: shells, and wrappers such as `flock` and `sudo`.

/// What a program runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inner<'a> {
    /// The words of a command.
    Command(&'a [String]),
    /// Shell text.
    Text(String),
    /// A script, whether it is executable or not.
    Script(&'a str),
    /// A unit of systemd.
    Unit(&'a str),
}

/// A wrapper's command, and the user that it runs as, if a different one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unwrapped<'a> {
    pub(super) inner: Inner<'a>,
    pub(super) user: Option<&'a str>,
}

/// How to find the command in a wrapper's arguments.
struct Wrapper {
    names: &'static [&'static str],
    /// Options that take the next word as their value.
    valued: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
    user: SwitchedUser,
}

/// How a wrapper names the user that runs the command.
enum SwitchedUser {
    Unchanged,
    /// By one of these options; without it, root.
    Option(&'static [&'static str]),
    Operand,
}

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"];

/// Programs that print or inspect their arguments.
const READERS: [&str; 16] = [
    "echo", "printf", "logger", "grep", "egrep", "fgrep", "cat", "test", "[", "[[", "true", "false", ":",
    "which", "type", "trap",
];

const WRAPPERS: &[Wrapper] = &[
    plain(
        &["builtin", "busybox", "chronic", "cronic", "eatmydata", "nohup", "run-one", "setsid", "unbuffer"],
        &[],
    ),
    plain(&["exec"], &["-a"]),
    plain(&["ionice"], &["-c", "-n", "--class", "--classdata"]),
    plain(&["nice"], &["-n", "--adjustment"]),
    plain(&["stdbuf"], &["-i", "-o", "-e", "--input", "--output", "--error"]),
    plain(&["systemd-cat"], &["-t", "-p", "--identifier", "--priority"]),
    plain(&["systemd-inhibit"], &[]),
    plain(&["systemd-run"], &["-p", "-u", "--property", "--unit", "--slice", "--description"]),
    plain(&["env"], &["-u", "-C", "--unset", "--chdir"]),
    with_operands(&["chrt"], &["-T", "-P", "-D"], 1),
    with_operands(&["flock"], &["-w", "-E", "--wait", "--timeout", "--conflict-exit-code"], 1),
    with_operands(&["lckdo", "setlock"], &["-W"], 1),
    // `snap run certbot.renew`
    with_operands(&["snap"], &["--timer"], 1),
    with_operands(&["taskset"], &[], 1),
    with_operands(&["timeout"], &["-s", "-k", "--signal", "--kill-after"], 1),
    Wrapper {
        names: &["sudo", "doas"],
        valued: &["-u", "-g", "-h", "-p", "-C", "-T", "-R", "-D", "--user", "--group", "--prompt", "--chdir"],
        operands: 0,
        user: SwitchedUser::Option(&["-u", "--user"]),
    },
    Wrapper {
        names: &["runuser"],
        valued: &["-u", "-g", "-G", "--user", "--group", "--supp-group"],
        operands: 0,
        user: SwitchedUser::Option(&["-u", "--user"]),
    },
    Wrapper {
        names: &["chpst"],
        valued: &["-u", "-U", "-e", "-/", "-n", "-l", "-L", "-m", "-d", "-o", "-p", "-f", "-c", "-t", "-r"],
        operands: 0,
        user: SwitchedUser::Option(&["-u"]),
    },
    Wrapper {
        names: &["gosu", "su-exec", "s6-setuidgid", "setuidgid"],
        valued: &[],
        operands: 1,
        user: SwitchedUser::Operand,
    },
];

const fn plain(names: &'static [&'static str], valued: &'static [&'static str]) -> Wrapper {
    with_operands(names, valued, 0)
}

const fn with_operands(
    names: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { names, valued, operands, user: SwitchedUser::Unchanged }
}

/// Whether a program replaces the search path: sudo by `secure_path`, doas by its own default.
pub(super) fn resets_path(program: &str) -> bool {
    program.rsplit('/').next().is_some_and(|name| ["sudo", "doas"].contains(&name))
}

/// The command that a program runs, if that is known; the first word is the program.
pub(super) fn unwrap(words: &[String]) -> Option<Unwrapped<'_>> {
    let (program, arguments) = words.split_first()?;
    let same_user = |inner| Some(Unwrapped { inner, user: None });
    match program.rsplit('/').next()? {
        shell if SHELLS.contains(&shell) => same_user(shell_command(arguments)?),
        "." | "source" => same_user(Inner::Script(arguments.first()?)),
        "eval" => same_user(Inner::Text(arguments.join(" "))),
        // `command -v` only searches.
        "command" if arguments.first().is_some_and(|first| !first.starts_with('-')) => {
            same_user(Inner::Command(arguments))
        }
        "systemctl" => same_user(Inner::Unit(started_unit(arguments)?)),
        "su" => switched(arguments),
        "runuser" if !arguments.iter().any(|word| word == "-u" || word.starts_with("--user")) => {
            switched(arguments)
        }
        reader if READERS.contains(&reader) => None,
        name => {
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
                return wrapper.unwrap(arguments);
            }
            // By convention, a command follows `--`.
            let at = arguments.iter().position(|word| word == "--")?;
            same_user(Inner::Command(arguments.get(at + 1..)?))
        }
    }
}

impl Wrapper {
    fn unwrap<'a>(&self, arguments: &'a [String]) -> Option<Unwrapped<'a>> {
        let mut user = match self.user {
            SwitchedUser::Option(_) => Some("root"),
            SwitchedUser::Unchanged | SwitchedUser::Operand => None,
        };
        let (mut operands, mut at) = (self.operands, 0);
        loop {
            let word = arguments.get(at)?.as_str();
            at += 1;
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if word.starts_with("--") => (option, Some(value)),
                _ => (word, None),
            };
            match option {
                "--" => {}
                // `flock FILE -c TEXT`, `env -S TEXT`.
                "-c" | "--command" | "-S" | "--split-string" if !self.valued.contains(&option) => {
                    let text =
                        value.map_or_else(|| arguments.get(at).cloned(), |value| Some(value.to_owned()))?;
                    return Some(Unwrapped { inner: Inner::Text(text), user });
                }
                _ if option.starts_with('-') && option.len() > 1 => {
                    let value = match value {
                        None if self.valued.contains(&option) => {
                            at += 1;
                            arguments.get(at - 1).map(String::as_str)
                        }
                        value => value,
                    };
                    if matches!(self.user, SwitchedUser::Option(options) if options.contains(&option)) {
                        user = value;
                    }
                    continue;
                }
                _ if operands > 0 => {
                    operands -= 1;
                    if matches!(self.user, SwitchedUser::Operand) {
                        user = Some(word);
                    }
                    continue;
                }
                _ => at -= 1,
            }
            if operands == 0 {
                return Some(Unwrapped { inner: Inner::Command(arguments.get(at..)?), user });
            }
        }
    }
}

/// `-c TEXT`, else the script to run.
fn shell_command(arguments: &[String]) -> Option<Inner<'_>> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(['-', '+']) {
            Some(letters) if !letters.starts_with('-') && letters.contains('c') => {
                return Some(Inner::Text(words.find(|word| !word.starts_with('-'))?.clone()));
            }
            // `-o pipefail`
            Some(letters) if letters.ends_with('o') && !letters.starts_with('-') => _ = words.next(),
            Some(_) => {}
            None => return Some(Inner::Script(word)),
        }
    }
    None
}

/// The text of `su [USER] -c TEXT`.
fn switched(arguments: &[String]) -> Option<Unwrapped<'_>> {
    let (mut text, mut user) = (None, "root");
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" | "--command" => text = words.next(),
            "-s" | "-g" | "-G" | "-w" | "--shell" | "--group" | "--supp-group" => _ = words.next(),
            word if word.starts_with('-') => {}
            word => user = word,
        }
    }
    Some(Unwrapped { inner: Inner::Text(text?.clone()), user: Some(user) })
}

/// The unit that `systemctl` starts.
fn started_unit(arguments: &[String]) -> Option<&str> {
    let mut operands = arguments.iter().filter(|word| !word.starts_with('-'));
    operands.next().filter(|verb| ["start", "restart"].contains(&verb.as_str()))?;
    operands.next().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command behind a wrapper, as text, with its user.
    fn unwrapped(line: &str) -> Option<(String, Option<String>)> {
        let words = super::super::lexer::words(line);
        let Unwrapped { inner, user } = unwrap(&words)?;
        let text = match inner {
            Inner::Command(words) => words.join(" "),
            Inner::Text(text) => format!("sh: {text}"),
            Inner::Script(path) => format!("script: {path}"),
            Inner::Unit(name) => format!("unit: {name}"),
        };
        Some((text, user.map(str::to_owned)))
    }

    #[test]
    fn wrappers_yield_their_command() {
        let rows = [
            ("/usr/bin/flock -n /run/lock edgecert sync", "edgecert sync", None),
            ("flock -w 5 /run/lock -c 'edgecert sync'", "sh: edgecert sync", None),
            ("nice -n 19 edgecert sync", "edgecert sync", None),
            ("nice -19 edgecert sync", "edgecert sync", None),
            ("ionice -c3 edgecert sync", "edgecert sync", None),
            ("env -u X A=1 edgecert sync", "A=1 edgecert sync", None),
            ("timeout -k 5 10m edgecert sync", "edgecert sync", None),
            ("timeout --signal=KILL 10m edgecert sync", "edgecert sync", None),
            ("chronic edgecert sync", "edgecert sync", None),
            ("exec edgecert", "edgecert", None),
            ("command edgecert sync", "edgecert sync", None),
            ("runitor -uuid x -- edgecert sync", "edgecert sync", None),
            ("bash -euo pipefail -c 'edgecert sync'", "sh: edgecert sync", None),
            ("sh /opt/hook.sh now", "script: /opt/hook.sh", None),
            (". /opt/hook.sh", "script: /opt/hook.sh", None),
            ("sudo -u www-data edgecert sync", "edgecert sync", Some("www-data")),
            ("sudo --user=web -n -- edgecert sync", "edgecert sync", Some("web")),
            ("sudo edgecert sync", "edgecert sync", Some("root")),
            ("su -s /bin/sh -c 'edgecert sync' web", "sh: edgecert sync", Some("web")),
            ("su - web -c 'edgecert sync'", "sh: edgecert sync", Some("web")),
            ("runuser -u web -- edgecert sync", "edgecert sync", Some("web")),
            ("runuser -l web -c 'edgecert sync'", "sh: edgecert sync", Some("web")),
            ("gosu web edgecert sync", "edgecert sync", Some("web")),
            ("systemctl start --no-block edgecert-sync.service", "unit: edgecert-sync.service", None),
        ];
        for (line, command, user) in rows {
            assert_eq!(unwrapped(line), Some((command.to_owned(), user.map(str::to_owned))), "{line}");
        }
    }

    #[test]
    fn readers_run_nothing() {
        for line in [
            "echo edgecert sync",
            "printf -- edgecert sync",
            "grep -- edgecert sync",
            "test -x edgecert",
            "command -v edgecert",
            "which edgecert",
            "systemctl status edgecert-sync",
            "flock",
            "sudo -u",
            "sh",
        ] {
            assert_eq!(unwrapped(line), None, "{line}");
        }
    }
}
