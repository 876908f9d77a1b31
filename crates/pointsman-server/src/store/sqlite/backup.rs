//! Copies of a store, taken while a service uses it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::super::StoreError;
use super::archive::{Archive, end_of_archived, remove};
use super::journal::{Journal, Place};
use super::{BUSY_TIMEOUT, log_folder, resolve};

/// What a backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Backup {
    /// The number of files of the log.
    pub files: usize,
    /// The number of decisions in them.
    pub decisions: u64,
}

/// Copies a store into a new folder, also while a service uses it. Every decision that was committed before is in the copy, which is a
/// store of its own: the main file under the same name, and the log beside it.
///
/// Each file is copied as it is at one moment. Files of the log come first, so that the registry has every version that they name.
///
/// # Errors
/// If there is no store, the folder exists, or a file cannot be read or written. Nothing is left behind then.
pub fn backup(path: impl AsRef<Path>, folder: impl AsRef<Path>) -> Result<Backup, StoreError> {
    let (path, folder) = (path.as_ref(), folder.as_ref());
    if !path.is_file() {
        return Err(StoreError::Missing(path.display().to_string()));
    }
    let (given, path) = (path, &resolve(path).map_err(|e| failed(path, &e))?);
    if folder.exists() {
        return Err(failed(folder, &"exists already: a backup needs a new folder"));
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary =
        tempfile::Builder::new().prefix(".pointsman-").tempdir_in(parent).map_err(|e| failed(parent, &e))?;
    let target = temporary.path().join(given.file_name().unwrap_or_default());
    let (log, log_copy) = (log_folder(path), log_folder(&target));
    fs::create_dir(&log_copy).map_err(|e| failed(&log_copy, &e))?;
    let copied = copy_log(&log, &log_copy)?;
    copy_database(path, &target).map_err(|e| failed(path, &e))?;
    let sync = || -> io::Result<()> {
        for file in Archive::files(&log_copy)?.iter().chain([&target]) {
            File::open(file)?.sync_all()?;
        }
        File::open(&log_copy)?.sync_all()?;
        fs::rename(temporary.path(), folder)?;
        File::open(parent)?.sync_all()
    };
    sync().map_err(|e| failed(folder, &e))?;
    Ok(copied)
}

/// Copies the files of the log. Meanwhile a service may move decisions from journals into archives, so that journals come first. The copy of
/// the newest archive says which entries of the journals it has.
fn copy_log(log: &Path, target: &Path) -> Result<Backup, StoreError> {
    let (mut copied, mut archived) = (Backup::default(), Place::default());
    let mut journals = Vec::new();
    for journal in Journal::list(log).map_err(|e| failed(log, &e))? {
        let entries = journal.copy(target).map_err(|e| failed(log, &e))?;
        journals.extend(entries.map(|entries| (journal.number, entries)));
    }
    for file in Archive::files(log).map_err(|e| failed(log, &e))? {
        let path = target.join(file.file_name().unwrap_or_default());
        match copy_archive(&file, &path) {
            Ok((rows, end)) => {
                copied.files += 1;
                copied.decisions += rows;
                archived = archived.max(end);
            }
            // Its decisions have expired in the meantime.
            Err(_) if !file.exists() => remove(&path).map_err(|e| failed(&path, &e))?,
            Err(error) => return Err(failed(&file, &error)),
        }
    }
    for (number, entries) in journals {
        let is_waiting = |end: u64| Place { journal: number, bytes: end } > archived;
        let waiting = entries.iter().filter(|(end, _)| is_waiting(*end)).map(|(_, records)| *records as u64);
        copied.files += 1;
        copied.decisions += waiting.sum::<u64>();
    }
    Ok(copied)
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}

/// Copies an archive. Gives the number of its rows and the end of what was archived by then.
fn copy_archive(from: &Path, to: &Path) -> rusqlite::Result<(u64, Place)> {
    let copy = copy_database(from, to)?;
    // It has no tables yet if it is being made.
    if copy.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok((0, Place::default()));
    }
    let rows: i64 = copy.query_row("SELECT count(*) FROM decisions", [], |row| row.get(0))?;
    Ok((rows.cast_unsigned(), end_of_archived(&copy)?))
}

/// Copies a database as it is at one moment, with what is only in its write-ahead log yet, and opens the copy.
fn copy_database(from: &Path, to: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute("VACUUM INTO ?1", params![to.to_string_lossy()])?;
    Connection::open(to)
}
