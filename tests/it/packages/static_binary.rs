//! The static binary: it needs nothing of the host, and resolves names without the system's resolver.

mod name_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::harness::{Lineage, Options, Sandbox, require, require_root, sandbox_with, test_ca};

use super::{assert_is_notices, output, package};
use name_server::{Answers, NameServer};

/// Unpacks the archive and returns the binary.
fn unpack(directory: &Path) -> PathBuf {
    let archive = package("-linux-gnu.tar.gz");
    let strip = ["--strip-components=1", "--directory", directory.to_str().unwrap()];
    output("tar", &[&["-xzf", archive.to_str().unwrap()], &strip[..]].concat());
    directory.join("edgecert")
}

#[test]
fn static_binary_links_nothing() {
    require("readelf", "binutils");
    let directory = TempDir::new().unwrap();
    let binary = unpack(directory.path());
    let shown = output("readelf", &["--wide", "--program-headers", "--dynamic", binary.to_str().unwrap()]);
    assert!(shown.contains("LOAD"), "{shown}");
    for unwanted in ["INTERP", "NEEDED"] {
        assert!(!shown.contains(unwanted), "{unwanted}: {shown}");
    }
    for beside in
        ["LICENSE", "man/edgecert.1.gz", "completions/_edgecert", "hooks/systemd/edgecert-sync.timer"]
    {
        assert!(directory.path().join(beside).exists(), "{beside} is missing");
    }
    assert_is_notices(&fs::read_to_string(directory.path().join("THIRD-PARTY-NOTICES")).unwrap());
}

/// A directory with the binary, a lineage and root certificates, and nothing else.
struct EmptyRoot(TempDir);

impl EmptyRoot {
    fn new(service: &Sandbox, lineage: &Lineage) -> Self {
        require_root();
        let unpacked = TempDir::new().unwrap();
        let root = Self(TempDir::new().unwrap());
        fs::copy(unpack(unpacked.path()), root.0.path().join("edgecert")).unwrap();
        for name in ["fullchain.pem", "privkey.pem"] {
            root.write(&format!("live/{name}"), &lineage.read(name));
        }
        let authority = fs::read_to_string(service.endpoints().ca_file.as_ref().unwrap()).unwrap();
        root.write("etc/ssl/certs/ca-certificates.crt", &(authority + test_ca().root()));
        root
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Deploys in the root, to a service and an edge with these hosts.
    fn deploy(&self, service: &Sandbox, api: &str, edge: &str) -> (Option<i32>, String) {
        let endpoints = service.endpoints();
        let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
        let mut command = Command::new("/usr/sbin/chroot");
        command.arg(self.0.path()).args(["/edgecert", "--lineage", "/live", "--state-dir", "/state"]);
        command.args(["--timeout", "20"]).env_clear().env("EDGECERT_API_KEY", &endpoints.api_key);
        command.env("EDGECERT_BASE_URL", format!("https://{api}:{}", port(&endpoints.api)));
        command.env("EDGECERT_EDGE_ADDRESS", format!("{edge}:{}", port(&endpoints.edge)));
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
    }
}

fn tls_service() -> Sandbox {
    sandbox_with(Options { tls: true, ..Options::default() }, &["a.example"])
}

#[test]
fn static_binary_deploys_in_empty_root() {
    let (service, lineage) = (tls_service(), Lineage::issued_for(&["a.example"]));
    let names = NameServer::start("127.0.0.77", Answers::Names(&["edge.static.test", "api.static.test"]));
    let root = EmptyRoot::new(&service, &lineage);
    root.write("etc/hosts", "127.0.0.1 localhost # of this host\n");
    root.write("etc/resolv.conf", "nameserver 127.0.0.77\noptions timeout:1\n");

    let (code, shown) = root.deploy(&service, "localhost", "edge.static.test");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("* served    a.example  1/1"), "{shown}");
    assert!(names.has_asked("edge.static.test"));

    // It finds the service, whose certificate is for `localhost`.
    let (code, shown) = root.deploy(&service, "api.static.test", "edge.static.test");
    assert_eq!(code, Some(78), "{shown}");
    assert!(shown.contains("it is for another name"), "{shown}");
    assert!(names.has_asked("api.static.test"));

