//! Domain names, compared as lower-case A-labels without a trailing dot. A wildcard matches exactly one label
//! (RFC 9525, section 6.3). There are no Unicode tables: a U-label is lower-cased and encoded, which suffices
//! to compare a site's spelling with a certificate's.

use std::net::Ipv4Addr;

/// Returns the form in which equivalent names are equal.
pub(crate) fn canonical(name: &str) -> String {
    let lowered = name.trim_end_matches('.').to_lowercase();
    lowered.split('.').map(to_a_label).collect::<Vec<_>>().join(".")
}

/// Returns whether a site may have this name. One leading `*.` is allowed, IP addresses are not.
pub(crate) fn is_domain(name: &str) -> bool {
    let canonical = canonical(name);
    let host = canonical.strip_prefix("*.").unwrap_or(&canonical);
    host.len() <= 253
        && host.contains('.')
        && host.split('.').all(is_label)
        && host.parse::<Ipv4Addr>().is_err()
}

/// Returns whether a SAN entry covers a domain.
pub(crate) fn covers(san: &str, domain: &str) -> bool {
    let (san, domain) = (canonical(san), canonical(domain));
    if san == domain {
        return true;
    }
    match (san.strip_prefix("*."), domain.split_once('.')) {
        (Some(parent), Some((label, rest))) => label != "*" && !label.is_empty() && parent == rest,
        _ => false,
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn to_a_label(label: &str) -> String {
    if label.is_ascii() {
        return label.to_owned();
    }
    idna::punycode::encode_str(label).map_or_else(|| label.to_owned(), |encoded| format!("xn--{encoded}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_covers_exactly_one_label() {
        let rows = [
            ("a.example", "a.example", true),
            ("A.example.", "a.EXAMPLE", true),
            ("*.a.example", "b.a.example", true),
            ("*.a.example", "a.example", false),
            ("*.a.example", "c.b.a.example", false),
            ("*.a.example", "*.a.example", true),
            ("*.example", "*.a.example", false),
            ("b.a.example", "*.a.example", false),
            ("xn--bcher-kva.example", "bücher.example", true),
            ("xn--bcher-kva.example", "Bücher.example", true),
            ("xn--r8jz45g.example", "例え.example", true),
            ("example.a", "a.example", false),
            ("", "a.example", false),
        ];
        for (san, domain, expected) in rows {
            assert_eq!(covers(san, domain), expected, "{san} covers {domain}");
        }
    }

    #[test]
    fn only_domains_are_accepted() {
        for domain in ["a.example", "*.a.example", "bücher.example", "a_b.example", "xn--bcher-kva.example"]
        {
            assert!(is_domain(domain), "{domain}");
        }
        for other in [
            "",
            "example",
            "a..example",
            "-a.example",
            "a b.example",
            "10.0.0.1",
            "a.*.example",
            "*.*.a.example",
        ] {
            assert!(!is_domain(other), "{other}");
        }
    }
}
