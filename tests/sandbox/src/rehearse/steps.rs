//! The steps of the rehearsal. Each says what will happen, lets the hook do it, and looks at the result where
//! it shows: in the service's records and in a handshake with the edge.

use std::time::Duration;

use serde_json::Value;

use super::Stage;
use super::hook::Running;
use crate::faults::Fault;
use crate::{Error, names, probe};

const UPLOAD: &str = "POST /api/certs/upload";
/// A site that the certificate does not cover; it must stay as it is.
const BYSTANDER: &str = "bystander.example";

/// Says what is there before anything happens.
pub(super) fn open(stage: &mut Stage<'_>) {
    let covered = covered(stage);
    for domain in covered.iter().map(String::as_str).chain([BYSTANDER]) {
        stage.sandbox.add_site(domain);
    }
    let ready = stage.sandbox.endpoints();
    let text = format!(
        "a service is running at {} with an edge at {}; it accelerates {} and {BYSTANDER}",
        ready.api,
        ready.edge,
        covered.join(", ")
    );
    stage.say(text);
}

/// The first certificate: uploaded, bound to the sites that it covers, and to no other.
pub(super) fn first_deployment(stage: &mut Stage<'_>) -> Result<(), Error> {
    stage.step("the first certificate");
    stage.say("no site has a certificate yet, so the edge turns visitors away");
    for domain in covered(stage) {
        let shown = shown(stage, &domain);
        stage.expect(shown.is_err(), &format!("{domain}: no handshake"), &told(&shown));
    }
    let issued = stage.lineage.names.join(" and ");
    stage.say(format!("certbot has saved a certificate for {issued} and calls its deploy hook"));
    run(stage)?;
    let records = records(stage);
    stage.record = records.first().copied().flatten();
    stage.expect(records.len() == 1, "the service has one record", &format!("{} records", records.len()));
    bound(stage);
    served_everywhere(stage);
    Ok(())
}

/// The renewal: the same record, the old leaf until the push, the new one after it.
pub(super) fn renewal(stage: &mut Stage<'_>) -> Result<(), Error> {
    stage.step("the renewal");
    let old = stage.lineage.fingerprint.clone();
    if stage.lineage.given {
        stage.say(
            "only its authority can renew the certificate that you gave; a test certificate takes its place",
        );
        stage.lineage = stage.lineage.adopt(stage.files.path(), &stage.authority)?;
    } else {
        stage.lineage.renew(&stage.authority)?;
    }
    stage.say("weeks later certbot has renewed the certificate, with a new key, and calls the hook again");
    stage.sandbox.hold_pushes(true);
    let running = start(stage)?;
    let running = until_uploaded(stage, running);
    stage.say("the service has taken the upload; its edge nodes have not got it yet");
    for domain in covered(stage) {
        let shown = shown(stage, &domain);
        let holds = shown.as_ref().is_ok_and(|leaf| *leaf == old);
        stage.expect(holds, &format!("{domain}: still the old leaf {}", short(&old)), &told(&shown));
    }
    stage.say("the service pushes its configuration to the edge nodes; the hook has been waiting for that");
    stage.sandbox.hold_pushes(false);
    finish(stage, running, 0);
    same_record(stage);
    bound(stage);
    served_everywhere(stage);
    Ok(())
}

/// A service that fails twice and then loses its answer: the hook tries again, and no duplicate is made.
pub(super) fn stumbling_service(stage: &mut Stage<'_>) -> Result<(), Error> {
    stage.step("a service that stumbles");
    stage.lineage.renew(&stage.authority)?;
    stage.say("at the next renewal the service first answers 503, then does the work but its answer is lost");
    stage.sandbox.add_fault(Fault::status(UPLOAD, 503).header("Retry-After", "0").body("busy"));
    stage.sandbox.add_fault(Fault::close_after(UPLOAD));
    let before = uploads(stage).len();
    run(stage)?;
    let tries = uploads(stage).len() - before;
    stage.expect(tries == 3, "the upload was sent three times", &format!("{tries} times"));
    same_record(stage);
    bound(stage);
    served_everywhere(stage);
    Ok(())
}

