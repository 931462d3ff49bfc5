//! Verification: handshakes with every address of the edge, and what is reported where they fail.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::harness::{
    Fault, Hook, Host, Lineage, Options, RSA, TlsServer, at_once, cannot_run, fresh, request_lines, sandbox,
    sandbox_and_lineage, sandbox_with, world,
};

#[test]
fn stale_address_is_named_with_expiry() {
    let [service, other] = [sandbox(&["a.example"]), sandbox(&["a.example"])];
    let old = Lineage::issued_for(&["a.example"]);
    for service in [&service, &other] {
        fresh(service, &old).succeeds();
    }
    let renewed = Lineage::issued_for(&["a.example"]);
    let both = format!("{},{}", service.endpoints().edge, other.endpoints().edge);
    let call = || fresh(&service, &renewed).facing(&both).args(["--wait", "1"]);
    let output = call().args(["--json"]).exits_with(75);
    assert_eq!(output.sites(), ["a.example: stale"]);
    assert_eq!(output.json()["sites"][0]["edge"], json!({"served": 1, "addresses": 2}));
    assert_eq!(service.sites()[0]["config_synced"], true, "which proves nothing");

    fresh(&other, &renewed).succeeds();
    call().succeeds().prints("* served    a.example  2/2");
}

#[test]
fn unreachable_edge_delays_no_other_site() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    let talk = plain.try_clone().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = talk.accept() {
            let _ = std::io::Write::write_all(&mut peer, b"220 mail.example ESMTP\r\n");
        }
    });
    let rows = [
        ("127.0.0.1:1".to_owned(), "127.0.0.1:1 refuses connections"),
        ("no-such-host.invalid:443".to_owned(), "no-such-host.invalid does not resolve"),
        (at(&silent), "accepts connections but does not respond"),
        (at(&plain), "does not speak TLS"),
    ];
    let rows = rows.iter().flat_map(|row| [(row, ("auto", 0)), (row, ("require", 75))]);
    at_once(rows, |((address, reason), (verify, code))| {
        let (service, renewed) = sandbox_and_lineage(&["a.example"]);
        // `timeout` only stops a hook that hangs; no time is measured.
        let hook = fresh(&service, &renewed).facing(address);
        let hook = hook.args(["--wait", "2", "--timeout", "600", "--json", "--verify", verify]);
        let output = hook.under(&["timeout", "100"]).exits_with(code);
        let json = output.json();
        assert_eq!(output.sites(), ["a.example: synced"], "{reason}");
        assert!(json["sites"][0]["detail"].as_str().unwrap().contains(reason), "{reason}: {json}");
        let reported = if code == 0 { json["warnings"].to_string() } else { json["error"].to_string() };
        assert!(reported.contains(reason), "{reason}: {json}");
    });
}

#[test]
fn site_without_https_is_synced_with_reason() {
    let rows = [
        ("enabled", "the site is disabled, so the edge does not serve it"),
        (
            "https_enabled",
            "HTTPS is off for the site (https_enabled is false), so the edge serves no certificate",
        ),
    ];
    for (field, reason) in rows {
        let mut site = json!({"id": 10, "account": 1, "domain": "a.example"});
        site[field] = json!(false);
        let world = world(json!({"sites": [site], "certs": []}));
        let service = sandbox_with(Options { world, ..Options::default() }, &[]);
        let renewed = Lineage::issued_for(&["a.example"]);
        let output = fresh(&service, &renewed).args(["--json"]).succeeds();
        assert_eq!(output.sites(), ["a.example: synced"]);
        assert_eq!(output.json()["sites"][0]["detail"], reason);
        fresh(&service, &renewed).args(["--verify", "require"]).exits_with(75);
    }
}

#[test]
fn verification_follows_the_push_at_once() {
    let service = sandbox(&["a.example"]);
    service.hold_pushes(true);
    let renewed = Lineage::issued_for(&["a.example"]);
    let mut hook = fresh(&service, &renewed).args(["-v"]);
    let mut child = hook.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(progress.any(|line| line.contains("waiting for the edge")), "it waits for the push");
    service.push_now();
    let before = request_lines(&service).len();
    assert!(progress.by_ref().count() < 20);
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("* served    a.example  1/1"));
    let later = request_lines(&service).len() - before;
    assert!((1..=2).contains(&later), "the first reading that shows the push is the last, not {later}");
}

