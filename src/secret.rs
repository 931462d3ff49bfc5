//! Values that must never be shown: the API key and the private key.
//!
//! They have no `Display`, an empty `Debug`, and are wiped when dropped. The `Redactor` takes them out of text that
//! came from outside, because a service may echo what it was sent.

use std::fmt;

use zeroize::Zeroizing;

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
const SHORT: usize = 6;

/// Takes the run's secrets out of text from outside.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Vec<Secret>,
}

impl Redactor {
    /// Hides this text as a whole; of text in PEM, the base64 body and every piece of it.
    pub(crate) fn hide(&mut self, secret: &Secret) {
        let body: String =
            secret.expose().lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        if !body.is_empty() {
            self.secrets.push(Secret::new(body));
        }
    }

    /// `text` with every run of characters that shares a piece with a secret replaced.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut cleaned = String::with_capacity(text.len());
        for run in text.split_inclusive(|c: char| !is_secret_char(c)) {
            let word = run.trim_end_matches(|c: char| !is_secret_char(c));
            if self.holds(word) {
                cleaned.push_str("[redacted]");
                cleaned.push_str(run.get(word.len()..).unwrap_or_default());
            } else {
                cleaned.push_str(run);
            }
        }
        cleaned
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

    fn holds(&self, word: &str) -> bool {
        self.secrets.iter().any(|secret| {
            let secret = secret.expose();
            if secret.len() < PIECE {
                // So short a secret may be part of an ordinary word.
                return if secret.len() < SHORT { word == secret } else { word.contains(secret) };
            }
            word.as_bytes()
                .windows(PIECE)
                .any(|piece| std::str::from_utf8(piece).is_ok_and(|piece| secret.contains(piece)))
        })
    }
}

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
