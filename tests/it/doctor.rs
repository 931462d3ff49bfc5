//! `edgecert doctor`: nothing wrong on a machine that is set up well, and each fault of the set-up found by its name.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Fault, Hook, Lineage, Options, Outcome, Sandbox, authority, edgecert, record, sandbox, sandbox_with,
    world,
};

/// certbot's directories with one lineage for each row of names, attached to edgecert; the first name is the lineage's.
struct Certbot {
    home: TempDir,
}

impl Certbot {
    fn keeping(lineages: &[&[&str]]) -> Self {
        let certbot = Self { home: TempDir::new().unwrap() };
        certbot.write("bin/edgecert", "#!/bin/sh\n", 0o755);
        for names in lineages {
            certbot.renew(names[0], names);
            certbot.attach(names[0], &certbot.path("bin/edgecert"));
        }
        certbot
    }

    fn renew(&self, name: &str, names: &[&str]) {
        let issued = authority().issue(names).unwrap();
        self.write(&format!("live/{name}/fullchain.pem"), &issued.fullchain(), 0o644);
        self.write(&format!("live/{name}/privkey.pem"), &issued.key, 0o600);
    }

    fn attach(&self, name: &str, command: impl AsRef<Path>) {
        let record =
            format!("version = 2.1.0\n[renewalparams]\nrenew_hook = {}\n", command.as_ref().display());
        self.write(&format!("renewal/{name}.conf"), &record, 0o644);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn live(&self, name: &str) -> PathBuf {
        self.path("live").join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    /// Entries of a configuration, with these lines in each.
    fn entries(&self, names: &[&str], lines: &str) -> String {
        let entry = |name: &&str| format!("[[lineage]]\npath = {:?}\n{lines}", self.live(name));
        names.iter().map(entry).collect()
    }
}

/// A directory as edgecert makes it for its state.
fn private_directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    directory
}

const TIMER: &str = ".config/systemd/user/timers.target.wants/edgecert-sync.timer";

/// A call on a machine with a timer and this configuration.
fn doctor(edge: &Sandbox, configuration: &str) -> Hook {
    let hook = edgecert().against(edge).args(["doctor", "--json"]);
    hook.file(TIMER, "");
    hook.file(".config/edgecert/config.toml", configuration);
    hook
}

/// The same on a machine with one lineage for `a.example`, which is in order.
fn on_a_good_machine(edge: &Sandbox, certbot: &Certbot) -> Hook {
    doctor(edge, &certbot.entries(&["a.example"], ""))
}

/// What is not in order, as `status subject: detail; remedy`.
fn faults(outcome: &Outcome) -> Vec<String> {
    let json = outcome.json();
    let findings = json["findings"].as_array().unwrap().iter();
    let word = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let line = |finding: &Value| {
        let [status, subject, detail, remedy] =
            ["status", "subject", "detail", "remedy"].map(|field| word(finding, field));
        format!("{status} {subject}: {detail}; {remedy}")
    };
    findings.filter(|finding| finding["status"] != "ok").map(line).collect()
}

/// Expects this one fault: how its line begins, and what its remedy has in it.
#[track_caller]
fn only_fault(outcome: &Outcome, begins: &str, remedy: &str) {
    let faults = faults(outcome);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].starts_with(begins) && faults[0].contains(remedy), "{faults:#?}");
}

