//! The votes of a table's rows, each distinct set of them kept once.

use std::collections::HashMap;
use std::hash::Hash;

use rayon::prelude::*;

use crate::table::predictions::gather;
use crate::table::votes::Votes;

/// Rows that are numbered together; few enough that their votes stay in the cache.
const BLOCK: usize = 1 << 15;

/// The most classes whose counts, a byte each, fit into one number.
const BYTES: usize = 16;

/// Each row's ballot, and the votes on it. Rows that share their votes share all that their labels tell: it is worked out once
/// for them. Numbers are given as rows come, so those of equal rows are equal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DistinctVotes {
    of_rows: Vec<u32>,
    /// The distinct votes, in the order in which rows have them.
    counts: Vec<u32>,
    width: usize,
}

/// Numbers for rows of counts, given as they come. `K` stands for a row's counts.
struct Numbers<'a, K> {
    of: HashMap<K, u32, foldhash::fast::RandomState>,
    distinct: Vec<&'a [u32]>,
}

impl<'a, K: Eq + Hash> Numbers<'a, K> {
    fn new() -> Self {
        Self { of: HashMap::default(), distinct: Vec::new() }
    }

    fn number(&mut self, key: K, votes: &'a [u32]) -> u32 {
        let distinct = &mut self.distinct;
        *self.of.entry(key).or_insert_with(|| {
            distinct.push(votes);
            distinct.len() as u32 - 1
        })
    }
}

/// Numbers the rows of a block; the distinct ones of them. Small counts of few classes fit into one number, which is compared at
/// once.
fn number_all<'a>(votes: &'a [u32], width: usize, out: &mut [u32]) -> Vec<&'a [u32]> {
    let rows = votes.chunks_exact(width).zip(out);
    if width <= BYTES && votes.iter().fold(0, |all, n| all | n) <= u32::from(u8::MAX) {
        let mut numbers = Numbers::new();
        let packed = |votes: &[u32]| votes.iter().fold(0_u128, |key, &n| key << u8::BITS | u128::from(n));
        rows.for_each(|(votes, slot)| *slot = numbers.number(packed(votes), votes));
        numbers.distinct
    } else {
        let mut numbers = Numbers::new();
        rows.for_each(|(votes, slot)| *slot = numbers.number(votes, votes));
        numbers.distinct
    }
}

impl DistinctVotes {
    /// Those of `votes`, row by row, which are so many numbers wide.
    pub(crate) fn of(votes: &[u32], width: usize) -> Self {
        let mut of_rows = vec![0; votes.len() / width];
        let blocks = of_rows.par_chunks_mut(BLOCK).zip(votes.par_chunks(BLOCK * width));
        let found: Vec<Vec<&[u32]>> = blocks.map(|(of_rows, votes)| number_all(votes, width, of_rows)).collect();
        // Block by block in order, so that numbers are those of counting all rows as they come.
        let mut numbers = Numbers::new();
        let found: Vec<Vec<u32>> =
            found.into_iter().map(|own| own.into_iter().map(|votes| numbers.number(votes, votes)).collect()).collect();
        of_rows.par_chunks_mut(BLOCK).zip(found).for_each(|(of_rows, found)| {
            of_rows.iter_mut().for_each(|ballot| *ballot = found[*ballot as usize]);
        });
        Self { of_rows, counts: numbers.distinct.concat(), width }
    }

    /// So many rows without votes: one ballot for all.
    pub(crate) fn blank(rows: usize) -> Self {
        Self { of_rows: vec![0; rows], counts: vec![0], width: 1 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.counts.len() / self.width
    }

    /// The number of each row's.
    pub(crate) fn of_rows(&self) -> &[u32] {
        &self.of_rows
    }

    /// The votes on a ballot.
    pub(crate) fn votes(&self, ballot: u32) -> Votes<'_> {
        Votes::new(&self.counts[ballot as usize * self.width..][..self.width])
    }

