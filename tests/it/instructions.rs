//! Instructions of the release build stay below a bound for each operation. What wall time depends on is measured by
//! `tests/figures`.

use std::fs;
use std::path::{Path, PathBuf};

use edgecert_workload::{Authority, Call, IssuedCert, Lineage, StateTemplate, domain, instructions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Options, Sandbox, binary, cannot_run, env_var, generate_key, require, world};

/// Roots beside that of the service, as many as Debian's bundle has.
const ROOTS: usize = 144;

/// The bound of an operation, in thousands, is its goal and a tenth, or twice what it was when it was first measured.
/// The program may always get faster.
#[test]
fn operations_stay_below_their_bounds() {
    let is_release =
        env_var("EDGECERT_BIN").is_some() && !binary().components().any(|part| part.as_os_str() == "debug");
    if !is_release {
        cannot_run("EDGECERT_BIN names no release build; tests/run --all makes one");
    }
    require("valgrind", "valgrind");
    let work = Workplace::new();
    let hook = || Call::new(&binary());
    let check = |lineage: &Lineage| work.count(&files(hook().args(["check"]), lineage));
    let operations = [
        ("--version", 825, work.count(&hook().args(["--version"]))),
        ("check, P-256", 2_200, check(&work.lineage(1).0)),
        ("check, RSA-2048", 2_420, check(&work.rsa_lineage())),
        ("bare upload", 8_250, work.bare_upload()),
        ("renewal beside 200 lineages", 80_000, work.renewal_beside(200)),
        ("sync, 10 pending", 50_000, work.pending(10)),
        ("sync, 60 pending", 270_000, work.pending(60)),
    ];
    let is_below = operations.iter().all(|(_, bound, count)| count <= bound);
    assert!(is_below, "operation, bound and count in thousands: {operations:#?}");
}

struct Workplace {
    home: TempDir,
    authority: Authority,
}

/// What a call of the hook needs to reach a sandbox.
struct Service {
    sandbox: Sandbox,
    ca_file: Option<PathBuf>,
}

impl Workplace {
    fn new() -> Self {
        Self { home: TempDir::new().unwrap(), authority: Authority::new("workload").unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// In thousands.
    fn count(&self, call: &Call) -> u64 {
        (instructions(self.home.path(), call).unwrap() + 500) / 1_000
    }

    fn lineage(&self, number: usize) -> (Lineage, IssuedCert) {
        let issued = self.authority.issue(&[domain(number)]).unwrap();
        (Lineage::write(&self.path("certbot"), &domain(number), &issued).unwrap(), issued)
    }

    fn rsa_lineage(&self) -> Lineage {
        generate_key(self.home.path(), &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
        let key = fs::read_to_string(self.path("privkey.pem")).unwrap();
        let issued = self.authority.issue_for_key(&key, &[domain(1)]).unwrap();
        Lineage::write(&self.path("rsa"), "rsa", &issued).unwrap()
    }

    fn bare_upload(&self) -> u64 {
        let (lineage, issued) = self.lineage(1);
        let mut service = Service::start(&[(1, &issued)], true);
        let mut bundle = fs::read_to_string(service.ca_file.take().unwrap()).unwrap();
        for number in 0..ROOTS {
            bundle += &Authority::new(&format!("other {number}")).unwrap().root();
        }
        fs::write(self.path("bundle.pem"), bundle).unwrap();
        service.ca_file = Some(self.path("bundle.pem"));
        let call = service.hook(&self.path("bare")).args(["--domain", &domain(1), "--wait", "0"]);
        self.count(&files(call, &lineage))
    }

    /// A renewal in an account of one site. The other lineages were deployed elsewhere.
    fn renewal_beside(&self, others: usize) -> u64 {
        let state = self.path("beside");
        let (mut lineage, issued) = self.lineage(1);
        let service = Service::start(&[(1, &issued)], false);
        let call = service.deploy(&state, &lineage);
        run(&call);
        let elsewhere = StateTemplate::read(&state, &lineage).unwrap().with_service("https://other.example");
        for number in 2..others + 2 {
            let (other, issued) = self.lineage(number);
            elsewhere.write(&state, &other, &issued, number).unwrap();
        }
        lineage.renew(&self.authority.renew(&[domain(1)]).unwrap()).unwrap();
        self.count(&call)
    }

    /// `sync` in an account with as many sites as lineages, none of which was deployed.
    fn pending(&self, count: usize) -> u64 {
        let (name, template) = (format!("pending-{count}"), self.path(&format!("template-{count}")));
        let state = self.path(&name);
        fs::create_dir(&state).unwrap();
        let lineages: Vec<(Lineage, IssuedCert)> = (1..=count).map(|number| self.lineage(number)).collect();
        let sites: Vec<(usize, &IssuedCert)> =
            lineages.iter().enumerate().map(|(index, (_, issued))| (index + 1, issued)).collect();
        let service = Service::start(&sites, false);
        let first = &lineages[0].0;
        run(&service.deploy(&template, first));
        let template = StateTemplate::read(&template, first).unwrap().pending();
        for (index, (lineage, issued)) in lineages.iter().enumerate() {
            template.write(&state, lineage, issued, index + 1).unwrap();
        }
        self.count(&service.hook(&state).args(["sync"]))
    }
}

impl Service {
    /// Starts a sandbox with these sites, each bound to a record of its own.
    fn start(sites: &[(usize, &IssuedCert)], tls: bool) -> Self {
        let record = |(number, issued): &(usize, &IssuedCert)| {
            json!({
                "id": number, "account": 1, "domain": domain(*number), "name": domain(*number), "type": "upload",
                "cert_pem": issued.fullchain(), "key_pem": issued.key,
            })
        };
        let site = |(number, _): &(usize, &IssuedCert)| json!({"id": number, "account": 1, "domain": domain(*number), "cert_id": number});
        let (records, sites): (Vec<Value>, Vec<Value>) =
            (sites.iter().map(record).collect(), sites.iter().map(site).collect());
        let world = world(json!({"sites": sites, "certs": records}));
        let sandbox = Sandbox::start(Options { world, tls, quirks: 0, ..Options::default() }).unwrap();
        let ca_file = sandbox.endpoints().ca_file.clone();
        Self { sandbox, ca_file }
    }

    /// The hook with the settings of a host: no edge, a private CA, and time enough for callgrind.
    fn hook(&self, state: &Path) -> Call {
        let endpoints = self.sandbox.endpoints();
        let call = Call::new(&binary())
            .env("EDGECERT_BASE_URL", &endpoints.api)
            .env("EDGECERT_API_KEY", &endpoints.api_key)
            .env("EDGECERT_STATE_DIR", state)
            .env("EDGECERT_TRUST_ANCHORS", "off")
            .env("EDGECERT_VERIFY", "off")
            .env("EDGECERT_TIMEOUT", "600");
        match &self.ca_file {
            Some(file) => call.env("EDGECERT_CA_FILE", file),
            None => call,
        }
    }

    fn deploy(&self, state: &Path, lineage: &Lineage) -> Call {
        self.hook(state).env("RENEWED_LINEAGE", lineage.live()).env("RENEWED_DOMAINS", lineage.name())
    }
}

fn files(call: Call, lineage: &Lineage) -> Call {
    let (cert, key) = (lineage.file("fullchain"), lineage.file("privkey"));
    call.args(["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()])
}

#[track_caller]
fn run(call: &Call) {
    edgecert_workload::run(call.command()).unwrap();
}
