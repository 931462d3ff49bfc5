//! The world file: who and what exists before the first request. An unknown key is an error, because a
//! misspelt world would make a rehearsal of something else.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::names;
use crate::site_fields;

/// Accounts, sites and certificates at the start.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Who may call; the first account's first key goes into the ready file.
    pub accounts: Vec<Account>,
    /// Sites, already pushed.
    #[serde(default)]
    pub sites: Vec<Site>,
    /// Certificate records. They are taken as they are: an expired one is a fine thing to rehearse with.
    #[serde(default)]
    pub certs: Vec<Cert>,
}

/// An account with its keys and what it bought.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Number of the account.
    pub id: i64,
    /// Keys that act for it.
    pub api_keys: Vec<String>,
    /// Packages that it bought.
    #[serde(default)]
    pub packages: Vec<Package>,
}

/// Traffic that was paid for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Number of the package.
    pub id: i64,
    /// From this moment on it cannot be used.
    pub expires_at: jiff::Timestamp,
    /// What was bought.
    pub traffic_limit: i64,
    /// What was used; more than the limit disables the package's sites.
    #[serde(default)]
    pub traffic_used: i64,
}

/// A site; writable fields of section 2.3 may stand beside these.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Site {
    /// Number of the site.
    pub id: i64,
    /// Account that owns it.
    pub account: i64,
    /// Accelerated domain.
    pub domain: String,
    /// Bound certificate; none when absent.
    #[serde(default)]
    pub cert_id: Option<i64>,
    /// Package; the account's first when absent.
    #[serde(default)]
    pub package_id: Option<i64>,
    /// Switched off by the customer when false.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Any other writable field.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// A certificate record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cert {
    /// Number of the record.
    pub id: i64,
    /// Account that owns it.
    pub account: i64,
    /// Domain that it was made for.
    pub domain: String,
    /// Its name; the domain when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// `lets` for one that the system renews; an upload when absent.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Chain.
    #[serde(default)]
    pub cert_pem: String,
    /// Private key.
    #[serde(default)]
    pub key_pem: String,
}

impl Default for World {
    fn default() -> Self {
        let expires_at = jiff::Timestamp::from_second(1_893_456_000).unwrap_or(jiff::Timestamp::MAX);
        let package = Package { id: 1, expires_at, traffic_limit: 1000, traffic_used: 0 };
        let account = Account { id: 1, api_keys: vec!["sandbox-key".to_owned()], packages: vec![package] };
        Self { accounts: vec![account], sites: Vec::new(), certs: Vec::new() }
    }
}

impl World {
    /// Reads a world file.
    pub fn read(path: &std::path::Path) -> Result<Self, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads the text of a world file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let world: Self =
            serde_json::from_str(text).map_err(|error| Error::InvalidWorld(error.to_string()))?;
        world.check()?;
        Ok(world)
    }

    /// What the database's own constraints would not say clearly.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.first_key().is_none() {
            return Err(Error::InvalidWorld("it has no account with an API key".to_owned()));
        }
        for site in &self.sites {
            self.check_site(site)?;
        }
        for cert in &self.certs {
            self.known_account(cert.account, &format!("certificate {}", cert.id))?;
        }
        Ok(())
    }

    /// The key that the ready file names.
    pub(crate) fn first_key(&self) -> Option<&str> {
        self.accounts.iter().find_map(|account| account.api_keys.first()).map(String::as_str)
    }

    fn check_site(&self, site: &Site) -> Result<(), Error> {
        let what = format!("site {}", site.id);
        self.known_account(site.account, &what)?;
        if !names::is_domain(&site.domain) {
            return Err(Error::InvalidWorld(format!("{what}: {:?} is not a domain", site.domain)));
        }
        for (name, value) in &site.settings {
            match site_fields::find(name) {
                None => return Err(Error::InvalidWorld(format!("{what} has an unknown field {name}"))),
                Some(field) => {
                    field.accept(value).map_err(|reason| Error::InvalidWorld(format!("{what}: {reason}")))?;
                }
            }
        }
        Ok(())
    }

    fn known_account(&self, id: i64, what: &str) -> Result<(), Error> {
        if self.accounts.iter().any(|account| account.id == id) {
            return Ok(());
        }
        Err(Error::InvalidWorld(format!("{what} belongs to account {id}, which is not among the accounts")))
    }
}

fn yes() -> bool {
    true
}
