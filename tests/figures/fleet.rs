//! What `sync` costs where nothing is to be done: ten thousand lineages in certbot's layout, all of them deployed, at a
//! service that has as many sites and records.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, ensure};
use edgecert_sandbox::{Authority, Options, Sandbox};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::race::{self, Ratios};
use crate::scene::{Call, Scene};
use crate::{measure, system};

pub(crate) const LINEAGES: usize = 10_000;

/// The lineages, and the service that they are deployed to.
pub(crate) struct Fleet<'a> {
    scene: &'a Scene,
    sandbox: Sandbox,
}

/// What one `sync` of all of them takes.
pub(crate) struct Cost {
    /// Against `cat` of the same certificate files.
    pub(crate) wall: Ratios,
    /// Peak memory in bytes.
    pub(crate) memory: u64,
    /// Requests of one run.
    pub(crate) requests: usize,
}

impl<'a> Fleet<'a> {
    /// Writes the files, fills the service, and lets the hook itself show what a memory looks like.
    pub(crate) fn set(scene: &'a Scene) -> Result<Self> {
        let authority = Authority::new("edgecert figures").map_err(|error| anyhow!("{error}"))?;
        let (mut sites, mut records, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..LINEAGES {
            let domain = domain(number);
            let issued = authority.issue(&[&domain]).map_err(|error| anyhow!("{error}"))?;
            let live = live(scene, number);
            fs::create_dir_all(&live)?;
            fs::write(live.join("fullchain.pem"), issued.fullchain())?;
            fs::write(live.join("privkey.pem"), &issued.key)?;
            // The record of the first one is made by the hook.
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
        let fleet = Self { scene, sandbox };
        fleet.remember(&leaves)?;
        Ok(fleet)
    }

    /// A memory for each lineage, made from that of the first one.
    fn remember(&self, leaves: &[String]) -> Result<()> {
        let first = self.call(&["--lineage".into(), live(self.scene, 0).into()]);
        system::run(self.scene.command(first))?;
        let state = self.scene.file("fleet-state");
        let name = |number: usize| {
            let place = live(self.scene, number).join("fullchain.pem");
            let digest = Sha256::digest(place.as_os_str().as_encoded_bytes());
            let own = hex(digest.get(..5).unwrap_or_default());
            state.join(format!("{}-{own}.json", domain(number)))
        };
        let text = fs::read_to_string(name(0)).context("the hook calls its memory otherwise")?;
        let mut memory: Value = serde_json::from_str(&text)?;
        for (number, leaf) in leaves.iter().enumerate().skip(1) {
            let live = live(self.scene, number);
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
            for (place, value) in values {
                *memory.pointer_mut(place).context("a memory looks otherwise")? = value;
            }
            fs::write(name(number), serde_json::to_string_pretty(&memory)?)?;
        }
        Ok(())
    }

    /// Takes the figures; fails where `sync` does more than look.
    pub(crate) fn measure(&self) -> Result<Cost> {
        let sync = || self.call(&["sync".into()]);
        let before = self.sandbox.requests().len();
        let output = system::run(self.scene.command(sync()))?;
        let requests = self.sandbox.requests().len() - before;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(said.ends_with(&format!(": {LINEAGES} unchanged\n")), "sync found something to do: {said}");
        let memory = measure::memory_of(self.scene, sync)?;
        let wall = race::ratios(5, || Ok(self.scene.command(sync())), || self.cat())?;
        Ok(Cost { wall, memory, requests })
    }

    fn cat(&self) -> Result<Command> {
        let mut cat = Command::new(system::program("sh", "dash")?);
        cat.args(["-c", "exec cat fleet/live/*/fullchain.pem"]).current_dir(self.scene.home());
        Ok(cat)
    }

    fn call(&self, arguments: &[OsString]) -> Call {
        let ready = self.sandbox.endpoints();
        let binary = [OsString::from(self.scene.binary())];
        let environment = vec![
            ("EDGECERT_BASE_URL", ready.api.clone().into()),
            ("EDGECERT_API_KEY", ready.api_key.clone().into()),
            ("EDGECERT_EDGE_ADDRESS", ready.edge.clone().into()),
            ("EDGECERT_ALLOW_UNTRUSTED", "true".into()),
            ("EDGECERT_STATE_DIR", self.scene.file("fleet-state").into()),
        ];
        Call { arguments: [&binary, arguments].concat(), environment }
    }
}

fn domain(number: usize) -> String {
    format!("s{number}.example")
}

fn live(scene: &Scene, number: usize) -> PathBuf {
    let home: &Path = scene.home();
    home.join("fleet/live").join(domain(number))
}

/// Of the first certificate in a PEM text.
fn fingerprint(pem: &str) -> Result<String> {
    use base64::Engine as _;
    let body = pem.split("-----").nth(2).context("no PEM")?;
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
