//! What a site still needs after its upload, and its verdict, each with the observations that lead to it.

use std::time::Duration;

use time::OffsetDateTime;

use super::*;
use crate::api::{AttemptError, SavedSite};
use crate::leaf::Leaf;
use crate::plan::Upload;
use crate::verify::OtherLeaf;
use crate::verify::fixture::Shown;

/// A site whose record 5 was replaced, and which was read again since.
struct Scene {
    before: Site,
    wanted: bool,
    action: Action,
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
            wanted: true,
            action: Action::Replace(0),
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

    fn unread(&mut self, shown: &[Shown]) {
        (self.reading, self.shown) = (SiteReading::Unread, shown.to_vec());
    }

    /// The upload created record 5, for a site that was bound to another one or to none.
    fn create(&mut self, before: Option<u64>, action: Action) {
        (self.before, self.action, self.reading) = (site(before), action, SiteReading::Unread);
        self.stored().is_new = true;
    }

    fn refuse(&mut self, error: AttemptError) {
        self.stored = Err(failed(error));
    }

    fn verdict(self) -> String {
        self.look(|pending, settings| format(&Verdict::of(pending, settings)))
    }

    /// What holds of the site, and what the rollout does next.
    fn needs(self) -> String {
        self.look(|pending, settings| {
            let facts = [
                ("worthless", !pending.is_worth_reading()),
                ("changed", pending.may_have_been_changed()),
                ("bound", pending.is_bound()),
                ("pushed", pending.is_pushed()),
                ("bind", pending.is_binding_planned()),
                ("rebind", pending.is_binding_missing(settings.rebind)),
                ("handshake", pending.is_handshake_due(false)),
                ("last handshake", pending.is_handshake_due(true)),
                ("unknown", pending.is_unknown()),
                ("settled", pending.is_settled(settings.verify)),
            ];
            facts.iter().filter(|(_, holds)| *holds).map(|(fact, _)| *fact).collect::<Vec<_>>().join(", ")
        })
    }

