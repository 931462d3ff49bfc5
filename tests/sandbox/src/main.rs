//! The program: reads the command line, runs, prints, exits. Nothing else here prints.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use edgecert_sandbox::{Error, Hook, Line, Options, Sandbox, World};

/// A line on standard output; that nobody reads it any more is no error.
macro_rules! say {
    ($($text:tt)*) => { drop(writeln!(std::io::stdout(), $($text)*)) };
}

/// A line on standard error.
macro_rules! complain {
    ($($text:tt)*) => { drop(writeln!(std::io::stderr(), $($text)*)) };
}

/// The edge service for rehearsal and tests
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API, the edge and the control port on loopback until interrupted
    ///
    /// The control port takes POST /faults, /packages/ID and /push ({"hold":true} holds pushes back, no body
    /// finishes them) and shows GET /requests, /faults, /edge, /dns and /quirks. The API describes itself at
    /// /openapi.json.
    Serve(ServeArgs),
    /// Run the real hook against a sandbox of its own, as certbot would, and show each step
    ///
    /// The hook is the program that the variable `EDGECERT_BIN` names, else the one beside this program.
    Rehearse(RehearseArgs),
}

#[derive(Args)]
struct RehearseArgs {
    /// Deploy the certificate of this directory first [default: one made for the rehearsal]
    #[arg(long, value_name = "DIR")]
    lineage: Option<PathBuf>,
}

#[derive(Args)]
struct ServeArgs {
    /// Address of the API; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8790")]
    listen: SocketAddr,

    /// Address of the edge, which speaks TLS and plain HTTP
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8793")]
    edge_listen: SocketAddr,

    /// Address of the control port (faults, requests, packages, dns, edge, push)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8799")]
    control_listen: SocketAddr,

    /// Keep everything in this directory [default: gone at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Accounts, sites and certificates at the start [default: one account, no site]
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,

    /// Serve the API over HTTPS from a CA made for the run
    #[arg(long)]
    tls: bool,

    /// Time from a saved change to the edge
    #[arg(long, value_name = "SECS", default_value_t = 2.0, value_parser = seconds)]
    push_seconds: f64,

    /// Vary what the service's document leaves open; 0 is plain
    #[arg(long, alias = "whims", value_name = "SEED", default_value_t = 0)]
    quirks: u64,

    /// Write where everything is to this file, once it listens
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve(args).map(|()| true),
        Command::Rehearse(args) => rehearse(args.lineage.as_deref()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain!("edgecert-sandbox: {} {error}", label("error:", "31"));
            if let Some(hint) = hint(&error) {
                complain!("edgecert-sandbox: {} {hint}", label("hint:", "36"));
            }
            ExitCode::from(code(&error))
        }
    }
}

fn serve(args: ServeArgs) -> Result<(), Error> {
    let world = args.world.as_deref().map(World::read).transpose()?;
    let named = world.is_some();
    let mut sandbox = Sandbox::start(Options {
        world: world.unwrap_or_default(),
        tls: args.tls,
        push_delay: Duration::from_secs_f64(args.push_seconds),
        quirks: args.quirks,
        data: args.data,
        listen: args.listen,
        edge_listen: args.edge_listen,
        control_listen: args.control_listen,
    })?;
    if named && sandbox.is_resumed() {
        complain!(
            "edgecert-sandbox: {} the data directory holds a world already; --world was not used",
            label("warning:", "33")
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::File { path: PathBuf::from("signals"), source })?;
    runtime.block_on(async {
        let signals = Signals::new()?;
        if let Some(path) = &args.ready_file {
            sandbox.endpoints().write(path)?;
        }
        greet(&sandbox);
        watch(&mut sandbox, signals).await;
        Ok(())
    })
}

/// True when every step did what it should.
#[expect(clippy::disallowed_methods, reason = "the one variable that this program reads")]
fn rehearse(lineage: Option<&Path>) -> Result<bool, Error> {
    let named = std::env::var_os("EDGECERT_BIN").filter(|name| !name.is_empty()).map(PathBuf::from);
    let hook = Hook::find(named.as_deref(), std::env::current_exe().ok().as_deref())?;
    let terminal = std::io::stdout().is_terminal();
    say!("{} rehearses {}", paint(terminal, "edgecert-sandbox", "1"), hook.path().display());
    say!(
        "everything stays on this machine: the service, the edge and the certificates are made for this run"
    );
    let mut step = 0;
    let went_well = edgecert_sandbox::rehearse(&hook, lineage, &mut |line| match line {
        Line::Step(title) => {
            step += 1;
            say!("\n{}", paint(terminal, &format!("{step}. {title}"), "1"));
        }
        Line::Say(text) => say!("{text}"),
        Line::Quote(text) => say!("    {}", paint(terminal, &text, "2")),
        Line::Good(text) => say!("  {} {text}", paint(terminal, "ok", "32")),
        Line::Bad(text) => say!("  {} {text}", paint(terminal, "NOT OK", "31")),
    })?;
    if went_well {
        say!("\nevery step did what it should");
    } else {
        complain!(
            "edgecert-sandbox: {} a step did not do what it should; the rest was left out",
            label("error:", "31")
        );
    }
    Ok(went_well)
}

fn greet(sandbox: &Sandbox) {
    let ready = sandbox.endpoints();
    say!(
        "{} for rehearsal only: its keys are in the open, its certificates are worthless",
        paint(std::io::stdout().is_terminal(), "edgecert-sandbox", "1")
    );
    say!("  api      {}   (key {})", ready.api, ready.api_key);
    say!("  edge     {}", ready.edge);
    say!("  control  {}", ready.control);
    if let Some(ca) = &ready.ca_file {
        say!("  ca file  {}", ca.display());
    }
}

/// Prints notices until a signal ends the run.
async fn watch(sandbox: &mut Sandbox, mut signals: Signals) {
    let Some(mut notices) = sandbox.take_notices() else {
        return;
    };
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
            notice = notices.recv() => match notice {
                Some(notice) => complain!("edgecert-sandbox: {} {notice}", label("notice:", "33")),
                None => return,
            },
        }
    }
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Taken before the ready file is there, so that a signal sent after it is never missed.
    fn new() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let fail = |source| Error::File { path: PathBuf::from("signals"), source };
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(fail)?,
            interrupt: signal(SignalKind::interrupt()).map_err(fail)?,
        })
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0 to 86400".to_owned()),
    }
}

fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::NotLoopback(_) => Some("use 127.0.0.1 or [::1]"),
        Error::Listen { .. } => Some("port 0 picks a free one; --ready-file says which"),
        Error::HookNotFound(_) => {
            Some("build it with: cargo build --release; EDGECERT_BIN names one elsewhere")
        }
        Error::DataInUse(_) => Some("end the other one, or give this one a directory of its own"),
        _ => None,
    }
}

/// Exit codes as in sysexits.h, like the hook's.
fn code(error: &Error) -> u8 {
    match error {
        Error::NotLoopback(_) => 2,
        Error::InvalidWorld(_) => 65,
        Error::File { .. } | Error::HookNotFound(_) => 66,
        Error::Listen { .. } => 69,
        Error::Authority(_) | Error::Database(_) => 70,
        Error::DataInUse(_) => 75,
        Error::SchemaTooNew { .. } => 78,
    }
}

/// A word in colour on standard error, on a terminal only.
fn label(text: &str, colour: &str) -> String {
    paint(std::io::stderr().is_terminal(), text, colour)
}

fn paint(terminal: bool, text: &str, colour: &str) -> String {
    if terminal { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
}
