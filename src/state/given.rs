//! What a run was given by flags and variables, and which of that holds for later runs. The configuration is never part of
//! it: every run reads it again.

use std::cell::RefCell;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::LineageState;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::settings::{Connection, Guards, Layer};

/// What a run was given by flags and variables. The API key is not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    /// The sites to deploy to; empty: those of the configuration, else every covered one.
    pub(crate) domains: Vec<Domain>,
    pub(crate) settings: Layer,
    #[serde(flatten)]
    pub(crate) guards: Guards,
}

/// How a run deploys a lineage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunOptions {
    /// Base URL of the service; `None`: the settings could not be resolved.
    pub(crate) service: Option<String>,
    /// The sites to deploy to, including those of the configuration; empty: every covered one.
    pub(crate) domains: Vec<Domain>,
    pub(crate) given: Given,
    pub(crate) origin: Origin,
    /// Whether an entry of the configuration says which sites the lineage is for.
    pub(crate) is_configured: bool,
}

/// What started a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An ACME client's hook.
    Hook,
    Hand,
    /// `sync`, which repeats the pending run.
    Retry,
    /// `sync`, with the standing options.
    #[default]
    Standing,
}

/// A run with options of its own that has not ended well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingRun {
    #[serde(flatten)]
    given: Given,
    is_by_hand: bool,
    /// Whether a deployment was pending when this run by hand began, and this one does not include it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    leaves_pending: bool,
}

// The text of the last standing options, and what it says.
thread_local!(static LAST: RefCell<(Box<str>, Option<Given>)> = RefCell::default());

impl Given {
    /// Deserializes the standing options. If their text is that of the last ones, as for most lineages of a host, it is not
    /// parsed again.
    pub(super) fn deserialize_cached<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        let text = <&RawValue>::deserialize(from)?.get();
        LAST.with_borrow_mut(|(last, given)| {
            if **last != *text {
                *given = serde_json::from_str(text).map_err(D::Error::custom)?;
                *last = text.into();
            }
            Ok(given.clone())
        })
    }

    /// What holds for later certificates after a hook: a guard is overridden for one certificate only.
    fn without_guards(self) -> Self {
        Self { guards: Guards::default(), ..self }
    }

    /// Where the service is, and its key.
    fn service(&self) -> Self {
        let Connection { base_url, api_key_file, ca_file, .. } = self.settings.connection.clone();
        let connection = Connection { base_url, api_key_file, ca_file, ..Connection::default() };
        Self { settings: Layer { connection, ..Layer::default() }, ..Self::default() }
    }

    /// What holds for later certificates after a run by hand.
    fn without_permissions(self) -> Self {
        let settings = Layer { rebind: None, allow_untrusted: None, skip_unmatched: None, ..self.settings };
        Self { settings, guards: Guards::default(), ..self }
    }
}

impl LineageState {
    /// Whether the leaf on disk, `None` if it cannot be read at the moment, may be that of the last run.
    pub(crate) fn may_be_recorded(&self, on_disk: Option<&Leaf>) -> bool {
        on_disk.is_none_or(|leaf| self.leaf.as_ref().is_some_and(|own| own.fingerprint == leaf.fingerprint))
    }

    /// The options for the leaf on disk: those of a pending run for it, else the standing ones.
    pub(crate) fn given(&self, on_disk: Option<&Leaf>) -> (Given, Origin) {
        match (&self.pending, &self.standing) {
            (Some(pending), _) if self.may_be_recorded(on_disk) => (pending.given.clone(), Origin::Retry),
            (_, Some(standing)) => (standing.clone(), Origin::Standing),
            // Nothing else says where the service is.
            (Some(pending), None) => (pending.given.service(), Origin::Standing),
            (None, None) => (Given::default(), Origin::Standing),
        }
    }

    /// Notes the options of a run that begins.
    pub(super) fn begin_with(&mut self, options: &RunOptions) {
        let RunOptions { service, domains, given, origin, .. } = options.clone();
        let was_pending = match &self.pending {
            Some(pending) if pending.is_by_hand => pending.leaves_pending,
            _ => self.pending_since.is_some(),
        };
        let has_nothing_standing = self.standing.is_none();
        let is_elsewhere = service.is_some() && self.service.is_some() && service != self.service;
        self.service = service.or(self.service.take());
        match origin {
            Origin::Hook => {
                self.standing = Some(given.clone().without_guards());
                self.is_standing_kept = true;
                self.pending = Some(PendingRun { given, is_by_hand: false, leaves_pending: false });
            }
            Origin::Hand => {
                let is_included = |domain: &Domain| domains.contains(domain);
                let is_for_all =
                    domains.is_empty() || !self.domains.is_empty() && self.domains.iter().all(is_included);
                let leaves_pending = was_pending && (is_elsewhere || !is_for_all);
                self.pending = Some(PendingRun { given, is_by_hand: true, leaves_pending });
            }
            Origin::Retry => {}
            Origin::Standing => {
                let by_hand = self.pending.take().is_some();
                if self.standing.is_none() {
                    // An entry of the configuration says what it is for, or the secrets of a cluster are listed.
                    (self.standing, self.is_standing_kept) = (Some(given), !by_hand);
                }
            }
        }
        if has_nothing_standing || !self.is_pending_by_hand() {
            self.domains = domains;
        }
    }

