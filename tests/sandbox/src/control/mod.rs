//! The control port: what a rehearsal may do and see that a customer cannot. It is separate from the API so
//! that a client under test cannot reach it by mistake.

mod packages;

use std::fmt::Display;
use std::sync::Arc;

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::app::App;
use crate::faults::Fault;
use crate::response::{RequestError, Response};
use crate::store::sites::{self, Site};
use crate::transport::HttpResponse;
use crate::{push, quirks};

/// Responds to one request to the control port.
pub(crate) async fn handle<B>(app: Arc<App>, request: Request<B>) -> HttpResponse
where
    B: Body<Error: Display>,
{
    let (head, body) = request.into_parts();
    let result = match body.collect().await {
        Ok(body) => route(&app, &head.method, head.uri.path(), &body.to_bytes()),
        Err(error) => Err(RequestError::bad_request(error.to_string())),
    };
    match result {
        Ok(value) => Response::json(StatusCode::OK, &value).into_http(),
        Err(RequestError { status, message }) => {
            Response::json(status, &json!({ "ok": false, "error": message })).into_http()
        }
    }
}

fn route(app: &App, method: &Method, path: &str, body: &[u8]) -> Result<Value, RequestError> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method.as_str(), segments.as_slice()) {
        ("GET", ["faults"]) => Ok(json!(app.faults.list())),
        ("POST", ["faults"]) => add_faults(app, body),
        ("DELETE", ["faults"]) => {
            app.faults.clear();
            Ok(success())
        }
        ("GET", ["requests"]) => Ok(json!(app.request_log.list())),
        ("GET", ["edge"]) => Ok(json!(app.edge.list())),
        ("GET", ["dns"]) => dns(app),
        ("GET", ["quirks"]) => Ok(drawn_quirks(app)),
        ("POST", ["packages", id]) => packages::change(app, id, body),
        ("POST", ["push"]) => push_or_hold(app, body),
        _ => Err(RequestError::not_found("not found")),
    }
}

fn success() -> Value {
    json!({ "ok": true })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestError> {
    serde_json::from_slice(body).map_err(|error| RequestError::bad_request(error.to_string()))
}

/// Queues one fault or an array of faults.
fn add_faults(app: &App, body: &[u8]) -> Result<Value, RequestError> {
    let faults: Result<Vec<Fault>, String> = match parse(body)? {
        Value::Array(values) => {
            let numbered = (1..).zip(values);
            let parse = |(number, value): (u32, Value)| {
                parse_fault(value).map_err(|reason| format!("fault {number}: {reason}"))
            };
            numbered.map(parse).collect()
        }
        value => parse_fault(value).map(|fault| vec![fault]),
    };
    app.faults.add(faults.map_err(RequestError::bad_request)?);
    Ok(success())
}

fn parse_fault(value: Value) -> Result<Fault, String> {
    let fault: Fault = serde_json::from_value(value).map_err(|error| error.to_string())?;
    fault.check()?;
    Ok(fault)
}

/// Lists the CNAME targets.
fn dns(app: &App) -> Result<Value, RequestError> {
    let sites = sites::list(app.store().read(), None)?;
    let record = |site: &Site| json!({ "cname": site.cname, "domain": site.domain, "site_id": site.id });
    Ok(sites.iter().map(record).collect())
}

fn drawn_quirks(app: &App) -> Value {
    let row = |(subject, variants): &(&str, &[&str])| json!({ "open": subject, "variants": variants });
    let table: Vec<Value> = quirks::TABLE.iter().map(row).collect();
    json!({ "seed": app.quirks.seed, "drawn": format!("{:?}", app.quirks), "table": table })
}

/// Holds or releases pushes; without a body, pushes everything that is pending.
fn push_or_hold(app: &App, body: &[u8]) -> Result<Value, RequestError> {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PushRequest {
        hold: Option<bool>,
    }
    let request = if body.is_empty() { PushRequest::default() } else { parse(body)? };
    match request.hold {
        Some(held) => app.pushes.hold(held),
        None => push::push_all(app)?,
    }
    Ok(success())
}
