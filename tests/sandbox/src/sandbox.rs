//! A running sandbox and what a test can do with it.

use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::api::render::Renderer;
use crate::app::App;
use crate::digest;
use crate::edge::handshakes::Handshakes;
use crate::edge::table::TlsCache;
use crate::error::Error;
use crate::faults::Fault;
use crate::options::{Endpoints, Options};
use crate::quirks::Quirks;
use crate::request_log::RecordedRequest;
use crate::server::{self, Server};
use crate::store::sites::{self, Site};
use crate::store::{self, Store, certs, packages};
use crate::transport::{AbortHandle, HttpResponse};
use crate::{api, clock, control, names, push, site_fields};

/// A running sandbox. Dropping it stops it and frees its ports.
pub struct Sandbox {
    pub(crate) app: Arc<App>,
    endpoints: Endpoints,
    is_resumed: bool,
    notices: Option<mpsc::UnboundedReceiver<String>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The runtime of the thread.
    pub(crate) runtime: Handle,
    /// Holds the CA file of an API over HTTPS.
    _tls_files: Option<TempDir>,
}

impl Sandbox {
    /// Starts a sandbox and returns once its ports accept connections.
    #[expect(clippy::needless_pass_by_value, reason = "every caller makes its options for one sandbox")]
    pub fn start(options: Options) -> Result<Self, Error> {
        options.check()?;
        let store = Store::open(options.data.as_deref(), &options.world, clock::now().as_second())?;
        let is_resumed = !store.is_new;
        let api_key = store.first_key()?.unwrap_or_default();
        let (notice_sender, notices) = mpsc::unbounded_channel();
        let app = App::new(store, Quirks::new(options.quirks), options.push_delay, notice_sender);
        let app = Arc::new(app);
        load_edge(&app)?;
        let (tls, tls_files) = if options.tls { Some(server::create_tls()?) } else { None }.unzip();
        let ca_file = tls_files.as_ref().map(|files| files.path().join(server::CA_FILE));
        let (stop, stopped) = oneshot::channel();
        let Server { thread, runtime, api, edge, control } = server::start(&app, &options, tls, stopped)?;
        let scheme = if ca_file.is_some() { "https" } else { "http" };
        let endpoints = Endpoints {
            api: format!("{scheme}://{api}"),
            edge: edge.to_string(),
            control: format!("http://{control}"),
            api_key,
            ca_file,
        };
        Ok(Self {
            app,
            endpoints,
            is_resumed,
            notices: Some(notices),
            stop: Some(stop),
            thread: Some(thread),
            runtime,
            _tls_files: tls_files,
        })
    }

    /// Returns where to reach the sandbox, and with which credentials.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Returns whether the data directory already held a database, so that [`Options::world`] was ignored.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Returns the receiver of lines for the terminal; `None` after the first call.
    pub fn take_notices(&mut self) -> Option<mpsc::UnboundedReceiver<String>> {
        self.notices.take()
    }

    /// Handles a request to the API as if it had arrived on a connection with the number 0. A fault that closes the
    /// connection would never return.
    pub fn call_api(&self, request: Request<String>) -> Response<Bytes> {
        let request = request.map(Full::from);
        let response = api::handle(self.app.clone(), 0, request, AbortHandle::default());
        self.runtime.block_on(async { complete(response.await).await })
    }

    /// Handles a request to the control port.
    pub fn call_control(&self, request: Request<String>) -> Response<Bytes> {
        let response = control::handle(self.app.clone(), request);
        self.runtime.block_on(async { complete(response.await).await })
    }

