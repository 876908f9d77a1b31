//! Archives: the files in which decisions are kept and searched.
//!
//! One thread writes to the newest archive. An archive is closed when it is large or a day is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, TryLockError};

use fastbloom::BloomFilter;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

use super::super::record::ClientId;
use super::super::{LogQuery, Record, VersionAction};
use super::journal::Place;
use super::{filters, rows};
use crate::clock::{Time, stamp};

/// The version of the tables of an archive.
const VERSION: i64 = 3;

/// How many rows are written before other threads that want the processor get it.
const ROWS_PER_TURN: usize = 32;

/// One archive.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// The smallest and the largest id; `None` while it has no rows.
    pub(super) range: Mutex<Option<(Uuid, Uuid)>>,
    /// Once it takes no more rows: its callers' ids, if it has any.
    closed: OnceLock<Option<BloomFilter>>,
    /// One connection for readers.
    reader: Mutex<Option<Connection>>,
}

/// All archives, oldest first.
pub(super) type Archives = Arc<RwLock<Vec<Arc<Archive>>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Archive {
    /// The archives of a folder, oldest first. Files of other names are left alone.
    pub(super) fn list(folder: &Path) -> rusqlite::Result<Vec<Arc<Self>>> {
        let files = remove_remains(folder).and_then(|()| Self::files(folder));
        let files = files.map_err(|e| unusable(&format!("{}: {e}", folder.display())))?;
        files.into_iter().map(|path| Ok(Arc::new(Self::open(path)?))).collect()
    }

    /// The files of the archives in a folder, oldest first.
    pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = paths.into_iter().filter(|path| number(path).is_some()).collect();
        files.sort_by_key(|path| number(path));
        Ok(files)
    }

    fn open(path: PathBuf) -> rusqlite::Result<Self> {
        let number = number(&path).unwrap_or(0);
        let (range, closed, reader) = (Mutex::new(None), OnceLock::new(), Mutex::new(None));
        let archive = Self { number, path, range, closed, reader };
        let connection = archive.connect()?;
        archive.make_tables(&connection)?;
        *lock(&archive.range) = id_at_end(&connection, "ASC")?.zip(id_at_end(&connection, "DESC")?);
        if let Some(filter) = filters::of_closed(&connection)? {
            let _ = archive.closed.set(filter);
        }
        // The first reader of a file that nobody else has open makes a file beside it, which a full disk would prevent later.
        archive.read(|connection| connection.query_row("SELECT count(*) FROM closed", [], |_| Ok(())))?;
        Ok(archive)
    }

    /// Makes a new archive.
    pub(super) fn create(folder: &Path, number: u64) -> rusqlite::Result<Arc<Self>> {
        Self::open(folder.join(format!("{number:08}.db"))).map(Arc::new)
    }

    /// Makes the tables, unless they are there: an attempt may have ended in between.
    fn make_tables(&self, connection: &Connection) -> rusqlite::Result<()> {
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match version {
            0 => connection
                .execute_batch(&format!("BEGIN IMMEDIATE; {} PRAGMA user_version = {VERSION}; COMMIT;", rows::SCHEMA)),
            VERSION => Ok(()),
            other => {
                let path = self.path.display();
                Err(unusable(&format!("{path} has format {other}, this program reads format {VERSION}")))
            }
        }
    }

    /// A new connection to the file.
    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.path)?;
        // SQLite opens a file that it may not write for reading only, and later never asks again.
        if connection.is_readonly(rusqlite::MAIN_DB)? {
            return Err(unusable(&format!("{} cannot be written", self.path.display())));
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.busy_timeout(super::BUSY_TIMEOUT)?;
        Ok(connection)
    }

    /// A connection that writes. It moves rows from the write-ahead log into the database by explicit checkpoints only.
    pub(super) fn writer(&self) -> rusqlite::Result<Connection> {
        let connection = self.connect()?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.busy_timeout(super::BUSY_TIMEOUT / 5)?;
        connection.set_prepared_statement_cache_capacity(16);
        Ok(connection)
    }

    /// Whether it takes no more rows.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }

    /// Counts these ids as contained.
    pub(super) fn extend_range(&self, ids: impl Iterator<Item = Uuid>) {
        let mut range = lock(&self.range);
        for id in ids {
            *range = Some(range.map_or((id, id), |(least, most)| (least.min(id), most.max(id))));
        }
    }

    /// Writes records by a connection of [`Archive::writer`], all or none, and that the journals are archived up to a place.
    pub(super) fn take(&self, writer: &mut Connection, records: &[Record], end: Place) -> rusqlite::Result<()> {
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for some in records.chunks(ROWS_PER_TURN) {
            some.iter().try_for_each(|record| rows::insert(&transaction, record))?;
            std::thread::yield_now();
        }
        // If it was noted as closed and that failed afterwards, the note lacks these rows.
        transaction.prepare_cached("DELETE FROM closed")?.execute([])?;
        transaction.prepare_cached("DELETE FROM journal")?.execute([])?;
        transaction
            .prepare_cached("INSERT INTO journal VALUES (?1, ?2)")?
            .execute([end.journal.cast_signed(), end.bytes.cast_signed()])?;
        transaction.commit()?;
        self.extend_range(records.iter().map(|record| record.id));
        Ok(())
    }

    /// The place up to which the journals were archived when it took rows last; the beginning if it never did.
    pub(super) fn end_of_archived(&self) -> rusqlite::Result<Place> {
        self.read(end_of_archived)
    }

    /// Notes that no more rows come in, and which callers' ids there are.
    pub(super) fn close(&self) -> rusqlite::Result<()> {
        let connection = self.connect()?;
        let filter = filters::of_rows(&connection)?;
        // First the rows: nobody sees to it any more that the disk has those of a closed archive.
        if !empty_write_ahead_log(&connection)? {
            // A reader needs them in the log. Journals that have them may be deleted from now on, so the disk must have it.
            let log = fs::OpenOptions::new().write(true).open(super::beside(&self.path, "-wal"));
            let synced = log.and_then(|log| log.sync_all());
            synced.map_err(|e| unusable(&format!("{}: {e}", self.path.display())))?;
        }
        connection.execute("DELETE FROM closed", [])?;
        connection.execute("INSERT INTO closed VALUES (?1)", params![filter.as_ref().map(filters::encode)])?;
        let _ = self.closed.set(filter);
        empty_write_ahead_log(&connection).map(drop)
    }

    /// Whether it has rows, and this many bytes or rows of a day before this time.
    pub(super) fn is_complete(&self, bytes: u64, now: Time) -> bool {
        let is_large = || fs::metadata(&self.path).is_ok_and(|file| file.len() >= bytes);
        lock(&self.range).is_some_and(|(least, _)| least < now.start_of_day().first_id() || is_large())
    }

    /// Whether it may contain a caller's id.
    pub(super) fn may_contain(&self, client: ClientId<'_>) -> bool {
        self.closed.get().is_none_or(|filter| filter.as_ref().is_some_and(|filter| filter.contains(&client)))
    }

    /// Reads with the connection for readers, or with another one while that is in use: a decision whose id is looked up does not wait for
    /// a page that is read.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut reader = match self.reader.try_lock() {
            Ok(reader) => reader,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => match self.reader() {
                Ok(other) => return read(&other),
                // No more files can be opened, or the archive has just expired.
                Err(_) => lock(&self.reader),
            },
        };
        let connection = match reader.take() {
            Some(connection) => connection,
            None => self.reader()?,
        };
        let found = read(&connection);
        *reader = Some(connection);
        found
    }

    /// A new connection that only reads.
    pub(super) fn reader(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(super::BUSY_TIMEOUT)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(connection)
    }

    /// Whether some of its ids are from `first` on and before `end`.
    pub(super) fn overlaps(&self, first: Uuid, end: Option<Uuid>) -> bool {
        lock(&self.range).is_some_and(|(least, most)| most >= first && end.is_none_or(|end| least < end))
    }

    /// Whether all its decisions were made before this time; not if there are none.
    pub(super) fn is_before(&self, time: Time) -> bool {
        lock(&self.range).is_some_and(|(_, most)| most < time.first_id())
    }

    /// Deletes its inputs, also from the disk, and gives the space back.
    pub(super) fn delete_inputs(&self) -> rusqlite::Result<()> {
        let connection = self.connect()?;
        // Pages that stay in use get zeros in place of what is deleted. Other pages are free, and go when the file is written anew.
        connection.pragma_update(None, "secure_delete", "FAST")?;
        // Without a condition, SQLite would write the file also if there are none.
        if connection.query_row("SELECT EXISTS (SELECT 1 FROM inputs)", [], |row| row.get(0))? {
            connection.execute("DELETE FROM inputs", [])?;
        }
        // What follows is done whether or not there were any: an earlier attempt may have ended here.
        if connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0))? > 0 {
            connection.execute_batch("VACUUM")?;
        }
        if !empty_write_ahead_log(&connection)? {
            let path = self.path.display();
            return Err(unusable(&format!("{path} is being read: its inputs cannot be deleted from the disk yet")));
        }
        Ok(())
    }

    /// Deletes the file and those beside it, also if some are gone already.
    pub(super) fn delete(&self) -> io::Result<()> {
        // The database goes first: whoever opens it finds all of its rows, or nothing.
        ["", "-wal", "-shm"].into_iter().try_for_each(|suffix| remove(&super::beside(&self.path, suffix)))
    }

    /// Rows of a query, in the order of their ids.
    pub(super) fn rows(&self, query: &LogQuery) -> rusqlite::Result<Vec<Record>> {
        let (first, end) = query.ids();
        let end = end.unwrap_or(Uuid::max());
        let tag = query.tag.as_ref().map(|(name, value)| (tag_path(name), value));
        let sql = format!(
            "{} WHERE decisions.stamp BETWEEN ?1 AND ?2 AND id >= ?3 AND id < ?4 AND deployment = ?5 \
             AND (?6 IS NULL OR version = ?6) AND (?7 IS NULL OR cell = ?7) AND (?8 IS NULL OR tags ->> ?8 = ?9){} \
             ORDER BY decisions.stamp LIMIT ?10",
            rows::select(query.with_inputs),
            query.actions.as_deref().map(answered_with).unwrap_or_default(),
        );
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let (path, value) = tag.as_ref().map(|(path, value)| (path, *value)).unzip();
            let stamps = [first, end].map(|id| stamp(id) as i64);
            let (first, end) = (first.as_bytes(), end.as_bytes());
            let found = statement.query_map(
                params![
                    stamps[0],
                    stamps[1],
                    first,
                    end,
                    query.deployment.0,
                    query.version,
                    query.cell,
                    path,
                    value,
                    limit
                ],
                rows::read,
            )?;
            let (mut page, mut bytes) = (Vec::new(), 0);
            for record in found {
                let record = record?;
                bytes += record.bytes();
                page.push(record);
                if bytes >= query.max_bytes {
                    break;
                }
            }
            Ok(page)
        })
    }
}

