//! The sites that the edge serves, by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::site::{EdgeSite, PreparedTls};
use crate::names;
use crate::store::edge::Snapshot;

/// The sites on the edge by canonical name.
#[derive(Default)]
pub(crate) struct EdgeTable {
    sites: RwLock<BTreeMap<String, Arc<EdgeSite>>>,
}

impl EdgeTable {
    /// Adds or replaces a site with its pushed state.
    pub(crate) fn put(&self, snapshot: &Snapshot, cache: &mut TlsCache) {
        let site = Arc::new(EdgeSite::new(snapshot, cache));
        let mut sites = self.sites.write().unwrap_or_else(PoisonError::into_inner);
        sites.insert(site.domain.clone(), site);
    }

    pub(crate) fn remove(&self, id: i64) {
        let mut sites = self.sites.write().unwrap_or_else(PoisonError::into_inner);
        sites.retain(|_, site| site.id != id);
    }

    /// Returns the site with this name, or else the wildcard site one label up.
    pub(super) fn find(&self, host: &str) -> Option<Arc<EdgeSite>> {
        let name = names::canonical(host);
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        let wildcard = || name.split_once('.').and_then(|(_, parent)| sites.get(&format!("*.{parent}")));
        sites.get(&name).or_else(wildcard).cloned()
    }

    /// Returns what each name is served, for `GET /edge`.
    pub(crate) fn list(&self) -> Vec<Value> {
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        sites.values().map(|site| site.to_json()).collect()
    }
}

/// TLS configurations by certificate, key and `http2`, so that a push of many sites with one certificate
/// parses it once.
#[derive(Default)]
pub(crate) struct TlsCache(HashMap<(String, String, bool), PreparedTls>);

impl TlsCache {
    pub(super) fn get(&mut self, snapshot: &Snapshot, http2: bool) -> PreparedTls {
        let key = (snapshot.cert_pem.clone(), snapshot.key_pem.clone(), http2);
        self.0.entry(key).or_insert_with(|| PreparedTls::new(snapshot, http2)).clone()
    }
}