#[test]
fn on_a_good_machine_nothing_is_wrong() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example", "b.example"]]));
    let hook = on_a_good_machine(&edge, &certbot);
    let json = hook.succeeds().json();
    assert_eq!(
        (&json["ok"], &json["command"], &json["error"]),
        (&json!(true), &json!("doctor"), &json!(null))
    );
    assert_eq!(edge.requests().len(), 2, "one listing of certificates, one of sites");

    let hook = edgecert().against(&edge).args(["doctor"]);
    hook.file(TIMER, "");
    hook.file(".config/edgecert/config.toml", &certbot.entries(&["a.example"], ""));
    let shown = hook.succeeds().shown().replace(certbot.home.path().to_str().unwrap(), "CERTBOT");
    expect![[r#"
        base-url     ok: API
        state        ok: HOME/state
        service      ok: it answers: 1 site and 0 certificates
        api-key      ok: the service accepts it
        clock        ok: within a minute of the service's
        lineage      ok: CERTBOT/live/a.example: a.example and b.example
        hook         ok: CERTBOT/renewal/a.example.conf calls edgecert for CERTBOT/live/a.example
        site         ok: 1 site, each with its lineage
        timer        ok: HOME/.config/systemd/user/timers.target.wants/edgecert-sync.timer runs edgecert sync
        ---
    "#]]
    .assert_eq(&shown);
}

#[test]
fn without_an_api_key_everything_else_is_still_looked_at() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let outcome = on_a_good_machine(&edge, &certbot).without_env("EDGECERT_API_KEY").fails_with(78);
    only_fault(&outcome, "fail api-key: no API key is set; ", "set EDGECERT_API_KEY");
    let json = outcome.json();
    let subjects: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["base-url", "api-key", "state", "service", "clock", "lineage", "hook", "timer"]);
}

#[test]
fn an_api_key_file_that_cannot_be_used_is_named() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let call = |file: &str| {
        let hook = on_a_good_machine(&edge, &certbot).without_env("EDGECERT_API_KEY");
        let path = hook.file("key", "sandbox-key\n").with_file_name(file);
        fs::set_permissions(path.with_file_name("key"), Permissions::from_mode(0o604)).unwrap();
        hook.env("EDGECERT_API_KEY_FILE", path).fails_with(78)
    };
    only_fault(&call("key"), "fail api-key: others can read the API key file ", "chmod 600 /");
    only_fault(&call("other"), "fail api-key: cannot read ", "check the path and its permissions");
}

#[test]
fn a_base_url_that_is_missing_or_bad_is_a_fault_of_its_own() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let call = || on_a_good_machine(&edge, &certbot).without_env("EDGECERT_BASE_URL");
    only_fault(&call().fails_with(78), "fail base-url: no base URL is set; ", "base_url in");
    let outcome = call().args(["--base-url", "http://api.example.net"]).run();
    assert_eq!(outcome.code, 78);
    assert!(outcome.stdout.contains("plain http is for loopback addresses only"), "{}", outcome.stdout);
    assert_eq!(edge.requests().len(), 0);
}

#[test]
fn a_service_that_cannot_be_reached_is_temporary() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let call = || on_a_good_machine(&edge, &certbot);
    let outcome = call().env("EDGECERT_BASE_URL", "http://127.0.0.1:1").fails_with(75);
    only_fault(
        &outcome,
        "fail service: the service at 127.0.0.1:1 cannot be reached: ",
        "check the base URL",
    );
    edge.add_fault(Fault::status("GET /api/certs", 503).times(2));
    only_fault(&call().fails_with(75), "fail service: the service answers 503", "ask again later");
    edge.add_fault(Fault::status("GET /api/certs", 503).times(1));
    call().succeeds();
}

#[test]
fn a_service_whose_tls_is_not_trusted_is_told_from_one_that_cannot_be_reached() {
    let edge = sandbox_with(Options { tls: true, ..Options::default() }, &["a.example"]);
    let certbot = Certbot::keeping(&[&["a.example"]]);
    let call = || on_a_good_machine(&edge, &certbot);
    call().succeeds();
    let outcome = call().without_env("EDGECERT_CA_FILE").fails_with(78);
    only_fault(&outcome, "fail tls: the TLS certificate of 127.0.0.1", "--ca-file");
    let hook = call();
    let empty = hook.file("empty.pem", "");
    let outcome = hook.env("EDGECERT_CA_FILE", empty).fails_with(78);
    only_fault(&outcome, "fail tls: cannot use the CA file ", "CA certificates in PEM");
}

