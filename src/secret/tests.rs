//! Tests of redaction: the encodings of secrets that it removes, and the text that it keeps.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::decoded::Decoded;
use super::index::{FRAGMENT_BYTES, Hidden, Index};
use super::redactor::REDACTED;
use super::*;
use zeroize::ZeroizeOnDrop;

const KEY: &str =
    "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAgEGCCqGSM49AwEHBG0w\n-----END PRIVATE KEY-----\n";

fn redactor() -> Redactor {
    let mut redactor = Redactor::default();
    for secret in ["key-0123456789", "us:er$1!", "a", KEY] {
        redactor.hide(&Secret::new(secret.into()));
    }
    redactor
}

#[test]
fn secrets_and_their_fragments_are_redacted() {
    let cases = [
        ("no such key: key-0123456789", "no such key: [redacted]"),
        ("bad MIGHAgEAMBMGByqGSM49 line", "bad [redacted] line"),
        ("cut CqGSM49AwEHBG", "cut [redacted]"),
        ("12 bytes CqGSM49AwEHB", "12 bytes [redacted]"),
        ("11 bytes CqGSM49AwEH", "11 bytes CqGSM49AwEH"),
        ("across lines GSM49AgEGCCqG", "across lines [redacted]"),
        ("in a word xxCqGSM49AwEHBGxx.", "in a word [redacted]"),
        ("a.example is not yours", "a.example is not yours"),
        ("with zero\u{200b} width key-01\u{200b}23456789", "with zero\u{200b} width [redacted]"),
        ("no\u{200b} secret", "no\u{200b} secret"),
        ("Bearer us:er$1!", "Bearer [redacted]"),
        ("\u{fc}ber key-0123456789!", "\u{fc}ber [redacted]!"),
    ];
    for (text, wanted) in cases {
        assert_eq!(redactor().clean(text), wanted);
    }
}

/// Ways to write a text so that a reader gets it back.
fn escaped(text: &str) -> Vec<String> {
    let each = |escape: fn(u8) -> String| text.bytes().map(escape).collect::<String>();
    vec![
        text.to_owned(),
        text.replace(r"\n", "").to_uppercase(),
        each(|byte| format!("%{byte:02x}")),
        each(|byte| format!("%{byte:02X}")),
        each(|byte| format!("%25{byte:02X}")),
        each(|byte| format!("&#{byte};")),
        each(|byte| format!("&#x{byte:X};")),
        each(|byte| format!("&amp;#{byte:03};")),
        each(|byte| format!("\\u{byte:04x}")),
        each(|byte| format!("\\\\u{byte:04X}")),
        each(|byte| format!("{}\u{200b}", char::from(byte))),
        text.replace('+', "&plus;").replace('/', "&sol;").replace('&', "&amp;"),
        text.replace('/', r"\/").replace('"', r#"\""#),
    ]
}

/// Bytes in base64, base64url and hexadecimal.
fn encoded(bytes: &[u8]) -> Vec<String> {
    let standard = STANDARD.encode(bytes);
    let hex = crate::text::hex(bytes);
    let pairs: Vec<_> = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap()).collect();
    let lines: Vec<_> =
        standard.as_bytes().chunks(10).map(|line| std::str::from_utf8(line).unwrap()).collect();
    vec![
        standard.replace('=', ""),
        URL_SAFE.encode(bytes),
        hex.to_uppercase(),
        pairs.join(":"),
        lines.join("\r\n"),
        lines.join("\\n"),
        hex,
        standard,
    ]
}

/// Asserts that `cleaned` has no fragment of an encoded secret.
fn assert_removed(secret: &[u8], cleaned: &str, text: &str) {
    assert!(cleaned.contains(REDACTED), "{text}");
    let left = Decoded::new(&cleaned.replace(REDACTED, " ")).bytes;
    for form in encoded(secret).iter().map(|form| Decoded::new(form).bytes) {
        let length = FRAGMENT_BYTES.min(form.len() - 1);
        let is_left = |piece: &[u8]| left.windows(length).any(|other| other == piece);
        assert!(!form.windows(length).any(is_left), "{cleaned} is left of {text}");
    }
}

