//! The lineages that edgecert looks after, and whether their files are fit to be deployed.

use std::io;
use std::path::Path;

use time::OffsetDateTime;

use super::finding::{Finding, Subject};
use crate::bundle::{self, Chain};
use crate::check::{self, CheckContext, Status};
use crate::error::{ErrorKind, shell_word};
use crate::file::{self, ReadError};
use crate::inventory::{Inventory, Member};
use crate::names::{Domain, Names};
use crate::plan::Allow;
use crate::settings::Layers;
use crate::source::{Client, Source};
use crate::state::{IssueDates, StateError};
use crate::text;

/// A lineage on this host.
pub(super) struct Lineage {
    pub(super) source: Source,
    pub(super) order: Order,
    /// `None`: its certificate cannot be read.
    pub(super) leaf: Option<Leaf>,
}

/// What is asked of `deploy` for one lineage.
#[derive(Default)]
pub(super) struct Order {
    /// Empty: every covered site.
    pub(super) domains: Vec<Domain>,
    pub(super) allow: Allow,
    pub(super) allow_untrusted: bool,
    pub(super) skip_unmatched: bool,
}

/// What counts of its certificate.
pub(super) struct Leaf {
    names: Names,
    /// For people.
    pub(super) shown: Vec<String>,
    pub(super) issued: OffsetDateTime,
}

impl Leaf {
    pub(super) fn of(chain: &Chain) -> Self {
        let leaf = &chain.leaf;
        Self { names: Names::of(leaf.san()), shown: leaf.names(), issued: leaf.not_before }
    }
}

impl Lineage {
    /// What to call it: its directory, or its certificate where that was named.
    pub(super) fn title(&self) -> String {
        let directory = self.source.directory.as_ref().filter(|_| self.source.client != Client::Files);
        text::path(directory.unwrap_or(&self.source.files.cert))
    }

    /// Whether its certificate covers a site.
    pub(super) fn covers(&self, site: &Domain) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| leaf.names.cover(site))
    }

    /// Whether it is deployed to a site.
    pub(super) fn reaches(&self, site: &Domain) -> bool {
        (self.order.domains.is_empty() || self.order.domains.contains(site)) && self.covers(site)
    }
}

/// The lineages of the configuration and those that were deployed before, and those that cannot be found.
pub(super) fn known(
    inventory: Inventory<'_>,
    layers: &Layers<'_>,
    issued: &mut IssueDates,
    strange: impl FnMut(StateError),
) -> (Vec<(Source, Order)>, Vec<Finding>) {
    let (mut known, mut findings): (Vec<(Source, Order)>, Vec<Finding>) = Default::default();
    let meet = |member: Member<'_>| {
        if let Some(memory) = &member.state {
            issued.add(memory);
        }
        let order = Order::of(&member, layers);
        match member.source {
            Ok(source) => known.push((source, order)),
            Err(error) => findings.push(Finding::from_error(Subject::Lineage, error)),
        }
    };
    inventory.visit(meet, strange);
    (known, findings)
}

impl Order {
    fn of(member: &Member<'_>, layers: &Layers<'_>) -> Self {
        let told = member.state.as_ref().map(|memory| memory.options.clone()).unwrap_or_default();
        let lineage_options = layers.lineage_options(&told.overrides.settings, member.entry);
        Self {
            domains: member.domains(),
            allow: Allow {
                rebind: lineage_options.rebind,
                shrink: told.allow_shrink,
                older: told.allow_older,
                lets: told.replace_lets,
            },
            allow_untrusted: lineage_options.allow_untrusted,
            skip_unmatched: lineage_options.skip_unmatched,
        }
    }
}

/// Reads a lineage and looks whether it would be deployed.
pub(super) fn look(source: Source, order: Order, now: OffsetDateTime) -> (Lineage, Vec<Finding>) {
    let mut lineage = Lineage { source, order, leaf: None };
    let mut findings: Vec<Finding> = open_key(&lineage.source).into_iter().collect();
    let mut files = lineage.source.files.clone();
    // Certificate and key may stand in one file.
    files.key.get_or_insert_with(|| files.cert.clone());
    let bundle = match gone(&files.cert).map_or_else(|| bundle::load(&files), Err) {
        Ok(bundle) => bundle,
        Err(unreadable) => {
            findings.push(unread(unreadable));
            return (lineage, findings);
        }
    };
    lineage.leaf = bundle.chain.as_ref().ok().map(Leaf::of);
    let context = CheckContext {
        domains: &lineage.order.domains,
        at: now,
        untrusted: if lineage.order.allow_untrusted { Status::Warn } else { Status::Fail },
        anchors: None,
        directory: lineage.source.acme_directory.as_deref(),
    };
    let checks = check::run(&bundle, &context);
    findings.extend(checks.into_iter().filter_map(checked));
    if findings.is_empty() {
        let names = lineage.leaf.as_ref().map(|leaf| text::list(&leaf.shown)).unwrap_or_default();
        findings.push(Finding::ok(Subject::Lineage, format!("{}: {names}", lineage.title())));
    }
    (lineage, findings)
}

/// What a local check found, where it is worth telling.
fn checked(check: check::Finding) -> Option<Finding> {
    let remedy = check.hint.unwrap_or_else(|| "`edgecert check` looks at this lineage alone".into());
    match check.status {
        Status::Fail => Some(Finding::fail(Subject::Lineage, ErrorKind::Refused, check.detail, remedy)),
        Status::Warn => Some(Finding::warn(Subject::Lineage, check.detail, remedy)),
        Status::Ok | Status::Skipped => None,
    }
}

/// Others can read the private key. A mounted secret is like that and belongs to the pod alone.
fn open_key(source: &Source) -> Option<Finding> {
    let key = source.files.key.as_ref().filter(|key| file::is_open_to_others(key))?;
    let shown = text::path(key);
    let detail = format!("others can read the private key {shown}");
    let remedy = format!("chmod 600 {}", shell_word(&shown));
    Some(match source.client {
        Client::Kubernetes => {
            Finding::warn(Subject::Lineage, detail, "set defaultMode: 0400 where the secret is mounted")
        }
        _ => Finding::fail(Subject::Lineage, ErrorKind::Config, detail, remedy),
    })
}

/// A certificate that is not there; nobody is switching it.
fn gone(cert: &Path) -> Option<ReadError> {
    let error = std::fs::metadata(cert).err().filter(|error| error.kind() == io::ErrorKind::NotFound)?;
    Some(ReadError::new(cert, &error))
}

fn unread(unreadable: ReadError) -> Finding {
    let missing = unreadable.is_missing();
    let finding = Finding::from_error(Subject::Lineage, unreadable);
    let remedy = "if the lineage is gone for good, take it out of the configuration, or let `edgecert status --forget` forget it";
    if missing { Finding { remedy: Some(remedy.into()), ..finding } } else { finding }
}
