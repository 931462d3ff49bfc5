//! Whether certbot runs edgecert for a lineage: in the hooks of the lineage's renewal file and of `cli.ini`, in the
//! directories of hooks, or on the command line of a timer.
//!
//! Only deploy hooks get the renewed lineage. A pre or post hook that deploys without naming one is a mistake; a post
//! hook may run `edgecert sync`.

use std::path::{Path, PathBuf};

use super::calls::{Action, Call};
use super::certbot_files::{CertbotFiles, DIRECTORIES, Setting};
use super::hook_detection::{Detector, HookCall, HookStatus, WrongHook};
use super::host::{entries, file_name, is_executable, read_text};
use super::schedule::Job;
use crate::error::shell_word;
use crate::text;

/// Options of certbot that set a deploy hook.
const DEPLOY_OPTIONS: [&str; 2] = ["--deploy-hook", "--renew-hook"];

/// A pre or post hook of certbot.
struct OtherHook {
    file: PathBuf,
    origin: Origin,
    is_pre: bool,
    calls: Vec<Call>,
}

/// Where a pre or post hook is set.
enum Origin {
    /// A line of the renewal file or of `cli.ini`, with the command.
    Setting { line: usize, is_renewal: bool, command: String },
    /// An entry of a directory of hooks.
    Directory,
    /// The command line of a timer or crontab.
    CommandLine,
}

impl OtherHook {
    /// Whether it deploys without naming the certificate.
    fn is_wrong(&self) -> bool {
        self.calls.iter().any(is_wrong)
    }
}

/// Whether a call outside of a deploy hook deploys without naming a certificate.
fn is_wrong(call: &Call) -> bool {
    call.action() == Action::Deploy { cert: None, lineage: None }
}

