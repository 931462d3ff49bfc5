//! `doctor` on lineages and sites: uncovered sites, contested sites, blocked deployments.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::{Certbot, assert_only_fault, doctor, faults, findings, on_good_host, private_directory};
use crate::harness::{
    Authority, Lineage, account, edgecert, fresh, record, record_of, sandbox, step, test_ca, write_with_mode,
};

#[test]
fn faults_of_one_lineage_are_named() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));

    step("pattern_without_matches_is_a_warning");
    let entries = |pattern: &str| certbot.entries(&["a.example", pattern], "");
    assert!(faults(&doctor(&service, &entries("*")).succeeds()).is_empty());
    let output = doctor(&service, &entries("nothing-*")).succeeds();
    let begins = format!("warn lineage: the path {} in the", certbot.live("nothing-*").display());
    assert_only_fault(&output, &begins, "correct `path` in its [[lineage]]");

    step("chain_without_root_is_a_fault");
    let other = Authority::new("Other CA").unwrap();
    certbot.write("roots.pem", other.root(), 0o644);
    let roots = certbot.path("roots.pem");
    let with = |value: &str| doctor(&service, &certbot.entries(&["a.example"], value));
    let system = |value: &str| with(value).env("SSL_CERT_FILE", &roots);
    let entry = |value: &str| format!("trust_anchors = '{value}'\n");

    let output = system("").succeeds();
    assert_only_fault(&output, "warn lineage: ", "--trust-anchors FILE");
    output.prints("has no path to a trust anchor");
    assert!(faults(&system(&entry("off")).succeeds()).is_empty());
    for output in [system(&entry("system")), with(&entry(roots.to_str().unwrap()))] {
        let output = output.exits_with(65);
        assert_only_fault(&output, "fail lineage: ", "--trust-anchors off");
    }
    let output = with(&entry("missing.pem")).exits_with(78);
    assert_only_fault(&output, "fail lineage: cannot use the CA file ", "check the path");

    step("repair_is_a_warning_with_a_remedy");
    let chain = fs::read_to_string(certbot.live("a.example").join("fullchain.pem")).unwrap();
    let (leaf, issuers) = chain.split_at(chain.rfind("-----BEGIN").unwrap());
    let reversed = [issuers, leaf].concat();
    certbot.write("live/a.example/fullchain.pem", &reversed, 0o644);
    assert_only_fault(&with("").succeeds(), "warn lineage: ", "run `edgecert check`");
    certbot.write("live/a.example/fullchain.pem", &chain, 0o644);

    step("readable_private_key_is_a_fault");
    let key = certbot.live("a.example").join("privkey.pem");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let output = on_good_host(&service, &certbot).exits_with(78);
    assert_only_fault(&output, "fail lineage: others can read the private key ", "chmod o= /");

    // A mounted secret has such a mode.
    let secret = TempDir::new().unwrap();
    fs::copy(&key, secret.path().join("tls.key")).unwrap();
    fs::copy(certbot.live("a.example").join("fullchain.pem"), secret.path().join("tls.crt")).unwrap();
    let output = doctor(&service, &format!("[[lineage]]\npath = '{}'\n", secret.path().display())).succeeds();
    assert_only_fault(&output, "warn lineage: others can read the private key ", "defaultMode");

    step("unrenewed_certificate_is_a_warning");
    for (days, is_due) in [([-66, 18], true), ([-62, 22], false), ([-14, 3], true), ([-3, 3], false)] {
        let issued = test_ca().issue_between(&["a.example"], days).unwrap();
        certbot.write("live/a.example/fullchain.pem", &issued.fullchain(), 0o644);
        certbot.write("live/a.example/privkey.pem", &issued.key, 0o600);
        let output = on_good_host(&service, &certbot).succeeds();
        if is_due {
            let begins = format!("warn renewal: {} has ", certbot.live("a.example").display());
            assert_only_fault(&output, &begins, "run `certbot renew`");
        } else {
            assert_eq!(faults(&output), [""; 0], "{days:?}");
        }
    }
}

