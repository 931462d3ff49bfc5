//! Overrides of the guards that protect other sites and newer certificates.

use serde::{Deserialize, Serialize};

/// Guards that a run overrides, for the certificate of that run only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "four separate guards")]
pub(crate) struct Guards {
    /// Replace a record even if another site bound to it loses coverage.
    pub(crate) allow_shrink: bool,
    /// Replace a certificate that was issued later.
    pub(crate) allow_older: bool,
    /// Replace a record that the service issues and renews itself.
    pub(crate) replace_lets: bool,
    /// Replace a record although the service's listing is incomplete.
    pub(crate) allow_partial: bool,
}
