//! The list endpoint of a Kubernetes API server: HTTPS with a CA of its own, tokens, pages with continue tokens that
//! expire, and the errors that a real one sends. It has no watch.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::harness::{IssuedCert, test_ca};

/// The server and what it knows. It ends with the test process.
#[derive(Clone)]
pub(super) struct ApiServer {
    address: SocketAddr,
    cluster: Arc<Mutex<Cluster>>,
}

/// What the server knows.
pub(super) struct Cluster {
    /// By namespace and name.
    secrets: BTreeMap<(String, String), Value>,
    /// The tokens that are accepted.
    pub(super) tokens: Vec<String>,
    /// The namespaces whose secrets the service account may list.
    pub(super) permitted: Vec<String>,
    /// Largest page, whatever `limit` says.
    pub(super) page_size: usize,
    /// Whether continue tokens have expired.
    pub(super) is_expired: bool,
    /// Whether each page has a continue token, and the first page follows the last.
    pub(super) is_endless: bool,
    /// Responses to the next requests, in place of a list.
    pub(super) faults: VecDeque<Response>,
    /// Paths and queries that were requested.
    pub(super) requests: Vec<String>,
}

/// A response.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: &'static str,
    pub(super) body: String,
}

impl ApiServer {
    /// Starts a server on loopback. Its token is `token`, and `default` is permitted.
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = tls(&test_ca().issue(&["127.0.0.1"]).unwrap());
        let cluster = Arc::new(Mutex::new(Cluster {
            secrets: BTreeMap::new(),
            tokens: vec!["token".into()],
            permitted: vec!["default".into()],
            page_size: usize::MAX,
            is_expired: false,
            is_endless: false,
            faults: VecDeque::new(),
            requests: Vec::new(),
        }));
        let shared = Arc::clone(&cluster);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (cluster, config) = (Arc::clone(&shared), Arc::clone(&config));
                thread::spawn(move || serve(stream.unwrap(), &config, &cluster));
            }
        });
        Self { address, cluster }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap()
    }

    /// Creates a TLS secret, or replaces it.
    pub(super) fn apply(&self, namespace: &str, name: &str, label: (&str, &str), issued: &IssuedCert) {
        let data = [("tls.crt", issued.fullchain()), ("tls.key", issued.key.clone())];
        self.apply_data(namespace, name, label, &data);
    }

    /// Creates a TLS secret with this data.
    pub(super) fn apply_data(
        &self,
        namespace: &str,
        name: &str,
        (label, value): (&str, &str),
        data: &[(&str, String)],
    ) {
        let data = data.iter().map(|(file, text)| ((*file).to_owned(), STANDARD.encode(text).into()));
        let data: serde_json::Map<String, Value> = data.collect();
        let secret = json!({
            "metadata": {"name": name, "namespace": namespace, "labels": {label: value}},
            "type": "kubernetes.io/tls",
            "data": data,
        });
        self.cluster().secrets.insert((namespace.to_owned(), name.to_owned()), secret);
    }
}

fn tls(issued: &IssuedCert) -> Arc<ServerConfig> {
    let chain = issued.fullchain();
    let chain = rustls_pemfile::certs(&mut chain.as_bytes()).map(Result::unwrap).collect();
    let key: PrivateKeyDer<'_> = rustls_pemfile::private_key(&mut issued.key.as_bytes()).unwrap().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(builder.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap())
}

/// Answers the requests of a connection until the client closes it.
fn serve(stream: TcpStream, config: &Arc<ServerConfig>, cluster: &Mutex<Cluster>) {
    let connection = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    while let Some((path, token)) = read_request(&mut stream) {
        let Response { status, headers, body } = cluster.lock().unwrap().answer(&path, &token);
        let length = body.len();
        let response = format!("HTTP/1.1 {status} -\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        if stream.get_mut().write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a GET request: its path with the query, and the bearer token.
fn read_request(stream: &mut BufReader<impl Read>) -> Option<(String, String)> {
    let (mut line, mut token) = (String::new(), String::new());
    stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let path = line.strip_prefix("GET ").unwrap().split(' ').next().unwrap().to_owned();
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        if let Some(value) = line.strip_prefix("authorization: Bearer ") {
            value.trim().clone_into(&mut token);
        }
        if line == "\r\n" {
            return Some((path, token));
        }
    }
}

impl Cluster {
    /// Sets the key of a secret to no bytes, which Go may write as `null`.
    pub(super) fn clear_key(&mut self, namespace: &str, name: &str) {
        let secret = self.secrets.get_mut(&(namespace.to_owned(), name.to_owned())).unwrap();
        secret["data"]["tls.key"] = Value::Null;
    }

    fn answer(&mut self, target: &str, token: &str) -> Response {
        self.requests.push(target.to_owned());
        let url = reqwest::Url::parse(&format!("https://localhost{target}")).unwrap();
        let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        assert!(!query.contains_key("watch"), "{target}");
        assert_eq!(query["fieldSelector"], "type=kubernetes.io/tls");
        let namespace =
            url.path().strip_prefix("/api/v1/namespaces/").and_then(|p| p.strip_suffix("/secrets"));
        let namespace = namespace.unwrap();
        if let Some(fault) = self.faults.pop_front() {
            return fault;
        }
        if !self.tokens.iter().any(|known| known == token) {
            return status(401, "Unauthorized");
        }
        if !self.permitted.iter().any(|known| known == namespace) {
            return status(
                403,
                "secrets is forbidden: User \"system:serviceaccount:default:edgecert\" cannot list",
            );
        }
        let start: usize = query.get("continue").map_or(0, |token| token.parse().unwrap());
        if start > 0 && self.is_expired {
            return status(410, "The provided continue parameter is too old");
        }
        let limit = query["limit"].parse::<usize>().unwrap().min(self.page_size);
        let is_selected = |secret: &Value| match query.get("labelSelector").and_then(|s| s.split_once('=')) {
            Some((label, value)) => secret["metadata"]["labels"][label] == value,
            None => true,
        };
        let secrets = self.secrets.iter().filter(|((of, _), secret)| of == namespace && is_selected(secret));
        let secrets: Vec<&Value> = secrets.map(|(_, secret)| secret).collect();
        let page: Vec<&Value> = secrets.iter().skip(start).take(limit).copied().collect();
        let end = start + page.len();
        let next = match end < secrets.len() {
            true => end.to_string(),
            false if self.is_endless => "0".to_owned(),
            false => String::new(),
        };
        // Go writes an empty list as `null`.
        let items = if page.is_empty() { Value::Null } else { json!(page) };
        let list = json!({
            "kind": "SecretList", "apiVersion": "v1",
            "metadata": {"resourceVersion": "7", "continue": next}, "items": items,
        });
        Response { status: 200, headers: "Content-Type: application/json\r\n", body: list.to_string() }
    }
}

/// An error as the server sends it.
pub(super) fn status(code: u16, message: &str) -> Response {
    let body = json!({"kind": "Status", "status": "Failure", "message": message, "code": code}).to_string();
    Response { status: code, headers: "Content-Type: application/json\r\n", body }
}
