//! `edgecert certs`: lists (section 4.1 of the API document) and downloads (sections 2.2 and 4.3).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Fault, Hook, Lineage, Sandbox, account, assert_contains, at_once, edgecert, record, step, test_ca,
    write_with_mode,
};

/// A sandbox with certificate 5 for `*.a.example`, bound to site 10, and the key.
fn wildcard() -> (Sandbox, String) {
    let cert = record(5, "*.a.example", "upload");
    let key = cert["key_pem"].as_str().unwrap().to_owned();
    (with(&cert), key)
}

fn with(cert: &Value) -> Sandbox {
    account(&[(10, "www.a.example", Some(5))], std::slice::from_ref(cert))
}

fn certs(service: &Sandbox, arguments: &[&str]) -> Hook {
    edgecert().against(service).args(["certs"]).args(arguments)
}

/// Downloads certificate 5 into a directory.
fn download(service: &Sandbox, arguments: &[&str], directory: &Path) -> Hook {
    certs(service, &["download", "5"]).args(arguments).args(["--out".as_ref(), directory])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn certificates_are_listed_and_printed() {
    let (service, _) = wildcard();

    // Section 4.1 of the API document.
    step("certificates_are_listed_with_bound_sites");
    let output = certs(&service, &["list"]).succeeds();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines[0].starts_with("ID  DOMAIN") && lines[0].ends_with("SITES BOUND"), "{}", lines[0]);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!([0, 1, 2, 4].map(|at| words[at]), ["5", "*.a.example", "*.a.example", "www.a.example"]);
    let json = certs(&service, &["list", "--json"]).succeeds().json();
    assert_eq!(json["bound_sites"], json!({"5": ["www.a.example"]}));
    assert_contains(&json, &json!({"command": "certs list", "certs": [{"id": 5}]}));

    step("certificate_can_go_to_stdout");
    let output = certs(&service, &["download", "5", "--cert-only", "--out", "-"]).succeeds();
    assert_eq!(output.stdout, service.certs()[0]["cert_pem"]);
    let home = TempDir::new().unwrap();
    download(&service, &["--cert-only"], home.path()).succeeds();
    assert_eq!(names(home.path()), ["_.a.example.crt"]);
}

/// Section 2.1 of the API document.
#[test]
fn system_certificates_have_type_lets() {
    let service = with(&record(5, "www.a.example", "lets"));
    assert!(certs(&service, &["list"]).succeeds().stdout.contains("  lets  "));
}

#[test]
fn downloaded_key_is_written_and_never_shown() {
    let (service, key) = wildcard();

    // Section 4.3 of the API document.
    step("download_writes_safe_file_names");
    let home = TempDir::new().unwrap();
    let out = home.path().join("made/for/it");
    let output = download(&service, &[], &out).succeeds();
    assert_eq!(names(&out), ["_.a.example.crt", "_.a.example.key"]);
    assert_eq!(fs::read_to_string(out.join("_.a.example.key")).unwrap(), key);
    assert_eq!(fs::read_to_string(out.join("_.a.example.crt")).unwrap(), service.certs()[0]["cert_pem"]);
    assert_eq!((mode(&out.join("_.a.example.key")), mode(&out)), (0o600, 0o700));
    output.prints("key and certificate match");
    assert!(output.shown().contains("; expires DATE (TIME); "), "{}", output.stdout);
    // The hook accepts the written files.
    let check = edgecert().args(["check", "--cert"]).args([out.join("_.a.example.crt")]);
    check.args(["--key"]).args([out.join("_.a.example.key")]).run();

    step("private_key_is_never_printed");
    let home = TempDir::new().unwrap();
    let out = home.path().to_str().unwrap();
    let rows: [&[&str]; 4] = [
        &["download", "5", "--out", out, "--force", "-vv"],
        &["download", "5", "--out", out, "--force", "-vv", "--json"],
        &["download", "5", "--out", "-", "--cert-only", "-vv"],
        &["list", "--json", "-vv"],
    ];
    for arguments in rows {
        let output = certs(&service, arguments).succeeds();
        for line in key.lines() {
            assert!(!output.stdout.contains(line) && !output.stderr.contains(line), "{arguments:?}");
        }
        assert!(!output.stdout.contains("key_pem"), "{arguments:?}");
    }
    certs(&service, &["download", "5", "--out", "-"]).exits_with(2).says("a private key is never printed");

    step("existing_file_is_kept");
    let home = TempDir::new().unwrap();
    for name in ["_.a.example.key", "_.a.example.crt"] {
        let kept = home.path().join(name);
        fs::write(&kept, "precious").unwrap();
        download(&service, &[], home.path()).exits_with(65).says("already exists; nothing was written");
        assert_eq!((fs::read_to_string(&kept).unwrap().as_str(), names(home.path()).len()), ("precious", 1));
        fs::remove_file(kept).unwrap();
    }
    let kept = home.path().join("_.a.example.key");
    write_with_mode(&kept, "precious", 0o644);
    download(&service, &["--force"], home.path()).succeeds();
    assert_eq!((fs::read_to_string(&kept).unwrap(), mode(&kept)), (key.clone(), 0o600));
    assert_eq!(names(home.path()).len(), 2);

    step("garbled_download_prints_no_key");
    let line = key.lines().nth(1).unwrap();
    let home = TempDir::new().unwrap();
    let bodies = [
        json!({"ok": true, "key_pem": key}),
        json!(format!("text {key}")),
        json!({"error": key}),
        json!({"message": line}),
    ];
    for body in bodies {
        for status in [200, 403, 500] {
            let fault = Fault::status("GET /api/certs/*/download", status).body(body.clone()).times(9);
            service.add_fault(fault.header("Retry-After", "9999"));
            let output = download(&service, &["--timeout", "2", "-vv", "--json"], home.path()).run();
            assert_ne!(output.code, 0);
            assert!(!output.stdout.contains(line) && !output.stderr.contains(line), "{status} {body}");
            service.clear_faults();
        }
    }
    assert!(names(home.path()).is_empty());
}

