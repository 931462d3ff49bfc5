//! A running `edgecert-sandbox serve`, an HTTP client for it, and certificates of every key type.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
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

/// An `edgecert-sandbox serve` process on free ports. Dropping it kills the process.
pub(crate) struct Server {
    child: Mutex<Child>,
    /// Content of the ready file.
    pub(crate) ready: Value,
    _dir: TempDir,
    agent: ureq::Agent,
}

impl Server {
    /// Starts a server with [`test_world`] and pushes held.
    pub(crate) fn start() -> Self {
        Self::start_with(&test_world(), &[])
    }

    /// Starts a server with pushes held.
    pub(crate) fn start_with(world: &Value, args: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let mut child = serve_command(&dir, &world.to_string()).args(args).spawn().unwrap();
        wait_until_ready(&mut child);
        let ready = std::fs::read_to_string(dir.path().join("ready.json")).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
        let server =
            Self { child: Mutex::new(child), ready: serde_json::from_str(&ready).unwrap(), _dir: dir, agent };
        server.hold_pushes(true);
        server
    }

    /// The address of the `api`, `edge` or `control` port, from the ready file.
    pub(crate) fn url(&self, port: &str) -> &str {
        self.ready[port].as_str().unwrap()
    }

    /// Sends an API request with [`KEY`].
    pub(crate) fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        self.api_with_key(KEY, method, path, body)
    }

    pub(crate) fn api_with_key(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Response {
        let url = format!("{}{path}", self.url("api"));
        self.send(method, &url, &[("authorization", &format!("Bearer {key}"))], body)
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

    pub(crate) fn upload(&self, domain: &str, cert: &TestCert) -> Response {
        self.post("/api/certs/upload", &cert.upload_body(domain))
    }

    pub(crate) fn certs(&self) -> Vec<Value> {
        self.get("/api/certs")["certs"].as_array().unwrap().clone()
    }

    pub(crate) fn control(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        self.send(method, &format!("{}{path}", self.url("control")), &[], body)
    }

    pub(crate) fn hold_pushes(&self, held: bool) {
        self.control("POST", "/push", Some(&json!({ "hold": held }))).expect_ok();
    }

    /// Finishes the pending pushes.
    pub(crate) fn push_now(&self) {
        self.control("POST", "/push", None).expect_ok();
    }

    /// Fingerprint of the leaf that the edge serves for a name, or `None` if the handshake fails.
    pub(crate) fn served_leaf(&self, name: &str) -> Option<String> {
        edgecert_sandbox::probe(self.url("edge"), name).ok().map(|result| result.fingerprint)
    }

    pub(crate) fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response {
        self.try_send(method, url, headers, body).unwrap()
    }

    /// Sends a request; fails if the connection is refused or closed before the response is complete.
    pub(crate) fn try_send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Response, ureq::Error> {
        let mut request = http::Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string()).unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        Response::read(response?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// Waits until the process exits and returns its exit code. Panics if it does not within 30 seconds.
    #[track_caller]
    pub(crate) fn wait(self) -> Option<i32> {
        for _ in 0..3_000 {
            if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the sandbox does not exit");
    }

    pub(crate) fn stderr(&self) -> ChildStderr {
        self.child.lock().unwrap().stderr.take().unwrap()
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Prepares `edgecert-sandbox serve` on free ports, with world and ready file in `dir` and its output piped.
pub(crate) fn serve_command(dir: &TempDir, world: &str) -> Command {
    std::fs::write(dir.path().join("world.json"), world).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgecert-sandbox"));
    command.arg("serve");
    for port in ["--listen", "--edge-listen", "--control-listen"] {
        command.args([port, "127.0.0.1:0"]);
    }
    command.arg("--world").arg(dir.path().join("world.json"));
    command.arg("--ready-file").arg(dir.path().join("ready.json"));
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a `serve` command that must fail, and returns its exit code and standard error.
#[track_caller]
pub(crate) fn fail_to_start(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let greeting = child.stdout.take().unwrap().read(&mut [0]).unwrap();
    if greeting > 0 {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("the sandbox started, expected it to fail");
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Reads standard output up to the line for the control port: the last one, printed after the ready file is written.
fn wait_until_ready(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    if !lines.any(|line| line.unwrap().trim_start().starts_with("control")) {
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        panic!("the sandbox did not start: {stderr}");
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Response {
    fn read(mut response: http::Response<ureq::Body>) -> Result<Self, ureq::Error> {
        let text = response.body_mut().read_to_string()?;
        Ok(Self { status: response.status().as_u16(), headers: response.headers().clone(), text })
    }

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

/// A certificate (or chain) with its private key.
#[derive(Clone)]
pub(crate) struct TestCert {
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
}

impl TestCert {
    /// A certificate for a new P-256 key that is valid until 2099.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::signed(names, &KeyPair::generate().unwrap(), 2019, 2099)
    }

    pub(crate) fn expired(names: &[&str]) -> Self {
        Self::signed(names, &KeyPair::generate().unwrap(), 2019, 2020)
    }

    pub(crate) fn not_yet_valid(names: &[&str]) -> Self {
        Self::signed(names, &KeyPair::generate().unwrap(), 2098, 2099)
    }

    pub(crate) fn rsa(names: &[&str]) -> Self {
        let key = openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "");
        Self::signed(names, &KeyPair::from_pem(&key).unwrap(), 2019, 2099)
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
        Self { cert_pem: self.cert_pem.clone(), key_pem: key_pem.to_owned() }
    }

    /// Request body of an upload.
    pub(crate) fn upload_body(&self, domain: &str) -> Value {
        json!({ "domain": domain, "cert_pem": self.cert_pem, "key_pem": self.key_pem })
    }

    /// Lower-case hex SHA-256 of the leaf, computed by OpenSSL.
    pub(crate) fn fingerprint(&self) -> String {
        let line = openssl(&["x509", "-noout", "-fingerprint", "-sha256"], &self.cert_pem);
        line.trim().split_once('=').unwrap().1.replace(':', "").to_lowercase()
    }

    /// Self-signed, valid from 1 January of one year to 1 January of another.
    fn signed(names: &[&str], key: &KeyPair, from_year: i32, to_year: i32) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from_year, 1, 1);
        params.not_after = date_time_ymd(to_year, 1, 1);
        let cert = params.self_signed(key).unwrap();
        Self { cert_pem: cert.pem().replace('\r', ""), key_pem: key.serialize_pem().replace('\r', "") }
    }
}

/// Runs OpenSSL and returns its standard output.
pub(crate) fn openssl(args: &[&str], input: &str) -> String {
    let child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("cannot run here: openssl is not installed (Debian package openssl)");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
