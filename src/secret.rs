//! Values that must never be shown: the API key and the private key.
//!
//! They have no `Display`, an empty `Debug`, and are wiped when dropped. The `Redactor` takes them out of text that
//! came from outside, because a service may echo what it was sent.

use std::collections::HashSet;
use std::fmt;

use zeroize::Zeroizing;

use crate::text::is_invisible;

/// A text that is sent to the service and shown to nobody.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<String>);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself. Only what puts it on the wire calls this.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Shortest piece of a secret that is recognised: shorter ones occur by chance.
const PIECE: usize = 12;
/// A shorter word than this is no secret, but part of other words.
const SHORT: usize = 6;

/// Takes the run's secrets out of text from outside.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Vec<Secret>,
    /// Every piece of every secret.
    pieces: HashSet<[u8; PIECE]>,
}

impl Redactor {
    /// Hides this text as a whole and in pieces; of text in PEM its base64 body.
    pub(crate) fn hide(&mut self, secret: &Secret) {
        let body: Zeroizing<String> = Zeroizing::new(
            secret.expose().lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect(),
        );
        self.pieces
            .extend(body.as_bytes().windows(PIECE).filter_map(|piece| <[u8; PIECE]>::try_from(piece).ok()));
        if body.len() >= SHORT {
            self.secrets.push(Secret::new(body.to_string()));
        }
    }

    /// `text` without secrets. Where there is one, characters that cannot be seen go too: they would split it for us
    /// and not for a reader.
    pub(crate) fn clean(&self, text: &str) -> String {
        let visible: String =
            text.chars().filter(|c| c.is_whitespace() || !(c.is_control() || is_invisible(*c))).collect();
        let mut cleaned = visible.clone();
        for secret in &self.secrets {
            cleaned = cleaned.replace(secret.expose(), REDACTED);
        }
        let cleaned: String = cleaned
            .split_inclusive(|c: char| !is_secret_char(c))
            .map(|run| {
                let word = run.trim_end_matches(|c: char| !is_secret_char(c));
                let rest = run.get(word.len()..).unwrap_or_default();
                if self.shares_a_piece(word) { format!("{REDACTED}{rest}") } else { run.to_owned() }
            })
            .collect();
        if cleaned == visible { text.to_owned() } else { cleaned }
    }

    /// The same for every string and key of a JSON value.
    pub(crate) fn clean_json(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::String(text) => *text = self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Value::Object(map) => {
                for (key, mut item) in std::mem::take(map) {
                    self.clean_json(&mut item);
                    map.insert(self.clean(&key), item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn shares_a_piece(&self, word: &str) -> bool {
        word.as_bytes()
            .windows(PIECE)
            .any(|piece| <[u8; PIECE]>::try_from(piece).is_ok_and(|piece| self.pieces.contains(&piece)))
    }
}

const REDACTED: &str = "[redacted]";

/// Base64, base64url, and what API keys are usually made of.
fn is_secret_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=-_.~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.hide(&Secret::new("key-0123456789".into()));
        redactor.hide(&Secret::new("us:er$1!".into()));
        redactor.hide(&Secret::new("a".into()));
        redactor.hide(&Secret::new(
            "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAgEGCCqGSM49AwEHBG0w\n-----END PRIVATE KEY-----\n".into(),
        ));
        redactor
    }

    #[test]
    fn secrets_and_pieces_of_them_are_taken_out() {
        let cases = [
            ("no such key: key-0123456789", "no such key: [redacted]"),
            ("bad MIGHAgEAMBMGByqGSM49 line", "bad [redacted] line"),
            ("cut CqGSM49AwEHBG", "cut [redacted]"),
            ("a.example is not yours", "a.example is not yours"),
            ("with zero\u{200b} width key-01\u{200b}23456789", "with zero width [redacted]"),
            ("no\u{200b} secret", "no\u{200b} secret"),
            ("Bearer us:er$1!", "Bearer [redacted]"),
            ("\u{fc}ber key-0123456789!", "\u{fc}ber [redacted]!"),
        ];
        for (said, shown) in cases {
            assert_eq!(redactor().clean(said), shown);
        }
    }

    #[test]
    fn json_is_cleaned_at_every_depth() {
        let mut value = serde_json::json!({"key-0123456789": [{"a": "x key-0123456789"}], "n": 1});
        redactor().clean_json(&mut value);
        assert_eq!(value, serde_json::json!({"[redacted]": [{"a": "x [redacted]"}], "n": 1}));
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("s".into())), "");
    }
}
