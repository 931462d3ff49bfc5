//! The control port: what a rehearsal may do that a customer cannot. It is apart from the API so that a client
//! under test can never reach it by mistake.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::app::App;
use crate::clock::iso;
use crate::faults::Fault;
use crate::response::Answer;
use crate::store::packages::{self, Package};
use crate::store::{edge, sites};
use crate::transport::OutBody;
use crate::{clock, push, quirks};

const TRAFFIC_EXCEEDED: &str = "package traffic exceeded";

/// Answers one request to the control port.
pub(crate) async fn handle(app: Arc<App>, request: Request<Incoming>) -> Response<OutBody> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return wrong(error.to_string()).whole(),
    };
    let path = head.uri.path().trim_matches('/').to_owned();
    let segments: Vec<&str> = path.split('/').collect();
    let answer = match (&head.method, segments.as_slice()) {
        (&Method::GET, ["faults"]) => ok(&json!(app.faults.list())),
        (&Method::POST, ["faults"]) => add_faults(&app, &body),
        (&Method::DELETE, ["faults"]) => {
            app.faults.clear();
            ok(&json!({ "ok": true }))
        }
        (&Method::GET, ["requests"]) => ok(&json!(app.journal.list())),
        (&Method::GET, ["edge"]) => ok(&json!(app.edge.list())),
        (&Method::GET, ["dns"]) => dns(&app),
        (&Method::GET, ["quirks" | "whims"]) => ok(&drawn(&app)),
        (&Method::POST, ["packages", id]) => change_package(&app, id, &body),
        (&Method::POST, ["push"]) => push_pending(&app, &body),
        _ => Answer::json(StatusCode::NOT_FOUND, &json!({ "ok": false, "error": "not found" })),
    };
    answer.whole()
}

fn ok(value: &Value) -> Answer {
    Answer::json(StatusCode::OK, value)
}

fn wrong(reason: impl Into<String>) -> Answer {
    Answer::json(StatusCode::BAD_REQUEST, &json!({ "ok": false, "error": reason.into() }))
}

fn failed(error: &rusqlite::Error) -> Answer {
    let value = json!({ "ok": false, "error": error.to_string() });
    Answer::json(StatusCode::INTERNAL_SERVER_ERROR, &value)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Answer> {
    serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))
}

/// One fault, or an array of them.
fn add_faults(app: &App, body: &[u8]) -> Answer {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMore {
        More(Vec<Value>),
        One(Value),
    }
    let values = match parse(body) {
        Ok(OneOrMore::More(values)) => values,
        Ok(OneOrMore::One(value)) => vec![value],
        Err(answer) => return answer,
    };
    let faults: Result<Vec<Fault>, String> = values.into_iter().map(fault).collect();
    match faults {
        Ok(faults) => {
            app.faults.add(faults);
            ok(&json!({ "ok": true }))
        }
        Err(reason) => wrong(reason),
    }
}

fn fault(value: Value) -> Result<Fault, String> {
    let fault: Fault = serde_json::from_value(value).map_err(|error| error.to_string())?;
    fault.check()?;
    Ok(fault)
}

/// The CNAME targets that exist.
fn dns(app: &App) -> Answer {
    match sites::list(app.store().read(), None) {
        Ok(sites) => {
            let record = |site: &sites::Site| json!({ "cname": site.cname, "domain": site.domain, "site_id": site.id });
            ok(&Value::Array(sites.iter().map(record).collect()))
        }
        Err(error) => failed(&error),
    }
}

fn drawn(app: &App) -> Value {
    let table: Vec<Value> =
        quirks::TABLE.iter().map(|(what, variants)| json!({ "open": what, "variants": variants })).collect();
    json!({ "seed": app.quirks.seed, "drawn": format!("{:?}", app.quirks), "table": table })
}

/// Finishes the pending pushes, or holds them back.
fn push_pending(app: &App, body: &[u8]) -> Answer {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wish {
        hold: Option<bool>,
    }
    let wish: Wish = match if body.is_empty() { Ok(Wish::default()) } else { parse(body) } {
        Ok(wish) => wish,
        Err(answer) => return answer,
    };
    let done = match wish.hold {
        Some(held) => {
            app.pushes.hold(held);
            Ok(())
        }
        None => push::now(app),
    };
    done.map_or_else(|error| failed(&error), |()| ok(&json!({ "ok": true })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageChange {
    traffic_used: Option<i64>,
    traffic_limit: Option<i64>,
    expires_at: Option<Timestamp>,
}

fn change_package(app: &App, id: &str, body: &[u8]) -> Answer {
    let change: PackageChange = match parse(body) {
        Ok(change) => change,
        Err(answer) => return answer,
    };
    let mut store = app.store();
    let changed = store.write(|t| {
        let package = id.parse().ok().map(|id| packages::get(t, id)).transpose()?.flatten();
        let Some(mut package) = package else {
            return Ok::<_, rusqlite::Error>(None);
        };
        package.traffic_used = change.traffic_used.unwrap_or(package.traffic_used);
        package.traffic_limit = change.traffic_limit.unwrap_or(package.traffic_limit);
        package.expires_at = change.expires_at.map_or(package.expires_at, Timestamp::as_second);
        packages::save(t, &package)?;
        let stopped = if package.exceeded() { switch_off(app, t, package.id)? } else { Vec::new() };
        Ok(Some((package, stopped)))
    });
    match changed {
        Ok(Some((package, stopped))) => {
            for &site in &stopped {
                app.edge.remove(site);
            }
            app.pushes.wake();
            ok(&shown(&package, &stopped))
        }
        Ok(None) => Answer::json(StatusCode::NOT_FOUND, &json!({ "ok": false, "error": "no such package" })),
        Err(error) => failed(&error),
    }
}

/// Section 3: the system switches the package's sites off and says why. A site that its customer switched off
/// stays the customer's.
fn switch_off(app: &App, t: &rusqlite::Transaction<'_>, package: i64) -> rusqlite::Result<Vec<i64>> {
    let now = clock::now();
    let mut stopped = Vec::new();
    for mut site in sites::list(t, None)? {
        if site.enabled && site.package_id == Some(package) {
            site.enabled = false;
            TRAFFIC_EXCEEDED.clone_into(&mut site.disabled_reason);
            site.push_at = Some(app.push_at(now));
            site.updated_at = now.as_second();
            sites::save(t, &site)?;
            edge::stop(t, site.id)?;
            stopped.push(site.id);
        }
    }
    Ok(stopped)
}

fn shown(package: &Package, stopped: &[i64]) -> Value {
    json!({
        "id": package.id, "account": package.account, "traffic_limit": package.traffic_limit,
        "traffic_used": package.traffic_used, "expires_at": iso(package.expires_at), "disabled_sites": stopped,
    })
}
