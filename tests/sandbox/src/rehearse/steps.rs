//! The steps of the rehearsal.

use super::checks::{
    BYSTANDER, check_bindings, check_not_served, check_record_replaced, check_served, check_still_served,
    covered_sites, record_ids,
};
use super::hook::RunningHook;
use super::{Error, POLL_INTERVAL, Rehearsal};
use crate::faults::Fault;

const UPLOAD: &str = "POST /api/certs/upload";
/// Exit code for a temporary failure that `edgecert sync` retries.
const EXIT_TEMPORARY: i32 = 75;

/// Adds the sites and reports them.
pub(super) fn set_up(rehearsal: &mut Rehearsal<'_>) {
    let covered = covered_sites(rehearsal);
    for domain in covered.iter().map(String::as_str).chain([BYSTANDER]) {
        rehearsal.sandbox.add_site(domain);
    }
    let names = rehearsal.lineage.names.join(", ");
    rehearsal.note(format!("certificate  {names}"));
    rehearsal.note(format!("sites        {}, {BYSTANDER}", covered.join(", ")));
}

/// The first certificate is uploaded and bound to the sites that it covers, and to no other.
pub(super) fn first_certificate(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    check_not_served(rehearsal);
    rehearsal.deploy()?;
    let records = record_ids(rehearsal);
    rehearsal.record = records.first().copied();
    rehearsal.check(records.len() == 1, "the service has one record", records.len().to_string());
    check_bindings(rehearsal);
    check_served(rehearsal);
    Ok(())
}

/// A renewal replaces the record; the edge serves the old leaf until the push, and the new one after it.
pub(super) fn renewal(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    let old_leaf = rehearsal.lineage.fingerprint.clone();
    if rehearsal.lineage.is_external {
        rehearsal.note(
            "only its CA can renew your certificate, so a test certificate for the same names replaces it",
        );
        rehearsal.lineage = rehearsal.lineage.recreate(rehearsal.files.path(), &rehearsal.authority)?;
    } else {
        rehearsal.lineage.renew(&rehearsal.authority)?;
    }
    rehearsal.sandbox.hold_pushes(true);
    let running = rehearsal.start_deploy(&[])?;
    let running = wait_for_upload(rehearsal, running);
    check_still_served(rehearsal, &old_leaf);
    rehearsal.note("now the service pushes it");
    rehearsal.sandbox.hold_pushes(false);
    rehearsal.finish(running, 0)?;
    check_record_replaced(rehearsal);
    check_bindings(rehearsal);
    check_served(rehearsal);
    Ok(())
}

/// The service fails once and then loses a response: the hook retries, and no duplicate record appears.
pub(super) fn unreliable_service(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.lineage.renew(&rehearsal.authority)?;
    rehearsal.sandbox.add_fault(Fault::status(UPLOAD, 503).header("Retry-After", "0").body("busy"));
    rehearsal.sandbox.add_fault(Fault::close_after(UPLOAD));
    let uploads_before = completed_uploads(rehearsal);
    rehearsal.deploy()?;
    let attempts = completed_uploads(rehearsal) - uploads_before;
    rehearsal.check(attempts == 3, "the hook sent the upload 3 times", attempts.to_string());
    check_record_replaced(rehearsal);
    check_bindings(rehearsal);
    check_served(rehearsal);
    Ok(())
}

/// The service is down until the hook times out: the hook records the failure, and `sync` retries it.
pub(super) fn service_outage(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    let old_leaf = rehearsal.lineage.fingerprint.clone();
    rehearsal.lineage.renew(&rehearsal.authority)?;
    rehearsal.sandbox.add_fault(Fault::status("*", 503).body("maintenance").times(u32::MAX));
    let running = rehearsal.start_deploy(&[("EDGECERT_TIMEOUT", "2".to_owned())])?;
    rehearsal.finish(running, EXIT_TEMPORARY)?;
    check_still_served(rehearsal, &old_leaf);
    rehearsal.note("the service recovers; certbot does not run the hook again, but the timer runs sync");
    rehearsal.sandbox.clear_faults();
    rehearsal.sync()?;
    check_record_replaced(rehearsal);
    check_bindings(rehearsal);
    check_served(rehearsal);
    rehearsal.note("the timer again");
    let requests_before = rehearsal.sandbox.requests().len();
    rehearsal.sync()?;
    let requests = rehearsal.sandbox.requests().len() - requests_before;
    rehearsal.check(
        requests == 2,
        "it listed certificates and sites and sent nothing else",
        format!("{requests} requests"),
    );
    Ok(())
}

/// Waits until the service has handled an upload or the hook has ended; [`Rehearsal::finish`] finds out why.
fn wait_for_upload(rehearsal: &Rehearsal<'_>, mut running: RunningHook) -> RunningHook {
    let uploads_before = completed_uploads(rehearsal);
    while completed_uploads(rehearsal) == uploads_before
        && !running.has_exited()
        && !running.is_overdue()
        && !rehearsal.interrupt.is_set()
    {
        std::thread::sleep(POLL_INTERVAL);
    }
    running
}

/// Counts the uploads that were responded to or cut off by a fault.
fn completed_uploads(rehearsal: &Rehearsal<'_>) -> usize {
    let requests = rehearsal.sandbox.requests();
    let uploads = requests.iter().filter(|request| request.path == "/api/certs/upload");
    uploads.filter(|request| request.status.is_some() || request.fault.is_some()).count()
}
