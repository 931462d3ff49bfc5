//! Local checks at the command line: reports, messages, and that nothing is sent after a refusal.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Lineage, edgecert, fresh, openssl, request_lines, sandbox, sandbox_and_lineage, step};

fn check(lineage: &Lineage) -> crate::harness::Hook {
    edgecert().with_filter_for(lineage).args(["check", "--json", "--lineage"]).args([lineage.path()])
}

fn status_of(json: &Value, check: &str) -> Vec<String> {
    let findings = json["checks"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    findings.map(|finding| finding["status"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn refusal_is_one_line_and_sends_nothing() {
    let service = sandbox(&["a.example"]);
    let deploy = |lineage: &Lineage| fresh(&service, lineage);

    let other = Lineage::issued_for(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    lineage.write("privkey.pem", &other.read("privkey.pem"));
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          x checked   key failed
        failed after TIME
        ---
        edgecert: error: LINEAGE/privkey.pem is not the private key of LINEAGE/fullchain.pem: both are P-256, but of different pairs; nothing was sent
        edgecert: hint: pass the key and the certificate of the same renewal
    "#]].assert_eq(&deploy(&lineage).exits_with(65).snapshot());

    let lineage = Lineage::issued_for(&["example.com", "www.example.com"]);
    let output = deploy(&lineage).for_domain("a.example").exits_with(65);
    expect![[r#"
        example.com, www.example.com   P-256, expires DATE (TIME)
          x checked   names failed
        failed after TIME
        ---
        edgecert: error: LINEAGE/fullchain.pem does not cover a.example, only example.com and www.example.com; nothing was sent
        edgecert: hint: renew it with a.example among its names, or omit --domain a.example in the hook
    "#]].assert_eq(&output.snapshot());

    assert_eq!(request_lines(&service), Vec::<String>::new());
}

#[test]
fn all_failed_checks_are_reported() {
    let lineage = Lineage::expired();
    openssl(lineage.path(), &["genpkey", "-algorithm", "ED25519", "-out", "privkey.pem"]);
    let json = check(&lineage).args(["--domain", "b.example"]).exits_with(65).json();
    for failed in ["validity", "names", "key"] {
        assert_eq!(status_of(&json, failed), ["fail"], "{failed}: {json}");
    }
    assert_eq!(json["error"].as_str().unwrap().split("; ").count(), 3, "{json}");
}

#[test]
fn check_reports_files_and_checks() {
    let lineage = Lineage::issued_for(&["a.example"]);

    step("check_works_without_a_key");
    let hook = edgecert().args(["check", "--json", "--cert"]).args([lineage.file("fullchain.pem")]);
    assert_eq!(status_of(&hook.succeeds().json(), "key"), ["skipped"]);

    step("unreadable_files_are_named");
    let missing = lineage.file("no/such.pem");
    let output = edgecert()
        .with_filter_for(&lineage)
        .args(["check".as_ref(), "--cert".as_ref(), missing.as_os_str()])
        .exits_with(66);
    expect![[r#"
        ---
        edgecert: error: cannot read LINEAGE/no/such.pem: no such file
        edgecert: hint: check the path; acme.sh and `lego --filename` may name files that they did not write
    "#]]
    .assert_eq(&output.snapshot());
    let directory = edgecert()
        .with_filter_for(&lineage)
        .args(["check".as_ref(), "--cert".as_ref(), lineage.path().as_os_str()])
        .exits_with(66);
    expect![[r#"
        ---
        edgecert: error: cannot read LINEAGE: it is a directory
        edgecert: hint: name a file, or pass the directory of a lineage with --lineage
    "#]]
    .assert_eq(&directory.snapshot());

    step("check_report_lists_every_check");
    lineage.write(
        "fullchain.pem",
        &(lineage.read("chain.pem") + &lineage.read("cert.pem") + &lineage.read("cert.pem")),
    );
    let output =
        edgecert().with_filter_for(&lineage).args(["check", "--lineage"]).args([lineage.path()]).succeeds();
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          ! pem       LINEAGE/fullchain.pem: dropped a duplicate of a.example
          ! pem       LINEAGE/fullchain.pem: moved the leaf to the front
          * validity  valid until DATE, for TIME
          * names     covers a.example
          * key       P-256, key and certificate match
          * purpose   may authenticate a TLS server
          * chain     2 certificates
          * issuer    edgecert test intermediate
        2 warnings, 6 passed
        ---
    "#]]
    .assert_eq(&output.snapshot());
}

#[test]
fn self_signed_needs_allow_untrusted() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -keyout privkey.pem \
         -out fullchain.pem -subj /CN=a.example -addext subjectAltName=DNS:a.example -addext basicConstraints=CA:FALSE";
    openssl(lineage.path(), &arguments.split_whitespace().collect::<Vec<_>>());
    let output = fresh(&service, &lineage).exits_with(65);
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          x checked   issuer failed
        failed after TIME
        ---
        edgecert: error: LINEAGE/fullchain.pem is self-signed; browsers do not trust it; nothing was sent
        edgecert: hint: have a CA issue it, or run `edgecert deploy --lineage LINEAGE --allow-untrusted` to deploy it anyway
    "#]]
    .assert_eq(&output.snapshot());
    assert_eq!(request_lines(&service).len(), 0);
    fresh(&service, &lineage).args(["--allow-untrusted"]).succeeds();
}

#[test]
fn readable_private_key_is_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    std::fs::set_permissions(lineage.file("privkey.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = fresh(&service, &lineage).args(["--json"]).succeeds();
    assert!(output.json()["warnings"].to_string().contains("others can read the private key"));
    assert_eq!(output.json()["ok"], json!(true));
}

#[test]
fn staging_directory_in_client_files_is_refused() {
    const STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
    let refused = |lineage: &std::path::Path| {
        let service = sandbox(&["a.example"]);
        let stderr = edgecert().against(&service).args(["--lineage"]).args([lineage]).exits_with(65).stderr;
        assert!(stderr.contains("comes from the test directory https://acme-staging-v02"), "{stderr}");
        assert_eq!(request_lines(&service).len(), 0);
    };
    let certbot = Lineage::issued_for(&["a.example"]);
    for directory in ["live/shop", "renewal", "acme.sh", "lego"] {
        std::fs::create_dir_all(certbot.file(directory)).unwrap();
    }
    let [chain, key] = [certbot.read("fullchain.pem"), certbot.read("privkey.pem")];
    certbot.write("live/shop/fullchain.pem", &chain);
    certbot.write("live/shop/privkey.pem", &key);
    certbot.write("renewal/shop.conf", &format!("version = 2.1.0\n[renewalparams]\nserver = {STAGING}\n"));
    refused(&certbot.file("live/shop"));

    for (name, text) in [("a.example.cer", &chain), ("fullchain.cer", &chain), ("a.example.key", &key)] {
        certbot.write(&format!("acme.sh/{name}"), text);
    }
    certbot.write("acme.sh/a.example.conf", &format!("Le_Domain='a.example'\nLe_API='{STAGING}'\n"));
    refused(&certbot.file("acme.sh"));

    for (name, text) in [("a.example.crt", &chain), ("a.example.key", &key)] {
        certbot.write(&format!("lego/{name}"), text);
    }
    let url = STAGING.replace("directory", "acme/cert/1");
    certbot.write("lego/a.example.json", &format!("{{\"domain\":\"a.example\",\"certUrl\":\"{url}\"}}"));
    refused(&certbot.file("lego"));
}