#[test]
fn an_api_key_that_the_service_does_not_accept_ends_with_77() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let outcome =
        on_a_good_machine(&edge, &certbot).env("EDGECERT_API_KEY", "another-key-of-mine").fails_with(77);
    only_fault(
        &outcome,
        "fail api-key: the service does not accept the API key (401)",
        "put a valid key into",
    );
    assert!(!outcome.stdout.contains("another-key-of-mine"), "{}", outcome.stdout);
}

#[test]
fn a_clock_that_is_off_by_more_than_a_minute_is_a_fault() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let dated = |pattern: &str, body: Value| {
        Fault::status(pattern, 200).header("Date", "Tue, 01 Jan 2030 00:00:00 GMT").body(body)
    };
    edge.add_fault(dated("GET /api/certs", json!([])));
    edge.add_fault(dated(
        "GET /api/me/sites",
        json!({"sites": [{"id": 1, "domain": "a.example"}], "total": 1}),
    ));
    let outcome = on_a_good_machine(&edge, &certbot).fails_with(78);
    only_fault(&outcome, "fail clock: this machine's clock is ", "timedatectl");
}

#[test]
fn a_state_directory_that_is_open_or_cannot_be_written_is_a_fault() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let call = || on_a_good_machine(&edge, &certbot);
    let hook = call();
    let file = hook.file("file", "");
    let outcome = hook.env("EDGECERT_STATE_DIR", file.join("state")).fails_with(78);
    only_fault(&outcome, "fail state: cannot write into the state directory ", "--state-dir");

    let directory = TempDir::new().unwrap();
    for (mode, code) in [(0o700, 0), (0o750, 0), (0o705, 78), (0o770, 78)] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let outcome = call().env("EDGECERT_STATE_DIR", directory.path()).fails_with(code);
        if code != 0 {
            only_fault(&outcome, "fail state: the state directory ", "chmod 700 /");
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "and nothing is left behind");
}

#[test]
fn a_private_key_that_others_can_read_is_a_fault() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let key = certbot.live("a.example").join("privkey.pem");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let outcome = on_a_good_machine(&edge, &certbot).fails_with(78);
    only_fault(&outcome, "fail lineage: others can read the private key ", "chmod 600 /");

    // A mounted secret is like that.
    let secret = TempDir::new().unwrap();
    fs::copy(&key, secret.path().join("tls.key")).unwrap();
    fs::copy(certbot.live("a.example").join("fullchain.pem"), secret.path().join("tls.crt")).unwrap();
    let outcome = doctor(&edge, &format!("[[lineage]]\npath = {:?}\n", secret.path())).succeeds();
    only_fault(&outcome, "warn lineage: others can read the private key ", "defaultMode");
}

