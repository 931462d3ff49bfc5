//! A response as it arrived. Its JSON and its text are private and are released only after redaction; a downloaded
//! private key is the one exception.

use std::sync::Arc;

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::elements::Elements;
use super::envelope::find_object;
use super::error::AttemptError;
use super::json::{self, JsonError};
use super::list::List;
use super::wire::{self, FromJson, ListedObject as _, Uploaded};
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

/// Maximum size of an error body that is parsed for its reason.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Size from which reading a body takes noticeable time.
const LARGE_BODY_BYTES: usize = 1 << 20;

/// A response with any status.
pub(super) struct Response {
    status: u16,
    /// May hold secrets. An error if it was too large to be received.
    body: Result<String, JsonError>,
    redactor: Arc<Redactor>,
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

impl Response {
    pub(super) fn new(status: u16, body: Result<String, JsonError>, redactor: Arc<Redactor>) -> Self {
        Self { status, body, redactor }
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Whether reading it takes noticeable time.
    pub(super) fn is_large(&self) -> bool {
        self.body.as_ref().is_ok_and(|body| body.len() > LARGE_BODY_BYTES)
    }

    /// The service's message in an error: the reason in the JSON, or else the start of the body.
    pub(super) fn message(&self) -> String {
        let small = self.body.as_ref().ok().filter(|body| body.len() <= MAX_ERROR_BYTES);
        self.message_in(small.and_then(|body| json::parse(body).ok()).as_ref())
    }

    /// Parses the JSON of a success; `None` from `parse` means that it is not what the endpoint returns.
    pub(super) fn read<T>(&self, parse: impl FnOnce(&Value) -> Option<T>) -> Result<T, AttemptError> {
        let mut json = self.json()?;
        self.redactor.clean_json(&mut json);
        parse(&json).ok_or_else(|| self.invalid(Some(&json)))
    }

    /// Reads the response to an upload. JSON is not asked for again, even if it does not name the record: the upload may
    /// have been carried out, and the private key would be sent once more.
    pub(super) fn uploaded(&self) -> Result<Uploaded, AttemptError> {
        let mut uploaded = self.read(Uploaded::from_json);
        if let Err(AttemptError::InvalidResponse { is_final, .. }) = &mut uploaded {
            *is_final = self.parse() != Err(JsonError::Syntax);
        }
        uploaded
    }

    /// Reads a list of sites or records from its outline. `elements_at` returns the elements of the array to which the
    /// fields with these names lead.
    pub(super) fn read_list<T: FromJson>(
        self,
        elements_at: impl FnOnce(&[String]) -> Elements<T>,
    ) -> Result<List<T>, AttemptError> {
        let outline = match self.parse() {
            Err(JsonError::TooLarge(limit)) => {
                return Err(AttemptError::ListTooLarge { kind: T::Known::KIND, limit });
            }
            outline => self.require_ok(outline)?,
        };
        let reason = reason(&outline).map(str::to_owned);
        let list = List::new(outline, elements_at, |json| self.redactor.clean_json(json));
        list.ok_or_else(|| self.invalid(reason.map(Value::String).as_ref()))
    }

    /// Reads the downloaded record with this ID, and its key.
    pub(super) fn download(self, id: u64) -> Result<Download, AttemptError> {
        let json = self.json()?;
        let is_other =
            |download: &Download| download.json.get("id").is_some_and(|found| wire::id(found) != Some(id));
        let download = Download::from_json(&json, &self.redactor).filter(|download| !is_other(download));
        download.ok_or_else(|| self.invalid(Some(&json)))
    }

    /// Accepts any body, even an empty one, unless it says that the request was not carried out.
    pub(super) fn check_ok(self) -> Result<(), AttemptError> {
        match self.parse() {
            Err(JsonError::Syntax) => Ok(()),
            json => self.require_ok(json).map(|_| ()),
        }
    }

    /// Parses the body of a successful response unless it says that the request was not carried out.
    fn json(&self) -> Result<Value, AttemptError> {
        self.require_ok(self.parse())
    }

    fn parse(&self) -> Result<Value, JsonError> {
        self.body.as_ref().map_err(Clone::clone).and_then(|body| json::parse(body))
    }

    fn require_ok(&self, json: Result<Value, JsonError>) -> Result<Value, AttemptError> {
        let json = json.map_err(|error| self.unusable(error))?;
        match json.get("ok") {
            Some(Value::Bool(false)) => Err(AttemptError::NotOk { message: self.message_in(Some(&json)) }),
            _ => Ok(json),
        }
    }

    fn message_in(&self, json: Option<&Value>) -> String {
        let body = self.body.as_ref().map_or_else(ToString::to_string, |body| start_of(body));
        let message = json.and_then(reason).map_or(body, start_of);
        self.redactor.clean(&message)
    }

    fn invalid(&self, json: Option<&Value>) -> AttemptError {
        self.not_understood(self.message_in(json))
    }

    fn unusable(&self, error: JsonError) -> AttemptError {
        match error {
            JsonError::Syntax => self.invalid(None),
            error => self.not_understood(self.redactor.clean(&error.to_string())),
        }
    }

    fn not_understood(&self, message: String) -> AttemptError {
        AttemptError::InvalidResponse { status: self.status, message, is_final: false }
    }
}

/// The start of a text, for a message.
fn start_of(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
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
            let mut redactor = Redactor::default();
            hide_key(key, &mut redactor);
            redactor.clean_json(&mut shown);
        }
        let Value::Object(mut json) = shown else { return None };
        json.remove("ok");
        let field = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, domain) = (field("name"), field("domain"));
        Some(Self { name, domain, cert_pem: text("cert_pem")?.to_owned(), key_pem, json })
    }
}

