//! The command line.

pub(crate) mod output;
pub(crate) mod rehearse;
pub(crate) mod serve;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, value_parser};
use edgecert_sandbox::SCENARIOS;

/// The value of `--scenario` that plays all of them.
pub(crate) const ALL: &str = "all";

/// A local stand-in for the edge acceleration service, for rehearsal and tests
#[derive(Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve the API, the edge and the control port until interrupted
    ///
    /// Only loopback addresses are accepted. The API describes itself at /openapi.json. The control port
    /// needs no key: POST /faults, /packages/ID and /push change how the service behaves, and GET /requests,
    /// /faults, /edge, /dns and /quirks show its state.
    Serve(ServeArgs),
    /// Run the hook against a temporary sandbox as certbot does, and check each step
    ///
    /// A scenario is a story of a few such steps. Each has a sandbox and certificates of its own.
    ///
    /// The hook is the program that `EDGECERT_BIN` names, or else the `edgecert` in the directory of this
    /// program. The exit code is 0 only if every check passed.
    Rehearse(RehearseArgs),
}

#[derive(Args)]
pub(crate) struct RehearseArgs {
    /// Play this scenario, or all of them [default: first-and-renewal, followed by the steps to install edgecert]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = scenario_names())]
    pub(crate) scenario: Option<String>,

    /// List the scenarios
    #[arg(long, exclusive = true)]
    pub(crate) list: bool,

    /// Deploy the certificate in this directory first [default: a test certificate]
    ///
    /// Only the scenario first-and-renewal can do that; the others choose the dates of their certificates.
    #[arg(long, value_name = "DIR")]
    pub(crate) lineage: Option<PathBuf>,

    /// Kill a hook that runs longer than this
    // lego's limit; the hook's own deadline is 90 seconds.
    #[arg(long, value_name = "SECS", default_value_t = 120, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) hook_timeout: u64,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Address of the API; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8790")]
    pub(crate) listen: SocketAddr,

    /// Address of the edge, which serves TLS and plain HTTP
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8793")]
    pub(crate) edge_listen: SocketAddr,

    /// Address of the control port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8799")]
    pub(crate) control_listen: SocketAddr,

    /// Store the database in this directory [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Load accounts, sites and certificates from this JSON file [default: one account, no site]
    #[arg(long, value_name = "FILE")]
    pub(crate) world: Option<PathBuf>,

    /// Serve the API over HTTPS with a certificate of a temporary CA
    #[arg(long)]
    pub(crate) tls: bool,

    /// Push a saved change to the edge after this time
    #[arg(long, value_name = "SECS", default_value_t = 2.0, value_parser = parse_seconds)]
    pub(crate) push_seconds: f64,

    /// Vary what the API document leaves open; 0 is the plain service
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) quirks: u64,

    /// Write the addresses and the API key to this JSON file once the ports are open
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

fn scenario_names() -> PossibleValuesParser {
    SCENARIOS.iter().map(|scenario| scenario.name).chain([ALL]).into()
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0 to 86400".to_owned()),
    }
}
