//! The sandbox as a library: started, changed and inspected from within a test.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::TcpListener;
use std::time::Duration;

use edgecert_sandbox::{
    Authority, EdgeAddress, EdgeMode, Error, Fault, FaultAction, IssuedCert, Options, Sandbox, World, probe,
};
use serde_json::{Value, json};

fn upload(sandbox: &Sandbox, domain: &str, issued: &IssuedCert) -> Result<Value, ureq::Error> {
    let endpoints = sandbox.endpoints();
    let body = json!({ "domain": domain, "cert_pem": issued.fullchain(), "key_pem": issued.key });
    let response = ureq::post(format!("{}/api/certs/upload", endpoints.api))
        .header("authorization", format!("Bearer {}", endpoints.api_key))
        .send_json(body);
    response?.body_mut().read_json()
}

#[test]
fn sandbox_shows_what_it_stores() {
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
    let probed = probe(&sandbox.endpoints().edge, "a.example").unwrap();
    assert_eq!(sandbox.edge()[0]["fingerprint"], probed.fingerprint);
    assert_eq!(sandbox.certs()[0]["cert_pem"], issued.fullchain());
    let digest = sandbox.certs()[0]["key_sha256"].clone();
    assert_eq!(sandbox.requests()[0].body["key_pem"], digest);
    assert!(!format!("{:?} {:?}", sandbox.certs(), sandbox.requests()).contains("PRIVATE KEY"));
}

#[test]
fn drop_frees_ports_and_closes_connections() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_fault(Fault::stall("*", 3600.0));
    let edge = sandbox.endpoints().edge.clone();
    let api = sandbox.endpoints().api.strip_prefix("http://").unwrap().to_owned();
    let mut connection = std::net::TcpStream::connect(&api).unwrap();
    std::io::Write::write_all(&mut connection, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    while sandbox.requests().is_empty() {}
    drop(sandbox);
    let mut response = Vec::new();
    let _ = std::io::Read::read_to_end(&mut connection, &mut response);
    assert!(response.is_empty());
    TcpListener::bind(edge).unwrap();
}

#[test]
fn added_faults_apply_in_order() {
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
#[should_panic(expected = "invalid fault: no endpoint is GET /api/upload")]
fn adding_a_useless_fault_panics() {
    Sandbox::start(Options::default()).unwrap().add_fault(Fault::close_before("GET /api/upload"));
}

#[test]
fn tls_api_provides_its_ca() {
    let sandbox = Sandbox::start(Options { tls: true, ..Options::default() }).unwrap();
    let ca = sandbox.endpoints().ca_file.clone().unwrap();
    assert!(sandbox.endpoints().api.starts_with("https://127.0.0.1:"));
    assert!(std::fs::read_to_string(&ca).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let probed = probe(sandbox.endpoints().api.strip_prefix("https://").unwrap(), "localhost").unwrap();
    assert_eq!((probed.alpn.as_deref(), probed.chain_length), (Some("h2"), 2));
    drop(sandbox);
    assert!(!ca.exists());
}

#[test]
fn pending_push_survives_a_restart() {
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
    assert!(
        matches!(Sandbox::start(options()), Err(Error::DataInUse(_))),
        "the lock also works within one process"
    );
    drop(first);
    let second = Sandbox::start(options()).unwrap();
    assert!(second.is_resumed());
    assert_eq!(second.sites()[0]["config_synced"], false);
    second.push_now();
    probe(&second.endpoints().edge, "a.example").unwrap();
}

#[test]
fn invalid_options_are_refused() {
    let all_interfaces = Options { listen: "0.0.0.0:0".parse().unwrap(), ..Options::default() };
    assert!(matches!(Sandbox::start(all_interfaces), Err(Error::NotLoopback(_))));
    let mut world = World::default();
    world.accounts.clear();
    assert!(matches!(Sandbox::start(Options { world, ..Options::default() }), Err(Error::InvalidWorld(_))));
    let ipv6 = Options { listen: "[::1]:0".parse().unwrap(), ..Options::default() };
    assert!(Sandbox::start(ipv6).unwrap().endpoints().api.starts_with("http://[::1]:"));
}

#[test]
#[should_panic(expected = "cannot add the site a.example")]
fn adding_a_site_twice_panics() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_site("a.example");
    sandbox.add_site("a.example");
}

#[test]
fn other_clients_and_replacements_are_unlogged() {
    let authority = Authority::new("test").unwrap();
    let [first, second, third] = [(); 3].map(|()| authority.issue(&["a.example"]).unwrap());
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_site("a.example");
    sandbox.hold_pushes(true);
    let served = || probe(&sandbox.endpoints().edge, "a.example").ok().map(|probed| probed.fingerprint);
    let id = sandbox.upload_as_other_client("a.example", &first.fullchain(), &first.key);
    assert_eq!(sandbox.certs()[0]["id"], id);
    sandbox.push_now();
    let before = served();
    assert!(before.is_some());
    sandbox.replace_cert(id, &second.fullchain(), &second.key);
    assert_eq!(sandbox.sites()[0]["config_synced"], false);
    sandbox.push_now();
    let after = served();
    assert!(after.is_some() && after != before);
    sandbox.replace_cert_silently(id, &third.fullchain(), &third.key);
    assert_eq!(sandbox.sites()[0]["config_synced"], true);
    assert!(served().is_some() && served() != after);
    assert!(sandbox.requests().is_empty());
}

#[test]
#[should_panic(expected = "the upload for a.example was refused: invalid cert_pem")]
fn refused_upload_of_other_client_panics() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.add_site("a.example");
    sandbox.upload_as_other_client("a.example", "", "");
}

