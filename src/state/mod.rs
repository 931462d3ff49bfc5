//! What is remembered between runs: for each lineage what was to be deployed and what came of it.
//!
//! Small files for people and for `edgecert`, one for each lineage; never a private key, never the API key. The intent is
//! on disk before the first request, the result after it. Reading and writing them is `store`, keeping two runs off the
//! same lineage is `lock`.

mod lock;
mod store;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::outcome::Outcome;
use crate::settings::Layer;
use crate::text::{self, rfc3339};

pub(crate) use self::lock::{Lock, LockTimeout};
pub(crate) use self::store::{StateError, Store, WriteError};

/// Version of the files; raised when a field changes its meaning or goes away.
pub(crate) const VERSION: u8 = 1;

/// One lineage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineageState {
    pub(crate) version: u8,
    pub(crate) lineage: Lineage,
    pub(crate) order: DeployOptions,
    /// The leaf that was to be deployed last; `None`: none could be read so far.
    pub(crate) certificate: Option<Certificate>,
    /// Counts the certificates of this lineage that were to be deployed.
    pub(crate) generation: u64,
    /// When the present deployment was begun.
    #[serde(with = "rfc3339::millis")]
    pub(crate) begun: OffsetDateTime,
    /// `None`: it was begun and nothing is known of its end.
    pub(crate) result: Option<DeployResult>,
    /// Since when a deployment of this lineage is not done; `None`: the last one was.
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) pending_since: Option<OffsetDateTime>,
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) last_success: Option<OffsetDateTime>,
    /// Since when its files are known to be gone; that was reported then.
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) gone_since: Option<OffsetDateTime>,
    /// What the last result says of each site, of those that told of any.
    pub(crate) sites: Vec<Site>,
    /// Of which leaf that is told, which need not be the present one, and since when; `None`: nothing is told.
    #[serde(default)]
    pub(crate) told: Option<Told>,
    /// The leaf of the last deployment before this one that succeeded; `None`: none did, as far as is remembered.
    #[serde(default)]
    pub(crate) deployed_before: Option<Certificate>,
}

/// Where a lineage is; absolute paths, read again at each try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lineage {
    pub(crate) client: String,
    pub(crate) cert: PathBuf,
    pub(crate) issuers: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) directory: Option<PathBuf>,
}

/// What was asked for beside the certificate. The API key is found refresh each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeployOptions {
    /// Base URL of the service; `None`: the settings could not be read so far.
    pub(crate) service: Option<String>,
    /// The sites that have to get it; empty: every covered one.
    pub(crate) domains: Vec<String>,
    /// What the command line and the environment said, for the runs that finish the work.
    pub(crate) asked: Overrides,
    pub(crate) allow_shrink: bool,
    pub(crate) allow_older: bool,
    pub(crate) replace_lets: bool,
}

/// What a run was told, apart from the configuration file, which is read again each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overrides {
    pub(crate) domains: Vec<String>,
    pub(crate) settings: Layer,
}

/// The leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) fingerprint: String,
    pub(crate) names: Vec<String>,
    #[serde(with = "rfc3339")]
    pub(crate) not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(crate) not_after: OffsetDateTime,
}

/// What the sites tell of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) certificate: Certificate,
    #[serde(with = "rfc3339::millis")]
    pub(crate) at: OffsetDateTime,
}

/// How a deployment ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeployResult {
    #[serde(with = "rfc3339::millis")]
    pub(crate) at: OffsetDateTime,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
}

/// A site as the report told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Site {
    pub(crate) id: Option<u64>,
    pub(crate) domain: String,
    /// Host name of its edge.
    pub(crate) cname: Option<String>,
    pub(crate) cert_id: Option<u64>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
}

impl LineageState {
    /// The intent to deploy a lineage, on top of what was remembered of it before; what is known of the sites stays until
    /// there is a result. `certificate` is `None` as long as none could be read: the last one is remembered then.
    pub(crate) fn begin(
        before: Option<Self>,
        lineage: Lineage,
        order: DeployOptions,
        certificate: Option<Certificate>,
        now: OffsetDateTime,
    ) -> Self {
        let known = before.as_ref().and_then(|before| before.certificate.clone());
        let is_new = certificate.is_some() && certificate != known;
        let generation = before.as_ref().map_or(0, |before| before.generation) + u64::from(is_new);
        let pending = before.as_ref().and_then(|before| before.pending_since);
        let deployed = before.as_ref().and_then(|before| before.deployed().cloned());
        let (last_success, sites, told) =
            before.map(|before| (before.last_success, before.sites, before.told)).unwrap_or_default();
        Self {
            version: VERSION,
            lineage,
            order,
            certificate: certificate.or(known),
            generation,
            begun: now,
            result: None,
            pending_since: Some(pending.unwrap_or(now)),
            last_success,
            gone_since: None,
            sites,
            told,
            deployed_before: deployed,
        }
    }

