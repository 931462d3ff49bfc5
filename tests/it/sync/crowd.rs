//! Many lineages at a service that fails every other time: all of them get there.

use serde_json::Value;
use tempfile::TempDir;

use super::{is_fed_by, sync};
use crate::harness::{Fault, Lineage, sandbox, uploads};

const LINEAGES: usize = 200;
const SEED: u64 = 20_261_121;

#[test]
fn two_hundred_lineages_converge_under_faults() {
    tell(&format!("seed {SEED}"));
    let domains: Vec<String> = (0..LINEAGES).map(|n| format!("s{n}.example")).collect();
    let edge = sandbox(&domains.iter().map(String::as_str).collect::<Vec<_>>());
    let lineages: Vec<Lineage> = domains.iter().map(|domain| Lineage::issued_for(&[domain])).collect();
    let state = TempDir::new().unwrap();
    edge.set_random_faults(
        SEED,
        [
            Fault::status("*", 500),
            Fault::status("*", 503).header("Retry-After", "0"),
            Fault::status("*", 429),
            Fault::status("*", 200).body("<html>maintenance</html>"),
            Fault::close_before("*"),
            Fault::close_after("*"),
            Fault::truncate("*", 10),
        ],
    );
    let entries =
        lineages.iter().map(|lineage| format!("[[lineage]]\npath = '{}'\n", lineage.path().display()));
    let entries: String = entries.collect();
    let mut runs = 0;
    loop {
        runs += 1;
        assert!(runs < 30, "it does not converge");
        let hook = sync(&edge, state.path()).args(["--json", "--timeout", "3", "--wait", "2"]);
        let config = hook.file("config.toml", &entries);
        let outcome = hook.args(["--config".as_ref(), config.as_os_str()]).run();
        let json: Value = outcome.json();
        tell(&format!("run {runs}: exit {}, {}", outcome.code, json["counts"]));
        if outcome.code == 0 && json["counts"]["unchanged"] == LINEAGES {
            break;
        }
    }
    for (domain, lineage) in domains.iter().zip(&lineages) {
        assert!(is_fed_by(&edge, domain, lineage), "{domain}");
    }
    assert_eq!(edge.certs().len(), LINEAGES, "one record each, after {} uploads", uploads(&edge));
}

#[expect(clippy::print_stdout, reason = "shown where the test fails, or on demand")]
fn tell(text: &str) {
    println!("{text}");
}
