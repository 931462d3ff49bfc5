//! What happens to the host: many renewals at once, a lost state directory, a power cut.

use std::path::PathBuf;

use super::{UPLOAD, first_certificate};
use crate::Error;
use crate::faults::Fault;
use crate::rehearse::Rehearsal;
use crate::rehearse::checks::served_leaf;
use crate::rehearse::lineage::Lineage;

pub(super) fn mass_renewal(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    const COUNT: usize = 50;
    let summary = format!("a client saves this one and {} others, and the timer runs sync", COUNT - 1);
    rehearsal.step("many certificates", &summary)?;
    let mut others = Vec::new();
    for number in 1..COUNT {
        let domain = format!("site{number}.example");
        rehearsal.sandbox.add_site(&domain);
        others.push(Lineage::create(rehearsal.files.path(), &rehearsal.authority, &[&domain])?);
    }
    configure(rehearsal, "*");
    rehearsal.sync(0)?;

    rehearsal.step("many renewals", "all are renewed before the timer runs sync again")?;
    rehearsal.renew()?;
    for lineage in &mut others {
        lineage.renew(&rehearsal.authority)?;
    }
    let requests_before = rehearsal.sandbox.requests().len();
    rehearsal.sync(0)?;
    let requests: Vec<_> = rehearsal.sandbox.requests().into_iter().skip(requests_before).collect();
    let count = |path: &str| requests.iter().filter(|request| request.path == path).count();
    let (uploads, listings) = (count("/api/certs/upload"), count("/api/certs"));
    rehearsal.check(uploads == COUNT, format!("it sent {COUNT} uploads"), uploads.to_string());
    rehearsal.check(listings == 1, "it listed the certificates once", listings.to_string());
    rehearsal.note(format!("it sent {} requests in all", requests.len()));
    rehearsal.check_served();
    let edge = rehearsal.sandbox.endpoints().edge.clone();
    let is_served = |lineage: &&Lineage| {
        let served = lineage.names.first().map(|name| served_leaf(&edge, name));
        served.is_some_and(|served| served.as_ref() == Ok(&lineage.fingerprint))
    };
    let served = others.iter().filter(is_served).count();
    let expected = format!("it serves the new leaves of the {} others", others.len());
    rehearsal.check(served == others.len(), expected, served.to_string());
    Ok(())
}

pub(super) fn empty_state(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.step("first start", "the container runs sync, with the certificate mounted")?;
    configure(rehearsal, "shop.example");
    rehearsal.sync(0)?;
    rehearsal.record = rehearsal.record_ids().first().copied();
    rehearsal.check_bindings();
    rehearsal.check_served();

    rehearsal.step("restart", "the state directory is gone")?;
    rehearsal.lose_state()?;
    let requests_before = rehearsal.sandbox.requests().len();
    rehearsal.sync(0)?;
    rehearsal.check_output("never deployed before", "it remembers nothing of the first run");
    rehearsal.check_only_listed(requests_before);

    rehearsal.step("renewal and restart", "the certificate is new, and the state directory is gone again")?;
    rehearsal.lose_state()?;
    rehearsal.renew()?;
    rehearsal.sync(0)?;
    rehearsal.check_renewed();
    Ok(())
}

/// Configures lineages, instead of hooks that record them.
fn configure(rehearsal: &mut Rehearsal<'_>, name: &str) {
    let live = rehearsal.lineage.directory.parent().map(PathBuf::from).unwrap_or_default();
    rehearsal.config = format!("[[lineage]]\npath = \"{}\"\n", live.join(name).display());
    rehearsal.note("config.toml:");
    for line in rehearsal.config.clone().lines() {
        rehearsal.note(format!("  {line}"));
    }
}

pub(super) fn power_cut(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    first_certificate(rehearsal)?;

    rehearsal.step("power cut before the upload", "the hook is killed while it lists the certificates")?;
    let old_leaf = rehearsal.lineage.fingerprint.clone();
    cut_power_during(rehearsal, "GET /api/certs", |rehearsal, before| {
        rehearsal.sandbox.requests().iter().skip(before).any(|request| request.fault.is_some())
    })?;
    rehearsal.check_still_served(&old_leaf);
    rehearsal.note("the power is back, and the timer runs sync");
    rehearsal.sync(0)?;
    rehearsal.check_renewed();

    rehearsal.step("power cut after the upload", "it is killed before it reads the response")?;
    cut_power_during(rehearsal, UPLOAD, |rehearsal, _| {
        let served = served_leaf(&rehearsal.sandbox.endpoints().edge, "shop.example");
        served.as_ref() == Ok(&rehearsal.lineage.fingerprint)
    })?;
    rehearsal.check_served();
    rehearsal.note("the power is back; the host does not know that the service has stored the upload");
    rehearsal.sync(0)?;
    rehearsal.check_renewed();
    Ok(())
}

/// Renews, and kills the hook while it waits for the response to a request, which never arrives. `has_happened` gets
/// the number of requests before.
fn cut_power_during(
    rehearsal: &mut Rehearsal<'_>,
    request: &str,
    has_happened: fn(&Rehearsal<'_>, usize) -> bool,
) -> Result<(), Error> {
    const NEVER: f64 = 600.0;
    rehearsal.renew()?;
    rehearsal.sandbox.add_fault(Fault::stall(request, NEVER));
    let requests_before = rehearsal.sandbox.requests().len();
    let running = rehearsal.start_deploy(&[])?;
    let mut running = rehearsal.wait_until(running, || has_happened(rehearsal, requests_before));
    let was_running = !running.has_exited();
    drop(running);
    rehearsal.sandbox.clear_faults();
    rehearsal.check(
        was_running,
        "the hook was killed (SIGKILL) in the middle of its work",
        "it had ended before",
    );
    rehearsal.interrupt.check()
}
