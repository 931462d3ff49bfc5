//! Secrets: the API key and private keys.
//!
//! A `Secret` has no `Display`, an empty `Debug`, and is zeroized on drop. The `Redactor` removes secrets from text
//! from outside, because a service may echo what it was sent.

use std::fmt;

use serde_json::Value;
use zeroize::Zeroizing;

use crate::text::is_invisible;

/// Text that may only be sent to the service or written to a key file, never shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for the code that sends or writes it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Replaces the secrets of a run, and fragments of them, in untrusted text.
#[derive(Default)]
pub struct Redactor {
    hidden: Vec<Hidden>,
}

/// A secret to be redacted.
struct Hidden {
    /// For PEM the base64 body in one line.
    body: Secret,
    /// Every fragment of the body, sorted.
    fragments: Zeroizing<Vec<Fragment>>,
}

/// `FRAGMENT_BYTES` consecutive bytes of a text, packed into the low bits.
type Fragment = u128;

/// Length of the shortest fragment that is recognized; shorter ones occur by chance.
const FRAGMENT_BYTES: usize = 12;

/// Length of the shortest secret that is redacted; a shorter one would match inside ordinary words.
const MIN_SECRET_BYTES: usize = 6;

const REDACTED: &str = "[redacted]";

/// What a PEM private key contains.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Fields of JSON objects that hold a private key.
const PRIVATE_KEY_FIELDS: [&str; 3] = ["key_pem", "private_key", "privkey"];

impl Redactor {
    /// Adds a secret. For PEM, the base64 body counts and the boundary lines do not.
    pub fn hide(&mut self, secret: &Secret) {
        let text = secret.expose();
        // Allocated once at full size: growing would leave copies behind that are not zeroized.
        let mut body = String::with_capacity(text.len());
        body.extend(text.lines().filter(|line| !line.starts_with("-----")).map(str::trim));
        let body = Secret::new(body);
        if body.expose().len() >= MIN_SECRET_BYTES {
            self.hidden.push(Hidden::new(body));
        }
    }

    /// Returns `text` with every secret replaced. In a text that contains one, invisible characters are dropped too:
    /// they would hide a secret from the search, but not from a reader.
    pub fn clean(&self, text: &str) -> String {
        if !self.may_change(text) {
            return text.to_owned();
        }
        let visible: String =
            text.chars().filter(|c| c.is_whitespace() || !(c.is_control() || is_invisible(*c))).collect();
        let mut cleaned = visible.clone();
        for hidden in &self.hidden {
            cleaned = cleaned.replace(hidden.body.expose(), REDACTED);
        }
        let cleaned: String = cleaned
            .split_inclusive(|c: char| !is_secret_char(c))
            .map(|run| {
                let word = run.trim_end_matches(|c: char| !is_secret_char(c));
                let rest = run.get(word.len()..).unwrap_or_default();
                if self.has_fragment_of(word.as_bytes()) {
                    format!("{REDACTED}{rest}")
                } else {
                    run.to_owned()
                }
            })
            .collect();
        if cleaned == visible { text.to_owned() } else { cleaned }
    }

