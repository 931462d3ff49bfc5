//! The configuration files of certbot that concern a lineage: its renewal file and `cli.ini`.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::client_files::unquote;
use super::host::{file_name, read_text};

/// The directory of the directories of hooks, below certbot's.
pub(super) const DIRECTORIES: &str = "renewal-hooks";

/// The first version of certbot with `reconfigure`.
const RECONFIGURE: (u32, u32) = (2, 3);

/// The files that concern a lineage.
pub(super) struct CertbotFiles {
    /// The lineage's name.
    pub(super) name: String,
    /// certbot's directory, such as `/etc/letsencrypt`.
    pub(super) home: PathBuf,
    pub(super) renewal: PathBuf,
    renewal_text: Zeroizing<String>,
    cli: PathBuf,
    cli_text: Zeroizing<String>,
}

/// A setting in `ConfigObj` syntax.
pub(super) struct Setting<'t> {
    /// Its line, from 1 on.
    pub(super) line: usize,
    /// Its name, with underscores.
    pub(super) name: String,
    pub(super) value: &'t str,
}

impl CertbotFiles {
    /// Reads the files for `live/NAME`; `None` without a renewal file.
    pub(super) fn of(lineage: &Path) -> Option<Self> {
        let home = lineage.parent()?.parent()?.to_owned();
        let name = file_name(lineage).to_owned();
        let renewal = home.join("renewal").join(format!("{name}.conf"));
        let renewal_text = read_text(&renewal)?;
        let cli = home.join("cli.ini");
        let cli_text = read_text(&cli).unwrap_or_default();
        Some(Self { name, home, renewal, renewal_text, cli, cli_text })
    }

    /// The settings of these names, each with its file; those without a value are left out.
    pub(super) fn settings<'s>(&'s self, names: &'s [&str]) -> impl Iterator<Item = (&'s Path, Setting<'s>)> {
        let files = [(&self.renewal, &self.renewal_text), (&self.cli, &self.cli_text)];
        let all = files
            .into_iter()
            .flat_map(|(file, text)| settings(text).map(move |setting| (file.as_path(), setting)));
        all.filter(|(_, setting)| names.contains(&setting.name.as_str()) && !setting.value.is_empty())
    }

    /// Whether the renewal file or `cli.ini` sets a deploy hook.
    pub(super) fn has_deploy_hook(&self) -> bool {
        settings(&self.renewal_text).any(|setting| {
            ["renew_hook", "deploy_hook"].contains(&setting.name.as_str()) && !setting.value.is_empty()
        })
    }

    /// Whether certbot ignores the directories of hooks.
    pub(super) fn ignores_directories(&self) -> bool {
        settings(&self.cli_text).any(|setting| setting.name == "no_directory_hooks" && is_true(setting.value))
    }

    /// The line of the renewal file that excludes the lineage from renewal.
    pub(super) fn not_renewed(&self) -> Option<usize> {
        let mut settings = settings(&self.renewal_text);
        settings
            .find(|setting| setting.name == "autorenew" && is_false(setting.value))
            .map(|setting| setting.line)
    }

    /// The version of certbot that wrote the renewal file, if it lacks `certbot reconfigure`.
    pub(super) fn version_without_reconfigure(&self) -> Option<(u32, u32)> {
        version_without_reconfigure(&self.renewal_text)
    }
}

fn settings(text: &str) -> impl Iterator<Item = Setting<'_>> {
    text.lines().zip(1..).filter_map(|(text, line)| {
        let (name, value) = text.split_once('=')?;
        Some(Setting { line, name: name.trim().replace('-', "_"), value: unquote(value.trim()) })
    })
}

/// Whether `ConfigArgParse` takes a value for that of a flag that is given.
fn is_true(value: &str) -> bool {
    ["true", "yes", "on", "1"].contains(&value.to_lowercase().as_str())
}

/// Whether `ConfigObj` takes a value for false.
fn is_false(value: &str) -> bool {
    ["false", "no", "off", "0"].contains(&value.to_lowercase().as_str())
}

fn version_without_reconfigure(text: &str) -> Option<(u32, u32)> {
    let version = settings(text).find(|setting| setting.name == "version")?.value;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let version = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (version < RECONFIGURE).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconfigure_requires_certbot_2_3() {
        let rows = [
            ("version = 2.1.0\n", Some((2, 1))),
            ("# renew\nversion=0.40.0\n", Some((0, 40))),
            ("version = 2.3.0\n", None),
            ("version = 5.8.0\n", None),
            ("version = 2.10.0.dev0\n", None),
            ("version = new\n", None),
            ("archive_dir = /a\n", None),
        ];
        for (text, expected) in rows {
            assert_eq!(version_without_reconfigure(text), expected, "{text}");
        }
    }
}