/// Hides a downloaded key: its numbers, or all of its text if that is not a readable key. The text also has what the
/// certificate has, such as the public key.
fn hide_key(key: &Secret, redactor: &mut Redactor) {
    /// Longer than any key. A service may return anything as a key.
    const MAX_KEY_BYTES: usize = 32 << 10;
    let blocks = pem::parse(key.expose().as_bytes()).blocks;
    let is_readable = blocks.iter().all(|block| match block {
        Block::Key(format, der) => {
            PrivateKey::from_der(*format, der).map(|key| key.hide_in(redactor)).is_ok()
        }
        Block::Certificate(_) => true,
        Block::Other(label) => !label.contains("KEY"),
        Block::EncryptedKey | Block::Broken(_) | Block::TooMany => false,
    });
    if blocks.is_empty() || !is_readable {
        let mut body = Zeroizing::new(String::with_capacity(MAX_KEY_BYTES));
        let lines = key.expose().lines().filter(|line| !line.starts_with("-----"));
        body.extend(lines.flat_map(str::chars).filter(char::is_ascii).take(MAX_KEY_BYTES));
        redactor.hide(&body);
    }
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

    const WITHHELD: &str = "[withheld: it repeats a secret]";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n";
    const KEY_BODY: &str = "MIGHAgEAMBMGByqGSM49";

    fn redactor() -> Arc<Redactor> {
        let mut redactor = Redactor::default();
        redactor.hide("key-0123456789");
        Arc::new(redactor)
    }

    fn read(status: u16, json: &Value) -> Result<Value, AttemptError> {
        Response::new(status, Ok(json.to_string()), redactor()).read(|json| Some(json.clone()))
    }

    #[test]
    fn json_is_released_without_secrets() {
        let sent = json!({"a": ["x key-0123456789"], "key_pem": "x", "copy": KEY, "escaped": "key-\u{200b}0123456789"});
        let read = read(200, &sent).unwrap();
        assert_eq!(read, json!({"a": [WITHHELD], "copy": "[private key]", "escaped": WITHHELD}));
    }

    #[test]
    fn messages_are_released_without_secrets() {
        let bodies = [
            json!({"ok": false, "error": {"message": "bad key-0123456789"}}).to_string(),
            json!({"ok": false, "errors": [{"detail": "bad key-0123456789"}]}).to_string(),
            "bad key-0123456789".to_owned(),
        ];
        for body in bodies {
            let error = Response::new(200, Ok(body), redactor()).read(|_| None::<()>).unwrap_err();
            assert!(error.to_string().ends_with(WITHHELD), "{error}");
        }
    }

    #[test]
    fn json_in_response_to_an_upload_is_final() {
        let upload = |body: &str| Response::new(200, Ok(body.into()), redactor()).uploaded();
        assert_eq!(upload(r#"{"ok":true,"id":"5"}"#).unwrap().id, 5);
        let deep = "[".repeat(200) + &"]".repeat(200);
        for (body, is_retried) in [
            (r#"{"ok":true}"#, false),
            (r#"{"ok":true,"id":null}"#, false),
            (r#"{"ok":true,"id":0}"#, false),
            (r#"{"ok":true,"id":"five"}"#, false),
            (r#"{"id":5,"id":6}"#, false),
            ("[]", false),
            (&deep, false),
            (&format!("[{}0]", r#"{"a":0},"#.repeat(200_000)), false),
            ("", true),
            ("<html>", true),
            (r#"{"ok":true,"id":"#, true),
        ] {
            let error = upload(body).unwrap_err();
            assert_eq!(
                (error.is_retryable(), error.may_be_done()),
                (is_retried, true),
                "{body:.40}: {error}"
            );
        }
        let too_large = Response::new(200, Err(JsonError::TooLarge("32 MiB")), redactor());
        assert!(!too_large.uploaded().unwrap_err().is_retryable());
    }

    #[test]
    fn only_ok_false_denies_success() {
        assert!(read(200, &json!({"ok": false})).is_err());
        for json in [json!({}), json!({"ok": true}), json!({"ok": "no"}), json!([]), json!(null)] {
            assert!(read(200, &json).is_ok(), "{json}");
        }
    }

    #[test]
    fn contradictory_responses_are_not_used() {
        for (body, field) in [
            (r#"{"ok":false,"ok":true,"id":"1001","created":true}"#, "ok"),
            (r#"{"ok":true,"id":"1001","id":"1002","created":true}"#, "id"),
        ] {
            let response = Response::new(200, Ok(body.to_owned()), redactor());
            let error = response.read(Uploaded::from_json).unwrap_err().to_string();
            let message = format!("the field `{field}` occurs twice with different values");
            assert!(error.contains(&message), "{body}: {error}");
        }
    }

    #[test]
    fn downloaded_key_is_released_only_as_secret() {
        let json = json!({
            "ok": true, "id": 5, "domain": "a.example", "name": KEY_BODY, "cert_pem": "c", "key_pem": KEY,
            "more": [{"key_pem": "x", "copy": KEY, "line": KEY_BODY}],
        });
        for json in [json.clone(), json!({"data": {"cert": json}})] {
            let download = Response::new(200, Ok(json.to_string()), redactor()).download(5).unwrap();
            assert_eq!(download.key_pem.unwrap().expose(), KEY);
            let shown = Value::Object(download.json).to_string();
            assert!(!shown.contains("MIGH") && !shown.contains("key_pem"), "{shown}");
        }
    }
}
