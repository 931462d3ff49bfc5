//! One TLS handshake with one address, with the signature schemes that decide which of its certificates an edge shows.
//!
//! The signature of the handshake is checked, so that a leaf counts as shown only by who holds its key; whom the
//! certificate belongs to is not.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::text;

/// Signature schemes that a client offers.
pub(super) type Schemes = &'static [SignatureScheme];

use SignatureScheme as S;
pub(super) const ECDSA: Schemes =
    &[S::ECDSA_NISTP256_SHA256, S::ECDSA_NISTP384_SHA384, S::ECDSA_NISTP521_SHA512];
pub(super) const RSA: Schemes = &[
    S::RSA_PSS_SHA256,
    S::RSA_PSS_SHA384,
    S::RSA_PSS_SHA512,
    S::RSA_PKCS1_SHA256,
    S::RSA_PKCS1_SHA384,
    S::RSA_PKCS1_SHA512,
];
pub(super) const ED25519: Schemes = &[S::ED25519];
pub(super) const NOT_ECDSA: Schemes = RSA;
pub(super) const NOT_RSA: Schemes =
    &[S::ECDSA_NISTP256_SHA256, S::ECDSA_NISTP384_SHA384, S::ECDSA_NISTP521_SHA512, S::ED25519];
pub(super) const NOT_ED25519: Schemes = &[
    S::ECDSA_NISTP256_SHA256,
    S::ECDSA_NISTP384_SHA384,
    S::ECDSA_NISTP521_SHA512,
    S::RSA_PSS_SHA256,
    S::RSA_PSS_SHA384,
    S::RSA_PSS_SHA512,
    S::RSA_PKCS1_SHA256,
    S::RSA_PKCS1_SHA384,
    S::RSA_PKCS1_SHA512,
];

/// What came of a handshake: certificates may be shown although it does not succeed.
pub(super) struct HandshakeResult {
    /// DER, the leaf first; empty where none came.
    pub(super) chain: Vec<Vec<u8>>,
    /// `None`: the handshake succeeded.
    pub(super) problem: Option<HandshakeError>,
}

/// Silence for less than this says nothing about an edge.
const ENOUGH: Duration = Duration::from_secs(1);

/// Why a handshake did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandshakeError {
    pub(super) reason: String,
    pub(super) cause: Cause,
}

/// Where the fault lies, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// This machine has no way to addresses of this kind.
    NoRoute,
    /// Nobody answers there.
    Unreachable,
    /// Someone answers and does not show the site.
    Edge,
    /// The connection broke within the handshake.
    Broken,
    /// The time was too short to tell.
    TooLittleTime,
}

impl HandshakeError {
    fn new(cause: Cause, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause }
    }

    /// No answer within so much time.
    fn late(limit: Duration, reason: &str) -> Self {
        let cause = if limit < ENOUGH { Cause::TooLittleTime } else { Cause::Unreachable };
        Self::new(cause, reason)
    }

    /// Whether someone answered and did not want to.
    pub(super) fn is_refusal(&self) -> bool {
        self.cause == Cause::Edge
    }

    /// A handshake without a certificate.
    pub(super) fn bare() -> Self {
        Self::new(Cause::Edge, "shows no certificate")
    }
}

/// Makes handshakes, each on a connection of its own.
pub(super) struct Handshakes {
    base: ClientConfig,
    provider: Arc<CryptoProvider>,
}

