//! Why a site did not get the certificate, or may not have got it. Such an error fails the run without stopping
//! the other sites.

use crate::api::RequestError;
use crate::error::{CommandError, ErrorKind};
use crate::hint::{Hint, Override};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::Blocker;
use crate::text;

pub(super) fn no_such_site(domain: &Domain) -> CommandError {
    let hint = Hint::OmitDomain { instead: "create the site".into(), domain: domain.to_string() };
    let error = service(domain, format_args!("the account has no site {domain}")).hint(hint);
    error.unsent(UNSENT).misuse(true)
}

pub(super) fn blocked(domain: &Domain, blocker: &Blocker, can_rebind: bool) -> CommandError {
    let kind = if blocker.is_guard() { ErrorKind::Refused } else { ErrorKind::Service };
    let message = format_args!("{domain} is {}: {blocker}", blocked_outcome(blocker)).to_string();
    CommandError::new(kind, message).hint(blocker.hint(can_rebind)).unsent(UNSENT).of_site(domain)
}

pub(super) fn upload(domain: &Domain, failed: &RequestError) -> CommandError {
    let attempts = text::count(failed.attempts as usize, "attempt");
    let stored = if failed.may_be_done { "; the service may have stored it" } else { "" };
    let message = format!("the upload for {domain} failed: {failed} ({attempts}){stored}");
    CommandError::from(failed).saying(message).of_site(domain)
}

/// The response to the upload contradicts it.
pub(super) fn unconfirmed(domain: &Domain, detail: &str) -> CommandError {
    let hint = Hint::Retry { first: "report the response to the service", lasting: "" };
    not_verified(ErrorKind::Protocol, domain, detail).hint(hint)
}

pub(super) fn unused(domain: &Domain, id: u64) -> CommandError {
    misbound(domain, &format!("certificate {id} was created, and the site is not bound to it")).hint(format!(
        "omit --wait 0 to deploy to the record that the site is bound to, or run `edgecert sites bind {domain} {id}`"
    ))
}

pub(super) fn missing(domain: &Domain) -> CommandError {
    service(domain, format_args!("{domain}: the account no longer has this site"))
}

pub(super) fn unread(domain: &Domain) -> CommandError {
    let message = format!("{domain} might not be bound: it could not be read after the upload");
    CommandError::new(ErrorKind::Temporary, message).hint(Hint::RETRY).of_site(domain)
}

pub(super) fn unbound(domain: &Domain, id: u64, failed: &RequestError) -> CommandError {
    let message = format!("{domain} could not be bound to certificate {id}: {failed}");
    CommandError::from(failed).saying(message).of_site(domain)
}

pub(super) fn ignored_fields(domain: &Domain, id: u64, fields: &[String]) -> CommandError {
    let fields = text::sanitize(&text::list(fields));
    service(
        domain,
        format_args!("{domain} could not be bound to certificate {id}: the service ignored {fields}"),
    )
}

pub(super) fn misbound(domain: &Domain, detail: &str) -> CommandError {
    const REBIND: Override =
        Override { flag: "--rebind", purpose: "to bind the site to the uploaded certificate" };
    let hint = Hint::Override { instead: "bind it in the service", flags: &[REBIND] };
    service(domain, format_args!("{domain} is misbound: {detail}")).hint(hint)
}

pub(super) fn stale(domain: &Domain, detail: &str) -> CommandError {
    let hint = Hint::Retry { first: "", lasting: "if it stays stale, contact the service" };
    CommandError::new(ErrorKind::Temporary, format_args!("{domain} is stale: {detail}"))
        .hint(hint)
        .of_site(domain)
}

pub(super) fn unverified(domain: &Domain, reason: &str) -> CommandError {
    not_verified(ErrorKind::Temporary, domain, reason)
        .hint("check that this host can reach the edge, raise --wait, or pass --verify auto")
}

const UNSENT: &str = "nothing was sent for it";

fn not_verified(kind: ErrorKind, domain: &Domain, detail: &str) -> CommandError {
    CommandError::new(kind, format_args!("{domain} is not verified: {detail}")).of_site(domain)
}

fn service(domain: &Domain, message: impl std::fmt::Display) -> CommandError {
    CommandError::new(ErrorKind::Service, message).of_site(domain)
}

/// The outcome of a site that the plan leaves alone because of a blocker.
pub(super) fn blocked_outcome(blocker: &Blocker) -> Outcome {
    if blocker.is_guard() { Outcome::Guarded } else { Outcome::Misbound }
}
