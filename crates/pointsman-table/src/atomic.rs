//! Files that are written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// The beginning and the end of the names of temporary files.
const PREFIX: &str = ".pointsman-";
const SUFFIX: &str = ".part";

/// Temporary files younger than this are left alone.
const MIN_AGE: Duration = Duration::from_secs(10);

/// Writes a file whole or not at all: to a temporary file beside it, which is synchronised to disk and then
/// renamed. If `write` fails, nothing is left behind and a file that was there before stays as it was.
///
/// A file that is replaced keeps its permissions. `-` is standard output; pipes and devices are written as they are.
///
/// # Errors
/// If the file cannot be written, or `write` fails.
pub fn write_atomically(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    let name = output_name(path);
    let mut out = BufWriter::new(Output::create(path)?);
    write(&mut out).map_err(|e| Error::io(&name, e))?;
    let out = out.into_inner().map_err(|e| Error::io(&name, e.into_error()))?;
    out.commit().map_err(|e| Error::io(&name, e))
}

/// The name of an output in messages.
pub(crate) fn output_name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard output".to_owned() } else { path.display().to_string() }
}

/// The destination of an output. A file that is dropped before [`Output::commit`] is removed.
pub(crate) enum Output {
    File {
        temporary: NamedTempFile,
        target: PathBuf,
    },
    /// A pipe or a device, which renaming would replace by a file.
    Direct(File),
    Stdout(io::Stdout),
    /// A stream of the caller's.
    Stream(Box<dyn Write + Send>),
}

impl Output {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout(io::stdout()));
        }
        Self::open(path).map_err(|e| Error::io(&output_name(path), e))
    }

    fn open(path: &Path) -> io::Result<Self> {
        // Through a symbolic link: its target is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let replaced = match fs::metadata(&target) {
            Ok(meta) if meta.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(meta) if !meta.is_file() => return Ok(Self::Direct(OpenOptions::new().write(true).open(&target)?)),
            other => other.ok(),
        };
        remove_abandoned(folder(&target));
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX);
        // A new file has the usual permissions, not those of temporary files, which only their owner can read.
        #[cfg(unix)]
        if replaced.is_none() {
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder(&target))?;
        // Held until the file is renamed or its process ends. File systems without locks are not cleaned up.
        let _ = temporary.as_file().try_lock();
        // On other systems the only permission is read-only, which the temporary file must not have.
        if cfg!(unix)
            && let Some(replaced) = replaced
        {
            temporary.as_file().set_permissions(replaced.permissions())?;
        }
        Ok(Self::File { temporary, target })
    }

    /// Completes the file and gives it its name.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.flush()?;
        if let Self::File { temporary, target } = self {
            temporary.as_file().sync_all()?;
            temporary.persist(&target).map_err(|e| e.error)?;
            // The rename must reach the disk too, on systems where folders can be opened.
            if let Ok(folder) = File::open(folder(&target)) {
                let _ = folder.sync_all();
            }
        }
        Ok(())
    }
}

/// Removes the temporary files of processes that were killed while writing: they are no longer locked.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_ours && is_abandoned(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether no process writes a temporary file any more.
fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // A file is locked shortly after it is created.
    let age = file.metadata().and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > MIN_AGE) && file.try_lock().is_ok()
}

fn folder(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { temporary, .. } => temporary.write(bytes),
            Self::Direct(file) => file.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { temporary, .. } => temporary.flush(),
            Self::Direct(file) => file.flush(),
            Self::Stdout(stdout) => stdout.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn temporary_files_of_killed_writers_are_removed_and_those_of_running_writers_kept() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let make = |name: &str| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
            file
        };
        let running = make(".pointsman-running.part");
        running.lock().unwrap();
        make(".pointsman-killed.part");
        make(".other.part");
        write_atomically(folder.path().join("out.csv"), |out| out.write_all(b"a\n")).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".other.part", ".pointsman-running.part", "out.csv"]);
    }
}
