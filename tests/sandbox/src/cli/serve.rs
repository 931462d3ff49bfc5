//! `edgecert-sandbox serve`.

use std::time::Duration;

use edgecert_sandbox::{Error, Options, Sandbox, World};

use super::ServeArgs;
use super::output::{Style, line, notice, warning};
use super::signals::Signals;

/// Serves until SIGINT, SIGTERM or SIGHUP.
pub(crate) fn run(args: ServeArgs) -> Result<(), Error> {
    let world = args.world.as_deref().map(World::read).transpose()?;
    let has_world = world.is_some();
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
    if has_world && sandbox.is_resumed() {
        warning("--world was ignored, because the data directory already holds a database");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::Runtime)?.block_on(async {
        // Before the ready file, so that no signal sent after it is lost.
        let signals = Signals::new().map_err(Error::Runtime)?;
        if let Some(path) = &args.ready_file {
            sandbox.endpoints().write(path)?;
        }
        greet(&sandbox);
        print_notices(&mut sandbox, signals).await;
        Ok(())
    })
}

fn greet(sandbox: &Sandbox) {
    let endpoints = sandbox.endpoints();
    line(&format!(
        "{} for rehearsal only: it does not protect keys, and its certificates are untrusted",
        Style::Bold.paint("edgecert-sandbox")
    ));
    line(&format!("  api      {}   (key {})", endpoints.api, endpoints.api_key));
    line(&format!("  edge     {}", endpoints.edge));
    line(&format!("  control  {}", endpoints.control));
    if let Some(ca_file) = &endpoints.ca_file {
        line(&format!("  ca file  {}", ca_file.display()));
    }
}

/// Prints notices until a signal arrives.
async fn print_notices(sandbox: &mut Sandbox, mut signals: Signals) {
    let Some(mut notices) = sandbox.take_notices() else {
        return;
    };
    loop {
        tokio::select! {
            _ = signals.recv() => return,
            received = notices.recv() => match received {
                Some(text) => notice(&text),
                None => return,
            },
        }
    }
}
