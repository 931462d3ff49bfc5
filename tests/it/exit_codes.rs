//! Every exit code of the reference is reached, and the most severe of several wins.

use crate::harness::{Fault, Lineage, edgecert, sandbox};

#[test]
fn every_code_is_reached() {
    let edge = sandbox(&["a.example"]);
    let good = Lineage::issued_for(&["a.example"]);
    let foreign = Lineage::issued_for(&["elsewhere.example"]);
    let hook = || edgecert().called_by_certbot(&good).against(&edge);

    hook().succeeds();
    hook().args(["--no-such-flag"]).fails_with(2);
    hook().for_domain("b.example").fails_with(65);
    edgecert().against(&edge).args(["--lineage", "/nonexistent"]).fails_with(66);
    edgecert().called_by_certbot(&foreign).against(&edge).fails_with(69);
    edge.add_fault(Fault::status("GET /api/certs", 503).header("Retry-After", "3600"));
    hook().fails_with(75);
    edge.add_fault(Fault::status("GET /api/certs", 302));
    hook().fails_with(76);
    hook().env("EDGECERT_API_KEY", "another").fails_with(77);
    hook().without_env("EDGECERT_BASE_URL").fails_with(78);
}

#[test]
fn the_gravest_of_several_wins() {
    const UPLOAD: &str = "POST /api/certs/upload";
    let both = Lineage::issued_for(&["a.example", "b.example"]);
    // After `Retry-After` nothing more is sent, so the last row never meets its 401.
    for (first, second, code) in [(400, 503, 69), (400, 302, 76), (401, 302, 77), (503, 401, 75)] {
        let edge = sandbox(&[]);
        edge.add_fault(Fault::status(UPLOAD, first).header("Retry-After", "3600"));
        edge.add_fault(Fault::status(UPLOAD, second).header("Retry-After", "3600"));
        let hook = edgecert().called_by_certbot(&both).against(&edge).args(["--wait", "0"]);
        hook.for_domain("a.example").for_domain("b.example").fails_with(code);
    }
}
