//! Changes packages, and disables their sites as the system does.

use jiff::Timestamp;
use rusqlite::Transaction;
use serde::Deserialize;
use serde_json::{Value, json};

use super::parse;
use crate::app::App;
use crate::clock::{self, iso8601};
use crate::response::RequestError;
use crate::store::packages::{self, Package};
use crate::store::{edge, sites};

const TRAFFIC_EXCEEDED: &str = "package traffic exceeded";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageChange {
    traffic_used: Option<i64>,
    traffic_limit: Option<i64>,
    expires_at: Option<Timestamp>,
}

/// Changes a package, and disables its sites if its traffic is exceeded.
pub(super) fn change(app: &App, id: &str, body: &[u8]) -> Result<Value, RequestError> {
    let change: PackageChange = parse(body)?;
    let mut store = app.store();
    let (package, disabled_sites) = store.write(|t| {
        let package = id.parse().ok().map(|id| packages::get(t, id)).transpose()?.flatten();
        let mut package = package.ok_or_else(|| RequestError::not_found("no such package"))?;
        package.traffic_used = change.traffic_used.unwrap_or(package.traffic_used);
        package.traffic_limit = change.traffic_limit.unwrap_or(package.traffic_limit);
        package.expires_at = change.expires_at.map_or(package.expires_at, Timestamp::as_second);
        packages::save(t, &package)?;
        let disabled = if package.is_exceeded() { disable_sites(app, t, package.id)? } else { Vec::new() };
        Ok::<_, RequestError>((package, disabled))
    })?;
    for &site in &disabled_sites {
        app.edge.remove(site);
    }
    app.pushes.wake();
    Ok(package_json(&package, &disabled_sites))
}

/// Disables the package's sites as the system does when its traffic is exceeded (section 3). A site that the
/// customer disabled gets no reason.
fn disable_sites(app: &App, t: &Transaction<'_>, package: i64) -> rusqlite::Result<Vec<i64>> {
    let now = clock::now();
    let mut disabled = Vec::new();
    for mut site in sites::list(t, None)? {
        if site.enabled && site.package_id == Some(package) {
            site.enabled = false;
            TRAFFIC_EXCEEDED.clone_into(&mut site.disabled_reason);
            site.push_at = Some(app.push_at(now));
            site.updated_at = now.as_second();
            sites::save(t, &site)?;
            edge::remove(t, site.id)?;
            disabled.push(site.id);
        }
    }
    Ok(disabled)
}

fn package_json(package: &Package, disabled_sites: &[i64]) -> Value {
    json!({
        "id": package.id, "account": package.account, "traffic_limit": package.traffic_limit,
        "traffic_used": package.traffic_used, "expires_at": iso8601(package.expires_at),
        "disabled_sites": disabled_sites,
    })
}
