//! `edgecert sites`: its subcommands and flags.

mod value;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

pub(crate) use self::value::{Glob, Origin, Setting, SettingParser, SiteName};
use super::{ServiceArgs, WaitArgs};
use crate::names::Domain;

// `edgecert sites …`. A site is named by its number or by its domain everywhere.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum SitesCommand {
    /// List the account's sites
    List(ListArgs),
    /// Show everything about one site
    #[command(
        after_help = "Examples:\n  edgecert sites get shop.example.com\n  edgecert sites get 10 --json"
    )]
    Get(OneArgs),
    /// Create a site, and show the DNS record that it needs
    Create(CreateArgs),
    /// Change fields of a site; all others stay as they are
    Update(UpdateArgs),
    /// Switch the acceleration of a site on
    #[command(
        after_help = "Examples:\n  edgecert sites enable shop.example.com\n  edgecert sites enable 10 --wait"
    )]
    Enable(OneArgs),
    /// Switch the acceleration of a site off, at once
    #[command(
        after_help = "Examples:\n  edgecert sites disable shop.example.com\n  edgecert sites disable 10 --json"
    )]
    Disable(OneArgs),
    /// Delete a site with its DNS records and edge configuration, for good
    Delete(DeleteArgs),
    /// Bind a site to a certificate of the account
    Bind(BindArgs),
}

// `edgecert sites list`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert sites list
  edgecert sites list --domain '*.example.com'
  edgecert sites list --without-cert --unsynced --json

Days left are shown for certificates that edgecert deployed from this machine.")]
pub(crate) struct ListArgs {
    /// Only sites whose domain fits: `*` stands for any text, `?` for one character
    #[arg(long, value_name = "GLOB")]
    pub(crate) domain: Option<Glob>,

    /// Only sites without a certificate
    #[arg(long)]
    pub(crate) without_cert: bool,

    /// Only sites whose configuration has not reached the edge
    #[arg(long)]
    pub(crate) unsynced: bool,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

// A command that needs a site and nothing else.
#[derive(Args, Clone, Debug)]
pub(crate) struct OneArgs {
    /// Number or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

// `edgecert sites create`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert sites create new.example.com --origin 192.0.2.10
  edgecert sites create new.example.com --origin 192.0.2.10:8080,weight=2 --origin 192.0.2.11:8080 \
--set origin_protocol=http --set force_https=true --wait
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
    pub(crate) service: ServiceArgs,
}

// `edgecert sites update`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert sites update shop.example.com --set force_https=true --diff
  edgecert sites update 10 --set load_balance=weight --set remark='the shop' --wait
  edgecert sites update 10 --from site.json")]
pub(crate) struct UpdateArgs {
    /// Number or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    #[command(flatten)]
    pub(crate) fields: FieldArgs,

    /// Show what changed
    #[arg(long)]
    pub(crate) diff: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

// What is to be saved of a site.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FieldArgs {
    /// Origin that the edge fetches from (can be repeated); all of them have the same port
    #[arg(long = "origin", value_name = "ADDR[:PORT][,weight=N]")]
    pub(crate) origins: Vec<Origin>,

    /// Field to set (can be repeated); JSON where the value is JSON, else text
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = SettingParser, hide_possible_values = true)]
    pub(crate) settings: Vec<Setting>,

    /// File with an object of fields in JSON, `-` for standard input; --set and --origin win over it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
}

// `edgecert sites delete`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert sites delete shop.example.com --yes
  edgecert sites delete 10 --yes --json")]
pub(crate) struct DeleteArgs {
    /// Number or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    /// Do not ask; needed where there is no terminal
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

// `edgecert sites bind`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  edgecert sites bind shop.example.com 5\n  edgecert sites bind 10 5 --wait"
)]
pub(crate) struct BindArgs {
    /// Number or domain of the site
    #[arg(value_name = "ID|DOMAIN")]
    pub(crate) site: SiteName,

    /// Number of the certificate, as `certs list` shows it
    #[arg(value_name = "CERT_ID")]
    pub(crate) cert: u64,

    /// Bind it although it does not cover the domain
    #[arg(long)]
    pub(crate) allow_uncovered: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

impl SitesCommand {
    /// Its name in the JSON object.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::List(_) => "sites list",
            Self::Get(_) => "sites get",
            Self::Create(_) => "sites create",
            Self::Update(_) => "sites update",
            Self::Enable(_) => "sites enable",
            Self::Disable(_) => "sites disable",
            Self::Delete(_) => "sites delete",
            Self::Bind(_) => "sites bind",
        }
    }
}
