//! Settings: flag, then environment, then the lineage's entry, then the configuration file, then the default.
//!
//! Every default stands here and nowhere else.

mod address;
mod file;
mod guards;
mod inspection;
mod key;
mod on_failure;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

pub(crate) use self::address::BaseUrl;
use self::address::{addresses, check_edge_address, is_same_url};
pub(crate) use self::file::{Configuration, LineageEntry, Location};
pub(crate) use self::guards::Guards;
pub(crate) use self::inspection::{Inspection, Layers};
pub(crate) use self::on_failure::Program;
use crate::env::{Env, NotUnicode};
use crate::file::ReadError;
use crate::secret::Secret;

/// Seconds for the whole run. lego kills a hook after 120.
const TIMEOUT: u64 = 90;
/// Seconds for the edge to take the new certificate over.
const WAIT: u64 = 30;

// What one source says about the settings; `None` where it says nothing. No doc comment: clap would take it for the
// summary of every command that has these flags, as those are put together late.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
#[command(next_help_heading = "Settings (flag, else environment, else configuration file)")]
pub(crate) struct Layer {
    /// Base URL of the service, for example https://api.example.net [env: EDGECERT_BASE_URL]
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,

    /// File that holds the API key [env: EDGECERT_API_KEY_FILE; the key itself: EDGECERT_API_KEY]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_file: Option<PathBuf>,

    /// CA certificates to trust instead of the system's trust store [env: EDGECERT_CA_FILE]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Directory of the state files [env: EDGECERT_STATE_DIR]
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Deadline for the whole run [default: 90] [env: EDGECERT_TIMEOUT]
    #[arg(long, value_name = "SECS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,

    /// Wait up to SECS until the edge serves the certificate; 0 does not wait [default: 30] [env: EDGECERT_WAIT]
    #[arg(long, value_name = "SECS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wait: Option<u64>,

    /// Verify the result by TLS handshakes with the edge [default: auto] [env: EDGECERT_VERIFY]
    #[arg(long, value_enum, value_name = "MODE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verify: Option<Verify>,

    /// Edge to verify, several separated by commas [default: the site's cname, port 443] [env: EDGECERT_EDGE_ADDRESS]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) edge_address: Option<String>,

    /// Rebind covered sites that are bound to another record [env: EDGECERT_REBIND]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rebind: Option<bool>,

    /// Allow certificates from test, staging and self-signed issuers [env: EDGECERT_ALLOW_UNTRUSTED]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_untrusted: Option<bool>,

    /// Succeed if no site is covered [env: EDGECERT_SKIP_UNMATCHED]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skip_unmatched: Option<bool>,
}

/// Everything that a run needs to know, complete and valid.
pub(crate) struct Settings {
    pub(crate) base_url: BaseUrl,
    pub(crate) api_key: Secret,
    pub(crate) roots: Roots,
    pub(crate) timeout: Duration,
    /// Zero: the answer of the upload is the end.
    pub(crate) wait: Duration,
    pub(crate) verify: Verify,
    /// Where deployments are remembered; `None`: nowhere.
    pub(crate) state_dir: Option<PathBuf>,
    /// `HOST:PORT` of the edges to ask in place of those that the service names; empty: those.
    pub(crate) edge_addresses: Vec<String>,
    pub(crate) rebind: bool,
    pub(crate) allow_untrusted: bool,
    pub(crate) skip_unmatched: bool,
}

/// Whose certificates the service's TLS certificate may lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// This file instead of the system's store.
    File(PathBuf),
    /// The system's store; `named` where `SSL_CERT_FILE`, which is `file`, or `SSL_CERT_DIR` says which one.
    System { named: bool, file: Option<PathBuf> },
}

impl Roots {
    /// The system's store, as the environment names it.
    pub(crate) fn of_system(env: &Env) -> Self {
        let file = env.path("SSL_CERT_FILE");
        Self::System { named: file.is_some() || env.raw("SSL_CERT_DIR").is_some(), file }
    }
}

/// Whether TLS handshakes verify the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verify {
    /// Verify; an unreachable edge is a warning
    Auto,
    /// Verify; an unreachable edge is a failure
    Require,
    /// Do not verify
    Off,
}

/// A setting that cannot be used. Values are not repeated where they may hold a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no base URL is set")]
    NoBaseUrl,
    #[error("no API key is set")]
    NoApiKey,
    #[error("{name}: {reason}")]
    Bad { name: String, reason: String },
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("{}:{line}: {reason}", crate::text::path(path))]
    File { path: PathBuf, line: usize, reason: String, known: Option<String> },
    #[error("others can read the API key file {}", crate::text::path(path))]
    OpenToOthers { path: PathBuf },
    #[error(transparent)]
    NotUnicode(#[from] NotUnicode),
    #[error(
        "it was deployed to {url} with a key that is not remembered; the configuration, and the key that is known here, are for another service"
    )]
    OtherService { url: String },
}

