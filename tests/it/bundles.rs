//! Certificate and key files that the checks judge, where only the program shows it. The checks themselves are tested in
//! `src/check`.

use sha2::{Digest as _, Sha256};

use crate::harness::der::{self, ForgedCert};
use crate::harness::{Authority, edgecert, fresh, hex, request_lines, sandbox, sandbox_and_lineage, test_ca};

/// A leaf for `a.example` that may authenticate clients only; its key is that of seed 1.
fn client_cert() -> String {
    let usage = der::sequence(&[der::oid("1.3.6.1.5.5.7.3.2")]);
    let extensions = vec![der::extension("2.5.29.37", false, &usage)];
    ForgedCert { extensions, ..ForgedCert::default() }.pem()
}

#[test]
fn each_check_decides_the_exit_code() {
    let issued = test_ca().issue(&["a.example"]).unwrap();
    let (chain, key) = (issued.fullchain(), issued.key);
    let other_key = der::pem("PRIVATE KEY", &der::private_key(1));
    let staging = Authority::new("(STAGING) Pear").unwrap().issue(&["a.example"]).unwrap();
    let (other_name, required) =
        (["--domain", "b.example"], ["--trust-anchors", "system", "--allow-untrusted"]);
    let rows: [(&str, &str, &[&str], &str); 9] = [
        (&chain, &key, &[], "* key       P-256, key and certificate match\n"),
        (&chain.replace('\n', "\r"), &key, &[], "private key; cleaned: line endings\n"),
        (&issued.cert.repeat(300), &key, &[], "x pem       HOME/cert.pem holds more than 64 PEM blocks\n"),
        (
            &chain,
            &key,
            &["--at", "2020-01-01T00:00:00Z"],
            "x validity  HOME/cert.pem is not valid before DATE",
        ),
        (&chain, &key, &other_name, "x names     HOME/cert.pem does not cover b.example, only a.example\n"),
        (&chain, &other_key, &[], "x key       HOME/key.pem is not the private key of HOME/cert.pem: "),
        (
            &client_cert(),
            &other_key,
            &[],
            "x purpose   HOME/cert.pem has an extended key usage without serverAuth; ",
        ),
        (
            &staging.fullchain(),
            &staging.key,
            &required,
            "x chain     HOME/cert.pem has no path to a trust anchor: ",
        ),
        (
            &staging.cert,
            &staging.key,
            &[],
            "x issuer    HOME/cert.pem was issued by (STAGING) Pear intermediate, ",
        ),
    ];
    for (cert, key, arguments, line) in rows {
        let code = if line.starts_with("x ") { 65 } else { 0 };
        let hook = edgecert();
        let [cert, key] = [hook.write_file("cert.pem", cert), hook.write_file("key.pem", key)];
        let files = ["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()];
        let output = hook.args(["check"]).args(files).args(arguments).run();
        let shown = output.snapshot();
        assert!(output.code == code && shown.contains(line), "{line}: {shown}");
        // The hints of warnings are part of the report.
        assert_eq!(output.stderr.contains("edgecert: hint: "), code != 0, "{line}: {shown}");
    }
}

#[test]
fn control_characters_are_not_printed() {
    let names: Vec<&[u8]> = vec![b"\x1b[2J\x1b]0;title\x07a.example\nedgecert: served"];
    let cert = ForgedCert { names, ..ForgedCert::default() }.pem();
    for arguments in [&["--domain", "a.example"][..], &["--json"]] {
        let hook = edgecert();
        let file = hook.write_file("cert.pem", &cert);
        let output = hook.args(["check", "--cert"]).args([file]).args(arguments).run().snapshot();
        assert!(output.contains("[2J ]0;title a.example edgecert: served"), "{output}");
        assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{output:?}");
    }
}

#[test]
fn certificate_and_key_share_one_file() {
    let service = sandbox(&["a.example"]);
    let issued = test_ca().issue(&["a.example"]).unwrap();
    let hook = edgecert().against(&service);
    let combined = format!("{}{}", issued.key, issued.fullchain()).replace('\n', "\r\n");
    let file = hook.write_file("combined.pem", &combined);
    let output = hook.args(["deploy", "--json", "--cert"]).args([&file]).succeeds();
    let [record] = service.certs().try_into().unwrap();
    assert_eq!(record["cert_pem"], issued.fullchain());
    let digest = hex(&Sha256::digest(issued.key.as_bytes()));
    assert_eq!(record["key_sha256"], format!("sha256:{digest}"));
    let cleaned = "2 certificates and a private key; cleaned: line endings";
    assert_eq!(output.json()["checks"][0]["detail"], cleaned);
}

#[test]
fn deploy_refuses_client_certificates() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let deploy = || fresh(&service, &lineage);
    let key = lineage.read("privkey.pem");
    lineage.write("fullchain.pem", &client_cert());
    lineage.write("privkey.pem", &der::pem("PRIVATE KEY", &der::private_key(1)));
    let output = deploy().exits_with(65).snapshot();
    let refusal = "edgecert: error: LINEAGE/fullchain.pem has an extended key usage without serverAuth; TLS clients reject it; nothing was sent\n\
        edgecert: hint: issue it as a server certificate, with the extended key usage serverAuth\n";
    assert!(output.contains(refusal), "{output}");
    assert_eq!(request_lines(&service), Vec::<String>::new());
    lineage.write("fullchain.pem", &(lineage.read("cert.pem") + &lineage.read("chain.pem")));
    lineage.write("privkey.pem", &key);
    deploy().succeeds();
}
