//! Flags of the commands that call the service without deploying: `certs` and `sites`.

use clap::Args;

use crate::settings::{Connection, Layer, Seconds, quiet};

// Settings of the connection. No doc comment, here and below: clap would take it for the summary of every command that
// has these flags.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServiceArgs {
    #[command(flatten)]
    connection: Connection,
}

// Optional wait for the push to the edge.
#[derive(Args, Clone, Copy, Debug, Default)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
pub(crate) struct WaitArgs {
    /// Wait up to SECS for the configuration to reach the edge [default: 30] [env: EDGECERT_WAIT]
    #[arg(long, value_name = "SECS", num_args = 0..=1, require_equals = true, value_parser = quiet::<Seconds>())]
    #[expect(clippy::option_option, reason = "absent, alone, and with a number")]
    wait: Option<Option<Seconds>>,
}

impl ServiceArgs {
    /// Converts the flags to a layer of settings.
    pub(crate) fn layer(&self, wait: WaitArgs) -> Layer {
        Layer { wait: wait.wait.flatten(), connection: self.connection.clone(), ..Layer::default() }
    }
}

impl WaitArgs {
    /// Whether `--wait` was given.
    pub(crate) fn is_wanted(self) -> bool {
        self.wait.is_some()
    }
}
