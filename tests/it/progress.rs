//! Progress on a terminal: shown while a run waits, erased afterwards.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use tempfile::TempDir;

use crate::harness::{Hook, Lineage, Sandbox, fresh, sandbox, sandbox_and_lineage, screen, sync};

/// A service whose edge never gets the certificate, and a lineage to deploy.
fn stale() -> (Sandbox, Lineage) {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    deploy(&service, &lineage).succeeds();
    lineage.renew(&["a.example"]);
    service.hold_pushes(true);
    (service, lineage)
}

fn deploy(service: &Sandbox, lineage: &Lineage) -> Hook {
    fresh(service, lineage).env("EDGECERT_WAIT", "2")
}

#[test]
fn progress_is_shown_and_erased() {
    let (service, lineage) = stale();
    for arguments in [&[][..], &["-v"]] {
        let shown = deploy(&service, &lineage).args(arguments).shows_on_terminal(80);
        assert_eq!(shown.code, 75, "{}", shown.text);
        for step in ["checking  certificate", "reading   sites", "waiting   edge push, up to 2 s"] {
            assert!(shown.text.contains(step), "{step}: {}", shown.text);
        }
        let screen = screen(&shown.text);
        for step in ["checking", "reading", "edge push"] {
            assert!(!screen.contains(step), "{step}: {screen}");
        }
        assert!(!arguments.is_empty() || screen.starts_with("a.example   P-256"), "{screen}");
        assert!(screen.contains("\n  ✗ stale     a.example  0/1\nfailed after "), "{screen}");
    }
}

#[test]
fn progress_needs_a_smart_terminal() {
    let (service, lineage) = stale();
    let hook = || deploy(&service, &lineage);
    let piped = hook().exits_with(75);
    let dumb = hook().env("TERM", "dumb").shows_on_terminal(80).text;
    for text in [dumb, piped.stdout + &piped.stderr] {
        assert!(text.contains("failed after ") && !text.contains("edge push"), "{text}");
        assert!(!text.contains('\r') && !text.contains("[2K"), "{text:?}");
    }
    let shown = hook().shows_on_terminal(80).text;
    assert!(shown.contains("waiting   edge push"), "{shown}");
}

#[test]
fn sync_counts_lineages() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineages = ["a.example", "b.example"].map(|name| Lineage::issued_for(&[name]));
    for lineage in &lineages {
        deploy(&service, lineage).with_state(state.path()).succeeds();
    }
    lineages.iter().zip(["a.example", "b.example"]).for_each(|(lineage, name)| lineage.renew(&[name]));
    service.hold_pushes(true);
    let shown = sync(&service, state.path()).args(["--wait", "2"]).shows_on_terminal(80);
    assert_eq!(shown.code, 75, "{}", shown.text);
    assert!(shown.text.contains(" of 2 lineages"), "{}", shown.text);
    let screen = screen(&shown.text);
    assert!(screen.starts_with("✗ failed") && !screen.contains(" of 2 lineages"), "{screen}");
}

#[test]
fn interrupt_leaves_the_terminal_usable() {
    let (service, lineage) = stale();
    let mut hook = deploy(&service, &lineage).env("EDGECERT_WAIT", "60");
    let mut child = hook.on_terminal(80).stdin(Stdio::piped()).spawn().unwrap();
    let (mut output, mut text) = (child.stdout.take().unwrap(), String::new());
    let mut buffer = [0; 4096];
    let mut is_interrupted = false;
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        if text.contains("edge push") && !is_interrupted {
            child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
            is_interrupted = true;
        }
    }
    child.wait().unwrap();
    assert!(is_interrupted && !text.contains("failed after"), "{text}");
    assert!(!text.contains("[?25l"), "the cursor was never hidden: {text:?}");
}
