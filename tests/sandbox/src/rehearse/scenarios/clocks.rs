//! What depends on the time: short lifetimes, and runs that do not happen.

use super::{CHECK_CRITICAL, CHECK_OK, CHECK_WARNING};
use crate::Error;
use crate::rehearse::Rehearsal;

const CHECK: [&str; 2] = ["status", "--check"];

pub(super) fn six_day_life(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.step("day six", "30 of 160 hours are left, and nothing has renewed the certificate")?;
    rehearsal.lineage.renew_between(&rehearsal.authority, [-129, 31])?;
    rehearsal.deploy_first()?;
    rehearsal.note("the monitoring system asks");
    rehearsal.run(&CHECK, CHECK_WARNING)?;
    rehearsal.check_output("certificate expires in 30 hours", "the warning names the time left");

    rehearsal.step("renewal", "the client gets a certificate for the next 160 hours, and runs the hook")?;
    rehearsal.lineage.renew_between(&rehearsal.authority, [-1, 159])?;
    rehearsal.deploy(0)?;
    rehearsal.check_renewed();
    rehearsal.note("the monitoring system asks again");
    rehearsal.run(&CHECK, CHECK_OK)?;

    rehearsal.step("fixed limit", "the same check with a limit of 14 days")?;
    rehearsal.run(&[&CHECK[..], &["--warning", "14"]].concat(), CHECK_WARNING)
}

pub(super) fn dead_timer(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.step("healthy host", "the hook has deployed, and the timer has run sync")?;
    rehearsal.deploy_first()?;
    rehearsal.sync(0)?;
    rehearsal.note("the monitoring system asks");
    rehearsal.run(&CHECK, CHECK_OK)?;

    rehearsal.step("dead timer", "two days pass without a run of sync")?;
    rehearsal.pass_hours(48)?;
    rehearsal.run(&CHECK, CHECK_CRITICAL)?;
    rehearsal.check_output("sync last ran 2 days ago", "the alarm names the cause");

    rehearsal.step("repaired timer", "sync runs again")?;
    rehearsal.sync(0)?;
    rehearsal.run(&CHECK, CHECK_OK)
}
