//! Runs the hook on a terminal: a pseudo-terminal from `script`, as wide as a test asks for.

use std::process::{Command, Stdio};

use super::Hook;

/// What a terminal showed, and the exit code.
pub(crate) struct Shown {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Hook {
    /// The command that runs the hook on a terminal with UTF-8 and this many columns. A variable of the hook overrides
    /// those of the terminal, such as `TERM`.
    pub(crate) fn on_terminal(&mut self, columns: usize) -> Command {
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
        let command = self.command();
        let words: Vec<String> =
            std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect();
        let line = format!("stty cols {columns} rows 50; exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
        script.env("TERM", "xterm").env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.current_dir(command.get_current_dir().unwrap());
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        script
    }

    /// Runs the hook on a terminal with UTF-8 and this many columns.
    pub(crate) fn shows_on_terminal(mut self, columns: usize) -> Shown {
        let output = self.on_terminal(columns).output();
        let output = output.expect("script must be installed (Debian package bsdutils)");
        let text = String::from_utf8(output.stdout).expect("output is UTF-8").replace("\r\n", "\n");
        Shown { code: output.status.code().unwrap(), text }
    }
}
