//! A certificate authority for one run: a root, an intermediate, and leaves on demand. Nobody else trusts it.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::clock;
use crate::error::Error;

/// Lifetime of an issued certificate: what public ACME authorities use.
const LIFETIME_DAYS: i64 = 90;

/// A root and an intermediate CA with their keys.
pub struct Authority {
    root: String,
    intermediate: CertifiedIssuer<'static, KeyPair>,
}

/// A leaf with its chain and key, as an ACME client saves them.
pub struct IssuedCert {
    /// PEM of the leaf.
    pub cert: String,
    /// PEM of the intermediate.
    pub chain: String,
    /// PEM of the private key (PKCS#8).
    pub key: String,
}

impl Authority {
    /// Creates a root and an intermediate whose names begin with `name`.
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::create(name).map_err(|error| Error::Authority(error.to_string()))
    }

    /// Returns the PEM of the root, which a client has to trust.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Issues a certificate with a new P-256 key for DNS names or IP addresses.
    pub fn issue(&self, names: &[&str]) -> Result<IssuedCert, Error> {
        self.issue_between(names, [-1, LIFETIME_DAYS])
    }

    /// Issues a certificate that is valid between two times in days from now. Each is rounded down by 6 to 18
    /// hours, so that certificates of one test are alike and what is left in whole days stays the same.
    pub fn issue_between(&self, names: &[&str], days: [i64; 2]) -> Result<IssuedCert, Error> {
        let issued = KeyPair::generate().and_then(|key| self.sign(names, days.map(rounded), &key));
        issued.map_err(|error| Error::Authority(error.to_string()))
    }

    /// Issues a certificate that is valid from now on, so that it is later than any other.
    pub fn issue_now(&self, names: &[&str]) -> Result<IssuedCert, Error> {
        let sign = |key: KeyPair| self.sign(names, [clock::now().as_second(), rounded(LIFETIME_DAYS)], &key);
        KeyPair::generate().and_then(sign).map_err(|error| Error::Authority(error.to_string()))
    }

    /// Issues a certificate that is valid between two times in hours from now.
    pub(crate) fn issue_between_hours(&self, names: &[&str], hours: [i64; 2]) -> Result<IssuedCert, Error> {
        let validity = hours.map(|hours| clock::now().as_second() + hours * 60 * 60);
        let sign = |key: KeyPair| self.sign(names, validity, &key);
        KeyPair::generate().and_then(sign).map_err(|error| Error::Authority(error.to_string()))
    }

    /// Issues a certificate with a PKCS#8 key, like [`Authority::issue_between`].
    pub fn issue_for_key(&self, key_pem: &str, names: &[&str], days: [i64; 2]) -> Result<IssuedCert, Error> {
        let issued = KeyPair::from_pem(key_pem).and_then(|key| self.sign(names, days.map(rounded), &key));
        issued.map_err(|error| Error::Authority(error.to_string()))
    }

    fn create(name: &str) -> Result<Self, rcgen::Error> {
        let root = CertifiedIssuer::self_signed(ca_params(&format!("{name} root")), KeyPair::generate()?)?;
        let intermediate = ca_params(&format!("{name} intermediate"));
        let intermediate = CertifiedIssuer::signed_by(intermediate, KeyPair::generate()?, &root)?;
        Ok(Self { root: unix_lines(&root.pem()), intermediate })
    }

    fn sign(&self, names: &[&str], validity: [i64; 2], key: &KeyPair) -> Result<IssuedCert, rcgen::Error> {
        let leaf = leaf_params(names, validity)?.signed_by(key, &self.intermediate)?;
        Ok(IssuedCert {
            cert: unix_lines(&leaf.pem()),
            chain: unix_lines(&self.intermediate.pem()),
            key: unix_lines(&key.serialize_pem()),
        })
    }
}

impl IssuedCert {
    /// Returns the PEM of the leaf and the intermediate.
    pub fn fullchain(&self) -> String {
        format!("{}{}", self.cert, self.chain)
    }
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The time in so many days, less 6 to 18 hours, in Unix seconds.
fn rounded(days: i64) -> i64 {
    const HOUR: i64 = 60 * 60;
    let now = clock::now().as_second();
    let start = (now + 6 * HOUR) / (12 * HOUR) * (12 * HOUR) - 12 * HOUR;
    start + days * 24 * HOUR
}

/// `validity`: in Unix seconds.
fn leaf_params(names: &[&str], validity: [i64; 2]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    [params.not_before, params.not_after] =
        validity.map(|seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.unsigned_abs()));
    for name in names {
        params.subject_alt_names.push(match name.parse() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) => SanType::DnsName((*name).try_into()?),
        });
    }
    params.distinguished_name = DistinguishedName::new();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// Undoes the CRLF line ends that the PEM writer uses on some platforms.
fn unix_lines(pem: &str) -> String {
    pem.replace("\r\n", "\n")
}