impl Settings {
    /// Merges the layers, the first one strongest, and reads the API key.
    pub(crate) fn resolve(
        flags: &Layer,
        env: &Env,
        entry: Option<&LineageEntry>,
        file: &Configuration,
    ) -> Result<Self, Error> {
        Self::resolve_again(flags, env, &Layer::default(), entry, file)
    }

    /// The same for a lineage of which is remembered what an earlier run was told.
    pub(crate) fn resolve_again(
        flags: &Layer,
        env: &Env,
        remembered: &Layer,
        entry: Option<&LineageEntry>,
        file: &Configuration,
    ) -> Result<Self, Error> {
        let environment = Layer::from_env(env)?;
        // The key that was named with a service is for that one; the one in the environment may be another service's.
        let elsewhere = remembered
            .base_url
            .as_ref()
            .filter(|_| flags.base_url.is_none() && environment.base_url.is_none());
        let own = remembered.api_key_file.clone().filter(|_| elsewhere.is_some());
        let named = Layer { api_key_file: flags.api_key_file.clone().or(own), ..Layer::default() };
        if let (Some(url), None) = (elsewhere, &named.api_key_file)
            && file.layer.base_url.as_deref().is_some_and(|own| !is_same_url(own, url))
        {
            return Err(Error::OtherService { url: url.clone() });
        }
        let environment = environment.or(remembered.clone());
        let entry = entry.map(|entry| entry.layer.clone()).unwrap_or_default();
        let api_key = key::find(&named, env, &environment, &file.layer)?;
        let merged = flags.clone().or(environment).or(entry).or(file.layer.clone());
        merged.edge_address.as_deref().map(|text| check_edge_address(text, "edge address")).transpose()?;
        let base_url = merged.base_url.as_deref().ok_or(Error::NoBaseUrl)?.parse()?;
        Ok(Self::complete(base_url, api_key.ok_or(Error::NoApiKey)?, merged, env))
    }

    /// The settings with a default for everything that no layer names.
    fn complete(base_url: BaseUrl, api_key: Secret, merged: Layer, env: &Env) -> Self {
        Self {
            base_url,
            api_key,
            roots: merged.ca_file.map_or_else(|| Roots::of_system(env), Roots::File),
            timeout: Duration::from_secs(merged.timeout.unwrap_or(TIMEOUT)),
            wait: Duration::from_secs(merged.wait.unwrap_or(WAIT)),
            verify: merged.verify.unwrap_or(Verify::Auto),
            state_dir: merged.state_dir.or_else(|| default_state_dir(env)),
            edge_addresses: merged
                .edge_address
                .iter()
                .flat_map(|text| addresses(text))
                .map(str::to_owned)
                .collect(),
            rebind: merged.rebind.unwrap_or(false),
            allow_untrusted: merged.allow_untrusted.unwrap_or(false),
            skip_unmatched: merged.skip_unmatched.unwrap_or(false),
        }
    }
}

impl Settings {
    /// Whether these lead to the same account of the same service.
    pub(crate) fn is_same_service(&self, other: &Self) -> bool {
        self.base_url == other.base_url
            && self.api_key.expose() == other.api_key.expose()
            && self.roots == other.roots
    }
}

impl Layer {
    /// What the environment says.
    fn from_env(env: &Env) -> Result<Self, Error> {
        Ok(Self {
            base_url: env.text("EDGECERT_BASE_URL")?.map(str::to_owned),
            api_key_file: env.path("EDGECERT_API_KEY_FILE"),
            ca_file: env.path("EDGECERT_CA_FILE"),
            state_dir: env.path("EDGECERT_STATE_DIR"),
            timeout: parsed(env, "EDGECERT_TIMEOUT", "a whole number of seconds", |text| text.parse().ok())?,
            wait: parsed(env, "EDGECERT_WAIT", "a whole number of seconds", |text| text.parse().ok())?,
            verify: parsed(env, "EDGECERT_VERIFY", "auto, require or off", |text| {
                Verify::from_str(text, true).ok()
            })?,
            edge_address: env.text("EDGECERT_EDGE_ADDRESS")?.map(str::to_owned),
            rebind: switch(env, "EDGECERT_REBIND")?,
            allow_untrusted: switch(env, "EDGECERT_ALLOW_UNTRUSTED")?,
            skip_unmatched: switch(env, "EDGECERT_SKIP_UNMATCHED")?,
        })
    }

    /// What the command line and the environment say together, as far as another run, elsewhere and later, needs it to do
    /// the same. What is no valid value is left out: a secret may stand in its place.
    pub(crate) fn to_remember(&self, env: &Env) -> Self {
        let said = self.clone().or(Self::from_env(env).unwrap_or_default());
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self {
            base_url: said.base_url.filter(|url| url.parse::<BaseUrl>().is_ok()),
            api_key_file: said.api_key_file.filter(|path| path.is_file()).map(absolute),
            ca_file: said.ca_file.filter(|path| path.is_file()).map(absolute),
            edge_address: said.edge_address.filter(|text| check_edge_address(text, "").is_ok()),
            // Whoever finishes the work has time, and a place of its own to remember it.
            state_dir: None,
            timeout: None,
            wait: None,
            ..said
        }
    }

