//! The hook under ACME clients: the real client against Pebble where Debian packages it, otherwise the client's file
//! layout, variables and way of calling.
//!
//! The service is a sandbox inside the test. A test whose client is missing says so and names its Debian package.

mod acme_sh;
mod caddy;
mod certbot;
mod certbot_hooks;
mod certbot_renewals;
mod certmonger;
mod client;
mod client_layouts;
mod dehydrated;
mod lego_script;
mod mod_md;
mod pebble;
mod program_search;
mod recipe_file;
mod recipes;
mod record;
mod renewal_race;
mod sequence;
mod traps;
mod uacme_script;

use client::{Client, ClientOutput, client_of};
use pebble::Pebble;
use recipe_file::cron_command;
use record::{certificates, only_record, served_record};
use sequence::{ClientCertificate, assert_later_wins, assert_sequence, fail_uploads};
