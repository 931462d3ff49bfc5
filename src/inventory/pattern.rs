//! Patterns of paths, such as `/etc/letsencrypt/live/*`, and the lineages that they match.

use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::source::{Source, SourceError};

/// `*` and `?` match neither a slash nor a leading dot.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Of a walk. The library panics at names that are not UTF-8 if it is to tell hidden ones apart, and otherwise passes over
/// them.
const WALK: MatchOptions = MatchOptions { require_literal_leading_dot: false, ..OPTIONS };

/// The lineages that a pattern matches, each with its path, in the order of their names; also what cannot be read. A
/// match that is not a lineage, such as certbot's `live/README`, is left out.
pub(super) fn expand(pattern: &Pattern) -> Vec<(PathBuf, Result<Source, SourceError>)> {
    let Ok(matches) = glob::glob_with(pattern.as_str(), WALK) else { return Vec::new() };
    let lineage = |found: glob::GlobResult| match found {
        Ok(path) if is_hidden(&path, pattern) => None,
        Ok(path) => {
            let found = Source::at(&path);
            let is_other = matches!(&found, Err(SourceError::NotALineage { is_denied: false, .. }));
            (!is_other).then_some((path, found))
        }
        Err(error) if is_hidden(error.path(), pattern) => None,
        Err(error) => {
            Some((error.path().to_owned(), Err(SourceError::unreadable(error.path(), error.error()))))
        }
    };
    matches.filter_map(lineage).collect()
}

/// Whether a path leads through a hidden file or directory where the pattern has no leading dot.
fn is_hidden(path: &Path, pattern: &Pattern) -> bool {
    let is_dotted = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    let mut parts = path.components().zip(Path::new(pattern.as_str()).components());
    parts.any(|(name, pattern)| is_dotted(name) && !is_dotted(pattern))
}

/// Whether a pattern matches a path, as they are or with the links in both resolved.
pub(super) fn matches(pattern: &Pattern, path: &Path) -> bool {
    let is_match = |pattern: &Pattern, path: &Path| pattern.matches_path_with(path, OPTIONS);
    std::path::absolute(path).is_ok_and(|path| is_match(pattern, &path))
        || path.canonicalize().is_ok_and(|path| {
            is_match(pattern, &path) || resolved(pattern).is_some_and(|pattern| is_match(&pattern, &path))
        })
}

/// The pattern with the links in its directory resolved, up to the first wildcard.
fn resolved(pattern: &Pattern) -> Option<Pattern> {
    let has_wildcard =
        |part: &Component<'_>| part.as_os_str().to_str().is_none_or(|part| part.contains(['*', '?', '[']));
    let path = Path::new(pattern.as_str());
    let directory: PathBuf = path.components().take_while(|part| !has_wildcard(part)).collect();
    let rest = path.strip_prefix(&directory).ok()?;
    let directory = Pattern::escape(directory.canonicalize().ok()?.to_str()?);
    Pattern::new(Path::new(&directory).join(rest).to_str()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn other_matches_are_left_out() {
        let root = tempfile::TempDir::new().unwrap();
        let live = root.path().join("live");
        for name in ["b", "a", ".hidden", ".hidden/c", ".seen/d", "new\nline"] {
            fs::create_dir_all(live.join(name)).unwrap();
            fs::write(live.join(name).join("fullchain.pem"), "").unwrap();
        }
        fs::create_dir_all(live.join(std::ffi::OsStr::from_bytes(b"not \xff UTF-8"))).unwrap();
        symlink(".", live.join("itself")).unwrap();
        symlink("loop", live.join("loop")).unwrap();
        fs::create_dir_all(live.join("empty")).unwrap();
        fs::write(live.join("README"), "").unwrap();
        let found = |pattern: &str| {
            let pattern = Pattern::new(live.join(pattern).to_str().unwrap()).unwrap();
            let found: Vec<PathBuf> = expand(&pattern).into_iter().map(|(path, _)| path).collect();
            found
        };
        let visible = ["a", "b", "new\nline"].map(|name| live.join(name));
        assert_eq!(found("*"), visible);
        assert_eq!(found(".s*/*"), [live.join(".seen/d")]);
        let pattern = Pattern::new(live.join("*").to_str().unwrap()).unwrap();
        assert!(matches(&pattern, &live.join("a")) && !matches(&pattern, &live.join("a/fullchain.pem")));
    }

    #[test]
    fn links_are_resolved() {
        let root = tempfile::TempDir::new().unwrap();
        let (live, link) = (root.path().join("live"), root.path().join("link"));
        fs::create_dir_all(live.join("a")).unwrap();
        symlink(&live, &link).unwrap();
        let pattern = Pattern::new(live.join("*").to_str().unwrap()).unwrap();
        assert!(matches(&pattern, &link.join("a")));
        let pattern = Pattern::new(link.join("*").to_str().unwrap()).unwrap();
        assert!(matches(&pattern, &live.join("a")));
    }
}
