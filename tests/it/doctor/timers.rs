//! `doctor` on timers: whether one runs `sync`.

use super::{Certbot, assert_only_fault, on_good_host};
use crate::harness::{require_root, sandbox};

/// The link that enables the timer.
const TIMER: &str = "etc/systemd/system/timers.target.wants/edgecert-sync.timer";

#[test]
fn missing_timer_has_a_remedy() {
    require_root();
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let hook = on_good_host(&service, &certbot);
    hook.remove_host_file(TIMER);
    let remedy = "run `systemctl enable --now edgecert-sync.timer`";
    assert_only_fault(&hook.exits_with(78), "fail timer: no timer runs edgecert sync", remedy);
}

#[test]
fn daily_timer_is_a_fault() {
    require_root();
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let hook = on_good_host(&service, &certbot);
    let drop_in = "[Timer]\nOnCalendar=\nOnCalendar=daily\n";
    hook.write_host_file("etc/systemd/system/edgecert-sync.timer.d/daily.conf", drop_in, 0o644);
    let output = hook.exits_with(78);
    assert_only_fault(&output, "fail timer: no timer runs edgecert sync", "systemctl enable");
    assert!(output.stdout.contains("timer does not run it more often than once a day"), "{}", output.stdout);
}

#[test]
fn only_working_crontab_lines_count() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    for (line, reason) in [
        ("17 * * * * root PROGRAM sync --splay 600", None),
        ("17 * * * * root test -x PROGRAM && flock /tmp/lock PROGRAM sync", None),
        ("17 * * * * root echo PROGRAM sync", Some("")),
        ("17 * * * * root PROGRAM status", Some("")),
        ("17 * * * * PROGRAM sync", Some("")),
        ("@reboot root PROGRAM sync", Some("crontab does not run it more often than once a day")),
        ("0 3 * * * root PROGRAM sync", Some("crontab does not run it more often than once a day")),
        ("17 * * * * root PROGRAM-not sync", Some("which does not exist or is not executable")),
        (
            "17 * * * * nobody PROGRAM sync",
            Some("crontab runs it as nobody, a user that cannot write to the state directory"),
        ),
        (
            "17 * * * * no-such-user PROGRAM sync",
            Some("crontab runs it as no-such-user, a user that does not exist"),
        ),
    ] {
        let hook = on_good_host(&service, &certbot);
        hook.remove_host_file(TIMER);
        let line = line.replace("PROGRAM", "/usr/local/bin/edgecert") + "\n";
        hook.write_host_file("etc/crontab", &line, 0o644);
        let output = hook.run();
        match reason {
            None => assert_eq!(output.code, 0, "{line}: {}", output.stdout),
            Some(reason) => {
                assert_only_fault(&output, "fail timer: no timer runs edgecert sync", "");
                assert!(output.stdout.contains(reason), "{line}: {}", output.stdout);
            }
        }
    }
}
