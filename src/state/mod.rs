//! State files: the intended deployment of each lineage, and its result.
//!
//! The intent is on disk before the first request, the result after the last. The files are small, readable by people,
//! and never hold a private key or the API key. `store` reads and writes them, and keeps two runs off one lineage.

mod deployments;
mod given;
mod lineage_state;
mod neighbours;
mod records;
mod shard;
mod store;
mod sync_record;

use std::path::Path;

use ring::digest::{SHA256, digest};

use crate::source::Source;
use crate::{file, text};

pub(crate) use self::deployments::{Deployments, ServiceDeployments, StoredLeaf};
pub(crate) use self::given::{Given, Origin, RunOptions};
pub(crate) use self::lineage_state::{LineageState, RunResult, SiteState};
pub(crate) use self::shard::Shard;
pub(crate) use self::store::{DamagedFile, StateError, Store, WriteError};
pub(crate) use self::sync_record::{LastSync, MAX_SKEW, SyncRecord};

/// Names the state file of a lineage: readable, and unique even if two directories have the same name. A lineage that
/// is deployed to several accounts has a state file for each.
pub(crate) fn lineage_name(source: &Source) -> String {
    let path = source.stable_path();
    let absolute = std::path::absolute(&path).unwrap_or(path);
    let mut id = absolute.as_os_str().as_encoded_bytes().to_owned();
    // No path contains it.
    id.extend(source.target.iter().flat_map(|target| [b"\0", target.as_bytes()]).flatten());
    let directory = absolute.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    unique_name(&directory, &id)
}

/// A file name that begins with a readable name, and that no other ID has.
fn unique_name(readable: &str, id: &[u8]) -> String {
    let plain = file::safe_characters(readable, 60);
    let unique = text::hex(digest(&SHA256, id).as_ref().get(..5).unwrap_or_default());
    format!("{}-{unique}", plain.trim_start_matches('.'))
}

/// Hashes a name to an evenly distributed number that is the same on every host.
pub(crate) fn stable_hash(name: &str) -> u64 {
    let digest = digest(&SHA256, name.as_bytes());
    digest.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lineage_names_are_readable_and_unique() {
        let paths = ["/etc/le/live/shop/fullchain.pem", "/srv/live/shop/fullchain.pem", "/x/*.a b/c.pem"];
        let [first, second, third] = paths.map(|path| lineage_name(&Source::of_file(path)));
        assert!(first.starts_with("shop-") && second.starts_with("shop-") && first != second);
        assert!(third.starts_with("_.a_b-"), "{third}");
        let mut elsewhere = Source::of_file(paths[0]);
        elsewhere.target = Some("https://other.example.net".into());
        let elsewhere = lineage_name(&elsewhere);
        assert!(elsewhere.starts_with("shop-") && elsewhere != first);
    }
}