    fn look(self, look: impl Fn(&PendingSite<'_>, &Settings) -> String) -> String {
        let domain = self.before.domain.clone();
        let target = Target { site: &self.before, wanted: self.wanted, action: self.action };
        let (replaces, alternatives) = (self.replaces, Vec::new());
        let upload = Upload { domain: &domain, replaces, may_create: false, alternatives };
        let mut pending = PendingSite {
            target: &target,
            upload: &upload,
            stored: self.stored.as_ref(),
            reading: self.reading,
            binding: self.binding,
            view: EdgeView::new(self.settings.verify == Verify::Require),
            is_edge_checked: false,
        };
        for (address, shown) in (1..).zip(self.shown) {
            pending.view.show(address, shown);
        }
        look(&pending, &self.settings)
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

/// Another leaf that is served.
fn other() -> Shown {
    let (not_before, not_after) = (OffsetDateTime::UNIX_EPOCH, OffsetDateTime::UNIX_EPOCH);
    let issuer = Some("Public CA".to_owned());
    let leaf = Leaf { fingerprint: "aa".into(), names: Vec::new(), not_before, not_after, issuer };
    Shown::Other(OtherLeaf { leaf, covers_site: true })
}

#[track_caller]
fn assert_verdicts(rows: &[(Edit, &str)]) {
    for (edit, expected) in rows {
        assert_eq!(Scene::new(*edit).verdict(), *expected);
    }
}

#[test]
fn observations_decide_what_comes_next() {
    let bound = "bound, pushed, handshake, last handshake";
    let unbound = "handshake, last handshake, unknown";
    let to_bind = "bind, handshake, last handshake, unknown";
    let rows: &[(Edit, &str)] = &[
        (|_| {}, bound),
        (|scene| scene.now().config_synced = false, "bound, last handshake"),
        (|scene| scene.shown = vec![Shown::Expected], "bound, pushed, settled"),
        (|scene| scene.settings.verify = Verify::Off, "bound, pushed, handshake, last handshake, settled"),
        (|scene| scene.now().https_enabled = false, "bound, pushed, settled"),
        (|scene| (scene.now().https_enabled, scene.now().config_synced) = (false, false), "bound"),
        // Bound to another record, or to none.
        (|scene| *scene.now() = site(Some(6)), "settled"),
        (|scene| (*scene.now(), scene.settings.rebind) = (site(Some(6)), true), "rebind, settled"),
        (|scene| *scene.now() = site(None), "rebind, settled"),
        (|scene| (*scene.now(), scene.wanted) = (site(None), false), "settled"),
        (|scene| (*scene.now(), scene.stored().is_of_others) = (site(None), true), "settled"),
        (|scene| (*scene.now(), scene.binding) = (site(None), Some(Ok(saved(&[])))), "changed, settled"),
        (|scene| scene.binding = Some(Err(failed(garbled()))), &format!("changed, {bound}")),
        (|scene| scene.binding = Some(Err(failed(refused()))), bound),
        // Not read.
        (|scene| scene.reading = SiteReading::Missing, "settled"),
        (|scene| scene.unread(&[]), "bound, handshake, last handshake, unknown"),
        (|scene| scene.unread(&[Shown::Expected]), "bound, settled"),
        (|scene| scene.unread(&[other()]), "bound, handshake, last handshake"),
        // The upload failed.
        (|scene| scene.refuse(refused()), "settled"),
        (|scene| (scene.reading, scene.stored) = (SiteReading::Unread, Err(failed(garbled()))), "settled"),
        (|scene| scene.refuse(AttemptError::Unauthorized { message: String::new() }), "worthless, settled"),
        // The service may have bound the site when it created the record.
        (|scene| scene.stored().is_new = true, bound),
        (|scene| scene.create(Some(6), Action::Replace(0)), to_bind),
        (
            |scene| {
                scene.create(Some(6), Action::Replace(0));
                scene.wanted = false;
            },
            unbound,
        ),
        (|scene| scene.create(None, Action::Create(0)), unbound),
        (|scene| scene.create(None, Action::Bind(0, None)), unbound),
        (|scene| scene.create(Some(6), Action::Bind(0, None)), to_bind),
        (
            |scene| {
                scene.create(None, Action::Bind(0, None));
                scene.stored().is_new = false;
            },
            to_bind,
        ),
    ];
    for (row, (edit, expected)) in rows.iter().enumerate() {
        assert_eq!(Scene::new(*edit).needs(), *expected, "row {row}");
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
        (|scene| scene.shown = vec![Shown::Expected, Shown::NoRoute], "served: ?"),
        (
            |scene| {
                scene.shown = vec![Shown::Expected, Shown::NoRoute];
                scene.settings.verify = Verify::Require;
            },
            "synced: 192.0.2.2:443 serves no certificate!",
        ),
        (
            |scene| scene.shown = vec![other()],
            "stale: 192.0.2.1:443 still serves the certificate of Public CA that expires at 1970-01-01T00:00:00Z!",
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
    for (error, end) in
        [(refused(), " (1 attempt)"), (garbled(), " (1 attempt); the service may have stored it")]
    {
        let message = failed_upload(&site(None).domain, &failed(error)).message().to_owned();
        assert!(message.ends_with(end), "{message}");
    }
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
        let site = Site { https_enabled, ..site(Some(5)) };
        let view = shown.map(|shown| {
            let mut view = EdgeView::new(false);
            view.show(1, shown);
            view
        });
        assert_eq!(format(&Verdict::current(&site, view.as_ref(), verify)), expected);
    }
}

#[test]
fn only_requested_sites_fail_the_run() {
    let site = site(Some(5));
    for (wanted, action, is_error) in
        [(true, Action::Replace(0), true), (false, Action::Current, true), (false, Action::Replace(0), false)]
    {
        let (mut report, target) = (Report::new("deploy"), Target { site: &site, wanted, action });
        Verdict::missing(&site.domain).add_to(&mut report, &target, &site, (None, None));
        let found = (report.errors().len(), report.warnings.len());
        assert_eq!(found, if is_error { (1, 0) } else { (0, 1) });
    }
}
