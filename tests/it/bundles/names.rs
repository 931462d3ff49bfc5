//! The check `names`: which SAN entries cover a site, and that names never print control characters.

use super::check_cert;
use crate::harness::der::ForgedCert;

#[test]
fn only_san_entries_cover_a_site() {
    let rows: [(&str, &[u8], &str, i32); 26] = [
        ("exact match", b"a.example", "a.example", 0),
        ("other name", b"b.example", "a.example", 65),
        ("upper case in the certificate", b"A.EXAMPLE", "a.example", 0),
        ("upper case in the site", b"a.example", "A.Example", 0),
        ("trailing dot in the certificate", b"a.example.", "a.example", 0),
        ("trailing dot in the site", b"a.example", "a.example.", 0),
        ("wildcard", b"*.example", "a.example", 0),
        ("wildcard, two labels", b"*.example", "b.a.example", 65),
        ("wildcard, no label", b"*.a.example", "a.example", 65),
        ("wildcard within a label", b"a*.example", "a.example", 65),
        ("wildcard in the middle", b"b.*.example", "b.a.example", 65),
        ("wildcard alone", b"*", "example", 65),
        ("site is a wildcard", b"*.a.example", "*.a.example", 0),
        ("site is a wildcard, upper case and trailing dot", b"*.A.example.", "*.a.EXAMPLE", 0),
        ("site is a wildcard, certificate has its parent only", b"a.example", "*.a.example", 65),
        ("site is a wildcard below another wildcard", b"*.example", "*.a.example", 65),
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
            let (found_code, output) = check_cert(&cert, &[&["--domain", domain], json].concat());
            assert_eq!(found_code, code, "{name}: {output}");
            assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{name}: {output:?}");
            assert!(!output.contains("\nedgecert: served"), "{name}: {output}");
            assert!(code == 0 || output.contains(" does not cover "), "{name}: {output}");
        }
    }
}

#[test]
fn long_name_lists_are_abbreviated() {
    let names: Vec<String> = (0..500).map(|number| format!("n{number}.example")).collect();
    let cert =
        ForgedCert { names: names.iter().map(String::as_bytes).collect(), ..ForgedCert::default() }.pem();
    let (code, output) = check_cert(&cert, &["--domain", "n0.example", "--domain", "n499.example"]);
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("* names     covers n0.example, ") && output.contains(" and 490 more"),
        "{output}"
    );
    assert!(output.len() < 2000, "{output}");
    let (code, output) = check_cert(&cert, &["--domain", "n500.example"]);
    assert_eq!(code, 65, "{output}");
    assert!(output.contains("does not cover n500.example, only n0.example, "), "{output}");
}

#[test]
fn common_name_does_not_count() {
    let cert = ForgedCert { names: Vec::new(), ..ForgedCert::default() }.pem();
    let message = "has no subject alternative name; its subject `a.example` does not count";
    for arguments in [&["--domain", "a.example"][..], &[]] {
        let (code, output) = check_cert(&cert, arguments);
        assert_eq!(code, 65, "{output}");
        assert!(output.contains(message), "{output}");
        assert!(
            output.contains("edgecert: hint: issue it with its domains as subject alternative names"),
            "{output}"
        );
    }
    let with_control_characters =
        ForgedCert { names: Vec::new(), subject: "a\u{1b}[2J\n\0b", ..ForgedCert::default() }.pem();
    let (code, output) = check_cert(&with_control_characters, &[]);
    assert_eq!(code, 65, "{output}");
    assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{output:?}");
}
