//! Timers on hosts made of a few files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use super::super::finding::DoctorFinding;
use super::*;
use crate::check::Status;
use crate::env::Env;

const PASSWD: &str =
    "root:x:0:0::/root:/bin/sh\nweb:x:33:33::/var/www:/bin/sh\nops:x:44:44::/home/ops:/bin/sh\n";
const WANTS: &str = "etc/systemd/system/timers.target.wants/edgecert-sync.timer";
const TIMER: &str = "lib/systemd/system/edgecert-sync.timer";
const SERVICE: &str = "lib/systemd/system/edgecert-sync.service";
const HOURLY: &str = "[Timer]\nOnCalendar=hourly\n";
const ONESHOT: &str = "[Service]\nType=oneshot\nExecStart=/usr/local/bin/edgecert sync\n";

/// A host with edgecert, its units, three users, and the state directory of root.
struct TestHost {
    root: tempfile::TempDir,
    env: Env,
    uid: u32,
}

impl TestHost {
    fn new() -> Self {
        let root = tempfile::TempDir::new().unwrap();
        let env =
            [("LOGNAME", "root"), ("HOME", root.path().join("root").to_str().unwrap())].into_iter().collect();
        let host = Self { root, env, uid: 0 };
        host.write("usr/local/bin/edgecert", "\u{7f}ELF", 0o755);
        host.write("usr/bin/flock", "\u{7f}ELF", 0o755);
        host.write("usr/sbin/cron", "\u{7f}ELF", 0o755);
        host.write("etc/passwd", PASSWD, 0o644);
        host.write("etc/group", "root:x:0:\nweb:x:33:\nops:x:44:\nadm:x:45:ops,web\n", 0o644);
        host.write("var/lib/edgecert/x.json", "{}", 0o600);
        host.set_mode("var/lib/edgecert", 0o700);
        host.write("etc/edgecert/api-key", "key\n", 0o600);
        host.write(TIMER, HOURLY, 0o644);
        host.write(SERVICE, ONESHOT, 0o644);
        host
    }

    /// A host with one more file; `-> TARGET` makes it a link.
    fn with(path: &str, text: &str) -> Self {
        let host = Self::new();
        host.add(path, text);
        host
    }

    /// A host whose timer is enabled, with one more file.
    fn with_timer(path: &str, text: &str) -> Self {
        let host = Self::with(WANTS, "-> /lib/systemd/system/edgecert-sync.timer");
        host.boot_with_systemd();
        host.add(path, text);
        host
    }

    fn boot_with_systemd(&self) {
        fs::create_dir_all(self.at("run/systemd/system")).unwrap();
    }

    fn add(&self, path: &str, text: &str) {
        match text.strip_prefix("-> ") {
            Some(target) => {
                let file = self.at(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                let _ = fs::remove_file(&file);
                symlink(target, file).unwrap();
            }
            None => self.write(path, text, if text.starts_with("#!") { 0o755 } else { 0o644 }),
        }
    }

    fn write(&self, path: &str, text: &str, mode: u32) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
        self.set_mode(path, mode);
    }

    fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), Permissions::from_mode(mode)).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn check(&self) -> DoctorFinding {
        self.check_with(&SyncFiles {
            state_dir: Some(self.at("var/lib/edgecert")),
            is_default: false,
            api_key_file: Some(self.at("etc/edgecert/api-key")),
        })
    }

    fn check_with(&self, files: &SyncFiles) -> DoctorFinding {
        let root = self.root.path().to_owned();
        let host = Host { root, uid: self.uid, program: "/usr/local/bin/edgecert".into(), env: &self.env };
        check(&host, files)
    }

    #[track_caller]
    fn assert_found(&self, expected: bool, label: &str) {
        let finding = self.check();
        assert_eq!(finding.status == Status::Ok, expected, "{label}: {}", finding.detail);
    }
}

