//! The heartbeat: calls `heartbeat_url` after each `sync`, so that the receiver notices when a host stops syncing, even
//! if that host can no longer notify anybody. A failure is a warning. The URL is a secret, so no message names it.

use std::fmt::Display;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use reqwest::Url;

use crate::api::{anonymous_client, failure_reason};
use crate::clock::Deadline;
use crate::context::Context;
use crate::error::CommandError;
use crate::file;
use crate::report::{Report, Style};
use crate::runtime::Runtime;
use crate::settings::{Proxy, Roots};
use crate::text::sanitize_untruncated;

/// Time limit for the whole call.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest summary, in characters.
const MAX_SUMMARY: usize = 1000;

/// Calls the heartbeat URL, if there is one, with the exit code and a summary of a run.
pub(crate) fn send_heartbeat(report: &Report, context: &Context) -> Result<(), String> {
    let Some(url) = &context.configuration().heartbeat_url else { return Ok(()) };
    let (exit_code, summary) = (report.exit_code(), summary(report));
    let url = url.with_exit_code(exit_code);
    let proxy = Proxy::find(&url, None, &context.env).map_err(not_called)?;
    let roots = Roots::of_system(&context.env);
    log::info!("calling heartbeat_url with exit code {exit_code}");
    let (sender, receiver) = mpsc::channel();
    // On a separate thread: after a panic, the current one may be inside a runtime.
    let call = move || sender.send(call(url, summary, proxy.as_ref(), &roots, TIMEOUT));
    thread::Builder::new().spawn(call).map_err(|error| not_called(file::reason(&error)))?;
    // Not joined: if that thread panics as well, it waits for the exit.
    receiver.recv_timeout(TIMEOUT).unwrap_or_else(|_| Err(timed_out()))
}

fn not_called(reason: impl Display) -> String {
    format!("cannot call heartbeat_url: {reason}")
}

fn timed_out() -> String {
    format!("heartbeat_url did not respond within {} seconds", TIMEOUT.as_secs())
}

fn call(url: Url, body: String, proxy: Option<&Proxy>, roots: &Roots, limit: Duration) -> Result<(), String> {
    let deadline = Deadline::after(limit);
    let client = anonymous_client(roots, url.scheme() == "http", proxy, deadline).map_err(not_called)?;
    let request = client.post(url).header("Content-Type", "text/plain; charset=utf-8").body(body);
    let runtime = Runtime::new().map_err(not_called)?;
    // The client's own timeout does not cover name resolution.
    let response = async { tokio::time::timeout(deadline.left(), request.send()).await };
    let response = runtime.block_on(response).map_err(|_| timed_out())?;
    let status = response.map_err(|error| not_called(failure_reason(error)))?.status().as_u16();
    log::info!("heartbeat_url responded with status {status}");
    match status {
        200..=299 => Ok(()),
        300..=399 => {
            Err(format!("heartbeat_url responded with redirect {status}; redirects are never followed"))
        }
        _ => Err(format!("heartbeat_url responded with status {status}, expected 200 to 299")),
    }
}

/// The last line of the report and the most severe error; if there is neither, the first warning.
fn summary(report: &Report) -> String {
    let text = report.to_text(Style::PLAIN);
    let error = report.most_severe_error().map(CommandError::message);
    let mut parts: Vec<&str> = text.lines().last().into_iter().chain(error).collect();
    if parts.is_empty() {
        parts.extend(report.warnings.first().map(String::as_str));
    }
    sanitize_untruncated(&parts.join("; ")).chars().take(MAX_SUMMARY).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::env::Env;

    #[test]
    fn silent_receiver_is_given_up() {
        let receiver = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", receiver.local_addr().unwrap()).parse().unwrap();
        let roots = Roots::of_system(&Env::default());
        let result = call(url, String::new(), None, &roots, Duration::from_millis(100));
        assert_eq!(result.unwrap_err(), "heartbeat_url did not respond within 10 seconds");
    }

    #[test]
    fn summary_is_one_short_line() {
        let mut report = Report::new("sync");
        report.warnings.push("no lineage\nwas ever deployed".into());
        assert_eq!(summary(&report), "no lineage was ever deployed");
        report.push("* deployed  shop\n1 lineage: 1 deployed (0.1 s)");
        assert_eq!(summary(&report), "1 lineage: 1 deployed (0.1 s)");
        report.fail(anyhow::anyhow!("two\r\nlines\u{1b}[2J {}", "x".repeat(5000)));
        report.fail(anyhow::anyhow!("another"));
        let summary = summary(&report);
        let start = "1 lineage: 1 deployed (0.1 s); internal error: two lines [2J xxx";
        assert!(summary.starts_with(start) && summary.chars().count() == MAX_SUMMARY, "{summary}");
    }
}
