//! The heartbeat: `sync` calls `heartbeat_url` with its exit code and a summary, whether it succeeded or failed. A
//! receiver that cannot be reached is only a warning. The URL is a secret.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use tempfile::TempDir;

use crate::harness::{
    Hook, Lineage, Nginx, Output, PANIC_IN_SLEEP, deploy, edgecert, read_head, require_trusted_root,
    run_with_syslog, sandbox_and_lineage, step, test_ca, write_with_mode,
};

/// The secret part of each URL.
const ID: &str = "c0ffee00-1111-4222-8333-444455556666";

/// A call as it arrived.
struct Call {
    /// Method and path.
    line: String,
    headers: Vec<String>,
    body: String,
}

/// A receiver of heartbeats on loopback.
struct Heartbeats {
    port: u16,
    calls: Receiver<Call>,
}

impl Heartbeats {
    /// Starts a receiver that answers every call with this text.
    fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, calls) = mpsc::channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let Some(call) = read_call(&client) else { continue };
                // Stored before the answer is sent, so that it is there when the run ends.
                if sender.send(call).is_err() {
                    return;
                }
                let _ = (&client).write_all(answer.as_bytes());
            }
        });
        Self { port, calls }
    }

    fn start() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{ID}", self.port)
    }

    /// The only call since this was last asked.
    #[track_caller]
    fn only_call(&self) -> Call {
        let call = self.calls.try_recv().expect("a heartbeat arrives before the run ends");
        assert!(self.calls.try_recv().is_err(), "there is one heartbeat only");
        call
    }

    /// Method and path of the only call.
    #[track_caller]
    fn only_line(&self) -> String {
        self.only_call().line
    }
}

fn read_call(client: &TcpStream) -> Option<Call> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let head: Vec<String> = read_head(&mut reader)?.iter().map(|line| line.to_lowercase()).collect();
    let length =
        head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = head[0].trim_end_matches(" http/1.1").to_owned();
    Some(Call { line, headers: head, body: String::from_utf8(body).ok()? })
}

/// Adds a configuration file with this heartbeat URL, and these other lines.
fn with_heartbeat(hook: Hook, url: &str, lines: &str) -> Hook {
    hook.with_config(&format!("heartbeat_url = \"{url}\"\n{lines}"))
}

/// A `sync` without lineages, which succeeds.
fn sync_nothing(url: &str) -> Hook {
    with_heartbeat(edgecert().args(["sync"]), url, "")
}

/// A `sync` that fails, because it has to deploy a lineage to a service that cannot be reached.
fn failing_sync(url: &str, lineage: &Lineage) -> Hook {
    let service = "base_url = \"http://127.0.0.1:1\"\ntimeout = 1\n";
    let lines = format!("{service}[[lineage]]\npath = '{}'\n", lineage.path().display());
    with_heartbeat(edgecert().env("EDGECERT_API_KEY", "a-key-of-this-test").args(["sync"]), url, &lines)
}

#[track_caller]
fn assert_warns(output: &Output, warning: &str) {
    let line = format!("edgecert: warning: {warning}");
    assert!(output.stderr.lines().any(|found| found.starts_with(&line)), "{line}\n{}", output.stderr);
}

#[test]
fn each_outcome_arrives_with_a_summary() {
    let (heartbeats, state) = (Heartbeats::start(), TempDir::new().unwrap());
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    deploy(&service, &lineage, state.path()).succeeds();
    let sync = edgecert().against(&service).with_state(state.path()).args(["sync"]);
    let output = with_heartbeat(sync, &heartbeats.url(), "").succeeds();
    assert_eq!(output.stderr, "");
    let call = heartbeats.only_call();
    assert_eq!(call.line, format!("post /{ID}/0"));
    assert!(call.headers.iter().any(|header| header == "content-type: text/plain; charset=utf-8"));
    assert!(call.body.starts_with("1 lineage: 1 unchanged (") && call.body.ends_with(" s)"), "{}", call.body);

    let output = failing_sync(&heartbeats.url(), &lineage).exits_with(75);
    let call = heartbeats.only_call();
    assert_eq!(call.line, format!("post /{ID}/75"));
    let error = output.stderr.lines().find_map(|line| line.strip_prefix("edgecert: error: ")).unwrap();
    assert!(call.body.starts_with("1 lineage: 1 failed (") && call.body.ends_with(error), "{}", call.body);
    assert_eq!(call.body.lines().count(), 1);

    let output =
        with_heartbeat(edgecert().args(["sync"]), &heartbeats.url(), "timeout = \"soon\"\n").exits_with(78);
    let call = heartbeats.only_call();
    assert_eq!(call.line, format!("post /{ID}/78"));
    assert!(output.stderr.contains(&call.body) && call.body.contains("`timeout`: expected"), "{}", call.body);
}