#[test]
fn only_frequent_syncs_in_crontabs_count() {
    const PATH: &str = "PATH=/usr/local/bin:/usr/bin:/bin\n";
    let rows = [
        ("17 * * * * root edgecert sync --splay 600\n", true),
        ("17 * * * * root /usr/local/bin/edgecert --config /c sync > /dev/null 2>&1\n", true),
        ("@hourly root edgecert sync\n", true),
        ("0 3 * * * root edgecert sync\n5 15 * * * root edgecert sync\n", true),
        ("17 * * * * root flock -n /run/lock edgecert sync\n", true),
        ("17 * * * * root sh -c 'edgecert sync'\n", true),
        ("17 * * * * root EDGECERT_WAIT=5 nice -n 19 edgecert sync\n", true),
        ("17 * * * * root env A=1 chronic edgecert sync\n", true),
        ("17 * * * * root test -x /usr/local/bin/edgecert && edgecert sync || true\n", true),
        ("17 * * * * root [ -d /run/systemd/system ] || edgecert sync\n", true),
        ("17 * * * * root cd /tmp; edgecert sync | logger\n", true),
        ("17 * * * * root systemctl start edgecert-sync.service\n", true),
        ("17 * * * * web sudo edgecert sync\n", true),
        ("# 17 * * * * root edgecert sync\n", false),
        ("17 * * * * root echo edgecert sync\n", false),
        ("17 * * * * root : edgecert sync\n", false),
        ("17 * * * * root true # edgecert sync\n", false),
        ("17 * * * * root false && edgecert sync\n", false),
        ("17 * * * * root logger 'edgecert sync'\n", false),
        ("17 * * * * root test -x /usr/local/bin/edgecert\n", false),
        ("17 * * * * root edgecert status\n", false),
        ("17 * * * * root edgecert check sync\n", false),
        ("17 * * * * root edgecert sync --help\n", false),
        ("17 * * * * root edgecert sync --no-such-flag\n", false),
        ("17 * * * * root edgecert deploy\n", false),
        ("17 * * * * root edgecert-old sync\n", false),
        ("17 * * * * root /opt/edgecert sync\n", false),
        ("17 * * * * edgecert sync\n", false),
        ("17 * * * * nobody-here edgecert sync\n", false),
        ("@reboot root edgecert sync\n", false),
        ("@daily root edgecert sync\n", false),
        ("0 3 * * * root edgecert sync\n", false),
        ("0 * * * 1-5 root edgecert sync\n", false),
        ("0 * 1 * * root edgecert sync\n", false),
        ("99 * * * * root edgecert sync\n", false),
        ("17 * * * * root date +%F; edgecert sync\n", false),
    ];
    for (line, expected) in rows {
        for path in ["etc/crontab", "etc/cron.d/edgecert"] {
            TestHost::with(path, &format!("{PATH}{line}")).assert_found(expected, line);
        }
    }
}

#[test]
fn cron_reads_only_some_files() {
    let line = "17 * * * * root /usr/local/bin/edgecert sync\n";
    let rows = [
        ("etc/cron.d/edgecert.cron", line, false),
        ("etc/cron.d/edgecert~", line, false),
        ("etc/anacrontab", "1 5 edgecert /usr/local/bin/edgecert sync\n", false),
        // A user's crontab has no column for the user.
        ("var/spool/cron/crontabs/root", "17 * * * * /usr/local/bin/edgecert sync\n", true),
        ("var/spool/cron/root", "17 * * * * /usr/local/bin/edgecert sync\n", true),
        ("var/spool/cron/crontabs/root", line, false),
        // /usr/local/bin is not in cron's own search path.
        ("var/spool/cron/crontabs/root", "17 * * * * edgecert sync\n", false),
        ("etc/cron.hourly/edgecert", "#!/bin/sh\nedgecert sync\n", true),
        ("etc/cron.hourly/edgecert", "#!/bin/sh\n# edgecert sync\n", false),
        ("etc/cron.hourly/edgecert", "#!/bin/sh\nexit 0\nedgecert sync\n", false),
        ("etc/cron.hourly/edgecert", "edgecert sync\n", false),
        ("etc/cron.hourly/edgecert.sh", "#!/bin/sh\nedgecert sync\n", false),
        ("etc/cron.daily/edgecert", "#!/bin/sh\nedgecert sync\n", false),
        ("etc/periodic/15min/edgecert", "#!/bin/sh\nedgecert sync\n", true),
    ];
    for (path, text, expected) in rows {
        TestHost::with(path, text).assert_found(expected, &format!("{path}: {text}"));
    }
    let host = TestHost::with("etc/cron.d/edgecert", line);
    host.set_mode("etc/cron.d/edgecert", 0o664);
    host.assert_found(false, "cron refuses a file that others can write");
}

