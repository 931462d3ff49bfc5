//! Others who deploy to the same site: another client of the account, another lineage of the host.

use super::{EXIT_GUARDED, first_certificate};
use crate::cert::Leaf;
use crate::rehearse::Rehearsal;
use crate::{Error, IssuedCert};

/// In hours.
const DAY: i64 = 24;
/// One of the sites that the lineage covers.
const SITE: &str = "www.shop.example";

pub(super) fn drift(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.lineage.renew_between(&rehearsal.authority, [-10 * DAY, 80 * DAY])?;
    first_certificate(rehearsal)?;

    rehearsal.step("another record", "a colleague binds a site to an older certificate")?;
    let older = issue_to_colleague(rehearsal, -30 * DAY)?;
    let record = rehearsal.sandbox.upload_as_other_client(SITE, &older.fullchain(), &older.key);
    rehearsal.run(&["sites", "bind", SITE, &record.to_string()], 0)?;
    check_colleagues(rehearsal, &older, "serves the colleague's older leaf")?;
    rehearsal.note("the timer runs sync");
    rehearsal.sync(0)?;
    rehearsal.check_served();

    rehearsal.step("another content", "the colleague replaces the content of that record; no ID changes")?;
    rehearsal.sandbox.replace_cert_silently(record, &older.fullchain(), &older.key);
    check_colleagues(rehearsal, &older, "serves the colleague's older leaf")?;
    rehearsal.note("once a day, sync also asks the edge");
    rehearsal.pass_hours(25)?;
    rehearsal.sync(0)?;
    rehearsal.check_served();

    rehearsal.step("a later certificate", "the colleague replaces it by one that was issued later")?;
    let later = issue_to_colleague(rehearsal, -DAY)?;
    rehearsal.sandbox.replace_cert_silently(record, &later.fullchain(), &later.key);
    rehearsal.pass_hours(25)?;
    rehearsal.sync(EXIT_GUARDED)?;
    rehearsal.check_output("--allow-older", "it says how to replace the later certificate all the same");
    check_colleagues(rehearsal, &later, "still serves the colleague's later leaf")
}

/// Issues a certificate for the site, so many hours from now.
fn issue_to_colleague(rehearsal: &Rehearsal<'_>, hours: i64) -> Result<IssuedCert, Error> {
    rehearsal.authority.issue_between_hours(&[SITE], [hours, 60 * DAY])
}

fn check_colleagues(rehearsal: &mut Rehearsal<'_>, cert: &IssuedCert, what: &str) -> Result<(), Error> {
    let leaf = Leaf::parse(&cert.cert).map_err(Error::Authority)?.fingerprint;
    rehearsal.check_leaf(None, &[SITE.to_owned()], &leaf, what);
    Ok(())
}

pub(super) fn two_lineages(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    first_certificate(rehearsal)?;

    rehearsal.step("second lineage", "another client on this host gets a certificate for the same names")?;
    let later = rehearsal.lineage.recreate(&rehearsal.files.path().join("second"), &rehearsal.authority)?;
    let earlier = std::mem::replace(&mut rehearsal.lineage, later);
    rehearsal.deploy(0)?;
    rehearsal.check_renewed();
    rehearsal.note("the timer runs sync");
    let requests_before = rehearsal.sandbox.requests().len();
    rehearsal.sync(0)?;
    rehearsal.check_only_listed(requests_before);
    rehearsal.run(&["status"], 0)?;
    rehearsal.check_output("superseded", "it reports the first lineage as superseded");

    rehearsal.step("first lineage again", "someone runs its hook by mistake")?;
    let later = std::mem::replace(&mut rehearsal.lineage, earlier);
    rehearsal.deploy(0)?;
    rehearsal.check_output("superseded", "it says that the other lineage's certificate was issued later");
    let sites = rehearsal.covered_sites();
    rehearsal.check_leaf(None, &sites, &later.fingerprint, "still serves the second lineage's leaf");
    Ok(())
}
