//! A service that returns the API key or the private key in another encoding, in errors and in listings.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use edgecert::key::PrivateKey;
use edgecert::pem::{self, Block};
use edgecert::secret::Redactor;
use serde_json::json;

use super::{PATHS, calls};
use crate::harness::der;
use crate::harness::{
    API_KEY, Fault, Lineage, Options, Output, edgecert, hex, openssl, record, sandbox, sandbox_with, world,
};

/// Length of the pieces that must not appear. They are longer than what is recognized, 12 bytes.
const PIECE: usize = 16;

/// Ways to write a text so that its reader gets it back.
fn escaped(text: &str) -> Vec<String> {
    let each = |escape: fn(u8) -> String| text.bytes().map(escape).collect::<String>();
    vec![
        text.to_owned(),
        text.to_uppercase(),
        text.to_lowercase(),
        each(|byte| format!("%{byte:02X}")),
        each(|byte| format!("&#{byte};")),
        each(|byte| format!("&#x{byte:x};")),
        each(|byte| format!("\\u{byte:04x}")),
        text.replace('+', "%2B").replace('/', "%2f").replace('=', "%3D"),
        text.replace('+', "&plus;").replace('/', "\\/"),
    ]
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.as_bytes().windows(PIECE.min(text.len())).step_by(PIECE);
    pieces.map(|piece| std::str::from_utf8(piece).unwrap())
}

/// Asserts that no piece of the text is in the output or the state.
#[track_caller]
fn assert_none(output: &Output, text: &str) {
    for shown in [&output.stdout, &output.stderr, &output.state] {
        for piece in pieces(text) {
            assert!(!shown.contains(piece), "{piece} of {text} in {shown}");
        }
    }
}

/// Removes the API key and the lineage's private key from a response to an upload, as a run does.
fn cleaned(lineage: &Lineage, response: &str) -> String {
    let mut redactor = Redactor::default();
    redactor.hide(API_KEY);
    let key = lineage.read("privkey.pem");
    let Some(Block::Key(format, der)) = pem::parse(key.as_bytes()).blocks.pop() else { panic!("{key}") };
    let key = PrivateKey::from_der(format, &der).unwrap();
    key.hide_in(&mut redactor);
    redactor.clean(response)
}

/// Asserts that no piece of the secret text in a response is left.
#[track_caller]
fn assert_removed(lineage: &Lineage, response: &str, text: &str) {
    let cleaned = cleaned(lineage, response);
    assert_ne!(cleaned, response);
    for piece in pieces(text) {
        assert!(!cleaned.contains(piece), "{piece} of {text} in {cleaned}");
    }
}

/// A run in which the service refuses the upload with this message.
fn run_with(lineage: &Lineage, message: &str) -> Output {
    let service = sandbox(&["a.example"]);
    service.add_fault(Fault::status("POST /api/certs/upload", 400).body(message).times(9));
    let hook = edgecert().called_by_certbot(lineage).against(&service);
    let output = hook.args(["-vv", "--json", "--allow-untrusted"]).exits_with(69);
    assert!(output.stderr.contains("(400)"), "{}", output.stderr);
    output
}

/// The part of a base64 text that encodes these bytes.
fn base64_of(part: &[u8], whole: &[u8]) -> String {
    let start = whole.windows(part.len()).position(|bytes| bytes == part).unwrap();
    STANDARD.encode(whole)[(8 * start).div_ceil(6)..8 * (start + part.len()) / 6].to_owned()
}

#[test]
fn encoded_api_keys_are_redacted() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let (key, bearer) = (API_KEY.as_bytes(), format!("Bearer {API_KEY}"));
    let encoded = [
        API_KEY.to_owned(),
        STANDARD.encode(key),
        STANDARD_NO_PAD.encode(key),
        URL_SAFE_NO_PAD.encode(key),
        hex(key),
        base64_of(key, bearer.as_bytes()),
    ];
    for text in encoded.iter().flat_map(|text| escaped(text)) {
        assert_removed(&lineage, &format!("bad key <{text}>"), &text);
    }
    let text = escaped(&encoded[5]).remove(4);
    let service = sandbox(&["a.example"]);
    for path in PATHS {
        service.add_fault(Fault::status(path, 400).body(format!("bad key <{text}>")).times(9));
    }
    let output = edgecert().called_by_certbot(&lineage).against(&service).args(["-vv", "--json"]).run();
    assert!(output.stderr.contains("[withheld: it repeats a secret]"), "{text}: {}", output.stderr);
    assert_none(&output, &text);
}

/// Returns the secret parts of the lineage's key, and its DER in every format.
fn secrets_and_formats(lineage: &Lineage, traditional: &[&str]) -> (Vec<Vec<u8>>, [Vec<u8>; 2]) {
    let files = ["-in", "privkey.pem", "-outform", "DER", "-out"];
    openssl(lineage.path(), &[traditional, &files, &["traditional.der"]].concat());
    openssl(lineage.path(), &[&["pkcs8", "-topk8", "-nocrypt"], &files[..], &["pkcs8.der"]].concat());
    let formats = ["traditional.der", "pkcs8.der"].map(|name| fs::read(lineage.file(name)).unwrap());
    let numbers = der::elements(&formats[0]).into_iter().map(|number| der::content(number).to_vec());
    let secrets =
        if traditional[0] == "ec" { numbers.skip(1).take(1).collect() } else { numbers.skip(3).collect() };
    (secrets, formats)
}

