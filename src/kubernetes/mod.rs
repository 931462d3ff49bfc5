//! Secrets of type `kubernetes.io/tls`, listed by the API server of the cluster that this pod runs in.

mod client;
mod secret_list;

use std::path::{Path, PathBuf};

use self::client::{Cluster, invalid_response};
use self::secret_list::Secret;
use crate::clock::Deadline;
use crate::env::Env;
use crate::error::{CommandError, Result};
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

/// Maximum size of the secrets that are kept, in bytes.
const MAX_BYTES: usize = 256 << 20;

/// Memory that a secret takes in addition to its files, in bytes.
const OVERHEAD: usize = 1 << 10;

/// The secrets that were listed, and the namespaces that could not be.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) lineages: Vec<Source>,
    pub(crate) failed: Vec<(String, CommandError)>,
    /// Size of the secrets.
    bytes: usize,
}

/// Lists the secrets, and keeps in memory those for which `is_wanted` is true, each as a lineage.
pub(crate) fn find(
    selection: &Selection,
    env: &Env,
    deadline: Deadline,
    is_wanted: impl Fn(&Source) -> bool,
) -> Result<Found> {
    let cluster = Cluster::of_pod(env, deadline)?;
    let own = selection.namespaces.is_empty().then(Cluster::own_namespace).transpose()?;
    let mut found = Found::default();
    let selector = selection.selector.as_deref();
    Runtime::new()?.block_on(async {
        for namespace in selection.namespaces.iter().chain(&own) {
            let listed = list(&cluster, (namespace, selector), &is_wanted, &mut found).await;
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
    found: &mut Found,
) -> Result<()> {
    let mut token = String::new();
    loop {
        let page = cluster.list(namespace, selector, &token).await?;
        for secret in page.items.into_iter().flatten() {
            found.keep(namespace, secret, is_wanted)?;
        }
        token = page.metadata.next;
        if token.is_empty() {
            return Ok(());
        }
    }
}

impl Found {
    /// Keeps a secret in memory if it is wanted.
    fn keep(&mut self, namespace: &str, secret: Secret, is_wanted: &impl Fn(&Source) -> bool) -> Result<()> {
        if secret.metadata.name.is_empty() {
            return Err(invalid_response("a secret has no name"));
        }
        let Some(directory) = directory(namespace, &secret.metadata.name) else { return Ok(()) };
        let source = Source::of_secret(&directory);
        if !secret.is_tls() || !is_wanted(&source) {
            return Ok(());
        }
        let (cert, key) = secret.into_files();
        self.bytes += OVERHEAD + cert.len() + key.len();
        if self.bytes > MAX_BYTES {
            return Err(invalid_response("the secrets take more than 256 MiB"));
        }
        file::provide(directory.join("tls.crt"), cert);
        file::provide(directory.join("tls.key"), key);
        self.lineages.push(source);
        Ok(())
    }
}

/// The directory of a secret's files in memory; `None` if its name is not a path component.
fn directory(namespace: &str, name: &str) -> Option<PathBuf> {
    let is_component = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    (is_component(namespace) && is_component(name))
        .then(|| Path::new(file::MEMORY).join(namespace).join(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kept_secrets_are_limited() {
        let (mut found, mut count) = (Found { bytes: MAX_BYTES - 10 * OVERHEAD, ..Found::default() }, 0);
        let error = loop {
            let data = json!({"tls.crt": "AAAA".repeat(1000), "tls.key": "AAAA"});
            let secret = json!({"metadata": {"name": count.to_string()}, "data": data});
            let secret = serde_json::from_value(secret).unwrap();
            match found.keep("limited", secret, &|_| true) {
                Ok(()) => count += 1,
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.ends_with("the secrets take more than 256 MiB"), "{error}");
        assert_eq!((count, found.lineages.len()), (2, 2));
    }
}
