//! The distinct vote vectors of a table, each stored once.

use std::collections::HashMap;
use std::hash::Hash;

use crate::parallel::prelude::*;
use crate::table::predictions::gather;
use crate::table::votes::Votes;

/// Rows numbered by one task; few enough that their votes stay in the cache.
const ROWS_PER_BLOCK: usize = 1 << 15;

/// The largest number of classes whose counts, one byte each, fit into a `u128`.
const MAX_PACKED_CLASSES: usize = 16;

/// The distinct vote vectors of a table, and which of them each row has.
///
/// Whatever depends on a row's labels alone is computed once per distinct vote vector. Vectors are numbered in the order of their
/// first row, so equal tables have equal numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DistinctVotes {
    index_of_row: Vec<u32>,
    /// The counts of each distinct vote vector, `width` per vector.
    counts: Vec<u32>,
    width: usize,
}

/// Assigns consecutive numbers to vote vectors as they are first seen. `K` is the key by which vectors are compared.
struct Numbering<'a, K> {
    number_of: HashMap<K, u32, foldhash::fast::RandomState>,
    distinct: Vec<&'a [u32]>,
}

impl<'a, K: Eq + Hash> Numbering<'a, K> {
    fn new() -> Self {
        Self { number_of: HashMap::default(), distinct: Vec::new() }
    }

    fn number(&mut self, key: K, votes: &'a [u32]) -> u32 {
        let distinct = &mut self.distinct;
        *self.number_of.entry(key).or_insert_with(|| {
            distinct.push(votes);
            distinct.len() as u32 - 1
        })
    }
}

/// Numbers the rows of a block and returns its distinct vote vectors. Small counts of few classes are packed into one `u128`, which
/// is faster to hash and compare.
fn number_block<'a>(votes: &'a [u32], width: usize, out: &mut [u32]) -> Vec<&'a [u32]> {
    let rows = votes.chunks_exact(width).zip(out);
    if width <= MAX_PACKED_CLASSES && votes.iter().fold(0, |all, n| all | n) <= u32::from(u8::MAX) {
        let mut numbering = Numbering::new();
        let pack = |votes: &[u32]| votes.iter().fold(0_u128, |key, &n| key << u8::BITS | u128::from(n));
        rows.for_each(|(votes, slot)| *slot = numbering.number(pack(votes), votes));
        numbering.distinct
    } else {
        let mut numbering = Numbering::new();
        rows.for_each(|(votes, slot)| *slot = numbering.number(votes, votes));
        numbering.distinct
    }
}

impl DistinctVotes {
    /// Finds the distinct vectors among `votes`, row by row with `width` counts each.
    pub(crate) fn from_rows(votes: &[u32], width: usize) -> Self {
        let mut index_of_row = vec![0; votes.len() / width];
        let blocks = index_of_row.par_chunks_mut(ROWS_PER_BLOCK).zip(votes.par_chunks(ROWS_PER_BLOCK * width));
        let found: Vec<Vec<&[u32]>> = blocks.map(|(indices, votes)| number_block(votes, width, indices)).collect();
        // Blocks are merged in order, so that vectors are numbered by their first row in the table.
        let mut numbering = Numbering::new();
        let found: Vec<Vec<u32>> = found
            .into_iter()
            .map(|block| block.into_iter().map(|votes| numbering.number(votes, votes)).collect())
            .collect();
        index_of_row.par_chunks_mut(ROWS_PER_BLOCK).zip(found).for_each(|(indices, found)| {
            indices.iter_mut().for_each(|index| *index = found[*index as usize]);
        });
        Self { index_of_row, counts: numbering.distinct.concat(), width }
    }

    /// `rows` rows without votes, which all share one empty vector.
    pub(crate) fn unlabelled(rows: usize) -> Self {
        Self { index_of_row: vec![0; rows], counts: vec![0], width: 1 }
    }

    /// The number of distinct vote vectors.
    pub(crate) fn len(&self) -> usize {
        self.counts.len() / self.width
    }

    /// For each row, the index of its vote vector.
    pub(crate) fn index_of_row(&self) -> &[u32] {
        &self.index_of_row
    }