/// Texts that hold secret parts of the key and nothing else: of PEM in another format, of JSON Web Keys, of dumps.
fn encoded_keys(lineage: &Lineage, traditional: &[&str]) -> Vec<String> {
    let (secrets, formats) = secrets_and_formats(lineage, traditional);
    let mut texts = Vec::new();
    for secret in &secrets {
        texts.extend(formats.iter().map(|format| base64_of(secret, format)));
        texts.push(STANDARD.encode(secret));
        texts.push(URL_SAFE_NO_PAD.encode(secret));
        texts.push(hex(secret));
    }
    let key = lineage.read("privkey.pem");
    // Before its first quarter ends, the secret part of every key has begun.
    let whole_file = STANDARD.encode(&key);
    texts.push(whole_file[whole_file.len() / 4..].to_owned());
    texts
}

#[test]
fn encoded_private_keys_are_redacted() {
    let kinds: [(&[&str], &[&str]); 3] = [
        (&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], &["ec"]),
        (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], &["ec"]),
        (&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], &["rsa", "-traditional"]),
    ];
    for (generate, traditional) in kinds {
        let lineage = Lineage::from_openssl(generate, &["-days", "20"]);
        for text in encoded_keys(&lineage, traditional) {
            // A redacted error shows its first lines.
            let text: String = text.chars().take(60).collect();
            for text in escaped(&text) {
                assert_removed(&lineage, &format!("bad: {text}"), &text);
            }
        }
        let text = encoded_keys(&lineage, traditional).remove(0);
        let text: String = text.chars().take(60).collect();
        assert_none(&run_with(&lineage, &format!("bad: {text}")), &text);
    }
}

#[test]
fn wrapped_keys_are_redacted() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let (secrets, formats) = secrets_and_formats(&lineage, &["ec"]);
    for columns in [8, 20, 64, 76] {
        for format in &formats {
            let wrap = |text: &str, columns: usize, end: &str| {
                let lines = text.as_bytes().chunks(columns).map(|line| std::str::from_utf8(line).unwrap());
                lines.collect::<Vec<_>>().join(end)
            };
            let secret = base64_of(&secrets[0], format);
            let bodies = [
                wrap(&secret, columns, "\n"),
                wrap(&secret, columns, "\\r\\n"),
                wrap(&hex(&secrets[0]), 2, ":"),
                wrap(&hex(&secrets[0]), columns, "\n    "),
            ];
            for body in bodies {
                let cleaned = cleaned(&lineage, &body);
                for line in body.split_whitespace().flat_map(|line| line.split("\\r\\n")) {
                    assert!(line.len() < 8 || !cleaned.contains(line), "{line} of {body} in {cleaned}");
                }
            }
        }
    }
    let lines: Vec<String> = STANDARD
        .encode(&secrets[0])
        .as_bytes()
        .chunks(20)
        .map(|line| String::from_utf8_lossy(line).into())
        .collect();
    let output = run_with(&lineage, &lines.join("\r\n"));
    assert!(lines.iter().all(|line| !output.stderr.contains(line)), "{}", output.stderr);
}

#[test]
fn listed_secrets_are_redacted_encoded() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let texts = [STANDARD.encode(API_KEY), hex(API_KEY.as_bytes()), API_KEY.to_uppercase()];
    let site = |text: &str| {
        json!({
            "id": 10, "domain": "a.example", "cert_id": null, "config_synced": true, "enabled": false,
            "cname": text, "disabled_reason": format!("because of {text}"), "remark": {text: [text]},
        })
    };
    let mut redactor = Redactor::default();
    redactor.hide(API_KEY);
    for text in texts.iter().flat_map(|text| escaped(text)) {
        let mut listed = json!({"sites": [site(&text)], "total": 1});
        redactor.clean_json(&mut listed);
        let listed = listed.to_string();
        assert!(pieces(&text).all(|piece| !listed.contains(piece)), "{text}: {listed}");
    }
    let text = escaped(&texts[0]).remove(6);
    let service = sandbox(&["a.example"]);
    let sites = json!({"sites": [site(&text)], "total": 1});
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
        let sites = json!([{"id": 10, "account": 1, "domain": "a.example", "cert_id": null}]);
        let records = [record(5, "a.example", "upload")];
        let world = world(json!({"sites": sites, "certs": records}));
        let service = sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[]);
        service.add_fault(fault.times(99));
        let hook = edgecert().called_by_certbot(&lineage).against(&service).args(["--wait", "0"]);
        let output = hook.run();
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
        let (service, lineage) = (sandbox(&[domain]), Lineage::issued_for(&[domain]));
        let (cert, key) = (lineage.read("fullchain.pem"), lineage.read("privkey.pem"));
        let id = service.upload_as_other_client(domain, &cert, &key).to_string();
        let hook = edgecert().against(&service).args(["certs", "download", &id, "--json", "--out"]);
        let output = hook.args([lineage.path()]).succeeds();
        assert_eq!(output.json()["cert"]["cert_pem"], cert, "{domain}");
        let secret = key.lines().nth(2).unwrap();
        assert!(!output.stdout.contains(secret), "{domain}");
    }
}
