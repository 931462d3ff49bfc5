//! The service's data in SQLite. One connection behind one lock; every write is one transaction that is on the
//! disk (WAL, `synchronous=FULL`) before its answer is sent. SQLite's own exclusive lock keeps a second
//! process off the directory and goes away with the process, however that ends.

pub(crate) mod certs;
pub(crate) mod edge;
mod import;
pub(crate) mod packages;
pub(crate) mod sites;

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior};

use crate::error::Error;

const SCHEMA: &str = include_str!("schema.sql");
const SCHEMA_VERSION: i64 = 1;

/// The open database.
pub(crate) struct Store {
    connection: Connection,
    /// Whether the database was empty and took the world.
    pub(crate) fresh: bool,
}

impl Store {
    /// Opens the database in `data`, or one in memory, and puts the world into an empty one.
    pub(crate) fn open(data: Option<&Path>, world: &crate::world::World, now: i64) -> Result<Self, Error> {
        let connection = match data {
            Some(directory) => open_file(directory)?,
            None => Connection::open_in_memory()?,
        };
        connection.pragma_update(None, "foreign_keys", true)?;
        let mut store = Self { connection, fresh: false };
        store.fresh = store.prepare(data, world, now)?;
        Ok(store)
    }

    /// Runs `work` as one transaction; an error undoes all of it.
    pub(crate) fn write<T, E: From<rusqlite::Error>>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// For reading.
    pub(crate) fn read(&self) -> &Connection {
        &self.connection
    }

    /// The account that a key acts for.
    pub(crate) fn account_of(&self, key: &str) -> rusqlite::Result<Option<i64>> {
        let mut query = self.connection.prepare_cached("SELECT account FROM api_key WHERE key = ?1")?;
        query.query_row([key], |row| row.get(0)).optional()
    }

    /// One of the keys, for the ready file.
    pub(crate) fn first_key(&self) -> rusqlite::Result<Option<String>> {
        let first = "SELECT key FROM api_key ORDER BY account, key LIMIT 1";
        self.connection.query_row(first, [], |row| row.get(0)).optional()
    }

    fn prepare(&mut self, data: Option<&Path>, world: &crate::world::World, now: i64) -> Result<bool, Error> {
        let found: i64 = self.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found > SCHEMA_VERSION {
            let path = data.map(|directory| directory.join(FILE)).unwrap_or_default();
            return Err(Error::SchemaTooNew { path, found, known: SCHEMA_VERSION });
        }
        if found == SCHEMA_VERSION {
            return Ok(false);
        }
        self.write(|t| {
            t.execute_batch(SCHEMA)?;
            import::insert(t, world, now)?;
            t.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            Ok(true)
        })
    }
}

const FILE: &str = "sandbox.sqlite3";

fn open_file(directory: &Path) -> Result<Connection, Error> {
    let file_error = |source| Error::File { path: directory.to_owned(), source };
    // Who rehearses with a certificate of their own leaves its key here.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(file_error)?;
    let connection = Connection::open(directory.join(FILE))?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    lock(&connection).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::DataInUse(directory.to_owned()),
        _ => Error::Database(error),
    })?;
    Ok(connection)
}

/// Exclusive mode keeps the lock of the first transaction until the process ends.
fn lock(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;")
}
