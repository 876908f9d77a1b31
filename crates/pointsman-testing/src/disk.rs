//! A small disk of a test's own, in memory, which the test fills and empties.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The right to mount, by its number among the capabilities of Linux.
const CAP_SYS_ADMIN: u32 = 21;

/// The file that takes the space of a full disk.
const FILLER: &str = "filler";

/// A disk that is mounted on a temporary folder until this value is dropped.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
}

/// Mounts a disk of this size; `None`, after saying so, if this process may not mount anything.
///
/// # Panics
/// If it may, and mounting fails all the same, and the variable `CI` is `true`.
#[must_use]
pub fn mount(megabytes: u32) -> Option<Disk> {
    if !may_mount() {
        crate::announce("no right to mount a small disk, which root has on Linux: a full disk is not tested");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let size = format!("size={megabytes}m,mode=755");
    let output = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "pointsman-test"]).arg(folder.path()).output();
    match output {
        Ok(output) if output.status.success() => Some(Disk { folder }),
        other => {
            crate::skip(&format!("a small disk cannot be mounted, and a full one is not tested: {other:?}"));
            None
        }
    }
}

/// Whether this process has the capability to mount.
fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    capabilities.is_some_and(|all| all & (1 << CAP_SYS_ADMIN) != 0)
}

impl Disk {
    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file until there is no space left.
    ///
    /// # Panics
    /// If writing fails for another reason.
    pub fn fill(&self) {
        let mut filler = std::fs::File::create(self.path().join(FILLER)).unwrap();
        let block = [0; 4096];
        let error = loop {
            if let Err(error) = filler.write_all(&block) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    }

    /// Deletes the file that filled it.
    ///
    /// # Panics
    /// If it was not full.
    pub fn empty(&self) {
        std::fs::remove_file(self.path().join(FILLER)).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Also while a process that is about to end has files open.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}
