//! Secrets: the API key and the private key appear in no output, file or argument, even if the service echoes them.

mod encodings;

use serde_json::json;

use crate::harness::{
    API_KEY, Fault, Hook, Lineage, Options, Output, edgecert, fresh, sandbox, sandbox_and_lineage,
    sandbox_with,
};

const PATHS: [&str; 3] = ["POST /api/certs/upload", "GET /api/me/sites", "GET /api/certs"];

/// Pieces of the private key's base64, none of which may appear anywhere.
fn key_pieces(lineage: &Lineage) -> Vec<String> {
    let key = lineage.read("privkey.pem");
    let lines = key.lines().filter(|line| !line.starts_with("-----"));
    let pieces = lines.flat_map(|line| line.as_bytes().chunks_exact(16));
    pieces.map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
}

#[track_caller]
fn assert_no_secret(output: &Output, lineage: &Lineage) {
    for text in [&output.stdout, &output.stderr, &output.state] {
        assert!(!text.contains(API_KEY), "{text}");
        for piece in key_pieces(lineage) {
            assert!(!text.contains(&piece), "{piece} in {text}");
        }
    }
}

/// Runs with different amounts of output.
fn calls<'a>(service: &'a crate::harness::Sandbox, lineage: &'a Lineage) -> impl Iterator<Item = Hook> + 'a {
    let argument_lists: [&[&str]; 4] =
        [&["-vv"], &["-vv", "--json"], &["-vv", "--json", "--wait", "0", "--domain", "a.example"], &[]];
    argument_lists
        .into_iter()
        .map(move |arguments| fresh(service, lineage).args(["--timeout", "2"]).args(arguments))
}

#[test]
fn output_and_state_hold_no_secret() {
    for tls in [false, true] {
        let service = sandbox_with(Options { tls, ..Options::default() }, &["a.example"]);
        let lineage = Lineage::issued_for(&["a.example"]);
        for hook in calls(&service, &lineage) {
            let output = hook.succeeds();
            let is_recorded = ["\"served\"", "\"uploaded\""].iter().any(|text| output.state.contains(text));
            assert!(is_recorded, "{}", output.state);
            assert_no_secret(&output, &lineage);
        }
    }
}

#[test]
fn echoed_secrets_are_redacted() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let key = lineage.read("privkey.pem");
    let one_line = key.lines().nth(1).unwrap().to_owned();
    let bodies = [
        json!({"ok": false, "error": format!("bad request: Bearer {API_KEY}")}),
        json!({"ok": false, "error": {"message": key}}),
        json!({"ok": false, "request": {"key_pem": key, "authorization": API_KEY}}),
        json!(format!("key_pem={key}&key={API_KEY}")),
        json!(format!("unexpected {one_line}")),
        json!({"ok": true, "id": "7", "created": true, "bound_sites": [key, {"domain": API_KEY}], "not_after": API_KEY, "key_match": one_line}),
    ];
    for (row, (body, status)) in bodies.into_iter().zip([400, 401, 500, 200, 400, 200]).enumerate() {
        let service = sandbox(&["a.example"]);
        for path in PATHS {
            let fault = Fault::status(path, status).body(body.clone());
            service.add_fault(fault.times(9).header("Retry-After", "9999"));
        }
        assert_no_secret(&calls(&service, &lineage).nth(row % 3).unwrap().run(), &lineage);
    }
}

#[test]
fn location_with_key_is_redacted() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    for path in PATHS {
        let login = format!("/login?key={API_KEY}");
        service.add_fault(Fault::status(path, 302).header("Location", &login).times(9));
    }
    for hook in calls(&service, &lineage) {
        assert_no_secret(&hook.exits_with(76), &lineage);
    }
}

#[test]
fn key_as_argument_is_not_echoed() {
    for arguments in
        [&["--api-key=sandbox-key"][..], &["--api-key", "sandbox-key"], &["--key-file=sandbox-key"]]
    {
        let output = edgecert().args(arguments).exits_with(2);
        assert!(!output.stderr.contains(API_KEY), "{}", output.stderr);
    }
}

#[test]
fn key_given_for_its_file_is_not_echoed() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    for key in [API_KEY, "sk+abc/def==", &"k".repeat(300)] {
        let hook =
            fresh(&service, &lineage).without_env("EDGECERT_API_KEY").env("EDGECERT_API_KEY_FILE", key);
        let output = hook.exits_with(78);
        output.says("its name is not shown, because it may be the key itself");
        assert!(!(output.stdout.clone() + &output.stderr + &output.state).contains(key), "{}", output.state);
    }
}

