//! The result of a lineage's deployment, for the system log.

use crate::error::CommandError;
use crate::outcome::Outcome;

/// Result of the deployment of one lineage.
pub struct DeploymentResult<'a> {
    /// The lineage's name, as `status` shows it.
    pub(crate) lineage: &'a str,
    /// The most severe outcome of its sites; `None` if the run failed before it knew them.
    pub(crate) outcome: Option<&'a Outcome>,
    pub(crate) exit_code: u8,
    /// Whether the run sent anything that changes the service.
    pub(crate) changed: bool,
    pub(crate) errors: &'a [CommandError],
}

/// The most severe outcome. Each comes with whether the site is required, that is, whether the run fails unless the
/// site gets the certificate. Other sites count only if none is required.
pub(super) fn most_severe<'a>(
    sites: &(impl Iterator<Item = (&'a Outcome, bool)> + Clone),
) -> Option<&'a Outcome> {
    let most_severe = |wanted: bool| {
        let sites = sites.clone().filter(|(_, is_required)| *is_required == wanted);
        sites.map(|(outcome, _)| outcome).min_by_key(|outcome| rank(outcome))
    };
    most_severe(true).or_else(|| most_severe(false))
}

/// Ranks outcomes, the most severe first, in the order of their exit codes.
fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Guarded => 0,
        Outcome::Refused => 1,
        Outcome::Misbound => 2,
        Outcome::Queued => 3,
        Outcome::Stale => 4,
        Outcome::Unknown(_) => 5,
        Outcome::Uploaded => 6,
        Outcome::Synced => 7,
        Outcome::Served => 8,
        Outcome::Superseded => 9,
        Outcome::Skipped => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_sites_decide_first() {
        let sites = [(Outcome::Misbound, false), (Outcome::Served, true), (Outcome::Stale, true)];
        let of_first = |number: usize| {
            most_severe(&sites[..number].iter().map(|(outcome, is_required)| (outcome, *is_required)))
        };
        assert_eq!(of_first(0), None);
        assert_eq!(of_first(1), Some(&Outcome::Misbound));
        assert_eq!(of_first(2), Some(&Outcome::Served));
        assert_eq!(of_first(3), Some(&Outcome::Stale));
    }
}
