//! `edgecert sites`: its subcommands and flags.

mod value;

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::Value;

pub(crate) use self::value::{SiteName, glob_matches};
use self::value::{assignment, glob, origin};
use crate::names::Domain;
use crate::settings::{Connection, Seconds, quiet};

// `edgecert sites …`. Every command takes a site by ID or by domain.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum SitesCommand {
    /// List the account's sites
    List(ListArgs),
    /// Show all fields of a site
    #[command(
        after_help = "Examples:\n  edgecert sites get shop.example.com\n  edgecert sites get 10 --json"
    )]
    Get(SiteArgs),
    /// Create a site and show the DNS record to configure
    Create(CreateArgs),
    /// Change some fields of a site
    Update(UpdateArgs),
    /// Enable a site
    #[command(
        after_help = "Examples:\n  edgecert sites enable shop.example.com\n  edgecert sites enable 10 --wait"
    )]
    Enable(SiteArgs),
    /// Disable a site; acceleration stops immediately
    #[command(
        after_help = "Examples:\n  edgecert sites disable shop.example.com\n  edgecert sites disable 10 --json"
    )]
    Disable(SiteArgs),
    /// Delete a site with its DNS records and edge configuration
    Delete(DeleteArgs),
    /// Bind a site to a certificate
    Bind(BindArgs),
}

// `edgecert sites list`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert sites list
  edgecert sites list --domain '*.example.com'
  edgecert sites list --without-cert --unsynced --json")]
pub(crate) struct ListArgs {
    /// Only sites whose domain matches: `*` is any text, `?` any one character, `[ab]` one of these
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub(crate) domain: Option<glob::Pattern>,

    /// Only sites without a certificate
    #[arg(long)]
    pub(crate) without_cert: bool,

    /// Only sites whose configuration has not reached the edge
    #[arg(long)]
    pub(crate) unsynced: bool,

    #[command(flatten)]
    pub(crate) service: Connection,
}

// A site, and how to reach the service: all that most commands take.
#[derive(Args, Clone, Debug)]
pub(crate) struct SiteArgs {
    /// ID or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) service: Connection,
}

// `edgecert sites create`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert sites create new.example.com --origin 192.0.2.10
  edgecert sites create new.example.com --origin 192.0.2.10 --origin 192.0.2.11
  edgecert sites create new.example.com --origin 192.0.2.10,weight=2 --wait
  edgecert sites create new.example.com --from site.json")]
pub(crate) struct CreateArgs {
    /// Domain to accelerate
    #[arg(value_name = "DOMAIN")]
    pub(crate) domain: Domain,

    #[command(flatten)]
    pub(crate) fields: FieldArgs,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) service: Connection,
}

// `edgecert sites update`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert sites update shop.example.com --set force_https=true --diff
  edgecert sites update 10 --set load_balance=weight --set remark='the shop'
  edgecert sites update 10 --from site.json")]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) fields: FieldArgs,

    /// Show the old and the new value of each changed field
    #[arg(long)]
    pub(crate) diff: bool,

    #[command(flatten)]
    pub(crate) target: SiteArgs,
}

// Optional wait for the push to the edge. No doc comment: clap would take it for the summary of every command that has
// these flags.
#[derive(Args, Clone, Copy, Debug, Default)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
pub(crate) struct WaitArgs {
    /// Wait up to SECS for the configuration to reach the edge [default: 30] [env: EDGECERT_WAIT]
    #[arg(long, value_name = "SECS", num_args = 0..=1, require_equals = true, value_parser = quiet::<Seconds>())]
    #[expect(clippy::option_option, reason = "absent, alone, and with a number")]
    pub(crate) wait: Option<Option<Seconds>>,
}

// Fields to save.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FieldArgs {
    /// Origin server (repeatable); all origins must use the same port
    #[arg(long = "origin", value_name = "ADDR[:PORT][,weight=N]", value_parser = origin)]
    pub(crate) origins: Vec<(Value, Option<NonZeroU16>)>,

    /// Field to set (repeatable); a value that parses as JSON is sent as JSON, any other as text
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = assignment)]
    pub(crate) assignments: Vec<(String, Value)>,

    /// Set `cert_id` even if that certificate does not cover the domain, or if the site is left without a certificate
    #[arg(long)]
    pub(crate) allow_uncovered: bool,

    /// JSON file with an object of fields, `-` for standard input; --set and --origin override it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
}

// `edgecert sites delete`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert sites delete shop.example.com --yes
  edgecert sites delete 10 --yes --json

A deleted site cannot be restored.")]
pub(crate) struct DeleteArgs {
    /// ID or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    /// Do not ask for confirmation (required without a terminal)
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) service: Connection,
}

// `edgecert sites bind`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  edgecert sites bind shop.example.com 5\n  edgecert sites bind 10 5 --wait"
)]
pub(crate) struct BindArgs {
    /// ID or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    /// Certificate ID, from `edgecert certs list`
    #[arg(value_name = "CERT_ID")]
    pub(crate) cert: u64,

    /// Bind it even if it does not cover the domain
    #[arg(long)]
    pub(crate) allow_uncovered: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) service: Connection,
}
