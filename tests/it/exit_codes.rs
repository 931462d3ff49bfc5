//! Exit codes: each documented code has a cause, and the most severe of several wins.

use crate::harness::{Fault, Lineage, edgecert, fresh, sandbox, sandbox_and_lineage};

#[test]
fn every_documented_code_occurs() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let uncovered = Lineage::issued_for(&["elsewhere.example"]);
    let hook = || fresh(&service, &lineage);

    hook().succeeds();
    hook().args(["--no-such-flag"]).exits_with(2);
    hook().for_domain("b.example").exits_with(65);
    edgecert().against(&service).args(["--lineage", "/nonexistent"]).exits_with(66);
    fresh(&service, &uncovered).exits_with(69);
    service.add_fault(Fault::status("GET /api/certs", 503).header("Retry-After", "3600"));
    hook().exits_with(75);
    service.add_fault(Fault::status("GET /api/certs", 302));
    hook().exits_with(76);
    hook().env("EDGECERT_API_KEY", "another").exits_with(77);
    hook().without_env("EDGECERT_BASE_URL").exits_with(78);
}

#[test]
fn most_severe_code_wins() {
    const UPLOAD: &str = "POST /api/certs/upload";
    let both = Lineage::issued_for(&["a.example", "b.example"]);
    // Nothing is sent after a long `Retry-After`, so the last row never receives its 401.
    for (first, second, code) in [(400, 503, 69), (400, 302, 76), (401, 302, 77), (503, 401, 75)] {
        let service = sandbox(&[]);
        service.add_fault(Fault::status(UPLOAD, first).header("Retry-After", "3600"));
        service.add_fault(Fault::status(UPLOAD, second).header("Retry-After", "3600"));
        let hook = fresh(&service, &both).args(["--wait", "0"]);
        hook.for_domain("a.example").for_domain("b.example").exits_with(code);
    }
}
