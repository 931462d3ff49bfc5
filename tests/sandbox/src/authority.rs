//! A certificate authority for one run: a root, an intermediate under it, and whatever leaves are asked for.
//! Nothing that it signs is worth anything elsewhere.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::clock;
use crate::error::Error;

/// Root and intermediate with their keys.
pub struct Authority {
    root: String,
    intermediate: CertifiedIssuer<'static, KeyPair>,
}

/// A leaf with its chain and key, as an ACME client would have them on disk.
pub struct IssuedCert {
    /// The leaf alone.
    pub cert: String,
    /// The intermediate.
    pub chain: String,
    /// PKCS#8.
    pub key: String,
    /// Leaf and intermediate in DER.
    pub(crate) der: Vec<CertificateDer<'static>>,
}

impl IssuedCert {
    /// Leaf and intermediate.
    pub fn fullchain(&self) -> String {
        format!("{}{}", self.cert, self.chain)
    }
}

impl Authority {
    /// Makes a root and an intermediate, both named after `name`.
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::make(name).map_err(|error| Error::Authority(error.to_string()))
    }

    /// The root's certificate, what a client has to trust.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Signs a certificate with a fresh P-256 key for names or IP addresses.
    pub fn issue(&self, names: &[&str]) -> Result<IssuedCert, Error> {
        self.sign(names).map_err(|error| Error::Authority(error.to_string()))
    }

    fn make(name: &str) -> Result<Self, rcgen::Error> {
        let root = CertifiedIssuer::self_signed(ca_params(&format!("{name} root")), KeyPair::generate()?)?;
        let intermediate = ca_params(&format!("{name} intermediate"));
        let intermediate = CertifiedIssuer::signed_by(intermediate, KeyPair::generate()?, &root)?;
        Ok(Self { root: lf(&root.pem()), intermediate })
    }

    fn sign(&self, names: &[&str]) -> Result<IssuedCert, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        let midnight = |days: i64| {
            let day = clock::now().saturating_add(SignedDuration::from_hours(24 * days));
            let date = day.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC).date();
            date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
        };
        params.not_before = midnight(-1);
        params.not_after = midnight(VALID_DAYS);
        for name in names {
            params.subject_alt_names.push(match name.parse() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName((*name).try_into()?),
            });
        }
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &self.intermediate)?;
        Ok(IssuedCert {
            cert: lf(&leaf.pem()),
            chain: lf(&self.intermediate.pem()),
            key: lf(&key.serialize_pem()),
            der: vec![leaf.der().clone(), self.intermediate.der().clone()],
        })
    }
}

/// As long as public authorities sign for.
const VALID_DAYS: i64 = 90;

/// A TLS configuration for one certificate.
pub(crate) fn server_config(issued: &IssuedCert) -> Result<rustls::ServerConfig, Error> {
    let wrong = |reason: String| Error::Authority(reason);
    let key: PrivateKeyDer<'static> = crate::key::for_tls(&issued.key).map_err(wrong)?;
    rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(issued.der.clone(), key))
        .map_err(|error| wrong(error.to_string()))
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The PEM writer may use the platform's line ends.
fn lf(pem: &str) -> String {
    pem.replace("\r\n", "\n")
}