    /// This layer where it says something, the weaker one elsewhere.
    pub(crate) fn or(self, weaker: Self) -> Self {
        Self {
            base_url: self.base_url.or(weaker.base_url),
            api_key_file: self.api_key_file.or(weaker.api_key_file),
            ca_file: self.ca_file.or(weaker.ca_file),
            state_dir: self.state_dir.or(weaker.state_dir),
            timeout: self.timeout.or(weaker.timeout),
            wait: self.wait.or(weaker.wait),
            verify: self.verify.or(weaker.verify),
            edge_address: self.edge_address.or(weaker.edge_address),
            rebind: self.rebind.or(weaker.rebind),
            allow_untrusted: self.allow_untrusted.or(weaker.allow_untrusted),
            skip_unmatched: self.skip_unmatched.or(weaker.skip_unmatched),
        }
    }
}

/// Where deployments are remembered, which is known also where other settings are wrong; `None`: nowhere.
pub(crate) fn state_dir(flags: &Layer, env: &Env, file: &Configuration) -> Option<PathBuf> {
    let named = flags.state_dir.clone().or_else(|| env.path("EDGECERT_STATE_DIR"));
    named.or_else(|| file.layer.state_dir.clone()).or_else(|| default_state_dir(env))
}

/// The edges to ask in place of those that the service names, for who needs no other setting; `lineage` is what is
/// remembered of one, or its entry says.
pub(crate) fn edge_addresses(
    flags: &Layer,
    env: &Env,
    lineage: Option<&str>,
    file: &Configuration,
) -> Result<Vec<String>, Error> {
    let said = flags.edge_address.as_deref().or(env.text("EDGECERT_EDGE_ADDRESS")?);
    let said = said.or(lineage).or(file.layer.edge_address.as_deref());
    said.map(|text| check_edge_address(text, "edge address")).transpose()?;
    Ok(said.into_iter().flat_map(addresses).map(str::to_owned).collect())
}

/// What systemd made for the service, the system's directory for root, else the user's own.
fn default_state_dir(env: &Env) -> Option<PathBuf> {
    let made = env.raw("STATE_DIRECTORY").and_then(|list| std::env::split_paths(list).next());
    let system = rustix::process::geteuid().is_root().then(|| PathBuf::from("/var/lib/edgecert"));
    let own = env.path("XDG_STATE_HOME").or_else(|| Some(env.path("HOME")?.join(".local/state")));
    made.or(system).or_else(|| Some(own?.join("edgecert")))
}

fn parsed<T>(
    env: &Env,
    name: &'static str,
    wanted: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let bad = || Error::Bad { name: name.into(), reason: format!("{wanted} is wanted") };
    env.text(name)?.map(|text| parse(text.trim()).ok_or_else(bad)).transpose()
}

fn switch(env: &Env, name: &'static str) -> Result<Option<bool>, Error> {
    parsed(env, name, "true or false", |text| match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    })
}

/// The configuration file that is in force: the one named, or the first default that exists.
pub(crate) fn read_configuration(named: Option<&Path>, env: &Env) -> Result<Configuration, Error> {
    file::read(named, env)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(variables: &[(&str, &str)]) -> Env {
        variables.iter().copied().collect()
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file() {
        let base =
            [("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "k"), ("EDGECERT_WAIT", "2")];
        let mut file = Configuration::default();
        file.layer.wait = Some(3);
        file.layer.timeout = Some(4);
        let flags = Layer { wait: Some(1), ..Layer::default() };
        let wait =
            |flags: &Layer, env: &Env| Settings::resolve(flags, env, None, &file).unwrap().wait.as_secs();
        assert_eq!(wait(&flags, &env(&base)), 1);
        assert_eq!(wait(&Layer::default(), &env(&base)), 2);
        assert_eq!(wait(&Layer::default(), &env(&base[..2])), 3);
        let settings = Settings::resolve(&flags, &env(&base), None, &Configuration::default()).unwrap();
        assert_eq!((settings.timeout.as_secs(), settings.verify), (TIMEOUT, Verify::Auto));
    }

    #[test]
    fn a_bad_variable_is_named() {
        for (name, value) in [
            ("EDGECERT_TIMEOUT", "soon"),
            ("EDGECERT_WAIT", "-1"),
            ("EDGECERT_VERIFY", "maybe"),
            ("EDGECERT_REBIND", "2"),
        ] {
            let error = Layer::from_env(&env(&[(name, value)])).unwrap_err().to_string();
            assert!(error.starts_with(name) && !error.contains(value), "{error}");
        }
    }
}
