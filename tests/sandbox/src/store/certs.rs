//! Certificate records.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::cert;
use crate::names::canonical;
use crate::quirks;

/// A stored certificate with its key. The fields have the service's names.
#[expect(clippy::struct_field_names, reason = "the service's names")]
pub(crate) struct Cert {
    pub(crate) id: i64,
    pub(crate) account: i64,
    pub(crate) domain: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
}

/// What a request brings.
pub(crate) struct Content<'a> {
    pub(crate) account: i64,
    pub(crate) domain: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) cert_pem: &'a str,
    pub(crate) key_pem: &'a str,
}

const SELECT: &str = "SELECT id, account, domain, name, type, cert_pem, key_pem FROM cert";

/// Every record, or those of one account, by number.
pub(crate) fn list(c: &Connection, account: Option<i64>) -> rusqlite::Result<Vec<Cert>> {
    let sql = format!("{SELECT} WHERE ?1 IS NULL OR account = ?1 ORDER BY id");
    c.prepare_cached(&sql)?.query_map([account], from_row)?.collect()
}

/// The record of this number, whoever owns it.
pub(crate) fn get(c: &Connection, id: i64) -> rusqlite::Result<Option<Cert>> {
    c.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()
}

/// The record that an upload for this domain replaces: the oldest that was made for it.
pub(crate) fn oldest_for(c: &Connection, account: i64, domain: &str) -> rusqlite::Result<Option<Cert>> {
    let sql = format!("{SELECT} WHERE account = ?1 AND domain_key = ?2 ORDER BY id LIMIT 1");
    c.prepare_cached(&sql)?.query_row(params![account, canonical(domain)], from_row).optional()
}

/// The same where a record counts for each name that its certificate has.
pub(crate) fn oldest_with(c: &Connection, account: i64, domain: &str) -> rusqlite::Result<Option<Cert>> {
    let wanted = canonical(domain);
    let has = |name: &String| canonical(name) == wanted;
    let made_for = |cert: &Cert| canonical(&cert.domain) == wanted || cert.names().iter().any(has);
    Ok(list(c, Some(account))?.into_iter().find(made_for))
}

/// Adds a record and returns its number.
pub(crate) fn insert(t: &Transaction<'_>, new: &Content<'_>) -> rusqlite::Result<i64> {
    t.execute(
        "INSERT INTO cert (account, domain, domain_key, name, type, cert_pem, key_pem)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            new.account,
            new.domain,
            canonical(new.domain),
            new.name.unwrap_or(new.domain),
            quirks::UPLOADED,
            new.cert_pem,
            new.key_pem
        ],
    )?;
    Ok(t.last_insert_rowid())
}

/// Puts new content into a record. A name that is not given stays as it is.
pub(crate) fn replace(t: &Transaction<'_>, id: i64, new: &Content<'_>) -> rusqlite::Result<()> {
    t.execute(
        "UPDATE cert SET cert_pem = ?2, key_pem = ?3, name = coalesce(?4, name), type = ?5 WHERE id = ?1",
        params![id, new.cert_pem, new.key_pem, new.name, quirks::UPLOADED],
    )?;
    Ok(())
}

impl Cert {
    /// The names in the stored certificate; the record's domain when it cannot be read.
    pub(crate) fn names(&self) -> Vec<String> {
        match cert::read(&self.cert_pem) {
            Ok(leaf) if !leaf.names.is_empty() => leaf.names,
            _ => vec![self.domain.clone()],
        }
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Cert> {
    Ok(Cert {
        id: row.get(0)?,
        account: row.get(1)?,
        domain: row.get(2)?,
        name: row.get(3)?,
        kind: row.get(4)?,
        cert_pem: row.get(5)?,
        key_pem: row.get(6)?,
    })
}
