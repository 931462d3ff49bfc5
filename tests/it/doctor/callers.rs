//! `doctor` on what runs the ACME clients: their search path, which the hook inherits, and whether they run at all.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::{Certbot, assert_only_fault, doctor, faults, on_good_host};
use crate::harness::{Hook, Sandbox, require_root, sandbox};

const TIMER: &str = "etc/systemd/system/timers.target.wants/certbot.timer";
const SERVICE: &str = "etc/systemd/system/certbot.service.d/path.conf";
const CRONTAB: &str = "var/spool/cron/crontabs/root";
const HOURLY: &str = "[Timer]\nOnCalendar=hourly\n";

/// A host whose certificate has this hook.
fn with_hook(service: &Sandbox, certbot: &Certbot, hook: &str) -> Hook {
    certbot.attach("a.example", hook);
    on_good_host(service, certbot)
}

/// Moves the program to the directory where `cargo install` puts it, which only a shell of root finds.
fn install_with_cargo(hook: Hook) -> Hook {
    hook.remove_host_file("usr/local/bin/edgecert");
    hook.write_host_file("root/.cargo/bin/edgecert", "", 0o755);
    let sync = "[Service]\nExecStart=\nExecStart=/root/.cargo/bin/edgecert sync\n";
    hook.write_host_file("etc/systemd/system/edgecert-sync.service.d/program.conf", sync, 0o644);
    hook.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/bin:/bin:/root/.cargo/bin")
}

#[test]
fn program_of_cargo_is_not_found() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    with_hook(&service, &certbot, "edgecert").succeeds();
    let hook = install_with_cargo(with_hook(&service, &certbot, "edgecert"));
    let output = hook.exits_with(78);
    let remedy = "run `install -m 755 /root/.cargo/bin/edgecert /usr/local/bin/edgecert`";
    assert_only_fault(&output, "fail hook: ", remedy);
    let detail = "but certbot.service does not find it in its PATH \
                  /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; it is /root/.cargo/bin/edgecert";
    assert!(faults(&output)[0].contains(detail), "{:?}", faults(&output));
    assert_eq!(output.json()["next"], remedy);

    // The same for a script of every lineage, and for hooks in cli.ini.
    install_with_cargo(with_hook(&service, &certbot, "/root/.cargo/bin/edgecert")).succeeds();
    certbot.write("renewal-hooks/deploy/edge", "#!/bin/sh\nedgecert\n", 0o755);
    assert_only_fault(
        &install_with_cargo(with_hook(&service, &certbot, "/bin/true")).exits_with(78),
        "fail hook: ",
        remedy,
    );
    fs::remove_file(certbot.path("renewal-hooks/deploy/edge")).unwrap();
    certbot.write("cli.ini", "deploy-hook = edgecert\n", 0o644);
    let output = install_with_cargo(with_hook(&service, &certbot, "/bin/true")).exits_with(78);
    assert_only_fault(&output, "fail hook: ", remedy);
}

#[test]
fn script_may_set_its_own_path() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    for (script, works) in [
        ("export PATH=/root/.cargo/bin:$PATH\nedgecert", true),
        ("PATH=\"${PATH}:/root/.cargo/bin\"\nedgecert", true),
        ("PATH=/root/.cargo/bin edgecert", true),
        (". /root/.cargo/env\nedgecert", true),
        (". /etc/no-such-file\nedgecert", true),
        ("PATH=$(getconf PATH):$EXTRA; edgecert", true),
        ("sh -c 'export PATH=/root/.cargo/bin; edgecert'", true),
        ("export PATH=/opt/bin:$PATH\nedgecert", false),
        ("edgecert\nexport PATH=/root/.cargo/bin:$PATH", false),
        ("(PATH=/root/.cargo/bin true); CARGO=/root/.cargo/bin edgecert", false),
    ] {
        certbot.write("renewal-hooks/deploy/edge", &format!("#!/bin/sh\n{script}\n"), 0o755);
        let hook = install_with_cargo(with_hook(&service, &certbot, "/bin/true"));
        hook.write_host_file(
            "root/.cargo/env",
            "case x in *) export PATH=\"/root/.cargo/bin:$PATH\";; esac\n",
            0o644,
        );
        let output = hook.run();
        assert_eq!(output.code, if works { 0 } else { 78 }, "{script}: {:?}", faults(&output));
    }
}

