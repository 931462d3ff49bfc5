//! Applies a fault to a request.

use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::faults::{Fault, FaultAction};
use crate::request_log::LogEntry;
use crate::response::Response;
use crate::transport::{AbortHandle, HttpResponse, ResponseBody};

/// Responds to a request as the fault says, or normally if there is none, and logs the status that is sent.
pub(super) async fn respond(
    fault: Option<Fault>,
    entry: LogEntry<'_>,
    execute: impl FnOnce() -> Response,
    abort: AbortHandle,
) -> HttpResponse {
    let Some(fault) = fault else {
        return logged(entry, execute()).into_http();
    };
    match fault.action {
        FaultAction::Status => logged(entry, status_response(&fault)).into_http(),
        FaultAction::CloseBefore => abort.abort().await,
        FaultAction::CloseAfter => {
            execute();
            abort.abort().await
        }
        FaultAction::Truncate => {
            let bytes = fault.bytes.unwrap_or(0);
            logged(entry, execute()).into_http_with(|body| ResponseBody::truncated(&body, bytes, abort))
        }
        FaultAction::Stall => {
            let response = execute();
            tokio::time::sleep(Duration::from_secs_f64(fault.seconds.unwrap_or(0.0))).await;
            logged(entry, response).into_http()
        }
    }
}

/// Logs the status of a response that is about to be sent.
fn logged(entry: LogEntry<'_>, response: Response) -> Response {
    entry.update(|request| request.status = Some(response.status.as_u16()));
    response
}

/// Returns the response of a `status` fault.
fn status_response(fault: &Fault) -> Response {
    let status = fault.status.and_then(|code| StatusCode::from_u16(code).ok());
    let mut response = Response::empty(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    let (content_type, body) = match &fault.body {
        Value::Null => (None, String::new()),
        Value::String(text) => (Some(guess_content_type(text)), text.clone()),
        json => (Some("application/json"), json.to_string()),
    };
    if let Some(content_type) = content_type {
        response = response.with_header(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in &fault.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response = response.with_header(name, value);
        }
    }
    response.with_body(body)
}

fn guess_content_type(text: &str) -> &'static str {
    // Avoids building the value, which may take many times the memory of a large text.
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        "application/json"
    } else if text.trim_start().starts_with('<') {
        "text/html; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    }
}
