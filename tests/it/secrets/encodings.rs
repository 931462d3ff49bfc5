//! A service that returns the API key or the private key in another encoding, in errors and in listings. Which
//! encodings are recognized is tested in `secret`, that of each key type in `key`.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::{PATHS, calls};
use crate::harness::{
    API_KEY, Fault, Lineage, Output, P256, RSA, account, der, edgecert, fresh, hex, openssl, record, sandbox,
    sandbox_and_lineage,
};

/// Length of the pieces that must not appear. They are longer than what is recognized, 12 bytes.
const PIECE: usize = 16;

fn escaped(text: &str, escape: fn(u8) -> String) -> String {
    text.bytes().map(escape).collect()
}

/// Asserts that no piece of the text is in the output or the state.
#[track_caller]
fn assert_none(output: &Output, text: &str) {
    for shown in [&output.stdout, &output.stderr, &output.state] {
        for piece in text.as_bytes().windows(PIECE).step_by(PIECE) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!shown.contains(piece), "{piece} of {text} in {shown}");
        }
    }
}

#[test]
fn encoded_api_keys_are_redacted() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let base64 = STANDARD.encode(format!("Bearer {API_KEY}"));
    for text in [hex(API_KEY.as_bytes()), escaped(&base64, |byte| format!("&#{byte};"))] {
        let service = sandbox(&["a.example"]);
        for path in PATHS {
            service.add_fault(Fault::status(path, 400).body(format!("bad key <{text}>")).times(9));
        }
        let output = fresh(&service, &lineage).args(["-vv", "--json"]).run();
        output.says("[withheld: it repeats a secret]");
        assert_none(&output, &text);
    }
}

/// The secret number of an EC key, and the private exponent of an RSA key.
#[test]
fn encoded_private_keys_are_redacted() {
    let kinds: [(&[&str], &[&str], usize); 3] = [
        (&P256, &["ec"], 1),
        (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], &["ec"], 1),
        (&RSA, &["rsa", "-traditional"], 3),
    ];
    for (generate, traditional, secret) in kinds {
        let lineage = Lineage::from_openssl(generate);
        let files = ["-in", "privkey.pem", "-outform", "DER", "-out", "key.der"];
        openssl(lineage.path(), &[traditional, &files].concat());
        let key = fs::read(lineage.file("key.der")).unwrap();
        let number = der::content(der::elements(&key)[secret]);
        let wrapped = STANDARD
            .encode(number)
            .as_bytes()
            .chunks(20)
            .fold(String::new(), |text, line| text + std::str::from_utf8(line).unwrap() + "\r\n");
        for text in [URL_SAFE_NO_PAD.encode(number), wrapped] {
            let service = sandbox(&["a.example"]);
            service.add_fault(Fault::status("POST /api/certs/upload", 400).body(&*text).times(9));
            let hook = fresh(&service, &lineage);
            let output = hook.args(["-vv", "--json", "--allow-untrusted"]).exits_with(69);
            output.says("(400)");
            text.split("\r\n").filter(|line| line.len() >= PIECE).for_each(|line| assert_none(&output, line));
        }
    }
}

#[test]
fn listed_secrets_are_redacted_encoded() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let text = escaped(&STANDARD.encode(API_KEY), |byte| format!("\\u{byte:04x}"));
    let site = json!({
        "id": 10, "domain": "a.example", "cert_id": null, "config_synced": true, "enabled": false,
        "cname": text, "disabled_reason": format!("because of {text}"), "remark": {&text: [text]},
    });
    let service = sandbox(&["a.example"]);
    let sites = json!({"sites": [site], "total": 1});
    service.add_fault(Fault::status("GET /api/me/sites", 200).body(sites).times(99));
    for hook in calls(&service, &lineage) {
        assert_none(&hook.run(), &text);
    }
    for arguments in [["sites", "list", "--json"], ["sites", "list", "-vv"]] {
        assert_none(&edgecert().against(&service).args(arguments).succeeds(), &text);
    }
}

#[test]
fn state_keeps_little_of_the_service() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let long = |word: &str| format!("{word} ").repeat(2_000);
    let site = json!({
        "id": 10, "domain": "a.example", "cert_id": 5, "config_synced": true, "enabled": false,
        "cname": "x".repeat(10_000), "disabled_reason": long("reason"),
    });
    let sites = json!({"sites": [site], "total": 1});
    let fields: Vec<String> = (0..9).map(|_| long("field")).collect();
    let rows = [
        (Fault::status("POST /api/certs/upload", 400).body(long("refusal")), "(400): refusal refusal"),
        (Fault::status("GET /api/me/sites", 403).body(long("denial")), "(403): denial denial"),
        (Fault::status("GET /api/me/sites", 200).body(sites), "the site is disabled (reason reason"),
        (
            Fault::status("POST /api/sites/*/update", 200)
                .body(json!({"ok": true, "ignored_fields": fields})),
            "the service ignored field field",
        ),
    ];
    for (fault, kept) in rows {
        // The upload replaces the record, to which the site has yet to be bound.
        let service = account(&[(10, "a.example", None)], &[record(5, "a.example", "upload")]);
        service.add_fault(fault.times(99));
        let output = fresh(&service, &lineage).args(["--wait", "0"]).run();
        assert!(output.state.contains(kept), "no {kept:?} in {}", output.state);
        for word in ["refusal", "denial", "reason", "field ", "xxxxx"] {
            let kept_bytes = output.state.matches(word).count() * word.len();
            assert!(kept_bytes <= 400, "{kept_bytes} bytes of {word} in {}", output.state);
        }
    }
}

#[test]
fn downloaded_certificates_are_shown_whole() {
    // Names of different lengths move the public key, which the key file has too, to every place in base64.
    for domain in ["a.example", "ab.example", "abc.example"] {
        let (service, lineage) = sandbox_and_lineage(&[domain]);
        let (cert, key) = (lineage.read("fullchain.pem"), lineage.read("privkey.pem"));
        let id = service.upload_as_other_client(domain, &cert, &key).to_string();
        let hook = edgecert().against(&service).args(["certs", "download", &id, "--json", "--out"]);
        let output = hook.args([lineage.path()]).succeeds();
        assert_eq!(output.json()["cert"]["cert_pem"], cert, "{domain}");
        let secret = key.lines().nth(2).unwrap();
        assert!(!output.stdout.contains(secret), "{domain}");
    }
}
