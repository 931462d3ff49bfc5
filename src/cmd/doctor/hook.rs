//! Whether the ACME client of a lineage runs edgecert: what the client's own configuration says, and whether a hook run
//! is recorded.
//!
//! Nothing is parsed as a shell would. A command counts if it contains the name, and so does one script behind it. Findings
//! never quote the commands: they may contain secrets.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::finding::{DoctorFinding, Subject};
use super::host::{CRON_PATH, Host, entries, file_name, read_text};
use crate::error::shell_word;
use crate::source::{AcmeClient, Source};
use crate::text;

/// Remedy for clients that record no hooks.
pub(super) const ATTACH: &str = "see \"Attach it to your ACME client\" in the README";

const NAME: &str = "edgecert";
/// The subcommands that deploy nothing.
const NOT_DEPLOYING: [&str; 4] = ["check", "plan", "doctor", "status"];
/// Files of dehydrated that set `HOOK`, the last one first, and a directory of more.
const DEHYDRATED: [&str; 2] = ["/usr/local/etc/dehydrated/config", "/etc/dehydrated/config"];
const DEHYDRATED_DIRECTORY: &str = "/etc/dehydrated/conf.d";

/// A file that names edgecert, or what is wrong with the mention.
type Mention = Result<PathBuf, DoctorFinding>;

/// Reports what shows whether the client of a lineage runs edgecert. `has_run` says whether a hook run is recorded. Of a
/// client without hooks, that is a note.
pub(super) fn check(source: &Source, title: &str, has_run: bool, host: &Host<'_>) -> DoctorFinding {
    use AcmeClient::{AcmeSh, Certbot, Dehydrated, Files, Lego};
    let client = source.client;
    let found = match client {
        Dehydrated => host.dehydrated(),
        Certbot => host.certbot(source),
        AcmeSh => host.acme_sh(source),
        // They may be those of either client.
        Files => host.certbot(source).or_else(|| host.acme_sh(source)),
        _ => None,
    };
    match found {
        Some(Ok(place)) => {
            let ran = if has_run { "a hook run is recorded" } else { "no hook run is recorded yet" };
            Subject::Hook.ok(format!("{} names edgecert for {title}; {ran}", text::path(&place)))
        }
        Some(Err(fault)) => fault,
        None if has_run => Subject::Hook.ok(format!("a hook run is recorded for {title}")),
        None if matches!(client, Certbot | AcmeSh | Dehydrated | Lego) => {
            let detail = format!(
                "cannot tell whether {client} calls edgecert for {title}: its configuration does not say, and no hook run is recorded"
            );
            Subject::Hook.warn(detail, ATTACH)
        }
        None => {
            Subject::Hook.note(format!("no hook is known for {title}; `edgecert sync` deploys its renewals"))
        }
    }
}

/// The best of the places that name edgecert; `config` is the file that should.
fn best(mentions: impl IntoIterator<Item = Mention>, config: &Path, remedy: String) -> Option<Mention> {
    let absent = Subject::Hook.fail(format!("{} does not name edgecert", text::path(config)), remedy);
    mentions.into_iter().chain([Err(absent)]).reduce(|first, other| other.or(first))
}

