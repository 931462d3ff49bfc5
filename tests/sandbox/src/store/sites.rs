//! Sites and their CNAME targets.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde_json::{Map, Value};

use crate::names::canonical;

/// A site.
#[derive(Debug, Default)]
pub(crate) struct Site {
    /// 0 before a new site is saved under the next free ID.
    pub(crate) id: i64,
    pub(crate) account: i64,
    pub(crate) domain: String,
    pub(crate) enabled: bool,
    /// Empty unless the system disabled the site.
    pub(crate) disabled_reason: String,
    pub(crate) cert_id: Option<i64>,
    pub(crate) package_id: Option<i64>,
    pub(crate) settings: Map<String, Value>,
    /// When the pending push is due, in milliseconds since 1970; `None` if the edge is up to date.
    pub(crate) push_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// Empty before the site is saved.
    pub(crate) cname: String,
}

const SELECT: &str =
    "SELECT id, account, domain, enabled, disabled_reason, cert_id, package_id, settings, push_at,
    created_at, updated_at FROM site";

/// Returns the sites of an account, or of all accounts, in order of ID.
pub(crate) fn list(c: &Connection, account: Option<i64>) -> rusqlite::Result<Vec<Site>> {
    let sql = format!("{SELECT} WHERE ?1 IS NULL OR account = ?1 ORDER BY id");
    c.prepare_cached(&sql)?.query_map([account], from_row)?.collect()
}

/// Returns a site of this account.
pub(crate) fn get(c: &Connection, account: i64, id: i64) -> rusqlite::Result<Option<Site>> {
    let sql = format!("{SELECT} WHERE id = ?1 AND account = ?2");
    c.prepare_cached(&sql)?.query_row([id, account], from_row).optional()
}

/// Returns the site for this domain, of any account.
pub(crate) fn by_domain(c: &Connection, domain: &str) -> rusqlite::Result<Option<Site>> {
    let sql = format!("{SELECT} WHERE domain_key = ?1");
    c.prepare_cached(&sql)?.query_row([canonical(domain)], from_row).optional()
}

/// Adds a site and returns its ID.
pub(crate) fn insert(t: &Transaction<'_>, new: &Site) -> rusqlite::Result<i64> {
    t.execute(
        "INSERT INTO site (id, account, domain, domain_key, enabled, cert_id, package_id, settings, push_at,
         created_at, updated_at) VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)",
        params![
            new.id,
            new.account,
            new.domain,
            canonical(&new.domain),
            new.enabled,
            new.cert_id,
            new.package_id,
            Value::Object(new.settings.clone()).to_string(),
            new.push_at,
            new.created_at
        ],
    )?;
    Ok(t.last_insert_rowid())
}

/// Saves every field of a site that can change.
pub(crate) fn save(t: &Transaction<'_>, site: &Site) -> rusqlite::Result<()> {
    t.execute(
        "UPDATE site SET enabled = ?2, disabled_reason = ?3, cert_id = ?4, package_id = ?5, settings = ?6,
         push_at = ?7, updated_at = ?8 WHERE id = ?1",
        params![
            site.id,
            site.enabled,
            site.disabled_reason,
            site.cert_id,
            site.package_id,
            Value::Object(site.settings.clone()).to_string(),
            site.push_at,
            site.updated_at
        ],
    )?;
    Ok(())
}

/// Deletes a site. The schema deletes its edge snapshot with it.
pub(crate) fn delete(t: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    t.execute("DELETE FROM site WHERE id = ?1", [id])?;
    Ok(())
}

/// Schedules a push of every site that is bound to this record.
pub(crate) fn schedule_push_of_bound(t: &Transaction<'_>, cert: i64, push_at: i64) -> rusqlite::Result<()> {
    t.execute("UPDATE site SET push_at = ?2 WHERE cert_id = ?1", params![cert, push_at])?;
    Ok(())
}

/// Returns the CNAME target, below a domain that no resolver knows (RFC 6761, section 6.4).
fn cname(domain: &str, id: i64) -> String {
    let label: String = canonical(domain)
        .replace('*', "any")
        .chars()
        .map(|c| if c == '.' { '-' } else { c })
        .take(40)
        .collect();
    format!("{}-{id}.edge.invalid", label.trim_matches(['-', '_']).replace('_', "-"))
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Site> {
    let (id, domain, settings): (_, String, String) = (row.get(0)?, row.get(2)?, row.get(7)?);
    Ok(Site {
        id,
        account: row.get(1)?,
        cname: cname(&domain, id),
        domain,
        enabled: row.get(3)?,
        disabled_reason: row.get(4)?,
        cert_id: row.get(5)?,
        package_id: row.get(6)?,
        settings: serde_json::from_str(&settings).unwrap_or_default(),
        push_at: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
    })
}
