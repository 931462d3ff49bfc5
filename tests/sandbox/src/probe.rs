//! A TLS handshake with the edge that accepts any certificate, to see which one is served. The signature is
//! verified, so a server without the private key cannot pass.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use crate::cert::Leaf;

/// Read timeout, far above what a handshake on loopback takes.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What a handshake showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    /// Lower-case hexadecimal SHA-256 of the leaf's DER.
    pub fingerprint: String,
    /// Number of certificates sent, including the leaf.
    pub chain_length: usize,
}

/// Does a handshake with the edge for `name`. If the edge refuses, the error names the TLS alert.
pub fn probe(edge: &str, name: &str) -> io::Result<ProbeResult> {
    let config = client_config().map_err(io::Error::other)?;
    let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::new(config), server).map_err(io::Error::other)?;
    let mut tcp = TcpStream::connect(edge)?;
    tcp.set_read_timeout(Some(READ_TIMEOUT))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut tcp)?;
    }
    result(&connection)
}

fn client_config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyChain(provider)))
        .with_no_client_auth();
    Ok(config)
}

fn result(connection: &ClientConnection) -> io::Result<ProbeResult> {
    let chain = connection.peer_certificates().unwrap_or_default();
    let leaf = chain.first().ok_or_else(|| io::Error::other("the server sent no certificate"))?;
    let pem = pem::encode(&pem::Pem::new("CERTIFICATE", leaf.to_vec()));
    let leaf = Leaf::parse(&pem).map_err(io::Error::other)?;
    Ok(ProbeResult { fingerprint: leaf.fingerprint, chain_length: chain.len() })
}

/// Accepts any chain but verifies handshake signatures.
#[derive(Debug)]
struct AcceptAnyChain(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyChain {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
