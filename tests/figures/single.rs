//! One lineage: the bare upload against curl, the default deploy against a script.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use edgecert_workload::{Call, Lineage, domain, find_program, instructions};
use serde_json::json;

use crate::fixture::{API_KEY, Fixture};
use crate::observe;
use crate::server::{Server, Service};
use crate::table::{Figure, Goal, Measured, Table, Unit};
use crate::usage;

const UPLOAD_PAIRS: usize = 100;
const DEPLOY_PAIRS: usize = 25;

const SCRIPT: &str = "script.sh";

/// Sites of a small account.
const SITES: Range<usize> = 1..11;

const ON_TMPFS: [Figure; 2] = [
    Figure {
        row: 1,
        name: "bare upload / curl, wall, state on tmpfs",
        unit: Unit::Ratio,
        goal: Goal::AtMost(0.10),
    },
    Figure {
        row: 1,
        name: "bare upload / curl, CPU, state on tmpfs",
        unit: Unit::Ratio,
        goal: Goal::AtMost(0.08),
    },
];
const ON_DISK: Figure =
    Figure { row: 1, name: "bare upload / curl, wall, state on disk", unit: Unit::Ratio, goal: Goal::None };
const INSTRUCTIONS: Figure =
    Figure { row: 2, name: "bare upload, instructions", unit: Unit::Instructions, goal: Goal::AtMost(7.5e6) };
const DEPLOY: Figure = Figure {
    row: 3,
    name: "default deploy, times faster than the script",
    unit: Unit::Ratio,
    goal: Goal::AtLeast(40.0),
};
const DEPLOY_INSTRUCTIONS: Figure =
    Figure { row: 3, name: "default deploy, instructions", unit: Unit::Instructions, goal: Goal::None };
const FSYNCS: Figure =
    Figure { row: 5, name: "fsyncs of a deploy", unit: Unit::Count, goal: Goal::AtMost(3.0) };

/// Adds the rows of this group.
pub(crate) fn add(fixture: &Fixture, table: &mut Table) -> Result<()> {
    let one = OneLineage::new(fixture, "single")?;
    let server = one.server()?;
    table.add_all(ON_TMPFS, one.upload_on_tmpfs(&server)?);
    table.add(ON_DISK, one.upload_on_disk(&server)?);
    table.add(INSTRUCTIONS, one.upload_instructions(&server)?);
    table.add(DEPLOY, one.deploy(&server)?);
    table.add(DEPLOY_INSTRUCTIONS, one.deploy_instructions(&server)?);
    table.add(FSYNCS, one.fsyncs(&server)?);
    Ok(())
}

/// A lineage, and the commands that deploy it.
pub(crate) struct OneLineage<'a> {
    fixture: &'a Fixture,
    lineage: Lineage,
    on_disk: PathBuf,
    on_tmpfs: PathBuf,
}

impl<'a> OneLineage<'a> {
    /// Writes the lineage, the script and curl's request body to a directory of this name.
    pub(crate) fn new(fixture: &'a Fixture, name: &str) -> Result<Self> {
        let (on_disk, on_tmpfs) = (fixture.disk(name)?, fixture.memory(name)?);
        let lineage = fixture.lineage(&on_disk.join("certbot"), 1)?;
        let read = |name| fs::read_to_string(lineage.file(name));
        let body = json!({"domain": domain(1), "cert_pem": read("fullchain")?, "key_pem": read("privkey")?});
        fs::write(on_disk.join("body.json"), body.to_string())?;
        fs::write(on_disk.join(SCRIPT), include_str!("script.sh"))?;
        Ok(Self { fixture, lineage, on_disk, on_tmpfs })
    }

    /// Starts the service, and an edge that serves the lineage.
    pub(crate) fn server(&self) -> Result<Server> {
        let service = Service { edge: Some(&self.lineage), ..Service::with_sites(SITES) };
        Server::start(self.fixture, &service)
    }