#[test]
fn only_sync_calls_its_url() {
    let heartbeats = Heartbeats::start();

    step("damaged_configuration_still_sends_78");
    for lines in ["base_url = https://unquoted\n", "[[lineage]]\n"] {
        with_heartbeat(edgecert().args(["sync"]), &heartbeats.url(), lines).exits_with(78);
        assert_eq!(heartbeats.only_line(), format!("post /{ID}/78"), "{lines}");
    }
    let output =
        with_heartbeat(edgecert().args(["sync"]), &heartbeats.url(), "").env("EDGECERT_WAIT", "soon");
    output.exits_with(78);
    assert_eq!(heartbeats.only_line(), format!("post /{ID}/78"));

    step("other_commands_send_no_heartbeat");
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let call = |arguments: &[&str]| {
        with_heartbeat(edgecert().against(&service).args(arguments), &heartbeats.url(), "")
    };
    call(&["--lineage", lineage.path().to_str().unwrap()]).succeeds();
    call(&["status"]).succeeds();
    call(&["sync", "--no-such-flag"]).exits_with(2);
    call(&[]).called_by_dehydrated("unchanged_cert", &lineage).succeeds();
    assert!(heartbeats.calls.try_recv().is_err());

    step("credentials_of_the_url_are_sent");
    let url = format!("http://user:pass%20word@localhost:{}/api/push/{ID}?msg=a%20b", heartbeats.port);
    let output = sync_nothing(&url).args(["--shard", "1/2"]).succeeds();
    assert!(!output.stderr.contains("heartbeat"), "{}", output.stderr);
    let Call { line, headers, .. } = heartbeats.only_call();
    assert_eq!(line, format!("post /api/push/{ID}/0?msg=a%20b"));
    assert!(
        headers.iter().any(|header| header == "authorization: basic dxnlcjpwyxnzihdvcmq="),
        "{headers:?}"
    );
}

#[test]
fn unsuccessful_call_is_only_a_warning() {
    let target = Heartbeats::start();
    let redirect: &'static str = Box::leak(
        format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", target.url()).into(),
    );
    let rows = [
        ("HTTP/1.1 204 No Content\r\n\r\n", None),
        (
            "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
            Some("heartbeat_url responded with status 500, expected 200 to 299"),
        ),
        (redirect, Some("heartbeat_url responded with redirect 302; redirects are never followed")),
        ("nonsense\r\n\r\n", Some("cannot call heartbeat_url: ")),
        ("", Some("cannot call heartbeat_url: ")),
    ];
    for (answer, warning) in rows {
        let heartbeats = Heartbeats::answering(answer);
        let output = sync_nothing(&heartbeats.url()).args(["--json"]).succeeds();
        heartbeats.only_call();
        let warnings = output.json()["warnings"].to_string();
        assert_eq!(warnings.contains("heartbeat_url"), warning.is_some(), "{warnings}");
        if let Some(warning) = warning {
            assert_warns(&output, warning);
            assert!(warnings.contains(warning), "{warnings}");
        }
    }
    assert!(target.calls.try_recv().is_err(), "the redirect was followed");
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = failing_sync(&format!("http://127.0.0.1:1/{ID}"), &lineage).exits_with(75);
    assert_warns(&output, "cannot call heartbeat_url: ");
    let output = sync_nothing(&format!("https://no-such-host.invalid/{ID}")).succeeds();
    assert_warns(&output, "cannot call heartbeat_url: ");
}

#[test]
fn https_needs_a_trusted_certificate() {
    let (heartbeats, issued) = (Heartbeats::start(), test_ca().issue(&["localhost"]).unwrap());
    let nginx = Nginx::before(&format!("http://127.0.0.1:{}", heartbeats.port), &issued, "", "");
    let url = |host: &str| format!("https://{host}:{}/{ID}", nginx.port);
    let output = sync_nothing(&url("localhost")).succeeds();
    assert!(!output.stderr.contains("heartbeat_url"), "{}", output.stderr);
    let call = heartbeats.only_call();
    assert_eq!(call.line.trim_end_matches(" http/1.0"), format!("post /{ID}/0"), "{}", output.stderr);
    assert!(call.body.starts_with("no lineage was ever deployed"), "{}", call.body);

    let untrusted = "cannot call heartbeat_url: the TLS certificate of its server is not trusted: it";
    assert_warns(&sync_nothing(&url("127.0.0.1")).succeeds(), &format!("{untrusted} is for another name"));
    // `ca_file` is for the service only, not for the receiver.
    let hook = sync_nothing(&url("localhost"));
    let ca = hook.system_roots().to_owned();
    let leaf = hook.write_file("leaf.pem", &issued.cert);
    let output = hook.env("SSL_CERT_FILE", leaf).env("EDGECERT_CA_FILE", ca).succeeds();
    assert_warns(&output, &format!("{untrusted}s issuer is not in the trust store"));
    assert!(heartbeats.calls.try_recv().is_err());
}

