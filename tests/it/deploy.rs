//! The main job: a renewed certificate reaches the service and its sites.

use expect_test::expect;

use crate::harness::{Lineage, asked, edgecert, sandbox, uploads};

#[test]
fn a_first_certificate_is_created_and_bound_to_every_covered_site() {
    let edge = sandbox(&["a.example", "x.b.example", "other.example"]);
    let renewed = Lineage::issued_for(&["a.example", "*.b.example"]);
    let outcome = edgecert().called_by_certbot(&renewed).against(&edge).succeeds();
    expect![[""]].assert_eq(&outcome.shown());
    assert_eq!(uploads(&edge), 1, "one creation binds both");
}
