//! The votes of a table's rows, each distinct set of them kept once.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::votes::Votes;

/// Rows that are numbered together; few enough that their votes stay in the cache.
const BLOCK: usize = 1 << 15;

/// Each row's ballot, and the votes on it. Rows that share their votes share all that their labels tell: it is worked out once
/// for them.
#[derive(Debug, Clone)]
pub(crate) struct Ballots {
    of_rows: Vec<u32>,
    /// The distinct votes, in the order in which rows have them.
    counts: Vec<u32>,
    width: usize,
}

/// Numbers for rows of counts, given as they come.
#[derive(Default)]
struct Numbers<'a> {
    of: HashMap<&'a [u32], u32, foldhash::fast::RandomState>,
    distinct: Vec<&'a [u32]>,
}

impl<'a> Numbers<'a> {
    fn number(&mut self, votes: &'a [u32]) -> u32 {
        let distinct = &mut self.distinct;
        *self.of.entry(votes).or_insert_with(|| {
            distinct.push(votes);
            distinct.len() as u32 - 1
        })
    }
}

impl Ballots {
    /// Those of `votes`, row by row, which are so many numbers wide.
    pub(crate) fn of(votes: &[u32], width: usize) -> Self {
        let mut of_rows = vec![0; votes.len() / width];
        let blocks = of_rows.par_chunks_mut(BLOCK).zip(votes.par_chunks(BLOCK * width));
        let found: Vec<Vec<&[u32]>> = blocks
            .map(|(of_rows, votes)| {
                let mut numbers = Numbers::default();
                let rows = votes.chunks_exact(width).zip(of_rows);
                rows.for_each(|(votes, slot)| *slot = numbers.number(votes));
                numbers.distinct
            })
            .collect();
        // Block by block in order, so that numbers are those of counting all rows as they come.
        let mut numbers = Numbers::default();
        let found: Vec<Vec<u32>> =
            found.into_iter().map(|own| own.into_iter().map(|votes| numbers.number(votes)).collect()).collect();
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
        let mut numbers = vec![u32::MAX; self.len()];
        let (mut of_rows, mut counts, mut next) = (Vec::with_capacity(rows.len()), Vec::new(), 0);
        for ballot in rows.iter().map(|&row| self.of_rows[row as usize]) {
            let number = &mut numbers[ballot as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
                counts.extend(self.votes(ballot).counts());
            }
            of_rows.push(*number);
        }
        Self { of_rows, counts, width: self.width }
    }

    /// The votes of all rows, row by row.
    fn all(&self) -> impl Iterator<Item = Votes<'_>> {
        self.of_rows.iter().map(|&ballot| self.votes(ballot))
    }

    /// Adds the rows of another table with as many classes.
    pub(crate) fn append(&mut self, other: &Self) {
        let votes: Vec<u32> = self.all().chain(other.all()).flat_map(Votes::counts).copied().collect();
        *self = Self::of(&votes, self.width);
    }
}

/// Equal if all rows' votes are.
impl PartialEq for Ballots {
    fn eq(&self, other: &Self) -> bool {
        // As rows come: rows of the same votes have the same number on both sides.
        (&self.of_rows, &self.counts, self.width) == (&other.of_rows, &other.counts, other.width)
    }
}