#[test]
fn lineage_without_site_is_a_fault() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::with_lineages(&[&["a.example"], &["x.example", "y.example"]]);
    let entries = certbot.entries(&["a.example", "x.example"], "");
    let output = doctor(&service, &entries).exits_with(69);
    assert_only_fault(&output, "fail lineage: ", "create the site");
    output.prints("is covered by the certificate for x.example and y.example");

    let output = doctor(&service, &entries).env("EDGECERT_SKIP_UNMATCHED", "true").succeeds();
    assert_eq!(faults(&output), [""; 0]);

    let named =
        certbot.entries(&["x.example"], "domains = [\"x.example\"]\n") + &certbot.entries(&["a.example"], "");
    doctor(&service, &named).exits_with(69).prints("the account has no site x.example");
}

#[test]
fn site_of_another_host_is_a_note() {
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    let account = |sites: &[&str], kind: &str| {
        let site = |(at, domain): (u64, _)| (at + 1, domain, (at > 0).then_some(5));
        let sites: Vec<_> = (0..).zip(sites.iter().copied()).map(site).collect();
        account(&sites, &[record(5, "b.example", kind)])
    };
    let notes = |service| {
        let output = on_good_host(&service, &certbot).succeeds();
        assert_eq!(faults(&output), [""; 0]);
        let sites = findings(&output).into_iter().filter(|line| line.starts_with("site "));
        sites.collect::<Vec<_>>()
    };
    let own = "site ok: 1 site, each covered by one lineage";
    let other = "site skipped: 1 site is not covered by this host: b.example";
    for kind in ["lets", "uploaded"] {
        assert_eq!(notes(account(&["a.example", "b.example"], kind)), [own, other]);
    }
    let names = ["a.example", "b.example", "c.example", "d.example", "e.example"];
    let others =
        "site skipped: 4 sites are not covered by this host: b.example, c.example, d.example and e.example";
    assert_eq!(notes(account(&names, "uploaded")), [own, others]);
}

#[test]
fn site_that_nobody_renews_is_a_warning() {
    let (certbot, state) = (Certbot::with_lineages(&[&["a.example", "b.example"]]), private_directory());
    let call = |service| on_good_host(service, &certbot).with_state(state.path()).succeeds();
    let service = sandbox(&["a.example", "c.example", "d.example"]);
    let begins =
        "warn site: no lineage of this host covers c.example and d.example, and no other host seems to ";
    assert_only_fault(&call(&service), begins, "add the names to a certificate");

    // A renewal dropped a name.
    let service = sandbox(&["a.example", "b.example"]);
    let hook = edgecert().against(&service).with_state(state.path());
    hook.env("RENEWED_LINEAGE", certbot.live("a.example")).succeeds();
    certbot.renew("a.example", &["a.example"]);
    let begins = "warn site: no lineage of this host covers b.example, and no other host seems to ";
    let output = on_good_host(&service, &certbot).with_state(state.path()).run();
    let found = faults(&output);
    assert!(found.iter().any(|fault| fault.starts_with(begins)), "{found:?}");
}

#[test]
fn superseded_lineage_is_only_a_warning() {
    let (service, state) = (sandbox(&["a.example"]), private_directory());
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    certbot.renew("other", &["a.example"]);
    let entries = certbot.entries(&["a.example", "other"], "");
    edgecert().against(&service).args(["sync"]).with_config(&entries).with_state(state.path()).succeeds();
    let faults = || faults(&doctor(&service, &entries).with_state(state.path()).run());
    let superseded =
        |fault: &String| fault.starts_with("warn lineage: ") && fault.contains("is superseded: ");
    let found: Vec<String> = faults().into_iter().filter(superseded).collect();
    assert_eq!(found.len(), 1, "{found:?}");

    // Nobody needs its files.
    let name = if found[0].contains("live/other") { "other" } else { "a.example" };
    fs::remove_file(certbot.live(name).join("fullchain.pem")).unwrap();
    let gone: Vec<String> = faults().into_iter().filter(|fault| fault.contains(name)).collect();
    assert!(gone.iter().all(|fault| fault.starts_with("warn ")), "{gone:?}");

    // A renewal may win again.
    certbot.renew(name, &["a.example"]);
    assert!(!faults().iter().any(superseded), "{:?}", faults());
}