    /// The leaf of the last deployment that succeeded.
    pub(crate) fn deployed(&self) -> Option<&Certificate> {
        if self.succeeded() { self.certificate.as_ref() } else { self.deployed_before.as_ref() }
    }

    fn succeeded(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.exit_code == 0)
    }

    /// Records how it ended.
    pub(crate) fn finish(
        &mut self,
        exit_code: u8,
        error: Option<String>,
        sites: Vec<Site>,
        now: OffsetDateTime,
    ) {
        if exit_code == 0 {
            self.pending_since = None;
            self.last_success = Some(now);
        }
        if !sites.is_empty() {
            self.sites = sites;
            self.told = self.certificate.clone().map(|certificate| Told { certificate, at: now });
        }
        self.result = Some(DeployResult { at: now, exit_code, error });
    }

    /// Whether this very certificate was deployed and nothing of it is open.
    pub(crate) fn is_done(&self, certificate: &Certificate, order: &DeployOptions) -> bool {
        self.succeeded() && self.certificate.as_ref() == Some(certificate) && self.order == *order
    }

    /// Records that the lineage's files are gone.
    pub(crate) fn mark_missing(&mut self, now: OffsetDateTime) {
        self.gone_since.get_or_insert(now);
    }

    /// Whether what is known of the sites is told of the leaf that was to be deployed last.
    pub(crate) fn is_told(&self) -> bool {
        self.told.as_ref().map(|told| &told.certificate) == self.certificate.as_ref()
    }

    /// The records that hold the leaf of which the sites tell.
    fn records(&self) -> impl Iterator<Item = u64> {
        self.sites.iter().filter(|site| site.outcome.is_bound()).filter_map(|site| site.cert_id)
    }
}

/// When the leaves were issued that were deployed into records, as far as it is remembered.
#[derive(Debug, Default)]
pub(crate) struct IssueDates {
    /// By service and record: when it was deployed, and when that leaf was issued.
    latest: HashMap<String, HashMap<u64, (OffsetDateTime, OffsetDateTime)>>,
}

impl IssueDates {
    /// Takes a lineage into account.
    pub(crate) fn learn(&mut self, memory: &LineageState) {
        let (Some(service), Some(told)) = (&memory.order.service, &memory.told) else { return };
        let (ended, issued) = (told.at, told.certificate.not_before);
        for record in memory.records() {
            let known =
                self.latest.entry(service.clone()).or_default().entry(record).or_insert((ended, issued));
            // Two lineages may have used one record; the later deployment counts.
            if ended > known.0 {
                *known = (ended, issued);
            }
        }
    }

    /// When the leaves in the records of this service were issued.
    pub(crate) fn at(&self, service: &str) -> HashMap<u64, OffsetDateTime> {
        let records = self.latest.get(service).into_iter().flatten();
        records.map(|(record, (_, issued))| (*record, *issued)).collect()
    }
}

/// The name of a lineage's files, from the file or directory that stays the same when it is renewed: readable, and its
/// own even where two lineages are called alike.
pub(crate) fn name(place: &Path) -> String {
    let absolute = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let digest = digest(&SHA256, absolute.as_os_str().as_encoded_bytes());
    let called = absolute.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let plain: String = called
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .take(60)
        .collect();
    let own = text::hex(digest.as_ref().get(..5).unwrap_or_default());
    format!("{}-{own}", plain.trim_start_matches('.'))
}

