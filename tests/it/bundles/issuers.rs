//! The check `issuer`: `deploy` refuses test, staging and self-signed issuers unless `--allow-untrusted` is set.

use crate::harness::{Lineage, edgecert, openssl, request_lines, sandbox, upload_count};

/// Issues a certificate for `a.example` by a CA with this subject.
fn issued_by(subject: &str) -> Lineage {
    let lineage = Lineage::issued_for(&["a.example"]);
    let directory = lineage.path();
    let key = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
    openssl(directory, &[&key[..], &["ca.key"]].concat());
    openssl(
        directory,
        &["req", "-x509", "-new", "-key", "ca.key", "-subj", subject, "-days", "9", "-out", "ca.pem"],
    );
    openssl(directory, &["req", "-new", "-key", "privkey.pem", "-subj", "/", "-out", "request.pem"]);
    lineage.write("names.cnf", "subjectAltName=DNS:a.example\n");
    let mut sign =
        vec!["x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "9"];
    sign.extend(["-extfile", "names.cnf", "-out", "cert.pem"]);
    openssl(directory, &sign);
    lineage.write("fullchain.pem", &(lineage.read("cert.pem") + &lineage.read("ca.pem")));
    lineage
}

#[test]
fn test_issuers_are_refused_by_name() {
    let service = sandbox(&["a.example"]);
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
        ("/C=AT/O=ZeroSSL/CN=ZeroSSL ECC Test CA", Some("ZeroSSL")),
        ("/C=US/O=Let's Encrypt/CN=R11", None),
        ("/O=Pebble Beach Networks/CN=Pebble Beach CA", None),
        ("/CN=Attested Private CA", None),
    ];
    for (subject, environment) in rows {
        let lineage = issued_by(subject);
        let hook = || edgecert().called_by_certbot(&lineage).against(&service);
        let uploads_before = upload_count(&service);
        let Some(environment) = environment else {
            hook().succeeds();
            assert_eq!(upload_count(&service), uploads_before + 1, "{subject}");
            continue;
        };
        let output = hook().exits_with(65).snapshot();
        assert!(
            output.contains(environment) && output.contains("browsers do not trust it"),
            "{subject}: {output}"
        );
        assert!(output.contains(" --allow-untrusted` to deploy it anyway"), "{subject}: {output}");
        assert_eq!(upload_count(&service), uploads_before, "{subject}");
        let report = edgecert().args(["check", "--lineage"]).args([lineage.path()]).succeeds().snapshot();
        assert!(report.contains("! issuer    "), "{subject}: {report}");
    }
}

#[test]
fn test_directory_is_recognised_by_host() {
    let service = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let rows = [
        ("https://acme-staging-v02.api.letsencrypt.org/directory", 65),
        ("https://ACME-STAGING-V02.api.letsencrypt.org/directory", 65),
        ("https://api.test4.buypass.no/acme/directory", 65),
        ("https://dv.acme-v02.test-api.pki.goog/directory", 65),
        ("https://pebble:14000/dir", 65),
        ("https://staging.\u{1b}[2Jacme.example/dir", 65),
        ("https://acme-v02.api.letsencrypt.org/directory", 0),
        ("https://acme.zerossl.com/v2/DV90", 0),
        ("https://api.buypass.com/acme/directory", 0),
        ("https://acme.contest.example/staging", 0),
        ("not an address", 0),
        ("", 0),
    ];
    for (directory, code) in rows {
        let files = [("CERT_KEY_PATH", "privkey.pem"), ("CERT_FULLCHAIN_PATH", "fullchain.pem")];
        let hook = edgecert().against(&service).env("ACME_DIRECTORY", directory);
        let hook = files.into_iter().fold(hook, |hook, (name, file)| hook.env(name, lineage.file(file)));
        let output = hook.exits_with(code).snapshot();
        assert_eq!(
            output.contains("comes from the test directory https://"),
            code != 0,
            "{directory}: {output}"
        );
        assert!(!output.contains('\u{1b}'), "{directory}: {output:?}");
    }
}

#[test]
fn every_settings_source_allows_untrusted_issuers() {
    let service = sandbox(&["a.example"]);
    let lineage = issued_by("/CN=(STAGING) Pretend Pear X1");
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