impl Detector<'_> {
    /// `live/NAME` has its configuration in `renewal/NAME.conf`.
    pub(super) fn certbot(&self, lineage: Option<&Path>) -> Option<HookStatus> {
        let files = CertbotFiles::of(lineage?)?;
        let others = self.other_hooks(&files);
        // A post hook that syncs, or names its certificate, deploys the lineage after all.
        let posts = others.iter().filter(|hook| !hook.is_pre).map(|hook| {
            let calls: Vec<Call> = hook.calls.iter().filter(|call| !is_wrong(call)).cloned().collect();
            (hook.file.clone(), self.best(&calls).filter(|call| !matches!(call, HookCall::NoDeployment)))
        });
        let calls = self.deploy_hooks(&files).into_iter().chain(posts);
        let status = HookStatus::from_calls(calls, files.renewal.clone(), self.certbot_remedy(&files));
        let wrong = others.iter().find(|hook| hook.is_wrong());
        Some(match wrong {
            Some(hook) => HookStatus::WrongHook(self.wrong_hook(&files, hook, status.is_installed())),
            None => status,
        })
    }

    fn deploy_hooks(&self, files: &CertbotFiles) -> Vec<(PathBuf, Option<HookCall>)> {
        let settings = files.settings(&["renew_hook", "deploy_hook"]);
        let settings = settings.map(|(file, setting)| (file.to_owned(), self.command(setting.value)));
        let directory = self.hook_directory(files, "deploy").into_iter().map(|entry| {
            let call = self.directory_entry(&entry);
            (entry, call)
        });
        settings.chain(directory).chain(self.scheduled_hooks(&DEPLOY_OPTIONS)).collect()
    }

    /// The pre and post hooks that call edgecert.
    fn other_hooks(&self, files: &CertbotFiles) -> Vec<OtherHook> {
        let mut hooks = Vec::new();
        for is_pre in [false, true] {
            let name = if is_pre { "pre" } else { "post" };
            let setting = format!("{name}_hook");
            hooks.extend(files.settings(&[&setting]).map(|(file, Setting { line, value, .. })| OtherHook {
                file: file.to_owned(),
                origin: Origin::Setting {
                    line,
                    is_renewal: file == files.renewal,
                    command: value.to_owned(),
                },
                is_pre,
                calls: self.finder.in_text(value),
            }));
            let entries = self.hook_directory(files, name).into_iter().filter(|entry| is_executable(entry));
            hooks.extend(entries.map(|file| OtherHook {
                calls: self.finder.in_entry(&file),
                file,
                origin: Origin::Directory,
                is_pre,
            }));
            let option = format!("--{name}-hook");
            let jobs =
                self.jobs.iter().filter_map(|job| Some((&job.place, job.call.option(&[option.as_str()])?)));
            hooks.extend(jobs.map(|(place, command)| OtherHook {
                file: place.clone(),
                origin: Origin::CommandLine,
                is_pre,
                calls: self.finder.in_text(command),
            }));
        }
        hooks.retain(|hook| !hook.calls.is_empty());
        hooks
    }

    /// The entries of a directory of hooks, unless certbot ignores it.
    fn hook_directory(&self, files: &CertbotFiles, name: &str) -> Vec<PathBuf> {
        let ignores = |job: &&Job| job.call.has_argument(&["--no-directory-hooks"]);
        if files.ignores_directories() || !self.jobs.is_empty() && self.jobs.iter().all(ignores) {
            return Vec::new();
        }
        entries_of(files, name)
    }

    /// An entry of the directory of deploy hooks.
    fn directory_entry(&self, entry: &Path) -> Option<HookCall> {
        if is_executable(entry) {
            return self.best(&self.finder.in_entry(entry));
        }
        let calls = match read_text(entry) {
            Some(text) => self.finder.in_text(&text),
            None => self.finder.in_entry(entry),
        };
        self.best(&calls).map(HookCall::broken)
    }

    fn certbot_remedy(&self, files: &CertbotFiles) -> String {
        let name = shell_word(&text::sanitize(&files.name));
        let has_hook = files.has_deploy_hook();
        let is_hook = |entry: &PathBuf| self.directory_entry(entry).is_some();
        if files.ignores_directories() && entries_of(files, "deploy").iter().any(is_hook) {
            return format!("remove `no-directory-hooks` from {}", text::path(&files.cli));
        }
        let Some((major, minor)) = files.version_without_reconfigure() else {
            return self.install(&format!("certbot reconfigure --cert-name {name} --deploy-hook"), has_hook);
        };
        let renew = format!("certbot renew --force-renewal --cert-name {name} --deploy-hook");
        let renew = self.install(&renew, has_hook);
        let program = shell_word(&text::path(&self.finder.host.own_program()));
        let directory = deploy_directory(files);
        let every = if files.ignores_directories() {
            String::new()
        } else {
            format!(", or, for every lineage, `ln -s {program} {directory}/`")
        };
        format!("{renew}{every} (certbot {major}.{minor} has no `reconfigure`)")
    }

    fn wrong_hook(&self, files: &CertbotFiles, hook: &OtherHook, is_deployed: bool) -> WrongHook {
        let kind = if hook.is_pre { "pre" } else { "post" };
        let file = text::path(&hook.file);
        let (place, remedy) = match &hook.origin {
            Origin::Setting { line, is_renewal, command } => {
                let can_reconfigure = *is_renewal && files.version_without_reconfigure().is_none();
                let remedy = if can_reconfigure && is_single_command(command) {
                    self.reconfigure(files, kind, is_deployed)
                } else {
                    let [from, to] = if *is_renewal {
                        [format!("{kind}_hook"), "renew_hook".into()]
                    } else {
                        [format!("{kind}-hook"), "deploy-hook".into()]
                    };
                    edit(&from, &to, is_deployed)
                };
                (format!("{file}:{line}"), remedy)
            }
            Origin::Directory if is_deployed && hook.file.is_symlink() => {
                let remedy = format!("run `rm {}`", shell_word(&file));
                (file, remedy)
            }
            Origin::Directory if is_deployed => (file, "remove edgecert from it".to_owned()),
            Origin::Directory if hook.file.is_symlink() => {
                let remedy = format!("run `mv {} {}/`", shell_word(&file), deploy_directory(files));
                (file, remedy)
            }
            Origin::Directory => {
                (file, format!("move the call of edgecert to a script in {}", deploy_directory(files)))
            }
            Origin::CommandLine => (file, edit(&format!("--{kind}-hook"), "--deploy-hook", is_deployed)),
        };
        WrongHook { place, is_pre: hook.is_pre, is_deployed, remedy }
    }

    /// How to correct the hooks of a renewal file with a command.
    fn reconfigure(&self, files: &CertbotFiles, kind: &str, is_deployed: bool) -> String {
        let name = shell_word(&text::sanitize(&files.name));
        let command = format!("certbot reconfigure --cert-name {name} --{kind}-hook ''");
        if is_deployed {
            return format!("run `{command}`");
        }
        self.install(&format!("{command} --deploy-hook"), files.has_deploy_hook())
    }
}

/// The entries of a directory of hooks. certbot skips names that end in `~`.
fn entries_of(files: &CertbotFiles, name: &str) -> Vec<PathBuf> {
    let entries = entries(&files.home.join(DIRECTORIES).join(name)).into_iter();
    entries.filter(|entry| !file_name(entry).ends_with('~')).collect()
}

/// How to correct a hook with an editor.
fn edit(from: &str, to: &str, is_deployed: bool) -> String {
    if is_deployed {
        format!("remove edgecert from `{from}` there")
    } else {
        format!("move edgecert from `{from}` to `{to}` there")
    }
}

/// Whether a hook runs nothing but one command.
fn is_single_command(command: &str) -> bool {
    !command.contains([';', '&', '|'])
}

fn deploy_directory(files: &CertbotFiles) -> String {
    shell_word(&text::path(&files.home.join(DIRECTORIES).join("deploy")))
}
