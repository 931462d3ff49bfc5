//! One listing for all deployments that read their sites at about the same time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, OnceCell};
use tokio::time::timeout;

use crate::api::{Client, Site};

/// Sites are read one by one if the account has more than this many sites for each of them.
const LISTING_FACTOR: usize = 30;

/// How long a reading waits for others to join it, unless all have. Deployments pause as long between two readings.
const JOIN_TIMEOUT: Duration = Duration::from_millis(250);

/// The readings of the deployments on one account.
#[derive(Default)]
pub(crate) struct SharedListing {
    /// Deployments in progress that may join.
    deployments: Cell<usize>,
    /// The reading that can still be joined.
    next: RefCell<Option<Rc<Reading>>>,
}

/// A deployment in progress.
pub(crate) struct Participant<'a>(&'a SharedListing);

/// A reading of sites by several deployments.
#[derive(Default)]
struct Reading {
    deployments: Cell<usize>,
    sites: Cell<usize>,
    /// All deployments in progress have joined.
    is_complete: Notify,
    listed: OnceCell<ListedSites>,
}

/// What a reading has shown.
pub(super) enum ListedSites {
    /// Nothing: the sites are to be read one by one.
    ReadEach,
    /// The listing failed.
    Failed(String),
    Sites {
        by_id: HashMap<u64, Site>,
        /// Why sites may be missing.
        gaps: Vec<String>,
    },
}

impl SharedListing {
    /// Announces a deployment, for which the readings of others wait a moment.
    pub(crate) fn join(&self) -> Participant<'_> {
        self.deployments.set(self.deployments.get() + 1);
        Participant(self)
    }

    /// Reads this many sites of an account with `account_sites` sites, together with the other deployments that are
    /// about to, and passes what the listing shows to `take`. It is requested after all of them have joined, so it shows
    /// what each of them has changed.
    pub(super) async fn read<T>(
        &self,
        client: &Client,
        (sites, account_sites): (usize, usize),
        take: impl FnOnce(&ListedSites) -> T,
    ) -> T {
        let reading = Rc::clone(self.next.borrow_mut().get_or_insert_default());
        reading.deployments.set(reading.deployments.get() + 1);
        reading.sites.set(reading.sites.get() + sites);
        self.check_complete();
        // If the deployment that lists runs out of time, another one takes over.
        let listed = reading.listed.get_or_init(|| async {
            let _ = timeout(JOIN_TIMEOUT, reading.is_complete.notified()).await;
            self.next.borrow_mut().take_if(|next| Rc::ptr_eq(next, &reading));
            if reading.sites.get() * LISTING_FACTOR < account_sites {
                return ListedSites::ReadEach;
            }
            match client.sites::<Site>().await {
                Ok(list) => ListedSites::Sites {
                    by_id: list.items.into_iter().map(|site| (site.id, site)).collect(),
                    gaps: list.gaps.iter().map(ToString::to_string).collect(),
                },
                Err(failed) => ListedSites::Failed(failed.to_string()),
            }
        });
        take(listed.await)
    }

    /// Starts the next listing, unless another deployment can still join it.
    fn check_complete(&self) {
        if let Some(next) = self.next.borrow().as_ref()
            && next.deployments.get() >= self.deployments.get()
        {
            next.is_complete.notify_one();
        }
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        self.0.deployments.set(self.0.deployments.get().saturating_sub(1));
        self.0.check_complete();
    }
}

#[cfg(test)]
impl SharedListing {
    /// The number of deployments that a reading waits for.
    pub(super) fn participants(&self) -> usize {
        self.deployments.get()
    }
}
