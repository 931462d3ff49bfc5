//! Tests of redaction: the encodings in which secrets are recognized, and the text that is kept.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use zeroize::ZeroizeOnDrop;

use super::redactor::WINDOW;
use super::*;

const API_KEYS: [&str; 8] = [
    "key-0123456789",
    "us:er$1!",
    "sixsix",
    "tok%41&amp;\\n\"x",
    "+/+/+/-_-_-_",
    "10045:f3a9c1d77be",
    "tok$12345678$abcdefgh",
    "p@ss!w0rd#x",
];

fn redactor(secrets: &[&str]) -> Redactor {
    let mut redactor = Redactor::default();
    for secret in secrets {
        redactor.hide(secret);
    }
    redactor
}

/// Bytes in base64 with and without padding and line breaks, in base64url and in hexadecimal.
fn encoded(bytes: &[u8]) -> Vec<String> {
    let (base64, hex) = (STANDARD.encode(bytes), crate::text::hex(bytes));
    let lines = |text: &str, width: usize, end: &str| {
        let lines = text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap());
        lines.collect::<Vec<_>>().join(end)
    };
    vec![
        base64.replace('=', ""),
        URL_SAFE.encode(bytes),
        lines(&base64, 64, "\n"),
        lines(&base64, 76, "\r\n"),
        lines(&base64, 10, "\\r\\n"),
        lines(&base64, 8, "\n"),
        lines(&base64, 20, "\n    "),
        hex.to_uppercase(),
        lines(&hex, 2, ":"),
        lines(&hex.to_uppercase(), 4, " "),
        lines(&hex, 20, "\n    "),
        hex,
        base64,
    ]
}

/// Ways to write a text so that a reader gets it back.
fn escaped(text: &str) -> Vec<String> {
    let each = |escape: fn(u8) -> String| text.bytes().map(escape).collect::<String>();
    let url = each(|byte| match char::from(byte) {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        _ => format!("%{byte:02X}"),
    });
    vec![
        text.to_owned(),
        serde_json::to_string(text).unwrap(),
        serde_json::to_string(&serde_json::to_string(text).unwrap()).unwrap(),
        text.to_uppercase(),
        text.to_lowercase(),
        url.replace('%', "%25"),
        url,
        each(|byte| format!("%{byte:02x}")),
        each(|byte| format!("&#{byte};")),
        each(|byte| format!("&#x{byte:X};")),
        each(|byte| format!("&amp;#{byte:03};")),
        each(|byte| format!("\\u{byte:04x}")),
        each(|byte| format!("\\\\u{byte:04X}")),
        each(|byte| format!("\\x{byte:02x}")),
        each(|byte| format!("{}\u{200b}", char::from(byte))),
        text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;"),
        text.replace('/', r"\/"),
        text.replace('+', "%2B").replace('/', "%2f").replace('=', "%3D"),
    ]
}

#[test]
fn api_keys_are_withheld_in_every_encoding() {
    for key in API_KEYS {
        let redactor = redactor(&[key]);
        let bearer = format!("Bearer {key}");
        let texts = [key.as_bytes(), bearer.as_bytes()].into_iter().flat_map(encoded).chain([bearer.clone()]);
        for text in texts.flat_map(|text| escaped(&text)) {
            let message = format!("unknown key <{text}>, ask the administrator");
            assert_eq!(redactor.clean(&message), WITHHELD, "{key}: {text}");
        }
    }
}

#[test]
fn numbers_are_withheld_wherever_they_are() {
    let number: Vec<u8> = (1..=32).map(|byte: u8| byte.wrapping_mul(37)).collect();
    let mut redactor = Redactor::default();
    redactor.hide_bytes(&[&[0, 0], number.as_slice()].concat());
    for before in 0..4 {
        let whole = [vec![0xe5; before], number.clone(), vec![0xa7; 40]].concat();
        for text in encoded(&whole).iter().flat_map(|text| escaped(text)) {
            assert!(redactor.is_secret(&text), "{before}: {text}");
        }
    }
    let other: Vec<u8> = (1..=96).map(|byte: u8| byte.wrapping_mul(91)).collect();
    for text in encoded(&other).iter().flat_map(|text| escaped(text)) {
        assert_eq!(redactor.clean(&text), *text);
    }
}

#[test]
fn twelve_characters_give_a_secret_away() {
    let secret = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0w";
    let redactor = redactor(&[secret]);
    for start in 0..=secret.len() - WINDOW {
        assert!(redactor.is_secret(&format!("cut {}!", &secret[start..start + WINDOW])));
        assert!(!redactor.is_secret(&format!("cut !{}!", &secret[start..start + WINDOW - 1])));
    }
}

#[test]
fn other_texts_are_kept() {
    let redactor = redactor(&[API_KEYS.as_slice(), &["short", "a", ""]].concat());
    for text in [
        "",
        "a.example is not yours",
        "the certificate expired at 2026-01-01T00:00:00Z",
        "100 % & more \\ or less",
        "\u{fc}ber 5 %, na\u{ef}ve & c\u{200b}o.",
        "https://a.example/%7Euser?x=1&y=2",
        "key-012345",
        "too short",
        "{\"error\":\"domain \\\"a.example\\\" not found\"}",
    ] {
        assert_eq!(redactor.clean(text), text);
    }
    assert_eq!(Redactor::default().clean("key-0123456789"), "key-0123456789");
}

#[test]
fn json_is_cleaned_at_every_depth() {
    let mut value = serde_json::json!({
        "key-0123456789": 1, "a": [{"b": "x key-0123456789"}, "kept"], "key_pem": "x",
        "copy": "-----BEGIN PRIVATE KEY-----", "n": 1,
    });
    redactor(&API_KEYS).clean_json(&mut value);
    let wanted = serde_json::json!({"a": [{"b": WITHHELD}, "kept"], "copy": "[private key]", "n": 1});
    assert_eq!(value, wanted);
}

#[test]
fn debug_output_is_empty() {
    assert_eq!(format!("{:?}", Secret::new("s".into())), "");
}

/// Compiles only for types that are zeroized on drop.
fn is_zeroized_on_drop(_: &impl ZeroizeOnDrop) {}

#[test]
fn secrets_and_their_forms_are_zeroized_on_drop() {
    is_zeroized_on_drop(&Secret::new("s".into()).0);
    is_zeroized_on_drop(&decode::decoded("s"));
    is_zeroized_on_drop(&Redactor::default().table);
}
