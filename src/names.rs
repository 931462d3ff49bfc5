//! Domain names of sites and certificates, and which certificate covers which site (RFC 9525).
//!
//! Names are compared as A-labels in lower case without the trailing dot, and sent to the service as given.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use smol_str::{SmolStr, format_smolstr};

/// Length of the longest domain name (RFC 1035, section 2.3.4).
pub const MAX_DOMAIN: usize = 253;

/// A site's domain: a host name, or a wildcard over one label. Compact and cheap to clone: an account may have a million.
///
/// The text is the host and, if the name was given otherwise, a space, which no host has, and that name.
#[derive(Clone, Debug)]
pub struct Domain(SmolStr);

/// Text that is not a domain name. The message omits the text; callers add it.
#[derive(Debug, thiserror::Error)]
#[error("not a domain name")]
pub struct NotADomain;

impl Domain {
    /// The name as given, for requests.
    pub fn spelled(&self) -> &str {
        self.parts().1
    }

    /// The name for DNS and SNI: A-labels in lower case, without a trailing dot.
    pub fn host(&self) -> &str {
        self.parts().0
    }

    /// The host, and the name as given.
    fn parts(&self) -> (&str, &str) {
        self.0.split_once(' ').unwrap_or((&self.0, &self.0))
    }

    /// The memory that it takes, apart from its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        heap_bytes(&self.0)
    }

    /// Whether one of a certificate's names covers this domain.
    pub fn is_covered_by_any<'a>(&self, sans: impl IntoIterator<Item = &'a str>) -> bool {
        Names::of(sans).cover(self)
    }
}

/// The memory that a text takes, apart from its own size.
pub(crate) fn heap_bytes(text: &SmolStr) -> usize {
    // Two counters, and what the allocator adds.
    if text.is_heap_allocated() { text.len() + 32 } else { 0 }
}

/// The hosts of domains.
pub fn hosts(domains: &[Domain]) -> Vec<String> {
    domains.iter().map(|domain| domain.host().to_owned()).collect()
}

/// Removes repeated domains; keeps the order.
pub fn distinct(domains: &[Domain]) -> Vec<Domain> {
    let mut seen = BTreeSet::new();
    domains.iter().filter(|domain| seen.insert(domain.host())).cloned().collect()
}

/// The names of a certificate, for lookups. `*.` matches exactly one label; a wildcard site is covered by the same
/// wildcard only. A SAN holds A-labels (RFC 5280, section 7.2), so one with other characters covers nothing.
pub struct Names(BTreeSet<String>);

impl Names {
    /// Reads the SANs of a certificate.
    pub fn of<'a>(sans: impl IntoIterator<Item = &'a str>) -> Self {
        let name = |san: &str| if is_canonical(san) { Some(san.to_owned()) } else { ascii(san).ok() };
        Self(sans.into_iter().filter(|san| san.is_ascii()).filter_map(name).collect())
    }

    /// Whether a name covers a domain.
    pub fn cover(&self, domain: &Domain) -> bool {
        let host = domain.host();
        let parent = host.split_once('.').filter(|(label, _)| *label != "*").map(|(_, parent)| parent);
        self.0.contains(host) || parent.is_some_and(|parent| self.0.contains(&format!("*.{parent}")))
    }

    /// The names, wildcards included.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What follows `*.` in the wildcards: they cover the hosts with one more label.
    pub fn wildcard_parents(&self) -> impl Iterator<Item = &str> {
        self.hosts().filter_map(|name| name.strip_prefix("*."))
    }
}

impl FromStr for Domain {
    type Err = NotADomain;

    fn from_str(text: &str) -> Result<Self, NotADomain> {
        if is_canonical(text) {
            return Ok(Self(text.into()));
        }
        let host = ascii(text)?;
        Ok(Self(if host == text { host.into() } else { format_smolstr!("{host} {text}") }))
    }
}

impl Serialize for Domain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.spelled())
    }
}

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl PartialEq for Domain {
    fn eq(&self, other: &Self) -> bool {
        self.host() == other.host()
    }
}

impl Eq for Domain {}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::sanitize(self.spelled()))
    }
}

/// Whether `ascii` is certain to leave a text as it is: labels in lower case, none of which may be an A-label. Nearly all
/// domains in a listing are of this form, and converting them takes much longer.
fn is_canonical(text: &str) -> bool {
    let host = text.strip_prefix("*.").unwrap_or(text);
    let mut label_length = 0;
    for byte in host.bytes() {
        label_length = match byte {
            b'.' if label_length > 0 => 0,
            b'x' if label_length == 0 => return false,
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' if label_length < 63 => label_length + 1,
            _ => return false,
        };
    }
    label_length > 0 && host.len() <= MAX_DOMAIN
}