    /// Returns the API requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.app.request_log.list()
    }

    /// Queues a fault.
    ///
    /// # Panics
    /// If the fault can never apply, as `POST /faults` decides.
    #[track_caller]
    pub fn add_fault(&self, fault: Fault) {
        self.app.faults.add([checked(fault)]);
    }

    /// Removes the queued faults.
    pub fn clear_faults(&self) {
        self.app.faults.clear();
    }

    /// Applies a random one of these faults to every other request on average, until the sandbox stops.
    ///
    /// # Panics
    /// If one of the faults can never apply.
    #[track_caller]
    pub fn set_random_faults(&self, seed: u64, faults: impl IntoIterator<Item = Fault>) {
        self.app.faults.set_random(seed, faults.into_iter().map(checked));
    }

    /// Adds a pushed site without a certificate to the first account and returns its ID.
    ///
    /// # Panics
    /// If the domain is invalid or already has a site.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
    pub fn add_site(&self, domain: &str) -> u64 {
        match self.try_add_site(domain) {
            Ok(id) => id,
            Err(error) => panic!("cannot add the site {domain}: {error}"),
        }
    }

    /// Returns the sites of all accounts as the API shows them without quirks, each with its `account`.
    pub fn sites(&self) -> Vec<Value> {
        let plain = Quirks::new(0);
        let sites = sites::list(self.app.store().read(), None).unwrap_or_default();
        let with_account = sites.iter().map(|site| {
            let mut value = Renderer::new(&plain).site(site);
            if let Value::Object(map) = &mut value {
                map.insert("account".to_owned(), json!(site.account));
            }
            value
        });
        with_account.collect()
    }

    /// Returns the certificate records of all accounts, with `key_sha256` in place of the key.
    pub fn certs(&self) -> Vec<Value> {
        let certs = certs::list(self.app.store().read(), None).unwrap_or_default();
        let redacted = certs.iter().map(|cert| {
            json!({
                "id": cert.id, "account": cert.account, "domain": cert.domain, "name": cert.name,
                "type": cert.kind, "cert_pem": cert.cert_pem, "key_sha256": digest::redacted(&cert.key_pem),
            })
        });
        redacted.collect()
    }

    /// Returns what the edge serves for each name, like `GET /edge` on the control port.
    pub fn edge(&self) -> Vec<Value> {
        self.app.edge.list()
    }

    /// Returns the connections to each edge address since the start or the last reset.
    pub fn handshakes(&self) -> Handshakes {
        self.app.handshakes.counts()
    }

    /// Counts connections to the edge from zero.
    pub fn reset_handshakes(&self) {
        self.app.handshakes.reset();
    }

    /// Pushes every pending change before it returns.
    pub fn push_now(&self) {
        if let Err(error) = push::push_all(&self.app) {
            self.app.notice(&format!("push failed: {error}"));
        }
    }

    /// Holds pushes back or releases them. While held, only [`Sandbox::push_now`] pushes.
    pub fn hold_pushes(&self, held: bool) {
        self.app.pushes.hold(held);
    }

    fn try_add_site(&self, domain: &str) -> Result<u64, Error> {
        if !names::is_domain(domain) {
            return Err(Error::InvalidWorld("not a domain".to_owned()));
        }
        let now = clock::now().as_second();
        let mut store = self.app.store();
        let account = store.first_account()?;
        let id = store.write(|t| {
            let package = packages::first_usable(t, account, now)?;
            let new = Site {
                account,
                domain: domain.to_owned(),
                enabled: true,
                package_id: package.map(|package| package.id),
                settings: site_fields::defaults(),
                created_at: now,
                ..Site::default()
            };
            let id = sites::insert(t, &new)?;
            store::edge::push(t, id)?;
            Ok::<_, Error>(id)
        })?;
        push::publish(&self.app, store.read(), id, &mut TlsCache::default())?;
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

async fn complete(response: HttpResponse) -> Response<Bytes> {
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    Response::from_parts(head, body.to_bytes())
}

#[track_caller]
#[expect(clippy::panic, reason = "a test whose fault never applies would pass without showing anything")]
fn checked(fault: Fault) -> Fault {
    match fault.check() {
        Ok(()) => fault,
        Err(reason) => panic!("invalid fault: {reason}"),
    }
}

/// Loads the state of the edge from the database.
fn load_edge(app: &App) -> Result<(), Error> {
    let mut cache = TlsCache::default();
    for snapshot in &store::edge::list(app.store().read())? {
        app.edge.put(snapshot, &mut cache);
    }
    Ok(())
}
