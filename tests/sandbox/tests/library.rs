//! The sandbox inside a test: blocking, on ports of its own, gone when it is dropped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::time::Duration;

use edgecert_sandbox::{Authority, Error, Fault, FaultAction, IssuedCert, Options, Sandbox, World, probe};
use serde_json::{Value, json};

fn upload(sandbox: &Sandbox, domain: &str, issued: &IssuedCert) -> Result<Value, ureq::Error> {
    let ready = sandbox.endpoints();
    let body = json!({ "domain": domain, "cert_pem": issued.fullchain(), "key_pem": issued.key });
    let sent = ureq::post(format!("{}/api/certs/upload", ready.api))
        .header("authorization", format!("Bearer {}", ready.api_key))
        .send_json(body);
    sent?.body_mut().read_json()
}

#[test]
fn a_test_owns_its_sandbox() {
    let authority = Authority::new("test").unwrap();
    let issued = authority.issue(&["a.example"]).unwrap();
    let sandbox = Sandbox::start(Options::default()).unwrap();
    assert_eq!(sandbox.endpoints().api_key, "sandbox-key");
    assert_eq!(sandbox.endpoints().ca_file, None);
    assert!(sandbox.requests().is_empty() && sandbox.sites().is_empty() && sandbox.certs().is_empty());

    sandbox.hold_pushes(true);
    let site = sandbox.add_site("a.example");
    assert_eq!(sandbox.sites()[0]["config_synced"], true);
    upload(&sandbox, "a.example", &issued).unwrap();
    assert_eq!((&sandbox.sites()[0]["id"], &sandbox.sites()[0]["account"]), (&json!(site), &json!(1)));
    assert_eq!(sandbox.sites()[0]["config_synced"], false);
    assert!(probe(&sandbox.endpoints().edge, "a.example").is_err());
    sandbox.push_now();
    assert_eq!(sandbox.sites()[0]["config_synced"], true);
    let seen = probe(&sandbox.endpoints().edge, "a.example").unwrap();
    assert_eq!(sandbox.edge()[0]["fingerprint"], seen.fingerprint);
    assert_eq!(sandbox.certs()[0]["cert_pem"], issued.fullchain());
    let digest = sandbox.certs()[0]["key_sha256"].clone();
    assert_eq!(sandbox.requests()[0].body["key_pem"], digest);
    assert!(!format!("{:?} {:?}", sandbox.certs(), sandbox.requests()).contains("PRIVATE KEY"));
}

#[test]
fn a_drop_frees_the_ports_and_ends_what_is_open() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_fault(Fault::stall("*", 3600.0));
    let edge = sandbox.endpoints().edge.clone();
    let api = sandbox.endpoints().api.strip_prefix("http://").unwrap().to_owned();
    let mut waiting = std::net::TcpStream::connect(&api).unwrap();
    std::io::Write::write_all(&mut waiting, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    while sandbox.requests().is_empty() {}
    drop(sandbox);
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut waiting, &mut rest);
    assert!(rest.is_empty());
    TcpListener::bind(edge).unwrap();
}

#[test]
fn faults_can_be_added_from_the_test() {
    let issued = Authority::new("test").unwrap().issue(&["a.example"]).unwrap();
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_site("a.example");
    let path = "POST /api/certs/upload";
    sandbox.add_fault(Fault::status(path, 503).header("Retry-After", "0").body("busy").times(2));
    sandbox.add_fault(Fault::close_after(path));
    for expected in ["503", "503"] {
        let error = upload(&sandbox, "a.example", &issued).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    upload(&sandbox, "a.example", &issued).unwrap_err();
    assert_eq!(upload(&sandbox, "a.example", &issued).unwrap()["created"], false);
    let faults: Vec<_> =
        sandbox.requests().into_iter().map(|request| (request.status, request.fault)).collect();
    let status = |code| (Some(code), Some("status".to_owned()));
    assert_eq!(faults, [status(503), status(503), (None, Some("close_after".to_owned())), (Some(200), None)]);
    assert_eq!(Fault::close_before("*").action, FaultAction::CloseBefore);
}

#[test]
fn the_api_over_tls_comes_with_its_ca() {
    let sandbox = Sandbox::start(Options { tls: true, ..Options::default() }).unwrap();
    let ca = sandbox.endpoints().ca_file.clone().unwrap();
    assert!(sandbox.endpoints().api.starts_with("https://127.0.0.1:"));
    assert!(std::fs::read_to_string(&ca).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let seen = probe(sandbox.endpoints().api.strip_prefix("https://").unwrap(), "localhost").unwrap();
    assert_eq!((seen.alpn.as_deref(), seen.chain_length), (Some("h2"), 2));
    drop(sandbox);
    assert!(!ca.exists());
}

#[test]
fn a_pending_push_is_not_lost_between_two_starts() {
    let data = tempfile::tempdir().unwrap();
    let options = || Options {
        data: Some(data.path().to_owned()),
        push_delay: Duration::from_secs(3600),
        ..Options::default()
    };
    let first = Sandbox::start(options()).unwrap();
    first.add_site("a.example");
    let issued = Authority::new("test").unwrap().issue(&["a.example"]).unwrap();
    upload(&first, "a.example", &issued).unwrap();
    assert!(matches!(Sandbox::start(options()), Err(Error::DataInUse(_))), "also within one process");
    drop(first);
    let second = Sandbox::start(options()).unwrap();
    assert!(second.is_resumed());
    assert_eq!(second.sites()[0]["config_synced"], false);
    second.push_now();
    probe(&second.endpoints().edge, "a.example").unwrap();
}

#[test]
fn only_loopback_and_only_worlds_that_can_be() {
    let everybody = Options { listen: "0.0.0.0:0".parse().unwrap(), ..Options::default() };
    assert!(matches!(Sandbox::start(everybody), Err(Error::NotLoopback(_))));
    let mut world = World::default();
    world.accounts.clear();
    assert!(matches!(Sandbox::start(Options { world, ..Options::default() }), Err(Error::InvalidWorld(_))));
    let six = Options { listen: "[::1]:0".parse().unwrap(), ..Options::default() };
    assert!(Sandbox::start(six).unwrap().endpoints().api.starts_with("http://[::1]:"));
}

#[test]
#[should_panic(expected = "cannot add the site a.example")]
fn a_site_is_added_once() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_site("a.example");
    sandbox.add_site("a.example");
}
