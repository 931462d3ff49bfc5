//! Why a value of a setting cannot be used. A message repeats the value unless it may be a misplaced secret.

use super::address::UrlError;
use super::value::Kind;
use crate::text::sanitize;

/// Why a value cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueError {
    /// It is not of this kind.
    Not(Kind),
    Url(UrlError),
}

/// Maximum length of a number, switch or mode that is repeated. No API key is that short.
const MAX_WORD: usize = 12;
/// Maximum length of digits, signs and points that are repeated.
const MAX_NUMBER: usize = 24;
/// Maximum length of a URL or address that is repeated.
const MAX_ADDRESS: usize = 100;
/// Maximum length of each label of a host name in them.
const MAX_LABEL: usize = 20;

impl ValueError {
    /// The reason, with the value as it was written.
    pub(crate) fn describe(self, found: &str) -> String {
        let not = self.shown(found).map(|found| format!(", not {found}")).unwrap_or_default();
        match self {
            Self::Not(kind) => format!("expected {}{not}", kind.expected()),
            Self::Url(UrlError::NotAUrl) => format!("{}{not}", UrlError::NotAUrl),
            Self::Url(UrlError::PlainHttp) => format!("expected https{not}: {}", UrlError::PlainHttp),
            Self::Url(error @ (UrlError::HasCredentials | UrlError::HasQuery)) => error.to_string(),
        }
    }

    /// The value for a message; `None` if it may be a secret.
    fn shown(self, found: &str) -> Option<String> {
        let bare = found.trim_matches(['"', '\'']);
        let is_address =
            matches!(self, Self::Not(Kind::Url | Kind::EdgeAddresses | Kind::Proxy) | Self::Url(_));
        let is_number = bare.chars().all(|c| c.is_ascii_digit() || "+-._".contains(c));
        let max = match () {
            () if is_address && has_credentials(bare) => 0,
            () if is_address && looks_like_an_address(bare) => MAX_ADDRESS,
            () if is_number => MAX_NUMBER,
            () => MAX_WORD,
        };
        (bare.chars().count() <= max).then(|| sanitize(found))
    }
}

/// Whether a misspelled address or URL may hold credentials, in its authority or its query.
fn has_credentials(text: &str) -> bool {
    text.contains(['@', '?', '#', '&', '='])
}

/// Whether text consists of URLs or addresses, possibly misspelled, without long words, which may be secret.
fn looks_like_an_address(text: &str) -> bool {
    text.split(',').map(str::trim).all(|address| {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        is_host(host) && is_word(port) && path.split('/').all(is_word)
    })
}

/// Whether text can be a host name, or part of an IP address. Keys have upper-case letters, long words, or no dot.
fn is_host(text: &str) -> bool {
    let is_ip = !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit() || ".:[]".contains(c));
    let is_name = || {
        let last = text.rsplit('.').next().unwrap_or_default();
        text.split('.').all(is_word) && last.chars().all(|c| c.is_ascii_lowercase())
    };
    let has_dot = text.contains(['.', '[']) || text == "localhost" || text.is_empty();
    has_dot && (is_ip || is_name())
}

/// Whether text is a label, a port or a part of a path that is too short for a key.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._ ".contains(c);
    text.len() <= MAX_LABEL && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_repeated() {
        let seconds = "expected a whole number of seconds";
        let url = "expected a URL such as https://HOST";
        let rows = [
            (ValueError::Not(Kind::Seconds), "\"abc\"", format!("{seconds}, not \"abc\"")),
            (
                ValueError::Not(Kind::Seconds),
                "99999999999999999999",
                format!("{seconds}, not 99999999999999999999"),
            ),
            (ValueError::Not(Kind::Seconds), "\u{1b}[2J", format!("{seconds}, not [2J")),
            (ValueError::Not(Kind::Seconds), "\"sk_live_4242424242\"", seconds.to_owned()),
            (
                ValueError::Not(Kind::EdgeAddresses),
                "edge.example",
                "expected HOST:PORT, not edge.example".to_owned(),
            ),
            (ValueError::Not(Kind::EdgeAddresses), "10045:f3a9c1d77be", "expected HOST:PORT".to_owned()),
            (
                ValueError::Url(UrlError::NotAUrl),
                "\"api.example.net\"",
                format!("{url}, not \"api.example.net\""),
            ),
            (ValueError::Url(UrlError::NotAUrl), "ftp://user:word@api.example.net", url.to_owned()),
            (ValueError::Url(UrlError::NotAUrl), "sk_live_4242424242", url.to_owned()),
            (
                ValueError::Url(UrlError::NotAUrl),
                "SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kq",
                url.to_owned(),
            ),
            (ValueError::Url(UrlError::NotAUrl), "eyJhbGciOi.eyJzdWIi.c2ln", url.to_owned()),
            (
                ValueError::Url(UrlError::NotAUrl),
                "ftp://api.example.net/v2",
                format!("{url}, not ftp://api.example.net/v2"),
            ),
            (
                ValueError::Not(Kind::EdgeAddresses),
                "127.0.0.1:443, edge.example:https",
                "expected HOST:PORT, not 127.0.0.1:443, edge.example:https".to_owned(),
            ),
        ];
        for (error, found, expected) in rows {
            assert_eq!(error.describe(found), expected, "{found}");
        }
        let credentials =
            ValueError::Url(UrlError::HasCredentials).describe("https://user:word@api.example.net");
        assert!(!credentials.contains("word@"), "{credentials}");
    }
}
