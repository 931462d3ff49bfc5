//! How a lineage is deployed: the options of its last run, and those that hold for later certificates.

use serde::{Deserialize, Serialize};

use super::LineageState;
use crate::settings::{Guards, Layer, RecordedSettings};

/// How a lineage is to be deployed. The API key is not part of it: every run reads it from its own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "one for each guard")]
pub(crate) struct DeployOptions {
    /// Base URL of the service; `None`: no run has been able to read its settings.
    pub(crate) service: Option<String>,
    /// The sites to deploy to; empty: every covered one.
    pub(crate) domains: Vec<String>,
    /// Settings of the command line and the environment, for the runs that retry.
    #[serde(rename = "asked")]
    pub(crate) overrides: Overrides,
    pub(crate) allow_shrink: bool,
    pub(crate) allow_older: bool,
    pub(crate) replace_lets: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) allow_partial: bool,
}

/// Options of a run that are not from the configuration file, which every run reads again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overrides {
    pub(crate) domains: Vec<String>,
    pub(crate) settings: Layer,
}

/// Where the options of a run come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An ACME client's hook. They hold for later certificates, too.
    Hook,
    /// A run by hand. They hold for its certificate.
    Hand,
    /// The state: a run of `sync`.
    State,
}

/// The options for certificates after that of the last run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LaterOptions {
    /// The options of the last hook.
    hook: Overrides,
    /// Base URL, key file and CA file of the last run by hand: if nothing else names the service, it can still be reached.
    service: Layer,
    /// The options of a pending deployment that a run by hand does not complete, and that remains pending after that
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<DeployOptions>,
}

/// The options that a state file holds for a certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedOptions {
    pub(crate) overrides: Overrides,
    /// See [`RecordedSettings`].
    service: Layer,
    pub(crate) guards: Guards,
    /// Whether they hold for this certificate only.
    pub(crate) is_for_one_leaf: bool,
}

impl RecordedOptions {
    pub(crate) fn settings(&self) -> RecordedSettings {
        RecordedSettings { options: self.overrides.settings.clone(), service: self.service.clone() }
    }
}

impl LaterOptions {
    /// The options for later certificates after a run with these options.
    pub(super) fn after(before: Option<&LineageState>, options: &DeployOptions, origin: Origin) -> Self {
        let pending = before.filter(|before| before.pending_since.is_some()).map(|before| &before.options);
        let before = before.map(LineageState::later_options).unwrap_or_default();
        // Another choice of sites by hand replaces an earlier one, which may have been a mistake.
        let pending = pending.filter(|pending| pending.overrides.domains == before.hook.domains);
        match origin {
            Origin::Hook => Self { hook: options.overrides.clone(), interrupted: None, ..before },
            Origin::Hand => {
                let interrupted = before.interrupted.or_else(|| pending.cloned());
                let interrupted = interrupted.filter(|interrupted| !options.include(interrupted));
                Self { service: service_of(options, before.service), interrupted, ..before }
            }
            Origin::State => before,
        }
    }
}

/// Where a run by hand reached the service. The key and CA files of an earlier run remain if it was the same service.
fn service_of(options: &DeployOptions, before: Layer) -> Layer {
    let Some(url) = options.service.as_ref().and_then(|url| url.parse().ok()) else { return before };
    let given = &options.overrides.settings;
    let service = Layer {
        base_url: Some(url),
        api_key_file: given.api_key_file.clone(),
        ca_file: given.ca_file.clone(),
        ..Layer::default()
    };
    if before.base_url == service.base_url { service.or(before) } else { service }
}

impl DeployOptions {
    /// Whether a deployment with these options is for all sites of a deployment with the others.
    fn include(&self, others: &Self) -> bool {
        let is_same_service = others.service.is_none() || others.service == self.service;
        let has_all =
            !others.domains.is_empty() && others.domains.iter().all(|one| self.domains.contains(one));
        is_same_service && (self.domains.is_empty() || has_all)
    }
}

impl LineageState {
    /// Takes the options of the deployment that the current run interrupted, if any.
    pub(super) fn take_interrupted(&mut self) -> Option<DeployOptions> {
        self.later.as_mut()?.interrupted.take()
    }

