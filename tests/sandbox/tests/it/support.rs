//! A sandbox in this process or in one of its own, requests to it, certificates of every key type, and the real hook.

use std::io::{BufRead, BufReader, Write, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use edgecert_sandbox::{Options, Sandbox, World, probe};
use http::Request;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An API key of account 1, the default account of every request.
pub(crate) const KEY: &str = "sandbox-key";
/// The API key of account 2.
pub(crate) const OTHER_KEY: &str = "other-key";
/// The API key of account 3.
pub(crate) const NO_PACKAGE_KEY: &str = "no-package-key";

/// Three accounts: 1 has sites 10 to 12, record 5 and packages 1 and 2 (expired); 2 has site 20, record 7 and
/// package 3; 3 has only an expired package.
pub(crate) fn test_world() -> Value {
    let package = |id, expires: &str| json!({ "id": id, "expires_at": expires, "traffic_limit": 1000, "traffic_used": 0 });
    json!({
        "accounts": [
            { "id": 1, "api_keys": [KEY, "second-key"],
              "packages": [package(1, "2099-01-01T00:00:00Z"), package(2, "2020-01-01T00:00:00Z")] },
            { "id": 2, "api_keys": [OTHER_KEY], "packages": [package(3, "2099-01-01T00:00:00Z")] },
            { "id": 3, "api_keys": [NO_PACKAGE_KEY], "packages": [package(4, "2020-01-01T00:00:00Z")] },
        ],
        "sites": [
            { "id": 10, "account": 1, "domain": "a.example" },
            { "id": 11, "account": 1, "domain": "b.example" },
            { "id": 12, "account": 1, "domain": "www.a.example" },
            { "id": 20, "account": 2, "domain": "o.example" },
        ],
        "certs": [
            { "id": 5, "account": 1, "domain": "old.example", "type": "lets" },
            { "id": 7, "account": 2, "domain": "o.example", "cert_pem": "-", "key_pem": "-" },
        ],
    })
}

/// The plain service with [`test_world`], in memory and without a delay of pushes.
pub(crate) fn plain() -> Options {
    let world = World::parse(&test_world().to_string()).unwrap();
    Options { world, quirks: 0, ..Options::default() }
}

/// A running sandbox. Dropping it stops it.
pub(crate) struct Server {
    host: Host,
    /// Content of the ready file.
    pub(crate) ready: Value,
    /// What a process has printed.
    pub(crate) greeting: String,
}

/// Where a sandbox runs.
enum Host {
    /// In this process; requests need no connection.
    Here(Box<Sandbox>),
    Process {
        child: Child,
        agent: ureq::Agent,
        _files: TempDir,
    },
}

impl Server {
    /// Starts the plain service in this process, with pushes held.
    pub(crate) fn start() -> Self {
        Self::start_with(plain())
    }

    /// Starts a service in this process, with pushes held.
    pub(crate) fn start_with(options: Options) -> Self {
        let sandbox = Sandbox::start(options).unwrap();
        sandbox.hold_pushes(true);
        let ready = json!(sandbox.endpoints());
        Self { host: Host::Here(Box::new(sandbox)), ready, greeting: String::new() }
    }

    /// Starts the plain service with a certificate for these names, which is bound and pushed to the sites it covers.
    pub(crate) fn serving(names: &[&str]) -> (Self, TestCert) {
        let server = Self::start();
        let cert = server.push_new(names);
        (server, cert)
    }

    /// Starts `edgecert-sandbox serve` with [`test_world`] and these arguments on free ports, with pushes held.
    pub(crate) fn start_process(args: &[&str]) -> Self {
        let files = TempDir::new().unwrap();
        let mut child = serve_command(&files, &test_world().to_string()).args(args).spawn().unwrap();
        // The line for the control port is the last one, printed after the ready file is written.
        let (mut greeting, mut stdout) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        while !greeting.contains("\n  control ") {
            let length = stdout.read_line(&mut greeting).unwrap();
            assert!(length > 0, "the sandbox did not start: {:?}", child.wait());
        }
        let ready = std::fs::read_to_string(files.path().join("ready.json")).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
        let host = Host::Process { child, agent, _files: files };
        let server = Self { host, ready: serde_json::from_str(&ready).unwrap(), greeting };
        server.hold_pushes(true);
        server
    }

    /// The address of the `api`, `edge` or `control` port.
    pub(crate) fn url(&self, port: &str) -> &str {
        self.ready[port].as_str().unwrap()
    }

    /// The sandbox in this process.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        match &self.host {
            Host::Here(sandbox) => sandbox,
            Host::Process { .. } => panic!("the sandbox is another process"),
        }
    }

    /// The process of the sandbox.
    pub(crate) fn process(&mut self) -> &mut Child {
        match &mut self.host {
            Host::Process { child, .. } => child,
            Host::Here(_) => panic!("the sandbox is in this process"),
        }
    }

    /// Sends an API request with [`KEY`].
    pub(crate) fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        self.api_with_key(KEY, method, path, body)
    }

    pub(crate) fn api_with_key(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Response {
        let headers = [("authorization", &*format!("Bearer {key}")), ("content-type", "application/json")];
        self.send("api", method, path, &headers, &body.map(Value::to_string).unwrap_or_default()).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.api("GET", path, None).expect_ok()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.api("POST", path, Some(body))
    }

    pub(crate) fn site(&self, id: u64) -> Value {
        self.get(&format!("/api/sites/{id}"))
    }

    /// Updates site 10.
    pub(crate) fn update(&self, change: &Value) -> Response {
        self.post("/api/sites/10/update", change)
    }

    pub(crate) fn upload(&self, domain: &str, cert: &TestCert) -> Response {
        self.post("/api/certs/upload", &cert.upload_body(domain))
    }

    /// Uploads and pushes a new certificate for these names, the first of which is a site.
    pub(crate) fn push_new(&self, names: &[&str]) -> TestCert {
        let cert = TestCert::new(names);
        self.upload(names[0], &cert).expect_ok();
        self.push_now();
        cert
    }

    pub(crate) fn certs(&self) -> Vec<Value> {
        self.get("/api/certs")["certs"].as_array().unwrap().clone()
    }

    pub(crate) fn download(&self, id: u64) -> Value {
        self.get(&format!("/api/certs/{id}/download"))
    }

    /// Sends a request without a body to the control port.
    pub(crate) fn control(&self, method: &str, path: &str) -> Response {
        self.send("control", method, path, &[], "").unwrap()
    }

    pub(crate) fn control_post(&self, path: &str, body: &Value) -> Response {
        self.send("control", "POST", path, &[], &body.to_string()).unwrap()
    }

    /// A list that the control port shows.
    pub(crate) fn listed(&self, path: &str) -> Vec<Value> {
        self.control("GET", path).expect_ok().as_array().unwrap().clone()
    }

    pub(crate) fn hold_pushes(&self, held: bool) {
        self.control_post("/push", &json!({ "hold": held })).expect_ok();
    }

    /// Finishes the pending pushes.
    pub(crate) fn push_now(&self) {
        self.control("POST", "/push").expect_ok();
    }

    /// Fingerprint of the leaf that the edge serves for a name, or `None` if the handshake fails.
    pub(crate) fn served_leaf(&self, name: &str) -> Option<String> {
        served(self.url("edge"), name)
    }

    /// Sends a request to a port; fails if a process refuses or closes the connection before the response is complete.
    pub(crate) fn send(
        &self,
        port: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response, ureq::Error> {
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, text) = match &self.host {
            Host::Here(sandbox) => {
                let request = request.uri(path).body(body.to_owned()).unwrap();
                let response =
                    if port == "api" { sandbox.call_api(request) } else { sandbox.call_control(request) };
                let (head, body) = response.into_parts();
                (head, String::from_utf8(body.to_vec()).unwrap())
            }
            Host::Process { agent, .. } => {
                let request = request.uri(format!("{}{path}", self.url(port)));
                let response = match body {
                    "" => agent.run(request.body(()).unwrap()),
                    body => agent.run(request.body(body).unwrap()),
                };
                let (head, mut body) = response?.into_parts();
                (head, body.read_to_string()?)
            }
        };
        Ok(Response { status: head.status.as_u16(), headers: head.headers, text })
    }

    /// Stops the process with a signal, and returns its exit code and what it has written to standard error.
    pub(crate) fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        let child = self.process();
        send_signal(child.id(), signal);
        let code = child.wait().unwrap().code();
        (code, read_to_string(child.stderr.take().unwrap()).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Host::Process { child, .. } = &mut self.host {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

pub(crate) fn send_signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process.cast_signed()).unwrap(), signal).unwrap();
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_edgecert-sandbox"))
}