#[test]
fn contested_site_is_a_warning() {
    let certbot = Certbot::with_lineages(&[&["a.example"], &["b.example", "a.example"]]);
    let service = sandbox(&["a.example", "b.example"]);
    let both = ["a.example", "b.example"];
    let output = doctor(&service, &certbot.entries(&both, "")).succeeds();
    assert_only_fault(&output, "warn record: a.example is covered by ", "`domains`");
    output.prints("the others are superseded");

    let parted =
        certbot.entries(&["a.example"], "") + &certbot.entries(&["b.example"], "domains = [\"b.example\"]\n");
    doctor(&service, &parted).succeeds();

    // Sites of two lineages share one record.
    let certbot = Certbot::with_lineages(&[&["a.example"], &["b.example"]]);
    let issued = test_ca().issue(&both).unwrap();
    let sites = [(1, "a.example", Some(5)), (2, "b.example", Some(5))];
    let service = account(&sites, &[record_of(5, "a.example", &issued)]);
    let output = doctor(&service, &certbot.entries(&both, "")).exits_with(78);
    assert_only_fault(&output, "fail record: a.example and b.example are bound to one record", "rebind");
}

#[test]
fn blocked_deployment_is_reported() {
    let service = account(&[(1, "a.example", Some(5))], &[record(5, "a.example", "lets")]);
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    let output = on_good_host(&service, &certbot).exits_with(65);
    assert_only_fault(&output, "fail record: ", "--replace-lets");
    output.prints("a.example is guarded: the service itself issues and renews");
    let plan = edgecert().against(&service).args(["plan", "--json", "--lineage"]);
    let plan = plan.args([certbot.live("a.example")]).exits_with(65).json();
    let line = format!("record fail: {}", plan["error"].as_str().unwrap());
    assert!(findings(&output).contains(&line), "{line}: {}", output.stdout);
}

#[test]
fn missing_or_refused_lineage_is_a_fault() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    // The key of another certificate.
    let other = test_ca().issue(&["a.example"]).unwrap();
    certbot.write("live/a.example/privkey.pem", &other.key, 0o600);
    let output = on_good_host(&service, &certbot).exits_with(65);
    let faults = faults(&output);
    assert!(faults.len() == 1 && faults[0].starts_with("fail lineage: "), "{faults:?}");

    let state = private_directory();
    let lineage = Lineage::issued_for(&["a.example"]);
    fresh(&service, &lineage).with_state(state.path()).succeeds();
    drop(lineage);
    certbot.renew("a.example", &["a.example"]);
    on_good_host(&service, &certbot)
        .with_state(state.path())
        .exits_with(66)
        .prints("edgecert status --forget");
}

#[test]
fn renewed_secret_is_the_same_lineage() {
    let (service, state, secret) = (sandbox(&["a.example"]), private_directory(), TempDir::new().unwrap());
    let renew = |version: &str| {
        let directory = secret.path().join(version);
        let issued = test_ca().issue(&["a.example"]).unwrap();
        for (name, text) in [("tls.crt", issued.fullchain()), ("tls.key", issued.key)] {
            write_with_mode(directory.join(name), text, 0o600);
            let _ = symlink(format!("..data/{name}"), secret.path().join(name));
        }
        let _ = fs::remove_file(secret.path().join("..data"));
        symlink(version, secret.path().join("..data")).unwrap();
    };
    renew("..2026_01");
    let hook = edgecert().against(&service).with_state(state.path());
    hook.args(["--lineage"]).args([secret.path()]).succeeds();
    renew("..2026_02");
    fs::remove_dir_all(secret.path().join("..2026_01")).unwrap();
    for configuration in [String::new(), format!("[[lineage]]\npath = '{}'\n", secret.path().display())] {
        doctor(&service, &configuration).with_state(state.path()).succeeds();
    }
}
