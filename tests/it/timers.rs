//! The systemd units and the cron file for `sync`: they are valid, call an existing command, and forbid nothing that a
//! run needs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::harness::{edgecert, fresh, require, sandbox, sandbox_and_lineage, system_calls};
use crate::tidy::{read, root};

const SERVICE: &str = "hooks/systemd/edgecert-sync.service";
const TIMER: &str = "hooks/systemd/edgecert-sync.timer";
const CRON: &str = "hooks/cron/edgecert-sync";
/// systemd searches these directories, too, for a program that is named without a path.
const INSTALLED: [&str; 2] = ["/usr/local/bin", "/usr/bin"];

/// The values of a key in the service unit, one per line that sets it.
fn unit_values(key: &str) -> Vec<String> {
    let service = read(SERVICE);
    let lines =
        service.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned);
    lines.collect()
}

fn systemd(program: &str, arguments: &[&str]) -> Output {
    require(program, "systemd");
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    command.output().unwrap()
}

/// Copies the units to a temporary directory, with a program that exists.
fn units() -> TempDir {
    let directory = TempDir::new().unwrap();
    for name in [SERVICE, TIMER] {
        let file = directory.path().join(Path::new(name).file_name().unwrap());
        fs::write(file, read(name).replace("=edgecert ", "=/bin/true ")).unwrap();
    }
    directory
}

#[test]
fn systemd_verifies_units_silently() {
    let directory = units();
    // Services require it; the units of the host are hidden from tests.
    fs::write(directory.path().join("sysinit.target"), "[Unit]\n").unwrap();
    for name in ["edgecert-sync.service", "edgecert-sync.timer"] {
        let unit = directory.path().join(name);
        let output = systemd("systemd-analyze", &["verify", "--man=no", unit.to_str().unwrap()]);
        let printed = [output.stdout, output.stderr].concat();
        assert!(output.status.success() && printed.is_empty(), "{}", String::from_utf8_lossy(&printed));
    }
}

