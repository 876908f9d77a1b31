//! A store in files: a SQLite database for the registry and files, and a folder for the log.
//!
//! A decision is committed when it is at the end of the newest journal, a file that only grows. A thread moves decisions from journals into
//! archives, SQLite databases that can be searched. Whoever reads sees both: journals first, since decisions move from there.
//!
//! One process uses a store at a time. Whatever waits to be logged is committed together.

mod archive;
mod archivist;
mod backup;
mod filters;
mod journal;
mod journals;
mod rows;
mod writer;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

pub use super::Settings;
use super::{AdminEntry, Appended, Change, Changed, LogQuery, Record, Registry, Reply, Sha256, Store, StoreError};
use crate::clock::Time;
use archive::{Archive, Archives};
use archivist::Archivist;
pub use backup::{Backup, backup};
use journals::Journals;
use writer::Log;

/// How long a connection waits for another one to finish.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The oldest SQLite whose write-ahead log is safe with several connections.
const MIN_SQLITE_VERSION: i32 = 3_051_003;

/// The version of the tables of the main file.
const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE registry (document TEXT NOT NULL) STRICT;
CREATE TABLE files (sha256 BLOB PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE admin_log (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, by TEXT NOT NULL, what TEXT NOT NULL) STRICT;
";

/// A store in SQLite files.
#[derive(Debug)]
pub struct SqliteStore {
    main: Arc<Mutex<Connection>>,
    folder: PathBuf,
    archives: Archives,
    journals: Arc<Journals>,
    log: Arc<Log>,
    archivist: Mutex<Option<JoinHandle<()>>>,
    /// Held while the store is open, so that no second process opens it.
    _lock: File,
}

/// An error of SQLite as an error of the store.
fn unavailable(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// An error of the files of the log as an error of the store.
fn unwritable(error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("the log: {error}"))
}

impl SqliteStore {
    /// Opens a store, or makes it if there is none. The log is in the folder `<path>-log`.
    ///
    /// # Errors
    /// If the files cannot be opened, another process has them open, or they are of a newer version.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Self, StoreError> {
        let named = path.as_ref();
        if rusqlite::version_number() < MIN_SQLITE_VERSION {
            let version = rusqlite::version();
            return Err(StoreError::Unavailable(format!(
                "SQLite {version} can lose committed rows: use 3.51.3 or newer"
            )));
        }
        check_path(named)?;
        let io = |e: std::io::Error| StoreError::Unavailable(format!("{}: {e}", named.display()));
        if let Some(parent) = named.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        let path = &resolve(named).map_err(io)?;
        let folder = log_folder(path);
        fs::create_dir_all(&folder).map_err(io)?;
        let lock = File::create(beside(path, "-lock")).map_err(io)?;
        lock.try_lock().map_err(|_| {
            let path = named.display();
            StoreError::Unavailable(format!(
                "{path} is in use by another process: one process at a time, or PostgreSQL"
            ))
        })?;
        let main = open_main(path).map_err(|e| StoreError::Unavailable(format!("{}: {e}", named.display())))?;
        let log_error = |e: &dyn std::fmt::Display| StoreError::Unavailable(format!("{}: {e}", folder.display()));
        let found = Archive::list(&folder).map_err(|e| log_error(&e))?;
        let ends = found.iter().map(|archive| archive.end_of_archived()).collect::<rusqlite::Result<Vec<_>>>();
        let archived = ends.map_err(|e| log_error(&e))?.into_iter().max().unwrap_or_default();
        let journals = Journals::open(&folder, archived, settings.segment_bytes).map_err(|e| log_error(&e))?;
        let (archives, journals): (Archives, _) = (Arc::new(RwLock::new(found)), Arc::new(journals));
        let log = Arc::new(Log::new(settings.clone(), Arc::clone(&journals), Arc::clone(&archives)));
        let archivist =
            Archivist::start(folder.clone(), &settings, &journals, archived, Arc::clone(&archives), Arc::clone(&log));
        Ok(Self {
            main: Arc::new(Mutex::new(main)),
            archivist: Mutex::new(Some(archivist.map_err(|e| log_error(&e))?)),
            folder,
            archives,
            journals,
            log,
            _lock: lock,
        })
    }

    fn all_archives(&self) -> Vec<Arc<Archive>> {
        self.archives.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Works with the main file on a thread that may wait.
    fn with_main<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'_, T> {
        let main = Arc::clone(&self.main);
        blocking(move || work(&mut main.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Refuses a path that cannot be that of a database.
fn check_path(path: &Path) -> Result<(), StoreError> {
    let refuse = |reason: String| Err(StoreError::Unavailable(format!("{}: {reason}", path.display())));
    if path.is_dir() {
        let inside = path.join("pointsman.db");
        return refuse(format!("this is a folder: give the path of a file, such as {}", inside.display()));
    }
    match path.ancestors().skip(1).find(|parent| parent.exists()) {
        Some(parent) if !parent.is_dir() => refuse(format!("{} is a file and no folder", parent.display())),
        _ => Ok(()),
    }
}

/// The one path of a database, whatever links lead to it: the lock and the log are beside the file itself.
fn resolve(path: &Path) -> std::io::Result<PathBuf> {
    /// As many links as Linux follows.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(folder.canonicalize()?.join(name))
}

/// The path with something behind its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The folder of the log of a store.
fn log_folder(path: &Path) -> PathBuf {
    beside(path, "-log")
}

/// Runs work that waits for the disk on a thread where it stops nobody else.
fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, StoreError> + Send + 'static) -> Reply<'static, T> {
    Box::pin(async move {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => Err(StoreError::Unavailable(format!("the work was stopped: {error}"))),
        }
    })
}

fn open_main(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    // SQLite opens a file that it may not write for reading only, and makes files beside it that nobody may write.
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(archive::unusable("it cannot be written"));
    }
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match version {
        0 => transaction.execute_batch(&format!("{SCHEMA} PRAGMA user_version = {VERSION};"))?,
        VERSION => {}
        newer => {
            let reason = format!("its format is {newer}, this program reads format {VERSION}: use a newer pointsman");
            return Err(archive::unusable(&reason));
        }
    }
    transaction.commit()?;
    Ok(connection)
}

fn read_registry(connection: &Connection) -> Result<Registry, StoreError> {
    let text: Option<String> = connection
        .query_row("SELECT document FROM registry", [], |row| row.get(0))
        .optional()
        .map_err(|e| unavailable(&e))?;
    match text {
        None => Ok(Registry::default()),
        Some(text) => serde_json::from_str(&text).map_err(|e| StoreError::Damaged(format!("the registry: {e}"))),
    }
}

fn change_registry(connection: &mut Connection, change: Change, by: &str) -> Result<Changed, StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|e| unavailable(&e))?;
    let mut registry = read_registry(&transaction)?;
    let now = Time::now();
    let changed = registry.apply(change.clone(), now)?;
    if !changed.is_changed {
        return Ok(changed);
    }
    let what = change.describe(&changed);
    let document = serde_json::to_string(&registry).map_err(|e| StoreError::Damaged(e.to_string()))?;
    let write = || {
        transaction.execute("DELETE FROM registry", [])?;
        transaction.execute("INSERT INTO registry VALUES (?1)", params![document])?;
        let sql = "INSERT INTO admin_log (at, by, what) VALUES (?1, ?2, ?3)";
        transaction.execute(sql, params![now.0, by, what])
    };
    write().map_err(|e| unavailable(&e))?;
    transaction.commit().map_err(|e| unavailable(&e))?;
    Ok(changed)
}

