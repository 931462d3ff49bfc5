//! The state of the edge: a copy of each enabled site and its certificate, taken at its last push. A record
//! that is replaced in place reaches the edge with the next push.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde_json::{Map, Value};

/// A site as of its last push.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) site: i64,
    pub(crate) domain_key: String,
    pub(crate) cert_id: Option<i64>,
    /// Empty if no certificate is bound.
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
    pub(crate) settings: Map<String, Value>,
}

const SELECT: &str = "SELECT site, domain_key, cert_id, cert_pem, key_pem, settings FROM edge";

/// Returns all snapshots.
pub(crate) fn list(c: &Connection) -> rusqlite::Result<Vec<Snapshot>> {
    c.prepare_cached(SELECT)?.query_map([], from_row)?.collect()
}

/// Returns the snapshot of a site; `None` if the edge does not serve it.
pub(crate) fn get(c: &Connection, site: i64) -> rusqlite::Result<Option<Snapshot>> {
    c.prepare_cached(&format!("{SELECT} WHERE site = ?1"))?.query_row([site], from_row).optional()
}

/// Returns the snapshots that serve this record.
pub(crate) fn list_serving(c: &Connection, cert: i64) -> rusqlite::Result<Vec<Snapshot>> {
    c.prepare_cached(&format!("{SELECT} WHERE cert_id = ?1"))?.query_map([cert], from_row)?.collect()
}

/// Returns when the next push is due, in milliseconds since 1970.
pub(crate) fn next_push(c: &Connection) -> rusqlite::Result<Option<i64>> {
    c.query_row("SELECT min(push_at) FROM site", [], |row| row.get(0))
}

/// Pushes every site that is due and returns their IDs.
pub(crate) fn push_due(t: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<Vec<i64>> {
    let due: Vec<i64> = t
        .prepare_cached("SELECT id FROM site WHERE push_at <= ?1")?
        .query_map([now_ms], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    due.iter().try_for_each(|&site| push(t, site))?;
    Ok(due)
}

/// Copies a site to the edge, or removes it from there if it is disabled.
pub(crate) fn push(t: &Transaction<'_>, site: i64) -> rusqlite::Result<()> {
    remove(t, site)?;
    t.execute(
        "INSERT INTO edge (site, domain_key, cert_id, cert_pem, key_pem, settings)
         SELECT site.id, site.domain_key, site.cert_id, coalesce(cert_pem, ''), coalesce(key_pem, ''), settings
         FROM site LEFT JOIN cert ON cert.id = site.cert_id WHERE site.id = ?1 AND enabled",
        [site],
    )?;
    t.execute("UPDATE site SET push_at = NULL WHERE id = ?1", [site])?;
    Ok(())
}

/// Replaces certificate and key of a record on the edge only.
pub(crate) fn replace_pem(
    t: &Transaction<'_>,
    cert: i64,
    cert_pem: &str,
    key_pem: &str,
) -> rusqlite::Result<()> {
    let sql = "UPDATE edge SET cert_pem = ?2, key_pem = ?3 WHERE cert_id = ?1";
    t.execute(sql, params![cert, cert_pem, key_pem])?;
    Ok(())
}

/// Removes a site from the edge without waiting for a push.
pub(crate) fn remove(t: &Transaction<'_>, site: i64) -> rusqlite::Result<()> {
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
