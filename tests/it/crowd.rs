//! Many concurrent hooks with one state directory, as when several clients renew in the same minute. (certbot runs its own
//! hooks one after another, and only one certbot runs at a time.)

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::{Fleet, Hook, Lineage, assert_contains, fresh, sandbox, state_files, upload_count};

const CROWD: usize = 50;

#[test]
fn fifty_concurrent_hooks_succeed() {
    let fleet = Fleet::new(CROWD);
    let (service, names, lineages) = (sandbox(&fleet.names()), fleet.names(), &fleet.lineages);
    // The first certificate of each lineage, then its renewal.
    for round in 1..=2 {
        let call = |lineage: &Lineage| {
            let hook = fresh(&service, lineage).args(["--json"]);
            hook.with_state(fleet.state.path())
        };
        let mut hooks: Vec<Hook> = lineages.iter().map(call).collect();
        let start =
            |hook: &mut Hook| hook.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let running: Vec<Child> = hooks.iter_mut().map(start).collect();
        for (child, name) in running.into_iter().zip(&names) {
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !stderr.contains("warning"), "{name}: {stderr}");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_contains(&report["sites"], &json!([{"domain": name, "outcome": "served"}]));
        }
        fleet.assert_deployed(&service);
        assert_eq!(upload_count(&service), CROWD * round);
        lineages.iter().zip(&names).for_each(|(lineage, name)| lineage.renew(&[name]));
        assert_eq!(state_files(fleet.state.path()).len(), CROWD);
    }
}
