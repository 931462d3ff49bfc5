//! Hints can be followed where they are read: each command that a hint names exists and takes the flags that it
//! shows, and a flag that is to be passed is one of the command that failed.

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Authority, Fault, Hook, Lineage, Sandbox, account, edgecert, fresh, record, test_ca};

/// A service with a site, a lineage, and how a run fails.
struct Scene {
    service: Sandbox,
    lineage: Lineage,
    state: TempDir,
    base_path: &'static str,
    arguments: Vec<&'static str>,
    variables: Vec<(&'static str, &'static str)>,
}

impl Scene {
    /// Another site may be bound to the record of the first one.
    fn new(certs: &[Value], other_site: Option<&str>) -> Self {
        let other = other_site.map(|domain| (11, domain, Some(5)));
        let sites: Vec<_> = [(10, "a.example", Some(5))].into_iter().chain(other).collect();
        let service = account(&sites, certs);
        let lineage = Lineage::issued_for(&["a.example", "new.example"]);
        let state = TempDir::new().unwrap();
        Self { service, lineage, state, base_path: "", arguments: Vec::new(), variables: Vec::new() }
    }

    fn plain() -> Self {
        Self::new(&[record(5, "a.example", "upload")], None)
    }

    fn of_staging() -> Self {
        let scene = Self::plain();
        let issuer = Authority::new("(STAGING) Pretend Pear X1").unwrap();
        scene.lineage.save(&issuer.issue(&["a.example"]).unwrap());
        scene
    }

    /// The edge serves a later certificate, which another host deployed.
    fn of_older() -> Self {
        let scene = Self::plain();
        let later = Lineage::issued_for(&["a.example"]);
        fresh(&scene.service, &later).succeeds();
        scene.lineage.save(&test_ca().issue_between(&["a.example"], [-5, 85]).unwrap());
        scene
    }

    fn call(&self) -> Hook {
        let url = format!("{}{}", self.service.endpoints().api, self.base_path);
        let hook = edgecert().against(&self.service).with_state(self.state.path());
        let hook = hook.env("EDGECERT_BASE_URL", url).env("EDGECERT_TIMEOUT", "2");
        self.variables.iter().fold(hook, |hook, (name, value)| hook.env(name, value))
    }

    /// A run by hand.
    fn by_hand(&self, command: &str) -> Hook {
        self.call().args([command, "--lineage"]).args([self.lineage.path()])
    }
}

/// The failures, by name.
fn scenes() -> Vec<(&'static str, Scene)> {
    let unavailable = Scene::plain();
    for path in ["GET /api/certs", "GET /api/me/sites", "GET /api/certs/5/download"] {
        unavailable.service.add_fault(Fault::status(path, 503).header("Retry-After", "3600").times(999));
    }
    let uncovering = Scene::plain();
    uncovering.lineage.renew(&["c.example"]);
    let stale = Scene::plain();
    stale.service.hold_pushes(true);
    vec![
        ("unavailable", unavailable),
        ("older", Scene::of_older()),
        ("shrink", Scene::new(&[record(5, "a.example", "upload")], Some("b.example"))),
        ("lets", Scene::new(&[record(5, "a.example", "lets")], None)),
        ("other record", Scene::new(&[record(5, "other.test", "upload")], None)),
        ("staging", Scene::of_staging()),
        ("uncovered", Scene { arguments: vec!["--domain", "blog.example"], ..Scene::plain() }),
        ("no such site", Scene { arguments: vec!["--domain", "new.example"], ..Scene::plain() }),
        ("no covered site", uncovering),
        ("key", Scene { variables: vec![("EDGECERT_API_KEY", "wrong")], ..Scene::plain() }),
        ("no key", Scene { variables: vec![("EDGECERT_API_KEY", "")], ..Scene::plain() }),
        ("base URL", Scene { base_path: "/v2", ..Scene::plain() }),
        ("path of the API", Scene { base_path: "/api/certs", ..Scene::plain() }),
        ("stale", Scene { arguments: vec!["--wait", "1"], ..stale }),
    ]
}

fn hints(stderr: &str) -> Vec<&str> {
    stderr.lines().filter_map(|line| line.strip_prefix("edgecert: hint: ")).collect()
}

/// The long help of a command, given by its words.
fn help(command: &[&str]) -> Option<String> {
    let output = edgecert().args(command).args(["--help"]).run();
    (output.code == 0).then_some(output.stdout)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
}

fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase())
}

/// The words of a call that may name a command.
fn names<'a>(call: &[&'a str]) -> Vec<&'a str> {
    call.iter().copied().take_while(|word| is_name(word)).take(2).collect()
}

/// Checks what a hint names; `command` is the one that failed.
#[track_caller]
fn assert_followable(command: &[&str], hint: &str) {
    let is_for_deploy = hint.contains("in the hook");
    for (at, part) in hint.split('`').enumerate() {
        let call: Vec<&str> = part.split(' ').collect();
        let named = match (at % 2, call.split_first()) {
            (1, Some((&"edgecert", rest))) => names(rest),
            (1, _) => continue,
            _ if is_for_deploy => vec!["deploy"],
            _ => command.to_vec(),
        };
        let known = help(&named).or_else(|| help(&named[..1]));
        let known = known.unwrap_or_else(|| panic!("{command:?}: `{part}` is no command: {hint}"));
        for flag in words(part).filter(|word| word.len() > 2 && word.starts_with("--")) {
            assert!(words(&known).any(|word| word == flag), "{command:?}: {named:?} has no {flag}: {hint}");
        }
    }
}

