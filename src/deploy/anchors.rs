//! The trust anchors that the chain of a deployment is checked against.

use std::sync::Arc;

use rustls::RootCertStore;

use super::Deployment;
use crate::api::SetupError;
use crate::check::{PathRule, Status};
use crate::clock::Deadline;
use crate::settings::{Roots, Settings, TrustPolicy};
use crate::trust::TrustStores;

/// Loaded trust anchors.
pub(crate) struct LoadedAnchors {
    store: Arc<RootCertStore>,
    no_path: Status,
}

impl LoadedAnchors {
    /// Loads the anchors for a deployment; `None` if the path is not to be checked.
    pub(super) fn for_deployment(
        deployment: &Deployment<'_>,
        stores: &TrustStores,
    ) -> Result<Option<Self>, SetupError> {
        let settings = deployment.settings;
        if let TrustPolicy::Advisory(roots) = &settings.trust_anchors
            && deployment.upload_only
            && !connects_with(roots, settings)
        {
            // Loading the system's roots takes longer than the rest of a bare upload.
            return Ok(None);
        }
        Self::load(&settings.trust_anchors, stores, deployment.deadline)
    }

    /// Loads the anchors of a policy; `None` if the path is not to be checked.
    pub(crate) fn load(
        policy: &TrustPolicy,
        stores: &TrustStores,
        deadline: Deadline,
    ) -> Result<Option<Self>, SetupError> {
        match policy {
            TrustPolicy::Off => Ok(None),
            TrustPolicy::Required(roots) => {
                Ok(Some(Self { store: stores.load(roots, deadline)?, no_path: Status::Fail }))
            }
            TrustPolicy::Advisory(roots) => Ok(Self::of_system(roots, stores, deadline)),
        }
    }

    /// Loads the system's roots for a warning. A system without any must not fail the run.
    fn of_system(roots: &Roots, stores: &TrustStores, deadline: Deadline) -> Option<Self> {
        match stores.load(roots, deadline) {
            Ok(store) => Some(Self { store, no_path: Status::Warn }),
            Err(error) => {
                log::info!("the path to a root is not checked: {error}");
                None
            }
        }
    }

    /// The rule for the local checks.
    pub(crate) fn rule(&self) -> PathRule<'_> {
        PathRule { anchors: &self.store, no_path: self.no_path }
    }
}

/// Whether connections to the service load these roots anyway.
fn connects_with(roots: &Roots, settings: &Settings) -> bool {
    !settings.base_url.is_plain() && settings.roots == *roots
}
