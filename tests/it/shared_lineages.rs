//! Two hosts with one lineage: each has its own files and its own state, and both deploy to the same site.

use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::harness::{Hook, Lineage, Sandbox, configured, deploy, sandbox, sync, upload_count};

const NAMES: [&str; 1] = ["a.example"];
const INTERLEAVINGS: u64 = 100;
const STEPS: usize = 10;

/// A host, and which renewal its files hold. A later renewal has a higher number.
struct Host {
    state: TempDir,
    lineage: Lineage,
    renewal: i64,
}

impl Host {
    fn deploy(&self, service: &Sandbox) -> Hook {
        deploy(service, &self.lineage, self.state.path())
    }

    fn sync(&self, service: &Sandbox) -> Hook {
        configured(sync(service, self.state.path()), &[&self.lineage])
    }
}

struct Hosts {
    service: Sandbox,
    both: [Host; 2],
    newest: i64,
    /// Every renewal, as the file that the service stores.
    chains: Vec<String>,
}

impl Hosts {
    /// Two hosts with copies of one lineage.
    fn new() -> Self {
        let first = Lineage::issued_days_ago(80, "lineage", &NAMES);
        let second = first.duplicate();
        let chains = vec![first.read("fullchain.pem")];
        let host = |lineage| Host { state: TempDir::new().unwrap(), lineage, renewal: 0 };
        Self { service: sandbox(&NAMES), both: [host(first), host(second)], newest: 0, chains }
    }

    fn renew(&mut self, host: usize) {
        self.newest += 1;
        let host = &mut self.both[host];
        host.renewal = self.newest;
        host.lineage.renew_between(&NAMES, [self.newest - 70, self.newest + 20]);
        self.chains.push(host.lineage.read("fullchain.pem"));
    }

    /// Copies the lineage of one host to the other, as rsync would.
    fn copy(&mut self, to: usize) {
        for file in ["fullchain.pem", "privkey.pem"] {
            let text = self.both[1 - to].lineage.read(file);
            self.both[to].lineage.write(file, &text);
        }
        self.both[to].renewal = self.both[1 - to].renewal;
    }

    /// The renewal that the site is bound to; -1 if it is bound to none.
    fn bound(&self) -> i64 {
        let id = &self.service.sites()[0]["cert_id"];
        let certs = self.service.certs();
        let Some(cert) = certs.iter().find(|cert| cert["id"] == *id) else { return -1 };
        let chain = cert["cert_pem"].as_str().unwrap().trim();
        let number = self.chains.iter().position(|known| known.trim() == chain).unwrap();
        i64::try_from(number).unwrap()
    }
}

/// Runs `STEPS` random steps. Nothing may undo the deployment of a later renewal, nor repeat that of the same one.
fn interleave(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut hosts = Hosts::new();
    for step in 0..STEPS {
        let number = random.usize(..2);
        let (uploads, bound) = (upload_count(&hosts.service), hosts.bound());
        let action = random.usize(..4);
        match action {
            0 => hosts.renew(number),
            1 => hosts.copy(number),
            _ => {
                let host = &hosts.both[number];
                let hook = if action == 2 { host.deploy(&hosts.service) } else { host.sync(&hosts.service) };
                let output = hook.run();
                let case =
                    format!("seed {seed}, step {step}, action {action}: {}{}", output.stdout, output.stderr);
                assert_eq!(hosts.bound(), bound.max(host.renewal), "{case}");
                assert_eq!(
                    upload_count(&hosts.service) - uploads,
                    usize::from(host.renewal > bound),
                    "{case}"
                );
                // Files that another host renewed are guarded.
                let is_expected = output.code == 0 || host.renewal < bound && output.code == 65;
                assert!(is_expected, "{}: {case}", output.code);
            }
        }
    }
}

#[test]
fn later_renewal_wins() {
    (0..INTERLEAVINGS / 10).for_each(interleave);
}

#[test]
fn later_renewal_wins_in_any_interleaving() {
    (0..INTERLEAVINGS).for_each(interleave);
}

#[test]
fn race_of_two_hosts_is_harmless() {
    let mut hosts = Hosts::new();
    hosts.both[0].deploy(&hosts.service).succeeds();
    hosts.renew(0);
    hosts.copy(1);
    let start = |hook: &mut Hook| -> Child {
        hook.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut hooks = [0, 1].map(|number: usize| hosts.both[number].deploy(&hosts.service));
    let racers = hooks.each_mut().map(start);
    for mut racer in racers {
        assert!(racer.wait().unwrap().success());
    }
    let uploads = upload_count(&hosts.service);
    assert!((2..=3).contains(&uploads), "{uploads}");
    assert_eq!(hosts.bound(), 1);
    for host in &hosts.both {
        host.sync(&hosts.service).succeeds();
    }
    assert_eq!((upload_count(&hosts.service), hosts.bound()), (uploads, 1));
    assert_eq!(hosts.service.certs().len(), 1);
}
