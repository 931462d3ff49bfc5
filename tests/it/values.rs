//! Wrong values of settings have one exit code for one kind of mistake, in every command, and no message repeats them.
//! Which values are wrong is tested beside the code.

use crate::harness::{Hook, Lineage, edgecert, step};

/// A hook whose other settings are valid.
fn hook(lineage: &Lineage) -> Hook {
    let hook = edgecert().called_by_certbot(lineage).env("EDGECERT_API_KEY", "k");
    hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1")
}

fn with_file(hook: Hook, text: &str) -> Hook {
    hook.write_file(".config/edgecert/config.toml", text);
    hook
}

#[test]
fn wrong_values_are_refused_and_not_echoed() {
    let lineage = Lineage::issued_for(&["a.example"]);

    step("every_command_refuses_wrong_values");
    let of_hosts = ["deploy", "plan", "sync", "status", "doctor"];
    for command in of_hosts.into_iter().chain(["sites list", "sites get a.example", "certs list"]) {
        let call = || hook(&lineage).args(command.split(' '));
        let report = |hook: Hook| {
            let output = hook.exits_with(78);
            output.stdout + &output.stderr
        };
        let variable = report(call().env("EDGECERT_WAIT", "soon"));
        assert!(variable.contains("EDGECERT_WAIT: "), "{command}: {variable}");
        let line = report(with_file(call(), "wait = 'soon'\n"));
        assert!(line.contains("config.toml:1: `wait`: "), "{command}: {line}");
        call().args(["--state-dir="]).exits_with(2);
    }

    step("credentials_in_urls_are_not_echoed");
    let url = "https://user:hunter2@api.example.net";
    let https = || hook(&lineage).env("EDGECERT_BASE_URL", "https://api.example.net");
    let runs = [
        (hook(&lineage).args([format!("--base-url={url}")]), 2, "--base-url"),
        (hook(&lineage).env("EDGECERT_BASE_URL", url), 78, "EDGECERT_BASE_URL: "),
        (with_file(hook(&lineage), &format!("base_url = {url:?}\n")), 78, "config.toml:1: `base_url`: "),
        (https().env("HTTPS_PROXY", "socks5://user:hunter2@proxy.example"), 78, "HTTPS_PROXY: "),
    ];
    for (hook, code, origin) in runs {
        let output = hook.exits_with(code);
        output.says(origin);
        let all = output.stdout + &output.stderr + &output.state;
        assert!(!all.contains("hunter2"), "{all}");
    }
}
