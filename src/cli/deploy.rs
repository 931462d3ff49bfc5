//! `edgecert deploy` and `edgecert plan`: their flags.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::names::Domain;
use crate::settings::{Guards, Layer};
use crate::source::{Named, STANDARD_INPUT, is_standard_input};

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
    pub(crate) certificate: CertificateArgs,

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

// The lineage. Without any of these flags, the ACME client's variables name it. No doc comment: clap would take it for
// the summary of every command that has these flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Certificate")]
pub(crate) struct CertificateArgs {
    /// Certificate chain in PEM, leaf first; - is standard input, which may also hold the key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<PathBuf>,

    /// Private key in PEM; - is standard input
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,

    /// Directory of an ACME client (certbot, acme.sh, lego, Caddy, ...), or a mounted Kubernetes secret
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "key"], value_hint = ValueHint::DirPath)]
    pub(crate) lineage: Option<PathBuf>,
}

impl CertificateArgs {
    /// The files or the directory that the flags name.
    pub(crate) fn named(&self) -> Named {
        let file = |path: &Option<PathBuf>| path.as_deref().map(|path| standard_input(path).to_owned());
        let (cert, key) = (file(&self.cert), file(&self.key));
        // Standard input can be read only once.
        let key = key.filter(|key| !(is_standard_input(key) && cert.as_ref() == Some(key)));
        Named { cert, key, lineage: self.lineage.clone() }
    }
}

/// The path of standard input for `-`, and otherwise the path itself.
fn standard_input(path: &Path) -> &Path {
    if path == Path::new("-") { Path::new(STANDARD_INPUT) } else { path }
}
