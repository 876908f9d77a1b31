//! Copies of a store, taken while a service uses it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::super::StoreError;
use super::segments::Segment;
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
    let failed = |path: &Path, e: &dyn std::fmt::Display| StoreError::Unavailable(format!("{}: {e}", path.display()));
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
    let mut backup = Backup::default();
    for segment in Segment::files(&log).map_err(|e| failed(&log, &e))? {
        let copy = log_copy.join(segment.file_name().unwrap_or_default());
        match copy_file(&segment, &copy) {
            Ok(connection) => {
                backup.segments += 1;
                let count = connection.query_row("SELECT count(*) FROM decisions", [], |row| row.get::<_, i64>(0));
                backup.decisions += count.map_err(|e| failed(&copy, &e))?.cast_unsigned();
            }
            // Its decisions have expired in the meantime.
            Err(_) if !segment.exists() => remove(&copy).map_err(|e| failed(&copy, &e))?,
            Err(error) => return Err(failed(&segment, &error)),
        }
    }
    copy_file(path, &target).map_err(|e| failed(path, &e))?;
    let sync = || -> io::Result<()> {
        for file in Segment::files(&log_copy)?.iter().chain([&target]) {
            File::open(file)?.sync_all()?;
        }
        File::open(&log_copy)?.sync_all()?;
        fs::rename(temporary.path(), folder)?;
        File::open(parent)?.sync_all()
    };
    sync().map_err(|e| failed(folder, &e))?;
    Ok(backup)
}

/// Copies a database as it is at one moment, with what is only in its write-ahead log yet, and opens the copy.
fn copy_file(from: &Path, to: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute("VACUUM INTO ?1", params![to.to_string_lossy()])?;
    Connection::open(to)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