/// A service that is down for longer than a hook may take: the hook gives up, and the timer's `sync` finishes its work.
pub(super) fn failing_service(stage: &mut Stage<'_>) -> Result<(), Error> {
    stage.step("a service that is down");
    let old = stage.lineage.fingerprint.clone();
    stage.lineage.renew(&stage.authority)?;
    stage.say("at the next renewal the service answers nothing but 503, and the hook may take two seconds");
    stage.sandbox.add_fault(Fault::status("*", 503).body("maintenance").times(u32::MAX));
    let running = call(stage, &[], &[("EDGECERT_TIMEOUT", "2".to_owned())])?;
    finish(stage, running, TEMPORARY);
    for domain in covered(stage) {
        let shown = shown(stage, &domain);
        let holds = shown.as_ref().is_ok_and(|leaf| *leaf == old);
        stage.expect(holds, &format!("{domain}: still the old leaf {}", short(&old)), &told(&shown));
    }
    stage.say("certbot will not call again; the service comes back, and a timer runs `edgecert sync`");
    stage.sandbox.clear_faults();
    let running = call(stage, &["sync"], &[])?;
    finish(stage, running, 0);
    same_record(stage);
    bound(stage);
    served_everywhere(stage);
    let before = stage.sandbox.requests().len();
    stage.say("the timer's next run finds nothing to do");
    let running = call(stage, &["sync"], &[])?;
    finish(stage, running, 0);
    let asked = stage.sandbox.requests().len() - before;
    stage.expect(
        asked == 2,
        "the service was asked for its certificates and sites, once",
        &format!("{asked} requests"),
    );
    Ok(())
}

/// What the hook says of a failure that passes.
const TEMPORARY: i32 = 75;

/// Calls the hook and waits for its end.
fn run(stage: &mut Stage<'_>) -> Result<(), Error> {
    let running = start(stage)?;
    finish(stage, running, 0);
    Ok(())
}

/// Calls the hook as certbot does: two variables about the lineage; the rest is the user's set-up.
fn start(stage: &mut Stage<'_>) -> Result<Running, Error> {
    call(stage, &[], &[])
}