/// Opens the main file of a store that is there.
fn open_existing(path: &Path) -> Result<Connection, StoreError> {
    check_path(path)?;
    if !path.is_file() {
        return Err(StoreError::Missing(path.display().to_string()));
    }
    open_main(path).map_err(|e| StoreError::Unavailable(format!("{}: {e}", path.display())))
}

/// Makes an empty store, unless there is one.
///
/// # Errors
/// If the file cannot be written.
pub fn make_at(path: impl AsRef<Path>) -> Result<(), StoreError> {
    let path = path.as_ref();
    check_path(path)?;
    let failed = |e: &dyn std::fmt::Display| StoreError::Unavailable(format!("{}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| failed(&e))?;
    }
    open_main(path).map(drop).map_err(|e| failed(&e))
}

/// Reads the registry of a store, also while a service uses it.
///
/// # Errors
/// If there is no store or it cannot be read.
pub fn registry_at(path: impl AsRef<Path>) -> Result<Registry, StoreError> {
    read_registry(&open_existing(path.as_ref())?)
}

/// Changes the registry of a store, also while a service uses it, which then follows within a second.
///
/// # Errors
/// If there is no store, it cannot be written or the change is refused.
pub fn change_at(path: impl AsRef<Path>, change: Change, by: &str) -> Result<Changed, StoreError> {
    change_registry(&mut open_existing(path.as_ref())?, change, by)
}

/// A page of decisions in the order of their ids. It begins with those that are in no archive yet.
fn read_decisions(mut page: Vec<Record>, archives: &[Arc<Archive>], query: &LogQuery) -> rusqlite::Result<Vec<Record>> {
    let (first, end) = query.ids();
    for archive in archives.iter().filter(|archive| archive.overlaps(first, end)) {
        // Ids are made before the commit, so that those of two files may interleave.
        let last = page.last().filter(|_| query.is_full(&page)).map(|record| record.id);
        if last.is_some_and(|last| !archive.overlaps(first, Some(last))) {
            continue;
        }
        page.extend(archive.rows(query)?);
        page.sort_by_key(|record| record.id);
        // Some may have been archived since the journals were read.
        page.dedup_by_key(|record| record.id);
        page.truncate(query.full_length(&page).unwrap_or(page.len()));
    }
    Ok(page)
}

/// What is not closed goes on with its archiving thread, which must end before another store is opened on the same files.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.journals.close();
        if let Some(thread) = self.archivist.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

impl Store for SqliteStore {
    fn append_alike(&self, records: Arc<Vec<Record>>, alike: Arc<[u32]>) -> Reply<'_, Vec<Appended>> {
        Box::pin(self.log.append(records, alike))
    }

    fn decision(&self, id: Uuid) -> Reply<'_, Option<Record>> {
        let (journals, archives) = (Arc::clone(&self.journals), Arc::clone(&self.archives));
        blocking(move || {
            if let Some(found) = journals.decision(id).map_err(|e| unwritable(&e))? {
                return Ok(Some(found));
            }
            let end = Some(Uuid::from_u128(id.as_u128().saturating_add(1)));
            let archives = archives.read().unwrap_or_else(PoisonError::into_inner).clone();
            for archive in archives.iter().filter(|archive| archive.overlaps(id, end)) {
                let found = archive.read(|connection| archive::find(connection, id)).map_err(|e| unavailable(&e))?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        })
    }

    fn decisions(&self, query: LogQuery) -> Reply<'_, Vec<Record>> {
        let (journals, archives) = (Arc::clone(&self.journals), Arc::clone(&self.archives));
        blocking(move || {
            let page = journals.page(&query).map_err(|e| unwritable(&e))?;
            let archives = archives.read().unwrap_or_else(PoisonError::into_inner).clone();
            read_decisions(page, &archives, &query).map_err(|e| unavailable(&e))
        })
    }

    fn largest_id(&self) -> Reply<'_, Option<Uuid>> {
        let (journals, archives) = (Arc::clone(&self.journals), self.all_archives());
        blocking(move || {
            let waiting = journals.largest_id().map_err(|e| unwritable(&e))?;
            let range = |archive: &Arc<Archive>| *archive.range.lock().unwrap_or_else(PoisonError::into_inner);
            let archived = archives.iter().filter_map(range).map(|(_, most)| most).max();
            Ok(archived.max(waiting))
        })
    }

    fn waiting_rows(&self) -> usize {
        self.log.queue.rows()
    }

    fn registry(&self) -> Reply<'_, Registry> {
        self.with_main(|connection| read_registry(connection))
    }

    fn generation(&self) -> Reply<'_, u64> {
        self.with_main(|connection| {
            let sql = "SELECT document ->> '$.generation' FROM registry";
            let found: Option<i64> =
                connection.query_row(sql, [], |row| row.get(0)).optional().map_err(|e| unavailable(&e))?;
            Ok(found.map_or(0, i64::cast_unsigned))
        })
    }

    fn change(&self, change: Change, by: String) -> Reply<'_, Changed> {
        self.with_main(move |connection| change_registry(connection, change, &by))
    }

    fn add_file(&self, bytes: Vec<u8>) -> Reply<'_, Sha256> {
        self.with_main(move |connection| {
            let hash = Sha256::of(&bytes);
            let sql = "INSERT OR IGNORE INTO files VALUES (?1, ?2)";
            connection.execute(sql, params![hash.0, bytes]).map_err(|e| unavailable(&e))?;
            Ok(hash)
        })
    }

    fn file(&self, hash: Sha256) -> Reply<'_, Option<Vec<u8>>> {
        self.with_main(move |connection| {
            let sql = "SELECT bytes FROM files WHERE sha256 = ?1";
            connection.query_row(sql, params![hash.0], |row| row.get(0)).optional().map_err(|e| unavailable(&e))
        })
    }

    fn admin_log(&self, after: u64, limit: usize) -> Reply<'_, Vec<AdminEntry>> {
        self.with_main(move |connection| {
            let read = || {
                let sql = "SELECT number, at, by, what FROM admin_log WHERE number > ?1 ORDER BY number LIMIT ?2";
                let mut statement = connection.prepare_cached(sql)?;
                let (after, limit) =
                    (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
                let entries = statement.query_map(params![after, limit], |row| {
                    let number = row.get::<_, i64>(0)?.cast_unsigned();
                    Ok(AdminEntry { number, at: row.get(1)?, by: row.get(2)?, what: row.get(3)? })
                })?;
                entries.collect::<rusqlite::Result<Vec<_>>>()
            };
            read().map_err(|e| unavailable(&e))
        })
    }

    fn prune(&self, decisions_before: Option<Time>, inputs_before: Option<Time>) -> Reply<'_, ()> {
        let archives = Arc::clone(&self.archives);
        blocking(move || {
            let all = archives.read().unwrap_or_else(PoisonError::into_inner).clone();
            // An archive that cannot be read stays; the others need not wait for it.
            let ends: Vec<_> = all.iter().map(|archive| archive.end_of_archived()).collect();
            let mut outcome = Ok(());
            for (place, archive) in all.iter().enumerate().filter(|(_, archive)| archive.is_closed()) {
                // If no later archive notes it, a start would archive again what is left of the journals.
                let own = ends[place].as_ref().ok();
                let is_noted_later = own.is_some_and(|own| ends[place + 1..].iter().flatten().any(|end| end >= own));
                let done = if is_noted_later && decisions_before.is_some_and(|time| archive.is_before(time)) {
                    let mut left = archives.write().unwrap_or_else(PoisonError::into_inner);
                    left.retain(|other| !Arc::ptr_eq(other, archive));
                    drop(left);
                    archive.delete().map_err(|e| unwritable(&e))
                } else if inputs_before.is_some_and(|time| archive.is_before(time)) {
                    archive.delete_inputs().map_err(|e| unavailable(&e))
                } else {
                    Ok(())
                };
                outcome = outcome.and(done);
            }
            let unreadable = ends.into_iter().find_map(Result::err).map_or(Ok(()), |e| Err(unavailable(&e)));
            outcome.and(unreadable)
        })
    }

    fn check(&self) -> Reply<'_, ()> {
        let folder = self.folder.clone();
        let waiting = self.append(Arc::default());
        Box::pin(async move {
            // A commit of no rows writes nothing, so that a full disk shows only when something is written. The file has no name, so
            // that checks do not meet and nothing is left behind.
            waiting.await?;
            blocking(move || {
                let write = tempfile::tempfile_in(&folder).and_then(|mut file| file.write_all(&[0; 4096]));
                write.map_err(|e| StoreError::Unavailable(format!("{}: {e}", folder.display())))
            })
            .await
        })
    }

    fn close(&self) -> Reply<'_, ()> {
        self.log.queue.close();
        let archivist = self.archivist.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (main, log, journals) = (Arc::clone(&self.main), Arc::clone(&self.log), Arc::clone(&self.journals));
        blocking(move || {
            log.close();
            journals.close();
            if let Some(thread) = archivist {
                thread.join().map_err(|_| StoreError::Unavailable("the archiving thread panicked".to_owned()))?;
            }
            let connection = main.lock().unwrap_or_else(PoisonError::into_inner);
            connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").map_err(|e| unavailable(&e))
        })
    }
}
