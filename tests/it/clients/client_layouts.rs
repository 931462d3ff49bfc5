//! `--lineage` with the layouts of clients that are in no Debian package, written by hand as `hook-contracts` of each
//! client describes them: each is recognised by its own marks and called by its own name.

use std::fs;

use tempfile::TempDir;

use crate::harness::{IssuedCert, Lineage, edgecert, sandbox, sync, test_ca};

use super::{certificates, only_record};

/// The client's name, the directory of the lineage, the file with the chain, that with the key, and further files. `LEAF`
/// and `CHAIN` stand for certificates.
struct Layout {
    client: &'static str,
    directory: &'static str,
    chain: &'static str,
    key: &'static str,
    others: &'static [(&'static str, &'static str)],
}

const LAYOUTS: [Layout; 11] = [
    Layout {
        client: "acmed",
        directory: "acmed/certs",
        chain: "a.example_ecdsa-p256.crt.pem",
        key: "a.example_ecdsa-p256.pk.pem",
        others: &[],
    },
    Layout {
        client: "lego",
        directory: "lego/certificates",
        chain: "a.example.crt",
        key: "a.example.key",
        others: &[("a.example.issuer.crt", "CHAIN"), ("a.example.json", "{}")],
    },
    Layout {
        client: "mod_md",
        directory: "md/domains/a.example",
        chain: "pubcert.pem",
        key: "privkey.pem",
        others: &[("md.json", "{}"), ("job.json", "{}")],
    },
    Layout {
        client: "mod_md",
        directory: "md/domains/b.example",
        chain: "pubcert.secp256r1.pem",
        key: "privkey.secp256r1.pem",
        others: &[("md.json", "{}")],
    },
    Layout {
        client: "Caddy",
        directory: "certificates/acme-v02.api.letsencrypt.org-directory/wildcard_.a.example",
        chain: "wildcard_.a.example.crt",
        key: "wildcard_.a.example.key",
        others: &[("wildcard_.a.example.json", r#"{"sans": ["*.a.example"], "issuer_data": {"url": "u"}}"#)],
    },
    Layout {
        client: "tailscale",
        directory: "tailscale/certs",
        chain: "host.tail1234.ts.net.crt",
        key: "host.tail1234.ts.net.key",
        others: &[("acme-account.key.pem", "")],
    },
    Layout {
        client: "Posh-ACME",
        directory: "Posh-ACME/acme-v02.api.letsencrypt.org/123/a.example",
        chain: "fullchain.cer",
        key: "cert.key",
        others: &[("cert.cer", "LEAF"), ("chain.cer", "CHAIN"), ("order.json", "{}"), ("cert.pfx", "")],
    },
    Layout {
        client: "simple-acme",
        directory: "pem",
        chain: "a.example-chain.pem",
        key: "a.example-key.pem",
        others: &[("a.example-crt.pem", "LEAF"), ("a.example-chain-only.pem", "CHAIN")],
    },
    Layout {
        client: "uacme",
        directory: "uacme/a.example",
        chain: "cert.pem",
        key: "../private/a.example/key.pem",
        // A user's script may join the files for a server.
        others: &[("fullchain.pem", "LEAF")],
    },
    Layout {
        client: "getssl",
        directory: ".getssl/a.example",
        chain: "fullchain.crt",
        key: "a.example.key",
        others: &[("getssl.cfg", ""), ("a.example.crt", "LEAF"), ("chain.crt", "CHAIN")],
    },
    Layout {
        client: "step",
        directory: "step/certs",
        chain: "a.example.crt",
        key: "a.example.key",
        others: &[],
    },
];

impl Layout {
    fn write(&self, root: &TempDir, issued: &IssuedCert) {
        let directory = root.path().join(self.directory);
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(&directory).unwrap();
        write(self.chain, &issued.fullchain());
        write(self.key, &issued.key);
        for (name, text) in self.others {
            write(name, &text.replace("LEAF", &issued.cert).replace("CHAIN", &issued.chain));
        }
    }
}

#[test]
fn each_layout_is_called_by_its_name() {
    for layout in LAYOUTS {
        let (service, root) = (sandbox(&["a.example"]), TempDir::new().unwrap());
        let state = root.path().join("state");
        let issued = test_ca().issue_between(&["a.example"], [-2, 88]).unwrap();
        layout.write(&root, &issued);
        let directory = root.path().join(layout.directory);
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
    for layout in LAYOUTS.iter().filter(|layout| ["acmed", "lego", "simple-acme"].contains(&layout.client)) {
        let root = TempDir::new().unwrap();
        layout.write(&root, &test_ca().issue(&["a.example"]).unwrap());
        let directory = root.path().join(layout.directory);
        for name in [layout.chain, layout.key] {
            fs::copy(directory.join(name), directory.join(name.replace("a.example", "b.example"))).unwrap();
        }
        let stderr = edgecert().args(["check", "--lineage"]).args([&directory]).exits_with(66).stderr;
        assert!(stderr.contains("a.example") && stderr.contains("b.example"), "{stderr}");
    }
}

/// The directories of Caddy and Posh-ACME are named after the CA.
#[test]
fn staging_directory_is_refused() {
    for layout in LAYOUTS.iter().filter(|layout| ["Caddy", "Posh-ACME"].contains(&layout.client)) {
        let root = TempDir::new().unwrap();
        let directory = layout.directory.replace("acme-v02", "acme-staging-v02");
        layout.write(&root, &test_ca().issue(&["a.example"]).unwrap());
        let staging = root.path().join(&directory);
        fs::create_dir_all(staging.parent().unwrap()).unwrap();
        fs::rename(root.path().join(layout.directory), &staging).unwrap();
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
