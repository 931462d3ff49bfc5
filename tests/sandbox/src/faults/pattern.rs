//! The requests that a fault matches: `METHOD /path`, with `*` in several places.

use crate::openapi;

/// Methods that an endpoint has; `*` is any.
const METHODS: [&str; 4] = ["GET", "POST", "DELETE", "*"];

/// Returns whether a request matches.
pub(super) fn matches(pattern: &str, method: &str, path: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let Some((expected_method, path_pattern)) = pattern.split_once(' ') else {
        return false;
    };
    (expected_method == "*" || expected_method.eq_ignore_ascii_case(method))
        && path_matches(path_pattern, path)
}

/// Rejects patterns that match no endpoint.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    if pattern == "*" {
        return Ok(());
    }
    let Some((method, path)) = pattern.split_once(' ').filter(|(_, path)| path.starts_with('/')) else {
        return Err("match must be \"METHOD /path\" or \"*\"".to_owned());
    };
    if !METHODS.iter().any(|known| known.eq_ignore_ascii_case(method)) {
        return Err(format!("match has the unknown method {method}; known are {}", METHODS.join(", ")));
    }
    let matches_any =
        openapi::endpoints().any(|(method, template)| matches(pattern, method, &instance(template, path)));
    if matches_any { Ok(()) } else { Err(format!("no endpoint is {pattern}")) }
}

/// Returns a path of an endpoint that the pattern matches if it matches any.
fn instance(template: &str, pattern: &str) -> String {
    let mut patterns = pattern.split('/');
    let segments = template.split('/').map(|segment| {
        let wanted = patterns.next().unwrap_or_default().trim_end_matches('*');
        let is_number = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit());
        match segment {
            openapi::ID if is_number => wanted,
            openapi::ID => "1",
            literal => literal,
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let mut patterns = pattern.split('/').peekable();
    while let Some(pattern) = patterns.next() {
        let is_last = patterns.peek().is_none();
        match segments.next() {
            Some(_) if pattern == "*" && is_last => return true,
            Some(segment) if pattern == "*" || pattern == segment => {}
            Some(segment) if is_last => {
                return pattern.strip_suffix('*').is_some_and(|prefix| segment.starts_with(prefix));
            }
            _ => return false,
        }
    }
    segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_whole_path() {
        let rows = [
            ("POST /api/certs/upload", "POST", "/api/certs/upload", true),
            ("POST /api/certs/upload", "GET", "/api/certs/upload", false),
            ("POST /api/certs", "POST", "/api/certs/upload", false),
            ("GET /api/sites/*", "GET", "/api/sites/10", true),
            ("POST /api/sites/*/update", "POST", "/api/sites/10/update", true),
            ("POST /api/sites/*/update", "POST", "/api/sites/10/enable", false),
            ("* /api/*", "DELETE", "/api/sites/10", true),
            ("GET /api/cert*", "GET", "/api/certs", true),
            ("*", "GET", "/", true),
        ];
        for (pattern, method, path, expected) in rows {
            assert_eq!(matches(pattern, method, path), expected, "{pattern} {method} {path}");
        }
    }
}