#[test]
fn path_of_the_unit_counts() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let path = "PATH=/usr/bin:/root/.cargo/bin";
    for (drop_in, works) in [
        (format!("[Service]\nEnvironment={path}\n"), true),
        (format!("[Service]\nEnvironment=A=1 \"{path}\"\n"), true),
        ("[Service]\nEnvironmentFile=-/etc/environment\n".into(), true),
        (
            "[Service]\nExecStart=\nExecStart=/bin/sh -c 'PATH=/usr/bin:/root/.cargo/bin certbot -q renew'\n"
                .into(),
            true,
        ),
        ("[Service]\nExecSearchPath=/usr/bin:/root/.cargo/bin\n".into(), true),
        ("[Service]\nExecSearchPath=/usr/bin\nExecSearchPath=/root/.cargo/bin\n".into(), true),
        ("[Service]\nExecSearchPath=/root/.cargo/bin\nExecSearchPath=\n".into(), false),
        ("[Service]\nExecSearchPath=/root/.cargo/bin\nEnvironment=PATH=/usr/bin\n".into(), false),
        (format!("[Service]\nEnvironment={path}\nEnvironment=\n"), false),
        ("[Service]\nEnvironment=PATH=/usr/bin\n".into(), false),
        ("[Service]\nEnvironmentFile=-/etc/no-such-file\n".into(), false),
    ] {
        let hook = install_with_cargo(with_hook(&service, &certbot, "edgecert"));
        hook.write_host_file(SERVICE, &drop_in, 0o644);
        hook.write_host_file("etc/environment", &format!("{path}\n"), 0o644);
        let output = hook.run();
        assert_eq!(output.code, if works { 0 } else { 78 }, "{drop_in}: {:?}", faults(&output));
    }
    let hook = install_with_cargo(with_hook(&service, &certbot, "edgecert"));
    let manager = format!("[Manager]\nDefaultEnvironment=LANG=C {path}\n");
    hook.write_host_file("etc/systemd/system.conf.d/path.conf", &manager, 0o644);
    hook.succeeds();
}

#[test]
fn crontab_needs_a_path() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let call = |file: &str, line: &str| {
        let hook = with_hook(&service, &certbot, "edgecert");
        hook.remove_host_file(TIMER);
        hook.write_host_file(file, &format!("{line}\n"), 0o644);
        hook
    };
    let line = "0 */12 * * * certbot -q renew";
    // cron's own search path lacks /usr/local/bin.
    let output = call(CRONTAB, line).exits_with(78);
    assert_only_fault(
        &output,
        "fail hook: ",
        &format!("add the line `{path}` at the top of the crontab (`crontab -e`)"),
    );
    assert!(
        output.stdout.contains(
            "crontabs/root does not find it in its PATH /usr/bin:/bin; it is /usr/local/bin/edgecert"
        )
    );
    call(CRONTAB, &format!("{path}\n{line}")).succeeds();
    call(CRONTAB, "0 */12 * * * sudo certbot -q renew").succeeds();
    call(CRONTAB, &format!("0 */12 * * * {path} certbot -q renew")).succeeds();
    call(CRONTAB, "0 */12 * * * systemctl start certbot").succeeds();
    let output = call("etc/cron.d/renew", "0 */12 * * * root certbot -q renew").exits_with(78);
    assert_only_fault(&output, "fail hook: ", "etc/cron.d/renew");
    let output = install_with_cargo(call(CRONTAB, line)).exits_with(78);
    assert_only_fault(&output, "fail hook: ", "/usr/local/bin/edgecert`, and add the line `PATH=");
}

#[test]
fn only_callers_that_apply_count() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    // Each of these would not find the program.
    let debian = "0 0 * * * root test -x /usr/bin/certbot -a \\! -d /run/systemd/system && certbot -q renew";
    let rows = [
        (debian, true),
        ("0 0 * * * root certbot certificates", true),
        ("0 0 * * * root certbot renew --dry-run", true),
        ("0 0 * * * root certbot renew --cert-name other.example", true),
        ("0 0 * * * root certbot renew --config-dir /srv/letsencrypt", true),
        ("0 0 * * * root acme.sh --cron", true),
        ("0 0 * * * root /opt/certbot renew", true),
        ("# 0 0 * * * root certbot renew", true),
        ("0 0 * * * root certbot renew --cert-name a.example", false),
        ("0 0 * * * root certbot renew --config-dir CERTBOT", false),
        ("0 0 * * * root /usr/bin/certbot renew", false),
    ];
    for (line, works) in rows {
        let hook = with_hook(&service, &certbot, "edgecert");
        let line = line.replace("CERTBOT", certbot.path("").to_str().unwrap());
        hook.write_host_file("etc/cron.d/certbot", &format!("{line}\n"), 0o644);
        let output = hook.run();
        assert_eq!(output.code, if works { 0 } else { 78 }, "{line}: {:?}", faults(&output));
    }
    // Without systemd, the roles are exchanged.
    let hook = with_hook(&service, &certbot, "edgecert");
    hook.write_host_file("etc/cron.d/certbot", &format!("{debian}\n"), 0o644);
    fs::remove_dir_all(hook.host_path("run/systemd")).unwrap();
    let faults = faults(&hook.exits_with(78));
    assert!(faults[0].contains("cron.d/certbot does not find it in its PATH /usr/bin:/bin"), "{faults:?}");
}