#[test]
#[should_panic(expected = "there is no certificate 9")]
fn replacing_an_unknown_record_panics() {
    Sandbox::start(Options::default()).unwrap().replace_cert(9, "", "");
}

#[test]
fn handshakes_are_counted_per_address() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    let edge = &sandbox.endpoints().edge;
    assert_eq!(sandbox.handshakes().addresses[edge].connections, 0);
    probe(edge, "a.example").unwrap_err();
    probe(edge, "a.example").unwrap_err();
    let counts = sandbox.handshakes();
    assert_eq!((counts.total(), counts.addresses[edge].handshakes, counts.max_in_progress), (2, 2, 1));
    sandbox.reset_handshakes();
    assert_eq!(sandbox.handshakes().total(), 0);
}

#[test]
fn edge_addresses_and_overrides_come_and_go() {
    let authority = Authority::new("test").unwrap();
    let [pushed, other] = [(); 2].map(|()| authority.issue(&["a.example"]).unwrap());
    let sandbox = Sandbox::start(Options::default()).unwrap();
    let edge = &sandbox.endpoints().edge;
    let served = |address: &str| probe(address, "a.example").unwrap().fingerprint;
    sandbox.add_site("a.example");
    sandbox.upload_as_other_client("a.example", &pushed.fullchain(), &pushed.key);
    sandbox.push_now();
    let before = served(edge);
    let address =
        sandbox.open_edge_address(&EdgeAddress::serving(EdgeMode::Other, &other.fullchain(), &other.key));
    let stale = sandbox.open_edge_address(&EdgeAddress::new(EdgeMode::Stale));
    assert_eq!(sandbox.handshakes().addresses[&address].connections, 0);
    assert_ne!(served(&address), before);
    sandbox.override_edge("a.example", &other.fullchain(), &other.key);
    assert_eq!(served(edge), served(&address));
    assert_eq!(served(&stale), before);
    sandbox.remove_override("a.example");
    assert_eq!(served(edge), before);
    sandbox.close_edge_address(&address);
    assert!(probe(&address, "a.example").is_err());
    assert_eq!(sandbox.handshakes().addresses[&address].handshakes, 2);
}

#[test]
#[should_panic(expected = "cannot open an edge address: invalid edge address: `serves` is missing")]
fn opening_an_invalid_edge_address_panics() {
    let sandbox = Sandbox::start(Options::default()).unwrap();
    sandbox.open_edge_address(&EdgeAddress::new(EdgeMode::Other));
}
