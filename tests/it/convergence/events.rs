//! What happens to a host, its account and its edge.

use serde_json::{Value, json};

use super::leaf::{DOMAINS, Leaf};
use super::world::{EdgeSetting, World};
use crate::harness::{Fault, change};

const UPLOAD: &str = "POST /api/certs/upload";
const FLAGS: [&str; 5] = ["--force", "--rebind", "--allow-older", "--allow-shrink", "--replace-lets"];

impl World {
    /// Something happens.
    pub(super) fn happen(&mut self) {
        match self.rng.u8(..20) {
            0..=3 => self.call_hook(),
            4..=6 => self.renew(),
            7..=9 => {
                let faults = self.faults();
                self.sync(&faults);
            }
            10..=11 => self.upload_by_other_client(),
            12..=13 => self.replace_record(),
            14..=15 => self.rebind_site(),
            16 => self.hold_pushes(),
            17 => self.wipe(),
            18 => self.change_edge(),
            _ => self.add_site(),
        }
    }

    fn call_hook(&mut self) {
        let number = self.rng.usize(..self.lineages.len());
        let flags: Vec<&str> = FLAGS.into_iter().filter(|_| self.rng.u8(..8) == 0).collect();
        self.is_overridden |= flags.iter().any(|flag| flag.starts_with("--allow"));
        let faults = self.faults();
        self.hook(number, &flags, &faults);
    }

    fn renew(&mut self) {
        let number = self.rng.usize(..self.lineages.len());
        let dates = match self.rng.u8(..10) {
            0 => self.dates.expired(&mut self.rng),
            1..=2 => self.dates.not_later(&mut self.rng),
            _ => self.dates.later(&mut self.rng),
        };
        let mut names = self.lineages[number].leaf.names.clone();
        match self.rng.u8(..8) {
            0 if names.len() > 1 => drop(names.pop()),
            1 => names.extend(self.rng.choice(DOMAINS).filter(|name| !names.contains(name))),
            _ => {}
        }
        self.lineages[number].renew(names, dates);
        self.log.push(format!("renewed {number}: {}", self.lineages[number].describe()));
        if self.rng.bool() {
            let faults = self.faults();
            self.hook(number, &[], &faults);
        }
    }

    fn faults(&mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        while self.rng.u8(..4) == 0 {
            let times = [1, 1, 9][self.rng.usize(..3)];
            faults.push(match self.rng.u8(..8) {
                0..=1 => Fault::status(UPLOAD, 503).times(times),
                2 => Fault::close_before(UPLOAD).times(times),
                3 => Fault::close_after(UPLOAD).times(times),
                4 => Fault::truncate(UPLOAD, 20).times(times),
                5 => Fault::close_after("POST /api/sites/*/update").times(times),
                6 => Fault::status("GET /api/me/sites", 503).times(times),
                _ => Fault::close_before("GET /api/certs"),
            });
        }
        faults
    }

    fn any_site(&mut self) -> Value {
        let sites = self.service.sites();
        sites[self.rng.usize(..sites.len())].clone()
    }

    /// A leaf of someone else for a domain, issued before or after those of the host.
    fn other_leaf(&mut self, domain: &str, may_be_expired: bool) -> Leaf {
        let dates = match self.rng.u8(..6) {
            0 if may_be_expired => self.dates.expired(&mut self.rng),
            0..=1 => self.dates.later(&mut self.rng),
            _ => self.dates.not_later(&mut self.rng),
        };
        let domain = DOMAINS.into_iter().find(|known| *known == domain).unwrap();
        let mut names = vec![domain];
        names.extend(self.rng.choice(DOMAINS).filter(|name| *name != domain));
        Leaf::issue(names, dates, self.rng.u8(..4) == 0)
    }

    fn upload_by_other_client(&mut self) {
        let site = self.any_site();
        let domain = site["domain"].as_str().unwrap();
        let leaf = self.other_leaf(domain, false);
        let id = self.service.upload_as_other_client(domain, &leaf.issued.fullchain(), &leaf.issued.key);
        self.log.push(format!("other client uploads {:?} for {domain} into {id}", leaf.rank));
    }

    fn replace_record(&mut self) {
        let records = self.service.certs();
        let Some(record) = self.rng.choice(&records) else { return };
        let domain = DOMAINS.into_iter().find(|name| record["domain"].as_str().unwrap().contains(name));
        let leaf = self.other_leaf(domain.unwrap(), true);
        let id = record["id"].as_u64().unwrap();
        let (cert, key) = (leaf.issued.fullchain(), &leaf.issued.key);
        let is_silent = self.rng.bool();
        if is_silent {
            self.service.replace_cert_silently(id, &cert, key);
        } else {
            self.service.replace_cert(id, &cert, key);
        }
        self.log.push(format!("record {id} is replaced by {:?}, silently: {is_silent}", leaf.rank));
    }

    fn rebind_site(&mut self) {
        let (site, records) = (self.any_site(), self.service.certs());
        let record = self.rng.choice(&records).filter(|_| self.rng.u8(..3) > 0);
        let id = record.map_or(Value::Null, |record| record["id"].clone());
        change(&self.service, &format!("/api/sites/{}/update", site["id"]), &json!({"cert_id": id}));
        self.log.push(format!("{} is bound to {id}", site["domain"]));
    }

    fn hold_pushes(&mut self) {
        let held = self.rng.bool();
        self.service.hold_pushes(held);
        self.log.push(format!("pushes are held: {held}"));
    }

    pub(super) fn wipe(&mut self) {
        self.wipe_state();
        self.log.push("the state is wiped".to_owned());
    }

    fn change_edge(&mut self) {
        self.edge = [EdgeSetting::Alive, EdgeSetting::HalfDead, EdgeSetting::Dead][self.rng.usize(..3)];
        self.log.push(format!("edge: {:?}", self.edge));
    }

    fn add_site(&mut self) {
        let sites = self.service.sites();
        let is_free = |domain: &&str| sites.iter().all(|site| site["domain"] != **domain);
        if let Some(domain) = DOMAINS.into_iter().find(is_free) {
            self.service.add_site(domain);
            self.log.push(format!("new site {domain}"));
        }
    }
}
