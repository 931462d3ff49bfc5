//! `--lineage` with the layouts of clients that are in no Debian package, written by hand as `hook-contracts` of each
//! client describes them: each is recognised by its own marks and called by its own name.

use std::fs;

use tempfile::TempDir;

use crate::harness::{IssuedCert, Lineage, edgecert, sandbox, sync, test_ca};

use super::{certificates, only_record};

/// A client's name, the directory of a lineage, the file with the chain, that with the key, and further files as
/// `NAME=TEXT`. `D` stands for the domain, `LEAF` and `CHAIN` for certificates.
const LAYOUTS: [[&str; 5]; 11] = [
    ["acmed", "acmed/certs", "D_ecdsa-p256.crt.pem", "D_ecdsa-p256.pk.pem", ""],
    ["lego", "lego/certificates", "D.crt", "D.key", "D.issuer.crt=CHAIN D.json={}"],
    ["mod_md", "md/domains/D", "pubcert.pem", "privkey.pem", "md.json={} job.json={}"],
    ["mod_md", "md/domains/b.example", "pubcert.secp256r1.pem", "privkey.secp256r1.pem", "md.json={}"],
    [
        "Caddy",
        "certificates/acme-v02.api.letsencrypt.org-directory/wildcard_.D",
        "wildcard_.D.crt",
        "wildcard_.D.key",
        r#"wildcard_.D.json={"sans":["*.D"],"issuer_data":{"url":"u"}}"#,
    ],
    [
        "tailscale",
        "tailscale/certs",
        "host.tail1234.ts.net.crt",
        "host.tail1234.ts.net.key",
        "acme-account.key.pem=",
    ],
    [
        "Posh-ACME",
        "Posh-ACME/acme-v02.api.letsencrypt.org/123/D",
        "fullchain.cer",
        "cert.key",
        "cert.cer=LEAF chain.cer=CHAIN order.json={} cert.pfx=",
    ],
    ["simple-acme", "pem", "D-chain.pem", "D-key.pem", "D-crt.pem=LEAF D-chain-only.pem=CHAIN"],
    // A user's script may join the files for a server.
    ["uacme", "uacme/D", "cert.pem", "../private/D/key.pem", "fullchain.pem=LEAF"],
    ["getssl", ".getssl/D", "fullchain.crt", "D.key", "getssl.cfg= D.crt=LEAF chain.crt=CHAIN"],
    ["step", "step/certs", "D.crt", "D.key", ""],
];

struct Layout {
    client: &'static str,
    directory: String,
    chain: String,
    key: String,
    others: String,
}

/// The layouts of these clients, or of all.
fn layouts(clients: &[&str]) -> impl Iterator<Item = Layout> {
    let rows = LAYOUTS.into_iter().filter(|row| clients.is_empty() || clients.contains(&row[0]));
    rows.map(|[client, rest @ ..]| {
        let [directory, chain, key, others] = rest.map(|text| text.replace('D', "a.example"));
        Layout { client, directory, chain, key, others }
    })
}

impl Layout {
    fn write(&self, root: &TempDir, issued: &IssuedCert) {
        let directory = root.path().join(&self.directory);
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(&directory).unwrap();
        write(&self.chain, &issued.fullchain());
        write(&self.key, &issued.key);
        for (name, text) in self.others.split(' ').filter_map(|file| file.split_once('=')) {
            write(name, &text.replace("LEAF", &issued.cert).replace("CHAIN", &issued.chain));
        }
    }
}

#[test]
fn each_layout_is_called_by_its_name() {
    for layout in layouts(&[]) {
        let (service, root) = (sandbox(&["a.example"]), TempDir::new().unwrap());
        let state = root.path().join("state");
        let issued = test_ca().issue_between(&["a.example"], [-2, 88]).unwrap();
        layout.write(&root, &issued);
        let directory = root.path().join(&layout.directory);
        let hook = edgecert().against(&service).args(["--json", "--lineage"]).args([&directory]);
        let report = hook.with_state(&state).succeeds().json();
        assert_eq!(report["source"]["client"], layout.client);
        assert_eq!(only_record(&service).chain, certificates(&issued.fullchain()), "{}", layout.client);

        let renewed = test_ca().issue_between(&["a.example"], [-1, 89]).unwrap();
        layout.write(&root, &renewed);
        sync(&service, &state).succeeds();
        assert_eq!(only_record(&service).chain, certificates(&renewed.fullchain()), "{}", layout.client);
    }
}

/// A second lineage in the directory of another one is an error, not a choice.
#[test]
fn several_lineages_are_named() {
    for layout in layouts(&["acmed", "lego", "simple-acme"]) {
        let root = TempDir::new().unwrap();
        layout.write(&root, &test_ca().issue(&["a.example"]).unwrap());
        let directory = root.path().join(&layout.directory);
        for name in [&layout.chain, &layout.key] {
            fs::copy(directory.join(name), directory.join(name.replace("a.example", "b.example"))).unwrap();
        }
        let stderr = edgecert().args(["check", "--lineage"]).args([&directory]).exits_with(66).stderr;
        assert!(stderr.contains("a.example") && stderr.contains("b.example"), "{stderr}");
    }
}

/// The directories of Caddy and Posh-ACME are named after the CA.
#[test]
fn staging_directory_is_refused() {
    for layout in layouts(&["Caddy", "Posh-ACME"]) {
        let root = TempDir::new().unwrap();
        let directory = layout.directory.replace("acme-v02", "acme-staging-v02");
        layout.write(&root, &test_ca().issue(&["a.example"]).unwrap());
        let staging = root.path().join(&directory);
        fs::create_dir_all(staging.parent().unwrap()).unwrap();
        fs::rename(root.path().join(&layout.directory), &staging).unwrap();
        let service = sandbox(&["a.example"]);
        let stderr = edgecert().against(&service).args(["--lineage"]).args([&staging]).exits_with(65).stderr;
        assert!(stderr.contains("staging"), "{}: {stderr}", layout.client);
    }
}

#[test]
fn directory_without_certificate_is_refused() {
    let service = sandbox(&["a.example"]);
    let files = Lineage::issued_for(&["a.example"]);
    fs::create_dir(files.file("empty")).unwrap();
    for (name, reason) in
        [("empty", "is not a lineage"), ("absent", "no such file"), ("cert.pem", "is not a lineage")]
    {
        let hook = edgecert().against(&service).args(["--lineage"]).args([files.file(name)]);
        hook.exits_with(66).says(name).says(reason);
    }
    assert_eq!(service.requests().len(), 0);
}
