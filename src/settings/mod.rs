//! Settings: flag, then environment, then `[[lineage]]` entry, then configuration file, then default.
//!
//! `layer` lists every setting once, with its flag; the defaults are here: one in a flag would shadow the file.

mod address;
mod api_key;
mod configuration;
mod effective;
mod error;
mod layer;
mod layers;
mod on_failure;
mod proxy;
mod trust_anchors;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::address::{BaseUrl, EdgeAddresses, HeartbeatUrl};
pub(crate) use self::configuration::{
    Configuration, LineageEntry, Location, default_paths, read as read_configuration,
};
pub(crate) use self::effective::{EffectiveSetting, effective};
pub(crate) use self::error::SettingsError;
pub(crate) use self::layer::{Connection, Guards, Layer, Local};
pub(crate) use self::layers::Layers;
pub(crate) use self::on_failure::Program;
pub(crate) use self::proxy::{Proxy, ProxySetting};
pub(crate) use self::trust_anchors::{Roots, TrustPolicy};
pub(crate) use self::value::{RecordName, Seconds, Verify, quiet, switch};
use crate::env::Env;
use crate::secret::Secret;

/// Default time limit of a run, in seconds. lego kills a hook after 120.
pub(crate) const TIMEOUT: u64 = 90;
/// Default wait for the edge, in seconds.
const WAIT: u64 = 30;
const VERIFY: Verify = Verify::Auto;
/// Default interval between handshakes with the sites of an unchanged lineage, in seconds.
const VERIFY_EVERY: u64 = 86_400;

/// The settings of a run, complete and valid.
pub(crate) struct Settings {
    pub(crate) base_url: BaseUrl,
    pub(crate) api_key: Secret,
    pub(crate) roots: Roots,
    /// `None`: requests are sent directly.
    pub(crate) proxy: Option<Proxy>,
    /// The name that uploads give to their records; `None` leaves it to the service.
    pub(crate) name: Option<RecordName>,
    pub(crate) timeout: Duration,
    /// Zero means not to wait.
    pub(crate) wait: Duration,
    pub(crate) verify: Verify,
    /// How often `sync` handshakes with the sites of an unchanged lineage; zero means never.
    pub(crate) verify_every: Duration,
    /// `HOST:PORT` of each edge to verify; if empty, the addresses of the site's `cname`.
    pub(crate) edge_addresses: Vec<String>,
    pub(crate) trust_anchors: TrustPolicy,
    pub(crate) rebind: bool,
    pub(crate) allow_untrusted: bool,
    pub(crate) skip_unmatched: bool,
}

impl Settings {
    /// Completes merged settings with the defaults.
    fn new(base_url: BaseUrl, api_key: Secret, merged: Layer, env: &Env) -> Result<Self, SettingsError> {
        let proxy = Proxy::find(&base_url.0, merged.connection.proxy.as_ref(), env)?;
        let timeout = timeout(&merged);
        Ok(Self {
            base_url,
            api_key,
            proxy,
            name: merged.name,
            roots: merged.connection.ca_file.map_or_else(|| Roots::of_system(env), Roots::File),
            timeout,
            wait: merged.wait.map_or(Duration::from_secs(WAIT), Seconds::duration),
            verify: merged.verify.unwrap_or(VERIFY),
            verify_every: merged.verify_every.map_or(Duration::from_secs(VERIFY_EVERY), Seconds::duration),
            edge_addresses: merged.local.edge_address.map_or_else(Vec::new, |edges| edges.to_vec()),
            trust_anchors: TrustPolicy::new(merged.trust_anchors, env),
            rebind: merged.rebind.unwrap_or(false),
            allow_untrusted: merged.allow_untrusted.unwrap_or(false),
            skip_unmatched: merged.skip_unmatched.unwrap_or(false),
        })
    }

    /// Whether both belong to the same account of the same service, and reach it in the same way.
    pub(crate) fn is_same_service(&self, other: &Self) -> bool {
        self.base_url == other.base_url
            && self.api_key == other.api_key
            && self.roots == other.roots
            && self.proxy.as_ref().map(|proxy| &proxy.url) == other.proxy.as_ref().map(|proxy| &proxy.url)
    }
}

/// The time limit of a run.
fn timeout(merged: &Layer) -> Duration {
    merged.connection.timeout.map_or(Duration::from_secs(TIMEOUT), Seconds::duration)
}

/// The default of a setting, as it would be written or described.
fn default_text(key: &str) -> Option<String> {
    Some(match key {
        "ca_file" => "the system's trust store".into(),
        "proxy" => "the variables that curl reads".into(),
        "timeout" => TIMEOUT.to_string(),
        "edge_address" => "the site's cname, port 443".into(),
        "wait" => WAIT.to_string(),
        "verify" => VERIFY.to_string(),
        "verify_every" => VERIFY_EVERY.to_string(),
        "trust_anchors" => "a warning, with the system's roots".into(),
        "name" => "chosen by the service".into(),
        "rebind" | "allow_untrusted" | "skip_unmatched" => "false".into(),
        _ => return None,
    })
}

/// The directory that systemd created for the unit, else the system's for root, else one in the user's home.
fn default_state_dir(env: &Env) -> Option<PathBuf> {
    let from_systemd = env.raw("STATE_DIRECTORY").and_then(|list| std::env::split_paths(list).next());
    let system = rustix::process::geteuid().is_root().then(|| PathBuf::from("/var/lib/edgecert"));
    let home = env.path("XDG_STATE_HOME").or_else(|| Some(env.path("HOME")?.join(".local/state")));
    from_systemd.or(system).or_else(|| Some(home?.join("edgecert")))
}

#[cfg(test)]
impl Settings {
    /// The defaults, for a service at which nothing listens.
    pub(crate) fn example() -> Self {
        let env = [("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "key")];
        let (flags, env, file) = (Layer::default(), env.into_iter().collect(), Configuration::default());
        Layers::new(&flags, &env, &file).resolve(&Layer::default(), None).unwrap()
    }
}