#[test]
fn other_timers_of_certbot_are_known() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let rows = [
        ("snap.certbot.renew", "/usr/bin/snap run --timer=\"00:00~24:00/2\" certbot.renew"),
        ("certbot-renew", "/usr/bin/certbot renew --noninteractive --no-random-sleep-on-renew $PRE_HOOK"),
        ("renew", "/bin/sh -c 'sleep 60; /usr/bin/certbot -q renew'"),
    ];
    for (name, command) in rows {
        let hook = with_hook(&service, &certbot, "edgecert");
        hook.write_host_file("usr/bin/snap", "", 0o755);
        hook.write_host_file("snap/bin/certbot", "", 0o755);
        hook.remove_host_file(TIMER);
        hook.write_host_file(&format!("etc/systemd/system/{name}.timer"), HOURLY, 0o644);
        let unit = format!("[Service]\nExecStart={command}\n");
        hook.write_host_file(&format!("etc/systemd/system/{name}.service"), &unit, 0o644);
        hook.write_host_file(&format!("etc/systemd/system/timers.target.wants/{name}.timer"), HOURLY, 0o644);
        let output = install_with_cargo(hook).exits_with(78);
        assert_only_fault(&output, "fail hook: ", "install -m 755");
        assert!(
            faults(&output)[0].contains(&format!("{name}.service does not find it")),
            "{:?}",
            faults(&output)
        );
    }
}

#[test]
fn idle_client_is_reported() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let call = || with_hook(&service, &certbot, "edgecert");
    let hook = call();
    hook.remove_host_file(TIMER);
    let output = hook.succeeds();
    assert_only_fault(
        &output,
        "warn renewal: no timer or crontab runs certbot, ",
        "enable --now certbot.timer",
    );
    let hook = call();
    hook.remove_host_file(TIMER);
    hook.remove_host_file("usr/lib/systemd/system/certbot.timer");
    let remedy = "`crontab -e` and add the line: 43 3,15 * * * /usr/bin/certbot -q renew";
    assert_only_fault(&hook.succeeds(), "warn renewal: no timer or crontab runs certbot, ", remedy);
}

#[test]
fn broken_caller_is_a_fault() {
    require_root();
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let call = |removed: &str| {
        let hook = with_hook(&service, &certbot, "edgecert");
        hook.remove_host_file(removed);
        hook
    };
    let units = "usr/lib/systemd/system";
    for (removed, reason, remedy) in [
        (
            format!("{units}/certbot.service"),
            "starts certbot.service, which is missing",
            "install certbot.service",
        ),
        (format!("{units}/certbot.timer"), "starts certbot.timer, which is missing", "install certbot.timer"),
        ("usr/bin/certbot".into(), "runs /usr/bin/certbot, which does not exist", "install /usr/bin/certbot"),
    ] {
        let output = call(&removed).exits_with(78);
        assert_only_fault(&output, "fail renewal: nothing renews ", remedy);
        assert!(faults(&output)[0].contains(reason), "{:?}", faults(&output));
    }
    let hook = call("usr/bin/certbot");
    hook.write_host_file("usr/bin/certbot", "", 0o644);
    assert_only_fault(&hook.exits_with(78), "fail renewal: ", "install /usr/bin/certbot");
    // A crontab without a daemon.
    let hook = call("usr/sbin/cron");
    hook.remove_host_file(TIMER);
    hook.write_host_file("etc/crontab", "0 0 * * * root certbot renew\n", 0o644);
    let output = hook.exits_with(78);
    assert_only_fault(&output, "fail renewal: ", "apt install cron");
    assert!(output.stdout.contains("because no cron daemon is installed"), "{}", output.stdout);
    // A timer without systemd.
    let hook = call(TIMER);
    hook.write_host_file(TIMER, HOURLY, 0o644);
    fs::remove_dir_all(hook.host_path("run/systemd")).unwrap();
    let faults = faults(&hook.exits_with(78));
    assert!(
        faults[0].contains("certbot.timer has no effect, because systemd is not running here"),
        "{faults:?}"
    );
    assert!(faults[1].starts_with("fail timer: ") && faults[1].contains("hooks/cron"), "{faults:?}");
}