impl Handshakes {
    pub(super) fn new() -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let mut base = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        // A resumed session shows no certificate.
        base.resumption = Resumption::disabled();
        base.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { base, provider })
    }

    /// Connects, and takes what is shown for a name within `limit`.
    pub(super) async fn handshake(
        &self,
        address: SocketAddr,
        name: &ServerName<'static>,
        schemes: Schemes,
        limit: Duration,
    ) -> HandshakeResult {
        let witness =
            Arc::new(CapturingVerifier { provider: self.provider.clone(), schemes, shown: Mutex::default() });
        let mut config = self.base.clone();
        config.dangerous().set_certificate_verifier(witness.clone());
        let mut connected = false;
        let attempt = async {
            let tcp = TcpStream::connect(address).await.map_err(|error| unreachable(&error))?;
            connected = true;
            let mut tls = TlsConnector::from(Arc::new(config))
                .connect(name.clone(), tcp)
                .await
                .map_err(|error| failed(&error))?;
            // A goodbye, so that the edge does not log an error; it proves nothing.
            let _ = timeout(Duration::from_millis(100), tls.shutdown()).await;
            Ok(())
        };
        let problem = match timeout(limit, attempt).await {
            Ok(result) => result.err(),
            Err(_) if connected => Some(HandshakeError::late(limit, "accepts connections and says nothing")),
            Err(_) => Some(HandshakeError::late(limit, "does not answer")),
        };
        let mut shown = witness.shown.lock().unwrap_or_else(PoisonError::into_inner);
        HandshakeResult { chain: std::mem::take(&mut shown), problem }
    }
}

fn unreachable(error: &io::Error) -> HandshakeError {
    use io::ErrorKind as K;
    match error.kind() {
        K::ConnectionRefused => HandshakeError::new(Cause::Unreachable, "refuses connections"),
        K::NetworkUnreachable | K::AddrNotAvailable => {
            HandshakeError::new(Cause::NoRoute, "cannot be reached from this machine: it has no route there")
        }
        _ => HandshakeError::new(Cause::Unreachable, format!("cannot be reached: {}", words(error))),
    }
}

/// A handshake that began and did not succeed.
fn failed(error: &io::Error) -> HandshakeError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let reason = match tls {
        Some(Error::AlertReceived(alert)) => {
            format!("refuses the handshake for this name (TLS alert {})", alert_name(u8::from(*alert)))
        }
        Some(Error::InvalidMessage(_)) => "does not speak TLS".into(),
        Some(Error::InvalidCertificate(_)) => {
            "signs the handshake with another key than its certificate's".into()
        }
        Some(_) => "does not keep to the rules of TLS in the handshake".into(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "ends the connection within the handshake".into()
        }
        None => {
            return HandshakeError::new(Cause::Broken, format!("breaks the handshake off: {}", words(error)));
        }
    };
    HandshakeError::new(Cause::Edge, reason)
}

/// The system's words without its error number.
fn words(error: &io::Error) -> String {
    text::sanitize(error.to_string().split(" (os error").next().unwrap_or_default())
}

/// The alerts that an edge has reason to send, as RFC 8446, section 6.2, calls them; others by number.
fn alert_name(number: u8) -> String {
    let name = match number {
        40 => "handshake_failure",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        112 => "unrecognized_name",
        other => return other.to_string(),
    };
    name.into()
}

/// Takes every certificate and remembers it.
#[derive(Debug)]
struct CapturingVerifier {
    provider: Arc<CryptoProvider>,
    schemes: Schemes,
    shown: Mutex<Vec<Vec<u8>>>,
}

/// How a version of TLS checks the signature of a handshake.
type Verify = fn(
    &[u8],
    &CertificateDer<'_>,
    &DigitallySignedStruct,
    &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error>;

impl CapturingVerifier {
    fn verify(
        &self,
        verify: Verify,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if signed.scheme == UNKNOWN_TO_RING {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for CapturingVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = std::iter::once(leaf).chain(issuers).map(|certificate| certificate.to_vec()).collect();
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = chain;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(verify_tls12_signature, message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(verify_tls13_signature, message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.to_vec()
    }
}

/// ring does not know this curve; who shows such a leaf is believed to hold its key, rather than never served.
const UNKNOWN_TO_RING: SignatureScheme = SignatureScheme::ECDSA_NISTP521_SHA512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_names_or_numbers() {
        assert_eq!([112, 40, 255].map(alert_name), ["unrecognized_name", "handshake_failure", "255"]);
    }

    #[test]
    fn what_is_not_offered_with_a_type_is_offered_without_it() {
        for (own, others) in [(ECDSA, NOT_ECDSA), (RSA, NOT_RSA), (ED25519, NOT_ED25519)] {
            assert!(own.iter().all(|scheme| !others.contains(scheme)));
        }
    }
}
