//! State files of many lineages, derived from the one that the hook has written for the first.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{IssuedCert, Lineage, domain};

/// The state of a lineage that the hook has deployed, as a template for others.
#[derive(Clone)]
pub struct StateTemplate(Value);

impl StateTemplate {
    /// Reads the state of a deployed lineage.
    pub fn read(state_dir: &Path, lineage: &Lineage) -> Result<Self> {
        let path = state_dir.join(file_name(lineage));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    /// The state after a first attempt that failed before anything was sent: it is pending, and nothing is known to have
    /// the leaf, so that it has to be uploaded.
    #[must_use]
    pub fn pending(&self) -> Self {
        let mut state = self.0.clone();
        let begun = state.get("begun").cloned().unwrap_or_default();
        if let Some(fields) = state.as_object_mut() {
            fields.insert("pending_since".into(), begun);
            fields.insert("sites".into(), json!([]));
            for unknown in ["result", "last_success", "sites_service"] {
                fields.insert(unknown.into(), Value::Null);
            }
            fields.insert("records".into(), json!([]));
        }
        Self(state)
    }

    /// The state as if it had been deployed to the service at another base URL.
    #[must_use]
    pub fn with_service(&self, base_url: &str) -> Self {
        let mut state = self.0.clone();
        for pointer in ["/service", "/sites_service", "/standing/settings/base_url"] {
            if let Some(value) = state.pointer_mut(pointer) {
                *value = base_url.into();
            }
        }
        Self(state)
    }

    /// Writes the state of another lineage, whose number is that of its only site, if it has one, and of its record.
    pub fn write(
        &self,
        state_dir: &Path,
        lineage: &Lineage,
        issued: &IssuedCert,
        number: usize,
    ) -> Result<()> {
        let mut state = self.0.clone();
        let (name, time) = (domain(number), |at: OffsetDateTime| at.format(&Rfc3339));
        let has_site = state.pointer("/sites/0").is_some();
        let leaf = json!({
            "fingerprint": issued.fingerprint, "names": [name],
            "not_before": time(issued.not_before)?, "not_after": time(issued.not_after)?,
        });
        let mut values = vec![
            ("/lineage/cert", json!(lineage.file("fullchain"))),
            ("/lineage/key", json!(lineage.file("privkey"))),
            ("/lineage/directory", json!(lineage.live())),
            ("/certificate", leaf.clone()),
        ];
        if state.pointer("/records/0").is_some() {
            values.push(("/records/0/certificate", leaf));
            values.push(("/records/0/records/0/id", json!(number)));
        }
        if has_site {
            let site = [
                ("/sites/0/id", json!(number)),
                ("/sites/0/domain", json!(name)),
                ("/sites/0/cname", json!(format!("s{number}.edge.invalid"))),
                ("/sites/0/cert_id", json!(number)),
                ("/sites/0/leaf", json!(issued.fingerprint)),
            ];
            values.extend(site);
        }
        for (pointer, value) in values {
            *state.pointer_mut(pointer).with_context(|| format!("the state has no {pointer}"))? = value;
        }
        // The hook writes the version first, by which it recognises its files.
        let version = state.as_object_mut().and_then(|state| state.remove("version"));
        let rest = serde_json::to_string_pretty(&state)?.split_off(1);
        let text = format!("{{\n  \"version\": {},{rest}\n", version.context("the state has no version")?);
        fs::write(state_dir.join(file_name(lineage)), text)?;
        Ok(())
    }
}

/// Name of a lineage's state file: its directory, and a hash of the certificate's path.
fn file_name(lineage: &Lineage) -> String {
    let digest = Sha256::digest(lineage.file("fullchain").as_os_str().as_encoded_bytes());
    format!("{}-{}.json", lineage.name(), hex(digest.get(..5).unwrap_or_default()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
