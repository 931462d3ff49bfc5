//! The scenarios. Each reads as a script.

mod clocks;
mod first_and_renewal;
mod hosts;
mod neighbours;
mod service;

use super::{Rehearsal, Scenario};
use crate::Error;

const UPLOAD: &str = "POST /api/certs/upload";

/// Exit codes of the hook: a guard or a check refused, the service refused, a temporary failure that `edgecert sync`
/// retries, and an invalid API key.
const EXIT_GUARDED: i32 = 65;
const EXIT_REFUSED: i32 = 69;
const EXIT_TEMPORARY: i32 = 75;
const EXIT_API_KEY: i32 = 77;
/// Exit codes of `status --check`.
const CHECK_OK: i32 = 0;
const CHECK_WARNING: i32 = 1;
const CHECK_CRITICAL: i32 = 2;

/// How many scenarios begin.
fn first_certificate(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.step("first certificate", "certbot saves it and runs its deploy hook")?;
    rehearsal.deploy_first()
}

/// All scenarios. `rehearse` alone plays the first.
pub static SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "first-and-renewal",
        summary: "a first certificate, its renewal, lost responses, and an outage of the service",
        why: "an ACME client runs its deploy hook once and moves on, whatever the service does at that moment",
        shown: "every certificate reached the edge, and `edgecert sync` finished what the hook could not",
        takes_lineage: true,
        play: first_and_renewal::play,
    },
    Scenario {
        name: "six-day-life",
        summary: "a certificate that is valid for six days only",
        why: "an alarm 14 days before the end suits certificates of 90 days, and would never stop for those of 6 days",
        shown: "the limits of `status --check` follow the lifetime: it warned in the last quarter, and only then",
        takes_lineage: false,
        play: clocks::six_day_life,
    },
    Scenario {
        name: "mass-renewal",
        summary: "fifty certificates are renewed at once",
        why: "after an incident at the CA everything is renewed within minutes, and the service must not be flooded",
        shown: "one run of `edgecert sync` deployed fifty renewals, and listed the account once",
        takes_lineage: false,
        play: hosts::mass_renewal,
    },
    Scenario {
        name: "drift",
        summary: "another client of the account changes what edgecert has deployed",
        why: "scripts and colleagues with the same account can make the edge serve another certificate, unnoticed",
        shown: "`edgecert sync` undid both changes to an older certificate, and refused to undo that to a later one",
        takes_lineage: false,
        play: neighbours::drift,
    },
    Scenario {
        name: "edge-left-behind",
        summary: "one of two addresses of the edge keeps serving the old certificate",
        why: "the service reports success, but some visitors get a certificate that will expire",
        shown: "no success was reported while one address was behind, and `edgecert sync` saw it catch up",
        takes_lineage: false,
        play: service::edge_left_behind,
    },
    Scenario {
        name: "revoked-key",
        summary: "the service has revoked the API key",
        why: "once an API key is revoked, every renewal fails, often without anyone noticing",
        shown: "the hook named the cause and recorded the renewal, and `edgecert sync` deployed it with a new key",
        takes_lineage: false,
        play: service::revoked_key,
    },
    Scenario {
        name: "traffic-used-up",
        summary: "the service disables the site, because the traffic of its package is used up",
        why: "the edge does not serve the site at all, so that no deployment can be seen to succeed",
        shown: "the hook named the cause, and the edge served the renewal once the package was topped up",
        takes_lineage: false,
        play: service::traffic_used_up,
    },
    Scenario {
        name: "two-lineages",
        summary: "two lineages (certificates that a client renews in place) cover the same site",
        why: "each would replace the other's certificate, and a forgotten one could bring back an old certificate",
        shown: "the certificate issued later is served, and the other lineage is reported as superseded and left alone",
        takes_lineage: false,
        play: neighbours::two_lineages,
    },
    Scenario {
        name: "dead-timer",
        summary: "the timer that runs `edgecert sync` has stopped",
        why: "nothing fails when nothing runs: the next failed renewal would not be retried",
        shown: "`edgecert status --check` raised the alarm two days after the last run, and was content after the next",
        takes_lineage: false,
        play: clocks::dead_timer,
    },
    Scenario {
        name: "empty-state",
        summary: "a container loses its state directory when it restarts",
        why: "a program that trusts only its own records would upload everything again after each restart",
        shown: "`edgecert sync` asked the edge, sent nothing that it serves already, and deployed only the renewal",
        takes_lineage: false,
        play: hosts::empty_state,
    },
    Scenario {
        name: "power-cut",
        summary: "the power fails in the middle of a deployment",
        why: "the ACME client does not run its hook again, so the rest of the work must not be forgotten",
        shown: "whether the power failed before or after the upload, `edgecert sync` finished the work",
        takes_lineage: false,
        play: hosts::power_cut,
    },
];