    /// Cleans every string and object key in a JSON value, and removes every private key, known or not.
    pub fn clean_json(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains(PRIVATE_KEY) => *text = "[private key]".into(),
            Value::String(text) if self.may_change(text) => *text = self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Value::Object(map) => {
                map.retain(|name, _| !PRIVATE_KEY_FIELDS.contains(&name.as_str()));
                map.values_mut().for_each(|item| self.clean_json(item));
                if map.keys().any(|name| self.may_change(name)) {
                    let fields = std::mem::take(map).into_iter();
                    map.extend(fields.map(|(name, item)| (self.clean(&name), item)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether `clean_json` may change the value of this JSON text. Searching the text is much cheaper than walking
    /// the value, and hardly any response holds a secret.
    pub(crate) fn may_change_json(&self, json: &str) -> bool {
        // Escaped and invisible characters may hide a secret from the search.
        let may_hide = !json.is_ascii() || json.contains('\\') || json.contains('\x7f');
        let mut private_key = PRIVATE_KEY_FIELDS.iter().chain([&PRIVATE_KEY]);
        may_hide || private_key.any(|text| json.contains(text)) || self.matches(json)
    }

    /// Whether `clean` may change a text.
    fn may_change(&self, text: &str) -> bool {
        let is_visible = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
        text.len() >= MIN_SECRET_BYTES && (!text.bytes().all(is_visible) || self.matches(text))
    }

    /// Whether a secret or a fragment of one is in a text without invisible characters.
    fn matches(&self, text: &str) -> bool {
        let words = text.as_bytes().split(|byte| !is_secret_byte(*byte));
        let mut words = words.filter(|word| word.len() >= FRAGMENT_BYTES);
        self.hidden.iter().any(|hidden| text.contains(hidden.body.expose()))
            || words.any(|word| self.has_fragment_of(word))
    }

    fn has_fragment_of(&self, word: &[u8]) -> bool {
        fragments(word).any(|fragment| {
            self.hidden.iter().any(|hidden| hidden.fragments.binary_search(&fragment).is_ok())
        })
    }
}

impl Hidden {
    fn new(body: Secret) -> Self {
        // Allocated once, as in `hide`.
        let mut sorted = Zeroizing::new(Vec::with_capacity(body.expose().len()));
        sorted.extend(fragments(body.expose().as_bytes()));
        sorted.sort_unstable();
        Self { body, fragments: sorted }
    }
}

/// All fragments of a text, in order.
fn fragments(text: &[u8]) -> impl Iterator<Item = Fragment> {
    const MASK: Fragment = (1 << (8 * FRAGMENT_BYTES)) - 1;
    let packed = text.iter().scan(0, |last, byte| {
        *last = *last << 8 & MASK | Fragment::from(*byte);
        Some(*last)
    });
    packed.skip(FRAGMENT_BYTES - 1)
}

/// Whether a byte occurs in base64, base64url or a typical API key.
fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'.' | b'~')
}

fn is_secret_char(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_secret_byte)
}

#[cfg(test)]
mod tests {
    use zeroize::ZeroizeOnDrop;

    use super::*;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAgEGCCqGSM49AwEHBG0w\n-----END PRIVATE KEY-----\n";

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
            ("with zero\u{200b} width key-01\u{200b}23456789", "with zero width [redacted]"),
            ("no\u{200b} secret", "no\u{200b} secret"),
            ("Bearer us:er$1!", "Bearer [redacted]"),
            ("\u{fc}ber key-0123456789!", "\u{fc}ber [redacted]!"),
        ];
        for (text, wanted) in cases {
            assert_eq!(redactor().clean(text), wanted);
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
            !redactor()
                .may_change_json("{\n  \"domain\": \"a.example\", \"cname\": \"a-long-name.example\"\n}")
        );
    }

    #[test]
    fn json_is_cleaned_at_every_depth() {
        let mut value = serde_json::json!({"key-0123456789": [{"a": "x key-0123456789"}], "n": 1});
        redactor().clean_json(&mut value);
        assert_eq!(value, serde_json::json!({"[redacted]": [{"a": "x [redacted]"}], "n": 1}));
    }

    #[test]
    fn debug_output_is_empty() {
        assert_eq!(format!("{:?}", Secret::new("s".into())), "");
    }

    /// Compiles only for types that are zeroized on drop.
    fn is_zeroized_on_drop(_: &impl ZeroizeOnDrop) {}

    #[test]
    fn secrets_and_fragments_are_zeroized_on_drop() {
        let secret = Secret::new(KEY.into());
        is_zeroized_on_drop(&secret.0);
        let Hidden { body, fragments } = Hidden::new(secret);
        is_zeroized_on_drop(&body.0);
        is_zeroized_on_drop(&fragments);
    }
}
