//! The verdicts, each with the observations that lead to it.

use std::time::Duration;

use super::*;
use crate::api::{AttemptError, SavedSite};
use crate::plan::Upload;
use crate::verify::fixture::Shown;

/// A site whose record 5 was replaced, and which was read again since.
struct Scene {
    before: Site,
    reading: SiteReading,
    replaces: Vec<u64>,
    stored: Result<StoredRecord, RequestError>,
    binding: Option<Result<SavedSite, RequestError>>,
    shown: Vec<Shown>,
    settings: Settings,
}

type Edit = fn(&mut Scene);

fn site(cert_id: Option<u64>) -> Site {
    Site::example(1, "a.example", cert_id)
}

impl Scene {
    fn new(edit: Edit) -> Self {
        let stored = StoredRecord { id: 5, is_new: false, is_of_others: false, contradiction: None };
        let mut scene = Self {
            before: site(Some(5)),
            reading: SiteReading::Site(site(Some(5))),
            replaces: vec![5],
            stored: Ok(stored),
            binding: None,
            shown: Vec::new(),
            settings: Settings::example(),
        };
        edit(&mut scene);
        scene
    }

    fn now(&mut self) -> &mut Site {
        match &mut self.reading {
            SiteReading::Site(site) => site,
            _ => panic!("it was not read"),
        }
    }

    fn stored(&mut self) -> &mut StoredRecord {
        self.stored.as_mut().unwrap()
    }

    fn refuse(&mut self, error: AttemptError) {
        self.stored = Err(failed(error));
    }

    fn verdict(self) -> String {
        let domain = self.before.domain.clone();
        let target = Target { site: &self.before, wanted: true, action: Action::Replace(0) };
        let (replaces, alternatives) = (self.replaces, Vec::new());
        let upload = Upload { domain: &domain, replaces, may_create: false, alternatives };
        let mut pending = PendingSite::new(&target, &upload, self.stored.as_ref(), self.settings.verify);
        (pending.reading, pending.binding) = (self.reading, self.binding);
        for (address, shown) in (1..).zip(self.shown) {
            pending.view.show(address, shown);
        }
        format(&Verdict::of(&pending, &self.settings))
    }
}

/// `OUTCOME: DETAIL`, with `!` for an error and `?` for warnings.
fn format(verdict: &Verdict) -> String {
    let error = if verdict.error.is_some() { "!" } else { "" };
    let warnings = if verdict.warnings.is_empty() { "" } else { "?" };
    assert!(verdict.is_explained || verdict.warnings.is_empty() || verdict.detail.is_none());
    format!("{}: {}{error}{warnings}", verdict.outcome, verdict.detail.as_deref().unwrap_or_default())
}

fn failed(error: AttemptError) -> RequestError {
    RequestError { attempts: 1, may_be_done: error.may_be_done(), error }
}

fn refused() -> AttemptError {
    AttemptError::Refused { status: 400, message: String::new() }
}

fn unreachable() -> AttemptError {
    AttemptError::NoResponse { message: "no route".into(), reason: "no route".into(), is_sent: false }
}

fn garbled() -> AttemptError {
    AttemptError::InvalidResponse { status: 200, message: String::new(), is_final: true }
}

fn saved(ignored: &[&str]) -> SavedSite {
    SavedSite { site: None, ignored_fields: ignored.iter().map(ToString::to_string).collect() }
}

#[track_caller]
fn assert_verdicts(rows: &[(Edit, &str)]) {
    for (edit, expected) in rows {
        assert_eq!(Scene::new(*edit).verdict(), *expected);
    }
}

#[test]
fn observations_decide_the_verdict() {
    assert_verdicts(&[
        (|_| {}, "synced: the edge was not checked in time?"),
        (
            |scene| scene.settings.wait = Duration::ZERO,
            "synced: the edge was not checked because of --wait 0?",
        ),
        (|scene| scene.settings.verify = Verify::Off, "synced: not verified because of --verify off"),
        (|scene| scene.settings.verify = Verify::Require, "synced: the edge was not checked in time!"),
        (
            |scene| scene.now().config_synced = false,
            "uploaded: the push to the edge is not confirmed yet; the edge was not checked in time?",
        ),
        (
            |scene| (scene.now().config_synced, scene.settings.verify) = (false, Verify::Off),
            "uploaded: the push to the edge is not confirmed yet?",
        ),
        (
            |scene| scene.now().https_enabled = false,
            "synced: HTTPS is off for the site (https_enabled is false), so the edge serves no certificate?",
        ),
        (|scene| scene.now().enabled = false, "synced: the site is disabled, so the edge does not serve it?"),
        (|scene| scene.shown = vec![Shown::Expected], "served: "),
        (|scene| scene.shown = vec![Shown::Unreachable], "synced: 192.0.2.1:443 serves no certificate?"),
        (
            |scene| scene.shown = vec![Shown::Expected, Shown::Refusal],
            "stale: 192.0.2.2:443 serves no certificate!",
        ),
    ]);
}

#[test]
fn site_that_is_not_read_may_be_bound() {
    assert_verdicts(&[
        (
            |scene| scene.reading = SiteReading::Unread,
            "uploaded: the site could not be read after the upload?",
        ),
        (
            |scene| {
                scene.reading = SiteReading::Unread;
                scene.settings.verify = Verify::Require;
            },
            "uploaded: the site could not be read after the upload!",
        ),
        (
            |scene| (scene.reading, scene.before) = (SiteReading::Unread, site(Some(6))),
            "queued: the site could not be read after the upload!",
        ),
        (|scene| (scene.reading, scene.shown) = (SiteReading::Unread, vec![Shown::Expected]), "served: "),
        (|scene| scene.reading = SiteReading::Missing, "misbound: the account no longer has this site!"),
    ]);
}

