//! Proxies: the variables are read as curl reads them, and one that cannot be used is an error.

use std::io::{BufReader, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::{Hook, Lineage, Sandbox, edgecert, fresh, read_head, require, step, tls_sandbox};

/// A proxy on loopback that keeps the lines that clients send before the tunnel.
struct Proxy {
    port: u16,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy that opens tunnels, or closes every connection.
    fn start(opens: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), lines: Arc::default() };
        let lines = Arc::clone(&proxy.lines);
        thread::spawn(move || {
            for client in listener.incoming() {
                let lines = Arc::clone(&lines);
                thread::spawn(move || serve(&client.unwrap(), &lines, opens));
            }
        });
        proxy
    }

    fn url(&self, credentials: &str) -> String {
        format!("http://{credentials}127.0.0.1:{}", self.port)
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

fn serve(client: &TcpStream, lines: &Mutex<Vec<String>>, opens: bool) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let head = read_head(&mut reader)?;
    let target = head.first()?.split(' ').nth(1)?.to_owned();
    lines.lock().unwrap().extend(head);
    if !opens {
        return None;
    }
    let server = TcpStream::connect(target).ok()?;
    (&mut &*client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    let (mut upstream, mut to_client) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut upstream, &mut to_client);
        to_client.shutdown(Shutdown::Write)
    });
    let _ = std::io::copy(&mut reader, &mut &server);
    server.shutdown(Shutdown::Write).ok()
}

fn list(service: &Sandbox) -> Hook {
    edgecert().against(service).args(["sites", "list"])
}

#[test]
fn requests_use_the_proxy() {
    let (service, proxy) = (tls_sandbox(&["a.example"]), Proxy::start(true));

    step("requests_use_the_proxy_with_its_password");
    let lineage = Lineage::issued_for(&["a.example"]);
    fresh(&service, &lineage).env("HTTPS_PROXY", proxy.url("user:p%40%2541@")).succeeds();
    let host = service.endpoints().api.trim_start_matches("https://").to_owned();
    let lines = proxy.lines();
    assert_eq!(lines[0], format!("CONNECT {host} HTTP/1.1"));
    // The base64 of `user:p@%41`.
    let authorization = "proxy-authorization: Basic dXNlcjpwQCU0MQ==";
    assert!(lines.iter().any(|line| line.eq_ignore_ascii_case(authorization)), "{lines:?}");
    assert!(service.requests().iter().all(|request| request.http == "2"), "HTTP/2 in the tunnel");
}

#[test]
fn proxy_setting_replaces_the_variables() {
    let (service, proxy, other) = (tls_sandbox(&["a.example"]), Proxy::start(true), Proxy::start(true));
    let hook = || list(&service).env("HTTPS_PROXY", other.url("")).env("NO_PROXY", "*");
    hook().env("EDGECERT_PROXY", proxy.url("")).succeeds();
    assert!(proxy.lines()[0].starts_with("CONNECT "));
    hook().args(["--proxy", "off"]).env("EDGECERT_PROXY", proxy.url("")).without_env("NO_PROXY").succeeds();
    let connections = proxy.lines().iter().filter(|line| line.starts_with("CONNECT")).count();
    assert_eq!((connections, other.lines().len()), (1, 0));

    let refused = list(&service).args(["--proxy", &proxy.url("user:secret@")]).exits_with(2).stderr;
    assert!(refused.contains("without credentials") && !refused.contains("secret"), "{refused}");
    let down = list(&service).args(["--proxy", "http://127.0.0.1:1", "--timeout", "1"]).exits_with(75).stderr;
    assert!(down.contains(" (through the proxy http://127.0.0.1:1): "), "{down}");
}

#[test]
fn unreachable_proxy_is_named() {
    let service = tls_sandbox(&["a.example"]);
    let output = list(&service).env("all_proxy", "http://user:secret@127.0.0.1:1").args(["--timeout", "1"]);
    let stderr = output.exits_with(75).stderr;
    assert!(stderr.contains(" (through the proxy in all_proxy): "), "{stderr}");
    assert!(!stderr.contains("secret"), "{stderr}");
}

