//! The check `issuer`: `deploy` refuses test, staging and self-signed issuers unless `--allow-untrusted` is set.

use super::Input;
use crate::harness::der::ForgedCert;
use crate::harness::{Authority, Lineage, edgecert, request_lines, sandbox};

#[test]
fn test_issuers_are_refused_by_name() {
    let rows = [
        ("/O=(STAGING) Let's Encrypt/CN=(STAGING) Counterfeit Cashew R10", Some("Let's Encrypt's staging")),
        ("/O=(STAGING) Let's Encrypt/CN=(STAGING) False Fennel E6", Some("Let's Encrypt's staging")),
        ("/CN=(STAGING) Artificial Apricot R3", Some("Let's Encrypt's staging")),
        ("/CN=(STAGING) Pretend Pear X1", Some("Let's Encrypt's staging")),
        ("/CN=(STAGING) Bogus Broccoli X2", Some("Let's Encrypt's staging")),
        ("/O=(STAGING) ISRG/CN=(STAGING) Yearning Yucca Root YE", Some("Let's Encrypt's staging")),
        ("/CN=Fake LE Intermediate X1", Some("Let's Encrypt's old staging")),
        ("/CN=Fake LE Root X2", Some("Let's Encrypt's old staging")),
        ("/CN=Pebble Intermediate CA 4d6f8a", Some("Pebble, a test server")),
        ("/CN=Pebble Root CA 4d6f8a", Some("Pebble, a test server")),
        ("/C=NO/O=Buypass AS-983163327/CN=Buypass Class 2 Test4 CA 5", Some("Buypass's test environment")),
        ("/C=NO/O=Buypass AS-983163327/CN=Buypass Class 2 CA 5", None),
        ("/C=AT/O=ZeroSSL/CN=ZeroSSL ECC Domain Secure Site CA", None),
        ("/C=AT/O=ZeroSSL/CN=ZeroSSL ECC Test CA", Some("a test environment of ZeroSSL")),
        ("/C=US/O=Let's Encrypt/CN=R11", None),
        ("/O=Pebble Beach Networks/CN=Pebble Beach CA", None),
        ("/CN=Attested Private CA", None),
    ];
    for (subject, environment) in rows {
        let leaf = ForgedCert { issuer: subject, ..ForgedCert::default() }.pem();
        let chain = leaf.clone() + &ForgedCert { subject, issuer: subject, ..ForgedCert::default() }.pem();
        for cert in [leaf, chain] {
            let check = |refuses_untrusted| {
                Input { cert: cert.as_bytes(), refuses_untrusted, ..Input::default() }.check()
            };
            let Some(environment) = environment else {
                check(true).assert_finds(subject, "* issuer    ");
                continue;
            };
            let name = subject.rsplit('=').next().unwrap();
            let found = format!("cert.pem was issued by {name}, {environment}");
            let refused = check(true);
            refused.assert_finds(subject, &format!("x issuer    {found}"));
            let lines = refused.lines();
            assert!(
                lines.contains("; browsers do not trust it\n    hint: issue it in the CA's production"),
                "{lines}"
            );
            assert!(lines.contains("--allow-untrusted"), "{lines}");
            check(false).assert_finds(subject, &format!("! issuer    {found}"));
        }
    }
}

#[test]
fn test_directory_is_recognised_by_host() {
    let cert = ForgedCert::default().pem();
    let check = |directory| {
        let directory = Some(directory);
        Input { cert: cert.as_bytes(), directory, refuses_untrusted: true, ..Input::default() }.check()
    };
    for directory in [
        "https://acme-staging-v02.api.letsencrypt.org/directory",
        "https://ACME-STAGING-V02.api.letsencrypt.org/directory",
        "https://api.test4.buypass.no/acme/directory",
        "https://dv.acme-v02.test-api.pki.goog/directory",
        "https://pebble:14000/dir",
    ] {
        let line = format!(
            "x issuer    cert.pem comes from the test directory {directory}; browsers do not trust it\n"
        );
        check(directory).assert_finds(directory, &line);
    }
    let line = "x issuer    cert.pem comes from the test directory https://staging. [2Jacme.example/dir; ";
    check("https://staging.\u{1b}[2Jacme.example/dir").assert_finds("control characters", line);
    for directory in [
        "https://acme-v02.api.letsencrypt.org/directory",
        "https://acme.zerossl.com/v2/DV90",
        "https://api.buypass.com/acme/directory",
        "https://acme.contest.example/staging",
        "not an address",
        "",
    ] {
        check(directory).assert_finds(directory, "* issuer    Private CA\n");
    }
}

#[test]
fn every_settings_source_allows_untrusted_issuers() {
    let service = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    lineage.save(&Authority::new("(STAGING) Pretend Pear").unwrap().issue(&["a.example"]).unwrap());
    let hook = || edgecert().called_by_certbot(&lineage).against(&service);
    let configured = |text: &str| {
        let hook = hook();
        let file = hook.write_file("config.toml", text);
        hook.env("EDGECERT_CONFIG", file)
    };
    let lineage_entry = |value: &str| {
        format!(
            "allow_untrusted = false\n[[lineage]]\npath = \"{}\"\nallow_untrusted = {value}\n",
            lineage.path().display()
        )
    };
    let refused = [
        ("no setting", hook()),
        ("file", configured("allow_untrusted = false\n")),
        ("flag overrides file", configured("allow_untrusted = true\n").args(["--allow-untrusted=false"])),
        ("lineage entry", configured(&lineage_entry("false"))),
    ];
    for (name, hook) in refused {
        let output = hook.exits_with(65);
        assert!(
            output.stderr.contains("staging environment; browsers do not trust it"),
            "{name}: {}",
            output.stderr
        );
    }
    assert_eq!(request_lines(&service), Vec::<String>::new());
    let allowed = [
        ("flag", hook().args(["--allow-untrusted"])),
        ("variable", hook().env("EDGECERT_ALLOW_UNTRUSTED", "true")),
        ("file", configured("allow_untrusted = true\n")),
        ("lineage entry", configured(&lineage_entry("true"))),
    ];
    for (name, hook) in allowed {
        let output = hook.succeeds();
        assert!(output.stderr.contains("edgecert: warning: "), "{name}: {}", output.stderr);
    }
}
