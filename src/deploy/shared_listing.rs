//! One listing for all deployments that read their sites at about the same time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::api::{Client, Site};

/// Sites are read one by one if the account has more than this many sites for each of them.
const LISTING_FACTOR: usize = 30;

/// How long a reading waits for other deployments to join it. They pause as long between two readings.
const JOIN_PAUSE: Duration = Duration::from_millis(250);

/// The readings of the deployments on one account.
#[derive(Default)]
pub(crate) struct SharedListing {
    /// Whether there are several deployments at a time.
    pub(crate) has_several: Cell<bool>,
    /// The reading that can still be joined.
    next: RefCell<Option<Rc<Reading>>>,
}

/// A reading of sites by several deployments.
#[derive(Default)]
struct Reading {
    sites: Cell<usize>,
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
    /// Reads `sites` sites of an account, in one listing shared with the deployments that are about to read theirs, and
    /// passes it to `take`. It is requested after all of them have joined, so it shows what each of them has changed.
    pub(super) async fn read<T>(
        &self,
        client: &Client,
        (sites, account_sites): (usize, usize),
        max_pause: Duration,
        take: impl FnOnce(&ListedSites) -> T,
    ) -> T {
        let reading = Rc::clone(self.next.borrow_mut().get_or_insert_default());
        reading.sites.set(reading.sites.get() + sites);
        // If the deployment that lists runs out of time, another one takes over.
        let listed = reading.listed.get_or_init(|| async {
            if self.has_several.get() {
                sleep(JOIN_PAUSE.min(max_pause)).await;
            }
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
}