/// A number for a name, spread evenly and the same on every machine.
pub(crate) fn number(name: &str) -> u64 {
    let digest = digest(&SHA256, name.as_bytes());
    digest.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    fn certificate(fingerprint: &str, not_before: OffsetDateTime) -> Certificate {
        Certificate {
            fingerprint: fingerprint.into(),
            names: vec!["a.example".into()],
            not_before,
            not_after: datetime!(2027-01-01 00:00:00 UTC),
        }
    }

    fn begin(before: Option<LineageState>, certificate: Certificate, now: OffsetDateTime) -> LineageState {
        let lineage =
            Lineage { client: "files".into(), cert: "/c".into(), issuers: None, key: None, directory: None };
        let order = DeployOptions { service: Some("https://api".into()), ..DeployOptions::default() };
        LineageState::begin(before, lineage, order, Some(certificate), now)
    }

    fn fed(cert_id: u64) -> Vec<Site> {
        vec![Site {
            id: Some(1),
            domain: "a.example".into(),
            cname: None,
            cert_id: Some(cert_id),
            outcome: Outcome::Served,
            detail: None,
        }]
    }

    #[test]
    fn what_is_open_stays_open_since_its_first_try() {
        let old = datetime!(2026-01-01 00:00:00 UTC);
        let mut memory = begin(None, certificate("aa", old), datetime!(2026-02-01 00:00:00 UTC));
        assert_eq!((memory.generation, memory.result.is_none()), (1, true));
        memory.finish(75, Some("busy".into()), Vec::new(), datetime!(2026-02-01 00:01:00 UTC));
        let mut again = begin(Some(memory), certificate("aa", old), datetime!(2026-02-02 00:00:00 UTC));
        assert_eq!((again.generation, again.pending_since), (1, Some(datetime!(2026-02-01 00:00:00 UTC))));
        again.finish(0, None, fed(5), datetime!(2026-02-02 00:01:00 UTC));
        assert!(
            again.pending_since.is_none() && again.is_done(&certificate("aa", old), &again.order.clone())
        );
        let newer = begin(Some(again), certificate("bb", old), datetime!(2026-03-01 00:00:00 UTC));
        assert_eq!((newer.generation, newer.sites, newer.result), (2, fed(5), None));
    }

    #[test]
    fn what_is_deployed_is_known_while_its_successor_is_not() {
        let old = datetime!(2026-01-01 00:00:00 UTC);
        let mut memory = begin(None, certificate("aa", old), datetime!(2026-02-01 00:00:00 UTC));
        assert_eq!(memory.deployed(), None);
        memory.finish(0, None, fed(5), datetime!(2026-02-01 00:01:00 UTC));
        assert_eq!(memory.deployed(), Some(&certificate("aa", old)));
        for leaf in ["bb", "cc"] {
            memory = begin(Some(memory), certificate(leaf, old), datetime!(2026-03-01 00:00:00 UTC));
            assert_eq!(memory.deployed(), Some(&certificate("aa", old)));
            memory.finish(75, None, Vec::new(), datetime!(2026-03-01 00:01:00 UTC));
            assert_eq!(memory.deployed(), Some(&certificate("aa", old)));
        }
        memory.finish(0, None, fed(5), datetime!(2026-03-01 00:02:00 UTC));
        assert_eq!(memory.deployed(), Some(&certificate("cc", old)));
    }

    #[test]
    fn of_two_lineages_for_one_record_the_later_deployment_counts() {
        let mut first = begin(
            None,
            certificate("aa", datetime!(2026-01-02 00:00:00 UTC)),
            datetime!(2026-02-01 00:00:00 UTC),
        );
        first.finish(0, None, fed(5), datetime!(2026-02-01 00:00:00 UTC));
        let mut second = begin(
            None,
            certificate("bb", datetime!(2026-01-01 00:00:00 UTC)),
            datetime!(2026-02-02 00:00:00 UTC),
        );
        second.finish(0, None, fed(5), datetime!(2026-02-02 00:00:00 UTC));
        let issued = |memories: [&LineageState; 2], service| {
            let mut issued = IssueDates::default();
            for memory in memories {
                issued.learn(memory);
            }
            issued.at(service)
        };
        let known = issued([&first, &second], "https://api");
        assert_eq!(known, issued([&second, &first], "https://api"));
        assert_eq!(known[&5], datetime!(2026-01-01 00:00 UTC));
        assert!(issued([&first, &second], "https://other").is_empty());
    }

    #[test]
    fn a_run_that_knows_no_site_says_nothing_of_what_is_in_a_record() {
        let mut memory = begin(
            None,
            certificate("aa", datetime!(2026-01-01 00:00:00 UTC)),
            datetime!(2026-02-01 00:00:00 UTC),
        );
        memory.finish(0, None, fed(5), datetime!(2026-02-01 00:00:00 UTC));
        let mut newer = begin(
            Some(memory),
            certificate("bb", datetime!(2026-03-01 00:00:00 UTC)),
            datetime!(2026-03-02 00:00:00 UTC),
        );
        newer.finish(75, Some("down".into()), Vec::new(), datetime!(2026-03-02 00:00:00 UTC));
        assert!(!newer.is_told());
        let mut issued = IssueDates::default();
        issued.learn(&newer);
        assert_eq!(issued.at("https://api")[&5], datetime!(2026-01-01 00:00 UTC));
    }

    #[test]
    fn names_are_readable_and_their_own() {
        let names = ["/etc/le/live/shop/fullchain.pem", "/srv/live/shop/fullchain.pem", "/x/*.a b/c.pem"];
        let [first, second, third] = names.map(|path| name(Path::new(path)));
        assert!(first.starts_with("shop-") && second.starts_with("shop-") && first != second);
        assert!(third.starts_with("_.a_b-"), "{third}");
    }
}
