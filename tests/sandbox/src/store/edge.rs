//! What the edge nodes have: a copy of each site and its certificate, taken when it was pushed. A record that
//! is replaced in place reaches the edge by the next push, not before.

use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use serde_json::{Map, Value};

/// A site as it was at its last push.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) site: i64,
    pub(crate) domain_key: String,
    pub(crate) cert_id: Option<i64>,
    /// Empty without a certificate.
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
    pub(crate) settings: Map<String, Value>,
}

const SELECT: &str = "SELECT site, domain_key, cert_id, cert_pem, key_pem, settings FROM edge";

/// Everything that the edge has.
pub(crate) fn list(c: &Connection) -> rusqlite::Result<Vec<Snapshot>> {
    c.prepare_cached(SELECT)?.query_map([], from_row)?.collect()
}

/// What the edge has of one site.
pub(crate) fn get(c: &Connection, site: i64) -> rusqlite::Result<Option<Snapshot>> {
    c.prepare_cached(&format!("{SELECT} WHERE site = ?1"))?.query_row([site], from_row).optional()
}

/// When the next push is due, in milliseconds.
pub(crate) fn next_push(c: &Connection) -> rusqlite::Result<Option<i64>> {
    c.query_row("SELECT min(push_at) FROM site", [], |row| row.get(0))
}

/// Pushes every site that is due and returns which.
pub(crate) fn push_due(t: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<Vec<i64>> {
    let due: Vec<i64> = t
        .prepare_cached("SELECT id FROM site WHERE push_at <= ?1")?
        .query_map([now_ms], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    due.iter().try_for_each(|&site| push_site(t, site))?;
    Ok(due)
}

/// Copies one site to the edge, or takes it away if it is switched off.
pub(crate) fn push_site(t: &Transaction<'_>, site: i64) -> rusqlite::Result<()> {
    stop(t, site)?;
    t.execute(
        "INSERT INTO edge (site, domain_key, cert_id, cert_pem, key_pem, settings)
         SELECT site.id, site.domain_key, site.cert_id, coalesce(cert_pem, ''), coalesce(key_pem, ''), settings
         FROM site LEFT JOIN cert ON cert.id = site.cert_id WHERE site.id = ?1 AND enabled",
        [site],
    )?;
    t.execute("UPDATE site SET push_at = NULL WHERE id = ?1", [site])?;
    Ok(())
}

/// Takes a site off the edge at once.
pub(crate) fn stop(t: &Transaction<'_>, site: i64) -> rusqlite::Result<()> {
    t.execute("DELETE FROM edge WHERE site = ?1", [site])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Snapshot> {
    let settings: String = row.get(5)?;
    Ok(Snapshot {
        site: row.get(0)?,
        domain_key: row.get(1)?,
        cert_id: row.get(2)?,
        cert_pem: row.get(3)?,
        key_pem: row.get(4)?,
        settings: serde_json::from_str(&settings).unwrap_or_default(),
    })
}
