//! Gathers the facts: the memory of each lineage beside the certificate that its client keeps now. No key is opened, no
//! request is sent.

use std::path::Path;
use std::time::UNIX_EPOCH;

use time::OffsetDateTime;

use super::facts::{Age, Disk, Leaf, Lineage, Site};
use crate::bundle::{self, Files};
use crate::cert::Certificate;
use crate::inventory::{Inventory, Member};
use crate::outcome::Outcome;
use crate::source;
use crate::state::{self, LineageState};
use crate::text;

/// The lineages in the order of their names, and what is strange about memories.
pub(super) fn gather(inventory: Inventory<'_>, now: OffsetDateTime) -> (Vec<Lineage>, Vec<String>) {
    let (mut lineages, mut strange) = (Vec::with_capacity(inventory.len()), Vec::new());
    inventory.visit(|member| lineages.push(Lineage::of(member, now)), |note| strange.push(note.to_string()));
    lineages.sort_by(|a: &Lineage, b| a.name.cmp(&b.name));
    (lineages, strange)
}

impl Lineage {
    fn of(member: Member<'_>, now: OffsetDateTime) -> Self {
        let Member { name, source, entry, memory } = member;
        let memory = memory.as_ref();
        let (client, cert, (disk, written)) = match &source {
            Ok(source) => {
                let cert = text::path(&source.files.cert);
                (Some(source.client.word()), Some(cert), Disk::read(&source.files, memory))
            }
            Err(error) => (None, None, (Disk::astray(error), None)),
        };
        let begun = memory.and_then(|memory| memory.pending_since);
        let unseen = || matches!(disk, Disk::Leaf { age: Age::Newer, .. }).then(|| written.unwrap_or(now));
        let remembered = memory.and_then(|memory| memory.options.overrides.settings.edge_address.clone());
        Self {
            name,
            client,
            cert,
            configured: entry.is_some(),
            remembered: memory.is_some(),
            generation: memory.map_or(0, |memory| memory.generation),
            // A file may come from a machine whose clock is ahead.
            pending_since: begun.or_else(unseen).map(|since| since.min(now)),
            begun: begun.is_some(),
            last_success: memory.and_then(|memory| memory.last_success),
            last_error: memory.and_then(|memory| memory.result.clone()).filter(|end| end.exit_code != 0),
            deployed: memory.and_then(LineageState::deployed).map(Leaf::remembered),
            sites: memory.map(|memory| sites(memory, &disk)).unwrap_or_default(),
            edge_address: remembered.or_else(|| entry.and_then(|entry| entry.layer.edge_address.clone())),
            disk,
        }
    }
}

impl Disk {
    /// What is in the files, and since when.
    fn read(files: &Files, memory: Option<&LineageState>) -> (Self, Option<OffsetDateTime>) {
        let bundle = match bundle::look(files) {
            Ok(bundle) => bundle,
            Err(unreadable) if unreadable.is_missing() => return (Self::Gone, None),
            Err(unreadable) => return (Self::ReadError(unreadable.to_string()), None),
        };
        match bundle.chain {
            Ok(chain) => {
                let known = memory.and_then(|memory| memory.leaf.as_ref());
                (Self::of(&chain.leaf, known), modified(&files.cert))
            }
            Err(diagnostics) => {
                let found: Vec<&str> =
                    diagnostics.iter().map(|diagnostic| diagnostic.found.as_str()).collect();
                let shown = text::path(&files.cert);
                (Self::ReadError(format!("{shown} holds {}", text::list(&found))), None)
            }
        }
    }

    fn of(leaf: &Certificate, known: Option<&state::LeafState>) -> Self {
        let fingerprint = leaf.fingerprint();
        let age = match known {
            Some(known) if known.fingerprint == fingerprint => Age::Same,
            Some(known) if leaf.not_before < known.not_before => Age::Older,
            _ => Age::Newer,
        };
        let shown = Leaf { fingerprint, names: leaf.names(), not_after: leaf.not_after };
        let key_type = leaf.public_key.key_type();
        Self::Leaf { leaf: shown, key_type, age }
    }

    /// Of an entry of the configuration that leads to no lineage.
    fn astray(error: &source::Error) -> Self {
        match error {
            source::Error::NotALineage { directory, .. } if matches!(directory.try_exists(), Ok(false)) => {
                Self::Gone
            }
            error => Self::ReadError(error.to_string()),
        }
    }
}

impl Leaf {
    fn remembered(certificate: &state::LeafState) -> Self {
        Self {
            fingerprint: certificate.fingerprint.clone(),
            names: certificate.names.clone(),
            not_after: certificate.not_after,
        }
    }
}