/// Deletes a file, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Deletes what is left of files whose deletion was interrupted.
fn remove_remains(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        let database = name.strip_suffix("-wal").or_else(|| name.strip_suffix("-shm")).map(Path::new);
        if database.is_some_and(|database| number(database).is_some() && !database.exists()) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// The number of an archive by its name.
fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".db")?.parse().ok()
}

/// Moves rows from the write-ahead log into the database and waits until the disk has them. Rows that a reader still needs in the log are
/// left: `false` then.
pub(super) fn checkpoint(writer: &Connection) -> rusqlite::Result<bool> {
    writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (is_busy, in_log, moved): (bool, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(!is_busy && in_log == moved)
    })
}

/// The same for all rows, once no reader needs them in the write-ahead log any more; `false` if readers take too long.
pub(super) fn empty_write_ahead_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(!row.get::<_, bool>(0)?))
}

/// See [`Archive::end_of_archived`].
pub(super) fn end_of_archived(connection: &Connection) -> rusqlite::Result<Place> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Place { journal: row.get::<_, i64>(0)?.cast_unsigned(), bytes: row.get::<_, i64>(1)?.cast_unsigned() })
    };
    connection.query_row("SELECT number, bytes FROM journal", [], read).optional().map(Option::unwrap_or_default)
}

