//! The service's data in SQLite. All access goes through one connection. Every write is one transaction,
//! which is durable (WAL, `synchronous=FULL`) before its response is sent. SQLite's exclusive lock keeps a
//! second process out of the directory and disappears with the process.

pub(crate) mod certs;
pub(crate) mod edge;
mod import;
pub(crate) mod packages;
pub(crate) mod sites;

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior};

use crate::error::Error;
use crate::world::World;

/// Name of the database in the data directory.
const FILE: &str = "sandbox.sqlite3";
const SCHEMA: &str = include_str!("schema.sql");
const SCHEMA_VERSION: i64 = 1;

/// The open database.
pub(crate) struct Store {
    connection: Connection,
    /// Whether the database was empty and the world was imported.
    pub(crate) is_new: bool,
}

impl Store {
    /// Opens the database in `data`, or one in memory, and imports the world if it is empty.
    pub(crate) fn open(data: Option<&Path>, world: &World, now: i64) -> Result<Self, Error> {
        let connection = match data {
            Some(directory) => open_file(directory)?,
            None => Connection::open_in_memory()?,
        };
        connection.pragma_update(None, "foreign_keys", true)?;
        let mut store = Self { connection, is_new: false };
        store.is_new = store.initialize(data, world, now)?;
        Ok(store)
    }

    /// Runs `work` in a transaction, which an error rolls back.
    pub(crate) fn write<T, E: From<rusqlite::Error>>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Returns the connection for queries.
    pub(crate) fn read(&self) -> &Connection {
        &self.connection
    }

    /// Returns the account of an API key.
    pub(crate) fn account_of(&self, key: &str) -> rusqlite::Result<Option<i64>> {
        let mut query = self.connection.prepare_cached("SELECT account FROM api_key WHERE key = ?1")?;
        query.query_row([key], |row| row.get(0)).optional()
    }

    /// Returns the key of the first account that the world lists first, for the ready file.
    pub(crate) fn first_key(&self) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT key FROM api_key ORDER BY account, rowid LIMIT 1";
        self.connection.query_row(sql, [], |row| row.get(0)).optional()
    }

    /// Returns the account with the smallest ID.
    pub(crate) fn first_account(&self) -> rusqlite::Result<i64> {
        self.connection.query_row("SELECT min(id) FROM account", [], |row| row.get(0))
    }

    /// Creates the schema and imports the world, unless the database has them. Returns whether it did.
    fn initialize(&mut self, data: Option<&Path>, world: &World, now: i64) -> Result<bool, Error> {
        let found: i64 = self.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found > SCHEMA_VERSION {
            let path = data.map(|directory| directory.join(FILE)).unwrap_or_default();
            return Err(Error::SchemaTooNew { path, found, supported: SCHEMA_VERSION });
        }
        if found == SCHEMA_VERSION {
            return Ok(false);
        }
        self.write(|t| {
            t.execute_batch(SCHEMA)?;
            import::import(t, world, now)?;
            t.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            Ok(true)
        })
    }
}

fn open_file(directory: &Path) -> Result<Connection, Error> {
    let file_error = |source| Error::File { path: directory.to_owned(), source };
    // For the owner only: someone may rehearse with a real certificate, and its key is stored here.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(file_error)?;
    let connection = Connection::open(directory.join(FILE))?;
    connection.busy_timeout(Duration::ZERO)?;
    lock(&connection).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::DataInUse(directory.to_owned()),
        _ => Error::Database(error),
    })?;
    Ok(connection)
}

/// Takes an exclusive lock, which SQLite then keeps until the connection is closed.
fn lock(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;")
}
