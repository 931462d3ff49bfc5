//! What the service and its edge do to a renewal.

use std::slice;

use http::{Method, Request, Uri};
use serde_json::{Value, json};

use super::{EXIT_API_KEY, EXIT_REFUSED, EXIT_TEMPORARY, first_certificate};
use crate::rehearse::Rehearsal;
use crate::{EdgeAddress, EdgeMode, Error};

pub(super) fn edge_left_behind(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    first_certificate(rehearsal)?;

    rehearsal.step("renewal", "the edge has a second address now, which misses the push")?;
    let (sites, old_leaf) = (rehearsal.covered_sites(), rehearsal.lineage.fingerprint.clone());
    let behind = rehearsal.sandbox.open_edge_address(&EdgeAddress::new(EdgeMode::Stale));
    let both = ("EDGECERT_EDGE_ADDRESS", format!("{},{behind}", rehearsal.sandbox.endpoints().edge));
    rehearsal.renew()?;
    let running = rehearsal.start_deploy(&[both.clone(), ("EDGECERT_WAIT", "2".to_owned())])?;
    rehearsal.finish(running, EXIT_TEMPORARY)?;
    rehearsal.check_served();
    rehearsal.check_leaf(Some(&behind), &sites, &old_leaf, "still serves the old leaf");
    rehearsal.check_output(&behind, "the hook names the address that is behind");

    rehearsal.step("caught up", "the second address gets the push, and the timer runs sync")?;
    rehearsal.sandbox.catch_up_edge_address(&behind)?;
    let running = rehearsal.start(&["sync"], slice::from_ref(&both))?;
    rehearsal.finish(running, 0)?;
    let leaf = rehearsal.lineage.fingerprint.clone();
    rehearsal.check_leaf(Some(&behind), &sites, &leaf, "serves the new leaf");
    check_recorded(rehearsal)
}

pub(super) fn revoked_key(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    const NEW_KEY: &str = "new-sandbox-key";
    first_certificate(rehearsal)?;

    rehearsal.step("renewal", "meanwhile, the service has revoked the API key")?;
    let old_leaf = rehearsal.lineage.fingerprint.clone();
    rehearsal.sandbox.replace_api_key(NEW_KEY)?;
    rehearsal.renew()?;
    rehearsal.deploy(EXIT_API_KEY)?;
    rehearsal.check_output("API key", "the hook says what is wrong");
    rehearsal.check_still_served(&old_leaf);
    rehearsal.note("the timer runs sync, which cannot help yet");
    rehearsal.sync(EXIT_API_KEY)?;

    rehearsal.step("new key", "the administrator replaces the key, and the timer runs sync")?;
    NEW_KEY.clone_into(&mut rehearsal.api_key);
    rehearsal.sync(0)?;
    rehearsal.check_renewed();
    Ok(())
}

pub(super) fn traffic_used_up(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    first_certificate(rehearsal)?;

    rehearsal.step("renewal", "meanwhile, the service has disabled the sites: their traffic is used up")?;
    change_package(rehearsal, &json!({ "traffic_used": 2000 }));
    rehearsal.check_not_served("the edge serves no certificate");
    rehearsal.renew()?;
    rehearsal.deploy(0)?;
    rehearsal.check_output("package traffic exceeded", "the hook names the service's reason");
    rehearsal.note("enabling the site does not help");
    rehearsal.run(&["sites", "enable", "shop.example"], EXIT_REFUSED)?;

    rehearsal.step("topped up", "the customer buys more traffic, and enables the sites")?;
    change_package(rehearsal, &json!({ "traffic_limit": 5000 }));
    for domain in rehearsal.covered_sites() {
        rehearsal.run(&["sites", "enable", &domain], 0)?;
    }
    rehearsal.note("the timer runs sync");
    rehearsal.sync(0)?;
    rehearsal.check_renewed();
    check_recorded(rehearsal)
}

/// Checks that edgecert has recorded what the edge serves.
fn check_recorded(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.run(&["status"], 0)?;
    rehearsal.check_output("2 sites: 2 served", "it has recorded that the edge serves both sites");
    Ok(())
}

/// Changes the package of the sites on the control port.
fn change_package(rehearsal: &Rehearsal<'_>, change: &Value) {
    let mut request = Request::new(change.to_string());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/packages/1");
    rehearsal.sandbox.call_control(request);
}
