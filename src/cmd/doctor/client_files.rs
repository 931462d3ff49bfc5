//! What the configuration files of ACME clients say about hooks.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::host::{Host, entries, read_text};

/// Files of dehydrated that set `HOOK`, the last one first, and a directory of more.
const DEHYDRATED: [&str; 2] = ["/usr/local/etc/dehydrated/config", "/etc/dehydrated/config"];
const DEHYDRATED_DIRECTORY: &str = "/etc/dehydrated/conf.d";

/// A value without the quotes around it, and without a comment after them.
pub(super) fn unquote(value: &str) -> &str {
    let Some(quote) = value.chars().next().filter(|first| "'\"".contains(*first)) else { return value };
    let inner = value.trim_start_matches(quote);
    inner.split(quote).next().unwrap_or_default()
}

/// The value of a variable in a file of shell assignments, as acme.sh writes it.
pub(super) fn acme_sh_value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.map(|value| value.trim().trim_matches('\''))
}

/// Decodes a command of acme.sh.
pub(super) fn decode_command(value: &str) -> String {
    let inner =
        value.strip_prefix("__ACME_BASE64__START_").and_then(|rest| rest.strip_suffix("__ACME_BASE64__END_"));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.map_or_else(|| value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The directories that acme.sh searches before those of its crontab: the search path at the time of the first issue.
pub(super) fn acme_sh_path(home: &Path) -> Vec<String> {
    let text = read_text(&home.join("account.conf")).unwrap_or_default();
    let path = acme_sh_value(&text, "USER_PATH").unwrap_or_default();
    path.split(':').filter(|directory| !directory.is_empty()).map(str::to_owned).collect()
}

/// The hook of dehydrated, with the file that sets it.
pub(super) fn dehydrated_hook(host: &Host<'_>) -> Option<(std::path::PathBuf, String)> {
    let directory = entries(&host.at(DEHYDRATED_DIRECTORY)).into_iter().rev();
    let mut files = directory.chain(DEHYDRATED.iter().map(|path| host.at(path)));
    files.find_map(|file| {
        let text = read_text(&file)?;
        let mut values = text.lines().rev().filter_map(|line| line.trim().strip_prefix("HOOK="));
        let hook = values.next().map(|value| unquote(value.trim()).to_owned());
        hook.filter(|hook| !hook.is_empty()).map(|hook| (file, hook))
    })
}
