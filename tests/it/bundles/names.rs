//! Names: which SAN entry covers which site, and what reaches the terminal of the others.

use super::look_at;
use crate::harness::der::ForgedCert;

#[test]
fn a_site_is_covered_by_san_entries_only() {
    let rows: [(&str, &[u8], &str, i32); 26] = [
        ("the same", b"a.example", "a.example", 0),
        ("another", b"b.example", "a.example", 65),
        ("upper case in the certificate", b"A.EXAMPLE", "a.example", 0),
        ("upper case in the site", b"a.example", "A.Example", 0),
        ("a dot behind the certificate's", b"a.example.", "a.example", 0),
        ("a dot behind the site's", b"a.example", "a.example.", 0),
        ("wildcard", b"*.example", "a.example", 0),
        ("wildcard, two labels", b"*.example", "b.a.example", 65),
        ("wildcard, no label", b"*.a.example", "a.example", 65),
        ("wildcard within a label", b"a*.example", "a.example", 65),
        ("wildcard in the middle", b"b.*.example", "b.a.example", 65),
        ("wildcard alone", b"*", "example", 65),
        ("site is a wildcard", b"*.a.example", "*.a.example", 0),
        ("site is a wildcard, upper case and a dot", b"*.A.example.", "*.a.EXAMPLE", 0),
        ("site is a wildcard, only its parent is there", b"a.example", "*.a.example", 65),
        ("site is a wildcard, below another one", b"*.example", "*.a.example", 65),
        ("U-label in the site", b"xn--bcher-kva.example", "B\u{dc}CHER.example", 0),
        ("U-label in the certificate", "b\u{fc}cher.example".as_bytes(), "b\u{fc}cher.example", 65),
        ("NUL", b"a.example\0.evil.example", "a.example", 65),
        ("NUL at the end", b"a.example\0", "a.example", 65),
        ("space", b"a.example ", "a.example", 65),
        ("line feed", b"a.example\nedgecert: served", "a.example", 65),
        ("tab", b"\ta.example", "a.example", 65),
        ("escape sequence", b"\x1b[2J\x1b]0;title\x07a.example", "a.example", 65),
        ("delete", b"a\x7f.example", "a.example", 65),
        ("empty", b"", "a.example", 65),
    ];
    for (name, san, domain, code) in rows {
        let cert = ForgedCert { names: vec![san], ..ForgedCert::default() }.pem();
        for json in [&[][..], &["--json"]] {
            let (found, shown) = look_at(&cert, &[&["--domain", domain], json].concat());
            assert_eq!(found, code, "{name}: {shown}");
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{name}: {shown:?}");
            assert!(!shown.contains("\nedgecert: served"), "{name}: {shown}");
            assert!(code == 0 || shown.contains(" does not cover "), "{name}: {shown}");
        }
    }
}

#[test]
fn hundreds_of_names_are_all_looked_at_and_few_are_shown() {
    let names: Vec<String> = (0..500).map(|number| format!("n{number}.example")).collect();
    let cert =
        ForgedCert { names: names.iter().map(String::as_bytes).collect(), ..ForgedCert::default() }.pem();
    let (code, shown) = look_at(&cert, &["--domain", "n0.example", "--domain", "n499.example"]);
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("names        ok: covers n0.example, ") && shown.contains(" and 490 more"),
        "{shown}"
    );
    assert!(shown.len() < 2000, "{shown}");
    let (code, shown) = look_at(&cert, &["--domain", "n500.example"]);
    assert_eq!(code, 65, "{shown}");
    assert!(shown.contains("does not cover n500.example, only n0.example, "), "{shown}");
}

#[test]
fn a_certificate_without_any_san_gets_its_own_message() {
    let cert = ForgedCert { names: Vec::new(), ..ForgedCert::default() }.pem();
    let words = "has no subject alternative name; its common name `a.example` does not count";
    for arguments in [&["--domain", "a.example"][..], &[]] {
        let (code, shown) = look_at(&cert, arguments);
        assert_eq!(code, 65, "{shown}");
        assert!(shown.contains(words), "{shown}");
        assert!(shown.contains("edgecert: hint: issue it with the names as DNS entries"), "{shown}");
    }
    let hostile = ForgedCert { names: Vec::new(), subject: "a\u{1b}[2J\n\0b", ..ForgedCert::default() }.pem();
    let (code, shown) = look_at(&hostile, &[]);
    assert_eq!(code, 65, "{shown}");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
}