#[test]
fn hints_of_deployments_can_be_followed() {
    for (name, scene) in scenes() {
        let deploy = |hook: Hook| hook.args(&scene.arguments).run();
        let hook = || scene.call().called_by_certbot(&scene.lineage);
        // The first run is recorded, so that `sync` finds it.
        let runs = [
            (["deploy"], true, deploy(hook())),
            (["deploy"], false, deploy(hook().with_state("/dev/null/state"))),
            (["sync"], true, scene.call().args(["sync"]).run()),
            (["deploy"], true, deploy(scene.by_hand("deploy"))),
            (["plan"], false, deploy(scene.by_hand("plan"))),
        ];
        for (command, is_recorded, output) in runs {
            assert!(output.code != 0 || (name, command) == ("stale", ["plan"]), "{name}: {command:?}");
            for hint in hints(&output.stderr) {
                assert_followable(&command, hint);
                assert!(is_recorded || !hint.contains("edgecert sync"), "{name}: {command:?}: {hint}");
                assert!(!hint.contains("systemctl"), "{name}: {hint}");
            }
            let speaks_of_sending = output.stderr.contains("nothing was sent");
            assert!(command != ["plan"] || !speaks_of_sending, "{name}: {}", output.stderr);
        }
    }
}

#[test]
fn hints_of_other_commands_can_be_followed() {
    let of_sites = ["sites list", "sites get a.example", "sites update a.example --set remark=x"];
    let others = ["certs list", "certs download 5 --out x", "sites bind a.example 99", "status --forget x"];
    let failures = ["unavailable", "key", "no key", "base URL", "path of the API"];
    for (name, scene) in scenes().into_iter().filter(|(name, _)| failures.contains(name)) {
        for command in of_sites.iter().chain(&others) {
            let words: Vec<&str> = command.split(' ').collect();
            let output = scene.call().args(&words).run();
            assert_ne!(output.code, 0, "{name}: {command}");
            for hint in hints(&output.stderr) {
                assert_followable(&names(&words), hint);
                assert!(!hint.contains("edgecert sync"), "{name}: {command}: {hint}");
            }
        }
    }
}

#[test]
fn check_says_nothing_of_sending() {
    let scene = Scene::of_staging();
    let check = scene.by_hand("check").args(["--allow-untrusted", "--domain", "blog.example"]);
    let output = check.exits_with(65);
    assert!(!output.stderr.contains("sent"), "{}", output.stderr);
    let expected = "renew it with blog.example among its names, or omit --domain blog.example";
    assert_eq!(hints(&output.stderr), [expected]);
}

#[test]
fn sync_names_the_command_that_overrides() {
    let scene = Scene::of_older();
    scene.call().called_by_certbot(&scene.lineage).exits_with(65);
    let output = scene.call().args(["sync"]).exits_with(65);
    let command = format!("deploy --lineage {} --allow-older", scene.lineage.path().display());
    output.says(format!("run `edgecert {command}`"));
    scene.call().args(command.split(' ')).succeeds();
    scene.call().args(["sync"]).succeeds();
}

#[test]
fn piped_key_is_not_left_to_sync() {
    let (_, scene) = scenes().into_iter().find(|(name, _)| *name == "unavailable").unwrap();
    let [cert, key] = ["fullchain.pem", "privkey.pem"].map(|name| scene.lineage.file(name));
    let script = format!("\"$0\" \"$@\" --cert {} --key <(cat {})", cert.display(), key.display());
    let output = scene.call().under(&["bash", "-c", &script]).exits_with(75);
    assert_eq!(hints(&output.stderr), ["run the same command again later"]);
    scene.service.clear_faults();
    let output = scene.call().args(["sync"]).exits_with(66);
    assert_eq!(hints(&output.stderr), ["it was a pipe of an earlier run; run that command again"]);
}

#[test]
fn wrong_base_url_is_shown() {
    let hint = "check the base URL; it is the part before /api";
    let rows = [
        ("/v2", " at URL/v2 (404)"),
        ("/api", " at URL/api (404)"),
        ("/v2/api/certs/", " at URL/v2/api/certs (404)"),
    ];
    for (base_path, message) in rows {
        let scene = Scene { base_path, ..Scene::plain() };
        let list = scene.call().args(["sites", "list"]);
        for hook in [scene.by_hand("deploy"), scene.by_hand("plan"), list] {
            let stderr = hook.exits_with(69).stderr.replace(&scene.service.endpoints().api, "URL");
            assert!(stderr.contains(message) && stderr.contains(" (404)"), "{stderr}");
            assert!(stderr.contains(&format!("hint: {hint}")), "{stderr}");
        }
    }
}

#[test]
fn web_page_of_another_server_is_recognised() {
    let scene = Scene::plain();
    for path in ["GET /api/certs", "GET /api/me/sites"] {
        let page = "<!doctype html><title>Welcome</title>";
        scene.service.add_fault(Fault::status(path, 200).body(page).times(99));
    }
    // The last of four attempts must not begin right before the deadline.
    let output = scene.call().env("EDGECERT_TIMEOUT", "60").args(["sites", "list"]).exits_with(76);
    output.says("there is no /api/me/sites at http://").says(" (200)");
    assert_eq!(hints(&output.stderr), ["check the base URL; it is the part before /api"]);
}
