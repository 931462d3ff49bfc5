//! The values that completions offer. They come from files of this host: a completion sends no request, changes no file
//! and reports no error.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cmd::doctor;
use crate::context::Context;
use crate::names::Domain;
use crate::settings::{Configuration, Layer, Layers, Location};
use crate::state::Store;
use crate::text;

/// The kinds of candidates.
#[derive(Clone, Copy)]
pub(super) enum Candidates {
    Lineages,
    Recorded,
    Domains,
}

/// Lists the candidates, sorted.
pub(super) fn list(kind: Candidates, context: &Context) -> BTreeSet<String> {
    let unusable;
    let configuration = if let Ok(configuration) = context.configuration() {
        configuration
    } else {
        unusable = context.without_configuration();
        &unusable
    };
    let flags = Layer::default();
    let layers = Layers::new(&flags, &context.env, configuration);
    let store = layers.state_dir().map(|directory| Store::at(&directory));
    let recorded = store.iter().flat_map(Store::peek);
    match kind {
        Candidates::Recorded => recorded.filter_map(|lineage| offered(&lineage.directory)).collect(),
        Candidates::Lineages => {
            let recorded = recorded.map(|lineage| lineage.directory);
            let of_clients = doctor::lineages_of_clients(&context.env).filter_map(|source| source.directory);
            let all = recorded.chain(of_clients).chain(configured(configuration));
            all.filter(|directory| directory.is_dir()).filter_map(|directory| offered(&directory)).collect()
        }
        Candidates::Domains => {
            let recorded = recorded.flat_map(|lineage| lineage.domains);
            let recorded = recorded.filter_map(|name| name.parse::<Domain>().ok());
            let configured = configuration.lineages.iter().flat_map(|entry| entry.domains.iter().cloned());
            recorded.chain(configured).map(|domain| domain.spelled().to_owned()).collect()
        }
    }
}

fn configured(configuration: &Configuration) -> impl Iterator<Item = PathBuf> {
    configuration.lineages.iter().filter_map(|entry| match &entry.location {
        Location::Directory(directory) => Some(directory.clone()),
        Location::Pattern(_) | Location::Files { .. } => None,
    })
}

/// The path as text; `None` if it would have to be escaped, because a candidate has to be the path itself.
fn offered(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned).filter(|name| *name == text::path(path))
}