#[test]
fn called_scripts_are_read() {
    let rows = [
        ("opt/sync", "#!/bin/sh\nset -e\nexec edgecert sync \"$@\"\n", true),
        ("opt/sync", "#!/bin/sh\n. /opt/more\n", true),
        ("opt/sync", "#!/bin/sh\nout=$(edgecert sync 2>&1) || echo \"$out\"\n", true),
        ("opt/sync", "#!/usr/bin/python3\nsubprocess.run([\"edgecert\", \"sync\"])\n", true),
        ("opt/sync", "#!/bin/sh\necho edgecert sync\n", false),
        ("opt/sync", "#!/bin/sh\ncat <<E\nedgecert sync\nE\n", false),
        ("opt/sync", "#!/usr/bin/python3\n# edgecert sync\n", false),
        ("opt/sync", "edgecert sync\n", false),
        ("opt/sync", "-> /usr/local/bin/edgecert", false),
    ];
    for (path, text, expected) in rows {
        let host = TestHost::with(path, text);
        host.add("opt/more", "edgecert sync\n");
        let line = "PATH=/usr/local/bin\n17 * * * * root /opt/sync\n";
        host.add("etc/crontab", line);
        host.assert_found(expected, text);
    }
}

#[test]
fn enabled_units_count_with_their_drop_ins() {
    let rows = [
        ("etc/motd", "", true),
        (TIMER, "-> /dev/null", false),
        (TIMER, "", false),
        (TIMER, "[Timer]\nOnCalendar=daily\n", false),
        (TIMER, "[Timer]\nOnCalendar=03:00\nOnCalendar=15:00\n", true),
        (TIMER, "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h\n", true),
        (TIMER, "[Timer]\nOnUnitActiveSec=1h\n", false),
        (TIMER, "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1d\n", false),
        (TIMER, "[Timer]\nOnBootSec=5min\n", false),
        (TIMER, "[Timer]\nOnCalendar=hourly\nUnit=other.service\n", false),
        (SERVICE, "-> /dev/null", false),
        (SERVICE, "[Service]\nExecStart=/bin/echo edgecert sync\n", false),
        (SERVICE, "[Service]\nExecStart=/usr/local/bin/edgecert status\n", false),
        (SERVICE, "[Service]\nExecStart=/opt/edgecert sync\n", false),
        (SERVICE, "[Service]\nExecStart=-/usr/local/bin/edgecert \\\n  sync\n", true),
        (SERVICE, "[Service]\nExecStart=edgecert sync\n", true),
        (SERVICE, "[Service]\nExecStart=/bin/sh -c 'sleep 5; edgecert sync'\n", true),
        (SERVICE, "[Service]\nUser=root\nExecStart=/usr/local/bin/edgecert sync\n", true),
        (SERVICE, "[Service]\nUser=web\nExecStart=/usr/local/bin/edgecert sync\n", false),
        (SERVICE, "[Service]\nUser=web\nExecStart=+/usr/local/bin/edgecert sync\n", true),
        (
            "etc/systemd/system/edgecert-sync.service.d/x.conf",
            "[Service]\nExecStart=\nExecStart=/bin/true\n",
            false,
        ),
        (
            "etc/systemd/system/edgecert-sync.service.d/x.conf",
            "[Service]\nExecStart=\nExecStart=/usr/local/bin/edgecert sync --splay 5\n",
            true,
        ),
        ("etc/systemd/system/edgecert-sync.service.d/x", "[Service]\nExecStart=\n", true),
        ("etc/systemd/system/edgecert-sync.service.d/x.conf", "[Service]\nUser=web\n", false),
        (
            "etc/systemd/system/edgecert-sync.timer.d/x.conf",
            "[Timer]\nOnCalendar=\nOnCalendar=daily\n",
            false,
        ),
        ("etc/systemd/system/edgecert-sync.timer", "[Timer]\nOnCalendar=weekly\n", false),
        ("etc/systemd/system/edgecert-sync.service", "[Service]\nExecStart=/bin/true\n", false),
    ];
    for (path, text, expected) in rows {
        TestHost::with_timer(path, text).assert_found(expected, &format!("{path}: {text}"));
    }
}

