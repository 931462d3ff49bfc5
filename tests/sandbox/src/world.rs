//! The world file: the accounts, sites and certificate records that exist at the start. Unknown keys are
//! errors, because a misspelled world would silently rehearse something else.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::names;
use crate::site_fields;

/// The accounts, sites and certificate records that exist at the start.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Accounts. At least one has an API key; the ready file shows a key of the first.
    pub accounts: Vec<Account>,
    /// Sites, already pushed to the edge.
    #[serde(default)]
    pub sites: Vec<Site>,
    /// Certificate records. Their PEM is not validated, so that a record can be expired or broken.
    #[serde(default)]
    pub certs: Vec<Cert>,
}

/// A customer account.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Account ID.
    pub id: i64,
    /// API keys of the account.
    pub api_keys: Vec<String>,
    /// Purchased packages.
    #[serde(default)]
    pub packages: Vec<Package>,
}

/// A purchased amount of traffic.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Package ID.
    pub id: i64,
    /// The package is unusable from this time on.
    pub expires_at: jiff::Timestamp,
    /// Purchased traffic.
    pub traffic_limit: i64,
    /// Used traffic. The package's sites are disabled once it exceeds the limit.
    #[serde(default)]
    pub traffic_used: i64,
}

/// A site.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Site {
    /// Site ID.
    pub id: i64,
    /// ID of the account that owns the site.
    pub account: i64,
    /// Accelerated domain.
    pub domain: String,
    /// ID of the bound certificate record; unbound if absent.
    #[serde(default)]
    pub cert_id: Option<i64>,
    /// Package ID; the account's first package if absent.
    #[serde(default)]
    pub package_id: Option<i64>,
    /// False if the customer disabled the site.
    #[serde(default = "enabled_by_default")]
    pub enabled: bool,
    /// Other writable fields (section 2.3 of `edge-api.md`); defaults apply to absent ones.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// A certificate record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cert {
    /// Certificate ID.
    pub id: i64,
    /// ID of the account that owns the record.
    pub account: i64,
    /// Domain of the record.
    pub domain: String,
    /// Name of the record; the domain if absent.
    #[serde(default)]
    pub name: Option<String>,
    /// `lets` if the service issues and renews the certificate; an uploaded one if absent.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// PEM of the chain; empty if absent.
    #[serde(default)]
    pub cert_pem: String,
    /// PEM of the private key; empty if absent.
    #[serde(default)]
    pub key_pem: String,
}

impl Default for World {
    /// One account with the key `sandbox-key`, one package and no site.
    fn default() -> Self {
        let expires_at = jiff::Timestamp::from_second(1_893_456_000).unwrap_or(jiff::Timestamp::MAX);
        let package = Package { id: 1, expires_at, traffic_limit: 1000, traffic_used: 0 };
        let account = Account { id: 1, api_keys: vec!["sandbox-key".to_owned()], packages: vec![package] };
        Self { accounts: vec![account], sites: Vec::new(), certs: Vec::new() }
    }
}

impl World {
    /// Reads a world file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|error| match error {
            Error::InvalidWorld(reason) => Error::InvalidWorld(format!("{}: {reason}", path.display())),
            other => other,
        })
    }

    /// Parses the text of a world file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let world: Self =
            serde_json::from_str(text).map_err(|error| Error::InvalidWorld(error.to_string()))?;
        world.check()?;
        Ok(world)
    }

    /// Checks what the database's constraints would not report clearly.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.accounts.iter().all(|account| account.api_keys.is_empty()) {
            return Err(Error::InvalidWorld("no account with an API key".to_owned()));
        }
        for site in &self.sites {
            self.check_site(site)?;
        }
        for cert in &self.certs {
            self.check_account(cert.account, &format!("certificate {}", cert.id))?;
        }
        Ok(())
    }

    fn check_site(&self, site: &Site) -> Result<(), Error> {
        let subject = format!("site {}", site.id);
        self.check_account(site.account, &subject)?;
        if !names::is_domain(&site.domain) {
            return Err(Error::InvalidWorld(format!("{subject}: {:?} is not a domain", site.domain)));
        }
        for (name, value) in &site.settings {
            let Some(field) = site_fields::find(name) else {
                return Err(Error::InvalidWorld(format!("{subject} has an unknown field {name}")));
            };
            field.accept(value).map_err(|reason| Error::InvalidWorld(format!("{subject}: {reason}")))?;
        }
        Ok(())
    }

    fn check_account(&self, id: i64, subject: &str) -> Result<(), Error> {
        if self.accounts.iter().any(|account| account.id == id) {
            return Ok(());
        }
        Err(Error::InvalidWorld(format!("{subject} belongs to account {id}, which does not exist")))
    }
}

fn enabled_by_default() -> bool {
    true
}
