//! The edge acceleration service of `edge-api.md`, for rehearsal and tests: all endpoints, rules and states on
//! SQLite, an asynchronous push, an edge that serves what was pushed, faults on demand, and quirks for what the
//! document leaves open. It shares no code with the hook, so that one cannot hide the other's mistakes.
//!
//! [`Sandbox`] is blocking and runs a thread of its own; a test needs no runtime.

mod api;
mod app;
mod authority;
mod cert;
mod clock;
mod control;
mod edge;
mod error;
mod faults;
mod key;
mod names;
mod openapi;
mod options;
mod probe;
mod push;
mod quirks;
mod rehearse;
mod request_log;
mod response;
mod server;
mod site_fields;
mod store;
mod transport;
mod validation;
mod world;

use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use app::App;
pub use authority::{Authority, IssuedCert};
use edge::table::Memo;
pub use error::Error;
pub use faults::{Fault, FaultAction};
pub use options::{Endpoints, Options};
pub use probe::{ProbeResult, probe, probe_with_alpn};
use quirks::Quirks;
pub use rehearse::{Hook, Line, rehearse};
pub use request_log::RecordedRequest;
use store::Store;
use store::sites::{self, New};
use store::{certs, packages};
pub use world::{Account, Cert, Package, Site, World};

/// A running service. Dropping it ends it and frees its ports.
pub struct Sandbox {
    app: Arc<App>,
    endpoints: Endpoints,
    resumed: bool,
    notices: Option<mpsc::UnboundedReceiver<String>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Holds the CA file of an API over HTTPS.
    _files: Option<TempDir>,
}

impl Sandbox {
    /// Starts a service; when this returns, its ports answer.
    pub fn start(options: Options) -> Result<Self, Error> {
        options.check()?;
        let store = Store::open(options.data.as_deref(), &options.world, clock::now().as_second())?;
        let resumed = !store.fresh;
        let api_key = store.first_key()?.unwrap_or_default();
        let (tell, notices) = mpsc::unbounded_channel();
        let app = Arc::new(App::new(store, Quirks::new(options.quirks), options.push_delay, tell));
        let mut memo = Memo::default();
        for snapshot in &store::edge::list(app.store().read())? {
            app.edge.put(snapshot, &mut memo);
        }
        let (tls, files) = if options.tls {
            server::tls().map(|(tls, files)| (Some(tls), Some(files)))?
        } else {
            (None, None)
        };
        let ca_file = files.as_ref().map(|files| files.path().join(server::CA_FILE));
        let (stop, stopped) = oneshot::channel();
        let (thread, addresses) = server::start(app.clone(), options, tls, stopped)?;
        let scheme = if ca_file.is_some() { "https" } else { "http" };
        let endpoints = Endpoints {
            api: format!("{scheme}://{}", addresses.api),
            edge: addresses.edge.to_string(),
            control: format!("http://{}", addresses.control),
            api_key,
            ca_file,
        };
        Ok(Self {
            app,
            endpoints,
            resumed,
            notices: Some(notices),
            stop: Some(stop),
            thread: Some(thread),
            _files: files,
        })
    }

    /// Where it is.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Whether the data directory held a world already, so that the one in the options was not used.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// What a person at the terminal would want to know, as it happens. The first caller gets it.
    pub fn take_notices(&mut self) -> Option<mpsc::UnboundedReceiver<String>> {
        self.notices.take()
    }

    /// What was asked of the API so far, in the order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.app.journal.list()
    }

    /// Lets a fault wait for its requests.
    pub fn add_fault(&self, fault: Fault) {
        self.app.faults.add([fault]);
    }

    /// Takes back the faults that still wait.
    pub fn clear_faults(&self) {
        self.app.faults.clear();
    }

    /// From now on every other request is struck by one of these faults, by chance.
    pub fn set_random_faults(&self, seed: u64, faults: impl IntoIterator<Item = Fault>) {
        self.app.faults.rain(seed, faults);
    }

    /// Adds a site without a certificate to the first account, already pushed, and returns its number.
    ///
    /// # Panics
    /// When the domain is a site already, or none can be called so.
    #[track_caller]
    #[expect(clippy::panic, reason = "for tests, where a world that cannot be set up is a failure")]
    pub fn add_site(&self, domain: &str) -> u64 {
        match self.try_add_site(domain) {
            Ok(id) => id,
            Err(error) => panic!("cannot add the site {domain}: {error}"),
        }
    }

    /// Every site of every account as the API shows it, with its `account`.
    pub fn sites(&self) -> Vec<Value> {
        let sites = sites::list(self.app.store().read(), None).unwrap_or_default();
        let shown = sites.iter().map(|site| {
            let mut value = api::render::site(&Quirks::new(0), site);
            if let Value::Object(map) = &mut value {
                map.insert("account".to_owned(), json!(site.account));
            }
            value
        });
        shown.collect()
    }

    /// Every stored certificate record; of its key only `key_sha256`.
    pub fn certs(&self) -> Vec<Value> {
        let certs = certs::list(self.app.store().read(), None).unwrap_or_default();
        let shown = certs.iter().map(|cert| {
            json!({
                "id": cert.id, "account": cert.account, "domain": cert.domain, "name": cert.name,
                "type": cert.kind, "cert_pem": cert.cert_pem, "key_sha256": request_log::fingerprint(&cert.key_pem),
            })
        });
        shown.collect()
    }

    /// What each name is served, as `GET /edge` on the control port shows it.
    pub fn edge(&self) -> Vec<Value> {
        self.app.edge.list()
    }

    /// Finishes every pending push before it returns.
    pub fn push_now(&self) {
        if let Err(error) = push::now(&self.app) {
            self.app.notice(&format!("a push failed: {error}"));
        }
    }

    /// While held, changes are pushed by [`Sandbox::push_now`] only.
    pub fn hold_pushes(&self, held: bool) {
        self.app.pushes.hold(held);
    }

    fn try_add_site(&self, domain: &str) -> Result<u64, Error> {
        if !names::is_domain(domain) {
            return Err(Error::InvalidWorld("it is not a domain".to_owned()));
        }
        let now = clock::now().as_second();
        let mut store = self.app.store();
        let id = store.write(|t| {
            let account = t.query_row("SELECT min(id) FROM account", [], |row| row.get(0))?;
            let package = packages::pick(t, account, now)?.map(|package| package.id);
            let settings = Value::Object(site_fields::defaults());
            let new = New {
                id: None,
                account,
                domain,
                enabled: true,
                cert_id: None,
                package_id: package,
                settings: &settings,
                push_at: None,
                now,
            };
            let id = sites::insert(t, &new)?;
            store::edge::push_site(t, id)?;
            Ok::<_, Error>(id)
        })?;
        push::show(&self.app, store.read(), id, &mut Memo::default())?;
        u64::try_from(id).map_err(|error| Error::InvalidWorld(error.to_string()))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