/// The sites of the last result that told of any. It may be that of the deployment before: a run that fails before it
/// knows its sites leaves them as they were, and so does one that is not over.
fn sites(memory: &LineageState, disk: &Disk) -> Vec<Site> {
    let told = memory.has_current_sites();
    let (latest, before) = (memory.leaf.as_ref(), memory.deployed());
    let site = |site: &state::SiteState| {
        let (on_record, shown) = match &site.outcome {
            Outcome::Misbound | Outcome::Skipped => (None, None),
            _ if !told => (before, before),
            Outcome::Stale => (latest, before),
            outcome if outcome.is_deployed() => (latest, latest),
            _ => (None, before),
        };
        let on_disk = disk.leaf().map(|leaf| &leaf.fingerprint);
        Site {
            id: site.id,
            domain: text::sanitize(&site.domain),
            cname: site.cname.clone(),
            cert_id: site.cert_id,
            outcome: sanitized(&site.outcome),
            detail: site.detail.as_deref().map(text::sanitize),
            is_on_record: on_record.zip(on_disk).map(|(held, disk)| held.fingerprint == *disk),
            not_after: shown.map(|leaf| leaf.not_after),
            served: None,
        }
    };
    memory.sites.iter().map(site).collect()
}

fn modified(path: &Path) -> Option<OffsetDateTime> {
    let since = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    OffsetDateTime::from_unix_timestamp(i64::try_from(since.as_secs()).ok()?).ok()
}

/// An outcome that can be printed: an unknown one is text from the state file.
fn sanitized(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Unknown(word) => Outcome::Unknown(text::sanitize(word)),
        known => known.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cert::KeyType;
    use time::macros::datetime;

    /// Site outcomes; the exit code of the last run and whether it reported sites; whether the record of the first site
    /// holds the leaf on disk; the year in which the leaf that visitors get expires.
    type Row = (&'static [Outcome], Option<(u8, bool)>, Option<bool>, Option<i32>);

    fn year(year: i32) -> OffsetDateTime {
        datetime!(2000-01-01 0:00 UTC).replace_year(year).unwrap()
    }

    fn leaf(fingerprint: &str, issued: i32) -> state::LeafState {
        state::LeafState {
            fingerprint: fingerprint.into(),
            names: Vec::new(),
            not_before: year(issued),
            not_after: year(issued + 1),
        }
    }

    fn begin(before: Option<LineageState>, leaf: state::LeafState) -> LineageState {
        let lineage = state::SourceState {
            client: "files".into(),
            cert: "/c".into(),
            issuers: None,
            key: None,
            directory: None,
        };
        let now = leaf.not_before;
        LineageState::begin(before, lineage, state::DeployOptions::default(), Some(leaf), now)
    }

    /// A lineage whose leaf `old` was deployed, and whose leaf `new` ended as given.
    fn memory(outcomes: &[Outcome], end: Option<(u8, bool)>) -> LineageState {
        let site = |outcome: &Outcome| state::SiteState {
            id: None,
            domain: "a.example".into(),
            cname: None,
            cert_id: Some(5),
            outcome: outcome.clone(),
            detail: None,
        };
        let sites: Vec<state::SiteState> = outcomes.iter().map(site).collect();
        let mut memory = begin(None, leaf("old", 2026));
        memory.finish(0, None, sites.clone(), year(2026));
        memory = begin(Some(memory), leaf("new", 2027));
        if let Some((exit_code, told)) = end {
            memory.finish(exit_code, None, if told { sites } else { Vec::new() }, year(2027));
        }
        memory
    }

    #[test]
    fn outcome_decides_leaf_of_site() {
        use Outcome::{Misbound, Queued, Served, Skipped, Stale, Uploaded};
        const UNKNOWN: &[Outcome] = &[Outcome::Unknown(String::new())];
        let rows: [Row; 10] = [
            (&[Served], Some((0, true)), Some(true), Some(2028)),
            (&[Uploaded], Some((0, true)), Some(true), Some(2028)),
            (&[Served, Queued], Some((75, true)), Some(true), Some(2028)),
            (&[Stale], Some((75, true)), Some(true), Some(2027)),
            (&[Queued, Served], Some((75, true)), None, Some(2027)),
            (&[Misbound], Some((0, true)), None, None),
            (&[Skipped], Some((0, true)), None, None),
            (UNKNOWN, Some((0, true)), None, Some(2028)),
            // A run that failed before it knew its sites, or that has not ended: the sites are those of the leaf before.
            (&[Served], Some((75, false)), Some(false), Some(2027)),
            (&[Served], None, Some(false), Some(2027)),
        ];
        for (outcomes, end, on_record, year) in rows {
            let disk = Disk::Leaf {
                leaf: Leaf { fingerprint: "new".into(), names: Vec::new(), not_after: self::year(2028) },
                key_type: KeyType::P256,
                age: Age::Same,
            };
            let sites = sites(&memory(outcomes, end), &disk);
            let found = (sites[0].is_on_record, sites[0].not_after.map(OffsetDateTime::year));
            assert_eq!(found, (on_record, year), "{outcomes:?} {end:?}");
        }
    }
}
