//! A path that is not UTF-8 is recorded as it is, and shown without the bytes that cannot be printed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::harness::{Hook, Lineage, edgecert, is_bound_to, sandbox, state_files};

#[test]
fn path_that_is_not_utf8_is_remembered() {
    let (service, home, lineage) =
        (sandbox(&["a.example"]), TempDir::new().unwrap(), Lineage::issued_for(&["a.example"]));
    let directory = home.path().join(OsStr::from_bytes(b"shop-\xff\x1b[2J"));
    let key_file = home.path().join(OsStr::from_bytes(b"key-\xfe"));
    fs::create_dir(&directory).unwrap();
    let save = || {
        for name in ["fullchain.pem", "privkey.pem", "cert.pem", "chain.pem"] {
            fs::copy(lineage.file(name), directory.join(name)).unwrap();
        }
    };
    save();
    lineage.write("key", &service.endpoints().api_key);
    fs::copy(lineage.file("key"), &key_file).unwrap();
    let state = home.path().join("state");
    let call = |arguments: &[&str]| edgecert().with_state(&state).args(arguments);
    let hook = |hook: Hook| {
        let hook = hook.env("RENEWED_LINEAGE", &directory).env("EDGECERT_API_KEY_FILE", &key_file);
        hook.env("EDGECERT_BASE_URL", &service.endpoints().api).facing(&service.endpoints().edge)
    };
    assert_eq!(hook(call(&[])).succeeds().stderr, "");

    lineage.renew(&["a.example"]);
    save();
    let shown = call(&["status"]).succeeds();
    assert!(shown.stdout.contains("renewed") && !shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    let shown = call(&["status", "--json"]).succeeds().json();
    let cert = shown["lineages"][0]["cert"].as_str().unwrap();
    assert!(cert.ends_with("/shop-\u{fffd}[2J/fullchain.pem"), "{cert:?}");
    // Neither the files, nor the service, nor its key are named.
    call(&["sync"]).succeeds();
    assert!(is_bound_to(&service, "a.example", &lineage));

    let forget: [OsString; 2] = ["--forget".into(), PathBuf::from(&directory).into()];
    call(&["status"]).args(forget).succeeds();
    assert_eq!(state_files(&state), [""; 0].map(PathBuf::from));
}
