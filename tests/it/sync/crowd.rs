//! Many lineages at a service that fails every other request: all are deployed.

use serde_json::Value;

use crate::harness::{Fault, Fleet, sandbox, step};

const SEED: u64 = 20_261_121;

#[test]
fn lineages_converge_under_faults() {
    converge_under_faults(50);
}

#[test]
fn two_hundred_lineages_converge() {
    converge_under_faults(200);
}

fn converge_under_faults(number: usize) {
    step(&format!("seed {SEED}"));
    let fleet = Fleet::new(number);
    let service = sandbox(&fleet.names());
    service.set_random_faults(
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
    let mut runs = 0;
    loop {
        runs += 1;
        assert!(runs < 30, "it does not converge");
        let output = fleet.sync(&service).args(["--json", "--timeout", "3", "--wait", "2"]).run();
        let json: Value = output.json();
        step(&format!("run {runs}: exit {}, {}", output.code, json["counts"]));
        if output.code == 0 && json["counts"]["unchanged"] == number {
            break;
        }
    }
    fleet.assert_deployed(&service);
}