/// The real hook: `EDGECERT_BIN`, or the `edgecert` that the workspace's build leaves beside the sandbox.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
pub(crate) fn hook() -> PathBuf {
    let beside = || program().with_file_name("edgecert");
    let hook = std::env::var_os("EDGECERT_BIN").map_or_else(beside, PathBuf::from);
    assert!(hook.is_file(), "no hook at {}; run cargo build or set EDGECERT_BIN", hook.display());
    hook
}

/// Prepares `edgecert-sandbox serve` on free ports, with world and ready file in `dir` and its output piped.
pub(crate) fn serve_command(dir: &TempDir, world: &str) -> Command {
    std::fs::write(dir.path().join("world.json"), world).unwrap();
    let mut command = Command::new(program());
    command.arg("serve");
    for port in ["--listen", "--edge-listen", "--control-listen"] {
        command.args([port, "127.0.0.1:0"]);
    }
    command.arg("--world").arg(dir.path().join("world.json"));
    command.arg("--ready-file").arg(dir.path().join("ready.json"));
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Fingerprint of the leaf that an edge address serves for a name, or `None` if the handshake fails.
pub(crate) fn served(address: &str, name: &str) -> Option<String> {
    probe(address, name).ok().map(|result| result.fingerprint)
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Asserts a 2xx status and returns the body.
    #[track_caller]
    pub(crate) fn expect_ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }

    /// Asserts this status and an error body, and returns the error's message.
    #[track_caller]
    pub(crate) fn expect_error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.json()["ok"], false);
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

