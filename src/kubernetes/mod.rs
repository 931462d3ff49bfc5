//! Secrets of type `kubernetes.io/tls`, listed by the API server of the cluster that this pod runs in.

mod client;
mod error;
mod secret_list;

use std::path::{Path, PathBuf};

use self::client::Cluster;
pub(crate) use self::error::KubernetesError;
use self::secret_list::Secret;
use crate::clock::Deadline;
use crate::env::Env;
use crate::file;
use crate::runtime::Runtime;
use crate::source::Source;

/// Which secrets to list.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// If empty, the namespace of the pod.
    pub(crate) namespaces: Vec<String>,
    /// A label selector as kubectl takes it.
    pub(crate) selector: Option<String>,
}

/// How often a listing begins again after its continue token has expired.
const MAX_LISTINGS: u32 = 3;

/// The secrets that were listed, and the namespaces that could not be.
pub(crate) struct Found {
    pub(crate) lineages: Vec<Source>,
    pub(crate) failed: Vec<(String, KubernetesError)>,
}

/// Lists the secrets, and keeps in memory those for which `is_wanted` is true, each as a lineage.
pub(crate) fn find(
    selection: &Selection,
    env: &Env,
    deadline: Deadline,
    is_wanted: impl Fn(&Source) -> bool,
) -> Result<Found, KubernetesError> {
    let cluster = Cluster::of_pod(env, deadline)?;
    let own = selection.namespaces.is_empty().then(Cluster::own_namespace).transpose()?;
    let mut found = Found { lineages: Vec::new(), failed: Vec::new() };
    let selector = selection.selector.as_deref();
    Runtime::new()?.block_on(async {
        for namespace in selection.namespaces.iter().chain(&own) {
            let listed = list(&cluster, (namespace, selector), &is_wanted, &mut found.lineages).await;
            found.failed.extend(listed.err().map(|error| (namespace.clone(), error)));
        }
    });
    Ok(found)
}

/// Lists the secrets of one namespace.
async fn list(
    cluster: &Cluster,
    (namespace, selector): (&str, Option<&str>),
    is_wanted: &impl Fn(&Source) -> bool,
    found: &mut Vec<Source>,
) -> Result<(), KubernetesError> {
    for _ in 0..MAX_LISTINGS {
        let mut next = None;
        let expired = loop {
            let page = match cluster.list(namespace, selector, next.as_deref()).await {
                Err(KubernetesError::Expired) => break true,
                page => page?,
            };
            for secret in page.items.into_iter().flatten() {
                found.extend(keep(namespace, secret, is_wanted));
            }
            if page.metadata.next.is_empty() {
                break false;
            }
            next = Some(page.metadata.next);
        };
        if !expired {
            return Ok(());
        }
        log::info!("the list of the secrets in {namespace} has expired; listing them again");
    }
    Err(KubernetesError::Expired)
}

/// Keeps a secret in memory if it is wanted.
fn keep(namespace: &str, secret: Secret, is_wanted: &impl Fn(&Source) -> bool) -> Option<Source> {
    let directory = directory(namespace, &secret.metadata.name)?;
    let source = Source::of_secret(&directory);
    if !secret.is_tls() || !is_wanted(&source) {
        return None;
    }
    let (cert, key) = secret.into_files();
    file::provide(directory.join("tls.crt"), cert);
    file::provide(directory.join("tls.key"), key);
    Some(source)
}

/// The directory of a secret's files in memory; `None` if its name is not a path component.
fn directory(namespace: &str, name: &str) -> Option<PathBuf> {
    let is_component = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    (is_component(namespace) && is_component(name))
        .then(|| Path::new(file::MEMORY).join(namespace).join(name))
}