/// Searches the configuration of the client of a lineage.
impl Host<'_> {
    /// `live/NAME` has its configuration in `renewal/NAME.conf`; `cli.ini` and `renewal-hooks` are for every lineage.
    fn certbot(&self, source: &Source) -> Option<Mention> {
        let directory = source.files.cert.parent()?;
        let home = directory.parent()?.parent()?;
        let renewal = home.join("renewal").join(format!("{}.conf", file_name(directory)));
        let (cli, hooks) = (home.join("cli.ini"), home.join("renewal-hooks"));
        let deploy = shell_word(&text::path(&hooks.join("deploy")));
        let attach = format!("run `ln -s {} {deploy}/`", self.program());
        let mut mentions = Vec::new();
        for (file, text) in [(&renewal, read_text(&renewal)?), (&cli, read_text(&cli).unwrap_or_default())] {
            for (name, command) in text.lines().map(setting) {
                let Some(kind) = name.strip_suffix("-hook") else { continue };
                let Some(mention) = self.judge(file, command, self.callers_path(), &attach) else { continue };
                let edit = format!("make the `{kind}` hook in {} a deploy hook", text::path(file));
                mentions.extend(if_deploying(mention, file, kind, command, &edit));
            }
        }
        for kind in ["deploy", "post", "pre"] {
            let entries = entries(&hooks.join(kind)).into_iter();
            for entry in entries.filter(|entry| !file_name(entry).ends_with('~')) {
                let Some(script) = named_script(&entry, self) else { continue };
                let (shown, name) = (text::path(&entry), shell_word(&text::path(&entry)));
                let mention = if self.is_executable(&entry) {
                    Ok(entry.clone())
                } else {
                    let detail = format!("{shown} is not executable, or a link that leads nowhere");
                    Err(Subject::Hook.fail(detail, format!("run `chmod +x {name}`, or delete it")))
                };
                let mv = format!("run `mv {name} {deploy}/`");
                mentions.extend(if_deploying(mention, &entry, kind, &script, &mv));
            }
        }
        best(mentions, &renewal, attach)
    }

    /// acme.sh has `DOMAIN.conf` beside the key: shell assignments, with commands in base64.
    fn acme_sh(&self, source: &Source) -> Option<Mention> {
        let key = source.files.key.as_deref()?;
        let (directory, conf) = (key.parent()?, key.with_extension("conf"));
        let (home, conf_text) = (directory.parent()?, read_text(&conf)?);
        let value = |name: &str| assigned(&conf_text, name).unwrap_or_default();
        let domain = shell_word(&text::sanitize(assigned(&conf_text, "Le_Domain")?));
        let ecc = if file_name(directory).ends_with("_ecc") { " --ecc" } else { "" };
        let commands @ [reload, _] = &["Le_ReloadCmd", "Le_RenewHook"].map(|name| decode(value(name)));
        let is_other = !reload.is_empty() && !reload.contains(NAME);
        // That command may hold a secret.
        let (before, note) =
            if is_other { ("HOOK; ", ", with the current command in place of HOOK") } else { ("", "") };
        let command = shell_word(&format!("{before}{}", self.program()));
        let attach = format!("run `acme.sh --install-cert -d {domain}{ecc} --reloadcmd {command}`{note}");
        // cron runs acme.sh, which adds the path that it was installed with.
        let account = read_text(&home.join("account.conf")).unwrap_or_default();
        let path = format!("{}:{CRON_PATH}", assigned(&account, "USER_PATH").unwrap_or_default());
        let path = path.trim_start_matches(':');
        // A deploy hook is a function in `deploy/NAME.sh`.
        let script =
            |hook: &str| named_script(&home.join("deploy").join(format!("{}.sh", hook.trim())), self);
        let deploys = value("Le_DeployHook").split(',').any(|hook| script(hook).is_some());
        let mentions = commands.iter().filter_map(|command| self.judge(&conf, command, path, &attach));
        let mentions = mentions.chain(deploys.then(|| Ok(conf.clone())));
        best(mentions, &conf, attach.clone())
    }

    /// dehydrated has one `HOOK` for everything; `None` if no file sets it, because its command line may.
    fn dehydrated(&self) -> Option<Mention> {
        let directory = entries(&self.at(DEHYDRATED_DIRECTORY)).into_iter().rev();
        let mut files = directory.chain(DEHYDRATED.iter().map(|path| self.at(path)));
        let (file, hook) = files.find_map(|file| {
            let text = read_text(&file)?;
            let hook = text.lines().rev().find_map(|line| line.trim().strip_prefix("HOOK="))?;
            let hook = hook.trim_matches(['"', '\'']).to_owned();
            (!hook.is_empty()).then_some((file, hook))
        })?;
        let set = format!("run `echo HOOK={} >> {}`", self.program(), shell_word(&text::path(&file)));
        let mention = self.judge(&file, &hook, self.callers_path(), &set);
        let extend =
            "call edgecert from the program that HOOK names, as hooks/dehydrated/edgecert-hook.sh does";
        best(mention, &file, extend.into())
    }

    /// Judges a command in a file of the client; `None` if neither it nor a script that it runs names edgecert. `path` is
    /// where the client finds programs, and `remedy` how to set another command.
    fn judge(&self, place: &Path, command: &str, path: &str, remedy: &str) -> Option<Mention> {
        let command = without_comments(command);
        let words: Vec<&str> = words(&command).collect();
        let mut fault = None;
        for (at, word) in words.iter().enumerate() {
            let is_named = file_name(Path::new(word)).contains(NAME) && !word.contains('=');
            if !is_named && (!word.starts_with('/') || named_script(&self.at(word), self).is_none()) {
                continue;
            }
            fault = Some(match words.get(at + 1) {
                Some(next) if NOT_DEPLOYING.contains(next) => {
                    format!("`edgecert {next}`, which deploys nothing")
                }
                // A later word may be read by a shell.
                _ if at == 0 && word.starts_with('/') && !self.is_executable(&self.at(word)) => {
                    format!("{}, which does not exist or is not executable", text::sanitize(word))
                }
                _ if *word == NAME && !command.contains("PATH=") && self.find(NAME, path).is_none() => {
                    format!("edgecert without a path, and it is not in {}", text::sanitize(path))
                }
                // One good call is enough.
                _ => return Some(Ok(place.to_owned())),
            });
        }
        let Some(what) = fault else { return command.contains(NAME).then(|| Ok(place.to_owned())) };
        Some(Err(Subject::Hook.fail(format!("{} calls {what}", text::path(place)), remedy)))
    }
}