/// Asserts that an object has these values, besides others.
#[track_caller]
pub(crate) fn assert_contains(object: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&object[name], value, "{name}: {object}");
    }
}

/// A certificate (or chain) with its private key.
#[derive(Clone)]
pub(crate) struct TestCert {
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
}

impl TestCert {
    /// A certificate for a new P-256 key that is valid until 2099.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::valid(names, [2019, 2099])
    }

    /// A certificate for a new P-256 key that is valid from 1 January of one year to 1 January of another.
    pub(crate) fn valid(names: &[&str], years: [i32; 2]) -> Self {
        Self::signed(names, &KeyPair::generate().unwrap(), years)
    }

    pub(crate) fn rsa(names: &[&str]) -> Self {
        let key = openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "");
        Self::signed(names, &KeyPair::from_pem(&key).unwrap(), [2019, 2099])
    }

    /// A certificate from `openssl req` for a new key on this curve.
    pub(crate) fn on_curve(name: &str, curve: &str) -> Self {
        Self::from_openssl(name, &["-newkey", "ec", "-pkeyopt", &format!("ec_paramgen_curve:{curve}")])
    }

    /// A certificate from `openssl req` with these arguments, for key types that rcgen lacks.
    pub(crate) fn from_openssl(name: &str, key_args: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let path = |name: &str| -> String { dir.path().join(name).to_str().unwrap().to_owned() };
        let (cert, key, san) = (path("cert"), path("key"), format!("subjectAltName=DNS:{name}"));
        let fixed_args = [
            "req", "-x509", "-nodes", "-days", "3", "-subj", "/CN=x", "-addext", &san, "-keyout", &key,
            "-out", &cert,
        ];
        openssl(&[&fixed_args[..], key_args].concat(), "");
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        Self { cert_pem: read(&cert), key_pem: read(&key) }
    }

    /// The same certificate with another key.
    pub(crate) fn with_key(&self, key_pem: &str) -> Self {
        Self { key_pem: key_pem.to_owned(), ..self.clone() }
    }

    /// The same certificate with the key of another.
    pub(crate) fn unpaired(&self) -> Self {
        self.with_key(&Self::new(&["x.example"]).key_pem)
    }

    /// The fields of an upload or a replacement.
    pub(crate) fn body(&self) -> Value {
        json!({ "cert_pem": self.cert_pem, "key_pem": self.key_pem })
    }

    /// Request body of an upload.
    pub(crate) fn upload_body(&self, domain: &str) -> Value {
        with(self.body(), &json!({ "domain": domain }))
    }

    /// Lower-case hex SHA-256 of the leaf, computed by OpenSSL.
    pub(crate) fn fingerprint(&self) -> String {
        let line = openssl(&["x509", "-noout", "-fingerprint", "-sha256"], &self.cert_pem);
        line.trim().split_once('=').unwrap().1.replace(':', "").to_lowercase()
    }

    fn signed(names: &[&str], key: &KeyPair, [from_year, to_year]: [i32; 2]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from_year, 1, 1);
        params.not_after = date_time_ymd(to_year, 1, 1);
        let cert = params.self_signed(key).unwrap();
        Self { cert_pem: cert.pem().replace('\r', ""), key_pem: key.serialize_pem().replace('\r', "") }
    }
}

/// An object with more or other fields.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// Runs a program with this input; fails the test if the program is missing.
pub(crate) fn run(program: &str, package: &str, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn();
    let mut child = child
        .unwrap_or_else(|_| panic!("cannot run here: {program} is not installed (Debian package {package})"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Runs OpenSSL and returns its standard output.
pub(crate) fn openssl(args: &[&str], input: &str) -> String {
    let output = run("openssl", "openssl", args, input);
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
