//! Which callers' ids a closed archive may contain, as a Bloom filter.

use fastbloom::BloomFilter;
use rusqlite::{Connection, OptionalExtension};

use super::super::record::ClientId;

/// The share of ids that a closed archive is searched for in vain.
const FALSE_POSITIVES: f64 = 0.001;

/// The callers' ids of an archive; `None` if there are none.
pub(super) fn of_rows(connection: &Connection) -> rusqlite::Result<Option<BloomFilter>> {
    let with_ids = "FROM decisions WHERE client_id IS NOT NULL";
    let count: u32 = connection.query_row(&format!("SELECT count(*) {with_ids}"), [], |row| row.get(0))?;
    if count == 0 {
        return Ok(None);
    }
    let mut filter = BloomFilter::with_false_pos(FALSE_POSITIVES).seed(&0).expected_items(count as usize);
    let mut statement = connection.prepare(&format!("SELECT deployment, key, client_id {with_ids}"))?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let id: String = row.get(2)?;
        filter.insert(&ClientId { deployment: row.get(0)?, key: row.get(1)?, id: &id });
    }
    Ok(Some(filter))
}

/// A filter as bytes: the number of its hashes, and its bits.
pub(super) fn encode(filter: &BloomFilter) -> Vec<u8> {
    let words = filter.as_slice().iter().flat_map(|word| word.to_le_bytes());
    filter.num_hashes().to_le_bytes().into_iter().chain(words).collect()
}

fn decode(bytes: &[u8]) -> Option<BloomFilter> {
    let (hashes, bits) = bytes.split_first_chunk::<4>()?;
    let (words, rest) = bits.as_chunks::<8>();
    let hashes = u32::from_le_bytes(*hashes);
    if words.is_empty() || !rest.is_empty() || !(1..=64).contains(&hashes) {
        return None;
    }
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    Some(BloomFilter::from_vec(words).seed(&0).hashes(hashes))
}

/// The callers' ids of a closed archive; `None` if it is not closed, or has to be closed again because they cannot be read.
pub(super) fn of_closed(connection: &Connection) -> rusqlite::Result<Option<Option<BloomFilter>>> {
    let stored: Option<Option<Vec<u8>>> =
        connection.query_row("SELECT ids FROM closed", [], |row| row.get(0)).optional()?;
    Ok(match stored {
        None => None,
        Some(None) => Some(None),
        Some(Some(bytes)) => decode(&bytes).map(Some),
    })
}
