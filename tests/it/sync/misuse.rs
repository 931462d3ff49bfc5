//! A run by hand that fails before it changes anything, and not for a temporary reason, is not recorded.

use std::fs;
use std::path::PathBuf;

use super::by_hand::{self, SITES};
use crate::harness::{Authority, Hook, Host, at_once, state_files};

/// Names of the certificate; the account has no site for the last one.
const NAMES: [&str; 3] = ["a.example", "b.example", "c.example"];

fn host() -> Host {
    let host = by_hand::host();
    host.lineage.renew(&NAMES);
    host
}

/// A run by hand that fails.
type Run = fn(&Host) -> Hook;

/// Mistakes, each with its exit code.
const MISTAKES: [(Run, i32); 7] = [
    (|host| host.by_hand().for_domain("blog.example"), 65),
    (|host| host.by_hand().for_domain("blog.example").for_domain("a.example"), 65),
    (|host| host.by_hand().for_domain("c.example"), 69),
    (|host| with_key(host, "/nonexistent/privkey.pem".into()), 66),
    (
        |host| {
            let key = host.state().with_extension("key.pem");
            fs::write(&key, other_ca().issue(&SITES).unwrap().key).unwrap();
            with_key(host, key)
        },
        65,
    ),
    (
        |host| {
            let root = host.state().with_extension("root.pem");
            fs::write(&root, other_ca().root()).unwrap();
            host.by_hand().args(["--trust-anchors".as_ref(), root.as_os_str()])
        },
        65,
    ),
    (|host| host.by_hand().args(["--base-url", "http://127.0.0.1:1", "--timeout", "1"]), 75),
];

fn with_key(host: &Host, key: PathBuf) -> Hook {
    host.call().args(["--cert".into(), host.lineage.file("fullchain.pem"), "--key".into(), key])
}

fn other_ca() -> Authority {
    Authority::new("x").unwrap()
}

#[test]
fn mistake_leaves_state_as_it_was() {
    let rows = MISTAKES.into_iter().flat_map(|mistake| [(mistake, false), (mistake, true)]);
    at_once(rows, |((run, code), is_pending)| {
        let host = host();
        let hook = host.hook().for_domain("b.example");
        if is_pending {
            hook.fails_temporarily_at(&host.service, "POST /api/certs/upload");
        } else {
            hook.succeeds();
        }
        let before = host.recorded();
        run(&host).exits_with(code);
        assert_eq!(host.recorded(), before);
        host.sync().succeeds();
        assert_eq!(host.reached(), ["b.example"], "what was pending is done");
        host.lineage.renew(&NAMES);
        run(&host).exits_with(code);
        host.sync().succeeds().prints("1 deployed");
        assert_eq!(host.reached(), ["b.example"], "the renewal is found");
    });
}

#[test]
fn mistake_of_a_hook_is_remembered() {
    let host = host();
    host.hook().for_domain("blog.example").exits_with(65);
    assert!(!host.recorded()["pending_since"].is_null());
    host.sync().exits_with(65);
}

#[test]
fn failures_by_hand_are_not_recorded() {
    let rows: [(Run, i32); 5] = [
        (|host| host.by_hand().without_env("EDGECERT_API_KEY"), 78),
        (|host| host.by_hand().env("EDGECERT_API_KEY", "wrong"), 77),
        (
            |host| {
                host.lineage.write("privkey.pem", &other_ca().issue(&SITES).unwrap().key);
                host.by_hand()
            },
            65,
        ),
        (
            |host| {
                // Not only a mistake, but also an untrusted issuer.
                host.lineage.save(&Authority::new("(STAGING) Pear").unwrap().issue(&SITES).unwrap());
                host.by_hand().for_domain("blog.example")
            },
            65,
        ),
        (
            |host| {
                host.lineage.renew(&["new.example"]);
                host.by_hand()
            },
            69,
        ),
    ];
    at_once(MISTAKES.into_iter().chain(rows), |(run, code)| {
        let host = host();
        run(&host).exits_with(code);
        // A failure for a temporary reason is retried.
        assert_eq!(state_files(host.state()).len(), usize::from(code == 75), "exit code {code}");
    });
}
