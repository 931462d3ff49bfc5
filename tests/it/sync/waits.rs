//! Lineages that wait, for another run or for an edge, do not delay the others.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::harness::{
    EdgeAddress, EdgeMode, Fleet, Hook, Lineage, Sandbox, configured, is_bound_to, poll, sandbox,
    state_files, sync,
};

/// Lineages that wait.
const WAITING: usize = 40;
/// The site of the one that does not. Its leaf was issued first, so it is deployed last.
const FREE: &str = "free.example";

/// Many lineages to deploy, and a service with their sites.
struct Queue {
    service: Sandbox,
    waiting: Fleet,
    free: Lineage,
}

impl Queue {
    fn new() -> Self {
        let waiting = Fleet::new(WAITING);
        let service = sandbox(&[&waiting.names()[..], &[FREE]].concat());
        Self { service, waiting, free: Lineage::issued_days_ago(2, "free", &[FREE]) }
    }

    fn state(&self) -> &Path {
        self.waiting.state.path()
    }

    fn sync(&self) -> Hook {
        let lineages: Vec<&Lineage> = self.waiting.lineages.iter().chain([&self.free]).collect();
        configured(sync(&self.service, self.state()), &lineages)
    }

    /// The lock files of the lineages that wait.
    fn locks(&self) -> Vec<File> {
        let is_waiting = |state: &Value| !state["certificate"]["names"].to_string().contains(FREE);
        let read = |path: &Path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let states = state_files(self.state()).into_iter().filter(|path| is_waiting(&read(path)));
        states.map(|path| File::open(path.with_extension("lock")).unwrap()).collect()
    }

    /// Waits until `sync` has deployed the lineage that need not wait.
    fn await_free(&self) {
        let is_done = || is_bound_to(&self.service, FREE, &self.free).then_some(());
        poll(is_done).expect("it does not wait, too");
    }
}

fn spawn(mut sync: Hook) -> (Child, Hook) {
    let child = sync.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    (child, sync)
}

#[test]
fn held_locks_delay_no_other() {
    let mut queue = Queue::new();
    queue.sync().succeeds();
    queue
        .waiting
        .lineages
        .iter()
        .enumerate()
        .for_each(|(n, lineage)| lineage.renew(&[&format!("s{n}.example")]));
    queue.free.renew_between(&[FREE], [-1, 89]);
    let locks = queue.locks();
    assert_eq!(locks.len(), WAITING);
    for lock in &locks {
        lock.lock().unwrap();
    }
    let (mut child, _home) = spawn(queue.sync());
    queue.await_free();
    drop(locks);
    assert!(child.wait().unwrap().success());
    let last = queue.waiting.lineages.pop().unwrap();
    assert!(is_bound_to(&queue.service, &format!("s{}.example", WAITING - 1), &last));
}

#[test]
fn silent_edges_delay_no_other() {
    let queue = Queue::new();
    let silent = queue.service.open_edge_address(&EdgeAddress::new(EdgeMode::Silent));
    let entry = |lineage: &Lineage, edge: &str| {
        format!("[[lineage]]\npath = '{}'\nedge_address = '{edge}'\n", lineage.path().display())
    };
    let waiting = queue.waiting.lineages.iter().map(|lineage| entry(lineage, &silent));
    let free = entry(&queue.free, &queue.service.endpoints().edge);
    let entries: String = waiting.chain([free]).collect();
    let sync = sync(&queue.service, queue.state()).without_env("EDGECERT_EDGE_ADDRESS");
    let (mut child, _home) = spawn(sync.with_config(&entries).args(["--wait", "100"]));
    queue.await_free();
    assert!(child.try_wait().unwrap().is_none(), "the others still wait");
    child.kill().unwrap();
    child.wait().unwrap();
}
