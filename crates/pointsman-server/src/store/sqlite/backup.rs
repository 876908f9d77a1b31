//! Copies of a store, taken while a service uses it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};

use super::super::StoreError;
use super::segments::{Segment, find, first_id, is_archive, remove};
use super::{BUSY_TIMEOUT, log_folder, resolve};

/// What a backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Backup {
    /// The number of files of the log.
    pub segments: usize,
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
    let copies = copy_log(&log, &log_copy)?;
    copy_database(path, &target).map_err(|e| failed(path, &e))?;
    let sync = || -> io::Result<()> {
        for file in Segment::files(&log_copy)?.iter().chain([&target]) {
            File::open(file)?.sync_all()?;
        }
        File::open(&log_copy)?.sync_all()?;
        fs::rename(temporary.path(), folder)?;
        File::open(parent)?.sync_all()
    };
    sync().map_err(|e| failed(folder, &e))?;
    Ok(Backup { segments: copies.len(), decisions: copies.iter().map(|copy| copy.rows).sum() })
}

/// The copy of a file of the log.
struct Copy {
    path: PathBuf,
    is_archive: bool,
    connection: Connection,
    rows: u64,
}

/// Copies the files of the log. While they are copied, a service may move the rows of a segment into an archive and delete the segment.
fn copy_log(log: &Path, target: &Path) -> Result<Vec<Copy>, StoreError> {
    let mut copies: Vec<Copy> = Vec::new();
    // Rows move from later files into earlier ones, so that they are met on the way from the last to the first, or in an archive that
    // was not there yet when the files were listed.
    for _ in 0..2 {
        for file in Segment::files(log).map_err(|e| failed(log, &e))?.into_iter().rev() {
            let path = target.join(file.file_name().unwrap_or_default());
            if copies.iter().any(|copy| copy.path == path) {
                continue;
            }
            match copy_file(&file, &path) {
                Ok(Some((connection, rows))) => {
                    copies.push(Copy { is_archive: is_archive(&path), path, connection, rows });
                }
                Ok(None) => remove(&path).map_err(|e| failed(&path, &e))?,
                // Its decisions have been archived or have expired in the meantime.
                Err(_) if !file.exists() => remove(&path).map_err(|e| failed(&path, &e))?,
                Err(error) => return Err(failed(&file, &error)),
            }
        }
    }
    // A segment that was archived after it was copied is there twice. All its rows were moved at once.
    let (archives, segments): (Vec<Copy>, Vec<Copy>) = copies.into_iter().partition(|copy| copy.is_archive);
    let mut kept = Vec::new();
    for segment in segments {
        match is_archived(&segment, &archives).map_err(|e| failed(&segment.path, &e))? {
            true => remove(&segment.path).map_err(|e| failed(&segment.path, &e))?,
            false => kept.push(segment),
        }
    }
    kept.extend(archives);
    Ok(kept)
}

fn is_archived(segment: &Copy, archives: &[Copy]) -> rusqlite::Result<bool> {
    let Some(first) = first_id(&segment.connection)? else { return Ok(false) };
    for archive in archives {
        if find(&archive.connection, first)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}

/// Copies a file of the log, opens the copy and counts its rows; `None` if it has no tables, because it is being made or deleted.
fn copy_file(from: &Path, to: &Path) -> rusqlite::Result<Option<(Connection, u64)>> {
    let copy = copy_database(from, to)?;
    if copy.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let rows: i64 = copy.query_row("SELECT count(*) FROM decisions", [], |row| row.get(0))?;
    Ok(Some((copy, rows.cast_unsigned())))
}

/// Copies a database as it is at one moment, with what is only in its write-ahead log yet, and opens the copy.
fn copy_database(from: &Path, to: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute("VACUUM INTO ?1", params![to.to_string_lossy()])?;
    Connection::open(to)
}
