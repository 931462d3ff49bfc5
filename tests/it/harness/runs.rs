//! Runs of `deploy` and `sync` that share a state directory, and what they do to the service.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Hook, Lineage, Sandbox, edgecert, edit_state, request_lines, sandbox, set_back, state_files};

/// The requests of a run that has nothing to send, sorted.
pub(crate) const LISTING: [&str; 2] = ["GET /api/certs", "GET /api/me/sites"];

/// A run of the lineage's hook with an empty state directory.
pub(crate) fn fresh(service: &Sandbox, lineage: &Lineage) -> Hook {
    edgecert().called_by_certbot(lineage).against(service)
}

/// As [`fresh`], but the service rejects the API key.
pub(crate) fn with_rejected_key(service: &Sandbox, lineage: &Lineage) -> Hook {
    fresh(service, lineage).env("EDGECERT_API_KEY", "another-key-than-its")
}

/// A hook whose state directory outlives it.
pub(crate) fn deploy(service: &Sandbox, lineage: &Lineage, state: &Path) -> Hook {
    fresh(service, lineage).with_state(state)
}

/// A `sync` with the same state directory.
pub(crate) fn sync(service: &Sandbox, state: &Path) -> Hook {
    edgecert().against(service).with_state(state).args(["sync"])
}

/// A host with one lineage, its state directory, and the service that it deploys to.
pub(crate) struct Host {
    pub(crate) service: Sandbox,
    pub(crate) lineage: Lineage,
    pub(crate) directory: TempDir,
}

impl Host {
    /// A host with a certificate for `a.example`, the only site of its service.
    pub(crate) fn new() -> Self {
        Self::with(&["a.example"], &["a.example"])
    }

    /// A host with a certificate for these names, and a service with these sites.
    pub(crate) fn with(sites: &[&str], names: &[&str]) -> Self {
        Self::of(sandbox(sites), names)
    }

    /// A host with a certificate for these names, and this service.
    pub(crate) fn of(service: Sandbox, names: &[&str]) -> Self {
        Self { service, lineage: Lineage::issued_for(names), directory: TempDir::new().unwrap() }
    }

    /// A host whose only site has the certificate.
    pub(crate) fn deployed() -> Self {
        let host = Self::new();
        host.hook().succeeds();
        host
    }

    /// The state directory.
    pub(crate) fn state(&self) -> &Path {
        self.directory.path()
    }

    /// A run of the lineage's hook.
    pub(crate) fn hook(&self) -> Hook {
        deploy(&self.service, &self.lineage, self.state())
    }

    /// A run that no hook started, still without a command.
    pub(crate) fn call(&self) -> Hook {
        edgecert().against(&self.service).with_state(self.state())
    }

    /// A run for the lineage that a user starts.
    pub(crate) fn by_hand(&self) -> Hook {
        self.call().args(["--lineage".as_ref(), self.lineage.path()])
    }

    pub(crate) fn sync(&self) -> Hook {
        sync(&self.service, self.state())
    }

    /// `status`, without the URL of the service and without the API key.
    pub(crate) fn status(&self, arguments: &[&str]) -> Hook {
        edgecert().args(["status"]).args(arguments).with_state(self.state())
    }

    /// The only state file.
    #[track_caller]
    pub(crate) fn state_file(&self) -> PathBuf {
        let mut files = state_files(self.state());
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    /// The contents of the only state file.
    #[track_caller]
    pub(crate) fn recorded(&self) -> Value {
        serde_json::from_slice(&fs::read(self.state_file()).unwrap()).unwrap()
    }

    /// Edits the only state file.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Value)) {
        edit_state(&self.state_file(), change);
    }

    /// Sets the times of all runs back by this many seconds.
    pub(crate) fn set_back(&self, seconds: i64) {
        set_back(self.state(), seconds);
    }