#[test]
fn panic_is_a_heartbeat_too() {
    let heartbeats = Heartbeats::start();
    sync_nothing(&heartbeats.url()).args(["--splay", "1"]).under(&PANIC_IN_SLEEP).exits_with(70);
    let call = heartbeats.only_call();
    assert_eq!(call.line, format!("post /{ID}/70"));
    assert!(call.body.contains("internal error: panic at "), "{}", call.body);
}

/// The thread of the heartbeat waits for the exit after the other thread's panic.
#[test]
fn panic_of_the_heartbeat_delays_no_exit() {
    let hook = sync_nothing(&Heartbeats::start().url()).args(["--splay", "1"]);
    let hook = hook.under(&["-e", "inject=epoll_wait,epoll_pwait:error=EIO"]);
    hook.under(&PANIC_IN_SLEEP).under(&["timeout", "30"]).exits_with(70).says("internal error: panic at ");
}

#[test]
fn proxy_is_read_as_curl_reads_it() {
    let proxy = Heartbeats::answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let variable = format!("http://127.0.0.1:{}", proxy.port);
    let output = sync_nothing(&format!("https://hc.invalid/{ID}")).env("https_proxy", &variable).succeeds();
    assert_eq!(proxy.only_line(), "connect hc.invalid:443");
    assert_warns(&output, "cannot call heartbeat_url: ");
    let output =
        sync_nothing(&format!("https://hc.invalid/{ID}")).env("https_proxy", "socks5://hunter2").succeeds();
    assert_warns(&output, "cannot call heartbeat_url: https_proxy: ");
    assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    let output = sync_nothing(&format!("https://hc.invalid/{ID}")).env("https_proxy", &variable);
    output.env("no_proxy", "invalid").succeeds();
    sync_nothing(&proxy.url()).env("https_proxy", &variable).env("http_proxy", &variable).succeeds();
    assert_eq!(proxy.only_line(), format!("post /{ID}/0"), "loopback needs no proxy");
}

#[test]
fn url_is_never_shown() {
    require_trusted_root();
    let (refusing, lineage) = (
        Heartbeats::answering("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        Lineage::issued_for(&["a.example"]),
    );
    let redirecting =
        Heartbeats::answering("HTTP/1.1 307 x\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
    let urls = [
        Heartbeats::start().url(),
        refusing.url(),
        redirecting.url(),
        format!("http://127.0.0.1:1/{ID}?{ID}"),
        format!("https://127.0.0.1:1/{ID}"),
        format!("https://{ID}.invalid/{ID}"),
        format!("https://127.0.0.1:{}/{ID}", refusing.port),
    ];
    for url in urls {
        let home = TempDir::new().unwrap();
        let script = home.path().join("notify");
        let text = "#!/bin/sh\n{ cat; tr '\\0' '\\n' < /proc/self/environ; } > \"${0%/*}/seen\"\n";
        write_with_mode(&script, text, 0o755);
        let hook = edgecert().args(["sync", "--json", "-vv"]).env("EDGECERT_API_KEY", "a-key-of-this-test");
        let lines = format!(
            "base_url = \"http://127.0.0.1:1\"\ntimeout = 1\non_failure = ['{}']\n[[lineage]]\npath = '{}'\n",
            script.display(),
            lineage.path().display()
        );
        let (output, log) = run_with_syslog(with_heartbeat(hook, &url, &lines), &[]);
        assert_eq!(output.code, 75, "{}", output.stderr);
        let seen = fs::read_to_string(home.path().join("seen")).unwrap();
        assert!(seen.contains("EDGECERT_EXIT_CODE=75") && output.stderr.contains("heartbeat_url"), "{seen}");
        let is_logged = log.iter().any(|line| line.contains("heartbeat_url"));
        assert_eq!(is_logged, seen.contains("heartbeat_url"), "{url}: {log:?}");
        let text = [output.stdout, output.stderr, output.state, seen, log.concat()].concat();
        for part in [&*url, ID, &ID[..13]] {
            assert!(!text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn invalid_url_is_named_by_its_line() {
    let rows = [
        (
            format!("\"http://hc.example/{ID}\""),
            "plain http is for loopback addresses only, because secrets are sent",
        ),
        (format!("https://hc.example/{ID}?a=b"), "expected newline"),
    ];
    for (value, reason) in rows {
        for arguments in [&["sync", "-vv"][..], &["sync", "--json"], &["doctor", "--settings"], &["status"]] {
            let hook = edgecert().args(arguments).with_config(&format!("\nheartbeat_url = {value}\n"));
            let output = hook.exits_with(78);
            let text = format!("{}{}{}", output.stdout, output.stderr, output.state);
            assert!(!text.contains(ID), "{text}");
            let is_named = text.contains("config.toml:2: ") || text.contains("config.toml line 2");
            assert!(is_named && text.contains(reason), "{reason}\n{text}");
        }
    }
}