    /// The options for the leaf on disk; `is_recorded` says whether it is that of the last run. A guard is overridden for
    /// one certificate only.
    pub(crate) fn options_for(&self, is_recorded: bool) -> RecordedOptions {
        let LaterOptions { hook, service, .. } = self.later_options();
        if !is_recorded {
            return RecordedOptions { overrides: hook, service, ..RecordedOptions::default() };
        }
        let DeployOptions { allow_shrink, allow_older, replace_lets, allow_partial, .. } = self.options;
        let guards = Guards { allow_shrink, allow_older, replace_lets, allow_partial };
        let overrides = self.options.overrides.clone();
        let is_for_one_leaf = overrides != hook || guards != Guards::default();
        RecordedOptions { overrides, service, guards, is_for_one_leaf }
    }

    /// The options for other leaves. An earlier release did not record who gave those of the last run.
    fn later_options(&self) -> LaterOptions {
        let earlier = || LaterOptions { hook: self.options.overrides.clone(), ..LaterOptions::default() };
        self.later.clone().unwrap_or_else(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{DAY_1, ISSUED, SERVICE, leaf, source};
    use super::*;
    use crate::settings::{TrustAnchors, Verify};

    /// Every setting that is recorded.
    fn given(service: &str) -> Layer {
        Layer {
            base_url: service.parse().ok(),
            api_key_file: Some("/key".into()),
            ca_file: Some("/ca".into()),
            verify: Some(Verify::Off),
            verify_every: Some(0),
            edge_address: "192.0.2.1:443".parse().ok(),
            trust_anchors: Some(TrustAnchors::Off),
            rebind: Some(true),
            allow_untrusted: Some(true),
            skip_unmatched: Some(true),
            ..Layer::default()
        }
    }

    fn run(before: Option<LineageState>, settings: Layer, origin: Origin) -> LineageState {
        let options = DeployOptions {
            service: Some(settings.base_url.as_ref().map_or_else(|| SERVICE.into(), ToString::to_string)),
            overrides: Overrides { domains: vec!["a.example".into()], settings },
            allow_shrink: true,
            allow_older: true,
            replace_lets: true,
            allow_partial: true,
            ..DeployOptions::default()
        };
        LineageState::begin(before, source(), (options, origin), Some(leaf("aa", ISSUED)), DAY_1)
    }

    #[test]
    fn options_by_hand_end_with_their_leaf() {
        let state = run(None, given(SERVICE), Origin::Hand);
        let own = state.options_for(true);
        assert_eq!(
            (own.overrides.settings, own.overrides.domains),
            (given(SERVICE), vec!["a.example".into()])
        );
        assert!(own.guards.allow_shrink && own.guards.allow_older && own.is_for_one_leaf);
        let later = state.options_for(false);
        assert_eq!((later.overrides, later.guards), (Overrides::default(), Guards::default()));
        let service = Layer {
            base_url: SERVICE.parse().ok(),
            api_key_file: Some("/key".into()),
            ca_file: Some("/ca".into()),
            ..Layer::default()
        };
        assert_eq!(later.service, service, "where the service is, is not a permission");
    }

    #[test]
    fn hook_options_outlive_runs_by_hand() {
        let hook = run(None, given(SERVICE), Origin::Hook);
        let state = run(Some(hook.clone()), Layer::default(), Origin::Hand);
        let state = run(Some(state), Layer::default(), Origin::State);
        for later in [hook.options_for(false), state.options_for(false)] {
            assert_eq!(later.overrides.settings, given(SERVICE));
            assert_eq!(
                (later.guards, later.is_for_one_leaf),
                (Guards::default(), false),
                "guards are for one leaf"
            );
        }
        let state = run(Some(state), Layer::default(), Origin::Hook);
        assert_eq!(state.options_for(false).overrides.settings, Layer::default());
    }

    #[test]
    fn files_belong_to_their_service() {
        let first = run(None, given(SERVICE), Origin::Hand);
        let same = run(Some(first.clone()), Layer::default(), Origin::Hand);
        assert_eq!(same.options_for(false).service, first.options_for(false).service);
        let other = Layer { base_url: "https://other.example.net".parse().ok(), ..Layer::default() };
        let elsewhere = run(Some(first), other.clone(), Origin::Hand);
        assert_eq!(elsewhere.options_for(false).service, other);
    }

    #[test]
    fn earlier_release_recorded_the_hooks_options() {
        let mut state = run(None, given(SERVICE), Origin::Hand);
        state.later = None;
        assert_eq!(state.options_for(false).overrides, state.options.overrides);
        let state = run(Some(state), Layer::default(), Origin::State);
        assert_eq!(state.options_for(false).overrides.settings, given(SERVICE));
    }
}
