//! The check `issuer`: test, staging and self-signed issuers.

use super::*;

#[test]
fn test_issuers_are_recognized_by_name() {
    let (staging, old) = (Some("Let's Encrypt's staging"), Some("Let's Encrypt's old staging"));
    let rows = [
        ("/O=(STAGING) Let's Encrypt/CN=(STAGING) Counterfeit Cashew R10", staging),
        ("/CN=(STAGING) Pretend Pear X1", staging),
        ("/O=(STAGING) ISRG/CN=(STAGING) Yearning Yucca Root YE", staging),
        ("/CN=Fake LE Intermediate X1", old),
        ("/CN=Fake LE Root X2", old),
        ("/CN=Pebble Intermediate CA 4d6f8a", Some("Pebble, a test server")),
        ("/CN=Pebble Root CA 4d6f8a", Some("Pebble, a test server")),
        ("/C=NO/O=Buypass AS-983163327/CN=Buypass Class 2 Test4 CA 5", Some("Buypass's test environment")),
        ("/C=NO/O=Buypass AS-983163327/CN=Buypass Class 2 CA 5", None),
        ("/C=AT/O=ZeroSSL/CN=ZeroSSL ECC Domain Secure Site CA", None),
        ("/C=US/O=Let's Encrypt/CN=R11", None),
        ("/O=Pebble Beach Networks/CN=Pebble Beach CA", None),
        ("/CN=Attested Private CA", None),
    ];
    for (subject, environment) in rows {
        let leaf = ForgedCert { issuer: subject, ..ForgedCert::default() }.pem();
        let chain = leaf.clone() + &ForgedCert { subject, issuer: subject, ..ForgedCert::default() }.pem();
        for cert in [leaf, chain] {
            let refusing = Input { refuses_untrusted: true, ..Input::new(&cert) };
            let Some(environment) = environment else {
                refusing.finds(subject, "* issuer: ");
                continue;
            };
            let found = format!(
                "issuer: cert.pem was issued by {}, {environment}",
                subject.rsplit('=').next().unwrap()
            );
            refusing.finds(subject, &format!("x {found}"));
            let (lines, _) = refusing.check();
            let hint = "; browsers do not trust it\n  hint: issue it in the CA's production environment";
            assert!(lines.contains(hint) && lines.contains("--allow-untrusted"), "{lines}");
            let (lines, _) = Input::new(&cert).check();
            assert!(lines.lines().last().unwrap().starts_with(&format!("! {found}")), "{lines}");
        }
    }
}

#[test]
fn self_signed_leaf_needs_no_issuer() {
    let cert = ForgedCert { subject: "Private CA", ..ForgedCert::default() }.pem();
    let (lines, _) = Input { refuses_untrusted: true, ..Input::new(&cert) }.check();
    let found = "* chain: 1 certificate\nx issuer: cert.pem is self-signed; browsers do not trust it\n  hint: have a CA issue it";
    assert!(lines.contains(found), "{lines}");
}

#[test]
fn test_directories_are_recognized_by_host() {
    let cert = ForgedCert::default().pem();
    let finds = |directory, line: &str| {
        Input { directory: Some(directory), refuses_untrusted: true, ..Input::new(&cert) }
            .finds(directory, line);
    };
    for directory in [
        "https://acme-staging-v02.api.letsencrypt.org/directory",
        "https://ACME-STAGING-V02.api.letsencrypt.org/directory",
        "https://api.test4.buypass.no/acme/directory",
        "https://dv.acme-v02.test-api.pki.goog/directory",
        "https://pebble:14000/dir",
    ] {
        let line = format!(
            "x issuer: cert.pem comes from the test directory {directory}; browsers do not trust it\n"
        );
        finds(directory, &line);
    }
    let shown = "x issuer: cert.pem comes from the test directory https://staging. [2Jacme.example/dir; ";
    finds("https://staging.\u{1b}[2Jacme.example/dir", shown);
    for directory in [
        "https://acme-v02.api.letsencrypt.org/directory",
        "https://acme.zerossl.com/v2/DV90",
        "https://acme.contest.example/staging",
        "not an address",
        "",
    ] {
        finds(directory, "* issuer: Private CA\n");
    }
}