#[test]
fn push_that_stays_unconfirmed_fails() {
    let host = Host::deployed();
    host.service.hold_pushes(true);
    host.lineage.renew(&["a.example"]);
    let unverified = |hook: Hook| hook.env("EDGECERT_VERIFY", "off").env("EDGECERT_WAIT", "0");
    for _ in 0..2 {
        let output = unverified(host.hook()).args(["--json"]).succeeds();
        assert_eq!(output.sites(), ["a.example: uploaded"], "a hook may run twice");
    }
    host.lineage.renew(&["a.example"]);
    unverified(host.sync()).succeeds().prints("uploaded");
    // The first repairs drift, the second what is pending.
    for _ in 0..2 {
        unverified(host.sync()).exits_with(75).says("a.example is still not confirmed after another upload");
        assert!(host.recorded()["pending_since"].is_string());
    }
    host.service.hold_pushes(false);
    host.service.push_now();
    unverified(host.sync()).succeeds();
    assert!(host.recorded()["pending_since"].is_null());
}

#[test]
fn old_leaf_for_rsa_clients_is_stale() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let old = Lineage::from_openssl(&RSA);
    for name in ["cert.pem", "privkey.pem"] {
        renewed.write(&format!("old-{name}"), &old.read(name));
    }
    let own = ["-cert_chain", "chain.pem"];
    let both = [&own[..], &["-dcert", "old-cert.pem", "-dkey", "old-privkey.pem"]].concat();
    let call = |shown: &[&str], code| {
        let server = TlsServer::start(&renewed, shown);
        fresh(&service, &renewed).facing(server.address).args(["--wait", "2", "--json"]).exits_with(code)
    };
    let output = call(&both, 75);
    assert_eq!(output.sites(), ["a.example: stale"]);
    output.prints("still serves clients that accept only RSA the certificate of Private CA");

    assert_eq!(call(&own, 0).sites(), ["a.example: served"]);
}

#[test]
fn other_intermediates_are_a_warning() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let alone = TlsServer::start(&renewed, &[]);
    let output = fresh(&service, &renewed).facing(alone.address).args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: served"]);
    let warnings = output.json()["warnings"].to_string();
    assert!(warnings.contains("serves the leaf with other intermediates than those uploaded"), "{warnings}");
}

#[test]
fn every_key_type_is_verified() {
    // Under TLS 1.2 a server with a P-521 leaf requires key exchange on that curve, and one with an RSASSA-PSS key
    // requires schemes that rustls lacks.
    let kinds: [(&[&str], [&str; 2]); 5] = [
        (&RSA, ["served", "served"]),
        (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], ["served", "served"]),
        (&["ecparam", "-genkey", "-noout", "-name", "secp521r1"], ["synced", "served"]),
        (&["genpkey", "-algorithm", "ED25519"], ["served", "served"]),
        (&["genpkey", "-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"], ["synced", "synced"]),
    ];
    at_once(kinds, |(key, outcomes)| {
        let renewed = Lineage::from_openssl(key);
        for (version, wanted) in ["-tls1_2", "-tls1_3"].into_iter().zip(outcomes) {
            let service = sandbox(&["a.example"]);
            let server = TlsServer::start(&renewed, &["-cert_chain", "chain.pem", version]);
            let hook = fresh(&service, &renewed).facing(server.address);
            let output = hook.args(["--json", "--wait", "1"]).succeeds();
            let wanted = format!("a.example: {wanted}");
            assert_eq!(output.sites(), [wanted], "{key:?} {version}: {}", output.stdout);
        }
    });
}

#[test]
fn edge_that_judges_the_chain_is_verified() {
    let service = sandbox(&["a.example"]);
    // To clients that name only RSA, this edge does not show an RSA leaf that an EC key signed.
    let renewed = Lineage::from_openssl(&RSA);
    let server = TlsServer::start(&renewed, &["-cert_chain", "chain.pem", "-tls1_2", "-strict"]);
    let hook = fresh(&service, &renewed).facing(server.address);
    assert_eq!(hook.args(["--json", "--wait", "3"]).succeeds().sites(), ["a.example: served"]);
}

