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
    pub(super) cli: PathBuf,
    cli_text: Zeroizing<String>,
}

/// A setting of a file.
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
        let renewal = settings(&self.renewal_text).map(|setting| (self.renewal.as_path(), setting));
        let all = renewal.chain(cli_settings(&self.cli_text).map(|setting| (self.cli.as_path(), setting)));
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
        cli_settings(&self.cli_text)
            .any(|setting| setting.name == "no_directory_hooks" && is_true(setting.value))
    }

    /// The line of the renewal file that excludes the lineage from renewal, if any.
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

/// The settings of a renewal file, in the syntax of `ConfigObj`.
fn settings(text: &str) -> impl Iterator<Item = Setting<'_>> {
    text.lines().zip(1..).filter_map(|(text, line)| {
        let (name, value) = text.split_once('=')?;
        Some(Setting { line, name: name.trim().replace('-', "_"), value: unquote(value.trim()) })
    })
}

/// The settings of `cli.ini`, in the syntax of `ConfigArgParse`: `name = value`, `name: value`, `name value`, or the
/// name of a flag, each also after `--`.
fn cli_settings(text: &str) -> impl Iterator<Item = Setting<'_>> {
    text.lines().zip(1..).filter_map(|(text, line)| {
        let text = text.trim();
        let end = text.find(|c: char| ":=;#".contains(c) || c.is_whitespace()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if name.is_empty() || name.starts_with('[') || name.starts_with("---") {
            return None;
        }
        let rest = without_comment(rest).trim();
        let assigned = rest.strip_prefix([':', '=']).map(str::trim);
        let value =
            if assigned.is_none() && rest.is_empty() { "true" } else { unquote(assigned.unwrap_or(rest)) };
        Some(Setting { line, name: name.trim_start_matches("--").replace('-', "_"), value })
    })
}

/// Cuts off a comment: `#` or `;` after a blank, unless the value is quoted.
fn without_comment(text: &str) -> &str {
    if text.trim_start_matches([':', '=', ' ', '\t']).starts_with(['"', '\'']) {
        return text;
    }
    let is_blank = |start: usize| text[..start].ends_with(char::is_whitespace);
    let comment = text.match_indices(['#', ';']).find(|(start, _)| is_blank(*start));
    comment.map_or(text, |(start, _)| &text[..start])
}

/// Whether `ConfigArgParse` reads this value of a flag as true.
fn is_true(value: &str) -> bool {
    ["true", "yes", "on", "1"].contains(&value.to_lowercase().as_str())
}

/// Whether `ConfigObj` reads this value as false.
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

    #[test]
    fn cli_settings_are_read_as_by_certbot() {
        let rows = [
            ("post-hook = edgecert", Some(("post_hook", "edgecert"))),
            ("post-hook=edgecert sync", Some(("post_hook", "edgecert sync"))),
            ("post-hook: edgecert", Some(("post_hook", "edgecert"))),
            ("post-hook edgecert", Some(("post_hook", "edgecert"))),
            ("--post-hook = edgecert", Some(("post_hook", "edgecert"))),
            ("  post-hook = 'a ; b'", Some(("post_hook", "a ; b"))),
            ("post-hook = a ; b", Some(("post_hook", "a"))),
            ("post-hook = a;b # c", Some(("post_hook", "a;b"))),
            ("post-hook = \"a=b\"", Some(("post_hook", "a=b"))),
            ("no-directory-hooks", Some(("no_directory_hooks", "true"))),
            ("post-hook =", Some(("post_hook", ""))),
            ("# post-hook = edgecert", None),
            ("; post-hook = edgecert", None),
            ("[renew]", None),
            ("--- post-hook", None),
            ("", None),
        ];
        for (line, expected) in rows {
            let setting = cli_settings(line).next();
            let found = setting.as_ref().map(|setting| (setting.name.as_str(), setting.value));
            assert_eq!(found, expected, "{line}");
        }
    }
}