#[test]
fn only_state_files_are_written() {
    let service = sandbox(&["a.example"]);
    service.hold_pushes(true);
    let lineage = Lineage::issued_for(&["a.example"]);
    let trace = lineage.file("trace");
    let mut hook = fresh(&service, &lineage).args(["-vv", "--wait", "1"]);
    assert!(hook.command().get_args().all(|argument| !argument.to_string_lossy().contains(API_KEY)));
    // Trace every system call that can create or write a file or start a program.
    let calls = "trace=openat,open,creat,write,pwrite64,writev,execve,rename,mkdir,linkat,symlinkat";
    let strace = ["strace", "-f", "-qq", "-s", "9999", "-e", calls, "-o", trace.to_str().unwrap()];
    let mut hook = hook.under(&strace);
    // The edge refuses the name until the first push.
    let output = hook.command().output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = std::fs::read_to_string(&trace).unwrap();
    assert!(calls.contains("execve("), "the trace is empty");
    let home = hook.home();
    let state_path = format!("\"{}/state", home.display());
    for line in calls.lines().filter(|line| !line.contains(&state_path)) {
        let opens_for_writing =
            line.contains("O_WRONLY") || line.contains("O_RDWR") || line.contains("O_CREAT");
        assert!(!opens_for_writing || line.contains("/dev/null"), "{line}");
        let others = ["rename(", "mkdir(", "linkat(", "symlinkat("];
        assert!(!others.iter().any(|call| line.contains(call)), "{line}");
    }
    assert_eq!(calls.matches("execve(").count(), 1, "no child process may be started");
    let files: Vec<_> = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["state"]);
}

#[test]
fn core_dumps_are_disabled() {
    let service = sandbox(&["a.example"]);
    service.add_fault(Fault::stall("POST /api/certs/upload", 30.0));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut hook = fresh(&service, &lineage).for_domain("a.example").args(["--wait", "0"]);
    let mut child = hook.command().spawn().unwrap();
    while service.requests().is_empty() {
        std::thread::yield_now();
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core_limit = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(core_limit.split_whitespace().nth(4), Some("0"), "{core_limit}");
}

#[test]
fn keys_with_punctuation_are_redacted() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for key in ["user42:Hq8:zz91:Kp0w", "{\"a\":\"b-c-d\"}"] {
        let service = sandbox(&["a.example"]);
        for path in PATHS {
            let split: String = key.chars().flat_map(|c| ['\u{200b}', c]).collect();
            service.add_fault(Fault::status(path, 400).body(format!("bad Bearer {key} or {split}")).times(9));
        }
        for arguments in [&["--json"][..], &["-vv", "--wait", "0", "--domain", "a.example"]] {
            let output = fresh(&service, &lineage).env("EDGECERT_API_KEY", key).args(arguments).run();
            let text = output.stdout.clone() + &output.stderr;
            let quoted = serde_json::to_string(key).unwrap();
            assert!(text.contains("[withheld: it repeats a secret]"), "{text}");
            assert!(!text.contains(key) && !text.contains(quoted.trim_matches('"')), "{text}");
        }
    }
}

#[test]
fn secrets_in_listings_are_redacted() {
    // A part of a key that may be in a domain. The line before it begins like that of every other key.
    let part = |key: &str| key.lines().nth(2).unwrap().get(..20).unwrap().to_owned();
    let mut lineages = std::iter::repeat_with(|| Lineage::issued_for(&["a.example"]));
    let is_domain =
        |lineage: &Lineage| part(&lineage.read("privkey.pem")).chars().all(|c| c.is_ascii_alphanumeric());
    let lineage = lineages.find(is_domain).unwrap();
    let key = lineage.read("privkey.pem");
    let line = part(&key);
    let site = |id: u64, domain: &str| {
        json!({
            "id": id, "domain": domain, "cert_id": 7, "config_synced": true, "enabled": id == 10,
            "cname": format!("{API_KEY}.{line}"), "disabled_reason": key,
        })
    };
    let sites = json!({"sites": [site(10, "a.example"), site(11, "b.example"), site(12, &line)]});
    let records = json!([{"id": 7, "domain": line, "name": API_KEY}, {"id": 8, "domain": "a.example"}]);
    let service = sandbox(&["a.example"]);
    service.add_fault(Fault::status("GET /api/me/sites", 200).body(sites).times(99));
    service.add_fault(Fault::status("GET /api/certs", 200).body(records).times(99));
    let updated = json!({"ok": true, "ignored_fields": [key, API_KEY]});
    service.add_fault(Fault::status("POST /api/sites/*/update", 200).body(updated).times(99));
    for arguments in [&["-vv"][..], &["-vv", "--json"], &["plan"], &["--rebind", "--json"]] {
        let hook = fresh(&service, &lineage).without_env("EDGECERT_EDGE_ADDRESS");
        assert_no_secret(&hook.args(["--wait", "1"]).args(arguments).run(), &lineage);
    }
}
