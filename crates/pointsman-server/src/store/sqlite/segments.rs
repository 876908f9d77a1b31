//! The files that the log is divided into: segments and archives.
//!
//! SQLite writes committed rows to a write-ahead log first and moves them into the database file at a checkpoint. A checkpoint of a file
//! that is being written stops the writer for a long time. So only the newest segment is written, and never checkpointed; it is
//! replaced by a new one when it is large or a day is over. Another thread then copies its rows into an archive and deletes it. An archive
//! takes the rows of many segments and is closed when it is large or a day is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use fastbloom::BloomFilter;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

use super::super::record::ClientId;
use super::super::{LogQuery, Record, VersionAction};
use super::{filters, rows};
use crate::clock::{Time, stamp};

/// The version of the tables of a segment.
pub(super) const VERSION: i64 = 2;

/// How long a commit waits for another process to release the file. Requests are refused soon, since the thread could answer others.
const COMMIT_BUSY_TIMEOUT: Duration = Duration::from_millis(100);

/// The bytes of a page of a segment: each commit writes whole pages, and most commits have few rows.
const SEGMENT_PAGE_BYTES: i64 = 1024;

/// What the name of an archive has behind the number of its first segment.
const ARCHIVE: &str = "-archive";

/// One file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// Whether it takes the rows of segments, instead of new ones.
    pub(super) is_archive: bool,
    /// The smallest and the largest id; `None` while it has no rows.
    pub(super) range: Mutex<Option<(Uuid, Uuid)>>,
    /// Whether it is an archive that takes no more rows.
    is_closed: AtomicBool,
    /// One of these has each caller's id that it contains; `None` if that is not known.
    ids: RwLock<Option<Vec<BloomFilter>>>,
    /// One connection for readers.
    reader: Mutex<Option<Connection>>,
}

