//! The container image: its content, and that it runs as its user from a read-only root file system.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Lineage, require_root, sandbox};

use super::{assert_is_notices, output, package};

/// A file of an OCI image, named by its descriptor.
fn blob(image: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    fs::read(image.join("blobs").join(digest.replace(':', "/"))).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn image_runs_without_privileges() {
    require_root();
    let directory = TempDir::new().unwrap();
    let (image, root) = (directory.path().join("image"), directory.path().join("root"));
    fs::create_dir(&image).unwrap();
    fs::create_dir(&root).unwrap();
    output("tar", &["-xf", package("-image.tar").to_str().unwrap(), "-C", image.to_str().unwrap()]);
    let index = json(&fs::read(image.join("index.json")).unwrap());
    let name = &index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"];
    assert_eq!(name, concat!("localhost/edgecert:", env!("CARGO_PKG_VERSION")));
    let manifest = json(&blob(&image, &index["manifests"][0]));
    let config = json(&blob(&image, &manifest["config"]));
    for layer in manifest["layers"].as_array().unwrap() {
        let file = directory.path().join("layer");
        fs::write(&file, blob(&image, layer)).unwrap();
        output("tar", &["-xf", file.to_str().unwrap(), "-C", root.to_str().unwrap()]);
    }

    let config = &config["config"];
    assert_eq!(config["User"], "65532:65532");
    assert!(config["Volumes"]["/var/lib/edgecert"].is_object(), "{config}");
    assert_eq!(config["Entrypoint"][0], "/usr/bin/edgecert");
    assert_eq!(config["Env"][0].as_str().unwrap().split_once('=').unwrap().0, "PATH");
    let state = output("stat", &["-c", "%a %u %g", root.join("var/lib/edgecert").to_str().unwrap()]);
    assert_eq!(state, "700 65532 65532\n");

    assert_is_notices(&fs::read_to_string(root.join("usr/share/doc/edgecert/THIRD-PARTY-NOTICES")).unwrap());
    // Private authorities of the machine that made the image do not belong into it.
    let bundle = fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt")).unwrap();
    let mut authorities = 0;
    for entry in fs::read_dir("/usr/share/ca-certificates/mozilla").unwrap() {
        assert!(bundle.contains(&fs::read_to_string(entry.unwrap().path()).unwrap()));
        authorities += 1;
    }
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), authorities);

    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let live = root.join("live");
    fs::create_dir(&live).unwrap();
    for name in ["fullchain.pem", "privkey.pem"] {
        fs::write(live.join(name), lineage.read(name)).unwrap();
    }
    // As a container runtime does: everything but the volume is read-only.
    let script = "set -e; mount --bind \"$0\" \"$0\"; mount --bind \"$0/var/lib/edgecert\" \"$0/var/lib/edgecert\"; \
        mount -o remount,bind,ro \"$0\"; exec /usr/sbin/chroot --userspec=65532:65532 \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&root).args([
        "/usr/bin/edgecert",
        "--lineage",
        "/live",
    ]);
    command.env_clear().env("EDGECERT_STATE_DIR", "/var/lib/edgecert").env("EDGECERT_ALLOW_UNTRUSTED", "1");
    command.env("EDGECERT_BASE_URL", &service.endpoints().api);
    command.env("EDGECERT_API_KEY", &service.endpoints().api_key);
    command.env("EDGECERT_EDGE_ADDRESS", &service.endpoints().edge).env("PATH", "/usr/bin:/bin");
    let output = command.output().unwrap();
    let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && shown.contains("* served    a.example  1/1"), "{shown}");
    assert!(fs::read_dir(root.join("var/lib/edgecert")).unwrap().count() > 0);
}
