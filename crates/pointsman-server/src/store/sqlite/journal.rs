//! One journal: decisions in the order of their commits, in a file that only grows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::super::Record;

/// What a journal begins with: its kind and its format.
const HEADER: &[u8; 8] = b"PtsmJrn1";

/// The place of the first entry.
pub(super) const START: u64 = HEADER.len() as u64;

/// What comes before the records of an entry: the number of their bytes, and their checksum.
const PREFIX: usize = 2 * size_of::<u32>();

/// How much is read at once, unless one entry is larger.
const CHUNK_BYTES: u64 = 1 << 20;

const EXTENSION: &str = "journal";

/// The extension of a journal that is kept because a part of it cannot be read.
const DAMAGED_EXTENSION: &str = "damaged";

/// A file of entries. Each has the records of one request, and is there as a whole or not at all.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) number: u64,
    path: PathBuf,
    file: File,
}

/// A place in all the journals of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The number of the journal.
    pub(super) journal: u64,
    /// The bytes before it.
    pub(super) bytes: u64,
}

/// The records of one request.
#[derive(Debug)]
pub(super) struct Entry {
    /// Where it begins.
    pub(super) at: u64,
    /// Where the next one begins.
    pub(super) end: u64,
    pub(super) records: Vec<Record>,
}

impl Journal {
    /// Makes a journal without entries. The disk has its name afterwards.
    pub(super) fn create(folder: &Path, number: u64) -> io::Result<Self> {
        let path = folder.join(format!("{number:08}.{EXTENSION}"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let journal = Self { number, path, file };
        let write = || {
            journal.file.write_all_at(HEADER, 0)?;
            journal.file.sync_all()?;
            File::open(folder)?.sync_all()
        };
        match write() {
            Ok(()) => Ok(journal),
            Err(error) => {
                let _ = journal.delete();
                Err(error)
            }
        }
    }

    /// The journals of a folder, oldest first.
    pub(super) fn list(folder: &Path) -> io::Result<Vec<Self>> {
        let mut journals = Vec::new();
        for (number, path) in numbered(folder, EXTENSION)? {
            match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(file) => journals.push(Self { number, path, file }),
                // All its decisions are in an archive since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            }
        }
        journals.sort_by_key(|journal| journal.number);
        Ok(journals)
    }

    /// The largest number of the damaged journals that a folder keeps.
    pub(super) fn last_damaged(folder: &Path) -> io::Result<Option<u64>> {
        Ok(numbered(folder, DAMAGED_EXTENSION)?.into_iter().map(|(number, _)| number).max())
    }

    /// The name of the file.
    pub(super) fn name(&self) -> &Path {
        self.path.file_name().map_or(&self.path, Path::new)
    }

    /// Writes entries at the end, whose place the caller knows.
    pub(super) fn write(&self, entries: &[u8], end: u64) -> io::Result<()> {
        self.file.write_all_at(entries, end)
    }

    /// Sees whether this many bytes can be written, and leaves nothing behind. Zeros are no entry if they stay.
    pub(super) fn probe(&self, bytes: usize, end: u64) -> io::Result<()> {
        self.file.write_all_at(&vec![0; bytes.max(PREFIX)], end)?;
        self.cut(end)
    }

    /// Waits until the disk has what was written.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Cuts off what a failed write has left behind the end.
    pub(super) fn cut(&self, end: u64) -> io::Result<()> {
        self.file.set_len(end)
    }

    /// Entries from one place to another: the first one, and as many as follow within about a megabyte.
    pub(super) fn entries(&self, from: u64, to: u64) -> io::Result<Vec<Entry>> {
        let mut wanted = CHUNK_BYTES;
        loop {
            let bytes = self.bytes(from, to.min(from.saturating_add(wanted)))?;
            let entries = self.parse(&bytes, from)?;
            let first = entry_bytes(&bytes).unwrap_or(0) as u64;
            if entries.is_empty() && wanted < first && from + first <= to {
                wanted = first;
            } else {
                return Ok(entries);
            }
        }
    }

    /// The entry at a place.
    pub(super) fn entry_at(&self, at: u64) -> io::Result<Option<Entry>> {
        let mut prefix = [0; PREFIX];
        self.file.read_exact_at(&mut prefix, at)?;
        let length = entry_bytes(&prefix).unwrap_or(PREFIX) as u64;
        self.entries(at, at + length).map(|entries| entries.into_iter().next())
    }

    /// The whole entries from a place on of a file that nobody writes. What a write that did not finish has left behind them was never
    /// answered. Where something else is before another whole entry, entries were damaged: that place is returned.
    pub(super) fn whole_entries(&self, from: u64, mut see: impl FnMut(Entry)) -> io::Result<Option<u64>> {
        let length = self.file.metadata()?.len();
        let mut header = [0; HEADER.len()];
        if length < START {
            return Ok(None);
        }
        self.file.read_exact_at(&mut header, 0)?;
        if header != *HEADER {
            let path = self.path.display();
            return Err(io::Error::other(format!("{path} is no journal of this program's format")));
        }
        let mut from = from;
        loop {
            let entries = self.entries(from, length)?;
            let Some(last) = entries.last() else { break };
            from = last.end;
            entries.into_iter().for_each(&mut see);
        }
        let rest = self.bytes(from, length)?;
        let is_damaged = (1..rest.len()).any(|at| begins_with_entry(&rest[at..]));
        Ok(is_damaged.then_some(from))
    }

    /// The bytes from one place to another.
    fn bytes(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }

    /// The whole entries that these bytes begin with. The first byte is at this place of the file.
    fn parse(&self, bytes: &[u8], from: u64) -> io::Result<Vec<Entry>> {
        let (mut entries, mut rest) = (Vec::new(), bytes);
        let place = |rest: &[u8]| from + (bytes.len() - rest.len()) as u64;
        while let Some((encoded, behind)) = split_entry(rest) {
            let at = place(rest);
            let records = postcard::from_bytes(encoded).map_err(|error| {
                let path = self.path.display();
                io::Error::other(format!("{path}: the entry at byte {at} is whole, but cannot be decoded: {error}"))
            })?;
            entries.push(Entry { at, end: place(behind), records });
            rest = behind;
        }
        Ok(entries)
    }

    /// Copies the whole entries into another folder, also while the journal is written; if some are damaged, all of the file. Returns where
    /// each whole entry ends, and how many records it has; `None` if there is nothing to copy.
    pub(super) fn copy(&self, folder: &Path) -> io::Result<Option<Vec<(u64, usize)>>> {
        let mut ends = Vec::new();
        let damage = self.whole_entries(START, |entry| ends.push((entry.end, entry.records.len())))?;
        let length = match (damage, ends.last()) {
            (Some(_), _) => self.file.metadata()?.len(),
            (None, Some(&(end, _))) => end,
            (None, None) => return Ok(None),
        };
        let path = folder.join(self.name());
        fs::write(&path, self.bytes(0, length)?)?;
        File::open(path)?.sync_all()?;
        Ok(Some(ends))
    }

    /// Gives the file a second name, which is returned and stays when the first one is deleted. The disk has it afterwards.
    pub(super) fn keep_as_damaged(&self) -> io::Result<PathBuf> {
        let kept = self.path.with_extension(DAMAGED_EXTENSION);
        match fs::hard_link(&self.path, &kept) {
            // An earlier start has done so.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Some file systems have one name per file.
            Err(_) => {
                fs::copy(&self.path, &kept)?;
                File::open(&kept)?.sync_all()?;
            }
            Ok(()) => {}
        }
        File::open(kept.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(kept)
    }

    /// Deletes the file; whoever has it open can still read it.
    pub(super) fn delete(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The files of a folder that have a number and this extension.
fn numbered(folder: &Path, extension: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let number = |path: &Path| path.file_stem()?.to_str()?.parse().ok();
    let paths = paths.into_iter().filter(|path| path.extension().is_some_and(|other| other == extension));
    Ok(paths.filter_map(|path| Some((number(&path)?, path))).collect())
}

/// Adds the records of one request to a buffer, as an entry.
pub(super) fn encode(records: &[&Record], mut buffer: Vec<u8>) -> io::Result<Vec<u8>> {
    let start = buffer.len();
    buffer.resize(start + PREFIX, 0);
    let mut buffer = postcard::to_extend(records, buffer).map_err(io::Error::other)?;
    let (prefix, bytes) = buffer[start..].split_at_mut(PREFIX);
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    prefix[..4].copy_from_slice(&length.to_le_bytes());
    prefix[4..].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    Ok(buffer)
}

/// The bytes of the entry that these begin with; `None` if there is none.
fn entry_bytes(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    (length > 0).then_some(PREFIX + length)
}

/// The encoded records of the entry that these bytes begin with, and what comes behind it; `None` if it is not whole.
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (entry, rest) = bytes.split_at_checked(entry_bytes(bytes)?)?;
    let (prefix, encoded) = entry.split_at_checked(PREFIX)?;
    let is_whole = prefix[4..] == crc32fast::hash(encoded).to_le_bytes();
    is_whole.then_some((encoded, rest))
}

/// Whether there is a whole entry at the beginning of bytes of any kind. What has no id where the first record of an entry has its id is
/// none: for most places this saves a checksum over whatever length the bytes there happen to give.
fn begins_with_entry(bytes: &[u8]) -> bool {
    let first_id = |encoded| postcard::take_from_bytes::<(usize, Uuid)>(encoded).map(|((_, id), _)| id);
    let has_id = bytes.get(PREFIX..).is_some_and(|encoded| first_id(encoded).is_ok_and(|id| id.get_version_num() == 7));
    has_id && split_entry(bytes).is_some()
}

#[cfg(test)]
mod tests {
    use pointsman::Support;
    use pointsman::policy::Reason;

    use super::super::super::{DeploymentId, Outcome};
    use super::*;
    use crate::clock::Ids;

    fn record(ids: &Ids, classes: usize) -> Record {
        let (id, at) = ids.next();
        let prediction = vec![1.0 / classes as f64; classes];
        let outcome = Outcome {
            action: 0,
            would: None,
            degraded: None,
            label: 1,
            act: None,
            cell: 3,
            support: Support::Enough,
            irreducible: Some(0.1),
            reducible: None,
            costs: vec![0.5, f64::NAN],
            margin: f64::INFINITY,
            reason: Reason::Easy,
        };
        let deployment = DeploymentId(1);
        let (client_id, tags, input, features) = (Some("q".to_owned()), None, None, vec![f64::NAN]);
        Record { id, at, deployment, version: 1, key: 0, client_id, tags, input, prediction, features, outcome }
    }

    /// A journal in a folder, where its entries end, and the ids in each.
    fn journal(folder: &Path) -> (Journal, Vec<(u64, Vec<Uuid>)>) {
        let (ids, journal) = (Ids::after(None), Journal::create(folder, 7).unwrap());
        let (mut end, mut entries) = (START, Vec::new());
        for rows in [1, 3, 2] {
            let records: Vec<Record> = (0..rows).map(|row| record(&ids, 2 + row)).collect();
            let bytes = encode(&records.iter().collect::<Vec<_>>(), Vec::new()).unwrap();
            journal.write(&bytes, end).unwrap();
            end += bytes.len() as u64;
            entries.push((end, records.iter().map(|record| record.id).collect()));
        }
        (journal, entries)
    }

    /// The entries that are found: where each ends, and its ids. Fails unless damage begins at this place.
    #[track_caller]
    fn found(journal: &Journal, damage: Option<u64>) -> Vec<(u64, Vec<Uuid>)> {
        let mut found = Vec::new();
        let see = |entry: Entry| found.push((entry.end, entry.records.iter().map(|record| record.id).collect()));
        assert_eq!(journal.whole_entries(START, see).unwrap(), damage);
        found
    }

    #[test]
    fn a_journal_that_ends_anywhere_has_the_entries_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, entries) = journal(folder.path());
        assert_eq!(found(&journal, None), entries);
        let length = entries.last().unwrap().0;
        for end in (0..length).rev() {
            journal.cut(end).unwrap();
            let whole: Vec<_> = entries.iter().filter(|(entry_end, _)| *entry_end <= end).cloned().collect();
            assert_eq!(found(&journal, None), whole, "{end} of {length} bytes");
        }
    }

    #[test]
    fn a_wrong_byte_ends_the_journal_before_its_entry() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, entries) = journal(folder.path());
        let bytes = fs::read(&journal.path).unwrap();
        let damaged = START as usize..bytes.len();
        for place in damaged {
            let mut wrong = bytes.clone();
            wrong[place] ^= 0x55;
            journal.write(&wrong, 0).unwrap();
            let whole: Vec<_> = entries.iter().filter(|(end, _)| *end <= place as u64).cloned().collect();
            // Behind the last entry is nothing that could be lost with it: it may be a write that did not finish.
            let damage = whole.last().map_or(START, |(end, _)| *end);
            let damage = (whole.len() + 1 < entries.len()).then_some(damage);
            assert_eq!(found(&journal, damage), whole, "byte {place}");
        }
        // Reading may begin behind the damage.
        let mut wrong = bytes.clone();
        wrong[START as usize + PREFIX] ^= 0x55;
        journal.write(&wrong, 0).unwrap();
        assert_eq!(journal.whole_entries(entries[0].0, drop).unwrap(), None);
        journal.write(b"another!", 0).unwrap();
        let refused = journal.whole_entries(START, drop).unwrap_err().to_string();
        assert!(refused.contains("00000007.journal is no journal of this program's format"), "{refused}");
    }

