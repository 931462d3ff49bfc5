//! Domain names as the service compares them: A-labels in lower case without a trailing dot.
//! Wildcards stand for exactly one label (RFC 9525, section 6.3). No table of Unicode here: a U-label is
//! lowered and encoded (RFC 3492), which is enough to compare a site's spelling with a certificate's.

/// The form in which two names are equal if they mean the same.
pub(crate) fn canonical(name: &str) -> String {
    let lowered = name.trim_end_matches('.').to_lowercase();
    lowered.split('.').map(a_label).collect::<Vec<_>>().join(".")
}

/// Whether a site can be called so; one leading `*.` is allowed.
pub(crate) fn is_domain(name: &str) -> bool {
    let canonical = canonical(name);
    let host = canonical.strip_prefix("*.").unwrap_or(&canonical);
    host.len() <= 253 && host.contains('.') && host.split('.').all(is_label) && !is_ipv4(host)
}

/// Whether a SAN entry covers a domain.
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

fn is_ipv4(host: &str) -> bool {
    host.parse::<std::net::Ipv4Addr>().is_ok()
}

fn a_label(label: &str) -> String {
    if label.is_ascii() {
        return label.to_owned();
    }
    punycode(label).map_or_else(|| label.to_owned(), |encoded| format!("xn--{encoded}"))
}

/// RFC 3492, section 6.3. `None` when a number would not fit.
fn punycode(label: &str) -> Option<String> {
    let points: Vec<u32> = label.chars().map(u32::from).collect();
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (128_u32, 0_u32, 72_u32, basic);
    while usize::try_from(handled).ok()? < points.len() {
        let next = points.iter().copied().filter(|&point| point >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(handled + 1)?)?;
        n = next;
        for &point in &points {
            if point < n {
                delta = delta.checked_add(1)?;
            }
            if point == n {
                variable_length(&mut out, delta, bias)?;
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(out)
}

fn variable_length(out: &mut String, delta: u32, bias: u32) -> Option<()> {
    let mut q = delta;
    let mut k = 36;
    loop {
        let t = if k <= bias { 1 } else { (k - bias).min(26) };
        if q < t {
            out.push(digit(q)?);
            return Some(());
        }
        out.push(digit(t + (q - t) % (36 - t))?);
        q = (q - t) / (36 - t);
        k += 36;
    }
}

fn adapt(delta: u32, count: u32, first: bool) -> u32 {
    let mut delta = if first { delta / 700 } else { delta / 2 };
    delta += delta / count;
    let mut k = 0;
    while delta > 455 {
        delta /= 35;
        k += 36;
    }
    k + 36 * delta / (delta + 38)
}

fn digit(value: u32) -> Option<char> {
    char::from_digit(value, 36).map(|_| ()).and_then(|()| {
        let byte = if value < 26 { u32::from(b'a') + value } else { u32::from(b'0') + value - 26 };
        char::from_u32(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_exactly_one_label() {
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
    fn what_is_no_domain_cannot_be_a_site() {
        for good in ["a.example", "*.a.example", "bücher.example", "a_b.example", "xn--bcher-kva.example"] {
            assert!(is_domain(good), "{good}");
        }
        for bad in [
            "",
            "example",
            "a..example",
            "-a.example",
            "a b.example",
            "10.0.0.1",
            "a.*.example",
            "*.*.a.example",
        ] {
            assert!(!is_domain(bad), "{bad}");
        }
    }
}
