//! State files that an earlier release wrote are read: `status` shows them, and `sync` goes on from them.
//!
//! The files in `fixtures` are those of edgecert at commit 0430ba7 for certbot's lineage `a.example`; only paths, addresses
//! and URLs were replaced by neutral ones.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Hook, Lineage, Sandbox, edgecert, sandbox, upload_count};

/// A host whose state directory holds a file of an earlier release, and a service in the state that the file describes.
struct Host {
    service: Sandbox,
    lineage: Lineage,
    state: TempDir,
}

impl Host {
    fn with(fixture: &str) -> Self {
        let domains: &[&str] =
            if fixture == "two_sites" { &["a.example", "b.example"] } else { &["a.example"] };
        let (service, state) = (sandbox(domains), TempDir::new().unwrap());
        let host = Self { service, lineage: Lineage::issued_for(domains), state };
        let deployed = host.call(&[]).args(["--json"]).succeeds().json();
        let path = host.state_file();
        let text = host.at_this_host(&fixture_text(fixture), &deployed["certificate"]["fingerprint"]);
        fs::write(path, text).unwrap();
        host
    }

    /// Replaces the neutral values of a fixture, and the fingerprint of its leaf.
    fn at_this_host(&self, text: &str, fingerprint: &Value) -> String {
        let ready = self.service.endpoints();
        let leaf = serde_json::from_str::<Value>(text).unwrap()["certificate"]["fingerprint"].clone();
        text.replace("/etc/letsencrypt/live/a.example", self.lineage.path().to_str().unwrap())
            .replace("https://api.example.net", &ready.api)
            .replace("edge.example.net:443", &ready.edge)
            .replace(leaf.as_str().unwrap(), fingerprint.as_str().unwrap())
    }

    fn call(&self, arguments: &[&str]) -> Hook {
        let hook = edgecert().called_by_certbot(&self.lineage).against(&self.service).args(arguments);
        hook.env("EDGECERT_STATE_DIR", self.state.path())
    }

    fn state_file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.state.path()).unwrap().map(|file| file.unwrap().path());
        files.find(|file| file.extension().is_some_and(|extension| extension == "json")).unwrap()
    }

    /// Summarizes the lineage's status on one line.
    fn status(&self) -> String {
        let json = self.call(&["status", "--json"]).succeeds().json();
        let lineage = &json["lineages"][0];
        let mut parts = vec![lineage["state"].as_str().unwrap().to_owned()];
        for site in lineage["sites"].as_array().unwrap() {
            let [domain, outcome] = ["domain", "outcome"].map(|field| site[field].as_str().unwrap());
            parts.push(format!("{domain} {outcome} ({})", site["on_record"]));
        }
        for field in ["pending_since", "last_success"] {
            parts.extend(lineage[field].as_str().map(|at| format!("{field} {at}")));
        }
        if let Some(error) = lineage["last_error"].as_object() {
            let at = error["at"].as_str().unwrap();
            parts.push(format!("exit code {} at {at}", error["exit_code"]));
        }
        parts.join(", ")
    }

    /// Runs `sync`; returns its summary of the lineage and the number of uploads.
    fn sync(&self) -> (String, usize) {
        let before = upload_count(&self.service);
        let stdout = self.call(&["sync"]).succeeds().shown();
        let first = stdout.lines().next().unwrap();
        let name = self.state_file().file_stem().unwrap().to_str().unwrap().to_owned();
        (first.replace(&name, "NAME"), upload_count(&self.service) - before)
    }
}

fn fixture_text(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/state/fixtures/{name}.json"));
    fs::read_to_string(file).unwrap()
}

#[test]
fn status_and_sync_read_earlier_files() {
    let rows = [
        (
            "deployed",
            "deployed, a.example served (true), last_success 2026-11-21T22:28:28Z",
            ("1 lineage: 1 unchanged (TIME)", 0),
        ),
        (
            "two_sites",
            "deployed, a.example served (true), b.example served (true), last_success 2026-11-21T22:28:32Z",
            ("1 lineage: 1 unchanged (TIME)", 0),
        ),
        (
            "upload_only",
            "deployed, a.example uploaded (true), last_success 2026-11-21T22:28:29Z",
            ("1 lineage: 1 unchanged (TIME)", 0),
        ),
        (
            "pending",
            "pending, a.example queued (null), pending_since 2026-11-21T22:28:28Z, \
             last_success 2026-11-21T22:28:28Z, exit code 75 at 2026-11-21T22:28:29.712Z",
            ("* deployed    NAME (pending since DATE (TIME)): a.example served", 0),
        ),
        (
            "refused",
            "pending, a.example refused (null), pending_since 2026-11-21T22:28:29Z, \
             exit code 69 at 2026-11-21T22:28:29.761Z",
            ("* deployed    NAME (pending since DATE (TIME)): a.example served", 0),
        ),
        (
            "interrupted",
            "pending, pending_since 2026-11-21T22:28:32Z",
            ("* deployed    NAME (pending since DATE (TIME)): a.example served", 0),
        ),
        (
            "missing",
            "deployed, a.example served (true), last_success 2026-11-21T22:28:30Z",
            ("* deployed    NAME (its files are back): a.example served", 0),
        ),
    ];
    for (fixture, status, (line, uploads)) in rows {
        let host = Host::with(fixture);
        assert_eq!(host.status(), status, "{fixture}");
        assert_eq!(host.sync(), (line.to_owned(), uploads), "{fixture}");
        assert_eq!(host.sync(), ("1 lineage: 1 unchanged (TIME)".to_owned(), 0), "{fixture}");
    }
}

#[test]
fn missing_files_are_reported_once() {
    let host = Host::with("missing");
    fs::remove_file(host.lineage.file("fullchain.pem")).unwrap();
    assert!(host.status().starts_with("gone, "), "{}", host.status());
    assert_eq!(host.sync(), ("1 lineage: 1 gone (TIME)".to_owned(), 0));
}
