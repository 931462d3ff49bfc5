//! The scenarios. Each reads as a script.

mod first_and_renewal;

use super::Scenario;

const UPLOAD: &str = "POST /api/certs/upload";
/// Exit code for a temporary failure that `edgecert sync` retries.
const EXIT_TEMPORARY: i32 = 75;

/// All scenarios. `rehearse` alone plays the first.
pub static SCENARIOS: [Scenario; 1] = [Scenario {
    name: "first-and-renewal",
    summary: "the first certificate, its renewal, lost responses, and an outage of the service",
    why: "an ACME client runs its hook once; whatever happens then, the edge must get the certificate",
    shown: "each certificate reached the edge, and a failed run was finished by the timer",
    takes_lineage: true,
    play: first_and_renewal::play,
}];
