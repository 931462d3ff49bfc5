//! The accounts that only `[[lineage]]` entries name.

use super::finding::{DoctorFinding, Subject};
use crate::settings::{Configuration, Connection, Layers, LineageEntry};
use crate::text;

/// Whether there are entries, and each of them names service and key itself.
pub(super) fn covers_all(configuration: &Configuration) -> bool {
    let names_all = |entry: &LineageEntry| {
        entry.layer.connection.base_url.is_some() && entry.layer.connection.api_key_file.is_some()
    };
    !configuration.lineages.is_empty() && configuration.lineages.iter().all(names_all)
}

/// Reports a flag or a variable that comes before the services of entries.
pub(super) fn overridden(configuration: &Configuration, layers: &Layers<'_>) -> Option<DoctorFinding> {
    let url = layers.given_base_url()?;
    let is_hidden =
        |entry: &&LineageEntry| entry.layer.connection.base_url.as_ref().is_some_and(|own| own != url);
    let hidden = configuration.lineages.iter().filter(is_hidden).count();
    let detail = format!(
        "{url}, from a flag or a variable, overrides the base_url in {hidden} of the [[lineage]] entries"
    );
    let remedy = "set it as base_url in the configuration file instead";
    (hidden > 0).then(|| Subject::Settings.warn(detail, remedy))
}

/// Reports an entry with another service than the top of the file that gets the key of the top, probably by oversight.
pub(super) fn keys_of_other_services(configuration: &Configuration) -> Vec<DoctorFinding> {
    let Connection { base_url: Some(global), api_key_file: Some(key_file), .. } =
        &configuration.layer.connection
    else {
        return Vec::new();
    };
    let is_suspect = |entry: &&LineageEntry| {
        entry.layer.connection.api_key_file.is_none()
            && entry.layer.connection.base_url.as_ref().is_some_and(|own| own != global)
    };
    let warn = |entry: &LineageEntry| {
        let url = entry.layer.connection.base_url.as_ref().map(ToString::to_string).unwrap_or_default();
        let (path, key_file) = (text::path(entry.path()), text::path(key_file));
        let detail = format!("the [[lineage]] entry of {path} sends the API key in {key_file} to {url}");
        let remedy = "if the key is not for that service, set `api_key_file` in the entry";
        Subject::Settings.warn(detail, remedy)
    };
    configuration.lineages.iter().filter(is_suspect).map(warn).collect()
}
