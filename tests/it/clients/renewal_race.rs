//! Renewals in progress: most clients replace certificate and key one after the other, while the hook may read them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::harness::{Lineage, edgecert, sandbox, test_ca};

use super::{certificates, served_record};

/// Starts the hook on an incomplete pair, completes the pair once the hook reports it, and expects the deployment.
#[track_caller]
fn assert_deploys_after(lineage: &Lineage, complete: impl FnOnce()) {
    let service = sandbox(&["a.example"]);
    let mut hook = edgecert().called_by_certbot(lineage).against(&service).args(["-vv"]);
    let mut process = hook.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut log: Vec<String> = Vec::new();
    while !log.last().is_some_and(|line| line.contains("reading them again")) {
        log.push(
            lines.next().unwrap_or_else(|| panic!("the hook did not notice the incomplete pair: {log:?}")),
        );
    }
    complete();
    log.extend(lines);
    assert_eq!(process.wait().unwrap().code(), Some(0), "{log:?}");
    assert_eq!(served_record(&service, &["a.example"]).chain, certificates(&lineage.read("fullchain.pem")));
}

#[test]
fn hook_waits_for_the_second_file() {
    for name in ["privkey.pem", "fullchain.pem"] {
        let lineage = Lineage::issued_for(&["a.example"]);
        let old = lineage.read(name);
        lineage.renew(&["a.example"]);
        let new = lineage.read(name);
        lineage.write(name, &old);
        assert_deploys_after(&lineage, || lineage.write(name, &new));
    }
}

/// acme.sh, lego and acmed write files in place.
#[test]
fn hook_waits_for_half_written_file() {
    for name in ["privkey.pem", "fullchain.pem"] {
        let lineage = Lineage::issued_for(&["a.example"]);
        let whole = lineage.read(name);
        for part in [0, whole.len() / 4, whole.len() * 3 / 4].map(|end| &whole[..end]) {
            lineage.write(name, part);
            assert_deploys_after(&lineage, || lineage.write(name, &whole));
        }
    }
}

/// certbot removes each link before it creates the new one.
#[test]
fn hook_waits_for_absent_link() {
    for name in ["privkey.pem", "fullchain.pem"] {
        let lineage = Lineage::issued_for(&["a.example"]);
        lineage.rename(name, "aside.pem");
        assert_deploys_after(&lineage, || lineage.rename("aside.pem", name));
    }
}

#[test]
fn missing_key_sends_nothing() {
    let service = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    lineage.write("privkey.pem", &test_ca().issue(&["a.example"]).unwrap().key);
    edgecert().called_by_certbot(&lineage).against(&service).exits_with(65);
    fs::remove_file(lineage.file("privkey.pem")).unwrap();
    edgecert().called_by_certbot(&lineage).against(&service).exits_with(66).says("privkey.pem: no such file");
    assert_eq!(service.requests().len(), 0);
}
