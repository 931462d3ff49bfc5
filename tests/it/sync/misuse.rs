//! A run by hand that fails before it changes anything, and not for a temporary reason, is not recorded.

use std::fs;

use edgecert_sandbox::Authority;

use super::by_hand::{self, SITES};
use super::requests_during;
use crate::harness::{Fault, Hook, Host, at_once, state_files};

/// Names of the certificate; the account has no site for the last one.
const NAMES: [&str; 3] = ["a.example", "b.example", "c.example"];

fn host() -> Host {
    let host = by_hand::host();
    host.lineage.renew(&NAMES);
    host
}

/// Mistakes, each with its exit code.
fn mistakes(host: &Host) -> Vec<(Hook, i32)> {
    let missing = ["--cert".as_ref(), host.lineage.file("fullchain.pem").as_os_str()].map(ToOwned::to_owned);
    vec![
        (host.by_hand().for_domain("blog.example"), 65),
        (host.by_hand().for_domain("blog.example").for_domain("a.example"), 65),
        (host.by_hand().for_domain("c.example"), 69),
        (host.call().args(missing).args(["--key", "/nonexistent/privkey.pem"]), 66),
    ]
}

#[test]
fn mistake_leaves_state_as_it_was() {
    // What the hook does before, its exit code, and the exit code of `sync` afterwards.
    for (fault, code) in [(None, 0), (Some("POST /api/certs/upload"), 75)] {
        let host = host();
        if let Some(fault) = fault {
            host.service.add_fault(Fault::status(fault, 503).header("Retry-After", "3600").times(99));
        }
        host.hook().for_domain("b.example").exits_with(code);
        host.service.clear_faults();
        let before = host.recorded();
        for (hook, code) in mistakes(&host) {
            hook.exits_with(code);
            assert_eq!(host.recorded(), before);
        }
        host.sync().succeeds();
        assert_eq!(host.reached(), ["b.example"], "what was pending is done");
        host.lineage.renew(&NAMES);
        for (hook, code) in mistakes(&host) {
            hook.exits_with(code);
        }
        host.sync().succeeds();
        assert_eq!(host.reached(), ["b.example"], "the renewal is found");
    }
}

/// A file with the key of another certificate.
fn other_key(host: &Host) -> std::path::PathBuf {
    let path = host.state().with_extension("key.pem");
    fs::write(&path, &Authority::new("x").unwrap().issue(&SITES).unwrap().key).unwrap();
    path
}

/// A file with a root that the certificate does not lead to.
fn other_root(host: &Host) -> std::path::PathBuf {
    let path = host.state().with_extension("root.pem");
    fs::write(&path, Authority::new("x").unwrap().root()).unwrap();
    path
}

#[test]
fn refused_run_by_hand_leaves_state() {
    type Run = fn(&Host) -> Hook;
    let with_other_key: Run = |host| {
        let arguments =
            ["--cert".into(), host.lineage.file("fullchain.pem"), "--key".into(), other_key(host)];
        host.call().args(arguments)
    };
    let refused: [(Run, i32); 3] = [
        (with_other_key, 65),
        (|host| host.by_hand().args(["--trust-anchors".as_ref(), other_root(host).as_os_str()]), 65),
        (|host| host.by_hand().args(["--base-url", "http://127.0.0.1:1", "--timeout", "1"]), 75),
    ];
    at_once(refused.into_iter().enumerate(), |(row, (run, code))| {
        let host = host();
        host.hook().succeeds();
        let before = host.recorded();
        run(&host).exits_with(code);
        assert_eq!(host.recorded(), before, "row {row}");
        host.sync().succeeds();
        host.lineage.renew(&NAMES);
        run(&host).exits_with(code);
        assert!(host.sync().succeeds().stdout.contains("1 deployed"), "row {row}: the renewal is found");
    });

    // The pending deployment remains pending with the files and options of the hook.
    at_once(refused, |(run, code)| {
        let host = host();
        host.service
            .add_fault(Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600").times(99));
        host.hook().exits_with(75);
        host.service.clear_faults();
        let before = host.recorded();
        run(&host).exits_with(code);
        assert_eq!(host.recorded(), before);
        host.sync().succeeds();
    });
}

#[test]
fn mistake_of_a_hook_is_remembered() {
    let host = host();
    host.hook().for_domain("blog.example").exits_with(65);
    assert!(!host.recorded()["pending_since"].is_null());
    host.sync().exits_with(65);
}

/// A mistake, a run that makes it, and its exit code.
type FailureRow<'a> = (&'a str, &'a dyn Fn(&Host) -> Hook, i32);

#[test]
fn failures_by_hand_are_not_recorded() {
    let rows: [FailureRow<'_>; 5] = [
        ("no API key", &|host| host.by_hand().without_env("EDGECERT_API_KEY"), 78),
        ("wrong API key", &|host| host.by_hand().env("EDGECERT_API_KEY", "wrong"), 77),
        (
            "key of another certificate",
            &|host| {
                fs::write(
                    host.lineage.file("privkey.pem"),
                    &Authority::new("x").unwrap().issue(&SITES).unwrap().key,
                )
                .unwrap();
                host.by_hand()
            },
            65,
        ),
        (
            "untrusted issuer, and a mistake",
            &|host| {
                host.lineage
                    .save(&Authority::new("(STAGING) Pretend Pear X1").unwrap().issue(&SITES).unwrap());
                host.by_hand().for_domain("blog.example")
            },
            65,
        ),
        (
            "no covered site",
            &|host| {
                host.lineage.renew(&["new.example"]);
                host.by_hand()
            },
            69,
        ),
    ];
    for (name, run, code) in rows {
        let host = host();
        run(&host).exits_with(code);
        assert!(state_files(host.state()).is_empty(), "{name}");
    }
    for row in 0..4 {
        let host = host();
        let (hook, code) = mistakes(&host).swap_remove(row);
        hook.exits_with(code);
        let (requests, output) = requests_during(&host.service, || host.sync().succeeds());
        assert!(requests.is_empty() && output.stderr.contains("no lineage was ever deployed"), "row {row}");
    }
    let host = host();
    host.by_hand().args(["--base-url", "http://127.0.0.1:1", "--timeout", "1"]).exits_with(75);
    assert!(!host.recorded()["pending_since"].is_null(), "a temporary reason");
}
