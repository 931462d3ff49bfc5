//! What can be known of each lineage without asking anybody: its files, its memory, its settings.

use std::sync::Arc;

use time::OffsetDateTime;

use crate::bundle::{self, LeafPeek};
use crate::error::CommandError;
use crate::file::ReadError;
use crate::inventory::{Member, Shard};
use crate::names::Domain;
use crate::settings::{self, Guards, Layer, Layers, LineageEntry, Settings};
use crate::source::Source;
use crate::state::{self, IssueDates, LineageState};
use crate::text::rfc3339_millis;

/// A lineage that can be worked on.
pub(super) struct Lineage {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) settings: Arc<Settings>,
    pub(super) domains: Vec<Domain>,
    /// What an earlier run was summary.
    pub(super) asked: state::Overrides,
    /// Overrides hold for the certificate that they were given for.
    pub(super) guards: Guards,
    /// Names of the leaf on disk; none where it cannot be read.
    pub(super) names: Vec<String>,
    /// What was deployed to its sites.
    pub(super) sites: Vec<state::SiteState>,
    /// When the last run on it was begun; `None`: there was none.
    pub(super) begun: Option<OffsetDateTime>,
    /// Why it has to be deployed; `None`: only the service can tell whether it has to.
    pub(super) reason: Option<Reason>,
}

/// Why a lineage is deployed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Reason {
    #[error("never deployed before")]
    New,
    #[error("renewed")]
    Renewed,
    #[error("pending since {}", rfc3339_millis(*.0))]
    Pending(OffsetDateTime),
    #[error("what is asked for has changed")]
    Ordered,
    /// Only a second look can tell whether a client is switching them right now.
    #[error("its files are gone")]
    Gone,
    /// That they are there is remembered, so that it is said when they are gone again.
    #[error("its files are back")]
    Back,
    #[error("{0}")]
    Drifted(String),
}

/// What the scan finds of a lineage.
pub(super) enum Found {
    Lineage(Box<Lineage>),
    /// Its files are gone, which was reported before.
    Gone,
    Failed(String, CommandError),
}

/// Looks at lineages one by one.
pub(super) struct Scan<'a> {
    layers: &'a Layers<'a>,
    pub(super) shard: Option<Shard>,
    /// Settings of lineages that were summary the same, which most are.
    known: Vec<(Layer, Option<&'a LineageEntry>, Arc<Settings>)>,
    pub(super) issued: IssueDates,
}

impl<'a> Scan<'a> {
    pub(super) fn new(layers: &'a Layers<'a>, shard: Option<Shard>) -> Self {
        Self { layers, shard, known: Vec::new(), issued: IssueDates::default() }
    }

    /// What is there of a lineage; `None`: it is of another share.
    pub(super) fn look(&mut self, member: Member<'a>) -> Option<Found> {
        if let Some(memory) = &member.state {
            self.issued.add(memory);
        }
        if self.shard.is_some_and(|shard| !shard.contains(&member.name)) {
            return None;
        }
        let name = member.name.clone();
        Some(self.lineage(member).unwrap_or_else(|error| Found::Failed(name, error)))
    }

    fn lineage(&mut self, member: Member<'a>) -> Result<Found, CommandError> {
        let domains = member.domains();
        let Member { name, source, entry, state: memory } = member;
        let source = source?;
        let known = memory.as_ref().and_then(|memory| memory.leaf.as_ref());
        let peek = bundle::peek_leaf(&source.files, known.map(|known| known.fingerprint.as_str()));
        let is_gone = peek.as_ref().is_err_and(ReadError::is_missing);
        if is_gone && memory.as_ref().is_some_and(|memory| memory.missing_since.is_some()) {
            return Ok(Found::Gone);
        }
        let order = memory.as_ref().map(|memory| memory.options.clone()).unwrap_or_default();
        let settings = self.settings(&order.overrides.settings, entry)?;
        let names = match &peek {
            Ok(LeafPeek::Known) => known.map(|known| known.names.clone()).unwrap_or_default(),
            Ok(LeafPeek::Leaf(leaf)) => leaf.names(),
            Ok(LeafPeek::Unclear) | Err(_) => Vec::new(),
        };
        let is_known = matches!(&peek, Ok(LeafPeek::Known));
        let reason = if is_gone && memory.is_some() {
            Some(Reason::Gone)
        } else {
            memory.as_ref().map_or(Some(Reason::New), |memory| reason(memory, is_known, &settings, &domains))
        };
        let guards = Guards {
            allow_shrink: is_known && order.allow_shrink,
            allow_older: is_known && order.allow_older,
            replace_lets: is_known && order.replace_lets,
        };
        let (begun, sites) = memory.map(|memory| (memory.begun_at, memory.sites)).unzip();
        let sites = sites.unwrap_or_default();
        let asked = order.overrides;
        let lineage = Lineage { name, source, settings, domains, asked, guards, names, sites, begun, reason };
        Ok(Found::Lineage(Box::new(lineage)))
    }

    fn settings(
        &mut self,
        summary: &Layer,
        entry: Option<&'a LineageEntry>,
    ) -> Result<Arc<Settings>, settings::Error> {
        let same = |other: Option<&LineageEntry>| match (other, entry) {
            (Some(a), Some(b)) => std::ptr::eq(a, b),
            (None, None) => true,
            _ => false,
        };
        if let Some((.., settings)) =
            self.known.iter().find(|(layer, other, _)| layer == summary && same(*other))
        {
            return Ok(Arc::clone(settings));
        }
        let settings = self.layers.resolve_recorded(summary, entry)?;
        let settings = Arc::new(settings);
        self.known.push((summary.clone(), entry, Arc::clone(&settings)));
        Ok(settings)
    }
}

/// Why a lineage that was deployed before has to be deployed again, as far as can be summary from here.
fn reason(memory: &LineageState, is_known: bool, settings: &Settings, domains: &[Domain]) -> Option<Reason> {
    let service = settings.base_url.to_string();
    let is_ordered = memory.options.service.as_ref().is_none_or(|known| *known == service)
        && memory.options.domains.iter().map(String::as_str).eq(domains.iter().map(Domain::spelled));
    if let Some(since) = memory.pending_since {
        Some(Reason::Pending(since))
    } else if !is_known {
        Some(Reason::Renewed)
    } else if memory.missing_since.is_some() {
        Some(Reason::Back)
    } else if !is_ordered {
        Some(Reason::Ordered)
    } else {
        None
    }
}
