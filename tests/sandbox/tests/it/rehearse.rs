//! `edgecert-sandbox rehearse` with the real hook and with broken ones.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use edgecert_sandbox::{Authority, SCENARIOS};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{hook, program, run, send_signal};

fn rehearse(hook: &Path, args: &[&str]) -> Output {
    Command::new(program()).arg("rehearse").args(args).env_clear().env("EDGECERT_BIN", hook).output().unwrap()
}

/// Standard output followed by standard error.
fn text(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

/// A hook that runs this shell script, in which `$LIFE` is a pipe, and the directory that holds both.
fn script_hook(script: &str) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let (hook, pipe) = (dir.path().join("hook"), dir.path().join("life"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(&hook, format!("#!/bin/sh\nLIFE='{}'\n{script}\n", pipe.display())).unwrap();
    std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    (dir, hook)
}

/// Reads the pipe of a hook until every process that has it open is gone.
fn read_life(dir: &TempDir) -> JoinHandle<String> {
    let pipe = dir.path().join("life");
    std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap())
}

/// A successful rehearsal ends with the steps of the README.
#[test]
fn real_hook_passes_every_step() {
    let output = rehearse(&hook(), &[]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for expected in [
        "1. first certificate",
        "2. renewal",
        "3. unreliable service",
        "4. service outage",
        "still serves the old leaf",
        "edgecert sync",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.contains("\nall steps passed\n") && !text.contains("FAILED"), "{text}");
    assert!(!text.contains('\x1b'), "no colour without a terminal");
    assert!(text.is_ascii(), "no other characters without a UTF-8 locale: {text}");
    assert!(!text.contains("sandbox-key") && !text.contains("PRIVATE KEY"), "{text}");
    let (_, next) = text.split_once("\nwhat to do next").unwrap();
    let lines = next.lines().filter_map(|line| line.strip_prefix("  "));
    let commands: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    assert!(commands.len() > 5, "{next}");
    for command in commands {
        assert!(include_str!("../../../../README.md").contains(command), "{command}");
    }
}

#[test]
fn hook_output_stands_out_on_terminals() {
    let (_dir, hook) = script_hook("echo \"the hook's locale is $LC_CTYPE\"; exit 3");
    let on_terminal = |variables: &[&str]| {
        let (hook, program) = (hook.display(), program().display());
        let command = format!("env -i {} EDGECERT_BIN={hook} {program} rehearse", variables.join(" "));
        let output = run("script", "bsdutils", &["-qec", &command, "/dev/null"], "");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = on_terminal(&["TERM=xterm", "LANG=en_US.UTF-8"]);
    assert!(text.contains("\x1b[36m│\x1b[0m the hook's locale is C.UTF-8\r\n"), "{text}");
    assert!(text.contains("\x1b[2m1. first certificate: "), "{text}");
    assert!(text.contains("\x1b[2m✓ the edge serves no certificate yet\x1b[0m"), "{text}");
    assert!(text.contains("\x1b[31m✗\x1b[0m the hook exits 0; found exit code 3"), "{text}");
    for variables in [["TERM=dumb"], ["NO_COLOR=1"]] {
        let text = on_terminal(&variables);
        assert!(text.contains("   | the hook's locale is \r\n") && text.contains("ok the edge"), "{text}");
        assert!(text.is_ascii() && !text.contains('\x1b'), "{variables:?}: {text}");
    }
    let text = on_terminal(&["TERM=xterm", "LC_ALL=C", "LANG=en_US.UTF-8"]);
    assert!(text.is_ascii() && text.contains('\x1b'), "{text}");
}

/// Also a certificate issued today or just now, which the rehearsal's own must replace.
#[test]
fn own_lineage_can_be_rehearsed() {
    let authority = Authority::new("mine").unwrap();
    let names = ["mine.example"];
    let last_month = || authority.issue_between(&names, [-30, 60]);
    let today = || authority.issue_between(&names, [0, 90]);
    let just_now = || authority.issue_now(&names);
    for issue in [&last_month as &dyn Fn() -> _, &today, &just_now, &just_now] {
        let (dir, issued) = (TempDir::new().unwrap(), issue().unwrap());
        std::fs::write(dir.path().join("fullchain.pem"), issued.fullchain()).unwrap();
        std::fs::write(dir.path().join("privkey.pem"), &issued.key).unwrap();
        let output = rehearse(&hook(), &["--lineage", dir.path().to_str().unwrap()]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains("ok record 1001 is bound to mine.example only"), "{text}");
        let files = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, 2, "the lineage is not modified");
    }
}

/// With a certificate of the user's, which one scenario deploys.
#[test]
fn real_hook_passes_every_scenario() {
    let issued = Authority::new("mine").unwrap().issue(&["mine.example"]).unwrap();
    let (dir, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::fs::write(dir.path().join("fullchain.pem"), issued.fullchain()).unwrap();
    std::fs::write(dir.path().join("privkey.pem"), &issued.key).unwrap();
    let mut command = Command::new(program());
    command.args(["rehearse", "--scenario", "all", "--lineage"]).arg(dir.path());
    command.env_clear().env("EDGECERT_BIN", hook()).env("TMPDIR", temporary.path());
    let output = command.output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for scenario in &SCENARIOS {
        let page = text.split_once(&format!("\n{}: {}\n   why ", scenario.name, scenario.summary)).unwrap().1;
        let page = page.split_once(&format!("\n   shown: {}\n", scenario.shown)).expect(scenario.name).0;
        assert_eq!(page.contains("certificate  mine.example"), scenario.takes_lineage, "{page}");
        assert!(page.contains("\n2. ") && !page.contains("   shown: "), "{page}");
    }
    assert!(!text.contains("FAILED") && !text.contains("what to do next"), "{text}");
    assert!(!text.contains("sandbox-key") && !text.contains("PRIVATE KEY"), "{text}");
    assert_eq!(text.matches("\n   | (48 more lines)\n").count(), 2, "long outputs are shortened: {text}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "no file is left");
}

/// The scenarios after a failed one are played. A hook that only claims to have succeeded does not pass.
#[test]
fn failed_scenarios_are_named() {
    let real = hook();
    let (_dir, idle_sync) =
        script_hook(&format!("if [ \"$1\" = sync ]; then exit 0; fi; exec {} \"$@\"", real.display()));
    let output = rehearse(&idle_sync, &["--scenario", "all"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let failed = [
        ("first-and-renewal", 4),
        ("mass-renewal", 2),
        ("drift", 2),
        ("edge-left-behind", 3),
        ("revoked-key", 2),
        ("traffic-used-up", 3),
        ("two-lineages", 2),
        ("dead-timer", 2),
        ("empty-state", 1),
        ("power-cut", 2),
    ];
    let errors: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("edgecert-sandbox: error: ")).collect();
    let names = failed.map(|(name, _)| name).join(", ");
    let mut expected =
        failed.map(|(name, step)| format!("{name}: step {step} failed; later steps were skipped")).to_vec();
    expected.push(format!("{} of {} scenarios failed: {names}", failed.len(), SCENARIOS.len()));
    assert_eq!(errors, expected, "{text}");
    for scenario in &SCENARIOS {
        let is_shown = text.contains(&format!("   shown: {}\n", scenario.shown));
        assert_eq!(is_shown, scenario.name == "six-day-life", "{}: {text}", scenario.name);
    }
}

#[test]
fn list_names_every_scenario() {
    let output = rehearse(Path::new("/nowhere/edgecert"), &["--list"]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let text = text(&output);
    let lines: Vec<_> = text.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let listed: Vec<_> = lines.iter().map(|(name, summary)| (*name, summary.trim())).collect();
    let expected = SCENARIOS.iter().map(|scenario| (scenario.name, scenario.summary));
    assert_eq!(listed, expected.collect::<Vec<_>>());
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let unknown = "'drift-by' for '--scenario <NAME>'\n  [possible values: first-and-renewal, six-day-life, ";
    for (arguments, expected) in [
        (&["--scenario", "drift-by"][..], unknown),
        (&["--scenario", "drift", "--lineage", "."], "'--lineage <DIR>' cannot be used with this scenario"),
        (&["--list", "--scenario", "all"], "'--list' cannot be used with"),
    ] {
        let output = rehearse(&hook(), arguments);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(expected) && output.stdout.is_empty(), "{text}");
    }
}

#[test]
fn broken_hooks_fail_the_rehearsal() {
    for (script, expected) in [
        ("exit 0", "FAILED the service has one record; found 0"),
        ("echo stdout; echo stderr >&2; exit 3", "FAILED the hook exits 0; found exit code 3"),
        ("kill -9 $$", "FAILED the hook exits 0; found a signal"),
    ] {
        let (_dir, hook) = script_hook(script);
        let output = rehearse(&hook, &[]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("2. renewal"), "the remaining steps are skipped: {text}");
        assert_eq!(script.contains("stdout"), text.contains("\n   | stdout\n"), "{text}");
    }
}

/// The hook gets certbot's variables and its own settings, and nothing else of the caller's environment.
#[test]
fn hook_gets_certbots_environment() {
    let (_dir, hook) = script_hook(
        "echo \"argv $#\"; env | sort; readlink \"$RENEWED_LINEAGE/privkey.pem\"; stat -L -c %a \"$RENEWED_LINEAGE/privkey.pem\"; exit 1",
    );
    let text = text(&rehearse(&hook, &[]));
    let lines = [
        "argv 0",
        "EDGECERT_API_KEY=",
        "EDGECERT_BASE_URL=https://127.0.0.1:",
        "RENEWED_DOMAINS=shop.example *.shop.example",
        "../../archive/shop.example/privkey1.pem",
        "600",
    ];
    for line in lines {
        assert!(text.contains(&format!("\n   | {line}")), "{line}: {text}");
    }
    assert!(!text.contains("EDGECERT_BIN="), "{text}");
}

#[test]
fn missing_hook_is_named() {
    let output = rehearse(Path::new("/nowhere/edgecert"), &[]);
    let expected = "edgecert-sandbox: error: no hook at /nowhere/edgecert\nedgecert-sandbox: hint: run `cargo build --workspace`, or set EDGECERT_BIN to the path of the hook\n";
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(66), expected));
}

/// Starts two processes that hold the pipe `$LIFE` open and write to it if nothing kills them in time.
const HANG: &str =
    r#"exec 3> "$LIFE"; (sleep 20; echo survived >&3) & echo started >&3; sleep 20; echo survived >&3"#;

#[test]
fn hanging_hook_is_killed() {
    let real = hook();
    let real = real.display();
    for (script, step) in [
        (HANG.to_owned(), "1. first certificate"),
        // certbot, too, waits for the output of what the hook leaves behind.
        (format!("({HANG}) & exit 0"), "1. first certificate"),
        (format!("if [ -e $HOME/done ]; then {HANG}; fi; touch $HOME/done; exec {real}"), "2. renewal"),
    ] {
        let (dir, hook) = script_hook(&script);
        let life = read_life(&dir);
        let output = rehearse(&hook, &["--hook-timeout", "1"]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let failure = "FAILED the hook exits 0; found it still running after 1 second, and killed it";
        assert!(text.contains(failure) && text.contains(step), "{text}");
        assert_eq!(life.join().unwrap(), "started\n", "{text}");
    }
}

#[test]
fn endless_output_does_not_delay_the_end() {
    let (_dir, hook) = script_hook("yes endless; tr '\\0' x < /dev/zero");
    let output = rehearse(&hook, &["--hook-timeout", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("still running after 1 second"));
    assert!(!text(&output).contains("more lines"), "a failed hook's output is shown in full");
    assert!(output.stdout.len() < 4 << 20, "{} bytes", output.stdout.len());
}

#[test]
fn interrupted_rehearsal_leaves_nothing() {
    for (signal, code, arguments) in [
        (Signal::INT, 130, &[][..]),
        (Signal::TERM, 143, &[]),
        (Signal::HUP, 129, &[]),
        (Signal::INT, 130, &["--scenario", "all"]),
    ] {
        let (dir, hook) = script_hook(HANG);
        let temporary = TempDir::new().unwrap();
        let mut command = Command::new(program());
        command.arg("rehearse").args(arguments).env_clear();
        command.env("EDGECERT_BIN", &hook).env("TMPDIR", temporary.path());
        let rehearsal = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut life = BufReader::new(std::fs::File::open(dir.path().join("life")).unwrap());
        let mut text = String::new();
        life.read_line(&mut text).unwrap();
        assert_ne!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
        send_signal(rehearsal.id(), signal);
        let output = rehearsal.wait_with_output().unwrap();
        life.read_to_string(&mut text).unwrap();
        assert_eq!(text, "started\n", "{signal:?}: the hook's processes are gone");
        let left = std::fs::read_dir(temporary.path()).unwrap().count();
        assert_eq!((output.status.code(), left), (Some(code), 0), "{signal:?}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "edgecert-sandbox: error: interrupted; the hook and the sandbox were stopped\n");
    }
}

/// `nohup` protects a sandbox from the end of the terminal session.
#[test]
fn ignored_hangup_stays_ignored() {
    let (dir, hook) = script_hook(r#"exec 3> "$LIFE"; echo started >&3; kill -HUP $PPID; exit 3"#);
    let life = read_life(&dir);
    let script = format!("trap '' HUP; exec {} rehearse", program().display());
    let output = Command::new("sh").args(["-c", &script]).env("EDGECERT_BIN", hook).output().unwrap();
    assert_eq!((output.status.code(), life.join().unwrap().as_str()), (Some(1), "started\n"));
    assert!(text(&output).contains("found exit code 3"));
}