#[test]
fn unit_exposure_stays_low() {
    let unit = units().keep().join("edgecert-sync.service");
    let unit_text = unit.to_str().unwrap();
    // The threshold is in tenths. What remains is network access, root, and readable directories.
    let arguments = ["security", "--offline=true", "--threshold=18", "--no-pager", unit_text];
    let output = systemd("systemd-analyze", &arguments);
    fs::remove_dir_all(unit.parent().unwrap()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Expands a system call set of systemd, recursively.
fn expand(set: &str) -> BTreeSet<String> {
    if !set.starts_with('@') {
        return [set.to_owned()].into();
    }
    let output = systemd("systemd-analyze", &["syscall-filter", "--no-pager", set]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    words.flat_map(expand).collect()
}

#[test]
fn unit_permits_needed_system_calls() {
    let mut allowed = BTreeSet::new();
    for words in unit_values("SystemCallFilter") {
        match words.strip_prefix('~') {
            None => allowed.extend(words.split(' ').flat_map(expand)),
            Some(words) => {
                let forbidden: BTreeSet<String> = words.split(' ').flat_map(expand).collect();
                allowed.retain(|call| !forbidden.contains(call));
            }
        }
    }
    assert!(allowed.len() > 200 && !allowed.contains("mount"), "{allowed:?}");
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let trace = lineage.file("trace");
    let wrapper = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap()];
    // A host name, so that the trace includes name resolution.
    let url = service.endpoints().api.replace("127.0.0.1", "localhost");
    let state = TempDir::new().unwrap();
    let call = || {
        let hook = edgecert().against(&service).env("EDGECERT_BASE_URL", &url);
        hook.with_state(state.path())
    };
    call().called_by_certbot(&lineage).args(["--wait", "0"]).succeeds();
    lineage.renew(&["a.example"]);
    let output = call().args(["sync"]).under(&wrapper).succeeds();
    assert!(output.shown().ends_with("1 lineage: 1 deployed (TIME)\n"), "{}", output.stdout);
    let used = system_calls(&lineage.read("trace"));
    // Name resolution takes a thread.
    assert!(used.contains("clone3") || used.contains("clone"), "{used:?}");
    let missing: Vec<_> = used.difference(&allowed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn unit_passes_credential_and_state_directory() {
    assert_eq!(unit_values("LoadCredential"), ["edgecert-api-key:/etc/edgecert/api-key"]);
    assert_eq!(unit_values("StateDirectory"), ["edgecert"]);
    assert_eq!(unit_values("StateDirectoryMode"), ["0700"]);
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let credentials = TempDir::new().unwrap();
    fs::write(credentials.path().join("edgecert-api-key"), &service.endpoints().api_key).unwrap();
    let state = TempDir::new().unwrap();
    let hook = fresh(&service, &lineage).without_env("EDGECERT_API_KEY");
    let hook = hook.without_env("EDGECERT_STATE_DIR").env("STATE_DIRECTORY", state.path());
    hook.env("CREDENTIALS_DIRECTORY", credentials.path()).succeeds();
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 3, "a state file, its lock, and `sites`");
}

#[test]
fn unit_starts_existing_command() {
    let start = unit_values("ExecStart");
    let [line] = start.as_slice() else { panic!("expected one ExecStart: {start:?}") };
    let (program, arguments) = line.split_once(' ').unwrap();
    assert_eq!(program, "edgecert");
    let service = sandbox(&[]);
    edgecert().against(&service).args(arguments.split(' ')).succeeds();
}

/// The only job of the cron file: its five time fields, the user and the command.
fn cron_job() -> ([String; 5], String, String) {
    let file = read(CRON);
    assert!(file.ends_with('\n'), "cron ignores a last line without a line feed");
    let is_job = |line: &&str| {
        let is_setting =
            line.split_once('=').is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_uppercase()));
        !line.starts_with('#') && !is_setting && !line.is_empty()
    };
    let jobs: Vec<&str> = file.lines().filter(is_job).collect();
    let [job] = jobs.as_slice() else { panic!("expected one job: {jobs:?}") };
    let mut words = job.splitn(7, ' ').map(str::to_owned);
    let time = std::array::from_fn(|_| words.next().unwrap());
    (time, words.next().unwrap(), words.next().unwrap())
}

#[test]
fn cron_job_runs_existing_command() {
    let ([minute, hour, rest @ ..], user, command) = cron_job();
    // Not at the full hour.
    assert!(minute.parse::<u8>().is_ok_and(|minute| minute < 60 && minute > 0), "{minute}");
    assert_eq!((hour.as_str(), rest, user.as_str()), ("*", ["*"; 3].map(str::to_owned), "root"));
    assert!(!command.contains('%'), "cron treats % as a line feed");
    let mode = fs::metadata(root().join(CRON)).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "cron needs no execute permission; the README installs it with mode 644");
    let path = read(CRON).lines().find_map(|line| line.strip_prefix("PATH=").map(str::to_owned)).unwrap();
    assert!(INSTALLED.iter().all(|wanted| path.split(':').any(|directory| directory == *wanted)), "{path}");

    // A splay of up to half an hour is too long for a test.
    let without_splay = command.replace("--splay 1800", "--splay 0");
    assert_ne!(without_splay, command);
    let service = sandbox(&[]);
    let mut hook = edgecert().against(&service);
    let directory = TempDir::new().unwrap();
    std::os::unix::fs::symlink(hook.command().get_program(), directory.path().join("edgecert")).unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &without_splay]).env_clear();
    let variables: Vec<_> =
        hook.command().get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
    let output = shell.envs(variables).env("PATH", directory.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(output.stdout.is_empty(), "cron mails any output");
}

/// The lines of the README's shell blocks that contain this text.
fn readme_commands(text: &str) -> Vec<String> {
    let readme = read("README.md");
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter(|line| line.contains(text)).map(str::to_owned).collect()
}

#[test]
fn readme_commands_install_and_enable_timer() {
    let system = TempDir::new().unwrap();
    let at = |path: &str| -> PathBuf { system.path().join(path) };
    for directory in ["etc/systemd/system", "etc/cron.d"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    let etc = at("etc").to_str().unwrap().to_owned();
    let installs = readme_commands("install -m 644 hooks/");
    assert_eq!(installs.len(), 2, "{installs:?}");
    // `--now` would start the timer, which is impossible with `--root`.
    let enable = format!("systemctl --root={} enable", system.path().display());
    for command in &installs {
        let rewritten = command.replace("/etc", &etc).replace("systemctl enable --now", &enable);
        let output = Command::new("sh").args(["-c", &rewritten]).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{rewritten}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(at("etc/systemd/system/edgecert-sync.service").exists());
    assert!(at("etc/cron.d/edgecert-sync").exists());
    assert!(at("etc/systemd/system/timers.target.wants/edgecert-sync.timer").is_symlink());
    // A package has the units already.
    let [package, clone] = readme_commands("systemctl enable").try_into().unwrap();
    assert!(clone.starts_with("install ") && clone.ends_with(&format!(" && {package}")), "{clone}");
}