#[test]
fn units_need_each_other_and_a_link() {
    TestHost::new().assert_found(false, "not enabled");
    for missing in [TIMER, SERVICE] {
        let host = TestHost::with_timer("etc/motd", "");
        fs::remove_file(host.at(missing)).unwrap();
        host.assert_found(false, missing);
    }
    // Any timer may start the service, and the user's own ones count, too.
    let host = TestHost::with("etc/systemd/system/timers.target.wants/mine.timer", "-> ../mine.timer");
    host.boot_with_systemd();
    host.add("etc/systemd/system/mine.timer", "[Timer]\nOnCalendar=*:0/30\nUnit=edgecert-sync.service\n");
    host.assert_found(true, "another timer");
    let host = TestHost::with("root/.config/systemd/user/timers.target.wants/mine.timer", "-> ../mine.timer");
    host.boot_with_systemd();
    host.add("root/.config/systemd/user/mine.timer", HOURLY);
    host.add("root/.config/systemd/user/mine.service", ONESHOT);
    host.assert_found(true, "a timer of the user");
}

#[test]
fn user_needs_state_and_key() {
    let line = |user: &str| format!("17 * * * * {user} /usr/local/bin/edgecert sync\n");
    let at = |user: &str| TestHost::with("etc/crontab", &line(user));
    at("root").assert_found(true, "root");
    let host = at("web");
    host.assert_found(false, "another user");
    assert!(
        host.check()
            .detail
            .contains("crontab runs it as web, a user that cannot write to the state directory /"),
        "{}",
        host.check().detail
    );
    // Only root can give files away.
    if chown(host.at("var/lib/edgecert"), Some(33), Some(33)).is_ok() {
        assert!(
            host.check().detail.contains("a user that cannot read the API key file /"),
            "{}",
            host.check().detail
        );
        chown(host.at("etc/edgecert/api-key"), None, Some(45)).unwrap();
        host.set_mode("etc/edgecert/api-key", 0o640);
        host.assert_found(true, "owner of the directory, and in the group of the key");
        at("ops").assert_found(false, "a third user");
    }
}

#[test]
fn default_state_directory_depends_on_the_user() {
    let mut host = TestHost::with("etc/crontab", "17 * * * * root /usr/local/bin/edgecert sync\n");
    host.uid = 44;
    let own = host.at("home/ops/.local/state/edgecert");
    fs::create_dir_all(&own).unwrap();
    let files = |is_default| SyncFiles { state_dir: Some(own.clone()), is_default, api_key_file: None };
    let finding = host.check_with(&files(true));
    assert!(
        finding
            .detail
            .contains("runs it as root, a user that has the state directory /var/lib/edgecert instead of /"),
        "{}",
        finding.detail
    );
    assert_eq!(host.check_with(&files(false)).status, Status::Ok, "configured for all users");
    for setting in ["--state-dir", "EDGECERT_STATE_DIR"] {
        let command = match setting {
            "--state-dir" => format!("/usr/local/bin/edgecert sync --state-dir {}", own.display()),
            _ => format!("EDGECERT_STATE_DIR={} /usr/local/bin/edgecert sync", own.display()),
        };
        host.add("etc/crontab", &format!("17 * * * * root {command}\n"));
        assert_eq!(host.check_with(&files(true)).status, Status::Ok, "{setting}");
    }
}

#[test]
fn remedy_fits_its_place() {
    let remedy = |host: &TestHost| host.check().remedy.unwrap();
    let crontab = "run `crontab -e` and add the line: 17 * * * * /usr/local/bin/edgecert sync --splay 600";
    let mut host = TestHost::new();
    let cron = "run `install -m 644 hooks/cron/edgecert-sync /etc/cron.d/edgecert-sync` in /usr/share/edgecert or the source directory";
    assert_eq!(remedy(&host), cron);
    host.boot_with_systemd();
    assert_eq!(remedy(&host), "run `systemctl enable --now edgecert-sync.timer`");
    fs::remove_file(host.at(TIMER)).unwrap();
    let units = remedy(&host);
    assert!(units.starts_with("run `install -m 644 hooks/systemd/edgecert-sync.service hooks/systemd/edgecert-sync.timer /etc/systemd/system/ && systemctl daemon-reload && systemctl enable"), "{units}");
    host.uid = 33;
    assert_eq!(remedy(&host), crontab);
    fs::remove_file(host.at("usr/sbin/cron")).unwrap();
    assert_eq!(remedy(&host), format!("install cron (`apt install cron`), {crontab}"));
}