    /// The distinct votes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Votes<'_>> {
        self.counts.chunks_exact(self.width).map(Votes::new)
    }

    /// Those of the given rows, numbered anew.
    pub(crate) fn select(&self, rows: &[u32]) -> Self {
        // Rows lie anywhere: all cores fetch. Then their ballots lie side by side, and the rest is quick.
        let mut of_rows = gather(rows, 1, &self.of_rows);
        let (mut numbers, mut counts, mut next) = (vec![u32::MAX; self.len()], Vec::new(), 0);
        for ballot in &mut of_rows {
            let number = &mut numbers[*ballot as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
                counts.extend(self.votes(*ballot).counts());
            }
            *ballot = *number;
        }
        Self { of_rows, counts, width: self.width }
    }

    /// Adds the rows of another table with as many classes; only distinct votes are compared.
    pub(crate) fn append(&mut self, other: &Self) {
        let known: HashMap<&[u32], u32, foldhash::fast::RandomState> =
            self.iter().map(Votes::counts).zip(0..).collect();
        let (mut next, mut fresh) = (self.len() as u32, Vec::new());
        let number = |votes: Votes<'_>| {
            known.get(votes.counts()).copied().unwrap_or_else(|| {
                fresh.extend_from_slice(votes.counts());
                next += 1;
                next - 1
            })
        };
        let numbers: Vec<u32> = other.iter().map(number).collect();
        self.counts.extend(fresh);
        self.of_rows.extend(other.of_rows.iter().map(|&ballot| numbers[ballot as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of three counts, some of which repeat near and some far away.
    fn votes(rows: usize) -> Vec<u32> {
        (0..rows as u32).flat_map(|i| [i % 7, i / 20_000, u32::from(i.is_multiple_of(BLOCK as u32 - 1))]).collect()
    }

    #[test]
    fn votes_are_numbered_as_they_come_in_however_many_blocks() {
        // As they are; beyond a byte in the second block; of more classes than fit into one number; of as many as just do.
        let few = votes(2 * BLOCK + 5);
        let many: Vec<u32> = few.iter().enumerate().map(|(i, n)| if i > 4 * BLOCK { n << 8 | n } else { *n }).collect();
        let wide =
            |zeros: usize| few.chunks_exact(3).flat_map(|own| [own, &vec![0; zeros]].concat()).collect::<Vec<_>>();
        let (wider, just) = (wide(BYTES - 2), wide(BYTES - 3));
        // If a byte more than full were taken for one, these would be the same.
        check_numbers(&[1, 0, 0, 0, 256, 0, 0, 255, 0, 0, 0, 255], 3);
        for (all, width) in [(&few, 3), (&many, 3), (&wider, BYTES + 1), (&just, BYTES)] {
            check_numbers(all, width);
        }
    }

    fn check_numbers(all: &[u32], width: usize) {
        let ballots = DistinctVotes::of(all, width);
        let mut seen: Vec<&[u32]> = Vec::new();
        for (row, own) in all.chunks_exact(width).enumerate() {
            let number = seen.iter().position(|other| *other == own).unwrap_or_else(|| {
                seen.push(own);
                seen.len() - 1
            });
            assert_eq!((ballots.of_rows()[row] as usize, ballots.votes(number as u32).counts()), (number, own));
        }
        assert_eq!(ballots.len(), seen.len());
    }

    #[test]
    fn what_is_put_together_is_what_was_never_apart() {
        let all = votes(BLOCK + 9);
        let whole = DistinctVotes::of(&all, 3);
        for rows in [0, 1, 5_000, BLOCK + 9] {
            let (first, second) = all.split_at(3 * rows);
            let mut both = DistinctVotes::of(first, 3);
            both.append(&DistinctVotes::of(second, 3));
            assert!(both == whole, "{rows} rows first");
        }
        let back: Vec<u32> = (0..whole.of_rows().len() as u32).rev().collect();
        let turned: Vec<u32> = all.chunks_exact(3).rev().flatten().copied().collect();
        assert!(whole.select(&back) == DistinctVotes::of(&turned, 3));
    }
}