/// The mention in a hook of certbot; `None` if it is none for renewals. A pre or post hook does not get the lineage, so
/// that a post hook deploys only with `sync` or `--lineage`. `remedy` is how to make a deploy hook of it.
fn if_deploying(mention: Mention, place: &Path, kind: &str, command: &str, remedy: &str) -> Option<Mention> {
    let command = without_comments(command);
    match kind {
        "deploy" | "renew" => Some(mention),
        "post" if words(&command).any(|word| ["sync", "--lineage"].contains(&word)) => Some(mention),
        "pre" | "post" => Some(mention.and_then(|_| {
            let place = text::path(place);
            let detail =
                format!("{place} runs edgecert as a {kind} hook, which does not get the renewed lineage");
            Err(Subject::Hook.fail(detail, remedy))
        })),
        _ => None,
    }
}

/// The text of a script whose name, whose target, or whose text contains the name; empty if it is not text.
fn named_script(file: &Path, host: &Host<'_>) -> Option<String> {
    let link = std::fs::read_link(file).unwrap_or_default();
    let is_named = [file, &link].into_iter().any(|path| file_name(path).contains(NAME));
    let text = read_text(&host.target(file)).map(|text| without_comments(&text)).unwrap_or_default();
    (is_named || text.contains(NAME)).then_some(text)
}

/// Text without the comments of a shell.
fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.map(|line| line.split(" #").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The words of a command, as far as no quotes are nested.
fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| c.is_whitespace() || ";&|()'\"`".contains(c)).filter(|word| !word.is_empty())
}

/// A line of certbot's files: the name, with dashes, and the value. In `cli.ini`, names may have dashes before them.
fn setting(line: &str) -> (String, &str) {
    const SEPARATORS: [char; 4] = [' ', '\t', '=', ':'];
    let line = line.trim().trim_start_matches("--");
    let (name, value) = line.split_at(line.find(SEPARATORS).unwrap_or(line.len()));
    (name.replace('_', "-"), value.trim_start_matches(SEPARATORS))
}

/// The value of a variable in a file of shell assignments, as acme.sh writes it.
fn assigned<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.map(|value| value.trim().trim_matches('\''))
}