    /// The bare upload: `edgecert --domain DOMAIN --wait 0`.
    pub(crate) fn upload(&self, server: &Server, state: &Path) -> Call {
        let (cert, key) = (self.lineage.file("fullchain"), self.lineage.file("privkey"));
        let call = self.fixture.hook(server, state).args(["--domain", &domain(1), "--wait", "0"]);
        call.args(["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()])
    }

    /// The hook as certbot calls it, in an empty state directory. It uploads although the edge serves the leaf already.
    fn default_deploy(&self, server: &Server) -> Result<Call> {
        let state = self.on_tmpfs.join("deploy");
        if state.exists() {
            fs::remove_dir_all(&state)?;
        }
        let call = self.fixture.hook(server, &state).args(["--force"]);
        let call = call.env("EDGECERT_EDGE_ADDRESS", server.edge());
        // The system's trust store has to have the root of the CA.
        let call = call.env("SSL_CERT_FILE", &self.fixture.ca_file);
        Ok(call.env("RENEWED_LINEAGE", self.lineage.live()).env("RENEWED_DOMAINS", domain(1)))
    }

    fn upload_on_tmpfs(&self, server: &Server) -> Result<[Measured; 2]> {
        let pairs = self.upload_pairs(server, &self.on_tmpfs.join("upload"))?;
        Ok([pairs.wall(), pairs.cpu()].map(|spread| Measured::spread(spread, Unit::Seconds)))
    }

    fn upload_on_disk(&self, server: &Server) -> Result<Measured> {
        let pairs = self.upload_pairs(server, &self.on_disk.join("upload"))?;
        Ok(Measured::spread(pairs.wall(), Unit::Seconds))
    }

    fn upload_pairs(&self, server: &Server, state: &Path) -> Result<usage::Pairs> {
        let ours = || usage::run(self.upload(server, state).command());
        usage::pairs(UPLOAD_PAIRS, ours, || usage::run(self.curl(server)?))
    }

    /// curl with the same request as the bare upload.
    fn curl(&self, server: &Server) -> Result<Command> {
        let mut curl = Command::new(find_program("curl", "curl")?);
        curl.env_clear().current_dir(&self.on_disk);
        curl.args(["--disable", "--silent", "--show-error", "--fail", "--cacert"]).arg(&self.fixture.ca_file);
        curl.args(["--header", &format!("Authorization: Bearer {API_KEY}")]);
        curl.args(["--header", "Accept: application/json", "--header", "Content-Type: application/json"]);
        curl.args(["--data-binary", "@body.json"]);
        curl.arg(format!("https://127.0.0.1:{}/api/certs/upload", server.port()));
        Ok(curl)
    }

    fn upload_instructions(&self, server: &Server) -> Result<Measured> {
        let call = self.upload(server, &self.on_tmpfs.join("upload"));
        Ok(Measured::value(instructions(&self.on_tmpfs, &call)? as f64))
    }

    fn deploy(&self, server: &Server) -> Result<Measured> {
        let ours = || usage::run(self.default_deploy(server)?.command());
        let pairs = usage::pairs(DEPLOY_PAIRS, ours, || usage::run(self.script(server)?))?;
        Ok(Measured::spread(pairs.speed(), Unit::Seconds))
    }

    /// The script that does the same as the hook.
    fn script(&self, server: &Server) -> Result<Command> {
        for (program, package) in [("openssl", "openssl"), ("jq", "jq"), ("curl", "curl")] {
            find_program(program, package)?;
        }
        let mut script = Command::new(find_program("bash", "bash")?);
        script
            .arg(self.on_disk.join(SCRIPT))
            .arg(self.lineage.live())
            .arg(format!("https://127.0.0.1:{}", server.port()));
        script.arg(server.edge()).arg(&self.fixture.ca_file);
        script.env_clear().env("PATH", "/usr/bin:/bin").env("EDGECERT_API_KEY", API_KEY);
        Ok(script)
    }

    fn deploy_instructions(&self, server: &Server) -> Result<Measured> {
        Ok(Measured::value(instructions(&self.on_tmpfs, &self.default_deploy(server)?)? as f64))
    }

    fn fsyncs(&self, server: &Server) -> Result<Measured> {
        Ok(Measured::value(observe::fsyncs(&self.on_disk, &self.default_deploy(server)?)? as f64))
    }
}
