//! Makes one TLS handshake with one address and captures the certificates that it serves.
//!
//! The signature of the handshake is verified, so only a peer that holds the key of a leaf counts as serving it. The
//! certificate itself is not: neither its chain nor its names.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::ATTEMPT_TIMEOUT;
use super::handshake_error::HandshakeError;
use super::schemes::Schemes;
use crate::clock::Deadline;

/// The result of a handshake. Certificates may be captured even if it fails.
pub(super) struct HandshakeResult {
    /// DER, the leaf first; empty if none arrived.
    pub(super) chain: Vec<Vec<u8>>,
    /// `None` if the handshake succeeded.
    pub(super) error: Option<HandshakeError>,
}

/// Time limit for sending `close_notify`.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Makes handshakes, each on a connection of its own.
pub(crate) struct Handshakes {
    config: ClientConfig,
    /// One permit for each handshake in progress.
    permits: Semaphore,
}

/// Maximum number of handshakes in progress for one command.
pub(crate) const MAX_HANDSHAKES: usize = 32;

impl Handshakes {
    /// Sets up TLS, for at most this many handshakes in progress.
    pub(crate) fn new(max_concurrent: usize) -> Result<Self, Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        // A resumed session transfers no certificate.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config, permits: Semaphore::new(max_concurrent) })
    }

    /// Makes a handshake for `name` as a client that offers `schemes`. The deadline includes the wait for a permit, which
    /// `ATTEMPT_TIMEOUT` does not.
    pub(super) async fn handshake(
        &self,
        address: SocketAddr,
        name: &ServerName<'static>,
        schemes: Schemes,
        deadline: Deadline,
    ) -> HandshakeResult {
        let Ok(_permit) = timeout(deadline.left(), self.permits.acquire()).await else {
            return HandshakeResult { chain: Vec::new(), error: Some(HandshakeError::not_begun()) };
        };
        let limit = deadline.left().min(ATTEMPT_TIMEOUT);
        let algorithms = self.config.crypto_provider().signature_verification_algorithms;
        let verifier = Arc::new(CapturingVerifier { algorithms, schemes, captured: Mutex::default() });
        let mut config = self.config.clone();
        config.dangerous().set_certificate_verifier(verifier.clone());
        let mut is_connected = false;
        let attempt = async {
            let tcp =
                TcpStream::connect(address).await.map_err(|error| HandshakeError::from_connect(&error))?;
            is_connected = true;
            let connecting = TlsConnector::from(Arc::new(config)).connect(name.clone(), tcp);
            let mut tls = connecting.await.map_err(|error| HandshakeError::from_handshake(&error))?;
            // Without `close_notify` some edges log an error.
            let _ = timeout(SHUTDOWN_TIMEOUT, tls.shutdown()).await;
            Ok(())
        };
        let error = match timeout(limit, attempt).await {
            Ok(result) => result.err(),
            Err(_) if is_connected => {
                Some(HandshakeError::timed_out(limit, "accepts connections but does not respond"))
            }
            Err(_) => Some(HandshakeError::timed_out(limit, "does not respond")),
        };
        let chain = std::mem::take(&mut *verifier.captured.lock().unwrap_or_else(PoisonError::into_inner));
        HandshakeResult { chain, error }
    }
}

/// Accepts every certificate and captures it.
#[derive(Debug)]
struct CapturingVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    schemes: Schemes,
    captured: Mutex<Vec<Vec<u8>>>,
}

/// ring cannot verify P-521 signatures. They are accepted unverified; otherwise such a leaf would never count as served.
const NOT_IN_RING: SignatureScheme = SignatureScheme::ECDSA_NISTP521_SHA512;

/// Accepts a signature that ring cannot verify, and verifies others.
fn verify_signature(
    scheme: SignatureScheme,
    verify: impl FnOnce() -> Result<HandshakeSignatureValid, Error>,
) -> Result<HandshakeSignatureValid, Error> {
    if scheme == NOT_IN_RING { Ok(HandshakeSignatureValid::assertion()) } else { verify() }
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
        *self.captured.lock().unwrap_or_else(PoisonError::into_inner) = chain;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(signed.scheme, || verify_tls12_signature(message, leaf, signed, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(signed.scheme, || verify_tls13_signature(message, leaf, signed, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::CertificateError;

    #[test]
    fn edge_has_to_prove_that_it_holds_the_key() {
        let forged = || Err(Error::InvalidCertificate(CertificateError::BadSignature));
        assert!(verify_signature(SignatureScheme::ED25519, forged).is_err());
        assert!(verify_signature(NOT_IN_RING, forged).is_ok());
    }
}
