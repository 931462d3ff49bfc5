//! Leaves with random names, dates and key types.

use std::sync::OnceLock;

use fastrand::Rng;
use tempfile::TempDir;

use crate::harness::{IssuedCert, fingerprint, generate_key, test_ca};

pub(super) const DOMAINS: [&str; 7] =
    ["a.example", "b.example", "c.example", "*.a.example", "x.a.example", "y.a.example", "d.b.example"];

/// A leaf, and what it is compared by.
pub(super) struct Leaf {
    pub(super) names: Vec<&'static str>,
    /// Days from today to issue and to expiry, and the fingerprint. Of several leaves, the greatest is to be served.
    pub(super) rank: (i64, i64, String),
    pub(super) issued: IssuedCert,
}

impl Leaf {
    pub(super) fn issue(names: Vec<&'static str>, days: [i64; 2], is_rsa: bool) -> Self {
        let issued = if is_rsa {
            test_ca().issue_for_key(rsa_key(), &names, days)
        } else {
            test_ca().issue_between(&names, days)
        };
        let issued = issued.unwrap();
        let rank = (days[0], days[1], fingerprint(&issued.cert));
        Self { names, rank, issued }
    }

    pub(super) fn covers(&self, domain: &str) -> bool {
        let wildcard = domain.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        self.names.contains(&domain)
            || !domain.starts_with('*') && wildcard.is_some_and(|name| self.names.contains(&name.as_str()))
    }

    pub(super) fn is_valid(&self) -> bool {
        self.rank.1 > 0
    }

    pub(super) fn fingerprint(&self) -> &str {
        &self.rank.2
    }
}

/// The dates of leaves, in days from today: issued ever later, up to the present, unless a world wants otherwise.
pub(super) struct Dates {
    latest: i64,
}

impl Dates {
    pub(super) fn new() -> Self {
        Self { latest: -100 }
    }

    /// Later than all leaves before it.
    pub(super) fn later(&mut self, rng: &mut Rng) -> [i64; 2] {
        self.latest = (self.latest + rng.i64(1..=4)).min(-1);
        [self.latest, expiry(rng)]
    }

    /// As late as another leaf, or earlier.
    pub(super) fn not_later(&self, rng: &mut Rng) -> [i64; 2] {
        [self.latest - rng.i64(0..3), expiry(rng)]
    }

    pub(super) fn expired(&mut self, rng: &mut Rng) -> [i64; 2] {
        [self.later(rng)[0] - 1, -1]
    }
}

fn expiry(rng: &mut Rng) -> i64 {
    [10, 30, 30, 80][rng.usize(..4)]
}

/// At least this many random domains.
pub(super) fn pick(rng: &mut Rng, least: usize, most: usize) -> Vec<&'static str> {
    let mut domains = DOMAINS.to_vec();
    rng.shuffle(&mut domains);
    domains.truncate(rng.usize(least..=most));
    domains
}

/// One key for all RSA leaves: the test CA cannot generate any, and openssl takes long.
fn rsa_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let directory = TempDir::new().unwrap();
        generate_key(directory.path(), &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
        std::fs::read_to_string(directory.path().join("privkey.pem")).unwrap()
    })
}
