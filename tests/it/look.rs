//! Appearance of the outputs: captures on a terminal, on one without UTF-8, and in a pipe. Each is a file in `look/`,
//! without dates and durations; `UPDATE_EXPECT=1` rewrites them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use expect_test::{ExpectFile, expect_file};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    DAY, Hook, IssuedCert, Sandbox, account, at_once, edgecert, record_of, scrub_times, set_back, test_ca,
};

/// A host with lineages, and the service that it deploys to.
struct Scene {
    service: Sandbox,
    /// All directories are below it.
    root: TempDir,
}

fn issue(names: &[&str], days: [i64; 2]) -> IssuedCert {
    test_ca().issue_between(names, days).unwrap()
}

impl Scene {
    /// Sites with the record that each is bound to, and the certificates in these records.
    fn new(sites: &[(&str, Option<u64>)], records: &[(u64, &str, &IssuedCert)]) -> Self {
        let sites: Vec<_> = (10..).zip(sites).map(|(id, (domain, cert))| (id, *domain, *cert)).collect();
        let records: Vec<Value> =
            records.iter().map(|(id, domain, issued)| record_of(*id, domain, issued)).collect();
        let service = account(&sites, &records);
        let root = TempDir::new().unwrap();
        Self { service, root }
    }

    /// A shop and a blog, each with a certificate that expires soon.
    fn shop_and_blog() -> Self {
        let [shop, blog] = [&SHOP[..], &["blog.example.com"]].map(|names| issue(names, [-80, 10]));
        let sites = [(SHOP[0], Some(5)), (SHOP[1], Some(5)), ("blog.example.com", Some(6))];
        Self::new(&sites, &[(5, SHOP[0], &shop), (6, "blog.example.com", &blog)])
    }

    fn write(&self, lineage: &str, issued: &IssuedCert) {
        let directory = self.root.path().join(lineage);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("fullchain.pem"), issued.fullchain()).unwrap();
        fs::write(directory.join("privkey.pem"), &issued.key).unwrap();
        restrict(&directory.join("privkey.pem"), 0o600);
    }

    fn hook(&self, arguments: &[&str]) -> Hook {
        let hook = edgecert().against(&self.service).args(arguments).env("HOME", self.root.path());
        let mut hook = hook.with_state(self.root.path().join("state"));
        hook.command().current_dir(self.root.path());
        hook
    }

    fn deploy(&self, lineage: &str, issued: &IssuedCert) -> Hook {
        self.write(lineage, issued);
        self.hook(&["--lineage", lineage, "--wait", "2"])
    }

    /// Replaces what differs from run to run, by text of the same width where lines are wrapped at it.
    fn scrub(&self, text: &str) -> String {
        let endpoints = self.service.endpoints();
        let text = text
            .replace(&endpoints.edge, "192.0.2.1:44343")
            .replace(&endpoints.api, "http://192.0.2.1:44340");
        let text = text.replace(self.root.path().to_str().unwrap(), "/home/webmaster");
        scrub_times(&without_hashes(&text))
    }
}

/// Replaces hexadecimal digits of hashes by zeros. They may be truncated.
fn without_hashes(text: &str) -> String {
    let mut scrubbed = String::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_hash = digits.len() >= 7 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        scrubbed.push_str(&if is_hash { "0".repeat(digits.len()) } else { digits.to_owned() });
        scrubbed.push_str(&word[digits.len()..]);
    }
    scrubbed
}

/// Directory of a hook's host in captures, as wide as a temporary one.
const HOME: &str = "/tmp/.tmp000000";

const SHOP: [&str; 2] = ["shop.example.com", "www.shop.example.com"];

