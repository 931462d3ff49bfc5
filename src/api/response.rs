//! A response as it arrived. Its JSON and its text are private and are released only after redaction; a downloaded
//! private key is the one exception.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::envelope::find_object;
use super::error::AttemptError;
use super::list::List;
use super::listing::{Element, Items, JsonError, Reader, START_BYTES};
use super::wire::{self, Listed, Uploaded};
use crate::key::PrivateKey;
use crate::pem::{self, Block};
use crate::secret::{Redactor, Secret};

/// Fields that may hold the reason of an error; the API document does not show its shape.
const REASON_FIELDS: [&str; 7] = ["error", "message", "msg", "detail", "reason", "errors", "data"];

/// A response with any status.
pub(super) struct Response<T = Value> {
    /// Its JSON, or why it is not used. It may hold secrets.
    outline: Result<Value, JsonError>,
    arrays: Vec<Items<T>>,
    status: u16,
    /// Its first bytes, for messages. They may hold secrets.
    start: Vec<u8>,
    redactor: Arc<Redactor>,
    is_quoted: bool,
}

/// A certificate record with its chain and private key (section 2.2).
#[derive(Debug)]
pub(crate) struct Download {
    /// As the service sent it.
    pub(crate) cert_pem: String,
    /// `None` if the service does not return it.
    pub(crate) key_pem: Option<Secret>,
    /// The record without its key.
    pub(crate) json: Map<String, Value>,
}

impl<T: Element> Response<T> {
    /// Reads a response while it arrives, until its end or an error. `is_quoted`: errors may quote it.
    pub(super) async fn receive(
        status: u16,
        redactor: Arc<Redactor>,
        is_quoted: bool,
        source: impl AsyncFnMut() -> Option<Bytes>,
    ) -> Self {
        let mut reader = Reader::new(source, &redactor);
        let outline = reader.read().await;
        // The text says more than the error.
        while outline == Err(JsonError::Syntax) && !reader.is_ended && reader.start.len() < START_BYTES {
            reader.receive().await;
        }
        let Reader { start, arrays, .. } = reader;
        Self { outline, arrays, status, start, redactor, is_quoted }
    }
}

impl<T: Listed> Response<T> {
    /// Reads a list of sites or records.
    pub(super) fn list(mut self) -> Result<List<T>, AttemptError> {
        if self.outline == Err(JsonError::TooLarge) {
            return Err(AttemptError::TooLarge);
        }
        let arrays = mem::take(&mut self.arrays);
        self.read(|outline| List::new(outline, arrays))
    }
}

impl Response {
    /// The service's message in an error: the reason in the JSON, or else the start of the body.
    pub(super) fn error_message(self) -> String {
        self.message(self.outline.as_ref().ok())
    }

    /// Reads the response to an upload. An unusable one that is JSON is final: the upload may have been carried out, and a
    /// retry would send the private key again.
    pub(super) fn uploaded(self) -> Result<Uploaded, AttemptError> {
        let is_json = self.outline != Err(JsonError::Syntax);
        let mut uploaded = self.read(Uploaded::from_json);
        if let Err(AttemptError::InvalidResponse { is_final, .. }) = &mut uploaded {
            *is_final = is_json;
        }
        uploaded
    }

    /// Reads the downloaded record with this ID, and its key.
    pub(super) fn download(mut self, id: u64) -> Result<Download, AttemptError> {
        let json = self.take_json()?;
        let is_wanted =
            |download: &Download| download.json.get("id").is_none_or(|found| wire::id(found) == Some(id));
        let download = Download::from_json(&json, &self.redactor).filter(is_wanted);
        download.ok_or_else(|| self.invalid(self.message(Some(&json))))
    }

    /// Accepts any body, even an empty one, unless it says that the request was not carried out.
    pub(super) fn check_ok(mut self) -> Result<(), AttemptError> {
        if self.outline == Err(JsonError::Syntax) { Ok(()) } else { self.take_json().map(drop) }
    }
}

