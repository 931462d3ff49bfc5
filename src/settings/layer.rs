//! All settings, each listed once. Flag, environment variable, file key, help, merging and state files follow from the
//! list.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::value::{Kind, Value};
use super::{
    BaseUrl, EdgeAddresses, ProxySetting, RecordName, TIMEOUT, TrustAnchors, VERIFY, VERIFY_EVERY, Verify,
    WAIT,
};
use crate::file::recorded_path;

/// One setting, as help and errors describe it.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// Key in the configuration file.
    pub(crate) name: &'static str,
    /// Summary, as an imperative or noun phrase.
    pub(crate) help: &'static str,
    /// Placeholder for the value in the help.
    pub(crate) value_name: &'static str,
    pub(crate) kind: Kind,
    /// Value or phrase that the help shows as the default.
    pub(crate) default: Option<&'static (dyn Display + Sync)>,
    /// Whether a `[[lineage]]` entry may set it too.
    pub(crate) is_per_lineage: bool,
}

/// Reads settings from one source: command line, environment or file.
pub(crate) trait Reader {
    /// Returns the value of a setting; `None` if it is unset or invalid there.
    fn read<T: Value>(&mut self, setting: &'static Setting) -> Option<T>;
}

macro_rules! settings {
    ($(#[doc = $help:literal] $(#[serde($serde:meta)])? $name:ident: $type:ty = $setting:expr,)+) => {
        /// The settings from one source; `None` if unset there.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[expect(clippy::doc_markdown, reason = "help is plain text")]
        #[allow(rustdoc::bare_urls, reason = "help is plain text")]
        pub(crate) struct Layer {
            $(
                #[doc = $help]
                #[serde(skip_serializing_if = "Option::is_none" $(, $serde)?)]
                pub(crate) $name: Option<$type>,
            )+
        }

        /// All settings, in the order of the help.
        pub(crate) static SETTINGS: &[Setting] =
            &[$(Setting { name: stringify!($name), help: $help.trim_ascii(), kind: <$type as Value>::KIND, ..$setting }),+];

        impl Layer {
            /// Reads each setting.
            pub(crate) fn read(reader: &mut impl Reader) -> Self {
                let mut settings = SETTINGS.iter();
                Self { $($name: settings.next().and_then(|setting| reader.read(setting)),)+ }
            }

            /// Fills unset settings from a layer of lower priority.
            pub(crate) fn or(self, lower: Self) -> Self {
                Self { $($name: self.$name.or(lower.$name),)+ }
            }

            /// The value of each setting as text, in the order of [`SETTINGS`].
            pub(super) fn texts(&self) -> Vec<Option<String>> {
                vec![$(self.$name.as_ref().map(Value::text)),+]
            }
        }
    };
}

settings! {
    /// Base URL of the service, for example https://api.example.net
    base_url: BaseUrl = per_lineage("URL"),
    /// File that holds the API key; EDGECERT_API_KEY holds the key itself
    #[serde(with = "recorded_path::option")]
    api_key_file: PathBuf = per_lineage("FILE"),
    /// CA certificates to trust for requests to the service
    #[serde(with = "recorded_path::option")]
    ca_file: PathBuf = per_lineage("FILE").default(&"the system's trust store"),
    /// Proxy for requests to the service, without credentials; `off` uses none
    proxy: ProxySetting = per_lineage("URL").default(&"the variables that curl reads"),
    /// Directory of the state files
    state_dir: PathBuf = global("DIR"),
    /// Deadline for the whole run
    timeout: NonZeroU64 = per_lineage("SECS").default(&TIMEOUT),
    /// Wait up to SECS for the edge to serve the certificate; 0 does not wait
    wait: u64 = per_lineage("SECS").default(&WAIT),
    /// Verify the result by TLS handshakes with the edge
    verify: Verify = per_lineage("MODE").default(&VERIFY),
    /// How often `sync` checks what the edge serves for an unchanged lineage; 0 disables the check
    verify_every: u64 = per_lineage("SECS").default(&VERIFY_EVERY),
    /// Edges to verify, separated by commas
    edge_address: EdgeAddresses = per_lineage("HOST:PORT").default(&"the site's cname, port 443"),
    /// Refuse chains that do not lead to a root in FILE, or of the system if it is `system`; `off` disables the check
    trust_anchors: TrustAnchors = per_lineage("FILE").default(&"a warning, with the system's roots"),
    /// Name of the records in the service
    name: RecordName = per_lineage("NAME").default(&"chosen by the service"),
    /// Rebind covered sites that are bound to another record
    rebind: bool = per_lineage("BOOL"),
    /// Allow certificates from test, staging and self-signed issuers
    allow_untrusted: bool = per_lineage("BOOL"),
    /// Succeed if no site is covered
    skip_unmatched: bool = per_lineage("BOOL"),
}

/// A setting for the whole run. The macro fills in name, help and kind.
const fn global(value_name: &'static str) -> Setting {
    Setting { name: "", help: "", value_name, kind: Kind::Text, default: None, is_per_lineage: false }
}

/// A setting that a `[[lineage]]` entry may set too.
const fn per_lineage(value_name: &'static str) -> Setting {
    Setting { is_per_lineage: true, ..global(value_name) }
}

impl Setting {
    const fn default(self, default: &'static (dyn Display + Sync)) -> Self {
        Self { default: Some(default), ..self }
    }

    /// The default as it would be written, or described.
    pub(super) fn default_text(&self) -> Option<String> {
        let off = (self.kind == Kind::Switch).then(|| false.text());
        self.default.map(ToString::to_string).or(off)
    }

    /// The environment variable, such as `EDGECERT_BASE_URL`.
    pub(crate) fn variable(&self) -> String {
        format!("EDGECERT_{}", self.name.to_ascii_uppercase())
    }

    /// The flag without its dashes, such as `base-url`.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}
