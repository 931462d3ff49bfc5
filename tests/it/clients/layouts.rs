//! `--lineage` with hand-written directories in each client's layout. Directories written by the clients themselves are
//! covered in `certbot.rs`, `lego.rs`, `dehydrated.rs` and `acme_sh.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use crate::harness::{Hook, Lineage, Sandbox, edgecert, openssl, sandbox, test_ca};

use super::{certificates, served_record};

/// A directory layout, and a function that writes a certificate into it.
struct Layout {
    client: &'static str,
    /// The lineage's directory, relative to the root of the layout.
    lineage: &'static str,
    write: fn(&Lineage, version: u32),
}

const LAYOUTS: [Layout; 3] = [
    Layout { client: "certbot", lineage: "live/a.example", write: certbot },
    Layout { client: "dehydrated", lineage: "certs/a.example", write: dehydrated },
    Layout { client: "kubernetes", lineage: "secret", write: kubernetes },
];

fn deploy_lineage(files: &Lineage, layout: &Layout, service: &Sandbox) -> Hook {
    edgecert().against(service).args(["--json", "--lineage"]).args([files.file(layout.lineage)])
}

/// Links in `live` point to numbered files in `archive`.
fn certbot(files: &Lineage, version: u32) {
    fs::create_dir_all(files.file("live/a.example")).unwrap();
    fs::create_dir_all(files.file("archive/a.example")).unwrap();
    for kind in ["cert", "privkey", "chain", "fullchain"] {
        files.write(&format!("archive/a.example/{kind}{version}.pem"), &files.read(&format!("{kind}.pem")));
        let target = format!("../../archive/a.example/{kind}{version}.pem");
        link(files, &target, &format!("live/a.example/{kind}.pem"));
    }
}

/// Links point to timestamped files. EC parameters precede the key, as in versions up to 0.7.0.
fn dehydrated(files: &Lineage, version: u32) {
    let directory = "certs/a.example";
    fs::create_dir_all(files.file(directory)).unwrap();
    openssl(files.path(), &["ecparam", "-name", "prime256v1", "-out", "parameters.pem"]);
    openssl(files.path(), &["ec", "-in", "privkey.pem", "-out", "privkey.pem"]);
    let key = files.read("parameters.pem") + &files.read("privkey.pem");
    assert!(
        key.starts_with("-----BEGIN EC PARAMETERS-----") && key.contains("-----BEGIN EC PRIVATE KEY-----")
    );
    files.write("privkey.pem", &key);
    for kind in ["privkey", "chain", "fullchain", "cert"] {
        let name = format!("{kind}-179522118{version}.pem");
        files.write(&format!("{directory}/{name}"), &files.read(&format!("{kind}.pem")));
        link(files, &name, &format!("{directory}/{kind}.pem"));
    }
}

/// A mounted secret: one directory per version, with `..data` linking to the current one.
fn kubernetes(files: &Lineage, version: u32) {
    let data = format!("..2030_01_0{version}_00_00_00.1");
    fs::create_dir_all(files.file(&format!("secret/{data}"))).unwrap();
    for (kind, name) in [("fullchain.pem", "tls.crt"), ("privkey.pem", "tls.key")] {
        files.write(&format!("secret/{data}/{name}"), &files.read(kind));
        link(files, &format!("..data/{name}"), &format!("secret/{name}"));
    }
    files.write(&format!("secret/{data}/ca.crt"), test_ca().root());
    link(files, &data, "secret/..data");
}

/// Creates or replaces a link atomically.
fn link(files: &Lineage, target: &str, name: &str) {
    symlink(target, files.file("new")).unwrap();
    fs::rename(files.file("new"), files.file(name)).unwrap();
}

#[test]
fn every_layout_deploys_and_renews() {
    for layout in LAYOUTS {
        let service = sandbox(&["a.example"]);
        let files = Lineage::issued_for(&["a.example"]);
        (layout.write)(&files, 1);
        let report = deploy_lineage(&files, &layout, &service).succeeds().json();
        assert_eq!(report["source"]["client"], layout.client);
        let first = served_record(&service, &["a.example"]);
        assert_eq!(first.chain, certificates(&files.read("fullchain.pem")), "{}", layout.client);

        files.renew(&["a.example"]);
        (layout.write)(&files, 2);
        deploy_lineage(&files, &layout, &service).succeeds();
        let renewed = served_record(&service, &["a.example"]);
        assert_eq!(renewed.id, first.id, "{}", layout.client);
        assert_eq!(renewed.chain, certificates(&files.read("fullchain.pem")), "{}", layout.client);
        assert_ne!(renewed.chain, first.chain, "{}", layout.client);
    }
}

/// Runs the layouts in parallel, because each waits for the key for a while.
#[test]
fn missing_key_file_is_named() {
    let check_missing_key = |layout: &Layout, key: &str| {
        let service = sandbox(&["a.example"]);
        let files = Lineage::issued_for(&["a.example"]);
        (layout.write)(&files, 1);
        let path = files.file(layout.lineage).join(key);
        fs::remove_file(fs::canonicalize(path).unwrap()).unwrap();
        let stderr = deploy_lineage(&files, layout, &service).exits_with(66).stderr;
        assert!(stderr.contains(key), "{}: {stderr}", layout.client);
        assert_eq!(service.requests().len(), 0);
    };
    thread::scope(|scope| {
        for (layout, key) in LAYOUTS.iter().zip(["privkey.pem", "privkey.pem", "tls.key"]) {
            scope.spawn(move || check_missing_key(layout, key));
        }
    });
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
        let stderr = hook.exits_with(66).stderr;
        assert!(stderr.contains(name) && stderr.contains(reason), "{stderr}");
    }
    assert_eq!(service.requests().len(), 0);
}