/// The same, or a subcommand without certbot's variables, with some more set-up.
fn call(
    stage: &mut Stage<'_>,
    arguments: &[&str],
    more: &[(&'static str, String)],
) -> Result<Running, Error> {
    let home = stage.files.path().to_owned();
    let config = home.join("config.toml");
    std::fs::write(&config, "").map_err(|source| Error::File { path: config.clone(), source })?;
    let ready = stage.sandbox.endpoints().clone();
    let contract = [
        ("RENEWED_LINEAGE", stage.lineage.directory.display().to_string()),
        ("RENEWED_DOMAINS", stage.lineage.names.join(" ")),
    ];
    let ca = ready.ca_file.map(|path| path.display().to_string()).unwrap_or_default();
    let set_up = [
        ("EDGECERT_CONFIG", config.display().to_string()),
        ("EDGECERT_STATE_DIR", home.join("state").display().to_string()),
        ("EDGECERT_BASE_URL", ready.api),
        ("EDGECERT_API_KEY", ready.api_key),
        ("EDGECERT_CA_FILE", ca),
        ("EDGECERT_EDGE_ADDRESS", ready.edge),
    ];
    let contract = if arguments.is_empty() { &contract[..] } else { &[] };
    for (name, value) in contract.iter().chain(more) {
        stage.quote(format!("{name}='{value}'"));
    }
    let words = std::iter::once(stage.hook.path().display().to_string());
    let words: Vec<String> = words.chain(arguments.iter().map(|&word| word.to_owned())).collect();
    stage.quote(format!("$ {}", words.join(" ")));
    stage.hook.start(&home, arguments, &[contract, &set_up[..], more].concat())
}

fn finish(stage: &mut Stage<'_>, running: Running, wanted: i32) {
    let (code, lines) = running.finish();
    for line in lines {
        stage.quote(line);
    }
    let found = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    stage.expect(code == Some(wanted), &format!("the hook exits {wanted}"), &found);
}

/// Waits until the upload is answered or the hook gives up.
fn until_uploaded(stage: &Stage<'_>, mut running: Running) -> Running {
    let before = uploads(stage).len();
    while uploads(stage).len() == before && !running.ended() {
        std::thread::sleep(Duration::from_millis(2));
    }
    running
}

/// Statuses that uploads were answered with; a lost answer has none.
fn uploads(stage: &Stage<'_>) -> Vec<Option<u16>> {
    let requests = stage.sandbox.requests().into_iter();
    let uploads = requests.filter(|request| request.path == "/api/certs/upload");
    uploads
        .map(|request| (request.status, request.fault))
        .filter(|(s, f)| s.is_some() || f.is_some())
        .map(|(s, _)| s)
        .collect()
}

/// Sites that the certificate covers: each name, and something below each wildcard.
fn covered(stage: &Stage<'_>) -> Vec<String> {
    let sites = stage.lineage.names.iter().map(|name| match name.strip_prefix("*.") {
        Some(parent) => format!("www.{parent}"),
        None => name.clone(),
    });
    let mut sites: Vec<String> = sites.filter(|site| names::is_domain(site)).collect();
    sites.sort();
    sites.dedup();
    sites
}

/// Each covered site is bound to the record, and the bystander to nothing.
fn bound(stage: &mut Stage<'_>) {
    let (covered, record) = (covered(stage), stage.record);
    for site in stage.sandbox.sites() {
        let domain = site.get("domain").and_then(Value::as_str).unwrap_or_default();
        let bound = site.get("cert_id").and_then(Value::as_i64);
        let found = format!("record {}", number(bound));
        if covered.iter().any(|name| name == domain) {
            let wanted = format!("{domain} is bound to record {}", number(record));
            stage.expect(bound.is_some() && bound == record, &wanted, &found);
        } else {
            let wanted = format!("{domain}, which the certificate does not cover, is left alone");
            stage.expect(bound.is_none(), &wanted, &found);
        }
    }
}

/// No duplicate, the same number.
fn same_record(stage: &mut Stage<'_>) {
    let ids = records(stage);
    let wanted = format!("record {} was replaced in place; there is no other", number(stage.record));
    stage.expect(ids == [stage.record], &wanted, &list(&ids));
}

/// The numbers of all records.
fn records(stage: &Stage<'_>) -> Vec<Option<i64>> {
    let id = |record: &Value| record.get("id").and_then(Value::as_i64);
    stage.sandbox.certs().iter().map(id).collect()
}

/// The newest leaf is what visitors get.
fn served_everywhere(stage: &mut Stage<'_>) {
    let leaf = stage.lineage.fingerprint.clone();
    for domain in covered(stage) {
        let shown = shown(stage, &domain);
        let holds = shown.as_ref().is_ok_and(|shown| *shown == leaf);
        stage.expect(
            holds,
            &format!("{domain}: the edge shows visitors the new leaf {}", short(&leaf)),
            &told(&shown),
        );
    }
}

fn shown(stage: &Stage<'_>, domain: &str) -> Result<String, String> {
    let seen = probe(&stage.sandbox.endpoints().edge, domain);
    seen.map(|seen| seen.fingerprint).map_err(|error| error.to_string())
}

fn told(shown: &Result<String, String>) -> String {
    match shown {
        Ok(leaf) => format!("the leaf {}", short(leaf)),
        Err(reason) => format!("no handshake ({reason})"),
    }
}

fn list(records: &[Option<i64>]) -> String {
    if records.is_empty() {
        return "no record".to_owned();
    }
    records.iter().copied().map(number).collect::<Vec<_>>().join(", ")
}

fn number(record: Option<i64>) -> String {
    record.map_or_else(|| "(none)".to_owned(), |record| record.to_string())
}

/// Enough of a fingerprint to tell two apart.
fn short(fingerprint: &str) -> String {
    fingerprint.chars().take(12).collect()
}