#[test]
fn malformed_proxy_is_exit_78() {
    const EXPECTED: &str = "expected http://HOST:PORT or https://HOST:PORT";
    let (service, lineage) = (tls_sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    for (value, reason) in
        [("http://user:secret@", EXPECTED), ("socks5h://user:secret@127.0.0.1:1080", EXPECTED)]
    {
        for variable in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            let output = list(&service).env(variable, value).exits_with(78);
            assert_eq!(output.stderr, format!("edgecert: error: {variable}: {reason}\n"));
        }
        let output = fresh(&service, &lineage).env("HTTPS_PROXY", value).args(["--json"]).exits_with(78);
        assert!(!format!("{}{}{}", output.stdout, output.stderr, output.state).contains("secret"));
        let doctor = edgecert().against(&service).env("HTTPS_PROXY", value).args(["doctor"]);
        doctor.exits_with(78).prints(format!("x settings  HTTPS_PROXY: {reason}"));
    }
    assert_eq!(service.requests().len(), 0, "nothing was sent past the proxy");
    // A malformed proxy is no error if no request would use it.
    list(&service).env("HTTPS_PROXY", "http://").env("NO_PROXY", "127.0.0.1").succeeds();
    list(&service).env("HTTP_PROXY", "http://").succeeds();
    list(&service).env("https_proxy", "").env("HTTPS_PROXY", "").succeeds();
}

/// Whether a program uses the proxy of its environment.
fn is_proxied(command: &mut Command, variables: &[(&str, &str)]) -> bool {
    require("curl", "curl");
    let proxy = Proxy::start(false);
    command.env("HTTPS_PROXY", proxy.url("")).envs(variables.iter().copied());
    command.output().unwrap();
    !proxy.lines().is_empty()
}

#[test]
fn no_proxy_is_read_as_by_curl() {
    // Nothing listens on port 1.
    let rows = [
        ("127.0.0.1", "", true),
        ("127.0.0.1", "*", false),
        ("127.0.0.1", "localhost,*", true),
        ("127.0.0.1", "127.0.0.1", false),
        ("127.0.0.1", "127.0.0.1:1", true),
        ("127.0.0.1", "127.0.0.0/8", false),
        ("127.0.0.1", "10.0.0.0/8 127.0.0.0/8", false),
        ("127.0.0.1", "127.0.0.1/0", false),
        ("127.0.0.1", "128.0.0.1/0", true),
        ("127.0.0.1", "127.0.0.0/33", true),
        ("127.0.0.1", "0.0.1", true),
        ("127.0.0.1", "localhost", true),
        ("localhost", "127.0.0.1", true),
        ("localhost", "LOCALHOST", false),
        ("localhost", "xlocalhost, ocalhost", true),
        ("[::1]", "::1", false),
        ("[::1]", "[::1]", true),
        ("www.a.invalid", "a.invalid", false),
        ("www.a.invalid", ".a.invalid.", false),
        ("www.a.invalid", "x,,\tb.invalid invalid", false),
        ("www.a.invalid", "*.a.invalid", true),
        ("www.a.invalid", "w.a.invalid", true),
        ("www.a.invalid", ".", true),
        ("www.a.invalid", "..invalid", true),
    ];
    thread::scope(|scope| {
        for (host, list, expected) in rows {
            scope.spawn(move || {
                let mut curl = Command::new("/usr/bin/curl");
                curl.args(["-s", &format!("https://{host}:1/")]).env_clear();
                assert_eq!(is_proxied(&mut curl, &[("NO_PROXY", list)]), expected, "curl, {host}: {list}");
                let mut doctor =
                    edgecert().args(["doctor"]).env("EDGECERT_BASE_URL", format!("https://{host}:1"));
                let is_proxied = is_proxied(doctor.command(), &[("NO_PROXY", list)]);
                assert_eq!(is_proxied, expected, "edgecert, {host}: {list}");
            });
        }
    });
}

#[test]
fn lower_case_variables_precede_as_for_curl() {
    let other = Proxy::start(false);
    let rows: [(&[(&str, &str)], bool); 4] = [
        (&[("https_proxy", "OTHER")], false),
        (&[("all_proxy", "OTHER")], true),
        (&[("no_proxy", "x"), ("NO_PROXY", "127.0.0.1")], true),
        (&[("no_proxy", ""), ("NO_PROXY", "127.0.0.1")], false),
    ];
    for (variables, expected) in rows {
        let url = other.url("");
        let value = |value| if value == "OTHER" { url.as_str() } else { value };
        let variables: Vec<_> = variables.iter().map(|(name, text)| (*name, value(*text))).collect();
        let mut curl = Command::new("/usr/bin/curl");
        curl.args(["-s", "https://127.0.0.1:1/"]).env_clear();
        assert_eq!(is_proxied(&mut curl, &variables), expected, "curl: {variables:?}");
        let mut doctor = edgecert().args(["doctor"]).env("EDGECERT_BASE_URL", "https://127.0.0.1:1");
        assert_eq!(is_proxied(doctor.command(), &variables), expected, "edgecert: {variables:?}");
    }
}
