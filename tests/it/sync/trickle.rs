//! The edges of many unchanged lineages are checked a few at a time, and unreachable ones delay nothing.

use tempfile::TempDir;

use crate::harness::{
    DAY, EdgeAddress, EdgeMode, Hook, Lineage, Sandbox, configured, sandbox, set_back, sync, upload_count,
};

const LINEAGES: usize = 100;

/// Many lineages with one certificate, all deployed.
struct Fleet {
    service: Sandbox,
    state: TempDir,
    /// Keeps the files.
    _lineages: Vec<Lineage>,
}

impl Fleet {
    fn new() -> Self {
        let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
        let first = Lineage::issued_for(&["a.example"]);
        let copies = (1..LINEAGES).map(|_| first.duplicate()).collect::<Vec<_>>();
        let lineages: Vec<Lineage> = std::iter::once(first).chain(copies).collect();
        configured(sync(&service, state.path()), &lineages.iter().collect::<Vec<_>>()).succeeds();
        assert_eq!(upload_count(&service), 1);
        service.reset_handshakes();
        Self { service, state, _lineages: lineages }
    }

    /// Runs `sync`, which finds nothing to do, and returns the number of lineages that it checks.
    fn checked(&self, edge: &str) -> usize {
        self.service.reset_handshakes();
        let output = self.sync(edge).only_lists(&self.service);
        assert_eq!(output.json()["counts"]["unchanged"], LINEAGES);
        usize::try_from(self.service.handshakes().total()).unwrap() / 4
    }

    fn sync(&self, edge: &str) -> Hook {
        sync(&self.service, self.state.path()).facing(edge).args(["--json"])
    }
}

#[test]
fn checks_are_spread_and_limited() {
    let fleet = Fleet::new();
    let edge = &fleet.service.endpoints().edge;
    // A lineage is due at its own moment of the period, which may be the present one.
    let is_settled = || (0..3).any(|_| fleet.checked(edge) == 0);
    assert!(is_settled(), "nothing is due after a deployment");
    set_back(fleet.state.path(), DAY / 4);
    let checked = fleet.checked(edge);
    // Four and a half standard deviations around a quarter of them.
    assert!((6..=44).contains(&checked), "{checked} in a quarter of the period");
    assert!(is_settled(), "once is enough");

    let slow = fleet.service.open_edge_address(&EdgeAddress::new(EdgeMode::Same).delay_ms(20));
    set_back(fleet.state.path(), DAY);
    assert_eq!(fleet.checked(&slow), LINEAGES);
    let most = fleet.service.handshakes().max_in_progress;
    assert!((8..=128).contains(&most), "{most} at a time");

    let silent = fleet.service.open_edge_address(&EdgeAddress::new(EdgeMode::Silent));
    set_back(fleet.state.path(), DAY);
    let hook = fleet.sync(&silent).args(["--timeout", "6"]);
    // The checks get a third of the time; without a limit they would take half a minute.
    let output = hook.under(&["/usr/bin/timeout", "6"]).succeeds();
    assert_eq!((&output.json()["changed"], output.stderr.as_str()), (&false.into(), ""));
    // Later runs check the rest.
    assert!(fleet.checked(edge) > LINEAGES / 2);
}
