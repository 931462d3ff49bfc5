//! What the edge serves by name, made ready for the TLS library from the snapshots of the last pushes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};

use crate::clock::iso;
use crate::names;
use crate::store::edge::Snapshot;
use crate::{cert, key};

/// One site on the edge.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) domain: String,
    site: i64,
    cert_id: Option<i64>,
    pub(crate) http: bool,
    pub(crate) force_https: bool,
    origins: Value,
    leaf: Option<(String, i64)>,
    /// What a handshake uses, or why there can be none.
    pub(crate) tls: Result<Arc<ServerConfig>, String>,
}

/// Every site on the edge by its canonical name.
#[derive(Default)]
pub(crate) struct EdgeTable {
    sites: RwLock<BTreeMap<String, Arc<Served>>>,
}

impl EdgeTable {
    /// Takes over what was pushed.
    pub(crate) fn put(&self, snapshot: &Snapshot, memo: &mut Memo) {
        let served = Arc::new(Served::new(snapshot, memo));
        let mut sites = self.sites.write().unwrap_or_else(PoisonError::into_inner);
        sites.insert(served.domain.clone(), served);
    }

    /// Takes a site away.
    pub(crate) fn remove(&self, site: i64) {
        let mut sites = self.sites.write().unwrap_or_else(PoisonError::into_inner);
        sites.retain(|_, served| served.site != site);
    }

    /// The site for a host name: the one of this name, else the wildcard one level up.
    pub(crate) fn find(&self, host: &str) -> Option<Arc<Served>> {
        let name = names::canonical(host);
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        let wildcard = || name.split_once('.').and_then(|(_, parent)| sites.get(&format!("*.{parent}")));
        sites.get(&name).or_else(wildcard).cloned()
    }

    /// What each name is served, for the control port.
    pub(crate) fn list(&self) -> Vec<Value> {
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        sites.values().map(|served| served.show()).collect()
    }
}

/// What sites with the same certificate share, so that a push of a thousand of them reads it once.
#[derive(Default)]
pub(crate) struct Memo(HashMap<(String, String, bool), Prepared>);

#[derive(Clone)]
struct Prepared {
    leaf: Option<(String, i64)>,
    tls: Result<Arc<ServerConfig>, String>,
}

impl Served {
    fn new(snapshot: &Snapshot, memo: &mut Memo) -> Self {
        let flag = |name: &str| snapshot.settings.get(name).and_then(Value::as_bool).unwrap_or(false);
        let http2 = flag("http2");
        let key = (snapshot.cert_pem.clone(), snapshot.key_pem.clone(), http2);
        let prepared = memo.0.entry(key).or_insert_with(|| prepare(snapshot, http2)).clone();
        Self {
            domain: snapshot.domain_key.clone(),
            site: snapshot.site,
            cert_id: snapshot.cert_id,
            http: flag("http_enabled"),
            force_https: flag("force_https"),
            origins: snapshot.settings.get("origins").cloned().unwrap_or_else(|| json!([])),
            leaf: prepared.leaf,
            tls: if flag("https_enabled") { prepared.tls } else { Err("https_enabled is false".to_owned()) },
        }
    }

    /// What stands where the origin's page would be.
    pub(crate) fn page(&self) -> String {
        format!("rehearsal edge: {} from {}\n", self.domain, self.origins)
    }

    fn show(&self) -> Value {
        let (fingerprint, not_after) = self.leaf.clone().unzip();
        json!({
            "domain": self.domain,
            "site_id": self.site,
            "cert_id": self.cert_id,
            "fingerprint": fingerprint,
            "not_after": not_after.map(iso),
            "http": self.http,
            "https": self.tls.is_ok(),
            "force_https": self.force_https,
            "alpn": self.alpn(),
            "problem": self.tls.as_ref().err(),
        })
    }

    fn alpn(&self) -> Vec<String> {
        let config = self.tls.as_ref().ok();
        config.map_or_else(Vec::new, |config| {
            config.alpn_protocols.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        })
    }
}

fn prepare(snapshot: &Snapshot, http2: bool) -> Prepared {
    let leaf = cert::read(&snapshot.cert_pem).ok();
    Prepared {
        leaf: leaf.map(|leaf| (leaf.fingerprint, leaf.not_after)),
        tls: server_config(snapshot, http2),
    }
}

fn server_config(snapshot: &Snapshot, http2: bool) -> Result<Arc<ServerConfig>, String> {
    if snapshot.cert_id.is_none() {
        return Err("no certificate is bound".to_owned());
    }
    let chain = cert::chain(&snapshot.cert_pem)?.into_iter().map(CertificateDer::from).collect();
    let key = ring::sign::any_supported_type(&key::for_tls(&snapshot.key_pem)?)
        .map_err(|_| "this edge cannot sign with the key's type".to_owned())?;
    let certified = CertifiedKey::new(chain, key);
    if let Err(error) = certified.keys_match() {
        return Err(format!("certificate and key are no pair: {error}"));
    }
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Only(Arc::new(certified))));
    config.alpn_protocols =
        if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(Arc::new(config))
}

/// The name was looked at before this configuration was chosen.
#[derive(Debug)]
struct Only(Arc<CertifiedKey>);

impl ResolvesServerCert for Only {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}
