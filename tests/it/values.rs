//! Wrong values of settings: the error names their origin and never the value, with one exit code for one kind of mistake.

use crate::harness::{Hook, Lineage, edgecert, sandbox};

const SECONDS: [&str; 5] = ["abc", "-1", "1.5", "99999999999999999999", "30 s"];
const URLS: [&str; 7] = [
    "api.example.net",
    "ftp://api.example.net",
    "http://api.example.net",
    "https://api.example.net:70000",
    "https://api.example.net:0",
    "https://api .example.net",
    "https://",
];
const ADDRESSES: [&str; 6] = [
    "edge.example",
    "edge.example:",
    "edge.example:0",
    "edge.example:70000",
    "edge.example: 443",
    "edge.example:443,",
];
const SWITCHES: [&str; 4] = ["perhaps", "2", "-1", "yes no"];

/// Every setting, with values that it refuses. Any other text is a path or a name.
const WRONG: [(&str, &[&str]); 15] = [
    ("base_url", &URLS),
    ("api_key_file", &[]),
    ("ca_file", &[]),
    ("proxy", &["socks5://proxy.example", "http://proxy.example:0"]),
    ("timeout", &SECONDS),
    ("state_dir", &[]),
    ("edge_address", &ADDRESSES),
    ("wait", &SECONDS),
    ("verify", &["perhaps", "1"]),
    ("verify_every", &SECONDS),
    ("trust_anchors", &[]),
    ("name", &[]),
    ("rebind", &SWITCHES),
    ("allow_untrusted", &SWITCHES),
    ("skip_unmatched", &SWITCHES),
];

/// A hook whose other settings are valid.
fn hook(lineage: &Lineage) -> Hook {
    let hook = edgecert().called_by_certbot(lineage).env("EDGECERT_API_KEY", "k");
    hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1")
}

fn with_file(hook: Hook, text: &str) -> Hook {
    hook.write_file(".config/edgecert/config.toml", text);
    hook
}

#[track_caller]
fn assert_names(hook: Hook, code: i32, origin: &str, value: &str) {
    let stderr = hook.exits_with(code).stderr;
    assert!(stderr.contains(origin), "{origin:?} is not in\n{stderr}");
    // Hints and expected values have short words, too.
    assert!(value.len() < 4 || !stderr.contains(value), "{value:?} is in\n{stderr}");
}

#[test]
fn wrong_flag_is_a_usage_error() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for (key, values) in WRONG {
        let flag = format!("--{}", key.replace('_', "-"));
        for value in values {
            let argument = format!("{flag}={value}");
            assert_names(hook(&lineage).args([argument]), 2, &flag, value);
        }
        assert_names(hook(&lineage).args([format!("{flag}=")]), 2, &flag, "");
    }
}

#[test]
fn negative_number_is_a_value() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for flag in ["--wait", "--timeout", "--verify-every"] {
        assert_names(hook(&lineage).args([flag, "-1"]), 2, &format!("invalid value for '{flag} <SECS>'"), "");
    }
}

#[test]
fn numbers_may_be_quoted() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let hook = with_file(edgecert(), "timeout = '30'\nwait = \" 5 \"\n");
    hook.called_by_certbot(&lineage).against(&service).succeeds();
}

#[test]
fn wrong_variable_is_a_configuration_error() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for (key, values) in WRONG {
        let variable = format!("EDGECERT_{}", key.to_uppercase());
        for value in values {
            assert_names(hook(&lineage).env(&variable, value), 78, &format!("{variable}: "), value);
        }
    }
}

#[test]
fn wrong_line_is_a_configuration_error() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for (key, values) in WRONG {
        let quoted = values.iter().map(|value| format!("{value:?}"));
        let bare =
            values.iter().filter(|value| value.parse::<f64>().is_ok()).map(|value| (*value).to_owned());
        for value in quoted.chain(bare).chain(["\"\"".into(), "[]".into()]) {
            let hook = with_file(hook(&lineage), &format!("\n{key} = {value}\n"));
            assert_names(hook, 78, &format!("config.toml:2: `{key}`: "), value.trim_matches('"'));
        }
    }
}

