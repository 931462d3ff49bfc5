//! A response as it arrived. Its JSON and its text are private and are released only after redaction; a downloaded
//! private key is the one exception.

use serde_json::{Map, Value};

use super::envelope::find_object;
use super::error::AttemptError;
use crate::key::PrivateKey;
use crate::pem::{self, Block};
use crate::secret::{Redactor, Secret};

/// Maximum length of a message taken from a response.
const MAX_MESSAGE_CHARS: usize = 4096;

/// Fields that may hold the reason of an error; the API document does not show its shape.
const REASON_FIELDS: [&str; 10] = [
    "error",
    "message",
    "msg",
    "detail",
    "reason",
    "error_description",
    "title",
    "description",
    "errors",
    "data",
];

/// A response with any status.
pub(super) struct Response<'r> {
    status: u16,
    /// `None` if the body is not JSON. May hold secrets.
    json: Option<Value>,
    /// Whether the JSON has to be redacted.
    may_hold_secrets: bool,
    /// The start of the body. May hold secrets.
    text: String,
    redactor: &'r Redactor,
}

/// A certificate record with its chain and private key (section 2.2).
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) name: Option<String>,
    pub(crate) domain: Option<String>,
    /// As the service sent it.
    pub(crate) cert_pem: String,
    /// `None` if the service does not return it.
    pub(crate) key_pem: Option<Secret>,
    /// The record without its key.
    pub(crate) json: Map<String, Value>,
}

impl<'r> Response<'r> {
    /// `body` is `None` if it was too large to be read.
    pub(super) fn new(status: u16, body: Option<String>, redactor: &'r Redactor) -> Self {
        let Some(mut text) = body else {
            let text = "it is larger than 32 MiB".into();
            return Self { status, json: None, may_hold_secrets: false, text, redactor };
        };
        let json = serde_json::from_str(&text).ok();
        let may_hold_secrets = redactor.may_change_json(&text);
        if let Some((end, _)) = text.char_indices().nth(MAX_MESSAGE_CHARS) {
            text.truncate(end);
            text.shrink_to_fit();
        }
        Self { status, json, may_hold_secrets, text, redactor }
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// The service's message: the reason in the JSON, or else the start of the body.
    pub(super) fn message(&self) -> String {
        let message = self.json.as_ref().and_then(reason).unwrap_or(&self.text);
        let start: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
        self.redactor.clean(&start)
    }

    /// Parses the JSON of a success; `None` from `parse` means that it is not what the endpoint returns.
    pub(super) fn read<T>(mut self, parse: impl Fn(&Value) -> Option<T>) -> Result<T, AttemptError> {
        self.check_ok()?;
        if let Some(json) = self.json.as_mut().filter(|_| self.may_hold_secrets) {
            self.redactor.clean_json(json);
        }
        self.json.as_ref().and_then(parse).ok_or_else(|| self.invalid())
    }

    /// Reads a downloaded record, with its key.
    pub(super) fn download(self) -> Result<Download, AttemptError> {
        self.check_ok()?;
        let download = self.json.as_ref().and_then(|json| Download::from_json(json, self.redactor));
        download.ok_or_else(|| self.invalid())
    }

    /// Accepts any body, even an empty one, unless it says that the request was not carried out.
    pub(super) fn check_ok(&self) -> Result<(), AttemptError> {
        match self.json.as_ref().and_then(|json| json.get("ok")) {
            Some(Value::Bool(false)) => Err(AttemptError::NotOk { message: self.message() }),
            _ => Ok(()),
        }
    }

    fn invalid(&self) -> AttemptError {
        AttemptError::InvalidResponse { status: self.status, message: self.message() }
    }
}

impl Download {
    /// `json` may hold secrets; in the result, only `key_pem` does.
    fn from_json(json: &Value, redactor: &Redactor) -> Option<Self> {
        let record = find_object(json, &|value| value.get("cert_pem").is_some_and(Value::is_string))?;
        let text = |name: &str| record.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let key_pem = text("key_pem").map(|key| Secret::new(key.to_owned()));
        let mut shown = record.clone();
        redactor.clean_json(&mut shown);
        if let Some(key) = &key_pem {
            remove_key(key, &mut shown);
        }
        let Value::Object(mut json) = shown else { return None };
        json.remove("ok");
        let field = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, domain) = (field("name"), field("domain"));
        Some(Self { name, domain, cert_pem: text("cert_pem")?.to_owned(), key_pem, json })
    }
}

