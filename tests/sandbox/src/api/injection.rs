//! Lets a fault strike a request: instead of it, after it, or within its answer.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::app::App;
use crate::faults::{Fault, FaultAction};
use crate::response::Answer;
use crate::transport::{Cut, OutBody};

/// The answer to a request, or the end of its connection.
pub(super) async fn answer(
    app: &App,
    entry: usize,
    fault: Option<Fault>,
    carry_out: impl FnOnce() -> Answer,
    cut: Cut,
) -> Response<OutBody> {
    let sent = |answer: &Answer| {
        let status = answer.status.as_u16();
        app.journal.amend(entry, |request| request.status = Some(status));
    };
    let Some(fault) = fault else {
        let answer = carry_out();
        sent(&answer);
        return answer.whole();
    };
    match fault.action {
        FaultAction::Status => {
            let answer = instead(&fault);
            sent(&answer);
            answer.whole()
        }
        FaultAction::CloseBefore => cut.now().await,
        FaultAction::CloseAfter => {
            carry_out();
            cut.now().await
        }
        FaultAction::Truncate => {
            let answer = carry_out();
            sent(&answer);
            let body = OutBody::truncated(&answer.body, fault.bytes.unwrap_or(0), cut);
            answer.around(body)
        }
        FaultAction::Stall => {
            let answer = carry_out();
            tokio::time::sleep(Duration::from_secs_f64(fault.seconds.unwrap_or(0.0))).await;
            sent(&answer);
            answer.whole()
        }
    }
}

/// The answer that a `status` fault gives.
fn instead(fault: &Fault) -> Answer {
    let status = fault.status.and_then(|code| StatusCode::from_u16(code).ok());
    let mut answer = Answer::empty(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    let (kind, body) = match &fault.body {
        Value::Null => (None, String::new()),
        Value::String(text) => (Some(kind_of(text)), text.clone()),
        json => (Some("application/json"), json.to_string()),
    };
    if let Some(kind) = kind {
        answer = answer.with(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (name, value) in &fault.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            answer = answer.with(name, value);
        }
    }
    answer.having(body.into())
}

fn kind_of(text: &str) -> &'static str {
    if serde_json::from_str::<Value>(text).is_ok() {
        "application/json"
    } else if text.trim_start().starts_with('<') {
        "text/html; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    }
}