#[test]
fn secrets_are_redacted_in_every_encoding() {
    for key in ["key-0123456789", "us:er$1!", "sixsix", "tok%41&amp;\\n\"x", "+/+/+/-_-_-_"] {
        let mut redactor = Redactor::default();
        redactor.hide(&Secret::new(key.into()));
        let bearer = format!("Bearer {key}");
        let encoded = encoded(key.as_bytes()).into_iter().chain(encoded(bearer.as_bytes()));
        for text in encoded.flat_map(|text| escaped(&text)) {
            assert_removed(key.as_bytes(), &redactor.clean(&text), &text);
        }
        for text in escaped(key) {
            let cleaned = redactor.clean(&format!("<{text}>"));
            assert_eq!(cleaned.replace('\u{200b}', ""), "<[redacted]>", "{text}");
        }
    }
}

#[test]
fn numbers_are_redacted_wherever_they_are() {
    let number: Vec<u8> = (1..=32).map(|byte: u8| byte.wrapping_mul(37)).collect();
    let mut redactor = Redactor::default();
    redactor.hide_number(&[&[0, 0], number.as_slice()].concat());
    for before in 0..4 {
        let whole = [vec![0xe5; before], number.clone(), vec![0xa7; 40]].concat();
        for text in encoded(&whole).iter().flat_map(|text| escaped(text)) {
            let cleaned = redactor.clean(&text);
            assert_removed(&number, &cleaned, &text);
            let left = Decoded::new(&cleaned.replace(REDACTED, "")).bytes.len();
            assert!(left + 40 <= Decoded::new(&text).bytes.len(), "{cleaned} is left of {text}");
        }
    }
    let other: Vec<u8> = (1..=96).map(|byte: u8| byte.wrapping_mul(91)).collect();
    for text in encoded(&other) {
        assert_eq!(redactor.clean(&text), text);
    }
}

#[test]
fn every_fragment_of_a_key_is_redacted() {
    let body: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    for start in 0..=body.len() - FRAGMENT_BYTES {
        let fragment = &body[start..start + FRAGMENT_BYTES];
        assert_eq!(redactor().clean(fragment), REDACTED, "{fragment}");
    }
}

#[test]
fn search_of_json_text_misses_nothing() {
    let secrets = ["key-0123456789", "us:er$1!", "xCqGSM49AwEHBGx"];
    for json in secrets.map(|secret| serde_json::json!({"a": [format!("x {secret}")]}).to_string()) {
        assert!(redactor().may_change_json(&json), "{json}");
    }
    for json in [
        r#"{"a":"key\u002d0123456789"}"#,
        r#"{"a":"\/"}"#,
        r#"{"key_pem":1}"#,
        "{\"a\":\"key-\u{200b}0123456789\"}",
        "{\"a\":\"key-\x7f0123456789\"}",
        r#"["PRIVATE KEY"]"#,
    ] {
        assert!(redactor().may_change_json(json), "{json}");
    }
    assert!(
        !redactor().may_change_json("{\n  \"domain\": \"a.example\", \"cname\": \"a-long-name.example\"\n}")
    );
}

#[test]
fn json_is_cleaned_at_every_depth() {
    let mut value = serde_json::json!({"key-0123456789": [{"a": "x key-0123456789"}], "n": 1});
    redactor().clean_json(&mut value);
    assert_eq!(value, serde_json::json!({"[redacted]": [{"a": "x [redacted]"}], "n": 1}));
}

#[test]
fn long_texts_are_redacted_in_parts() {
    let redactor = redactor();
    for secret in ["key-0123456789", "us:er$1!", "MIGHAgEAMBMGByqGSM49", "&#107;ey%2d0123456789"] {
        for gap in ["", "x", " ", "\u{fc}\u{200b}", "%41 %"] {
            let text = format!("{gap}{secret}").repeat(20_000);
            let cleaned = redactor.clean(&text).replace(REDACTED, "");
            let left = cleaned.chars().filter(|c| *c == '0' || *c == '$' || *c == 'G').count();
            assert_eq!(left, 0, "{secret:?} {gap:?}");
        }
    }
}

#[test]
fn debug_output_is_empty() {
    assert_eq!(format!("{:?}", Secret::new("s".into())), "");
}

/// Compiles only for types that are zeroized on drop.
fn is_zeroized_on_drop(_: &impl ZeroizeOnDrop) {}

#[test]
fn secrets_and_their_forms_are_zeroized_on_drop() {
    let secret = Secret::new(KEY.into());
    is_zeroized_on_drop(&secret.0);
    let hidden = Hidden { text: secret.0.clone(), bytes: Zeroizing::default(), is_file: false };
    is_zeroized_on_drop(&hidden.text);
    is_zeroized_on_drop(&hidden.bytes);
    is_zeroized_on_drop(&Index::new(&[hidden]).forms);
}