impl<T> Response<T> {
    /// Reads a success; `None` from `parse` means that it is not what the endpoint returns.
    pub(super) fn read<R>(mut self, parse: impl FnOnce(&Value) -> Option<R>) -> Result<R, AttemptError> {
        let mut json = self.take_json()?;
        self.redactor.clean_json(&mut json);
        parse(&json).ok_or_else(|| self.invalid(self.message(Some(&json))))
    }

    /// Takes the JSON of a success.
    fn take_json(&mut self) -> Result<Value, AttemptError> {
        match mem::replace(&mut self.outline, Ok(Value::Null)) {
            Ok(json) if json.get("ok") == Some(&Value::Bool(false)) => {
                Err(AttemptError::NotOk { message: self.message(Some(&json)) })
            }
            Ok(json) => Ok(json),
            Err(JsonError::Syntax) => Err(self.invalid(self.message(None))),
            Err(error) => Err(self.invalid(self.quote(&error.to_string()))),
        }
    }

    fn message(&self, json: Option<&Value>) -> String {
        let start = String::from_utf8_lossy(&self.start);
        self.quote(json.and_then(reason).unwrap_or(&start))
    }

    fn quote(&self, text: &str) -> String {
        if self.is_quoted { self.redactor.clean(text) } else { String::new() }
    }

    fn invalid(&self, message: String) -> AttemptError {
        AttemptError::InvalidResponse { status: self.status, message, is_final: false }
    }
}

impl Download {
    /// `json` may hold secrets; in the result, only `key_pem` does.
    fn from_json(json: &Value, redactor: &Redactor) -> Option<Self> {
        let record = find_object(json, &|value| value.get("cert_pem")?.as_str().map(|_| value))?;
        let text = |name: &str| wire::non_empty_text(record.get(name));
        let key_pem = text("key_pem").map(|key| Secret::new(key.to_owned()));
        let mut shown = record.clone();
        redactor.clean_json(&mut shown);
        if let Some(key) = &key_pem {
            redactor_of(key).clean_json(&mut shown);
        }
        let Value::Object(mut json) = shown else { return None };
        json.remove("ok");
        Some(Self { cert_pem: text("cert_pem")?.to_owned(), key_pem, json })
    }
}

