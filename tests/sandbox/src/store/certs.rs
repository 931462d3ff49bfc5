//! Certificate records.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::cert::Leaf;
use crate::names::canonical;

/// The stored `type` of an uploaded record; a quirk decides how the API spells it.
pub(crate) const UPLOADED: &str = "upload";

/// A stored certificate with its key.
#[expect(clippy::struct_field_names, reason = "the service's field names")]
pub(crate) struct Cert {
    pub(crate) id: i64,
    pub(crate) account: i64,
    pub(crate) domain: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
}

/// The content of an upload.
#[derive(Clone, Copy)]
pub(crate) struct UploadContent<'a> {
    pub(crate) account: i64,
    pub(crate) domain: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) cert_pem: &'a str,
    pub(crate) key_pem: &'a str,
}

const SELECT: &str = "SELECT id, account, domain, name, type, cert_pem, key_pem FROM cert";

/// Returns the records of an account, or of all accounts, in order of ID.
pub(crate) fn list(c: &Connection, account: Option<i64>) -> rusqlite::Result<Vec<Cert>> {
    let sql = format!("{SELECT} WHERE ?1 IS NULL OR account = ?1 ORDER BY id");
    c.prepare_cached(&sql)?.query_map([account], from_row)?.collect()
}

/// Returns a record of any account.
pub(crate) fn get(c: &Connection, id: i64) -> rusqlite::Result<Option<Cert>> {
    c.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()
}

/// Returns the account's oldest record that was uploaded for this domain.
pub(crate) fn oldest_for_domain(
    c: &Connection,
    account: i64,
    domain: &str,
) -> rusqlite::Result<Option<Cert>> {
    let sql = format!("{SELECT} WHERE account = ?1 AND domain_key = ?2 ORDER BY id LIMIT 1");
    c.prepare_cached(&sql)?.query_row(params![account, canonical(domain)], from_row).optional()
}

/// Returns the account's oldest record that was uploaded for this domain or whose certificate names it.
pub(crate) fn oldest_with_name(c: &Connection, account: i64, domain: &str) -> rusqlite::Result<Option<Cert>> {
    let domain = canonical(domain);
    let has_name = |cert: &Cert| {
        canonical(&cert.domain) == domain || cert.names().iter().any(|name| canonical(name) == domain)
    };
    Ok(list(c, Some(account))?.into_iter().find(has_name))
}

/// Adds a record, with the next free ID if none is given, and returns its ID.
pub(crate) fn insert(
    t: &Transaction<'_>,
    id: Option<i64>,
    kind: &str,
    new: &UploadContent<'_>,
) -> rusqlite::Result<i64> {
    let &UploadContent { account, domain, name, cert_pem, key_pem } = new;
    let name = name.unwrap_or(domain);
    t.execute(
        "INSERT INTO cert (id, account, domain, domain_key, name, type, cert_pem, key_pem)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![id, account, domain, canonical(domain), name, kind, cert_pem, key_pem],
    )?;
    Ok(t.last_insert_rowid())
}

/// Replaces the content of a record. Its name changes only if a new one is given.
pub(crate) fn replace(t: &Transaction<'_>, id: i64, new: &UploadContent<'_>) -> rusqlite::Result<()> {
    t.execute(
        "UPDATE cert SET cert_pem = ?2, key_pem = ?3, name = coalesce(?4, name), type = ?5 WHERE id = ?1",
        params![id, new.cert_pem, new.key_pem, new.name, UPLOADED],
    )?;
    Ok(())
}

/// Replaces certificate and key of a record. Returns whether there is such a record.
pub(crate) fn replace_pem(
    t: &Transaction<'_>,
    id: i64,
    cert_pem: &str,
    key_pem: &str,
) -> rusqlite::Result<bool> {
    let sql = "UPDATE cert SET cert_pem = ?2, key_pem = ?3 WHERE id = ?1";
    Ok(t.execute(sql, params![id, cert_pem, key_pem])? > 0)
}

impl Cert {
    /// Returns the DNS names of the certificate, or the record's domain if there are none.
    pub(crate) fn names(&self) -> Vec<String> {
        match Leaf::parse(&self.cert_pem) {
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
