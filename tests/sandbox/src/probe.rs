//! What a visitor of the edge is shown: a TLS handshake that trusts nobody and everybody. The signature is
//! checked, so that a leaf counts as served only by who holds its key.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use crate::cert::{self, sha256_hex};
use crate::clock::iso;

/// A server that does not answer within this is broken; nothing waits for it in normal runs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the handshake showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    /// Lower-case hexadecimal SHA-256 of the leaf's DER.
    pub fingerprint: String,
    /// End of the leaf's validity.
    pub not_after: String,
    /// Certificates that came, the leaf included.
    pub chain_length: usize,
    /// Protocol that ALPN chose.
    pub alpn: Option<String>,
}

/// Asks the edge for a name as a browser would. A refusal is an error that names the alert.
pub fn probe(edge: &str, name: &str) -> io::Result<ProbeResult> {
    probe_with_alpn(edge, name, &["h2", "http/1.1"])
}

/// The same, offering these protocols.
pub fn probe_with_alpn(edge: &str, name: &str, alpn: &[&str]) -> io::Result<ProbeResult> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::new(config), server).map_err(io::Error::other)?;
    let mut tcp = TcpStream::connect(edge)?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut tcp)?;
    }
    seen(&connection)
}

fn seen(connection: &ClientConnection) -> io::Result<ProbeResult> {
    let chain = connection.peer_certificates().unwrap_or_default();
    let leaf = chain.first().ok_or_else(|| io::Error::other("no certificate came"))?;
    let pem = pem::encode(&pem::Pem::new("CERTIFICATE", leaf.to_vec()));
    Ok(ProbeResult {
        fingerprint: sha256_hex(leaf),
        not_after: cert::read(&pem).map(|leaf| iso(leaf.not_after)).map_err(io::Error::other)?,
        chain_length: chain.len(),
        alpn: connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
    })
}

#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
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