/// Converts a host name or wildcard to A-labels (UTS 46); rejects what cannot be a DNS name.
fn ascii(text: &str) -> Result<String, NotADomain> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let (star, host) = text.strip_prefix("*.").map_or(("", text), |host| ("*.", host));
    let host = idna::domain_to_ascii(host).map_err(|_| NotADomain)?;
    let is_name = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if host.len() > MAX_DOMAIN || !host.split('.').all(is_name) {
        return Err(NotADomain);
    }
    Ok(format!("{star}{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn san_covers_domains_per_rfc_9525() {
        let rows = [
            ("a.example", "a.example", true),
            ("a.example", "A.Example.", true),
            ("A.EXAMPLE.", "a.example", true),
            ("*.example", "a.example", true),
            ("*.a.example", "b.a.example", true),
            ("b\u{fc}cher.example", "xn--bcher-kva.example", false),
            ("xn--bcher-kva.example", "B\u{dc}CHER.example", true),
            ("*.a.example", "*.a.example", true),
            ("*.A.example.", "*.a.EXAMPLE", true),
            ("a.example", "a.example.", true),
            ("a.example", "b.example", false),
            ("a.example", "*.a.example", false),
            ("*.example", "b.a.example", false),
            ("*.a.example", "a.example", false),
            ("*.a.example", "c.b.a.example", false),
            ("*.a.example", "*.b.a.example", false),
            ("*.example", "*.a.example", false),
            ("b.a.example", "*.a.example", false),
            ("*", "example", false),
            ("*", "a.example", false),
            ("**.example", "a.example", false),
            ("a*.example", "a.example", false),
            ("b*.example", "ba.example", false),
            ("*b.example", "ab.example", false),
            ("a.*.example", "a.b.example", false),
            ("a.example\0.evil", "a.example", false),
            ("a.example\0", "a.example", false),
            ("a.example\nb", "a.example", false),
            ("\ta.example", "a.example", false),
            ("\x1b[2J\x07a.example", "a.example", false),
            ("a\x7f.example", "a.example", false),
            ("a.example ", "a.example", false),
            (" a.example", "a.example", false),
            ("", "a.example", false),
            (".", "a.example", false),
            ("a..example", "a.example", false),
            ("a.example..", "a.example", false),
            ("a_b.example", "a_b.example", true),
            ("192.0.2.1", "192.0.2.1", true),
        ];
        for (san, domain, covered) in rows {
            let domain: Domain = domain.parse().unwrap();
            assert_eq!(domain.is_covered_by_any([san]), covered, "{san:?} for {:?}", domain.spelled());
        }
    }

    #[test]
    fn canonical_names_are_not_converted() {
        let pieces =
            ["a", "0", "-", "--", "_", ".", "*.", "x", "xn--", "X", "\u{fc}", "7.", "b.example", " "];
        let mut rng = fastrand::Rng::with_seed(1);
        let mut canonical = 0;
        for _ in 0..50_000 {
            let pieces = (0..rng.usize(..6)).map(|_| pieces[rng.usize(..pieces.len())]);
            let text: String = pieces.collect::<String>() + &"c".repeat(rng.usize(..2) * rng.usize(..66));
            if is_canonical(&text) {
                canonical += 1;
                assert_eq!(ascii(&text).ok().as_deref(), Some(&*text), "{text:?}");
            }
        }
        assert!(canonical > 1_000, "{canonical}");
        let longest = "abc.".repeat(63) + "d";
        assert!(is_canonical(&longest) && !is_canonical(&(longest + "e")));
    }

    #[test]
    fn invalid_names_are_rejected() {
        for text in [
            "",
            ".",
            "*.",
            "*",
            "a b",
            "a\0b",
            "a..b",
            "-\u{202e}",
            "http://a",
            "a/b",
            "a:443",
            &"x".repeat(64),
        ] {
            assert!(text.parse::<Domain>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn spelling_is_kept() {
        let domain: Domain = "B\u{fc}cher.Example.".parse().unwrap();
        assert_eq!((domain.spelled(), domain.host()), ("B\u{fc}cher.Example.", "xn--bcher-kva.example"));
    }
}