    /// Ends the pending run, which has succeeded.
    pub(super) fn end_pending(&mut self, options: &RunOptions) {
        match self.pending.take() {
            Some(PendingRun { leaves_pending: true, .. }) => return,
            Some(PendingRun { given, is_by_hand: true, .. }) if !self.is_standing_kept => {
                let domains = if options.is_configured { Vec::new() } else { given.domains.clone() };
                self.standing = Some(Given { domains, ..given.without_permissions() });
                self.domains.clone_from(&options.domains);
            }
            _ => {}
        }
        self.pending_since = None;
    }

    /// Whether the run in progress has options given by hand.
    pub(super) fn is_pending_by_hand(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_by_hand)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::super::fixture::{DAY_1, DAY_2, ISSUED, SERVICE, leaf, served, source};
    use super::*;
    use crate::outcome::ChangedRecords;
    use crate::settings::Verify;
    use Origin::{Hand, Hook, Retry, Standing};

    fn options(domain: &str, settings: Layer, origin: Origin) -> RunOptions {
        let domains: Vec<Domain> = domain.parse().into_iter().collect();
        let guards = Guards { allow_older: true, ..Guards::default() };
        let guards = if origin == Standing { Guards::default() } else { guards };
        RunOptions {
            service: Some(SERVICE.into()),
            domains: domains.clone(),
            given: Given { domains, settings, guards },
            origin,
            is_configured: false,
        }
    }

    /// The state after runs with these options, each with its leaf and exit code; `None`: it was killed.
    fn after(runs: &[(&RunOptions, &str, Option<u8>)]) -> LineageState {
        let mut state = None;
        for (options, fingerprint, code) in runs {
            let leaf = Some(leaf(fingerprint, ISSUED));
            let mut begun = LineageState::begin(state, source(), options, leaf, DAY_1);
            if let Some(code) = code {
                begun.finish((*code, None), served(), &ChangedRecords::default(), options, DAY_2);
            }
            state = Some(begun);
        }
        state.unwrap()
    }