#[test]
fn suggested_timers_work() {
    let line = "17 * * * * /usr/local/bin/edgecert sync --splay 600";
    TestHost::with("var/spool/cron/crontabs/root", &format!("{line}\n")).assert_found(true, line);
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks");
    let read = |path: &str| fs::read_to_string(installed.join(path)).unwrap();
    TestHost::with("etc/cron.d/edgecert-sync", &read("cron/edgecert-sync")).assert_found(true, "hooks/cron");
    let host = TestHost::with_timer(TIMER, &read("systemd/edgecert-sync.timer"));
    host.add(SERVICE, &read("systemd/edgecert-sync.service"));
    host.assert_found(true, "hooks/systemd");
}

/// A change of a host with a timer, and the beginning of the reason and the remedy that follow from it.
#[track_caller]
fn assert_broken(host: &TestHost, reason: &str, remedy: &str) {
    let finding = host.check();
    assert_eq!(finding.status, Status::Fail);
    assert!(finding.detail.contains(reason), "{}", finding.detail);
    assert!(finding.remedy.as_deref().unwrap().contains(remedy), "{:?}", finding.remedy);
}

#[test]
fn missing_parts_of_timers_are_named() {
    let remove = |host: &TestHost, path: &str| fs::remove_file(host.at(path)).unwrap();
    let host = TestHost::with_timer("etc/motd", "");
    remove(&host, SERVICE);
    assert_broken(
        &host,
        "edgecert-sync.timer starts edgecert-sync.service, which is missing",
        "install -m 644",
    );
    let host = TestHost::with_timer("etc/motd", "");
    remove(&host, TIMER);
    assert_broken(&host, "starts edgecert-sync.timer, which is missing", "hooks/systemd/edgecert-sync.timer");
    let host = TestHost::with_timer("root/.cargo/bin/edgecert", "#!/bin/sh\n");
    remove(&host, "usr/local/bin/edgecert");
    let mut host = TestHost { env: env_with_path(&host, "/usr/bin:/root/.cargo/bin"), ..host };
    let install = "run `install -m 755 /root/.cargo/bin/edgecert /usr/local/bin/edgecert`";
    assert_broken(&host, "runs /usr/local/bin/edgecert, which does not exist", install);
    host.uid = 33;
    assert_broken(&host, "runs /usr/local/bin/edgecert, which does not exist", install);
    let host = TestHost::with(WANTS, "-> /lib/systemd/system/edgecert-sync.timer");
    assert_broken(&host, "because systemd is not running here", "hooks/cron/edgecert-sync");
    let host = TestHost::with("etc/crontab", "17 * * * * root /usr/local/bin/edgecert sync\n");
    remove(&host, "usr/sbin/cron");
    assert_broken(&host, "because no cron daemon is installed", "apt install cron");
    host.add("lib/systemd/system-generators/systemd-crontab-generator", "#!/bin/sh\n");
    host.boot_with_systemd();
    host.assert_found(true, "systemd-cron");
}

#[test]
fn crontab_needs_a_last_line_feed() {
    let line = "17 * * * * root /usr/local/bin/edgecert sync";
    for end in ["\n", "\n# comment", "\n  "] {
        TestHost::with("etc/crontab", &format!("{line}{end}")).assert_found(true, end);
    }
    for text in [line.to_owned(), format!("{line}\n0 0 * * * root true")] {
        let host = TestHost::with("etc/crontab", &text);
        assert_broken(&host, "crontab does not end with a newline, so cron ignores it", "add a newline");
        // busybox reads it.
        host.add("etc/crontabs/web", "");
        host.assert_found(true, "busybox");
    }
}

fn env_with_path(host: &TestHost, path: &str) -> Env {
    let home = host.root.path().join("root");
    [("LOGNAME", "root"), ("HOME", home.to_str().unwrap()), ("PATH", path)].into_iter().collect()
}

#[test]
fn jobs_for_another_init_are_left_out() {
    let rows = [
        ("test -x /usr/bin/env -a \\! -d /run/systemd/system && edgecert sync", [true, false]),
        ("[ ! -d /run/systemd/system ] && edgecert sync", [true, false]),
        ("[ -d /run/systemd/system ] || edgecert sync", [true, false]),
        ("test -d /run/systemd/system && edgecert sync", [false, true]),
    ];
    for (command, [without, with]) in rows {
        let line = format!("PATH=/usr/local/bin\n17 * * * * root {command}\n");
        let host = TestHost::with("etc/crontab", &line);
        host.assert_found(without, command);
        host.boot_with_systemd();
        host.assert_found(with, command);
    }
}
