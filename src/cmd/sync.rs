//! `edgecert sync`.

pub(crate) use crate::sync::{run, tick};
