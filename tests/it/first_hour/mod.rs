//! The first hour of a new user: the commands of README.md and tests/sandbox/README.md, run one after another on a bare
//! Debian 12, lead to a renewed certificate that the edge serves, and to a timer for `sync`.

mod script;

use crate::container::run_in_container;
use crate::harness::print_uncaptured;
use crate::readme::README;

use script::Script;

#[test]
fn readme_leads_to_renewal_by_timer() {
    let script = Script::from_documents();
    run_in_container(&script.packages, &script.text);
    for substitution in &script.substitutions {
        print_uncaptured(&format!("{README}, replaced: {substitution}"));
    }
}
