//! Fuzz targets for everything that parses untrusted input.
//!
//! Each function must return for every input; most also assert an invariant of what they parsed.

use edgecert::bundle::{Bundle, Files};
use edgecert::check::{self, CheckContext, Status};
use edgecert::key::PrivateKey;
use edgecert::names::Domain;
use edgecert::pem::{self, Block, KeyFormat};
use edgecert::{api, cert, secret, text};
use time::macros::datetime;

/// A PEM file with certificates and a key, through all local checks.
pub fn pem(file: &[u8]) {
    let files = Files { cert: "cert".into(), issuers: None, key: Some("key".into()) };
    let bundle = Bundle::from_bytes(&files, file, None, Some(file));
    let domains: Vec<Domain> =
        ["a.example", "*.a.example"].iter().filter_map(|name| name.parse().ok()).collect();
    let context = CheckContext {
        domains: &domains,
        at: datetime!(2026-06-01 00:00 UTC),
        untrusted: Status::Warn,
        path: None,
        directory: None,
    };
    let findings = check::run(&bundle, &context);
    if let Some(vetted) = check::vet(&bundle, &findings) {
        // An uploaded bundle parses back to the same leaf and key and needs no repair.
        let cert_pem = vetted.chain().pem();
        let key_pem = vetted.key().pem();
        let uploaded =
            Bundle::from_bytes(&files, cert_pem.as_bytes(), None, Some(key_pem.expose().as_bytes()));
        let chain = uploaded.chain.ok().expect("the uploaded chain parses");
        assert!(chain.leaf.der == vetted.chain().leaf.der && chain.repairs.is_empty());
        let key = uploaded.key.and_then(Result::ok).expect("the uploaded key parses");
        assert!(key.public_key == chain.leaf.public_key);
    }
}

/// The DER encoding of a certificate.
pub fn certificate(der: &[u8]) {
    if let Err(error) = cert::Certificate::from_der_strict(der) {
        assert!(!error.to_string().chars().any(char::is_control), "errors are sanitized");
    }
    let Some(certificate) = cert::Certificate::from_der(der) else { return };
    let domain: Domain = "a.example".parse().ok().expect("a domain");
    let _ = domain.is_covered_by_any(certificate.dns_names());
    for text in certificate.names().iter().chain([&certificate.label(), &certificate.issuer.text]) {
        assert!(!text.chars().any(char::is_control), "names are sanitized");
    }
    let read = pem::parse(certificate.pem().as_bytes());
    assert!(matches!(read.blocks.as_slice(), [Block::Certificate(bytes)] if *bytes == certificate.der));
}

/// The DER encoding of a private key; the first byte selects the format.
pub fn key(input: &[u8]) {
    let Some((format, der)) = input.split_first() else { return };
    let format = match format % 3 {
        0 => KeyFormat::Pkcs1,
        1 => KeyFormat::Sec1,
        _ => KeyFormat::Pkcs8,
    };
    if let Ok(key) = PrivateKey::from_der(format, der) {
        let read = pem::parse(key.pem().expose().as_bytes());
        let [Block::Key(read_format, bytes)] = read.blocks.as_slice() else { panic!("not one key") };
        assert_eq!(*read_format, format);
        assert_eq!(key.is_repaired, bytes.as_slice() != der);
        let again = PrivateKey::from_der(format, bytes).expect("a repaired key is a key");
        assert!(!again.is_repaired, "a repaired key needs no repair");
    }
}

/// A response body of the service.
pub fn response(body: &[u8]) {
    let text = String::from_utf8_lossy(body);
    assert!(!text::sanitize(&text).chars().any(char::is_control));
    let mut redactor = secret::Redactor::default();
    redactor.hide("canary-0123456789");
    assert!(!redactor.clean(&text).contains("canary-0123456789"));
    // The input decides how it arrives.
    let chunk = body.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    assert!(api::parse_response(body, 1 + chunk % 64), "lists depend on the chunks");
    let Ok(mut json) = serde_json::from_str::<serde_json::Value>(&text) else { return };
    redactor.clean_json(&mut json);
    assert!(!json.to_string().contains("canary-0123456789"));
}
