//! What the edge serves for each name: the pushed sites, and overrides of their certificates.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;

use super::site::{EdgeSite, PreparedTls};
use crate::names;
use crate::store::edge::Snapshot;

/// The sites on the edge.
#[derive(Default)]
pub(crate) struct EdgeTable(RwLock<Entries>);

/// Both maps are by canonical name.
#[derive(Clone, Default)]
struct Entries {
    sites: BTreeMap<String, Arc<EdgeSite>>,
    overrides: BTreeMap<String, PreparedTls>,
}

impl EdgeTable {
    /// Adds or replaces a site with its pushed state.
    pub(crate) fn put(&self, snapshot: &Snapshot, cache: &mut TlsCache) {
        let site = Arc::new(EdgeSite::new(snapshot, cache));
        self.write().sites.insert(site.domain.clone(), site);
    }

    pub(crate) fn remove(&self, id: i64) {
        self.write().sites.retain(|_, site| site.id != Some(id));
    }

    /// Serves another certificate for one name, whatever is pushed. Fails if the edge cannot serve it.
    pub(crate) fn override_name(&self, name: &str, cert_pem: &str, key_pem: &str) -> Result<(), String> {
        if !names::is_domain(name) {
            return Err(format!("{name:?} is not a domain"));
        }
        let prepared = PreparedTls::usable(cert_pem, key_pem)?;
        self.write().overrides.insert(names::canonical(name), prepared);
        Ok(())
    }

    /// Returns a copy, which later pushes and overrides do not change.
    pub(super) fn snapshot(&self) -> Self {
        Self(RwLock::new(self.read().clone()))
    }

    /// Returns what is served for this name.
    pub(super) fn find(&self, host: &str) -> Option<Arc<EdgeSite>> {
        self.read().find(&names::canonical(host))
    }

    /// Returns what each name is served, for `GET /edge`.
    pub(crate) fn list(&self) -> Vec<Value> {
        let entries = self.read();
        let names: BTreeSet<&String> = entries.sites.keys().chain(entries.overrides.keys()).collect();
        names.into_iter().filter_map(|name| entries.find(name)).map(|site| site.to_json()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Returns the site with this name, or else the wildcard site one label up, with the override if there is
    /// one for this name.
    fn find(&self, name: &str) -> Option<Arc<EdgeSite>> {
        let wildcard = || name.split_once('.').and_then(|(_, parent)| self.sites.get(&format!("*.{parent}")));
        let site = self.sites.get(name).or_else(wildcard);
        match self.overrides.get(name) {
            None => site.cloned(),
            Some(with) => Some(Arc::new(EdgeSite::overridden(site.map(Arc::as_ref), name, with))),
        }
    }
}

/// TLS configurations by certificate and key, so that a push of many sites with one certificate parses it once.
#[derive(Default)]
pub(crate) struct TlsCache(HashMap<(String, String), PreparedTls>);

impl TlsCache {
    pub(super) fn get(&mut self, snapshot: &Snapshot) -> PreparedTls {
        let key = (snapshot.cert_pem.clone(), snapshot.key_pem.clone());
        self.0.entry(key).or_insert_with(|| PreparedTls::new(snapshot)).clone()
    }
}
