//! The real hook against fifty seeds: the outcome never depends on what the document leaves open.

use std::process::Command;

use edgecert_sandbox::{Authority, Options, Sandbox};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{hook, plain, served};

const SEEDS: u64 = 50;

/// A sandbox with a seed, and the lineage that the hook deploys to it.
struct Rehearsal {
    sandbox: Sandbox,
    authority: Authority,
    lineage: TempDir,
    seed: u64,
}

impl Rehearsal {
    fn new(seed: u64) -> Self {
        let mut options = Options { quirks: seed, ..plain() };
        options.world.certs.clear();
        Self {
            sandbox: Sandbox::start(options).unwrap(),
            authority: Authority::new("seeds").unwrap(),
            lineage: TempDir::new().unwrap(),
            seed,
        }
    }

    /// Renews the lineage, runs `edgecert deploy`, asserts its exit code and returns its report.
    #[track_caller]
    fn deploy(&self, api_key: &str, args: &[&str], exit_code: i32) -> Value {
        let issued = self.authority.issue(&["a.example", "b.example", "o.example"]).unwrap();
        let path = |name: &str| self.lineage.path().join(name);
        std::fs::write(path("fullchain.pem"), issued.fullchain()).unwrap();
        std::fs::write(path("privkey.pem"), &issued.key).unwrap();
        std::fs::write(path("config.toml"), "").unwrap();
        let output = Command::new(hook())
            .args(["deploy", "--json", "--lineage"])
            .arg(self.lineage.path())
            .args(args)
            .env_clear()
            .env("EDGECERT_CONFIG", path("config.toml"))
            .env("EDGECERT_STATE_DIR", path("state"))
            .env("EDGECERT_BASE_URL", &self.sandbox.endpoints().api)
            .env("EDGECERT_EDGE_ADDRESS", &self.sandbox.endpoints().edge)
            .env("EDGECERT_API_KEY", api_key)
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit_code), "seed {}: {text}", self.seed);
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    fn record_ids(&self) -> Vec<Value> {
        self.sandbox.certs().into_iter().map(|record| record["id"].clone()).collect()
    }
}

#[test]
fn hook_deploys_under_every_seed() {
    for seed in 0..SEEDS {
        let rehearsal = Rehearsal::new(seed);
        for created in [true, false] {
            let report = rehearsal.deploy("sandbox-key", &[], 0);
            assert_eq!(report["uploads"][0]["created"], created, "seed {seed}: {report}");
            assert_eq!(report["uploads"][0]["id"], 1001, "seed {seed}: {report}");
            assert_eq!(rehearsal.record_ids(), [1001], "seed {seed}");
            let leaf = report["certificate"]["fingerprint"].as_str().map(str::to_owned);
            for domain in ["a.example", "b.example"] {
                assert_eq!(
                    served(&rehearsal.sandbox.endpoints().edge, domain),
                    leaf,
                    "seed {seed}: {domain}"
                );
            }
        }
    }
}

#[test]
fn hook_reports_refusals_under_every_seed() {
    for seed in 0..SEEDS {
        let rehearsal = Rehearsal::new(seed);
        let refused = rehearsal.deploy("sandbox-key", &["--domain", "o.example"], 69);
        assert_eq!(refused["ok"], false, "seed {seed}");
        rehearsal.deploy("wrong", &[], 77);
        assert!(rehearsal.record_ids().is_empty(), "seed {seed}");
    }
}
