//! Flags of the commands that call the service without deploying: `certs` and `sites`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::settings::Layer;

// Connection settings. No doc comment, here and below: clap would take it for the summary of every command that has
// these flags.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
#[command(next_help_heading = "Settings (flag, else environment, else configuration file)")]
pub(crate) struct ServiceArgs {
    /// Base URL of the service, for example https://api.example.net [env: EDGECERT_BASE_URL]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// File that holds the API key [env: EDGECERT_API_KEY_FILE; the key itself: EDGECERT_API_KEY]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    api_key_file: Option<PathBuf>,

    /// CA certificates to trust instead of the system's trust store [env: EDGECERT_CA_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca_file: Option<PathBuf>,

    /// Deadline for the whole run [default: 90] [env: EDGECERT_TIMEOUT]
    #[arg(long, value_name = "SECS")]
    timeout: Option<u64>,
}

// Optional wait for the push to the edge.
#[derive(Args, Clone, Copy, Debug, Default)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
pub(crate) struct WaitArgs {
    /// Wait up to SECS until the configuration has reached the edge [default: 30] [env: EDGECERT_WAIT]
    #[arg(long, value_name = "SECS", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "absent, alone, and with a number")]
    wait: Option<Option<u64>>,
}

impl ServiceArgs {
    /// Converts the flags to a layer of settings.
    pub(crate) fn layer(&self, wait: WaitArgs) -> Layer {
        Layer {
            base_url: self.base_url.clone(),
            api_key_file: self.api_key_file.clone(),
            ca_file: self.ca_file.clone(),
            timeout: self.timeout,
            wait: wait.wait.flatten(),
            ..Layer::default()
        }
    }
}

impl WaitArgs {
    /// Whether `--wait` was given.
    pub(crate) fn is_wanted(self) -> bool {
        self.wait.is_some()
    }
}
