//! Packages: the traffic that an account purchased.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

/// A purchased amount of traffic.
pub(crate) struct Package {
    pub(crate) id: i64,
    pub(crate) account: i64,
    /// Unix seconds.
    pub(crate) expires_at: i64,
    pub(crate) traffic_limit: i64,
    pub(crate) traffic_used: i64,
}

const SELECT: &str = "SELECT id, account, expires_at, traffic_limit, traffic_used FROM package";

/// Returns a package of any account.
pub(crate) fn get(c: &Connection, id: i64) -> rusqlite::Result<Option<Package>> {
    c.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()
}

/// Returns the account's first usable package.
pub(crate) fn first_usable(c: &Connection, account: i64, now: i64) -> rusqlite::Result<Option<Package>> {
    let sql = format!(
        "{SELECT} WHERE account = ?1 AND expires_at > ?2 AND traffic_used <= traffic_limit ORDER BY id LIMIT 1"
    );
    c.prepare_cached(&sql)?.query_row([account, now], from_row).optional()
}

/// Saves expiry and traffic.
pub(crate) fn save(t: &Transaction<'_>, package: &Package) -> rusqlite::Result<()> {
    t.execute(
        "UPDATE package SET expires_at = ?2, traffic_limit = ?3, traffic_used = ?4 WHERE id = ?1",
        params![package.id, package.expires_at, package.traffic_limit, package.traffic_used],
    )?;
    Ok(())
}

impl Package {
    pub(crate) fn is_exceeded(&self) -> bool {
        self.traffic_used > self.traffic_limit
    }

    /// Returns whether the package is neither expired nor exceeded.
    pub(crate) fn is_usable(&self, now: i64) -> bool {
        self.expires_at > now && !self.is_exceeded()
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Package> {
    Ok(Package {
        id: row.get(0)?,
        account: row.get(1)?,
        expires_at: row.get(2)?,
        traffic_limit: row.get(3)?,
        traffic_used: row.get(4)?,
    })
}