/// Decodes a command of acme.sh.
fn decode(value: &str) -> String {
    let inner =
        value.strip_prefix("__ACME_BASE64__START_").and_then(|rest| rest.strip_suffix("__ACME_BASE64__END_"));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.map_or_else(|| value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;
    use crate::bundle::Files;
    use crate::check::Status;
    use crate::env::Env;

    /// A file below the root: its path, its text, and its mode.
    type File<'a> = (&'a str, &'a str, u32);

    const LIVE: &str = "etc/letsencrypt/live/a/fullchain.pem";
    const RENEWAL: &str = "etc/letsencrypt/renewal/a.conf";
    const CLI: &str = "etc/letsencrypt/cli.ini";
    const DOMAIN: &str = "root/.acme.sh/a_ecc/a.conf";
    const PROGRAM: File<'_> = ("usr/local/bin/edgecert", "\u{7f}ELF", 0o755);
    const SYSTEMD: File<'_> = ("run/systemd/system/x", "", 0o644);

    /// Describes the hook that is found on a host with these files, and with or without systemd.
    fn found_on(
        files: &[File<'_>],
        client: AcmeClient,
        cert: &str,
        has_run: bool,
        has_systemd: bool,
    ) -> String {
        let root = TempDir::new().unwrap();
        for (path, text, mode) in files.iter().chain(&[PROGRAM]).chain(has_systemd.then_some(&SYSTEMD)) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if let Some(target) = text.strip_prefix("-> ") {
                symlink(target, &path).unwrap();
            } else {
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
            }
        }
        let cert = root.path().join(cert);
        let source =
            Source::new(client, Files { key: Some(cert.with_extension("key")), cert, issuers: None });
        let env = Env::default();
        let host = Host::new(root.path().to_owned(), &env);
        let DoctorFinding { status, detail, remedy, .. } = check(&source, "it", has_run, &host);
        let text = match status {
            Status::Ok => detail.split_once(" for it; ").map_or("Ran", |(names, _)| names).to_owned(),
            Status::Fail => format!("{detail}; {}", remedy.unwrap()),
            Status::Warn => "Unknown".into(),
            Status::Skipped => "NoHooks".into(),
        };
        text.replace(root.path().to_str().unwrap(), "")
    }

    fn found(files: &[File<'_>], client: AcmeClient, cert: &str) -> String {
        found_on(files, client, cert, false, true)
    }

    /// Describes the hook that is found in certbot's configuration of a lineage with this line.
    fn renewal(line: &str) -> String {
        let script = ("opt/deploy.sh", "#!/bin/sh\n# edgecert\nexec edgecert --json\n", 0o755);
        let plain = ("opt/plain.sh", "#!/bin/sh\n# edgecert\n", 0o755);
        let unset = ("opt/edgecert.sh", "", 0o644);
        let text = format!("version = 2.1.0\n[renewalparams]\nserver = x\n{line}\n");
        found(&[(RENEWAL, &text, 0o644), script, plain, unset], AcmeClient::Certbot, LIVE)
    }

    #[test]
    fn command_of_certbot_has_to_deploy() {
        for line in [
            "renew_hook = edgecert",
            "renew_hook = /usr/local/bin/edgecert deploy --json",
            "renew_hook = \"systemctl reload nginx; edgecert --domain a.example\"",
            "renew_hook = sh -c 'edgecert'",
            "renew_hook = PATH=/root/bin:$PATH edgecert",
            "renew_hook = edgecert status; edgecert",
            "renew_hook = ~/bin/edgecert",
            "renew_hook = /opt/deploy.sh now",
            "renew_hook = /bin/bash /opt/edgecert.sh",
            "deploy_hook = env A=1 edgecert",
            "post_hook = edgecert sync",
            "post_hook = edgecert --lineage /etc/letsencrypt/live/a",
        ] {
            assert_eq!(renewal(line), format!("/{RENEWAL} names edgecert"), "{line}");
        }
        let attach = "run `ln -s /usr/local/bin/edgecert /etc/letsencrypt/renewal-hooks/deploy/`";
        for line in [
            "",
            "renew_hook = systemctl reload nginx",
            "renew_hook = true # edgecert",
            "renew_hook = /opt/plain.sh",
            "manual_auth_hook = edgecert",
            "# renew_hook = edgecert",
        ] {
            assert_eq!(renewal(line), format!("/{RENEWAL} does not name edgecert; {attach}"), "{line}");
        }
        for (line, fault) in [
            ("renew_hook = edgecert check", "`edgecert check`, which deploys nothing"),
            ("renew_hook = /usr/local/bin/edgecert plan", "`edgecert plan`, which deploys nothing"),
            ("renew_hook = edgecert doctor", "`edgecert doctor`, which deploys nothing"),
            ("renew_hook = edgecert status --json", "`edgecert status`, which deploys nothing"),
            ("post_hook = edgecert status", "`edgecert status`, which deploys nothing"),
            ("renew_hook = /bin/edgecert", "/bin/edgecert, which does not exist or is not executable"),
            ("renew_hook = /opt/edgecert.sh", "/opt/edgecert.sh, which does not exist or is not executable"),
        ] {
            assert_eq!(renewal(line), format!("/{RENEWAL} calls {fault}; {attach}"), "{line}");
        }
        for kind in ["pre", "post"] {
            let detail =
                format!("/{RENEWAL} runs edgecert as a {kind} hook, which does not get the renewed lineage");
            let remedy = format!("make the `{kind}` hook in /{RENEWAL} a deploy hook");
            assert_eq!(renewal(&format!("{kind}_hook = edgecert --json")), format!("{detail}; {remedy}"));
        }
        assert!(renewal("pre_hook = edgecert sync").contains(" runs edgecert as a pre hook, "));
        let both = "renew_hook = edgecert\npost_hook = edgecert";
        assert_eq!(renewal(both), format!("/{RENEWAL} names edgecert"), "the deploy hook is not missing");
    }

    #[test]
    fn files_of_certbot_apply_to_every_lineage() {
        let own = (RENEWAL, "renew_hook = /bin/true\n", 0o644);
        let call = |file: File<'_>| found(&[own, file], AcmeClient::Certbot, LIVE);
        for line in ["deploy-hook = edgecert", "deploy-hook: edgecert", "--renew-hook edgecert"] {
            assert_eq!(call((CLI, line, 0o644)), format!("/{CLI} names edgecert"), "{line}");
        }
        assert!(
            call((CLI, "post-hook = edgecert", 0o644))
                .ends_with("hook in /etc/letsencrypt/cli.ini a deploy hook")
        );
        let place = |name: &str| format!("etc/letsencrypt/renewal-hooks/{name}");
        let script = "#!/bin/sh\nexec edgecert\n";
        let absent = format!("/{RENEWAL} does not name edgecert; run `ln");
        let unusable =
            "/PLACE is not executable, or a link that leads nowhere; run `chmod +x /PLACE`, or delete it";
        for (name, text, mode, expected) in [
            ("deploy/edge", script, 0o755, "/PLACE names edgecert"),
            ("deploy/edgecert", "-> /usr/local/bin/edgecert", 0, "/PLACE names edgecert"),
            ("deploy/to-the-edge", "-> /usr/local/bin/edgecert", 0, "/PLACE names edgecert"),
            ("deploy/edgecert", "-> /usr/bin/edgecert", 0, unusable),
            ("deploy/edge", script, 0o644, unusable),
            ("deploy/edge~", script, 0o755, &absent),
            ("deploy/edge", "# edgecert\n", 0o755, &absent),
            ("pre/sync", "edgecert sync\n", 0o755, "/PLACE runs edgecert as a pre hook, "),
            ("post/edge", script, 0o644, unusable),
            ("post/sync", "edgecert sync\n", 0o755, "/PLACE names edgecert"),
            (
                "post/edge",
                script,
                0o755,
                "/PLACE runs edgecert as a post hook, which does not get the renewed lineage; \
                run `mv /PLACE /etc/letsencrypt/renewal-hooks/deploy/`",
            ),
        ] {
            let place = place(name);
            let found = call((&place, text, mode));
            assert!(found.starts_with(&expected.replace("PLACE", &place)), "{name}: {found}");
        }
    }

    #[test]
    fn bare_name_is_searched_as_by_the_caller() {
        let own = (RENEWAL, "renew_hook = edgecert\n", 0o644);
        let call = |files: &[File<'_>], systemd| found_on(files, AcmeClient::Certbot, LIVE, false, systemd);
        assert_eq!(call(&[own], true), format!("/{RENEWAL} names edgecert"));
        let fault =
            format!("/{RENEWAL} calls edgecert without a path, and it is not in /usr/bin:/bin; run `ln");
        assert!(call(&[own], false).starts_with(&fault));
        assert_eq!(
            call(&[own, ("usr/bin/edgecert", "", 0o755)], false),
            format!("/{RENEWAL} names edgecert")
        );
        // cron runs acme.sh, which adds the path of its installation.
        let command = "Le_Domain='a'\nLe_ReloadCmd='edgecert'\n";
        let call = |account: &str| {
            let files = [(DOMAIN, command, 0o600), ("root/.acme.sh/account.conf", account, 0o600)];
            found(&files, AcmeClient::AcmeSh, "root/.acme.sh/a_ecc/a.cer")
        };
        assert!(
            call("").contains(" calls edgecert without a path, and it is not in /usr/bin:/bin; run `acme.sh")
        );
        assert_eq!(call("USER_PATH='/usr/local/bin:/bin'\n"), format!("/{DOMAIN} names edgecert"));
    }

    #[test]
    fn hook_of_acme_sh_is_found() {
        let encoded =
            |command: &str| format!("'__ACME_BASE64__START_{}__ACME_BASE64__END_'", STANDARD.encode(command));
        let script = ("root/.acme.sh/deploy/edge.sh", "edge_deploy() { edgecert; }\n", 0o644);
        let plain = ("root/.acme.sh/deploy/nginx.sh", "nginx_deploy() { true; }\n", 0o644);
        let call = |line: String| {
            let text = format!("Le_Domain='a'\n{line}\n");
            let cert = "root/.acme.sh/a_ecc/a.cer";
            found(&[(DOMAIN, &text, 0o600), script, plain], AcmeClient::AcmeSh, cert)
        };
        for line in [
            format!("Le_ReloadCmd={}", encoded("/usr/local/bin/edgecert")),
            format!("Le_RenewHook={}", encoded("/usr/local/bin/edgecert")),
            "Le_DeployHook='edgecert,'".into(),
            "Le_DeployHook='nginx,edge,'".into(),
        ] {
            assert_eq!(call(line.clone()), format!("/{DOMAIN} names edgecert"), "{line}");
        }
        let command = "run `acme.sh --install-cert -d a --ecc --reloadcmd";
        for (line, remedy) in [
            (String::new(), "/usr/local/bin/edgecert`"),
            ("Le_DeployHook='nginx,'".into(), "/usr/local/bin/edgecert`"),
            (
                format!("Le_ReloadCmd={}", encoded("nginx -s reload")),
                "'HOOK; /usr/local/bin/edgecert'`, with the current command in place of HOOK",
            ),
        ] {
            assert_eq!(
                call(line.clone()),
                format!("/{DOMAIN} does not name edgecert; {command} {remedy}"),
                "{line}"
            );
        }
        let check = format!("Le_ReloadCmd={}", encoded("/usr/local/bin/edgecert check"));
        let fault = "calls `edgecert check`, which deploys nothing";
        assert_eq!(call(check), format!("/{DOMAIN} {fault}; {command} /usr/local/bin/edgecert`"));
    }

    #[test]
    fn hook_of_dehydrated_is_found() {
        let call = |files: &[File<'_>], has_run| {
            let cert = "var/lib/dehydrated/certs/a/fullchain.pem";
            found_on(files, AcmeClient::Dehydrated, cert, has_run, true)
        };
        let config = |text: &'static str| ("etc/dehydrated/config", text, 0o644);
        let hook = |text: &'static str, mode| ("opt/hook.sh", text, mode);
        let names = "/etc/dehydrated/config names edgecert";
        assert_eq!(call(&[config("HOOK=/usr/local/bin/edgecert\n")], false), names);
        assert_eq!(
            call(&[config("HOOK=\"/opt/hook.sh\"\n"), hook("edgecert \"$@\"\n", 0o755)], false),
            names
        );
        let later = ("etc/dehydrated/conf.d/hook.sh", "HOOK=/usr/local/bin/edgecert\n", 0o644);
        assert_eq!(
            call(&[config("HOOK=/bin/true\n"), later], false),
            "/etc/dehydrated/conf.d/hook.sh names edgecert"
        );
        let not_executable = "/etc/dehydrated/config calls /opt/hook.sh, which does not exist or is not executable; \
            run `echo HOOK=/usr/local/bin/edgecert >> /etc/dehydrated/config`";
        assert_eq!(call(&[config("HOOK=/opt/hook.sh\n"), hook("edgecert", 0o644)], false), not_executable);
        // It has another hook, even if one of edgecert ran.
        let other = call(&[config("HOOK=/opt/hook.sh\n"), hook("true", 0o755)], true);
        assert!(
            other.starts_with("/etc/dehydrated/config does not name edgecert; call edgecert from"),
            "{other}"
        );
        // Its command line may name one.
        assert_eq!(call(&[config("#HOOK=\n")], false), "Unknown");
        assert_eq!(call(&[config("#HOOK=\n")], true), "Ran");
    }

    #[test]
    fn hook_run_proves_the_others() {
        let rows = [
            (AcmeClient::Lego, "Unknown"),
            (AcmeClient::Certbot, "Unknown"),
            (AcmeClient::Tailscale, "NoHooks"),
            (AcmeClient::Kubernetes, "NoHooks"),
            (AcmeClient::Files, "NoHooks"),
        ];
        for (client, expected) in rows {
            let call = |has_run| found_on(&[], client, "srv/a/a.crt", has_run, true);
            assert_eq!((call(false).as_str(), call(true).as_str()), (expected, "Ran"), "{client}");
        }
        // Files given one by one may be those of certbot.
        let files = [(RENEWAL, "renew_hook = edgecert\n", 0o644)];
        assert_eq!(found(&files, AcmeClient::Files, LIVE), format!("/{RENEWAL} names edgecert"));
    }
}