/// All files of the log, oldest first; the last one is written.
pub(super) type Segments = Arc<RwLock<Vec<Arc<Segment>>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Segment {
    /// The segments of a folder, oldest first. Files of other names are left alone.
    pub(super) fn list(folder: &Path) -> rusqlite::Result<Vec<Arc<Self>>> {
        let files = remove_remains(folder).and_then(|()| Self::files(folder));
        let files = files.map_err(|e| unusable(&format!("{}: {e}", folder.display())))?;
        files.into_iter().map(|path| Ok(Arc::new(Self::open(path)?))).collect()
    }

    /// The files of the log in a folder, oldest first. Rows are moved from later files into earlier ones.
    pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = paths.into_iter().filter(|path| number(path).is_some()).collect();
        files.sort_by_key(|path| (number(path), !is_archive(path)));
        Ok(files)
    }

    fn open(path: PathBuf) -> rusqlite::Result<Self> {
        let segment = Self::new(path);
        let connection = segment.connect()?;
        segment.make_tables(&connection)?;
        *lock(&segment.range) = first_id(&connection)?.zip(last_id(&connection)?);
        if let Some(filters) = filters::of_closed(&connection)? {
            segment.set_ids(filters);
            segment.is_closed.store(true, Ordering::Release);
        }
        Ok(segment)
    }

    fn new(path: PathBuf) -> Self {
        let (number, is_archive) = (number(&path).unwrap_or(0), is_archive(&path));
        Self {
            number,
            path,
            is_archive,
            range: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            ids: RwLock::new(None),
            reader: Mutex::new(None),
        }
    }

    /// Makes a new segment.
    pub(super) fn create(folder: &Path, number: u64) -> rusqlite::Result<Arc<Self>> {
        Self::create_at(folder.join(format!("{number:08}.db")))
    }

    /// Makes a new archive whose first segment has this number.
    pub(super) fn create_archive(folder: &Path, number: u64) -> rusqlite::Result<Arc<Self>> {
        let archive = Self::create_at(folder.join(format!("{number:08}{ARCHIVE}.db")))?;
        archive.note_ids()?;
        Ok(archive)
    }

    fn create_at(path: PathBuf) -> rusqlite::Result<Arc<Self>> {
        let segment = Self::new(path);
        segment.make_tables(&segment.connect()?)?;
        Ok(Arc::new(segment))
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
        if !self.is_archive {
            // Has an effect on new files only.
            connection.pragma_update(None, "page_size", SEGMENT_PAGE_BYTES)?;
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.busy_timeout(super::BUSY_TIMEOUT)?;
        Ok(connection)
    }

    /// A connection that writes and never checkpoints. From now on, the segment can be read whatever happens to the disk: the first reader
    /// of a file that nobody else has open makes a file beside it, which a full disk would prevent.
    pub(super) fn writer(&self, is_durable: bool) -> rusqlite::Result<Connection> {
        let connection = self.connect()?;
        connection.pragma_update(None, "synchronous", if is_durable { "FULL" } else { "NORMAL" })?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.busy_timeout(COMMIT_BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(16);
        // The first write makes the write-ahead log and waits for the disk.
        connection.pragma_update(None, "user_version", VERSION)?;
        self.open_for_readers()?;
        Ok(connection)
    }

    /// Whether it is an archive that takes no more rows.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The size of the rows that no checkpoint has moved yet, in bytes.
    pub(super) fn bytes_in_wal(&self) -> u64 {
        fs::metadata(super::beside(&self.path, "-wal")).map_or(0, |file| file.len())
    }

    /// Counts these ids as contained.
    pub(super) fn extend_range(&self, ids: impl Iterator<Item = Uuid>) {
        let mut range = lock(&self.range);
        for id in ids {
            *range = Some(range.map_or((id, id), |(least, most)| (least.min(id), most.max(id))));
        }
    }

    fn set_ids(&self, filters: Vec<BloomFilter>) {
        *self.ids.write().unwrap_or_else(PoisonError::into_inner) = Some(filters);
    }

    /// Finds out which callers' ids there are. It is open for readers afterwards, which a full disk would prevent.
    pub(super) fn note_ids(&self) -> rusqlite::Result<()> {
        let filter = self.read(|connection| filters::of_rows(connection, "main"))?;
        self.set_ids(filter.into_iter().collect());
        Ok(())
    }

    /// Copies the rows of a segment, all or none. Rows that are there already are left as they are. They are on the disk afterwards.
    pub(super) fn take_rows(&self, segment: &Self) -> rusqlite::Result<()> {
        let mut connection = self.connect()?;
        // It would be a checkpoint of the segment, too, whose rows are not needed there any more.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.execute("ATTACH ?1 AS segment", params![segment.path.to_string_lossy()])?;
        let filter = filters::of_rows(&connection, "segment")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        ["decisions", "inputs"].into_iter().try_for_each(|table| copy_rows(&transaction, table))?;
        transaction.commit()?;
        checkpoint(&connection)?;
        let range = *lock(&segment.range);
        self.extend_range(range.into_iter().flat_map(|(least, most)| [least, most]));
        if let Some(filters) = &mut *self.ids.write().unwrap_or_else(PoisonError::into_inner) {
            filters.extend(filter);
        }
        Ok(())
    }

    /// Notes that no more rows come in, and which callers' ids there are.
    pub(super) fn close(&self) -> rusqlite::Result<()> {
        let connection = self.connect()?;
        let filter = filters::of_rows(&connection, "main")?;
        connection.execute("DELETE FROM closed", [])?;
        connection.execute("INSERT INTO closed VALUES (?1)", params![filter.as_ref().map(filters::encode)])?;
        checkpoint(&connection)?;
        self.set_ids(filter.into_iter().collect());
        self.is_closed.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether an archive has this many bytes, or rows of a day before this time.
    pub(super) fn is_complete(&self, bytes: u64, now: Time) -> bool {
        let is_large = fs::metadata(&self.path).is_ok_and(|file| file.len() >= bytes);
        is_large || lock(&self.range).is_some_and(|(least, _)| least < now.start_of_day().first_id())
    }

    /// Whether the segment may contain a caller's id.
    pub(super) fn may_contain(&self, client: ClientId<'_>) -> bool {
        let filters = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        filters.as_ref().is_none_or(|filters| filters.iter().any(|filter| filter.contains(&client)))
    }

    /// Reads with the segment's one connection for readers.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut reader = lock(&self.reader);
        let connection = match reader.take() {
            Some(connection) => connection,
            None => {
                let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                connection.busy_timeout(super::BUSY_TIMEOUT)?;
                connection.pragma_update(None, "query_only", true)?;
                connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
                connection
            }
        };
        let found = read(&connection);
        *reader = Some(connection);
        found
    }

    /// Opens the connection for readers, and with its first statement the files that it needs.
    fn open_for_readers(&self) -> rusqlite::Result<()> {
        self.read(|connection| connection.query_row("SELECT count(*) FROM closed", [], |_| Ok(())))
    }

    /// Whether some of its ids are from `first` on and before `end`.
    pub(super) fn overlaps(&self, first: Uuid, end: Option<Uuid>) -> bool {
        lock(&self.range).is_some_and(|(least, most)| most >= first && end.is_none_or(|end| least < end))
    }

    /// Whether all its decisions were made before this time; not if there are none.
    pub(super) fn is_before(&self, time: Time) -> bool {
        lock(&self.range).is_some_and(|(_, most)| most < time.first_id())
    }

    /// Deletes its inputs and gives the space back.
    pub(super) fn delete_inputs(&self) -> rusqlite::Result<()> {
        let connection = self.connect()?;
        if connection.execute("DELETE FROM inputs", [])? > 0 {
            connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        }
        Ok(())
    }

    /// Deletes the file and those beside it, also if some are gone already.
    pub(super) fn delete(&self) -> io::Result<()> {
        // Somebody may be about to read from it, and could not open it any more.
        let _ = self.open_for_readers();
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

/// The number of a file of the log by its name.
fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".db")?;
    name.strip_suffix(ARCHIVE).unwrap_or(name).parse().ok()
}

pub(super) fn is_archive(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name.to_string_lossy().ends_with(ARCHIVE))
}