    /// The name of the lineage, that of its state file.
    pub(crate) fn name(&self) -> String {
        self.state_file().file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// Whether a site is bound to a record that holds the lineage's leaf.
    pub(crate) fn is_bound(&self, domain: &str) -> bool {
        is_bound_to(&self.service, domain, &self.lineage)
    }
}

/// Lineages for sites of their own, and a state directory.
pub(crate) struct Fleet {
    pub(crate) domains: Vec<String>,
    pub(crate) lineages: Vec<Lineage>,
    pub(crate) state: TempDir,
}

impl Fleet {
    /// The sites are `s0.example`, `s1.example` and so on.
    pub(crate) fn new(number: usize) -> Self {
        let domains: Vec<String> = (0..number).map(|n| format!("s{n}.example")).collect();
        let lineages = domains.iter().map(|domain| Lineage::issued_for(&[domain])).collect();
        Self { domains, lineages, state: TempDir::new().unwrap() }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.domains.iter().map(String::as_str).collect()
    }

    /// A `sync` of all lineages.
    pub(crate) fn sync(&self, service: &Sandbox) -> Hook {
        configured(sync(service, self.state.path()), &self.lineages.iter().collect::<Vec<_>>())
    }

    #[track_caller]
    pub(crate) fn assert_deployed(&self, service: &Sandbox) {
        for (domain, lineage) in self.domains.iter().zip(&self.lineages) {
            assert!(is_bound_to(service, domain, lineage), "{domain}");
        }
        assert_eq!(service.certs().len(), self.lineages.len(), "one record each");
    }
}

/// Whether a site is bound to a record that holds the lineage's leaf.
pub(crate) fn is_bound_to(service: &Sandbox, domain: &str, lineage: &Lineage) -> bool {
    let site = service.sites().into_iter().find(|site| site["domain"] == domain).unwrap();
    let record = service.certs().into_iter().find(|record| record["id"] == site["cert_id"]);
    record.is_some_and(|record| record["cert_pem"] == lineage.read("fullchain.pem"))
}

/// The requests that a sandbox receives during an action.
pub(crate) fn requests_during<T>(service: &Sandbox, action: impl FnOnce() -> T) -> (Vec<String>, T) {
    let before = request_lines(service).len();
    let result = action();
    let mut requests = request_lines(service).split_off(before);
    requests.sort();
    (requests, result)
}

/// Runs all rows at the same time, because each waits most of its time, and returns their results in order.
pub(crate) fn at_once<T: Send, R: Send>(
    rows: impl IntoIterator<Item = T>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = rows.into_iter().map(|row| scope.spawn(move || run(row))).collect();
        let results = running.into_iter().map(|row| row.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.collect()
    })
}

/// Runs all rows, this many at the same time, and returns their results in any order.
pub(crate) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    rows: impl IntoIterator<Item = T, IntoIter: Send>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let rows = Mutex::new(rows.into_iter());
    let next = || rows.lock().unwrap().next();
    let results = at_once(0..threads, |_| std::iter::from_fn(next).map(&run).collect::<Vec<_>>());
    results.into_iter().flatten().collect()
}

/// Adds a configuration file with lineages.
pub(crate) fn configured(hook: Hook, lineages: &[&Lineage]) -> Hook {
    let entry = |lineage: &&Lineage| format!("[[lineage]]\npath = '{}'\n", lineage.path().display());
    let config = hook.write_file("config.toml", &lineages.iter().map(entry).collect::<String>());
    hook.args(["--config".as_ref(), config.as_os_str()])
}

/// Changes the service without edgecert.
pub(crate) fn change(service: &Sandbox, path: &str, body: &Value) {
    let ready = service.endpoints();
    let request = ureq::post(format!("{}{path}", ready.api));
    request.header("Authorization", format!("Bearer {}", ready.api_key)).send_json(body).unwrap();
}

/// Binds a site to a record, or to none, without edgecert.
pub(crate) fn bind(service: &Sandbox, domain: &str, record: Option<u64>) {
    let site = service.sites().into_iter().find(|site| site["domain"] == domain).unwrap();
    change(service, &format!("/api/sites/{}/update", site["id"]), &json!({"cert_id": record}));
}
