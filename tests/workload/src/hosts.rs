//! Many hosts that share the request budget of one account, in virtual time. Their requests are paced by edgecert's own
//! code; the service, the hosts' timers and their ACME clients are simulated.

#![expect(clippy::disallowed_methods, reason = "this time is virtual")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use edgecert::api::Pacing;
use futures_util::future::{join, join_all};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The requests that a service admits in each period; the rest is refused with 429 and `Retry-After` until the next one.
#[derive(Clone, Copy)]
pub struct Budget {
    /// Requests.
    pub requests: usize,
    /// Their period.
    pub period: Duration,
}

/// What is renewed, on each of these hosts.
#[derive(Clone, Copy)]
pub struct Renewals {
    /// All hosts, each of which has an hourly `sync`.
    pub hosts: usize,
    /// Hosts of which the ACME client renews certificates.
    pub renewing: usize,
    /// Certificates of each of them, which its client renews one by one.
    pub lineages: usize,
    /// The hosts begin at random within this time.
    pub spread: Duration,
}

/// What was observed until every renewal was deployed, and every host had synced once.
pub struct Simulated {
    /// Time until the end.
    pub finished: Duration,
    /// The same if the service admitted each necessary request as soon as its budget allows, in the order of arrival.
    pub ideal: Duration,
    /// Requests that the service received.
    pub requests: usize,
    /// Those that it refused.
    pub refusals: usize,
    /// Longest time from a renewal, or from the start of a host's first `sync`, to its end.
    pub longest_wait: Duration,
    /// The same in the ideal case.
    pub ideal_wait: Duration,
    /// Deployments that ended at their `timeout`, and that a later `sync` finished.
    pub left_to_sync: usize,
    /// Most requests that arrived in one second, after the first minute, in which the renewals begin.
    pub peak: usize,
}

/// `RandomizedDelaySec` of `edgecert-sync.timer`.
const TIMER_SPREAD: Duration = Duration::from_secs(55 * 60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The default of `timeout`.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Until the response.
const LATENCY: Duration = Duration::from_millis(100);

/// What the ACME client takes to renew a certificate.
const ISSUANCE: Duration = Duration::from_secs(5);

/// Requests of a deployment, and of a `sync` without renewals: the lists of sites and of certificates, the upload, and
/// the sites again, to see the push. The edge needs no second look, so that the certificate is served after the upload.
const LISTS: usize = 2;
const DEPLOYMENT: usize = LISTS + 2;

/// The service, and what it has seen.
struct Service {
    budget: Budget,
    start: Instant,
    /// The number of the last period with a request, and how many it admitted.
    admitted: Cell<(u128, usize)>,
    refusals: Cell<usize>,
    /// Requests in each second.
    arrivals: RefCell<BTreeMap<u64, usize>>,
}

impl Service {
    /// Answers a request; fails with `Retry-After`, in whole seconds.
    async fn answer(&self) -> Result<(), Duration> {
        sleep(LATENCY / 2).await;
        let result = self.admit(self.start.elapsed());
        sleep(LATENCY / 2).await;
        result
    }

    fn admit(&self, now: Duration) -> Result<(), Duration> {
        *self.arrivals.borrow_mut().entry(now.as_secs()).or_default() += 1;
        let period = self.budget.period.as_millis();
        let number = now.as_millis() / period;
        let admitted =
            Some(self.admitted.get()).filter(|(last, _)| *last == number).map_or(0, |(_, admitted)| admitted);
        if admitted < self.budget.requests {
            self.admitted.set((number, admitted + 1));
            return Ok(());
        }
        self.refusals.set(self.refusals.get() + 1);
        let left = period - now.as_millis() % period;
        Err(Duration::from_secs(u64::try_from(left.div_ceil(1000)).unwrap_or(u64::MAX)))
    }
}

/// One host.
struct Host<'a> {
    service: &'a Service,
    renewals: Renewals,
    is_renewing: bool,
    /// When its client begins, and when its timer elapses, each hour.
    begins: Duration,
    syncs_at: Duration,
    /// When the certificates were renewed that are not deployed.
    pending: RefCell<Vec<Instant>>,
    longest_wait: Cell<Duration>,
    /// The arrivals of its deployments and of its first `sync`, with the least requests that each needs.
    needs: RefCell<Vec<(Duration, usize)>>,
    left_to_sync: Cell<usize>,
    end: Cell<Duration>,
}

