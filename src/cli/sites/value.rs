//! Values in the flags of `edgecert sites`: a site by ID or domain, an origin, a field with its value, a glob.

use std::fmt;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;
use std::str::FromStr;

use glob::{Pattern, PatternError};
use serde_json::{Value, json};

use crate::names::Domain;

/// A site as named on the command line.
#[derive(Clone, Debug)]
pub(crate) enum SiteName {
    Id(u64),
    Domain(Domain),
}

impl FromStr for SiteName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Id).map_err(|_| "too large for a site ID");
        }
        text.parse().map(Self::Domain).map_err(|_| "expected a site ID or a domain name")
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "site {id}"),
            Self::Domain(domain) => write!(f, "{domain}"),
        }
    }
}

/// Parses an origin server, `ADDR[:PORT][,weight=N]`, into the form of section 2.3 of the API document. The port is a
/// field of the site.
pub(super) fn origin(text: &str) -> Result<(Value, Option<NonZeroU16>), &'static str> {
    const EXPECTED: &str = "expected ADDR or ADDR:PORT, optionally followed by ,weight=N";
    let (place, weight) = match text.split_once(',') {
        Some((place, option)) => (place, option.strip_prefix("weight=").ok_or(EXPECTED)?),
        None => (text, "1"),
    };
    let (addr, port) = match place.rsplit_once(':') {
        // An IPv6 address has colons of its own.
        Some((addr, port)) if !place.ends_with(']') && place.parse::<Ipv6Addr>().is_err() => {
            (addr, Some(port.parse().map_err(|_| EXPECTED)?))
        }
        _ => (place, None),
    };
    let addr = addr.strip_prefix('[').and_then(|addr| addr.strip_suffix(']')).unwrap_or(addr);
    let is_other = |c: char| c.is_whitespace() || c.is_control() || "/@[]".contains(c);
    if addr.is_empty() || addr.contains(is_other) || addr.contains(':') && addr.parse::<Ipv6Addr>().is_err() {
        return Err(EXPECTED);
    }
    let weight: u32 = weight.parse().map_err(|_| EXPECTED)?;
    Ok((json!({"addr": addr, "weight": weight, "status": true}), port))
}

/// Parses a field and its new value, `FIELD=VALUE`.
pub(super) fn assignment(text: &str) -> Result<(String, Value), &'static str> {
    let given = text.split_once('=').filter(|(field, _)| !field.is_empty());
    let (field, value) = given.ok_or("expected FIELD=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((field.to_owned(), value))
}

/// Parses a pattern for domains.
pub(super) fn glob(text: &str) -> Result<Pattern, PatternError> {
    // The crate gives `**` another meaning.
    let mut pattern = text.to_lowercase();
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    Pattern::new(pattern.trim_end_matches('.'))
}

/// Whether a domain matches the pattern, either as given or in A-labels.
pub(crate) fn glob_matches(glob: &Pattern, domain: &Domain) -> bool {
    let spelled = domain.spelled().to_lowercase();
    [spelled.trim_end_matches('.'), domain.host()].into_iter().any(|name| glob.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_takes_port_and_weight() {
        let rows = [
            ("192.0.2.1", "192.0.2.1", 0, 1),
            ("192.0.2.1:8080", "192.0.2.1", 8080, 1),
            ("o.example:80,weight=3", "o.example", 80, 3),
            ("o.example,weight=0", "o.example", 0, 0),
            ("2001:db8::1,weight=2", "2001:db8::1", 0, 2),
            ("[2001:db8::1]", "2001:db8::1", 0, 1),
            ("[2001:db8::1]:443,weight=2", "2001:db8::1", 443, 2),
        ];
        for (text, addr, port, weight) in rows {
            let read = json!({"addr": addr, "weight": weight, "status": true});
            assert_eq!(origin(text), Ok((read, NonZeroU16::new(port))), "{text}");
        }
        let invalid =
            [",weight=1", "a,weight=-1", "a,w=1", "[::1", "[::1]80", "[[::1]]", "http://a", "a b", ""];
        let invalid_ports = [":80", "a:0", "a:65536", "a:b", "a:80:81"];
        for text in invalid.into_iter().chain(invalid_ports) {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn value_is_json_or_text() {
        let rows = [
            ("a=true", json!(true)),
            ("a=5", json!(5)),
            ("a=\"5\"", json!("5")),
            ("a={\"b\":[1]}", json!({"b": [1]})),
            ("a=null", json!(null)),
            ("a=weight", json!("weight")),
            ("a=b=c", json!("b=c")),
            ("a=", json!("")),
        ];
        for (text, value) in rows {
            assert_eq!(assignment(text), Ok(("a".into(), value)), "{text}");
        }
        assert!(assignment("a").is_err() && assignment("=a").is_err());
    }

    #[test]
    fn glob_matches_domains() {
        let rows = [
            ("a.example", "a.example", true),
            ("*", "a.example", true),
            ("*.example", "b.a.example", true),
            ("*.example", "example", false),
            ("**.example", "b.a.example", true),
            ("a*e", "a.example", true),
            ("?.example", "a.example", true),
            ("?.example", "aa.example", false),
            ("[ab].example", "b.example", true),
            ("A.Example.", "a.example", true),
            ("b\u{fc}cher.*", "xn--bcher-kva.example", false),
            ("xn--*", "b\u{fc}cher.example", true),
            ("b\u{fc}*", "B\u{fc}cher.example", true),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.a", false),
        ];
        for (pattern, domain, matches) in rows {
            let glob = glob(pattern).unwrap();
            assert_eq!(glob_matches(&glob, &domain.parse().unwrap()), matches, "{pattern} {domain}");
        }
    }

    #[test]
    fn site_is_id_or_domain() {
        assert!(matches!("10".parse(), Ok(SiteName::Id(10))));
        assert!(matches!("a.example".parse(), Ok(SiteName::Domain(_))));
        for text in ["", "a b", "99999999999999999999999"] {
            assert!(text.parse::<SiteName>().is_err(), "{text:?}");
        }
    }
}
