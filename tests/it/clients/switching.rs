//! A pair that is being switched while the hook reads it: most clients replace certificate and key one after the other.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::harness::{Lineage, edgecert, sandbox, test_ca};

use super::{certificates, served_record};

/// Starts the hook, switches the pair once the hook says that it does not fit, and expects the deployment.
#[track_caller]
fn switched_while_it_is_read(lineage: &Lineage, switch: impl FnOnce()) {
    let service = sandbox(&["a.example"]);
    let mut hook = edgecert().called_by_certbot(lineage).against(&service).args(["-vv"]);
    let mut process = hook.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut said: Vec<String> = Vec::new();
    while !said.last().is_some_and(|line| line.contains("reading them again")) {
        said.push(
            lines
                .next()
                .unwrap_or_else(|| panic!("the hook did not see that the pair does not fit: {said:?}")),
        );
    }
    switch();
    said.extend(lines);
    assert_eq!(process.wait().unwrap().code(), Some(0), "{said:?}");
    assert_eq!(served_record(&service, &["a.example"]).chain, certificates(&lineage.read("fullchain.pem")));
}

#[test]
fn a_key_that_follows_its_certificate_is_waited_for() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let old = lineage.read("privkey.pem");
    lineage.renew(&["a.example"]);
    let new = lineage.read("privkey.pem");
    lineage.write("privkey.pem", &old);
    switched_while_it_is_read(&lineage, || lineage.write("privkey.pem", &new));
}

#[test]
fn a_certificate_that_follows_its_key_is_waited_for() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let old = lineage.read("fullchain.pem");
    lineage.renew(&["a.example"]);
    let new = lineage.read("fullchain.pem");
    lineage.write("fullchain.pem", &old);
    switched_while_it_is_read(&lineage, || lineage.write("fullchain.pem", &new));
}

/// acme.sh, lego and acmed write in place.
#[test]
fn a_file_that_is_half_written_is_waited_for() {
    for name in ["privkey.pem", "fullchain.pem"] {
        let lineage = Lineage::issued_for(&["a.example"]);
        let whole = lineage.read(name);
        for part in [0, whole.len() / 4, whole.len() * 3 / 4].map(|end| &whole[..end]) {
            lineage.write(name, part);
            switched_while_it_is_read(&lineage, || lineage.write(name, &whole));
        }
    }
}

/// certbot removes each link before it makes the new one.
#[test]
fn a_link_that_is_absent_for_a_moment_is_waited_for() {
    for name in ["privkey.pem", "fullchain.pem"] {
        let lineage = Lineage::issued_for(&["a.example"]);
        lineage.rename(name, "aside.pem");
        switched_while_it_is_read(&lineage, || lineage.rename("aside.pem", name));
    }
}

#[test]
fn a_key_that_never_comes_is_an_error_and_nothing_is_sent() {
    let service = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    lineage.write("privkey.pem", &test_ca().issue(&["a.example"]).unwrap().key);
    edgecert().called_by_certbot(&lineage).against(&service).exits_with(65);
    fs::remove_file(lineage.file("privkey.pem")).unwrap();
    edgecert().called_by_certbot(&lineage).against(&service).exits_with(66);
    assert_eq!(service.requests().len(), 0);
}