#[test]
fn a_lineage_that_covers_no_site_is_a_fault_unless_that_is_fine() {
    let edge = sandbox(&["a.example"]);
    let certbot = Certbot::keeping(&[&["a.example"], &["x.example", "y.example"]]);
    let entries = certbot.entries(&["a.example", "x.example"], "");
    let outcome = doctor(&edge, &entries).fails_with(69);
    only_fault(&outcome, "fail lineage: ", "create the site");
    assert!(outcome.stdout.contains("covers no site of the account, only x.example and y.example"));

    let outcome = doctor(&edge, &entries).env("EDGECERT_SKIP_UNMATCHED", "true").succeeds();
    assert_eq!(
        outcome.json()["findings"].as_array().unwrap().iter().filter(|f| f["status"] == "warn").count(),
        1
    );

    let named =
        certbot.entries(&["x.example"], "domains = [\"x.example\"]\n") + &certbot.entries(&["a.example"], "");
    let outcome = doctor(&edge, &named).fails_with(69);
    assert!(
        outcome.stdout.contains("is for x.example, which is no site of the account"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_site_that_no_lineage_covers_is_a_fault_unless_the_system_renews_it() {
    let certbot = Certbot::keeping(&[&["a.example"]]);
    let kinds = |kind: &str| {
        let sites = json!([
            {"id": 1, "account": 1, "domain": "a.example", "cert_id": null},
            {"id": 2, "account": 1, "domain": "b.example", "cert_id": 5},
        ]);
        let world = world(json!({"sites": sites, "certs": [record(5, "b.example", kind)]}));
        sandbox_with(Options { world, ..Options::default() }, &[])
    };
    on_a_good_machine(&kinds("lets"), &certbot).succeeds();
    let outcome = on_a_good_machine(&kinds("uploaded"), &certbot).fails_with(69);
    only_fault(
        &outcome,
        "fail site: b.example is covered by no lineage of this machine; ",
        "put it into a certificate",
    );
}

#[test]
fn two_lineages_that_replace_each_other_are_a_fault() {
    let certbot = Certbot::keeping(&[&["a.example"], &["b.example", "a.example"]]);
    let edge = sandbox(&["a.example", "b.example"]);
    let both = ["a.example", "b.example"];
    let outcome = doctor(&edge, &certbot.entries(&both, "")).fails_with(78);
    only_fault(&outcome, "fail record: a.example is covered by ", "`domains`");
    assert!(outcome.stdout.contains("whichever is deployed last replaces the other"));
    let parted =
        certbot.entries(&["a.example"], "") + &certbot.entries(&["b.example"], "domains = [\"b.example\"]\n");
    doctor(&edge, &parted).succeeds();

    // One record for sites of two lineages.
    let certbot = Certbot::keeping(&[&["a.example"], &["b.example"]]);
    let sites = json!([
        {"id": 1, "account": 1, "domain": "a.example", "cert_id": 5},
        {"id": 2, "account": 1, "domain": "b.example", "cert_id": 5},
    ]);
    let issued = authority().issue(&both).unwrap();
    let shared = json!({"id": 5, "account": 1, "domain": "a.example", "name": "a.example", "type": "uploaded",
        "cert_pem": issued.fullchain(), "key_pem": issued.key});
    let world = world(json!({"sites": sites, "certs": [shared]}));
    let edge = sandbox_with(Options { world, whims: 0, ..Options::default() }, &[]);
    let outcome = doctor(&edge, &certbot.entries(&both, "")).fails_with(78);
    only_fault(&outcome, "fail record: one record feeds a.example and b.example", "rebind");
}

#[test]
fn what_a_deployment_would_refuse_is_told_before() {
    let sites = json!([{"id": 1, "account": 1, "domain": "a.example", "cert_id": 5}]);
    let world = world(json!({"sites": sites, "certs": [record(5, "a.example", "lets")]}));
    let edge = sandbox_with(Options { world, whims: 0, ..Options::default() }, &[]);
    let certbot = Certbot::keeping(&[&["a.example"]]);
    let outcome = on_a_good_machine(&edge, &certbot).fails_with(65);
    only_fault(&outcome, "fail record: ", "--replace-lets");
    assert!(
        outcome.stdout.contains("would not reach a.example: the system issues and renews"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_lineage_that_is_gone_or_would_be_refused_is_a_fault() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    // The key of another certificate.
    let other = authority().issue(&["a.example"]).unwrap();
    certbot.write("live/a.example/privkey.pem", &other.key, 0o600);
    let outcome = on_a_good_machine(&edge, &certbot).fails_with(65);
    let faults = faults(&outcome);
    assert!(faults.len() == 1 && faults[0].starts_with("fail lineage: "), "{faults:?}");

    let state = private_directory();
    let lineage = Lineage::issued_for(&["a.example"]);
    edgecert().called_by_certbot(&lineage).against(&edge).env("EDGECERT_STATE_DIR", state.path()).succeeds();
    drop(lineage);
    certbot.renew("a.example", &["a.example"]);
    let outcome = on_a_good_machine(&edge, &certbot).env("EDGECERT_STATE_DIR", state.path()).fails_with(66);
    assert!(outcome.stdout.contains("edgecert status --forget"), "{}", outcome.stdout);
}

#[test]
fn a_lineage_that_was_deployed_is_looked_after_and_its_hook_is_looked_for() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let state = private_directory();
    let call = || doctor(&edge, "").env("EDGECERT_STATE_DIR", state.path());
    let outcome = call().fails_with(69);
    only_fault(&outcome, "fail site: a.example is covered by no lineage", "");
    let hook = edgecert().against(&edge).env("EDGECERT_STATE_DIR", state.path());
    hook.env("RENEWED_LINEAGE", certbot.live("a.example")).succeeds();
    call().succeeds();
    certbot.attach("a.example", "/usr/bin/systemctl reload nginx");
    only_fault(
        &call().fails_with(78),
        "fail hook: ",
        "certbot reconfigure --cert-name a.example --deploy-hook edgecert",
    );
}

#[test]
fn certbots_hook_is_found_wherever_it_may_stand_and_its_text_is_never_shown() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let call = || on_a_good_machine(&edge, &certbot);
    let program = certbot.path("bin/edgecert");

    certbot.attach("a.example", format!("API=hunter2 {} --json", program.display()));
    assert!(!call().succeeds().stdout.contains("hunter2"));
    certbot.attach("a.example", "/nonexistent/edgecert");
    only_fault(&call().fails_with(78), "fail hook: the hook for ", "install edgecert there");
    certbot.attach("a.example", "edgecert-of-this-test");
    only_fault(&call().succeeds(), "warn hook: ", "/usr/local/bin");
    certbot.write("script", &format!("#!/bin/sh\n{} --json\n", program.display()), 0o755);
    certbot.attach("a.example", certbot.path("script"));
    call().succeeds();

    certbot.attach("a.example", "/bin/true");
    only_fault(&call().fails_with(78), "fail hook: ", "certbot reconfigure");
    certbot.write("cli.ini", &format!("deploy-hook = {}\n", program.display()), 0o644);
    call().succeeds();
    fs::remove_file(certbot.path("cli.ini")).unwrap();
    fs::create_dir_all(certbot.path("renewal-hooks/deploy")).unwrap();
    std::os::unix::fs::symlink(&program, certbot.path("renewal-hooks/deploy/to-the-edge")).unwrap();
    call().succeeds();
    fs::rename(
        certbot.path("renewal-hooks/deploy/to-the-edge"),
        certbot.path("renewal-hooks/deploy/to-the-edge~"),
    )
    .unwrap();
    call().fails_with(78);
    certbot.write("renewal-hooks/deploy/edgecert.sh", "exec edgecert\n", 0o644);
    only_fault(&call().fails_with(78), "fail hook: the hook for ", "install edgecert there");
}

/// acme.sh's directory for a domain, with these lines in its configuration.
fn acme_sh(home: &Path, lines: &str) -> PathBuf {
    let directory = home.join("a.example_ecc");
    fs::create_dir_all(&directory).unwrap();
    let issued = authority().issue(&["a.example"]).unwrap();
    let files = [
        ("a.example.key", issued.key.clone()),
        ("a.example.cer", issued.cert.clone()),
        ("ca.cer", issued.chain.clone()),
        ("fullchain.cer", issued.fullchain()),
        ("a.example.conf", format!("Le_Domain='a.example'\nLe_API='https://ca.example/dir'\n{lines}")),
    ];
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
        fs::set_permissions(directory.join(name), Permissions::from_mode(0o600)).unwrap();
    }
    directory
}

#[test]
fn acme_shs_hook_is_found_in_its_domain_configuration() {
    let (edge, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let program = home.path().join("edgecert");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let call = |lines: &str| {
        let directory = acme_sh(home.path(), lines);
        doctor(&edge, &format!("[[lineage]]\npath = {directory:?}\n"))
    };
    let reload = |command: &str| {
        format!("Le_ReloadCmd='__ACME_BASE64__START_{}__ACME_BASE64__END_'\n", STANDARD.encode(command))
    };
    call(&reload(program.to_str().unwrap())).succeeds();
    call("Le_DeployHook='edgecert,'\n").succeeds();
    for lines in [String::new(), reload("service nginx reload"), "Le_DeployHook='haproxy,'\n".into()] {
        only_fault(
            &call(&lines).fails_with(78),
            "fail hook: ",
            "acme.sh --install-cert -d a.example --ecc --reloadcmd edgecert",
        );
    }
}

#[test]
fn a_lineage_of_a_client_that_edgecert_does_not_know_is_a_fault_where_it_covers_a_site() {
    let (edge, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    acme_sh(home.path(), "");
    let call =
        |edge: &Sandbox, configuration: &str| doctor(edge, configuration).env("LE_CONFIG_HOME", home.path());
    let outcome = call(&edge, "").fails_with(78);
    only_fault(&outcome, "fail hook: ", "--reloadcmd edgecert");
    assert!(outcome.stdout.contains("a.example_ecc covers a.example, but has no hook"), "{}", outcome.stdout);
    // None of the edge's business.
    call(&sandbox(&[]), "").succeeds();
    // One that is not needed.
    let certbot = Certbot::keeping(&[&["a.example"]]);
    let known = certbot.entries(&["a.example"], "");
    only_fault(&call(&edge, &known).succeeds(), "warn hook: ", "leave it so");
    // With its hook it takes part in who wins.
    acme_sh(home.path(), "Le_DeployHook='edgecert,'\n");
    only_fault(&call(&edge, "").succeeds(), "warn hook: ", "edgecert --lineage /");
    let outcome = call(&edge, &known).fails_with(78);
    assert!(outcome.stdout.contains("whichever is deployed last"), "{}", outcome.stdout);
}

#[test]
fn a_machine_without_a_timer_is_told_how_to_get_one() {
    let (edge, certbot) = (sandbox(&["a.example"]), Certbot::keeping(&[&["a.example"]]));
    let hook = on_a_good_machine(&edge, &certbot);
    let timer = hook.file(TIMER, "");
    fs::remove_file(&timer).unwrap();
    std::os::unix::fs::symlink("/nonexistent/edgecert-sync.timer", &timer).unwrap();
    let outcome = hook.fails_with(78);
    only_fault(
        &outcome,
        "fail timer: no timer runs edgecert sync",
        "systemctl enable --now edgecert-sync.timer",
    );
}

#[test]
fn a_configuration_that_cannot_be_understood_does_not_stop_the_rest_and_the_gravest_fault_wins() {
    let edge = sandbox(&["a.example"]);
    let call =
        |text: &str| doctor(&edge, text).without_env("EDGECERT_BASE_URL").without_env("EDGECERT_API_KEY");
    let outcome = call("basurl = \"x\"\n").env("EDGECERT_WAIT", "soon").fails_with(78);
    let faults = faults(&outcome);
    assert_eq!(faults.len(), 2, "what may stand in the file is not missing: {faults:?}");
    assert!(faults[0].contains("config.toml:1: unknown key `basurl`"), "{faults:?}");
    assert!(
        outcome.stdout.contains("EDGECERT_WAIT: a whole number of seconds is wanted"),
        "{}",
        outcome.stdout
    );

    // 69 for the site, 77 for the key.
    doctor(&edge, "").fails_with(69);
    let certbot = Certbot::keeping(&[&["x.example"]]);
    certbot.write("live/x.example/privkey.pem", "", 0o600);
    doctor(&edge, &certbot.entries(&["x.example"], "")).env("EDGECERT_API_KEY", "wrong").fails_with(77);
}
