//! Plans how every wanted site gets the new certificate. Pure: no I/O, no clock.
//!
//! An upload replaces a record by domain, while sites are bound to records by id: a site may be bound to the record of
//! another domain. An upload for its own domain would then create a record that nothing uses and no documented endpoint
//! can delete. So the record that a site is bound to is replaced, and a record is created only where it will be bound.

mod actions;
mod blocker;
mod display;
mod guards;
mod indexed_listing;
#[cfg(test)]
mod model_test;
mod planner;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use self::actions::{Action, Plan, Target, Upload};
pub(crate) use self::blocker::Blocker;
pub(crate) use self::display::{Step, StepAction, superseded_reason};
pub(crate) use self::indexed_listing::{Account, IndexedListing};
pub(crate) use self::request::{Allow, NotNeeded, PlanRequest, RecordLeaf};