/// Copies the rows of a table from the attached segment.
fn copy_rows(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    // In this form, SQLite copies rows as they are, without reading their columns.
    let copy = format!("INSERT INTO main.{table} SELECT * FROM segment.{table}");
    match connection.execute(&copy, []) {
        // They were copied before, and the process ended before the segment was deleted.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            connection.execute(&format!("{copy} WHERE true ON CONFLICT DO NOTHING"), []).map(drop)
        }
        other => other.map(drop),
    }
}

/// Moves all rows into the database file.
fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    let is_busy: bool = connection.query_row("PRAGMA main.wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match is_busy {
        true => Err(unusable("a reader kept the checkpoint of a file of the log waiting")),
        false => Ok(()),
    }
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

/// The smallest id.
pub(super) fn first_id(connection: &Connection) -> rusqlite::Result<Option<Uuid>> {
    id_at_end(connection, "ASC")
}

/// The largest id.
fn last_id(connection: &Connection) -> rusqlite::Result<Option<Uuid>> {
    id_at_end(connection, "DESC")
}

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
    use super::*;

    /// Files beside it can no longer be made, as on a full disk, once the writer is gone and before the rows are archived.
    #[test]
    fn finished_segments_can_be_read_when_the_disk_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let segment = Segment::create(folder.path(), 1).unwrap();
        let writer = segment.writer(false).unwrap();
        writer.execute("INSERT INTO inputs VALUES (1, '\"text\"')", []).unwrap();
        writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        drop(writer);
        let index = super::super::beside(&segment.path, "-shm");
        fs::remove_file(&index).unwrap();
        std::os::unix::fs::symlink("no such folder/index", &index).unwrap();
        let inputs: i64 = segment
            .read(|connection| connection.query_row("SELECT count(*) FROM inputs", [], |row| row.get(0)))
            .unwrap();
        assert_eq!(inputs, 1);
    }
}