    /// The leaf of the last run, which is `aa`, or another one.
    fn on_disk(is_recorded: bool) -> Option<&'static Leaf> {
        static LEAVES: LazyLock<[Leaf; 2]> = LazyLock::new(|| ["zz", "aa"].map(|name| leaf(name, ISSUED)));
        LEAVES.get(usize::from(is_recorded))
    }

    fn connection() -> Connection {
        let (base_url, api_key_file) = (SERVICE.parse().ok(), Some("/key".into()));
        Connection { base_url, api_key_file, ..Connection::default() }
    }

    fn permissions() -> Layer {
        Layer {
            connection: connection(),
            verify: Some(Verify::Off),
            trust_anchors: Some("off".into()),
            rebind: Some(true),
            allow_untrusted: Some(true),
            skip_unmatched: Some(true),
            ..Layer::default()
        }
    }

    #[test]
    fn cached_options_match_a_fresh_parse() {
        let given = |domain| json!(options(domain, permissions(), Hook).given);
        let ([first, other], invalid) = (["a.example", "b.example"].map(given), json!({"domains": ["."]}));
        for json in [&first, &first, &other, &invalid, &invalid, &other, &first, &json!(null), &first] {
            let text = json.to_string();
            let cached = Given::deserialize_cached(&mut serde_json::Deserializer::from_str(&text)).ok();
            assert_eq!(cached, Option::<Given>::deserialize(json).ok(), "{text}");
            assert_eq!(cached.is_none(), *json == invalid, "{text}");
        }
    }

    #[test]
    fn pending_options_hold_until_the_run_succeeds() {
        let hook = &options("", Layer::default(), Hook);
        let hand = &options("a.example", permissions(), Hand);
        let retry = &RunOptions { origin: Retry, ..hand.clone() };
        // The runs, whether the leaf on disk is that of the last one, and whose options hold.
        let narrow = &options("b.example", Layer::default(), Hook);
        let rows: [(&[_], bool, Origin, &RunOptions); 11] = [
            (&[(narrow, "aa", Some(0)), (hand, "aa", Some(0))], false, Standing, narrow),
            (&[(narrow, "aa", Some(0)), (hand, "aa", Some(0)), (hook, "aa", Some(0))], false, Standing, hook),
            (&[(hook, "aa", Some(0))], true, Standing, hook),
            (&[(hook, "aa", Some(75))], true, Retry, hook),
            (&[(hook, "aa", Some(75))], false, Standing, hook),
            (&[(hook, "aa", Some(0)), (hand, "aa", Some(0))], true, Standing, hook),
            (&[(hook, "aa", Some(0)), (hand, "aa", Some(75))], true, Retry, hand),
            (&[(hook, "aa", Some(0)), (hand, "aa", None)], true, Retry, hand),
            (&[(hook, "aa", Some(0)), (hand, "aa", Some(75))], false, Standing, hook),
            (&[(hook, "aa", Some(0)), (hand, "aa", Some(75)), (retry, "aa", Some(75))], true, Retry, hand),
            (&[(hook, "aa", Some(0)), (hand, "aa", Some(75)), (retry, "aa", Some(0))], true, Standing, hook),
        ];
        for (number, (runs, is_recorded, origin, expected)) in rows.into_iter().enumerate() {
            let (given, found) = after(runs).given(on_disk(is_recorded));
            let expected = match origin {
                Retry => expected.given.clone(),
                _ => expected.given.clone().without_guards(),
            };
            assert_eq!((given, found), (expected, origin), "row {number}");
        }
    }

    #[test]
    fn standing_options_are_never_permissions_by_hand() {
        let hand = &options("a.example", permissions(), Hand);
        let standing = after(&[(hand, "aa", Some(0))]).given(on_disk(true)).0;
        let kept = Layer { rebind: None, allow_untrusted: None, skip_unmatched: None, ..permissions() };
        assert_eq!((&standing.settings, standing.guards), (&kept, Guards::default()));
        assert_eq!(standing.domains, ["a.example".parse().unwrap()]);
        let failed = after(&[(hand, "aa", Some(69))]);
        let service = Layer { connection: connection(), ..Layer::default() };
        let later = failed.given(on_disk(false)).0;
        assert_eq!((later.settings, later.domains), (service, Vec::new()), "it did not succeed");
        // A hook's permissions are for good, its guards are not.
        let hook = &options("", permissions(), Hook);
        let standing = after(&[(hook, "aa", Some(0)), (hand, "aa", Some(0))]).given(on_disk(true)).0;
        assert_eq!((standing.settings, standing.guards), (permissions(), Guards::default()));
        // So are those of the configuration, to which `sync` deployed first.
        let sync = &options("", Layer::default(), Standing);
        assert_eq!(
            after(&[(sync, "aa", Some(0)), (hand, "aa", Some(0))]).given(on_disk(true)).0,
            Given::default()
        );
    }

    #[test]
    fn run_by_hand_ends_only_what_it_includes() {
        let hook = &options("", Layer::default(), Hook);
        let hook_for_a = &options("a.example", Layer::default(), Hook);
        let all = &options("", Layer::default(), Hand);
        let sync = &options("", Layer::default(), Standing);
        let [a, b] = ["a.example", "b.example"].map(|domain| options(domain, Layer::default(), Hand));
        let elsewhere = &RunOptions { service: Some("https://other.example".into()), ..all.clone() };
        let unresolved = &RunOptions { service: None, ..all.clone() };
        let unresolved_hook = &RunOptions { service: None, ..hook.clone() };
        let retry = &RunOptions { origin: Retry, ..all.clone() };
        let rows: [(&[_], bool); 11] = [
            (&[(hook, "aa", Some(75)), (&a, "aa", Some(0))], true),
            (&[(hook, "aa", Some(75)), (all, "aa", Some(0))], false),
            (&[(hook_for_a, "aa", Some(75)), (&a, "aa", Some(0))], false),
            (&[(hook_for_a, "aa", Some(75)), (&b, "aa", Some(0))], true),
            (&[(hook, "aa", Some(0)), (&a, "aa", Some(75)), (&b, "aa", Some(0))], false),
            (&[(hook, "aa", Some(75)), (&a, "aa", Some(75)), (&b, "aa", Some(0))], true),
            (&[(&a, "aa", Some(75)), (&b, "aa", Some(0))], false),
            (&[(all, "aa", Some(0)), (sync, "bb", Some(75)), (&a, "bb", Some(0))], true),
            (&[(hook, "aa", Some(75)), (elsewhere, "aa", Some(0))], true),
            (&[(hook, "aa", Some(75)), (unresolved, "aa", Some(78)), (retry, "aa", Some(0))], false),
            (&[(unresolved_hook, "aa", Some(78)), (all, "aa", Some(0))], false),
        ];
        for (number, (runs, is_pending)) in rows.into_iter().enumerate() {
            assert_eq!(after(runs).pending_since.is_some(), is_pending, "row {number}");
        }
        let narrowed = after(&[(all, "aa", Some(0)), (sync, "bb", Some(75)), (&a, "bb", Some(0))]);
        assert!(narrowed.domains.is_empty() && narrowed.given(on_disk(false)).0.domains.is_empty());
        let replaced = after(&[(&a, "aa", Some(0)), (sync, "bb", Some(0)), (&b, "bb", Some(0))]);
        assert_eq!(replaced.given(on_disk(false)).0.domains, b.domains);
        assert_eq!(after(&[(&a, "aa", Some(75))]).domains, a.domains);
        assert_eq!(after(&[(hook, "aa", Some(0)), (hook_for_a, "aa", Some(75))]).domains, a.domains);
        let retried = after(&[(hook, "aa", Some(75)), (&a, "aa", Some(0))]).given(on_disk(true));
        assert_eq!(retried, (hook.given.clone().without_guards(), Standing), "with the standing options");
        let configured = RunOptions { is_configured: true, ..a };
        assert!(after(&[(&configured, "aa", Some(0))]).given(on_disk(true)).0.domains.is_empty());
    }
}