#[test]
fn hook_on_the_command_line_counts() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    for (option, works) in [
        ("--deploy-hook edgecert", true),
        ("--deploy-hook='edgecert --json'", true),
        ("--renew-hook /usr/local/bin/edgecert", true),
        ("--deploy-hook /bin/true", false),
        ("--post-hook edgecert", false),
    ] {
        let hook = with_hook(&service, &certbot, "/bin/true");
        let unit = format!("[Service]\nExecStart=\nExecStart=/usr/bin/certbot -q renew {option}\n");
        hook.write_host_file(SERVICE, &unit, 0o644);
        let output = hook.run();
        assert_eq!(output.code, if works { 0 } else { 78 }, "{option}: {:?}", faults(&output));
    }
}

#[test]
fn acme_sh_keeps_the_path_of_its_user() {
    let (service, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let directory = super::hooks::acme_sh(home.path(), "Le_ReloadCmd='edgecert'\n");
    let call = |options: &str, path: &str| {
        fs::write(home.path().join("account.conf"), format!("USER_PATH='{path}'\n")).unwrap();
        let hook = doctor(&service, &format!("[[lineage]]\npath = '{}'\n", directory.display()));
        let options = options.replace("HOME", home.path().to_str().unwrap());
        let line = format!("7 3 * * * root \"/usr/local/bin\"/acme.sh --cron {options} > /dev/null\n");
        hook.write_host_file("etc/cron.d/acme", &line, 0o644);
        install_with_cargo(hook).run()
    };
    for options in ["", "--home \"HOME\"", "--home /usr/local/bin --config-home HOME"] {
        assert_eq!(faults(&call(options, "/usr/bin:/root/.cargo/bin")), [""; 0], "{options}");
        let output = call(options, "/usr/sbin:/bin");
        assert_only_fault(&output, "fail hook: ", "run `install -m 755 /root/.cargo/bin/edgecert");
        let path = "cron.d/acme does not find it in its PATH /usr/sbin:/bin:/usr/bin:/bin; ";
        assert!(faults(&output)[0].contains(path), "{:?}", faults(&output));
    }
    let found = faults(&call("--home /home/other/.acme.sh", "/usr/bin"));
    assert!(found[1].starts_with("warn renewal: no timer or crontab runs acme.sh, "), "{found:?}");
}

#[test]
fn hooks_of_lego_and_dehydrated_are_found() {
    let service = sandbox(&["a.example"]);
    let home = TempDir::new().unwrap();
    let path = home.path().join("certificates");
    let issued = crate::harness::test_ca().issue(&["a.example"]).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("a.example.crt"), issued.fullchain()).unwrap();
    fs::write(path.join("a.example.key"), issued.key).unwrap();
    fs::set_permissions(path.join("a.example.key"), Permissions::from_mode(0o600)).unwrap();
    let call = |options: &str| {
        let hook = doctor(&service, &format!("[[lineage]]\npath = '{}'\n", path.display()));
        hook.write_host_file("usr/bin/lego", "", 0o755);
        let lego = format!("5 5 * * * lego --path {} -d a.example renew {options}\n", home.path().display());
        hook.write_host_file(CRONTAB, &lego, 0o644);
        hook.run()
    };
    assert_only_fault(&call(""), "warn hook: cannot tell whether lego calls edgecert", "Attach it");
    assert_eq!(faults(&call("--renew-hook /usr/local/bin/edgecert")), [""; 0]);
    assert_only_fault(&call("--renew-hook edgecert"), "fail hook: ", "add the line `PATH=");

    // dehydrated's links differ from certbot's.
    let certs = home.path().join("certs/a.example");
    fs::create_dir_all(&certs).unwrap();
    for (name, from) in [("fullchain", "a.example.crt"), ("privkey", "a.example.key")] {
        fs::copy(path.join(from), certs.join(format!("{name}-1.pem"))).unwrap();
        std::os::unix::fs::symlink(format!("{name}-1.pem"), certs.join(format!("{name}.pem"))).unwrap();
    }
    let call = |hook_path: &str| {
        let hook = doctor(&service, &format!("[[lineage]]\npath = '{}'\n", certs.display()));
        hook.write_host_file("usr/bin/dehydrated", "", 0o755);
        hook.write_host_file("etc/dehydrated/config", &format!("HOOK={hook_path}\n"), 0o644);
        hook.write_host_file("etc/cron.d/dehydrated", "5 5 * * * root dehydrated --cron\n", 0o644);
        hook.run()
    };
    assert_eq!(faults(&call("/usr/local/bin/edgecert")), [""; 0]);
    assert_only_fault(&call("/opt/edgecert"), "fail hook: ", "install edgecert there");
    assert_only_fault(&call("\"\""), "warn hook: cannot tell whether dehydrated calls edgecert", "Attach it");
}
