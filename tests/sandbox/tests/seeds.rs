//! The real hook under fifty seeds: whatever the service makes of what its document leaves open, the outcome is
//! the same. The hook is `EDGECERT_BIN`, else the `edgecert` that the workspace's build leaves beside the sandbox.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use edgecert_sandbox::{Account, Authority, Options, Package, Sandbox, Site, World, probe};
use serde_json::{Map, Value};
use tempfile::TempDir;

const SEEDS: u64 = 50;

#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
fn hook() -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_edgecert-sandbox")).with_file_name("edgecert");
    let hook = std::env::var_os("EDGECERT_BIN").map_or_else(beside, PathBuf::from);
    assert!(hook.is_file(), "the hook is needed at {}: cargo build, or set EDGECERT_BIN", hook.display());
    hook
}

/// A sandbox, a lineage for its sites, and the hook between them.
struct Scene {
    sandbox: Sandbox,
    authority: Authority,
    files: TempDir,
    seed: u64,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let package =
            |id| Package { id, expires_at: jiff::Timestamp::MAX, traffic_limit: 10, traffic_used: 0 };
        let account =
            |id, key: &str| Account { id, api_keys: vec![key.to_owned()], packages: vec![package(id)] };
        let site = |id, account, domain: &str| Site {
            id,
            account,
            domain: domain.to_owned(),
            cert_id: None,
            package_id: None,
            enabled: true,
            settings: Map::new(),
        };
        let world = World {
            accounts: vec![account(1, "sandbox-key"), account(2, "other-key")],
            sites: vec![site(10, 1, "a.example"), site(11, 1, "b.example"), site(20, 2, "o.example")],
            certs: Vec::new(),
        };
        let sandbox = Sandbox::start(Options { world, quirks: seed, ..Options::default() }).unwrap();
        Self { sandbox, authority: Authority::new("seeds").unwrap(), files: TempDir::new().unwrap(), seed }
    }

    /// Renews the lineage and calls the hook; its report and the new leaf's fingerprint.
    #[track_caller]
    fn deploys(&self, key: &str, more: &[&str], expected: i32) -> Value {
        let issued = self.authority.issue(&["a.example", "b.example", "o.example"]).unwrap();
        let path = |name: &str| self.files.path().join(name);
        std::fs::write(path("fullchain.pem"), issued.fullchain()).unwrap();
        std::fs::write(path("privkey.pem"), &issued.key).unwrap();
        std::fs::write(path("config.toml"), "").unwrap();
        let output = Command::new(hook())
            .args(["deploy", "--json", "--lineage"])
            .arg(self.files.path())
            .args(more)
            .env_clear()
            .env("EDGECERT_CONFIG", path("config.toml"))
            .env("EDGECERT_STATE_DIR", path("state"))
            .env("EDGECERT_BASE_URL", &self.sandbox.endpoints().api)
            .env("EDGECERT_EDGE_ADDRESS", &self.sandbox.endpoints().edge)
            .env("EDGECERT_API_KEY", key)
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "seed {}: {said}", self.seed);
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    fn served(&self, domain: &str) -> Option<String> {
        probe(&self.sandbox.endpoints().edge, domain).ok().map(|seen| seen.fingerprint)
    }

    fn records(&self) -> Vec<Value> {
        self.sandbox.certs().into_iter().map(|record| record["id"].clone()).collect()
    }
}

#[test]
fn the_hook_deploys_and_renews_under_every_seed() {
    for seed in 0..SEEDS {
        let scene = Scene::new(seed);
        for created in [true, false] {
            let report = scene.deploys("sandbox-key", &[], 0);
            assert_eq!(report["uploads"][0]["created"], created, "seed {seed}: {report}");
            assert_eq!(report["uploads"][0]["id"], 1001, "seed {seed}: {report}");
            assert_eq!(scene.records(), [1001], "seed {seed}");
            let leaf = report["certificate"]["fingerprint"].as_str().map(str::to_owned);
            for domain in ["a.example", "b.example"] {
                assert_eq!(scene.served(domain), leaf, "seed {seed}: {domain}");
            }
        }
    }
}

#[test]
fn the_hook_understands_every_refusal_under_every_seed() {
    for seed in 0..SEEDS {
        let scene = Scene::new(seed);
        let not_a_site = scene.deploys("sandbox-key", &["--domain", "o.example"], 69);
        assert_eq!(not_a_site["ok"], false, "seed {seed}");
        scene.deploys("wrong", &[], 77);
        assert!(scene.records().is_empty(), "seed {seed}");
    }
}
