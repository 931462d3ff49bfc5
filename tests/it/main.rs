//! Tests of the hook as a program: the real binary in an emptied environment, against a sandbox of the service.
//!
//! One file per topic. Whatever needs no process is tested next to its code in `src`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_raw_string_hashes,
    clippy::too_many_lines,
    missing_docs,
    reason = "a test fails by panicking, snapshots are written by a program, tables are long"
)]

mod harness;

mod accounts;
mod ansible;
mod bounds;
mod bundles;
mod certs;
mod changed;
mod checks;
mod cli;
mod clients;
mod completions;
mod container;
mod convergence;
mod crowd;
mod dependencies;
mod deploy;
mod disk;
mod doctor;
mod exit_codes;
mod failing_calls;
mod faults;
mod first_hour;
mod first_process;
mod guards;
mod heartbeat;
mod help;
mod hints;
mod http2;
mod incomplete;
mod instructions;
mod kills;
mod kubernetes;
mod limbo;
mod look;
mod manual;
mod monitoring;
mod nothing_to_do;
mod notify;
mod output;
mod packages;
mod plan;
mod progress;
mod proof;
mod proxy;
mod readme;
mod scarcity;
mod secrets;
mod settings;
mod shared_lineages;
mod sites;
mod slack;
mod stale;
mod state;
mod status;
mod sync;
mod system_log;
mod test_run;
mod tidy;
mod timers;
mod trust_anchors;
mod upload_responses;
mod values;
mod version;
mod worlds;
