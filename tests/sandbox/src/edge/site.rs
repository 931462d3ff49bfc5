//! A site on the edge, prepared from its last push: its certificate and its TLS configuration.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};

use super::table::TlsCache;
use crate::cert::{self, Leaf};
use crate::clock::iso8601;
use crate::key;
use crate::store::edge::Snapshot;

/// A site that the edge serves.
#[derive(Debug, Clone)]
pub(super) struct EdgeSite {
    /// Canonical name.
    pub(super) domain: String,
    /// `None` if there is no site of this name.
    pub(super) id: Option<i64>,
    cert_id: Option<i64>,
    leaf: Option<Leaf>,
    /// The TLS configuration, or the reason why there is none.
    pub(super) tls: Result<Arc<ServerConfig>, String>,
    /// Whether another certificate than the pushed one is served.
    is_overridden: bool,
}

impl EdgeSite {
    pub(super) fn new(snapshot: &Snapshot, cache: &mut TlsCache) -> Self {
        let has_https = snapshot.settings.get("https_enabled").and_then(Value::as_bool).unwrap_or(false);
        let prepared = cache.get(snapshot);
        Self {
            domain: snapshot.domain_key.clone(),
            id: Some(snapshot.site),
            cert_id: snapshot.cert_id,
            leaf: prepared.leaf,
            tls: if has_https { prepared.tls } else { Err("https_enabled is false".to_owned()) },
            is_overridden: false,
        }
    }

    /// Returns what a name is served instead of its site, with another certificate.
    pub(super) fn overridden(site: Option<&Self>, name: &str, with: &PreparedTls) -> Self {
        let without_site = || Self {
            domain: String::new(),
            id: None,
            cert_id: None,
            leaf: None,
            tls: Err(String::new()),
            is_overridden: true,
        };
        Self {
            domain: name.to_owned(),
            leaf: with.leaf.clone(),
            tls: with.tls.clone(),
            is_overridden: true,
            ..site.cloned().unwrap_or_else(without_site)
        }
    }

    /// Returns the element of `GET /edge`.
    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({
            "domain": self.domain,
            "site_id": self.id,
            "cert_id": self.cert_id,
            "fingerprint": self.leaf.as_ref().map(|leaf| &leaf.fingerprint),
            "not_after": self.leaf.as_ref().map(|leaf| iso8601(leaf.not_after)),
            "https": self.tls.is_ok(),
            "problem": self.tls.as_ref().err(),
        });
        if let (true, Value::Object(map)) = (self.is_overridden, &mut value) {
            map.insert("overridden".to_owned(), json!(true));
        }
        value
    }
}

/// A certificate prepared for handshakes.
#[derive(Debug, Clone)]
pub(super) struct PreparedTls {
    leaf: Option<Leaf>,
    tls: Result<Arc<ServerConfig>, String>,
}

impl PreparedTls {
    /// Prepares the certificate of a site.
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        if snapshot.cert_id.is_none() {
            return Self { leaf: None, tls: Err("no certificate is bound".to_owned()) };
        }
        Self::from_pem(&snapshot.cert_pem, &snapshot.key_pem)
    }

    /// Prepares a certificate that must be usable; otherwise returns why it is not.
    pub(super) fn usable(cert_pem: &str, key_pem: &str) -> Result<Self, String> {
        let prepared = Self::from_pem(cert_pem, key_pem);
        prepared.tls.clone()?;
        Ok(prepared)
    }

    fn from_pem(cert_pem: &str, key_pem: &str) -> Self {
        Self { leaf: Leaf::parse(cert_pem).ok(), tls: server_config(cert_pem, key_pem) }
    }
}

fn certified_key(cert_pem: &str, key_pem: &str) -> Result<CertifiedKey, String> {
    let chain = cert::parse_chain(cert_pem)?.into_iter().map(CertificateDer::from).collect();
    let key = ring::sign::any_supported_type(&key::to_rustls(key_pem)?)
        .map_err(|_| "the edge does not support the type of the private key".to_owned())?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) => Ok(certified),
        Err(error) => Err(format!("the certificate and the private key are not a pair: {error}")),
    }
}

/// Returns a TLS configuration that serves this certificate, or why that is impossible.
pub(crate) fn server_config(cert_pem: &str, key_pem: &str) -> Result<Arc<ServerConfig>, String> {
    let certified = certified_key(cert_pem, key_pem)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(FixedCert(Arc::new(certified))));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves one certificate for any name, because the name already selected the site.
#[derive(Debug)]
struct FixedCert(Arc<CertifiedKey>);

impl ResolvesServerCert for FixedCert {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}
