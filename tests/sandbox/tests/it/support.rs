//! A running program, a client that talks to it, and certificates of every kind.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Mutex;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const KEY: &str = "sandbox-key";
pub(crate) const OTHER_KEY: &str = "other-key";

/// Two accounts; the first has the sites 10, 11, 12 and the packages 1, 2, the second has site 20, record 7 and
/// package 3.
pub(crate) fn world() -> Value {
    let package = |id, expires: &str| json!({ "id": id, "expires_at": expires, "traffic_limit": 1000, "traffic_used": 0 });
    json!({
        "accounts": [
            { "id": 1, "api_keys": [KEY, "second-key"],
              "packages": [package(1, "2099-01-01T00:00:00Z"), package(2, "2020-01-01T00:00:00Z")] },
            { "id": 2, "api_keys": [OTHER_KEY], "packages": [package(3, "2099-01-01T00:00:00Z")] },
            { "id": 3, "api_keys": ["poor-key"], "packages": [package(4, "2020-01-01T00:00:00Z")] },
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

/// `edgecert-sandbox serve` in a process of its own, with a directory of its own.
pub(crate) struct Program {
    child: Mutex<Child>,
    pub(crate) ready: Value,
    _dir: TempDir,
    agent: ureq::Agent,
}

impl Program {
    /// With [`world`], pushes held.
    pub(crate) fn start() -> Self {
        Self::with(&world(), &[])
    }

    pub(crate) fn with(world: &Value, args: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("world.json"), world.to_string()).unwrap();
        let mut child = command(&dir).args(args).stdout(Stdio::piped()).spawn().unwrap();
        await_greeting(&mut child);
        let ready = std::fs::read_to_string(dir.path().join("ready.json")).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
        let program =
            Self { child: Mutex::new(child), ready: serde_json::from_str(&ready).unwrap(), _dir: dir, agent };
        program.hold(true);
        program
    }

    pub(crate) fn url(&self, port: &str) -> &str {
        self.ready[port].as_str().unwrap()
    }

    /// Asks the API with the first account's key.
    pub(crate) fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.api_as(KEY, method, path, body)
    }

    pub(crate) fn api_as(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let url = format!("{}{path}", self.url("api"));
        self.ask(method, &url, &[("authorization", &format!("Bearer {key}"))], body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.api("GET", path, None).ok()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.api("POST", path, Some(body))
    }

    pub(crate) fn site(&self, id: u64) -> Value {
        self.get(&format!("/api/sites/{id}"))
    }

    pub(crate) fn upload(&self, domain: &str, made: &Made) -> Reply {
        self.post("/api/certs/upload", &made.body(domain))
    }

    pub(crate) fn control(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.ask(method, &format!("{}{path}", self.url("control")), &[], body)
    }

    pub(crate) fn hold(&self, held: bool) {
        self.control("POST", "/push", Some(&json!({ "hold": held }))).ok();
    }

    /// Finishes the pending pushes.
    pub(crate) fn push(&self) {
        self.control("POST", "/push", None).ok();
    }

    pub(crate) fn certs(&self) -> Vec<Value> {
        self.get("/api/certs")["certs"].as_array().unwrap().clone()
    }

    /// What the edge serves for a name.
    pub(crate) fn served(&self, name: &str) -> Option<String> {
        edgecert_sandbox::probe(self.url("edge"), name).ok().map(|seen| seen.fingerprint)
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Reply {
        self.try_ask(method, url, headers, body).unwrap()
    }

    /// An error is a connection that was not there or ended too early.
    pub(crate) fn try_ask(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Reply, ureq::Error> {
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
        Reply::read(response?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn ended(self) -> Option<i32> {
        self.child.lock().unwrap().wait().unwrap().code()
    }

    pub(crate) fn stderr(&self) -> ChildStderr {
        self.child.lock().unwrap().stderr.take().unwrap()
    }

    /// SIGKILL, and nothing of it is left.
    pub(crate) fn strike(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.strike();
    }
}

/// `serve` on free ports with the directory's world and ready file, nothing started yet.
pub(crate) fn command(dir: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgecert-sandbox"));
    command.arg("serve");
    for port in ["--listen", "--edge-listen", "--control-listen"] {
        command.args([port, "127.0.0.1:0"]);
    }
    command.arg("--world").arg(dir.path().join("world.json"));
    command.arg("--ready-file").arg(dir.path().join("ready.json"));
    command.env_clear().stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Exit code and standard error of a start that has to fail.
#[track_caller]
pub(crate) fn fails(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let greeting = child.stdout.take().unwrap().read(&mut [0]).unwrap();
    if greeting > 0 {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("it started");
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The greeting comes after the ready file; its end is the control port's line.
fn await_greeting(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    if !lines.any(|line| line.unwrap().trim_start().starts_with("control")) {
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        panic!("the sandbox did not start: {said}");
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    fn read(mut response: http::Response<ureq::Body>) -> Result<Self, ureq::Error> {
        let text = response.body_mut().read_to_string()?;
        Ok(Self { status: response.status().as_u16(), headers: response.headers().clone(), text })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }

    /// The error of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.json()["ok"], false);
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

/// A certificate with a key.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Made {
    /// Good for years, on a fresh P-256 key.
    pub(crate) fn for_names(names: &[&str]) -> Self {
        Self::signed(names, &KeyPair::generate().unwrap(), 2099)
    }

    pub(crate) fn expired(names: &[&str]) -> Self {
        Self::signed(names, &KeyPair::generate().unwrap(), 2020)
    }

    pub(crate) fn rsa(names: &[&str]) -> Self {
        let key = openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "");
        Self::signed(names, &KeyPair::from_pem(&key).unwrap(), 2099)
    }

    /// A key that needs OpenSSL, such as P-521.
    pub(crate) fn by_openssl(name: &str, new_key: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let path =
            |name: &str| -> String { PathBuf::from(dir.path()).join(name).to_str().unwrap().to_owned() };
        let (cert, key, san) = (path("cert"), path("key"), format!("subjectAltName=DNS:{name}"));
        let fixed = [
            "req", "-x509", "-nodes", "-days", "3", "-subj", "/CN=x", "-addext", &san, "-keyout", &key,
            "-out", &cert,
        ];
        openssl(&[&fixed[..], new_key].concat(), "");
        Self { cert: std::fs::read_to_string(&cert).unwrap(), key: std::fs::read_to_string(&key).unwrap() }
    }

    pub(crate) fn body(&self, domain: &str) -> Value {
        json!({ "domain": domain, "cert_pem": self.cert, "key_pem": self.key })
    }

    /// Lower-case hexadecimal SHA-256 of the leaf, by OpenSSL.
    pub(crate) fn fingerprint(&self) -> String {
        let said = openssl(&["x509", "-noout", "-fingerprint", "-sha256"], &self.cert);
        said.trim().split_once('=').unwrap().1.replace(':', "").to_lowercase()
    }

    fn signed(names: &[&str], key: &KeyPair, until: i32) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let cert = params.self_signed(key).unwrap();
        Self { cert: cert.pem().replace('\r', ""), key: key.serialize_pem().replace('\r', "") }
    }
}

/// Runs OpenSSL and returns what it prints.
pub(crate) fn openssl(args: &[&str], input: &str) -> String {
    let child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the Debian package openssl is needed");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
