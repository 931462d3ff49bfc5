//! Without network: start-up, and the local checks of a leaf with its intermediate.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use edgecert_workload::{Call, Lineage, domain, find_program, instructions, run};

use crate::fixture::Fixture;
use crate::table::{Figure, Goal, Measured, Table, Unit};

const fn figure(name: &'static str, goal: f64) -> Figure {
    Figure { row: 4, name, unit: Unit::Instructions, goal: Goal::AtMost(goal) }
}

/// Adds the rows of this group.
pub(crate) fn add(fixture: &Fixture, table: &mut Table) -> Result<()> {
    let dir = fixture.disk("checks")?;
    let count = |call: Call| -> Result<Measured> { Ok(Measured::value(instructions(&dir, &call)? as f64)) };
    let hook = || Call::new(&fixture.binary);
    table.add(figure("--version, instructions", 0.75e6), count(hook().args(["--version"]))?);
    let check = |lineage: Lineage| {
        let (cert, key) = (lineage.file("fullchain"), lineage.file("privkey"));
        let args = ["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()];
        count(hook().args(["check"]).args(args).env("SSL_CERT_FILE", &fixture.ca_file))
    };
    table.add(figure("check, P-256, instructions", 2.0e6), check(fixture.lineage(&dir, 1)?)?);
    table.add(figure("check, RSA-2048, instructions", 2.2e6), check(rsa_lineage(fixture, &dir)?)?);
    Ok(())
}

fn rsa_lineage(fixture: &Fixture, dir: &Path) -> Result<Lineage> {
    let mut openssl = Command::new(find_program("openssl", "openssl")?);
    openssl.args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
    let key = String::from_utf8(run(openssl)?.stdout)?;
    let issued = fixture.authority.issue_for_key(&key, &[domain(2)])?;
    Lineage::write(dir, &domain(2), &issued)
}
