//! The next step: what to do first after a run of `doctor`.

use super::finding::DoctorFinding;
use crate::check::Status;

/// The last line if everything is set up.
const NOTHING: &str = "nothing is left to do";
const LABEL: &str = "next: ";

/// The remedy of the first failure, else of the first warning; `None` if nothing is left to do.
pub(super) fn step(findings: &[DoctorFinding], has_settings: bool, is_root: bool) -> Option<String> {
    if !has_settings {
        let file = if is_root { "/etc/edgecert/config.toml" } else { "~/.config/edgecert/config.toml" };
        return Some(format!("write {file} with base_url and api_key_file"));
    }
    let with = |status| findings.iter().filter(move |finding| finding.status == status);
    let mut remedies =
        with(Status::Fail).chain(with(Status::Warn)).filter_map(|finding| finding.remedy.clone());
    remedies.next()
}

/// The last line of the text.
pub(super) fn line(step: Option<&str>) -> String {
    let Some(step) = step else { return format!("{NOTHING}\n") };
    format!("{LABEL}{step}\n")
}