fn restrict(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Captures a run, each time in a new scene.
#[track_caller]
fn capture(file: &ExpectFile, prepare: impl Fn() -> (Scene, Hook) + Sync) {
    let captures = at_once(VIEWS, |view| {
        let (scene, hook) = prepare();
        shown(&scene, hook, view)
    });
    file.assert_eq(&captures.concat());
}

/// Captures a command that changes nothing.
#[track_caller]
fn capture_command(file: &ExpectFile, scene: &Scene, arguments: &[&str]) {
    let captures = at_once(VIEWS, |view| shown(scene, scene.hook(arguments), view));
    file.assert_eq(&captures.concat());
}

/// Titles, and the locale of a terminal; a pipe has none.
const VIEWS: [(&str, Option<&str>); 3] =
    [("terminal", Some("C.UTF-8")), ("terminal, LANG=C", Some("C")), ("piped", None)];

fn shown(scene: &Scene, hook: Hook, (title, terminal): (&str, Option<&str>)) -> String {
    let home = hook.home().to_str().unwrap().to_owned();
    let Some(locale) = terminal else {
        let output = hook.env("LANG", "C.UTF-8").run();
        assert!(output.stdout.is_ascii() && output.stderr.is_ascii(), "{}{}", output.stdout, output.stderr);
        let mut shown = format!("== {title}\n{}", scene.scrub(&output.stdout.replace(&home, HOME)));
        if !output.stderr.is_empty() {
            shown += "== piped, standard error\n";
            shown += &scene.scrub(&output.stderr);
        }
        return shown;
    };
    let shown = hook.env("TERM", "dumb").env("LANG", locale).shows_on_terminal(80).text;
    assert!(locale != "C" || shown.is_ascii(), "{shown}");
    format!("== {title}\n{}", scene.scrub(&shown.replace(&home, HOME)))
}

#[test]
fn deploy_that_succeeds() {
    capture(&expect_file!["look/deploy.txt"], || {
        let scene = Scene::shop_and_blog();
        let hook = scene.deploy("shop", &issue(&SHOP, [0, 90]));
        (scene, hook)
    });
}

#[test]
fn deploy_that_fails() {
    capture(&expect_file!["look/deploy-failed.txt"], || {
        let scene = Scene::shop_and_blog();
        scene.service.hold_pushes(true);
        let hook = scene.deploy("blog", &issue(&["blog.example.com"], [0, 90]));
        (scene, hook)
    });
}

#[test]
fn deploy_to_many_sites() {
    capture(&expect_file!["look/deploy-many.txt"], || {
        let names: Vec<String> = (1..=12).map(|number| format!("s{number:02}.example.com")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut sites: Vec<(&str, Option<u64>)> = names.iter().map(|name| (*name, Some(5))).collect();
        sites[11].1 = Some(6);
        let later = issue(&["s12.example.com"], [1, 91]);
        let scene = Scene::new(&sites, &[(5, names[0], &issue(&names, [-80, 10])), (6, names[11], &later)]);
        let hook = scene.deploy("many", &issue(&names, [-1, 89]));
        (scene, hook)
    });
}

/// Seven sites of one shop.
const SEVEN: [&str; 7] = [
    "a.example.com",
    "b.example.com",
    "c.example.com",
    "d.example.com",
    "e.example.com",
    "f.example.com",
    "g.example.com",
];

#[test]
fn deploy_that_fails_for_many_sites() {
    capture(&expect_file!["look/deploy-failed-many.txt"], || {
        let sites = SEVEN.map(|name| (name, Some(5)));
        let scene = Scene::new(&sites, &[(5, SEVEN[0], &issue(&SEVEN, [-80, 10]))]);
        scene.service.hold_pushes(true);
        let hook = scene.deploy("many", &issue(&SEVEN, [0, 90]));
        (scene, hook)
    });
}

#[test]
fn sync_that_fails_for_many_lineages() {
    capture(&expect_file!["look/sync-failed-many.txt"], || {
        let scene = Scene::new(&SEVEN.map(|name| (name, None)), &[]);
        for (name, lineage) in SEVEN.iter().zip(["a", "b", "c", "d", "e", "f", "g"]) {
            scene.deploy(lineage, &issue(&[name], [-30, 60])).succeeds();
            scene.write(lineage, &issue(&[name], [-20, -10]));
        }
        let hook = scene.hook(&["sync"]);
        (scene, hook)
    });
}

#[test]
fn json_has_every_site_that_failed() {
    let scene = Scene::new(&SEVEN.map(|name| (name, Some(5))), &[(5, SEVEN[0], &issue(&SEVEN, [-80, 10]))]);
    scene.service.hold_pushes(true);
    let output = scene.deploy("many", &issue(&SEVEN, [0, 90])).args(["--json"]).exits_with(75);
    let sites = output.sites().into_iter().map(|site| site.split_once(": ").unwrap().0.to_owned());
    assert_eq!(sites.collect::<Vec<_>>(), SEVEN);
}

#[test]
fn deploy_with_nothing_to_do() {
    capture(&expect_file!["look/deploy-nothing.txt"], || {
        let current = issue(&SHOP, [-20, 70]);
        let sites = [(SHOP[0], Some(5)), (SHOP[1], Some(5))];
        let scene = Scene::new(&sites, &[(5, SHOP[0], &current)]);
        let hook = scene.deploy("shop", &current);
        (scene, hook)
    });
}

#[test]
fn check_with_findings() {
    let scene = Scene::shop_and_blog();
    let expired = issue(&SHOP, [-100, -10]);
    scene.write("shop", &expired);
    // Without its intermediate.
    fs::write(scene.root.path().join("shop/fullchain.pem"), &expired.cert).unwrap();
    capture_command(&expect_file!["look/check.txt"], &scene, &["check", "--lineage", "shop"]);
}

#[test]
fn plan_with_every_step() {
    const NAMES: [&str; 5] = [
        "api.example.com",
        "blog.example.com",
        "cdn.example.com",
        "shop.example.com",
        "www.shop.example.com",
    ];
    let current = issue(&NAMES, [-10, 80]);
    let records = [
        (5, "shop.example.com", &current),
        (6, "blog.example.com", &issue(&["blog.example.com"], [-1, 89])),
        (7, "api.example.com", &issue(&["api.example.com"], [-80, 10])),
    ];
    let bound = [Some(7), Some(6), None, Some(5), Some(5)];
    let sites: Vec<_> = NAMES.into_iter().zip(bound).collect();
    let scene = Scene::new(&sites, &records);
    scene.write("shop", &current);
    capture_command(&expect_file!["look/plan.txt"], &scene, &["plan", "--lineage", "shop"]);
}

/// A host on which the shop was renewed, the blog is pending, and the certificate of the API has expired.
fn busy_host() -> Scene {
    let others = ["api.example.com", "blog.example.com", "docs.example.com"];
    let sites: Vec<_> = SHOP.into_iter().chain(others).map(|name| (name, None)).collect();
    let scene = Scene::new(&sites, &[]);
    let [api, blog, docs] = others.map(|name| [name]);
    for (lineage, names) in [("shop", &SHOP[..]), ("api", &api), ("docs", &docs), ("blog", &blog)] {
        scene.deploy(lineage, &issue(names, [-30, 60])).succeeds();
    }
    scene.service.hold_pushes(true);
    scene.deploy("blog", &issue(&["blog.example.com"], [0, 90])).exits_with(75);
    set_back(&scene.root.path().join("state"), DAY);
    scene.service.hold_pushes(false);
    scene.service.push_now();
    scene.write("shop", &issue(&SHOP, [-1, 89]));
    scene.write("api", &issue(&["api.example.com"], [-20, -10]));
    for lineage in ["shop", "api"] {
        let file = scene.root.path().join(lineage).join("fullchain.pem");
        let file = fs::File::options().append(true).open(file).unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        file.set_modified(written - Duration::from_secs(3 * 3600)).unwrap();
    }
    scene
}

#[test]
fn sync_with_every_result() {
    capture(&expect_file!["look/sync.txt"], || {
        let scene = busy_host();
        fs::remove_dir_all(scene.root.path().join("docs")).unwrap();
        let hook = scene.hook(&["sync"]);
        (scene, hook)
    });
}

#[test]
fn status_of_a_busy_host() {
    let scene = busy_host();
    capture_command(&expect_file!["look/status.txt"], &scene, &["status"]);
    capture_command(&expect_file!["look/status-wide.txt"], &scene, &["status", "--wide"]);
}

#[test]
fn sites_of_an_account() {
    let blog = issue(&["blog.example.com"], [-80, 10]);
    let sites = [(SHOP[0], None), ("blog.example.com", Some(6))];
    let scene = Scene::new(&sites, &[(6, "blog.example.com", &blog)]);
    capture_command(&expect_file!["look/sites-list.txt"], &scene, &["sites", "list"]);
}

#[test]
fn doctor_with_findings() {
    capture(&expect_file!["look/doctor.txt"], || {
        let scene = Scene::shop_and_blog();
        scene.deploy("shop", &issue(&SHOP, [0, 90])).succeeds();
        restrict(&scene.root.path().join("shop/privkey.pem"), 0o644);
        let hook = scene.hook(&["doctor"]).on_host();
        (scene, hook)
    });
}