#[test]
fn cname_leads_to_the_edge() {
    // Every address in 127/8 is local; each run takes another one, so that port 443 is free.
    let process = std::process::id().to_be_bytes();
    let address = format!("127.{}.{}.{}:443", process[1] | 64, process[2], process[3] | 1);
    let edge_listen: SocketAddr = address.parse().unwrap();
    if TcpListener::bind(edge_listen).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        cannot_run("port 443 needs the privilege to bind it");
    }
    let service = sandbox_with(
        Options { edge_listen, push_delay: Duration::ZERO, ..Options::default() },
        &["a.example"],
    );
    let renewed = Lineage::issued_for(&["a.example"]);
    let cname = service.sites()[0]["cname"].as_str().unwrap().to_owned();
    let hosts = renewed.file("hosts");
    fs::write(&hosts, format!("{} {cname}\n", edge_listen.ip())).unwrap();
    // Only an administrator can change the resolver's hosts file; proot substitutes another one.
    let bind = format!("{}:/etc/hosts", hosts.display());
    let hook = fresh(&service, &renewed).without_env("EDGECERT_EDGE_ADDRESS").args(["--json"]);
    let output = hook.under(&["proot", "-b", &bind]).succeeds();
    assert_eq!(output.sites(), ["a.example: served"], "{}", output.stdout);
    assert_eq!(output.json()["sites"][0]["edge"], json!({"served": 1, "addresses": 1}));
}

#[test]
fn wildcard_site_is_verified_by_subdomain() {
    let (service, renewed) = sandbox_and_lineage(&["*.a.example"]);
    assert_eq!(fresh(&service, &renewed).args(["--json"]).succeeds().sites(), ["*.a.example: served"]);
}

#[test]
fn no_wait_makes_no_handshake() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let output = fresh(&service, &renewed).args(["--wait", "0", "--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: synced"]);
    output.prints("the edge was not checked because of --wait 0");
    assert_eq!(request_lines(&service).len(), 4, "two listings, an upload, a reading");
}

#[test]
fn old_leaf_of_another_key_type_is_stale() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let old = Lineage::from_openssl(&RSA);
    let server = TlsServer::start(&old, &[]);
    // In this test the old leaf was issued later; the guard is not under test.
    let hook = fresh(&service, &renewed).facing(server.address).args(["--json", "--allow-older"]);
    assert_eq!(hook.args(["--wait", "2"]).exits_with(75).sites(), ["a.example: stale"]);
}

#[test]
fn silent_edge_leaves_time_for_upload() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    fresh(&service, &renewed).succeeds();
    let address = silent.local_addr().unwrap().to_string();
    let hook = fresh(&service, &renewed).facing(address);
    let output = hook.args(["--json", "--wait", "1", "--timeout", "2"]).run();
    assert_eq!(output.json()["uploads"][0]["ok"], true, "{}", output.stdout);
}

#[test]
fn observation_outlives_a_silent_edge() {
    let service = sandbox(&["a.example"]);
    let [old, renewed] = [(), ()].map(|()| Lineage::issued_for(&["a.example"]));
    fresh(&service, &renewed).succeeds();
    // One observation takes four handshakes; the first observation precedes the deployment.
    let server = TlsServer::start(&old, &["-naccept", "8"]);
    let hook = fresh(&service, &renewed).facing(server.address);
    assert_eq!(hook.args(["--wait", "3", "--json"]).exits_with(75).sites(), ["a.example: stale"]);
}

#[test]
fn unresolved_edge_does_not_hide_others() {
    let [service, other] = [sandbox(&["a.example"]), sandbox(&["a.example"])];
    let [old, renewed] = [(), ()].map(|()| Lineage::issued_for(&["a.example"]));
    fresh(&other, &old).succeeds();
    let both = format!("no-such-host.invalid:443,{}", other.endpoints().edge);
    let call = || fresh(&service, &renewed).facing(&both).args(["--wait", "1", "--json"]);
    assert_eq!(call().exits_with(75).sites(), ["a.example: stale"]);
    fresh(&other, &renewed).succeeds();
    let output = call().succeeds();
    assert_eq!(output.sites(), ["a.example: synced"]);
    output.prints("no-such-host.invalid does not resolve");
}

#[test]
fn edge_is_polled_until_wait_ends() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut hook = fresh(&service, &renewed).facing(address).args(["-v", "--json"]);
    let mut child = hook.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    for _ in 0..8 {
        assert!(progress.any(|line| line.contains("waiting for the edge")));
    }
    let behind = sandbox_with(Options { edge_listen: address, ..Options::default() }, &["a.example"]);
    fresh(&behind, &renewed).succeeds();
    progress.by_ref().for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"served\""));
}

#[test]
fn deleted_site_ends_the_wait() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let listed = json!({"sites": [{"id": 77, "domain": "a.example"}], "total": 1});
    service.add_fault(Fault::status("GET /api/me/sites", 200).body(listed));
    let output = fresh(&service, &renewed).args(["--json"]).exits_with(69);
    assert_eq!(output.sites(), ["a.example: misbound"]);
    output.prints("the account no longer has this site");
}
