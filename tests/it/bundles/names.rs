//! The check `names`: what it says of the names in a certificate, which never print control characters. Which of them
//! cover a domain is tested in `names`.

use super::Input;
use crate::harness::der::ForgedCert;
use crate::harness::edgecert;

/// Asserts what the check finds in a certificate with these names.
#[track_caller]
fn assert_names(names: &[&[u8]], domains: &[&str], line: &str) {
    let cert = ForgedCert { names: names.to_vec(), ..ForgedCert::default() }.pem();
    Input { cert: cert.as_bytes(), domains, ..Input::default() }.check().assert_finds(line, line);
}

#[test]
fn uncovered_domain_is_named() {
    assert_names(&[b"a.example"], &["A.Example."], "* names     covers a.example\n");
    assert_names(&[b"*.example"], &["a.example", "b.example"], "* names     covers *.example\n");
    let rows: [(&[u8], &str); 9] = [
        (b"b.example", "b.example"),
        ("b\u{fc}cher.example".as_bytes(), "b\u{fc}cher.example"),
        (b"a.example\0.evil.example", "a.example .evil.example"),
        (b"a.example\0", "a.example"),
        (b"a.example\nedgecert: served", "a.example edgecert: served"),
        (b"\ta.example", "a.example"),
        (b"\x1b[2J\x1b]0;title\x07a.example", "[2J ]0;title a.example"),
        (b"a\x7f.example", "a .example"),
        (b"", ""),
    ];
    for (san, shown) in rows {
        let domain =
            if san == "b\u{fc}cher.example".as_bytes() { "b\u{fc}cher.example" } else { "a.example" };
        assert_names(
            &[san],
            &[domain],
            &format!("x names     cert.pem does not cover {domain}, only {shown}\n"),
        );
    }
}

#[test]
fn long_name_lists_are_abbreviated() {
    let names: Vec<String> = (0..500).map(|number| format!("n{number}.example")).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let first: Vec<String> = (0..10).map(|number| format!("n{number}.example")).collect();
    let list = format!("{} and 490 more\n", first.join(", "));
    assert_names(&names, &["n0.example", "n499.example"], &format!("* names     covers {list}"));
    assert_names(
        &names,
        &["n500.example"],
        &format!("x names     cert.pem does not cover n500.example, only {list}"),
    );
}

#[test]
fn common_name_does_not_count() {
    let message = "x names     cert.pem has no subject alternative name; its subject `a.example` does not count\n    \
        hint: issue it with its domains as subject alternative names";
    for domains in [&["a.example"][..], &[]] {
        assert_names(&[], domains, message);
    }
    let cert = ForgedCert { names: Vec::new(), subject: "a\u{1b}[2J\n\0b", ..ForgedCert::default() }.pem();
    let line = "x names     cert.pem has no subject alternative name; its subject `a [2J b` does not count\n";
    Input { cert: cert.as_bytes(), ..Input::default() }.check().assert_finds("control characters", line);
}

#[test]
fn control_characters_are_not_printed() {
    let names: Vec<&[u8]> = vec![b"\x1b[2J\x1b]0;title\x07a.example\nedgecert: served"];
    let cert = ForgedCert { names, ..ForgedCert::default() }.pem();
    for arguments in [&["--domain", "a.example"][..], &["--json"]] {
        let hook = edgecert();
        let file = hook.write_file("cert.pem", &cert);
        let output = hook.args(["check", "--cert"]).args([file]).args(arguments).run().snapshot();
        assert!(output.contains("[2J ]0;title a.example edgecert: served"), "{output}");
        assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{output:?}");
    }
}
