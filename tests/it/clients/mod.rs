//! ACME clients and the hook together: real clients from Debian against a real Pebble where there is a package, and
//! their layouts, variables and manners where there is none.
//!
//! The service is the sandbox inside the test. A client that is not installed is a failure that names its package.

mod acme_sh;
mod acmed;
mod certbot;
mod client;
mod dehydrated;
mod layouts;
mod lego;
mod pebble;
mod record;
mod switching;
mod uacme;

use client::{Client, Ran};
use pebble::Pebble;
use record::{certificates, only_record, served_record};
