//! The static binary: it needs nothing of the host, and resolves names without the system's resolver.

mod name_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::harness::{Lineage, Sandbox, require, require_root, test_ca, tls_sandbox};

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

/// A root directory with the binary, a lineage and root certificates, and nothing else, and the service to deploy to.
struct EmptyRoot {
    directory: TempDir,
    service: Sandbox,
}

impl EmptyRoot {
    fn new() -> Self {
        require_root();
        let service = tls_sandbox(&["a.example"]);
        let (unpacked, directory) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::copy(unpack(unpacked.path()), directory.path().join("edgecert")).unwrap();
        let root = Self { directory, service };
        let lineage = Lineage::issued_for(&["a.example"]);
        for name in ["fullchain.pem", "privkey.pem"] {
            root.write(&format!("live/{name}"), &lineage.read(name));
        }
        let authority = fs::read_to_string(root.service.endpoints().ca_file.as_ref().unwrap()).unwrap();
        root.write("etc/ssl/certs/ca-certificates.crt", &(authority + test_ca().root()));
        root
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Deploys in the root, to a service and an edge with these hosts, and expects this exit code. Returns the output.
    #[track_caller]
    fn deploy(&self, api: &str, edge: &str, code: i32) -> String {
        let endpoints = self.service.endpoints();
        let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
        let mut command = Command::new("/usr/sbin/chroot");
        command.arg(self.directory.path()).args(["/edgecert", "--lineage", "/live", "--state-dir", "/state"]);
        command.args(["--timeout", "20"]).env_clear().env("EDGECERT_API_KEY", &endpoints.api_key);
        command.env("EDGECERT_BASE_URL", format!("https://{api}:{}", port(&endpoints.api)));
        command.env("EDGECERT_EDGE_ADDRESS", format!("{edge}:{}", port(&endpoints.edge)));
        let Output { status, stdout, stderr } = command.output().unwrap();
        let shown = String::from_utf8([stdout, stderr].concat()).unwrap();
        assert_eq!(status.code(), Some(code), "{api} {edge}: {shown}");
        shown
    }
}

#[test]
fn static_binary_deploys_in_empty_root() {
    let names = NameServer::start("127.0.0.77", Answers::Names(&["edge.static.test", "api.static.test"]));
    let root = EmptyRoot::new();
    root.write("etc/hosts", "127.0.0.1 localhost # of this host\n");
    root.write("etc/resolv.conf", "nameserver 127.0.0.77\noptions timeout:1\n");

    let shown = root.deploy("localhost", "edge.static.test", 0);
    assert!(shown.contains("* served    a.example  1/1"), "{shown}");
    assert!(names.has_asked("edge.static.test"));

    // It finds the service, whose certificate is for `localhost`.
    let shown = root.deploy("api.static.test", "edge.static.test", 78);
    assert!(shown.contains("it is for another name"), "{shown}");
    assert!(names.has_asked("api.static.test"));

    root.deploy("nowhere.static.test", "edge.static.test", 75);
    assert!(names.has_asked("nowhere.static.test"));
}

#[test]
fn static_binary_needs_no_resolver_configuration() {
    let root = EmptyRoot::new();
    root.deploy("127.0.0.1", "127.0.0.1", 0);
    root.write("etc/hosts", "127.0.0.1 edge.static.test\n");
    root.deploy("localhost", "edge.static.test", 0);
    root.deploy("nowhere.static.test", "edge.static.test", 75);

    fs::create_dir_all(root.directory.path().join("etc/resolv.conf")).unwrap();
    let shown = root.deploy("api.static.test", "127.0.0.1", 75);
    assert!(shown.contains("cannot read /etc/resolv.conf: Is a directory"), "{shown}");
}

#[test]
fn static_binary_asks_servers_in_order() {
    let (_silent, failing) = (
        NameServer::start("127.0.0.78", Answers::Nothing),
        NameServer::start("127.0.0.79", Answers::Failure),
    );
    let knowing = NameServer::start("127.0.0.80", Answers::OverTcp(&["edge.static.test"]));
    let root = EmptyRoot::new();
    root.write("etc/hosts", "127.0.0.1 localhost\n");
    root.write(
        "etc/resolv.conf",
        "nameserver 127.0.0.78\nnameserver 127.0.0.79\nnameserver 127.0.0.80\noptions timeout:1 attempts:1\n",
    );
    root.deploy("localhost", "edge.static.test", 0);
    assert!(failing.has_asked("edge.static.test") && knowing.has_asked("edge.static.test"));

    // A failure is reported with the servers.
    root.write("etc/resolv.conf", "nameserver 127.0.0.79\noptions timeout:1 attempts:1\n");
    let shown = root.deploy("api.static.test", "edge.static.test", 75);
    assert!(shown.contains("the name servers in /etc/resolv.conf (127.0.0.79) failed"), "{shown}");
}

#[test]
fn static_binary_asks_no_server_for_listed_hosts() {
    let names = NameServer::start("127.0.0.81", Answers::Names(&["edge.static.test"]));
    let root = EmptyRoot::new();
    // As in a pod: the names of the cluster come first.
    root.write(
        "etc/resolv.conf",
        "nameserver 127.0.0.81\nsearch cluster.test static.test\noptions ndots:5 timeout:1\n",
    );
    root.write("etc/hosts", "127.0.0.1 localhost\n127.0.0.1 Listed.static.test # \u{fc}\n");
    root.deploy("localhost", "listed.static.test", 0);
    assert!(!names.has_asked("listed.static.test") && !names.has_asked("listed.static.test.cluster.test"));

    for (host, first) in
        [("edge", "edge.cluster.test"), ("edge.static.test", "edge.static.test.cluster.test")]
    {
        root.deploy("localhost", host, 0);
        assert!(names.has_asked(first), "{host}");
    }
    root.deploy("127.0.0.1", "127.0.0.1", 0);
    assert!(!names.has_asked("127.0.0.1.cluster.test"));
}