    let (code, shown) = root.deploy(&service, "nowhere.static.test", "edge.static.test");
    assert_eq!(code, Some(75), "{shown}");
    assert!(names.has_asked("nowhere.static.test"), "{shown}");
}

#[test]
fn static_binary_needs_no_resolver_configuration() {
    let (service, lineage) = (tls_service(), Lineage::issued_for(&["a.example"]));
    let root = EmptyRoot::new(&service, &lineage);
    let (code, shown) = root.deploy(&service, "127.0.0.1", "127.0.0.1");
    assert_eq!(code, Some(0), "{shown}");
    root.write("etc/hosts", "127.0.0.1 edge.static.test\n");
    let (code, shown) = root.deploy(&service, "localhost", "edge.static.test");
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = root.deploy(&service, "nowhere.static.test", "edge.static.test");
    assert_eq!(code, Some(75), "{shown}");
}

#[test]
fn static_binary_asks_servers_in_order() {
    let (service, lineage) = (tls_service(), Lineage::issued_for(&["a.example"]));
    let (_silent, failing) = (
        NameServer::start("127.0.0.78", Answers::Nothing),
        NameServer::start("127.0.0.79", Answers::Failure),
    );
    let knowing = NameServer::start("127.0.0.80", Answers::OverTcp(&["edge.static.test"]));
    let root = EmptyRoot::new(&service, &lineage);
    root.write("etc/hosts", "127.0.0.1 localhost\n");
    root.write(
        "etc/resolv.conf",
        "nameserver 127.0.0.78\nnameserver 127.0.0.79\nnameserver 127.0.0.80\noptions timeout:1 attempts:1\n",
    );
    let (code, shown) = root.deploy(&service, "localhost", "edge.static.test");
    assert_eq!(code, Some(0), "{shown}");
    assert!(failing.has_asked("edge.static.test") && knowing.has_asked("edge.static.test"));

    // A failure is reported with the servers.
    root.write("etc/resolv.conf", "nameserver 127.0.0.79\noptions timeout:1 attempts:1\n");
    let (code, shown) = root.deploy(&service, "api.static.test", "edge.static.test");
    assert_eq!(code, Some(75), "{shown}");
    assert!(shown.contains("the name servers in /etc/resolv.conf (127.0.0.79) failed"), "{shown}");
}

#[test]
fn static_binary_asks_no_server_for_listed_hosts() {
    let (service, lineage) = (tls_service(), Lineage::issued_for(&["a.example"]));
    let names = NameServer::start("127.0.0.81", Answers::Names(&["edge.static.test"]));
    let root = EmptyRoot::new(&service, &lineage);
    // As in a pod: the names of the cluster come first.
    root.write(
        "etc/resolv.conf",
        "nameserver 127.0.0.81\nsearch cluster.test static.test\noptions ndots:5 timeout:1\n",
    );
    root.write("etc/hosts", "127.0.0.1 localhost\n127.0.0.1 Listed.static.test # \u{fc}\n");
    let (code, shown) = root.deploy(&service, "localhost", "listed.static.test");
    assert_eq!(code, Some(0), "{shown}");
    assert!(!names.has_asked("listed.static.test") && !names.has_asked("listed.static.test.cluster.test"));

    for (host, first) in
        [("edge", "edge.cluster.test"), ("edge.static.test", "edge.static.test.cluster.test")]
    {
        root.deploy(&service, "localhost", host);
        assert!(names.has_asked(first), "{host}");
    }
    let (code, shown) = root.deploy(&service, "localhost", "edge");
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = root.deploy(&service, "127.0.0.1", "127.0.0.1");
    assert_eq!(code, Some(0), "{shown}");
    assert!(!names.has_asked("127.0.0.1.cluster.test"));
}

#[test]
fn static_binary_reports_resolver_configuration() {
    let (service, lineage) = (tls_service(), Lineage::issued_for(&["a.example"]));
    let root = EmptyRoot::new(&service, &lineage);
    fs::create_dir_all(root.0.path().join("etc/resolv.conf")).unwrap();
    let (code, shown) = root.deploy(&service, "api.static.test", "127.0.0.1");
    assert_eq!(code, Some(75), "{shown}");
    assert!(shown.contains("cannot read /etc/resolv.conf: Is a directory"), "{shown}");
}
