//! `sync` without anything to do: ten thousand lineages in certbot's layout, all of them deployed, and as many sites
//! and records.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, ensure};
use edgecert_sandbox::{Authority, Options, Sandbox};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fixture::{Fixture, HookCall};
use crate::wall_time::{self, Ratios};
use crate::{measure, system};

pub(crate) const LINEAGES: usize = 10_000;

/// The lineages, and the sandbox they are deployed to.
pub(crate) struct UnchangedLineages<'a> {
    fixture: &'a Fixture,
    sandbox: Sandbox,
}

/// What one `sync` of all lineages costs.
pub(crate) struct SyncCost {
    /// Compared with `cat` of the same certificate files.
    pub(crate) wall_time: Ratios,
    /// In bytes.
    pub(crate) peak_memory: u64,
    pub(crate) requests: usize,
}

impl<'a> UnchangedLineages<'a> {
    /// Writes certificates and keys, starts the sandbox with their sites, and writes the state files.
    pub(crate) fn new(fixture: &'a Fixture) -> Result<Self> {
        let authority = Authority::new("edgecert figures").map_err(|error| anyhow!("{error}"))?;
        let (mut sites, mut records, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..LINEAGES {
            let domain = domain(number);
            let issued = authority.issue(&[&domain]).map_err(|error| anyhow!("{error}"))?;
            let live = live_dir(fixture, number);
            fs::create_dir_all(&live)?;
            fs::write(live.join("fullchain.pem"), issued.fullchain())?;
            fs::write(live.join("privkey.pem"), &issued.key)?;
            // The hook creates the record of the first one.
            if number > 0 {
                sites.push(json!({"id": number + 1, "account": 1, "domain": domain, "cert_id": number + 1}));
                records.push(json!({
                    "id": number + 1, "account": 1, "domain": domain, "name": domain, "type": "upload",
                    "cert_pem": issued.fullchain(), "key_pem": issued.key,
                }));
            }
            leaves.push(fingerprint(&issued.cert)?);
        }
        let world = serde_json::from_value(json!({
            "accounts": [{"id": 1, "api_keys": ["sandbox-key"], "packages": [
                {"id": 1, "expires_at": "2100-01-01T00:00:00Z", "traffic_limit": 1000, "traffic_used": 0}
            ]}],
            "sites": sites, "certs": records,
        }))?;
        let options = Options { world, quirks: 0, ..Options::default() };
        let sandbox = Sandbox::start(options).map_err(|error| anyhow!("{error}"))?;
        sandbox.add_site(&domain(0));
        let lineages = Self { fixture, sandbox };
        lineages.write_states(&leaves)?;
        Ok(lineages)
    }

    /// Deploys the first lineage and derives the other state files from the one that the hook has written.
    fn write_states(&self, leaves: &[String]) -> Result<()> {
        let first = self.call(&["--lineage".into(), live_dir(self.fixture, 0).into()]);
        system::run(self.fixture.command(first))?;
        let state_dir = self.fixture.path("sync-state");
        let state_file = |number: usize| {
            let cert = live_dir(self.fixture, number).join("fullchain.pem");
            let digest = Sha256::digest(cert.as_os_str().as_encoded_bytes());
            let suffix = hex(digest.get(..5).unwrap_or_default());
            state_dir.join(format!("{}-{suffix}.json", domain(number)))
        };
        let text = fs::read_to_string(state_file(0)).context("unexpected name of the state file")?;
        let mut state: Value = serde_json::from_str(&text)?;
        for (number, leaf) in leaves.iter().enumerate().skip(1) {
            let live = live_dir(self.fixture, number);
            let values = [
                ("/lineage/cert", json!(live.join("fullchain.pem"))),
                ("/lineage/key", json!(live.join("privkey.pem"))),
                ("/lineage/directory", json!(live)),
                ("/certificate/fingerprint", json!(leaf)),
                ("/certificate/names", json!([domain(number)])),
                ("/sites/0/id", json!(number + 1)),
                ("/sites/0/cert_id", json!(number + 1)),
                ("/sites/0/domain", json!(domain(number))),
            ];
            for (pointer, value) in values {
                *state.pointer_mut(pointer).context("unexpected content of the state file")? = value;
            }
            fs::write(state_file(number), serde_json::to_string_pretty(&state)?)?;
        }
        Ok(())
    }

    /// Measures one `sync`; fails if it finds anything to do.
    pub(crate) fn measure(&self) -> Result<SyncCost> {
        let sync = || self.call(&["sync".into()]);
        let before = self.sandbox.requests().len();
        let output = system::run(self.fixture.command(sync()))?;
        let requests = self.sandbox.requests().len() - before;
        let stdout = String::from_utf8_lossy(&output.stdout);
        ensure!(
            stdout.ends_with(&format!(": {LINEAGES} unchanged\n")),
            "sync found something to do: {stdout}"
        );
        let peak_memory = measure::peak_memory_of(self.fixture, sync)?;
        let wall_time = wall_time::ratios(5, || Ok(self.fixture.command(sync())), || self.cat())?;
        Ok(SyncCost { wall_time, peak_memory, requests })
    }

    fn cat(&self) -> Result<Command> {
        let mut cat = Command::new(system::find_program("sh", "dash")?);
        cat.args(["-c", "exec cat certbot/live/*/fullchain.pem"]).current_dir(self.fixture.dir());
        Ok(cat)
    }

    fn call(&self, args: &[OsString]) -> HookCall {
        let endpoints = self.sandbox.endpoints();
        let binary = [OsString::from(self.fixture.binary())];
        let env = vec![
            ("EDGECERT_BASE_URL", endpoints.api.clone().into()),
            ("EDGECERT_API_KEY", endpoints.api_key.clone().into()),
            ("EDGECERT_EDGE_ADDRESS", endpoints.edge.clone().into()),
            ("EDGECERT_ALLOW_UNTRUSTED", "true".into()),
            ("EDGECERT_STATE_DIR", self.fixture.path("sync-state").into()),
        ];
        HookCall { args: [&binary, args].concat(), env }
    }
}

fn domain(number: usize) -> String {
    format!("s{number}.example")
}

/// `live/NAME` of a lineage.
fn live_dir(fixture: &Fixture, number: usize) -> PathBuf {
    fixture.dir().join("certbot/live").join(domain(number))
}

/// Hex SHA-256 of the first certificate in a PEM text.
fn fingerprint(pem: &str) -> Result<String> {
    use base64::Engine as _;
    let body = pem.split("-----").nth(2).context("not PEM")?;
    let body: String = body.split_whitespace().collect();
    let der = base64::engine::general_purpose::STANDARD.decode(body)?;
    Ok(hex(&Sha256::digest(&der)))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