#[test]
fn site_must_be_bound_to_the_record() {
    let instead = "misbound: bound to certificate 6 instead of the uploaded 5";
    let unused = ", which the service created instead of replacing one and which may be unused";
    assert_verdicts(&[
        (|scene| *scene.now() = site(Some(6)), "misbound: bound to certificate 6 instead of the uploaded 5!"),
        (|scene| *scene.now() = site(None), "misbound: not bound to a certificate, although 5 was uploaded!"),
        (
            |scene| (*scene.now(), scene.shown) = (site(Some(6)), vec![Shown::Expected]),
            &format!("{instead}!"),
        ),
        (
            |scene| (*scene.now(), scene.stored().is_new) = (site(Some(6)), true),
            &format!("{instead}{unused}!"),
        ),
        (
            |scene| {
                (*scene.now(), scene.stored().is_new) = (site(Some(6)), true);
                scene.replaces.clear();
            },
            &format!("{instead}!"),
        ),
        (
            |scene| (*scene.now(), scene.binding) = (site(Some(6)), Some(Ok(saved(&[])))),
            &format!("{instead}!"),
        ),
        (
            |scene| (*scene.now(), scene.binding) = (site(Some(6)), Some(Ok(saved(&["cert_id"])))),
            "refused: bound to certificate 6 instead of the uploaded 5!",
        ),
        (
            |scene| (*scene.now(), scene.binding) = (site(Some(6)), Some(Err(failed(refused())))),
            "refused: bound to certificate 6 instead of the uploaded 5: the service refused the request (400)!",
        ),
        (
            |scene| (*scene.now(), scene.binding) = (site(Some(6)), Some(Err(failed(unreachable())))),
            "queued: bound to certificate 6 instead of the uploaded 5: no route!",
        ),
    ]);
}

/// The error belongs to the upload, not to each site.
#[test]
fn failed_upload_is_repeated_or_refused() {
    assert_verdicts(&[
        (|scene| scene.refuse(refused()), "refused: the service refused the request (400)"),
        (|scene| scene.refuse(unreachable()), "queued: no route"),
        (
            |scene| scene.refuse(garbled()),
            "queued: the service sent a response (200) that cannot be understood",
        ),
        (
            |scene| (scene.shown, scene.stored) = (vec![Shown::Expected], Err(failed(refused()))),
            "refused: the service refused the request (400)",
        ),
    ]);
}

#[test]
fn contradicted_upload_needs_proof() {
    let instead = "misbound: bound to certificate 6 instead of the uploaded 5";
    assert_verdicts(&[
        (|scene| scene.stored().contradiction = Some("odd".into()), "queued: odd!?"),
        (
            |scene| {
                scene.stored().contradiction = Some("odd".into());
                scene.now().config_synced = false;
            },
            "queued: odd!?",
        ),
        (
            |scene| {
                scene.stored().contradiction = Some("odd".into());
                scene.shown = vec![Shown::Expected];
            },
            "served: ",
        ),
        (
            |scene| {
                scene.stored().contradiction = Some("odd".into());
                scene.shown = vec![Shown::Refusal];
            },
            "stale: 192.0.2.1:443 serves no certificate!",
        ),
        (
            |scene| {
                scene.stored().contradiction = Some("odd".into());
                *scene.now() = site(Some(6));
            },
            &format!("{instead}!"),
        ),
        (
            |scene| {
                (scene.stored().contradiction, scene.stored().is_of_others) = (Some("odd".into()), true);
                *scene.now() = site(Some(6));
            },
            "queued: odd!",
        ),
    ]);
}

#[test]
fn current_site_is_verified_if_possible() {
    let (https, plain) = (true, false);
    for (shown, verify, https_enabled, expected) in [
        (Some(Shown::Expected), Verify::Auto, https, "served: "),
        (Some(Shown::Unreachable), Verify::Auto, https, "synced: 192.0.2.1:443 serves no certificate?"),
        (Some(Shown::Unreachable), Verify::Require, https, "synced: 192.0.2.1:443 serves no certificate!"),
        (None, Verify::Off, https, "synced: not verified because of --verify off"),
        (
            None,
            Verify::Auto,
            plain,
            "synced: HTTPS is off for the site (https_enabled is false), so the edge serves no certificate",
        ),
        (
            None,
            Verify::Require,
            plain,
            "synced: HTTPS is off for the site (https_enabled is false), so the edge serves no certificate!",
        ),
    ] {
        let (site, settings) =
            (Site { https_enabled, ..site(Some(5)) }, Settings { verify, ..Settings::example() });
        let view = shown.map(|shown| {
            let mut view = EdgeView::new(false);
            view.show(1, shown);
            view
        });
        assert_eq!(format(&Verdict::current(&site, view.as_ref(), &settings)), expected);
    }
}

#[test]
fn only_requested_sites_fail_the_run() {
    let site = site(Some(5));
    for (wanted, action, is_error) in [
        (true, Action::Replace(0), true),
        (false, Action::NotNeeded(NotNeeded::Current), true),
        (false, Action::Replace(0), false),
    ] {
        let (mut report, target) = (Report::new("deploy"), Target { site: &site, wanted, action });
        Verdict::stale(&site.domain, &["old".into()]).add_to(&mut report, &target, &site, (None, None));
        let found = (report.errors().len(), report.warnings.len());
        assert_eq!(found, if is_error { (1, 0) } else { (0, 1) });
    }
}
