//! A certificate authority like those of most public ACME servers: the intermediate has a P-384 key, leaves have P-256
//! keys.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384, SanType,
};
use sha2::{Digest as _, Sha256};
use time::{Duration, OffsetDateTime, Time};

use crate::state::hex;

/// A root and an intermediate CA.
pub struct Authority {
    root: CertifiedIssuer<'static, KeyPair>,
    intermediate: CertifiedIssuer<'static, KeyPair>,
    /// Midnight of yesterday.
    not_before: OffsetDateTime,
}

/// A leaf with its chain and key, as an ACME client saves them.
pub struct IssuedCert {
    /// PEM of the leaf.
    pub cert: String,
    /// PEM of its issuer, if that is not the root.
    pub chain: String,
    /// PEM of the private key (PKCS#8).
    pub key: String,
    /// SHA-256 of the leaf, in hex.
    pub fingerprint: String,
    /// Start of its validity.
    pub not_before: OffsetDateTime,
    /// End of its validity.
    pub not_after: OffsetDateTime,
}

const LIFETIME: Duration = Duration::days(90);

impl Authority {
    /// Creates the CAs, whose names begin with `name`.
    #[expect(clippy::disallowed_methods, reason = "certificates must be valid when they are deployed")]
    pub fn new(name: &str) -> Result<Self> {
        let root = CertifiedIssuer::self_signed(ca_params(&format!("{name} root")), KeyPair::generate()?)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
        let intermediate =
            CertifiedIssuer::signed_by(ca_params(&format!("{name} intermediate")), key, &root)?;
        let not_before = (OffsetDateTime::now_utc() - Duration::DAY).replace_time(Time::MIDNIGHT);
        Ok(Self { root, intermediate, not_before })
    }

    /// PEM of the root.
    pub fn root(&self) -> String {
        self.root.pem()
    }

    /// Issues a certificate with a new P-256 key.
    pub fn issue(&self, names: &[String]) -> Result<IssuedCert> {
        self.sign(names, &KeyPair::generate()?, &self.intermediate, Duration::ZERO)
    }

    /// Issues a renewal, which is valid from an hour later on.
    pub fn renew(&self, names: &[String]) -> Result<IssuedCert> {
        self.sign(names, &KeyPair::generate()?, &self.intermediate, Duration::HOUR)
    }

    /// Issues a certificate for a PKCS#8 key.
    pub fn issue_for_key(&self, key_pem: &str, names: &[String]) -> Result<IssuedCert> {
        self.sign(names, &KeyPair::from_pem(key_pem)?, &self.intermediate, Duration::ZERO)
    }

    /// Issues the certificate of a server, directly by the root.
    pub fn issue_for_server(&self, ip_address: &str) -> Result<IssuedCert> {
        let names = [ip_address.to_owned()];
        let issued = self.sign(&names, &KeyPair::generate()?, &self.root, Duration::ZERO)?;
        Ok(IssuedCert { chain: String::new(), ..issued })
    }

    fn sign(
        &self,
        names: &[String],
        key: &KeyPair,
        issuer: &CertifiedIssuer<'static, KeyPair>,
        later: Duration,
    ) -> Result<IssuedCert> {
        let mut params = CertificateParams::default();
        params.not_before = self.not_before + later;
        params.not_after = self.not_before + later + LIFETIME;
        for name in names {
            params.subject_alt_names.push(match name.parse() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        params.distinguished_name = DistinguishedName::new();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(key, issuer)?;
        Ok(IssuedCert {
            cert: leaf.pem(),
            chain: issuer.pem(),
            key: key.serialize_pem(),
            fingerprint: hex(&Sha256::digest(leaf.der())),
            not_before: params.not_before,
            not_after: params.not_after,
        })
    }
}

impl IssuedCert {
    /// PEM of the leaf and its issuer.
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
