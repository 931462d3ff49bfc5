//! Imports a world into an empty database. Its sites count as pushed.

use rusqlite::{ErrorCode, Transaction, params};

use super::certs::{UPLOADED, UploadContent};
use super::{certs, edge, sites};
use crate::error::Error;
use crate::site_fields;
use crate::world::{Account, Cert, Site, World};

pub(super) fn import(t: &Transaction<'_>, world: &World, now: i64) -> Result<(), Error> {
    world.accounts.iter().try_for_each(|account| insert_account(t, account)).map_err(import_error)?;
    world.certs.iter().try_for_each(|cert| insert_cert(t, cert)).map_err(import_error)?;
    for site in &world.sites {
        insert_site(t, world, site, now).map_err(import_error)?;
        edge::push(t, site.id)?;
    }
    Ok(())
}

/// Reports duplicate IDs and dangling references as errors of the world.
fn import_error(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => Error::InvalidWorld(error.to_string()),
        _ => Error::Database(error),
    }
}

fn insert_account(t: &Transaction<'_>, account: &Account) -> rusqlite::Result<()> {
    t.execute("INSERT INTO account (id) VALUES (?1)", [account.id])?;
    for key in &account.api_keys {
        t.execute("INSERT INTO api_key (key, account) VALUES (?1, ?2)", params![key, account.id])?;
    }
    for package in &account.packages {
        t.execute(
            "INSERT INTO package (id, account, expires_at, traffic_limit, traffic_used) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                package.id,
                account.id,
                package.expires_at.as_second(),
                package.traffic_limit,
                package.traffic_used
            ],
        )?;
    }
    Ok(())
}

fn insert_cert(t: &Transaction<'_>, cert: &Cert) -> rusqlite::Result<()> {
    let content = UploadContent {
        account: cert.account,
        domain: &cert.domain,
        name: cert.name.as_deref(),
        cert_pem: &cert.cert_pem,
        key_pem: &cert.key_pem,
    };
    certs::insert(t, Some(cert.id), cert.kind.as_deref().unwrap_or(UPLOADED), &content).map(|_| ())
}

fn insert_site(t: &Transaction<'_>, world: &World, site: &Site, now: i64) -> rusqlite::Result<()> {
    let package_id = site.package_id.or_else(|| {
        let owner = world.accounts.iter().find(|account| account.id == site.account)?;
        owner.packages.first().map(|package| package.id)
    });
    let mut settings = site_fields::defaults();
    settings.extend(site.settings.clone());
    let new = sites::Site {
        id: site.id,
        account: site.account,
        domain: site.domain.clone(),
        enabled: site.enabled,
        cert_id: site.cert_id,
        package_id,
        settings,
        created_at: now,
        ..sites::Site::default()
    };
    sites::insert(t, &new).map(|_| ())
}
