//! `edgecert doctor`: no fault in a good setup, and each setup fault by name.

mod hooks;
mod lineages;
mod next;
mod settings;
mod setup;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Hook, Output, Sandbox, edgecert, record_sync, test_ca, write_with_mode};

/// certbot's directories with a lineage for each row of names, hooked to edgecert; the first name is the lineage's.
struct Certbot {
    home: TempDir,
}

impl Certbot {
    fn with_lineages(lineages: &[&[&str]]) -> Self {
        let certbot = Self { home: TempDir::new().unwrap() };
        certbot.write("bin/edgecert", "#!/bin/sh\n", 0o755);
        for names in lineages {
            certbot.renew(names[0], names);
            certbot.attach(names[0], certbot.path("bin/edgecert"));
        }
        certbot
    }

    fn renew(&self, name: &str, names: &[&str]) {
        let issued = test_ca().issue(names).unwrap();
        self.write(&format!("live/{name}/fullchain.pem"), &issued.fullchain(), 0o644);
        self.write(&format!("live/{name}/privkey.pem"), &issued.key, 0o600);
    }

    fn attach(&self, name: &str, command: impl AsRef<Path>) {
        let record =
            format!("version = 2.8.0\n[renewalparams]\nrenew_hook = {}\n", command.as_ref().display());
        self.write(&format!("renewal/{name}.conf"), &record, 0o644);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn live(&self, name: &str) -> PathBuf {
        self.path("live").join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        write_with_mode(self.path(name), text, mode);
    }

    /// Configuration entries for lineages, with lines in each.
    fn entries(&self, names: &[&str], lines: &str) -> String {
        let entry = |name: &&str| format!("[[lineage]]\npath = '{}'\n{lines}", self.live(name).display());
        names.iter().map(entry).collect()
    }
}

/// A state directory, with the record of a timer.
fn private_directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    record_sync(directory.path());
    directory
}

/// A call on a host with a configuration file.
fn doctor(service: &Sandbox, configuration: &str) -> Hook {
    let hook = edgecert().against(service).args(["doctor", "--json"]).on_host();
    hook.write_file(".config/edgecert/config.toml", configuration);
    hook
}

/// A call on a host with one lineage for `a.example`, without faults.
fn on_good_host(service: &Sandbox, certbot: &Certbot) -> Hook {
    doctor(service, &certbot.entries(&["a.example"], ""))
}

/// The findings for which a function returns a line; its argument is status, subject, detail and remedy.
fn lines(output: &Output, line: impl Fn([&str; 4]) -> Option<String>) -> Vec<String> {
    let json = output.json();
    let fields = |finding: &Value| {
        let fields = ["status", "subject", "detail", "remedy"];
        line(fields.map(|field| finding[field].as_str().unwrap_or_default()))
    };
    json["findings"].as_array().unwrap().iter().filter_map(fields).collect()
}

/// The findings that need attention, as `status subject: detail; remedy`.
fn faults(output: &Output) -> Vec<String> {
    lines(output, |[status, subject, detail, remedy]| {
        let is_fault = status == "warn" || status == "fail";
        is_fault.then(|| format!("{status} {subject}: {detail}; {remedy}"))
    })
}

/// All findings, as `subject status: detail`.
fn findings(output: &Output) -> Vec<String> {
    lines(output, |[status, subject, detail, _]| Some(format!("{subject} {status}: {detail}")))
}

/// Expects a single fault, by the start of its line and a part of its remedy.
#[track_caller]
fn assert_only_fault(output: &Output, begins: &str, remedy: &str) {
    let faults = faults(output);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].starts_with(begins) && faults[0].contains(remedy), "{faults:#?}");
}