/// Removes a downloaded key from the record.
fn remove_key(key: &Secret, record: &mut Value) {
    let (mut numbers, mut text) = (Redactor::default(), Redactor::default());
    let blocks = pem::parse(key.expose().as_bytes()).blocks.into_iter();
    let keys = blocks.filter_map(|block| match block {
        Block::Key(format, der) => PrivateKey::from_der(format, &der).ok(),
        _ => None,
    });
    for key in keys {
        key.hide_in(&mut numbers);
    }
    text.hide(key);
    // A certificate has its public key and some identifiers in common with the text of its key.
    let cert = record.get_mut("cert_pem").map(Value::take);
    text.clean_json(record);
    if let (Some(cert), Value::Object(record)) = (cert, &mut *record) {
        record.insert("cert_pem".into(), cert);
    }
    numbers.clean_json(record);
}

/// The reason in an error body.
pub(super) fn reason(json: &Value) -> Option<&str> {
    match json {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter().find_map(reason),
        Value::Object(map) => REASON_FIELDS.iter().filter_map(|name| map.get(*name)).find_map(reason),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n";
    const KEY_BODY: &str = "MIGHAgEAMBMGByqGSM49";

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.hide(&Secret::new("key-0123456789".into()));
        redactor
    }

    fn read(status: u16, json: &Value) -> Result<Value, AttemptError> {
        Response::new(status, Some(json.to_string()), &redactor()).read(|json| Some(json.clone()))
    }

    #[test]
    fn json_is_released_without_secrets() {
        let sent = json!({"a": ["x key-0123456789"], "key_pem": "x", "copy": KEY, "escaped": "key-\u{200b}0123456789"});
        let read = read(200, &sent).unwrap();
        assert_eq!(read, json!({"a": ["x [redacted]"], "copy": "[private key]", "escaped": "[redacted]"}));
    }

    #[test]
    fn messages_are_released_without_secrets() {
        let bodies = [
            json!({"ok": false, "error": {"message": "bad key-0123456789"}}).to_string(),
            json!({"ok": false, "errors": [{"detail": "bad key-0123456789"}]}).to_string(),
            "bad key-0123456789".to_owned(),
        ];
        for body in bodies {
            let redactor = redactor();
            let error = Response::new(200, Some(body), &redactor).read(|_| None::<()>).unwrap_err();
            assert!(error.to_string().ends_with(": bad [redacted]"), "{error}");
        }
    }

    #[test]
    fn only_ok_false_denies_success() {
        assert!(read(200, &json!({"ok": false})).is_err());
        for json in [json!({}), json!({"ok": true}), json!({"ok": "no"}), json!([]), json!(null)] {
            assert!(read(200, &json).is_ok(), "{json}");
        }
    }

    #[test]
    fn downloaded_key_is_released_only_as_secret() {
        let json = json!({
            "ok": true, "id": 5, "domain": "a.example", "name": KEY_BODY, "cert_pem": "c", "key_pem": KEY,
            "more": [{"key_pem": "x", "copy": KEY, "line": KEY_BODY}],
        });
        for json in [json.clone(), json!({"data": {"cert": json}})] {
            let redactor = redactor();
            let download = Response::new(200, Some(json.to_string()), &redactor).download().unwrap();
            assert_eq!(download.key_pem.unwrap().expose(), KEY);
            let shown = Value::Object(download.json).to_string();
            assert!(!shown.contains("MIGH") && !shown.contains("key_pem"), "{shown}");
        }
    }
}