/// Hides a downloaded key: its numbers, or all of its text if that is not a readable key. The text also has what the
/// certificate has, such as the public key.
fn redactor_of(key: &Secret) -> Redactor {
    /// Longer than any key. A service may return anything as a key.
    const MAX_KEY_BYTES: usize = 32 << 10;
    let mut redactor = Redactor::default();
    let blocks = pem::parse(key.expose().as_bytes()).blocks;
    let is_readable = blocks.iter().all(|block| match block {
        Block::Key(format, der) => {
            PrivateKey::from_der(*format, der).map(|key| key.hide_in(&mut redactor)).is_ok()
        }
        Block::Certificate(_) => true,
        Block::Other(label) => !label.contains("KEY"),
        Block::EncryptedKey | Block::Broken(_) => false,
    });
    if blocks.is_empty() || !is_readable {
        let mut body = Zeroizing::new(String::with_capacity(MAX_KEY_BYTES));
        let lines = key.expose().lines().filter(|line| !line.starts_with("-----"));
        body.extend(lines.flat_map(str::chars).filter(char::is_ascii).take(MAX_KEY_BYTES));
        redactor.hide(&body);
    }
    redactor
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
impl<T: Element> Response<T> {
    /// A response that arrives in these chunks.
    pub(super) fn of<'c>(
        status: u16,
        chunks: impl IntoIterator<Item = &'c [u8]>,
        redactor: Arc<Redactor>,
    ) -> Self {
        let mut chunks = chunks.into_iter().map(Bytes::copy_from_slice);
        let response = Self::receive(status, redactor, true, async || chunks.next());
        futures_util::FutureExt::now_or_never(response).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{ApiObject, Site};
    use super::*;
    use crate::secret::WITHHELD;
    use serde_json::json;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n";
    const KEY_BODY: &str = "MIGHAgEAMBMGByqGSM49";

    fn redactor() -> Arc<Redactor> {
        let mut redactor = Redactor::default();
        redactor.hide("key-0123456789");
        Arc::new(redactor)
    }

    fn response(status: u16, body: &str) -> Response {
        Response::of(status, [body.as_bytes()], redactor())
    }

    fn read(status: u16, json: &Value) -> Result<Value, AttemptError> {
        response(status, &json.to_string()).read(|json| Some(json.clone()))
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
            let error = response(200, &body).read(|_| None::<()>).unwrap_err();
            assert!(error.to_string().ends_with(WITHHELD), "{error}");
        }
        let other = json!([{"key_pem": KEY}]).to_string();
        let error = response(200, &other).read(|_| None::<()>).unwrap_err();
        assert!(error.to_string().ends_with("[private key]"), "{error}");
    }

    #[test]
    fn json_in_response_to_an_upload_is_final() {
        let upload = |body: &str| response(200, body).uploaded();
        assert_eq!(upload(r#"{"ok":true,"id":"5"}"#).unwrap().id, 5);
        let deep = "[".repeat(200) + &"]".repeat(200);
        for (body, is_retried) in [
            (r#"{"ok":true}"#, false),
            (r#"{"ok":true,"id":null}"#, false),
            (r#"{"ok":true,"id":0}"#, false),
            (r#"{"ok":true,"id":"five"}"#, false),
            (r#"{"id":5,"id":6}"#, false),
            ("[]", false),
            (r#"{"ok":true,"id":"five","note":"\ud83d"}"#, false),
            (&deep, false),
            (&format!("{{\"id\":\"5\",\"x\":{}0{}}}", r#"{"a":"#.repeat(200), "}".repeat(200)), false),
            (&format!("[{}0]", r#"{"a":0},"#.repeat(200_000)), false),
            (&format!(r#"{{"x":"{}"}}"#, "y".repeat(2 << 20)), false),
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
        for body in [
            r#"{"ok":false,"ok":true,"id":"1001","created":true}"#,
            r#"{"ok":true,"id":"1001","id":"1002","created":true}"#,
        ] {
            let error = response(200, body).read(Uploaded::from_json).unwrap_err().to_string();
            assert!(error.contains("a field occurs twice with different values"), "{body}: {error}");
        }
    }

    #[test]
    fn downloaded_key_is_released_only_as_secret() {
        let json = json!({
            "ok": true, "id": 5, "domain": "a.example", "name": KEY_BODY, "cert_pem": "c", "key_pem": KEY,
            "more": [{"key_pem": "x", "copy": KEY, "line": KEY_BODY}],
        });
        for json in [json.clone(), json!({"data": {"cert": json}})] {
            let download = response(200, &json.to_string()).download(5).unwrap();
            assert_eq!(download.key_pem.unwrap().expose(), KEY);
            let shown = Value::Object(download.json).to_string();
            assert!(!shown.contains("MIGH") && !shown.contains("key_pem"), "{shown}");
        }
    }

    #[test]
    fn value_that_cannot_be_represented_is_not_absent() {
        let list = Response::<Site>::of(
            200,
            [br#"{"sites":[],"total":0,"error":"shard 3 is down \ud83d"}"#.as_slice()],
            redactor(),
        );
        assert_eq!(list.list().unwrap().gaps.len(), 1);
        let site = response(200, r#"{"id":1,"domain":"a.example","cert_id":1e400}"#);
        let site = site.read(ApiObject::<Site>::of_site).unwrap().known;
        assert_eq!(
            (site.cert_id, site.unreadable_cert_id.as_deref()),
            (None, Some(r#"{"message":"1e400"}"#))
        );
    }
}