#[test]
fn failed_downloads_are_explained() {
    let (service, _) = wildcard();

    // Section 4.3 of the API document.
    step("missing_certificate_is_exit_69");
    let home = TempDir::new().unwrap();
    let output = certs(&service, &["download", "99", "--out"]).args([home.path()]).exits_with(69);
    output.says("cannot download certificate 99; nothing was written");
    assert!(names(home.path()).is_empty());

    step("unwritable_directory_leaves_no_file");
    let home = TempDir::new().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    download(&service, &[], &file).exits_with(66).says("cannot write ");
    assert_eq!(names(home.path()), ["file"]);

    step("force_replaces_both_files_or_none");
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("_.a.example.crt"), "old").unwrap();
    fs::create_dir(home.path().join("_.a.example.key")).unwrap();
    download(&service, &["--force"], home.path()).exits_with(66).says("_.a.example.key: it is a directory");
    assert_eq!(fs::read_to_string(home.path().join("_.a.example.crt")).unwrap(), "old");

    step("missing_key_is_a_failure");
    let pem = service.certs()[0]["cert_pem"].clone();
    let home = TempDir::new().unwrap();
    let body = json!({"ok": true, "id": 5, "domain": "a/b", "name": "../../x", "cert_pem": pem});
    service.add_fault(Fault::status("GET /api/certs/*/download", 200).body(body));
    let output = download(&service, &[], home.path()).exits_with(69);
    output.says("returned no private key for certificate 5; only");
    assert_eq!(names(home.path()), ["_.._x.crt"]);

    step("download_of_another_record_is_invalid");
    let other = test_ca().issue(&["b.example"]).unwrap();
    let body = json!({"ok": true, "id": 6, "cert_pem": other.fullchain(), "key_pem": other.key});
    service.add_fault(Fault::status("GET /api/certs/5/download", 200).body(body).times(9));
    let directory = TempDir::new().unwrap();
    download(&service, &[], directory.path()).exits_with(76);
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn expiry_and_wrong_key_are_warnings() {
    let mut cert = record(5, "www.a.example", "upload");
    cert["key_pem"] = json!(test_ca().issue(&["b.example"]).unwrap().key);
    let home = TempDir::new().unwrap();
    let hook = |service: &Sandbox| download(service, &["--json", "--force"], home.path());
    let json = hook(&with(&cert)).succeeds().json();
    let warning = "the private key of certificate 5 does not belong to it";
    assert_contains(&json, &json!({"paired": false, "ok": true, "warnings": [warning]}));

    let lineage = Lineage::expired();
    let mut cert = record(5, "a.example", "upload");
    cert["cert_pem"] = json!(lineage.read("fullchain.pem"));
    cert["key_pem"] = json!(lineage.read("privkey.pem"));
    let json = hook(&with(&cert)).succeeds().json();
    let warning = "certificate 5 expired at 2020-02-01T00:00:00Z";
    assert_contains(&json, &json!({"paired": true, "warnings": [warning]}));
}

#[test]
fn temporary_faults_are_retried() {
    at_once(["GET /api/certs", "GET /api/me/sites", "GET /api/certs/*/download"], |path| {
        let (service, _) = wildcard();
        let home = TempDir::new().unwrap();
        for fault in [Fault::status(path, 503), Fault::close_before(path), Fault::truncate(path, 5)] {
            service.add_fault(fault);
        }
        certs(&service, &["list"]).succeeds();
        download(&service, &[], home.path()).succeeds();
    });
}

#[test]
fn key_among_certificates_is_omitted() {
    let mut cert = record(5, "*.a.example", "upload");
    let (pem, key) = (cert["cert_pem"].as_str().unwrap().to_owned(), cert["key_pem"].as_str().unwrap());
    cert["cert_pem"] = json!(format!("{pem}{key}"));
    let service = with(&cert);
    let home = TempDir::new().unwrap();
    let output = download(&service, &["--cert-only"], home.path()).succeeds();
    assert_eq!(fs::read_to_string(home.path().join("_.a.example.crt")).unwrap(), pem);
    output.says("it was omitted");
}