    #[test]
    fn an_entry_that_is_whole_and_cannot_be_decoded_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, entries) = journal(folder.path());
        // One record, whose id has three bytes.
        let encoded = [1, 3, 7, 7, 7];
        let prefix = [5_u32.to_le_bytes(), crc32fast::hash(&encoded).to_le_bytes()];
        journal.write(&[&prefix.concat()[..], &encoded].concat(), entries[1].0).unwrap();
        let refused = journal.whole_entries(START, drop).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("00000007.journal: the entry at byte {} is whole", entries[1].0)),
            "{refused}"
        );
    }

    #[test]
    fn records_come_back_as_they_were_also_from_large_entries() {
        let folder = tempfile::tempdir().unwrap();
        let (ids, journal) = (Ids::after(None), Journal::create(folder.path(), 1).unwrap());
        let large = |ids: &Ids| Record { input: Some("x".repeat(3 << 20)), ..record(ids, 4) };
        let records = [record(&ids, 3), large(&ids), record(&ids, 5)];
        let (mut end, mut places) = (START, Vec::new());
        for one in &records {
            let bytes = encode(&[one], Vec::new()).unwrap();
            journal.write(&bytes, end).unwrap();
            places.push(end);
            end += bytes.len() as u64;
        }
        for (place, wanted) in places.into_iter().zip(&records) {
            let entry = journal.entry_at(place).unwrap().unwrap();
            assert_eq!(format!("{:?}", entry.records), format!("[{wanted:?}]"));
        }
        assert_eq!(found(&journal, None).len(), records.len());
    }
}
