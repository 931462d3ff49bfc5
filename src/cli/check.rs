//! `edgecert check`: its flags.

use std::path::PathBuf;

use clap::builder::TypedValueParser as _;
use clap::{Args, ValueHint};
use time::OffsetDateTime;

use crate::names::Domain;
use crate::settings::{Switch, choice};
use crate::source::Named;
use crate::text::rfc3339;

/// Run the local checks, without network or configuration
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert check --lineage /etc/letsencrypt/live/example.com
  edgecert check --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert check --cert fullchain.pem --at 2027-01-31T00:00:00Z

With --cert and without --key, the check of the key is skipped.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) certificate: Named,

    /// Domain that the certificate must cover (repeatable)
    #[arg(long = "domain", value_name = "DOMAIN", help_heading = None::<&'static str>)]
    pub(crate) domains: Vec<Domain>,

    /// Require a path to a root in FILE, or with `system` to a root of the system
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = None::<&'static str>)]
    pub(crate) trust_anchors: Option<PathBuf>,

    /// Warn of a test, staging or self-signed issuer instead of refusing it
    #[arg(long, value_name = "BOOL", value_parser = choice::<Switch>().map(bool::from), num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = None::<&'static str>)]
    pub(crate) allow_untrusted: Option<bool>,

    /// Check as of this time instead of now, for example 2027-01-31T00:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = parse_time, help_heading = None::<&'static str>)]
    pub(crate) at: Option<OffsetDateTime>,
}

fn parse_time(text: &str) -> Result<OffsetDateTime, &'static str> {
    rfc3339::parse(text).ok_or("expected an RFC 3339 time such as 2027-01-31T00:00:00Z")
}
