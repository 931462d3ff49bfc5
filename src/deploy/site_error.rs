//! Why a site did not get the certificate, or may not have got it. Such an error fails the run without stopping
//! the other sites.

use std::fmt::Display;

use crate::api::RequestError;
use crate::error::{CommandError, ErrorKind};
use crate::hint::{Hint, Override};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::Blocker;
use crate::text;

pub(super) fn no_such_site(domain: &Domain) -> CommandError {
    let hint = Hint::OmitDomain { instead: "create the site".into(), domain: domain.to_string() };
    let error = service(domain, "no such site", format_args!("the account has no site {domain}"));
    error.hint(hint).unsent(UNSENT).misuse(true)
}

pub(super) fn blocked(domain: &Domain, blocker: &Blocker, can_rebind: bool) -> CommandError {
    let kind = if blocker.is_guard() { ErrorKind::Refused } else { ErrorKind::Service };
    let class = format!("{:?}", std::mem::discriminant(blocker));
    let message = format!("{domain} is {}: {blocker}", blocked_outcome(blocker));
    of_site(kind, domain, &class, message).hint(blocker.hint(can_rebind)).unsent(UNSENT)
}

pub(super) fn upload(domain: &Domain, failed: &RequestError) -> CommandError {
    let attempts = text::count(failed.attempts as usize, "attempt");
    let stored = if failed.may_be_done { "; the service may have stored it" } else { "" };
    let message = format!("the upload for {domain} failed: {failed} ({attempts}){stored}");
    of_request(domain, "upload", failed, message)
}

/// The response to the upload contradicts it.
pub(super) fn unconfirmed(domain: &Domain, detail: &str) -> CommandError {
    let message = format_args!("{domain} is not verified: {detail}");
    of_site(ErrorKind::Protocol, domain, detail, message)
        .hint(Hint::Retry { first: "report the response to the service", lasting: "" })
}

pub(super) fn unused(domain: &Domain, id: u64) -> CommandError {
    let message =
        format_args!("{domain} is misbound: certificate {id} was created, and the site is not bound to it");
    service(domain, "unused", message).hint(format!(
        "omit --wait 0 to deploy to the record that the site is bound to, or run `edgecert sites bind {domain} {id}`"
    ))
}

pub(super) fn missing(domain: &Domain) -> CommandError {
    service(domain, "missing", format_args!("{domain}: the account no longer has this site"))
}

pub(super) fn unread(domain: &Domain) -> CommandError {
    let message = format_args!("{domain} might not be bound: it could not be read after the upload");
    of_site(ErrorKind::Temporary, domain, "unread", message).hint(Hint::RETRY)
}

pub(super) fn unbound(domain: &Domain, id: u64, failed: &RequestError) -> CommandError {
    let message = format!("{domain} could not be bound to certificate {id}: {failed}");
    of_request(domain, "bind", failed, message)
}

pub(super) fn ignored_fields(domain: &Domain, id: u64, fields: &[String]) -> CommandError {
    let fields = text::sanitize(&text::list(fields));
    let message =
        format_args!("{domain} could not be bound to certificate {id}: the service ignored {fields}");
    service(domain, "ignored fields", message)
}

pub(super) fn misbound(domain: &Domain, detail: &str) -> CommandError {
    const REBIND: Override =
        Override { flag: "--rebind", purpose: "to bind the site to the uploaded certificate" };
    service(domain, detail, format_args!("{domain} is misbound: {detail}"))
        .hint(Hint::Override { instead: "bind it in the service", flags: &[REBIND] })
}

pub(super) fn stale(domain: &Domain, detail: &str) -> CommandError {
    of_site(ErrorKind::Temporary, domain, detail, format_args!("{domain} is stale: {detail}"))
        .hint(Hint::Retry { first: "", lasting: "if it stays stale, contact the service" })
}

pub(super) fn unverified(domain: &Domain, reason: &str) -> CommandError {
    let message = format_args!("{domain} is not verified: {reason}");
    of_site(ErrorKind::Temporary, domain, reason, message)
        .hint("check that this host can reach the edge, raise --wait, or pass --verify auto")
}

const UNSENT: &str = "nothing was sent for it";

fn service(domain: &Domain, class: &str, message: impl Display) -> CommandError {
    of_site(ErrorKind::Service, domain, class, message)
}

fn of_request(domain: &Domain, action: &str, failed: &RequestError, message: String) -> CommandError {
    let cause = CommandError::from(failed);
    let class = format!("{action} {}", cause.class_or_message());
    cause.saying(message).class(class).of_site(domain)
}

fn of_site(kind: ErrorKind, domain: &Domain, class: &str, message: impl Display) -> CommandError {
    CommandError::new(kind, message).class(class).of_site(domain)
}

/// The outcome of a site that the plan leaves alone because of a blocker.
pub(super) fn blocked_outcome(blocker: &Blocker) -> Outcome {
    if blocker.is_guard() { Outcome::Guarded } else { Outcome::Misbound }
}
