//! `edgecert deploy` and `edgecert plan`: their flags.

use clap::Args;

use crate::names::Domain;
use crate::settings::{Guards, Layer};
use crate::source::Named;

/// Deploy a renewed certificate (the default in an ACME client's hook)
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  RENEWED_LINEAGE=/etc/letsencrypt/live/example.com edgecert deploy
  edgecert deploy --lineage /etc/letsencrypt/live/example.com
  edgecert deploy --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert deploy --lineage /etc/letsencrypt/live/example.com --dry-run

Without --lineage and --cert, the variables or arguments of the ACME client that runs the hook
name the files: certbot, acme.sh, lego and dehydrated are recognised.")]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) certificate: Named,

    /// Site to deploy to (repeatable) [default: every covered site]
    #[arg(long = "domain", value_name = "DOMAIN", help_heading = None::<&'static str>)]
    pub(crate) domains: Vec<Domain>,

    /// Show what would be done, and why, without changing anything
    #[arg(long, help_heading = None::<&'static str>)]
    pub(crate) dry_run: bool,

    /// Upload even if every address already serves the certificate
    #[arg(long, help_heading = None::<&'static str>)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) guards: Guards,

    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// Show what deploy would do, and why
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert plan --lineage /etc/letsencrypt/live/example.com
  edgecert plan --lineage /etc/letsencrypt/live/example.com --domain example.com
  edgecert plan --cert fullchain.pem --key privkey.pem --json

A plan reads the account's sites and certificates and what the edge serves, and changes nothing.")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) deploy: DeployArgs,
}