#[test]
fn table_lists_every_setting() {
    let output = with_file(edgecert(), "unknown = 1\n").args(["status"]).exits_with(78);
    let known = output.stderr.split("known keys: ").nth(1).unwrap();
    let others = ["on_failure", "heartbeat_url", "lineage"];
    let settings: Vec<&str> = known.trim().split(", ").filter(|key| !others.contains(key)).collect();
    assert_eq!(settings, WRONG.map(|(key, _)| key));
}

#[test]
fn every_command_refuses_wrong_values() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let commands: [&[&str]; 8] = [
        &["deploy"],
        &["plan"],
        &["sync"],
        &["status"],
        &["doctor"],
        &["sites", "list"],
        &["sites", "get", "a.example"],
        &["certs", "list"],
    ];
    for command in commands {
        let report = |hook: Hook| {
            let output = hook.exits_with(78);
            output.stdout + &output.stderr
        };
        let variable = report(hook(&lineage).args(command).env("EDGECERT_WAIT", "soon"));
        assert!(variable.contains("EDGECERT_WAIT: "), "{command:?}: {variable}");
        let line = report(with_file(hook(&lineage).args(command), "wait = 'soon'\n"));
        assert!(line.contains("config.toml:1: `wait`: "), "{command:?}: {line}");
        hook(&lineage).args(command).args(["--state-dir="]).exits_with(2);
    }
}

#[test]
fn switches_are_spelled_alike_everywhere() {
    let (service, lineage) = (sandbox(&["other.example"]), Lineage::issued_for(&["a.example"]));
    // Without a covered site, the exit code shows what `skip_unmatched` is.
    let deploy = |hook: Hook| hook.called_by_certbot(&lineage).against(&service);
    for (word, code) in [("yes", 0), ("TRUE", 0), ("1", 0), ("on", 0), ("No", 69), ("false", 69), ("0", 69)] {
        deploy(edgecert()).args([format!("--skip-unmatched={word}")]).exits_with(code);
        deploy(edgecert()).env("EDGECERT_SKIP_UNMATCHED", word).exits_with(code);
        let number = word.parse::<u8>().is_ok() || word == "false";
        for value in [format!("{word:?}")].into_iter().chain(number.then(|| word.to_owned())) {
            deploy(with_file(edgecert(), &format!("skip_unmatched = {value}\n"))).exits_with(code);
        }
    }
}

#[test]
fn credentials_in_urls_are_not_echoed() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for url in [
        "https://user:hunter2@api.example.net",
        "http://user:hunter2@api.example.net",
        "ftp://hunter2@api.example.net",
        "https://api.example.net?key=hunter2",
        "https://user:hunter2@api.example.net:70000",
        "user:hunter2@api.example.net",
        "sk_live_hunter2",
    ] {
        let runs = [
            (hook(&lineage).args([format!("--base-url={url}")]), 2, "--base-url"),
            (hook(&lineage).env("EDGECERT_BASE_URL", url), 78, "EDGECERT_BASE_URL: "),
            (with_file(hook(&lineage), &format!("base_url = {url:?}\n")), 78, "config.toml:1: `base_url`: "),
        ];
        for (hook, code, origin) in runs {
            let output = hook.exits_with(code);
            assert!(output.stderr.contains(origin), "{}", output.stderr);
            let all = output.stdout + &output.stderr + &output.state;
            assert!(!all.contains("hunter2"), "{all}");
        }
    }
    for proxy in ["socks5://user:hunter2@proxy.example", "http://user:hunter2@proxy.example:0"] {
        let hook = hook(&lineage).env("EDGECERT_BASE_URL", "https://api.example.net");
        let output = hook.env("HTTPS_PROXY", proxy).exits_with(78);
        assert!(output.stderr.contains("HTTPS_PROXY: "), "{}", output.stderr);
        assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    }
}
