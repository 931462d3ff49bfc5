//! The check `names`: what it says of the names in a certificate. Which of them cover a domain is tested in `names`.

use super::*;

/// Asserts what the check finds in a certificate with these names.
#[track_caller]
fn assert_names(names: &[&[u8]], domains: &[&str], line: &str) {
    let cert = ForgedCert { names: names.to_vec(), ..ForgedCert::default() }.pem();
    Input { domains, ..Input::new(&cert) }.finds(line, line);
}

#[test]
fn uncovered_domain_is_named() {
    assert_names(&[b"a.example"], &["A.Example."], "* names: covers a.example\n");
    assert_names(&[b"*.example"], &["a.example", "b.example"], "* names: covers *.example\n");
    let rows: [(&[u8], &str); 6] = [
        (b"b.example", "b.example"),
        (b"a.example\0.evil.example", "a.example .evil.example"),
        (b"a.example\nedgecert: served", "a.example edgecert: served"),
        (b"\x1b[2J\x1b]0;title\x07a.example", "[2J ]0;title a.example"),
        (b"a\x7f.example", "a .example"),
        (b"", ""),
    ];
    for (san, shown) in rows {
        let line = format!("x names: cert.pem does not cover a.example, only {shown}\n");
        assert_names(&[san], &["a.example"], &line);
    }
    let address = der::sequence(&[der::tlv(0x87, &[192, 0, 2, 1])]);
    let extensions = vec![extension("2.5.29.17", false, &address)];
    let cert = ForgedCert { names: Vec::new(), extensions, ..ForgedCert::default() }.pem();
    let line = "x names: cert.pem does not cover 192.0.2.1, only IP addresses\n";
    Input { domains: &["192.0.2.1"], ..Input::new(&cert) }.finds("an address", line);
}

#[test]
fn long_name_lists_are_abbreviated() {
    let names: Vec<String> = (0..500).map(|number| format!("n{number}.example")).collect();
    let list = format!("{} and 490 more\n", names[..10].join(", "));
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    assert_names(&names, &["n0.example", "n499.example"], &format!("* names: covers {list}"));
    let line = format!("x names: cert.pem does not cover n500.example, only {list}");
    assert_names(&names, &["n500.example"], &line);
}

#[test]
fn common_name_does_not_count() {
    for (subject, shown) in [("a.example", "a.example"), ("a\u{1b}[2J\n\0b", "a [2J b")] {
        let cert = ForgedCert { names: Vec::new(), subject, ..ForgedCert::default() }.pem();
        let line = format!(
            "x names: cert.pem has no subject alternative name; its subject `{shown}` does not count\n  \
            hint: issue it with its domains as subject alternative names"
        );
        for domains in [&["a.example"][..], &[]] {
            Input { domains, ..Input::new(&cert) }.finds(subject, &line);
        }
    }
}
