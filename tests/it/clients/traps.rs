//! What ACME clients do to their hooks: encodings, streams, environments and variables that break others.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use crate::harness::{Fault, Hook, Lineage, deploy, edgecert, sandbox, step, sync};

use super::{certificates, served_record};

const IDN: &str = "bücher.example";
const A_LABEL: &str = "xn--bcher-kva.example";

/// The variables of lego for `NAME.crt` and `NAME.key` in a directory.
fn called_by_lego(files: &Lineage, name: &str) -> Hook {
    let file = |ending: &str| files.file(&format!("{name}.{ending}"));
    edgecert().env("LEGO_CERT_PATH", file("crt")).env("LEGO_CERT_KEY_PATH", file("key"))
}

/// certbot exits 1 if its locale cannot decode the output of a hook.
#[test]
fn output_to_pipes_is_ascii() {
    let service = sandbox(&[IDN]);
    let lineage = Lineage::issued_for(&[A_LABEL]);
    let state = TempDir::new().unwrap();
    for locale in ["C", "C.UTF-8"] {
        let hook = |arguments: &[&str]| {
            let hook = deploy(&service, &lineage, state.path()).env("LC_ALL", locale).args(arguments);
            let output = hook.succeeds();
            let text = output.stdout.clone() + &output.stderr;
            assert!(text.is_ascii(), "{text}");
            output
        };
        assert!(hook(&["-vv"]).stdout.contains(r"b\u00fccher.example"));
        assert_eq!(hook(&["--json"]).json()["sites"][0]["domain"], IDN);
        let stderr =
            edgecert().env("LC_ALL", locale).args(["check", "--cert", "schlüssel.pem"]).exits_with(66).stderr;
        assert!(stderr.contains(r"schl\u00fcssel.pem") && stderr.is_ascii(), "{stderr}");
        let stderr = edgecert().env("LC_ALL", locale).args(["--schlüssel"]).exits_with(2).stderr;
        assert!(stderr.is_ascii(), "{stderr}");
    }
}

/// lego stops reading at a line of 64 KiB, and later kills the hook.
#[test]
fn lines_stay_below_lego_limit() {
    let domains: Vec<String> =
        (0..600).map(|number| format!("site-{number}.a-long-name.b.example")).collect();
    let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
    for (option, sites, is_rejected) in [("-vv", 600, false), ("--json", 600, false), ("-vv", 3, true)] {
        let service = sandbox(&domains[..sites]);
        if is_rejected {
            let long = "x".repeat(1 << 20);
            service.add_fault(Fault::status("POST /api/certs/upload", 400).body(long).times(99));
        }
        let files = Lineage::issued_for(&["*.a-long-name.b.example"]);
        files.rename("fullchain.pem", "b.crt");
        files.rename("privkey.pem", "b.key");
        let output = called_by_lego(&files, "b").against(&service).args([option, "--verify=off"]).run();
        assert_eq!(output.code, if is_rejected { 69 } else { 0 }, "{}", output.stderr);
        let longest = output.stdout.lines().chain(output.stderr.lines()).map(str::len).max();
        assert!(longest < Some(1 << 16), "{option}: {longest:?}");
    }
}

#[test]
fn closed_streams_do_not_stop_deployment() {
    let (reader, broken) = std::io::pipe().unwrap();
    drop(reader);
    for (redirections, is_broken) in [("<&- >&- 2>&-", false), (">&-", false), ("2>&-", false), ("", true)] {
        let service = sandbox(&["a.example"]);
        let lineage = Lineage::issued_for(&["a.example"]);
        let script = format!("exec \"$@\" {redirections}");
        let hook = edgecert().called_by_certbot(&lineage).against(&service).args(["-vv"]);
        let mut hook = hook.under(&["/bin/sh", "-c", &script, "sh"]);
        let command = hook.command();
        if is_broken {
            command.stdout(broken.try_clone().unwrap()).stderr(broken.try_clone().unwrap());
        }
        assert_eq!(command.output().unwrap().status.code(), Some(0), "{redirections}");
        let record = served_record(&service, &["a.example"]);
        assert_eq!(record.chain, certificates(&lineage.read("fullchain.pem")), "{redirections}");
    }
}

/// systemd sets no `HOME`, and cron's `PATH` may be anything.
#[test]
fn hook_needs_neither_home_nor_path() {
    for path in [None, Some("")] {
        let service = sandbox(&["a.example"]);
        let lineage = Lineage::issued_for(&["a.example"]);
        let hook =
            edgecert().called_by_certbot(&lineage).against(&service).without_env("HOME").without_env("PATH");
        let mut hook = match path {
            Some(path) => hook.env("PATH", path),
            None => hook,
        };
        hook.command().current_dir("/");
        let output = hook.succeeds();
        assert_eq!(output.stderr, "");
        assert!(output.state.contains("a.example"), "the deployment is recorded");
        served_record(&service, &["a.example"]);
    }
}

