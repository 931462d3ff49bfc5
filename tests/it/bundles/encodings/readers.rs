//! Four readers of private keys: OpenSSL, Python's cryptography, ring, and Go's rules.

use std::fs;
use std::process::Command;

use pkcs8::der::Decode as _;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;

use super::{PKCS1, SEC1, go_rules};
use crate::harness::{PYTHON, der, require_python_module};

/// Name, PEM label and DER.
type Key = (String, &'static str, Vec<u8>);

/// Returns the name of each key, and the readers that refuse it.
pub(super) fn refusals(keys: &[Key]) -> Vec<(String, Vec<&'static str>)> {
    let home = TempDir::new().unwrap();
    let files = keys.iter().enumerate().map(|(number, (_, label, der))| {
        let file = home.path().join(format!("{number}.pem"));
        fs::write(&file, der::pem(label, der)).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let files: Vec<String> = files.collect();
    let python = accepted_by_python(&files);
    let by_key = keys.iter().zip(&files).zip(python).map(|(((name, label, der), file), python)| {
        let readers = [
            ("OpenSSL", is_accepted_by_openssl(file)),
            ("Python", python),
            ("ring", is_accepted_by_ring(label, der)),
            ("Go", go_rules::accepts(label, der)),
        ];
        let refusing = readers.into_iter().filter(|(_, accepts)| !accepts).map(|(reader, _)| reader);
        (name.clone(), refusing.collect())
    });
    by_key.collect()
}

fn is_accepted_by_openssl(file: &str) -> bool {
    let output = Command::new("openssl").args(["pkey", "-check", "-noout", "-in", file]).output();
    let output = output.expect("cannot run here: openssl is not installed (Debian package openssl)");
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Key is valid")
}

/// Reads all files in one process.
fn accepted_by_python(files: &[String]) -> Vec<bool> {
    let script = "
import sys
from cryptography.hazmat.primitives.serialization import load_pem_private_key
for name in sys.argv[1:]:
    try:
        load_pem_private_key(open(name, 'rb').read(), None).public_key()
        print('True')
    except Exception:
        print('False')
";
    require_python_module("cryptography.hazmat", "python3-cryptography");
    let output = Command::new(PYTHON).args(["-c", script]).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line == "True").collect()
}

/// ring, as rustls calls it. ring has no P-521; in its place stand the crates `sec1` and `p521`.
fn is_accepted_by_ring(label: &str, der: &[u8]) -> bool {
    let key = match label {
        SEC1 => PrivateKeyDer::Sec1(der.to_vec().into()),
        PKCS1 => PrivateKeyDer::Pkcs1(der.to_vec().into()),
        _ => PrivateKeyDer::Pkcs8(der.to_vec().into()),
    };
    any_supported_type(&key).is_ok() || is_p521(label, der).unwrap_or(false)
}

fn is_p521(label: &str, der: &[u8]) -> Option<bool> {
    let mut curve = None;
    let mut inner = der;
    if label != SEC1 {
        let info = pkcs8::PrivateKeyInfoRef::from_der(der).ok()?;
        curve = Some(info.algorithm.parameters_oid().ok()?);
        inner = info.private_key.as_bytes();
        // Like ring.
        if info.public_key.is_some() {
            return None;
        }
    }
    let key = sec1::EcPrivateKey::from_der(inner).ok()?;
    let curve = curve.or(key.parameters.and_then(sec1::EcParameters::named_curve))?;
    let scalar = p521::SecretKey::from_bytes(key.private_key.try_into().ok()?).ok()?;
    let point = p256::elliptic_curve::sec1::ToSec1Point::to_sec1_point(&scalar.public_key(), false);
    Some(curve.to_string() == "1.3.132.0.35" && key.public_key? == point.as_bytes())
}
