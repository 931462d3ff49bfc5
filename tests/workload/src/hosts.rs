//! Many hosts that share the request budget of one account, in virtual time. Their requests are paced by edgecert's own
//! code; the service, the hosts' timers and their ACME clients are simulated.

#![expect(clippy::disallowed_methods, reason = "this time is virtual")]

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
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
    /// The least time that hooks with this `timeout` and these timers can take: nothing is refused, each necessary
    /// request is admitted as soon as the budget allows, and what a hook cannot finish goes to the host's next `sync`.
    pub ideal: Duration,
    /// The same if hooks never ended.
    pub ideal_without_limit: Duration,
    /// Requests that the service received.
    pub requests: usize,
    /// Those that it refused.
    pub refusals: usize,
    /// Longest time from a renewal, or from the start of a host's first `sync`, to its end.
    pub longest_wait: Duration,
    /// The same in the first ideal case.
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
const UPLOAD: usize = 1;
const DEPLOYMENT: usize = LISTS + UPLOAD + 1;

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
    /// Its deployments and its first `sync`, with the least requests that each needs.
    needs: RefCell<Vec<Need>>,
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
            self.need(DEPLOYMENT, Some(self.syncs_at));
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
                self.need(LISTS, None);
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

    fn need(&self, requests: usize, repeated_by: Option<Duration>) {
        let arrival = self.service.start.elapsed();
        self.needs.borrow_mut().push(Need { arrival, began: arrival, requests, repeated_by });
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
        let (ideal, ideal_wait) = ideal(&needs, budget, true);
        let (ideal_without_limit, _) = self::ideal(&needs, budget, false);
        let arrivals = service.arrivals.take();
        Ok(Simulated {
            finished: hosts.iter().map(|host| host.end.get()).max().unwrap_or_default(),
            ideal,
            ideal_without_limit,
            requests: arrivals.values().sum(),
            refusals: service.refusals.get(),
            longest_wait: hosts.iter().map(|host| host.longest_wait.get()).max().unwrap_or_default(),
            ideal_wait,
            left_to_sync: hosts.iter().map(|host| host.left_to_sync.get()).sum(),
            peak: arrivals.range(60..).map(|(_, requests)| *requests).max().unwrap_or_default(),
        })
    })
}

/// What arrives at the service: the lists of a host's first `sync`, or a deployment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    /// When the first request is sent.
    arrival: Duration,
    /// When what began it happened.
    began: Duration,
    requests: usize,
    /// The timer that repeats a deployment of which the hook has ended.
    repeated_by: Option<Duration>,
}

impl Need {
    /// The same at the next run of the timer: what `sync` lists, it lists in any case.
    fn repeated(self, timer: Duration) -> Self {
        let mut arrival = timer;
        while arrival <= self.arrival {
            arrival += HOUR;
        }
        Self { arrival, requests: UPLOAD, repeated_by: None, ..self }
    }
}

/// When the last of these ends, and the longest wait, if the service admits each request as soon as its budget allows.
/// Nothing is refused; with `hooks_end`, hooks that cannot finish within their `timeout` send nothing.
fn ideal(needs: &[Need], budget: Budget, hooks_end: bool) -> (Duration, Duration) {
    let mut waiting: BinaryHeap<_> = needs.iter().copied().map(Reverse).collect();
    let counts_deployments = needs.iter().any(|need| need.repeated_by.is_some());
    let (mut end, mut longest_wait) = (Duration::ZERO, Duration::ZERO);
    // The period that is being filled, and what it has admitted.
    let (mut period, mut admitted) = (0, 0);
    while let Some(Reverse(need)) = waiting.pop() {
        let now = need.arrival.as_millis() / budget.period.as_millis();
        if now > period {
            (period, admitted) = (now, 0);
        }
        let total = admitted + need.requests;
        let last = period + ((total - 1) / budget.requests) as u128;
        let admission = need.arrival.max(budget.period * u32::try_from(last).unwrap_or(u32::MAX));
        if let Some(timer) = need.repeated_by.filter(|_| hooks_end && admission > need.arrival + TIMEOUT) {
            waiting.push(Reverse(need.repeated(timer)));
            continue;
        }
        (period, admitted) = (last, (total - 1) % budget.requests + 1);
        let is_deployment = need.requests != LISTS;
        // The lists are requested at once, the upload after them, and then the sites again.
        let done = admission + LATENCY * if is_deployment { 3 } else { 1 };
        if is_deployment == counts_deployments {
            end = end.max(done);
            longest_wait = longest_wait.max(done.saturating_sub(need.began));
        }
    }
    (end, longest_wait)
}