/// If both sets of variables are complete, it is unknown which client runs the hook.
#[test]
fn variables_of_two_clients_are_refused() {
    let service = sandbox(&["a.example", "b.example"]);
    let (certbot, lego) = (Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["b.example"]));
    lego.rename("fullchain.pem", "b.crt");
    lego.rename("privkey.pem", "b.key");
    let both = || called_by_lego(&lego, "b").called_by_certbot(&certbot).against(&service);
    let told = TempDir::new().unwrap();
    let hook = both();
    let notify = format!("on_failure = ['/bin/sh', '-c', 'cat > {}/report']\n", told.path().display());
    let config = hook.write_file("config.toml", &notify);
    let stderr = hook.env("EDGECERT_CONFIG", config).exits_with(78).stderr;
    for part in ["certbot", "lego", "b.crt", "fullchain.pem", "nothing was sent", "env -u VARIABLE"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let report = fs::read_to_string(told.path().join("report")).unwrap();
    assert!(report.contains("certbot"), "the report for on_failure does not name certbot: {report}");
    assert_eq!(service.requests().len(), 0);

    // What the command line names is not in question.
    both().args(["--lineage"]).args([certbot.path()]).succeeds();
    // Nor is a lineage that both name.
    let same = edgecert().env("LEGO_CERT_PATH", certbot.file("fullchain.pem"));
    let same = same.env("LEGO_CERT_KEY_PATH", certbot.file("privkey.pem"));
    same.called_by_certbot(&certbot).against(&service).succeeds();
    assert_eq!(served_record(&service, &["a.example"]).chain, certificates(&certbot.read("fullchain.pem")));
}

/// dehydrated runs its hook with umask 077, acme.sh with that of the user, whatever it is.
#[test]
fn modes_of_files_do_not_depend_on_umask() {
    for umask in ["077", "022", "000"] {
        let service = sandbox(&["a.example"]);
        let lineage = Lineage::issued_for(&["a.example"]);
        let (files, file) = (TempDir::new().unwrap(), |name: &str| lineage.path().join(name));
        let state = files.path().join("state");
        let script = format!("umask {umask}; exec \"$@\"");
        let hook = edgecert().against(&service).with_state(&state).args(["deploy_cert", "a.example"]);
        let names = ["privkey.pem", "cert.pem", "fullchain.pem", "chain.pem"];
        hook.args(names.map(file)).args(["1"]).under(&["/bin/sh", "-c", &script, "sh"]).succeeds();
        let metrics = files.path().join("edgecert.prom");
        let status = edgecert().against(&service).with_state(&state).args(["status", "--metrics"]);
        status.args([&metrics]).under(&["/bin/sh", "-c", &script, "sh"]).succeeds();
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&metrics)), (0o700, 0o644), "umask {umask}");
        for file in fs::read_dir(&state).unwrap().map(|file| file.unwrap().path()) {
            assert_eq!(mode(&file), if file.is_dir() { 0o700 } else { 0o600 }, "umask {umask}");
        }
    }
}

/// lego passes paths as `--path` was given; `sync` runs elsewhere.
#[test]
fn sync_finds_relative_paths_of_lego() {
    let service = sandbox(&["b.example"]);
    let (files, state) = (Lineage::issued_for(&["b.example"]), TempDir::new().unwrap());
    fs::create_dir_all(files.file("lego/certificates")).unwrap();
    files.rename("fullchain.pem", "lego/certificates/b.example.crt");
    files.rename("privkey.pem", "lego/certificates/b.example.key");
    let mut hook = edgecert().env("LEGO_CERT_PATH", "lego/certificates/b.example.crt");
    hook.command().current_dir(files.path());
    let hook = hook.env("LEGO_CERT_KEY_PATH", "lego/certificates/b.example.key").against(&service);
    hook.with_state(state.path()).env("EDGECERT_API_KEY", "wrong").exits_with(77);
    sync(&service, state.path()).succeeds();
    served_record(&service, &["b.example"]);
}

#[test]
fn files_that_are_elsewhere_are_explained() {
    let service = sandbox(&["a.example"]);

    // Caddy passes storage keys, relative to its data directory.
    step("relative_storage_key_of_caddy_is_explained");
    let key = "certificates/acme-v02.api.letsencrypt.org-directory/a.example/a.example";
    let hook =
        edgecert().against(&service).args(["--cert", &format!("{key}.crt"), "--key", &format!("{key}.key")]);
    hook.exits_with(66).says("data directory");

    // Announced files that do not exist: `lego --filename`, `--pfx`, `--pem`, and acme.sh's sixth argument.
    step("announced_files_may_be_missing");
    let files = Lineage::issued_for(&["a.example"]);
    files.rename("fullchain.pem", "a.crt");
    files.rename("privkey.pem", "a.key");
    let hook = called_by_lego(&files, "a").against(&service);
    let absent = |ending: &str| files.file(&format!("absent.{ending}"));
    let hook = hook.env("LEGO_CERT_PEM_PATH", absent("pem")).env("LEGO_CERT_PFX_PATH", absent("pfx"));
    hook.env("LEGO_ISSUER_CERT_PATH", absent("issuer.crt")).succeeds();
    let stderr = called_by_lego(&files, "absent").against(&service).exits_with(66).stderr;
    assert!(stderr.contains("absent.crt: no such file") && stderr.contains("lego --filename"), "{stderr}");
}