impl Host<'_> {
    async fn run(&self) {
        join(self.renew(), self.sync_hourly()).await;
    }

    /// Renews all certificates, one after another, each with a run of the hook.
    async fn renew(&self) {
        if !self.is_renewing {
            return;
        }
        sleep_until(self.service.start + self.begins).await;
        for _ in 0..self.renewals.lineages {
            sleep(ISSUANCE).await;
            let renewed = Instant::now();
            self.needs.borrow_mut().push((self.service.start.elapsed(), DEPLOYMENT));
            let pacing = Pacing::new(false);
            let is_deployed = Cell::new(false);
            let deployment = async {
                if self.list(&pacing).await && self.request(&pacing, TIMEOUT).await {
                    self.finish(renewed);
                    is_deployed.set(true);
                    self.request(&pacing, TIMEOUT).await;
                }
            };
            let _ = timeout(TIMEOUT, deployment).await;
            if !is_deployed.get() {
                self.left_to_sync.set(self.left_to_sync.get() + 1);
                self.pending.borrow_mut().push(renewed);
            }
        }
    }

    /// Runs `sync` each hour until all certificates are deployed.
    async fn sync_hourly(&self) {
        let mut at = self.service.start + self.syncs_at;
        let mut is_first = true;
        loop {
            sleep_until(at).await;
            if is_first {
                self.needs.borrow_mut().push((self.syncs_at, LISTS));
            }
            let is_listed = self.sync(is_first.then_some(at)).await;
            is_first &= !is_listed;
            let is_renewed = !self.is_renewing || self.service.start.elapsed() > self.last_renewal();
            if is_renewed && !is_first && self.pending.borrow().is_empty() {
                return;
            }
            at += HOUR;
        }
    }

    /// When the client has certainly renewed its certificates.
    fn last_renewal(&self) -> Duration {
        self.begins + (ISSUANCE + TIMEOUT) * u32::try_from(self.renewals.lineages).unwrap_or(u32::MAX)
    }

    /// Returns whether the account was listed.
    async fn sync(&self, first: Option<Instant>) -> bool {
        let pacing = Pacing::new(true);
        if !self.list(&pacing).await {
            return false;
        }
        first.filter(|_| self.renewals.renewing == 0).inspect(|began| self.finish(*began));
        let pending = self.pending.take();
        let uploads = pending.into_iter().map(async |renewed| {
            pacing.wait(TIMEOUT).await;
            if self.request(&pacing, TIMEOUT).await {
                self.finish(renewed);
            } else {
                self.pending.borrow_mut().push(renewed);
            }
        });
        // All uploads share the second list of sites.
        if !join_all(uploads).await.is_empty() {
            self.request(&pacing, TIMEOUT).await;
        }
        true
    }

    async fn list(&self, pacing: &Pacing) -> bool {
        join(self.request(pacing, TIMEOUT), self.request(pacing, TIMEOUT)).await == (true, true)
    }

    async fn request(&self, pacing: &Pacing, limit: Duration) -> bool {
        pacing.request(limit, async || self.service.answer().await).await
    }

    fn finish(&self, began: Instant) {
        self.longest_wait.set(self.longest_wait.get().max(began.elapsed()));
        self.end.set(self.service.start.elapsed());
    }
}

/// Simulates hosts until every renewal is deployed. The same seed gives the same figures.
///
/// # Errors
///
/// No runtime can be started.
pub fn simulate(renewals: Renewals, budget: Budget, seed: u64) -> std::io::Result<Simulated> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    fastrand::seed(seed);
    runtime.block_on(async {
        let service = Service {
            budget,
            start: Instant::now(),
            admitted: Cell::new((0, 0)),
            refusals: Cell::new(0),
            arrivals: RefCell::default(),
        };
        let hosts: Vec<Host<'_>> = (0..renewals.hosts)
            .map(|number| Host {
                service: &service,
                renewals,
                is_renewing: number < renewals.renewing,
                begins: renewals.spread.mul_f64(fastrand::f64()),
                syncs_at: TIMER_SPREAD.mul_f64(fastrand::f64()),
                pending: RefCell::default(),
                longest_wait: Cell::default(),
                needs: RefCell::default(),
                left_to_sync: Cell::default(),
                end: Cell::default(),
            })
            .collect();
        join_all(hosts.iter().map(Host::run)).await;
        let needs: Vec<_> = hosts.iter().flat_map(|host| host.needs.take()).collect();
        let (ideal, ideal_wait) =
            ideal(needs, budget, if renewals.renewing == 0 { LISTS } else { DEPLOYMENT });
        let arrivals = service.arrivals.take();
        Ok(Simulated {
            finished: hosts.iter().map(|host| host.end.get()).max().unwrap_or_default(),
            ideal,
            requests: arrivals.values().sum(),
            refusals: service.refusals.get(),
            longest_wait: hosts.iter().map(|host| host.longest_wait.get()).max().unwrap_or_default(),
            ideal_wait,
            left_to_sync: hosts.iter().map(|host| host.left_to_sync.get()).sum(),
            peak: arrivals.range(60..).map(|(_, requests)| *requests).max().unwrap_or_default(),
        })
    })
}

/// When the last of these requests ends, and the longest wait, if each is admitted as soon as the budget allows.
fn ideal(mut needs: Vec<(Duration, usize)>, budget: Budget, counted: usize) -> (Duration, Duration) {
    needs.sort_unstable();
    let (mut end, mut longest_wait) = (Duration::ZERO, Duration::ZERO);
    // The period that is being filled, and what it has admitted.
    let (mut period, mut admitted) = (0, 0);
    for (arrival, requests) in needs {
        let now = u32::try_from(arrival.as_millis() / budget.period.as_millis()).unwrap_or(u32::MAX);
        if now > period {
            (period, admitted) = (now, 0);
        }
        for _ in 0..requests {
            if admitted == budget.requests {
                (period, admitted) = (period + 1, 0);
            }
            admitted += 1;
        }
        // The lists are requested at once, the upload after them, and then the sites again.
        let round_trips = if requests == DEPLOYMENT { 3 } else { 1 };
        let admission = arrival.max(budget.period * period);
        let done = admission + LATENCY * round_trips;
        if requests == counted {
            end = end.max(done);
            longest_wait = longest_wait.max(done.saturating_sub(arrival));
        }
    }
    (end, longest_wait)
}