    /// The vote vector with an index.
    pub(crate) fn votes(&self, index: u32) -> Votes<'_> {
        Votes::new(&self.counts[index as usize * self.width..][..self.width])
    }

    /// The distinct vote vectors, by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Votes<'_>> {
        self.counts.chunks_exact(self.width).map(Votes::new)
    }

    /// The vote vectors of the given rows, renumbered.
    pub(crate) fn select(&self, rows: &[u32]) -> Self {
        // Fetching scattered rows is parallel; numbering the gathered indices is sequential and fast.
        let mut index_of_row = gather(rows, 1, &self.index_of_row);
        let (mut numbers, mut counts, mut next) = (vec![u32::MAX; self.len()], Vec::new(), 0);
        for index in &mut index_of_row {
            let number = &mut numbers[*index as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
                counts.extend(self.votes(*index).counts());
            }
            *index = *number;
        }
        Self { index_of_row, counts, width: self.width }
    }

    /// Adds the rows of another table with the same number of classes; only distinct vectors are compared.
    pub(crate) fn append(&mut self, other: &Self) {
        let known: HashMap<&[u32], u32, foldhash::fast::RandomState> =
            self.iter().map(Votes::counts).zip(0..).collect();
        let (mut next, mut new_counts) = (self.len() as u32, Vec::new());
        let number = |votes: Votes<'_>| {
            known.get(votes.counts()).copied().unwrap_or_else(|| {
                new_counts.extend_from_slice(votes.counts());
                next += 1;
                next - 1
            })
        };
        let numbers: Vec<u32> = other.iter().map(number).collect();
        self.counts.extend(new_counts);
        self.index_of_row.extend(other.index_of_row.iter().map(|&index| numbers[index as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of three counts, some repeated within a block and some across blocks.
    fn votes(rows: usize) -> Vec<u32> {
        (0..rows as u32)
            .flat_map(|i| [i % 7, i / 20_000, u32::from(i.is_multiple_of(ROWS_PER_BLOCK as u32 - 1))])
            .collect()
    }

    #[test]
    fn vectors_are_numbered_by_first_row_in_any_number_of_blocks() {
        // Small counts; counts above a byte in the second block; one class too many to pack; as many classes as can be packed.
        let small = votes(2 * ROWS_PER_BLOCK + 5);
        let large: Vec<u32> =
            small.iter().enumerate().map(|(i, n)| if i > 4 * ROWS_PER_BLOCK { n << 8 | n } else { *n }).collect();
        let widened =
            |zeros: usize| small.chunks_exact(3).flat_map(|row| [row, &vec![0; zeros]].concat()).collect::<Vec<_>>();
        let (too_wide, widest) = (widened(MAX_PACKED_CLASSES - 2), widened(MAX_PACKED_CLASSES - 3));
        // Packing a count above a byte would make two of these rows equal.
        check_numbers(&[1, 0, 0, 0, 256, 0, 0, 255, 0, 0, 0, 255], 3);
        let cases = [(&small, 3), (&large, 3), (&too_wide, MAX_PACKED_CLASSES + 1), (&widest, MAX_PACKED_CLASSES)];
        for (all, width) in cases {
            check_numbers(all, width);
        }
    }

    fn check_numbers(all: &[u32], width: usize) {
        let distinct = DistinctVotes::from_rows(all, width);
        let mut seen: Vec<&[u32]> = Vec::new();
        for (row, votes) in all.chunks_exact(width).enumerate() {
            let number = seen.iter().position(|other| *other == votes).unwrap_or_else(|| {
                seen.push(votes);
                seen.len() - 1
            });
            assert_eq!(
                (distinct.index_of_row()[row] as usize, distinct.votes(number as u32).counts()),
                (number, votes)
            );
        }
        assert_eq!(distinct.len(), seen.len());
    }

    #[test]
    fn appended_and_selected_rows_equal_a_fresh_numbering() {
        let all = votes(ROWS_PER_BLOCK + 9);
        let whole = DistinctVotes::from_rows(&all, 3);
        for rows in [0, 1, 5_000, ROWS_PER_BLOCK + 9] {
            let (first, second) = all.split_at(3 * rows);
            let mut both = DistinctVotes::from_rows(first, 3);
            both.append(&DistinctVotes::from_rows(second, 3));
            assert!(both == whole, "{rows} rows first");
        }
        let backwards: Vec<u32> = (0..whole.index_of_row().len() as u32).rev().collect();
        let reversed: Vec<u32> = all.chunks_exact(3).rev().flatten().copied().collect();
        assert!(whole.select(&backwards) == DistinctVotes::from_rows(&reversed, 3));
    }
}