/// The condition that a decision was answered with one of these actions.
fn answered_with(actions: &[VersionAction]) -> String {
    if actions.is_empty() {
        return " AND FALSE".to_owned();
    }
    let pairs = actions.iter().map(|VersionAction { version, action }| format!("({version}, {action})"));
    format!(" AND (version, action) IN (VALUES {})", pairs.collect::<Vec<_>>().join(", "))
}

/// The row of an id, if it is there.
pub(super) fn find(connection: &Connection, id: Uuid) -> rusqlite::Result<Option<Record>> {
    let sql = format!("{} WHERE decisions.stamp = ?1 AND id = ?2", rows::select(true));
    connection.prepare_cached(&sql)?.query_row(params![stamp(id) as i64, id.as_bytes()], rows::read).optional()
}

/// The smallest id (`ASC`) or the largest (`DESC`).
fn id_at_end(connection: &Connection, order: &str) -> rusqlite::Result<Option<Uuid>> {
    let sql = format!("SELECT id FROM decisions ORDER BY stamp {order} LIMIT 1");
    connection.query_row(&sql, [], |row| row.get(0).map(Uuid::from_bytes)).optional()
}

/// The first decision on a caller's id, if there is one.
pub(super) fn find_client_id(connection: &Connection, client: ClientId<'_>) -> rusqlite::Result<Option<Record>> {
    let sql = format!("{} WHERE deployment = ?1 AND key = ?2 AND client_id = ?3", rows::select(true));
    let ClientId { deployment, key, id } = client;
    connection.prepare_cached(&sql)?.query_row(params![deployment, key, id], rows::read).optional()
}

/// The path of a tag for SQLite's `->>`.
fn tag_path(name: &str) -> String {
    format!("$.{}", serde_json::Value::from(name))
}

/// An error of SQLite with a reason of our own.
pub(super) fn unusable(reason: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN), Some(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_waits_for_a_slow_reader() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::create(folder.path(), 1).unwrap();
        let ((started, is_started), (end, is_ended), (reply, answer)) = (channel(), channel(), channel());
        std::thread::scope(|scope| {
            let archive = &archive;
            scope.spawn(move || {
                let wait = |_: &Connection| {
                    started.send(()).unwrap();
                    Ok(is_ended.recv())
                };
                archive.read(wait).unwrap()
            });
            is_started.recv().unwrap();
            let client = ClientId { deployment: 1, key: 0, id: "q" };
            scope.spawn(move || drop(reply.send(archive.read(|connection| find_client_id(connection, client)))));
            let found = answer.recv_timeout(Duration::from_secs(20));
            end.send(()).unwrap();
            assert_eq!(found.expect("the look-up waits for the other reader").unwrap(), None);
        });
    }
}
