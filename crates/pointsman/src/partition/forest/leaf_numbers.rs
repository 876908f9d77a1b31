//! The leaf of each row in each tree, in as few bytes as count them.

use std::ops::Range;

use crate::parallel::prelude::*;

/// The leaves of a tree that two bytes can number.
const MAX_SHORT: usize = 1 << u16::BITS;

/// The leaf of each row in each tree, tree by tree, counted from the tree's first leaf.
///
/// A forest keeps one number per row and tree, most of its memory, so numbers take two bytes unless a tree has more leaves than that counts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LeafNumbers {
    /// At most 65,536 leaves per tree.
    Short(Vec<u16>),
    /// More.
    Long(Vec<u32>),
}

impl LeafNumbers {
    /// Numbers below `leaves`.
    pub(super) fn new(leaves: usize, numbers: impl Iterator<Item = u32>) -> Self {
        match leaves <= MAX_SHORT {
            true => Self::Short(numbers.map(|leaf| leaf as u16).collect()),
            false => Self::Long(numbers.collect()),
        }
    }

    /// The number of numbers.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Short(numbers) => numbers.len(),
            Self::Long(numbers) => numbers.len(),
        }
    }

    /// All numbers, one after another.
    pub(super) fn all(&self) -> NumberSlice<'_> {
        match self {
            Self::Short(numbers) => NumberSlice::Short(numbers),
            Self::Long(numbers) => NumberSlice::Long(numbers),
        }
    }

    /// The numbers of one tree over this number of rows.
    #[inline]
    pub(super) fn of_tree(&self, tree: usize, rows: usize) -> NumberSlice<'_> {
        self.all().range(tree * rows..(tree + 1) * rows)
    }

    /// Joins the numbers of trees, each over rows in another order: row `i` of a tree becomes row `places[i]`.
    pub(super) fn join_permuted(trees: Vec<Self>, places: &[u32]) -> Self {
        fn permute<T: Copy + Default + Send + Sync>(
            trees: Vec<LeafNumbers>,
            places: &[u32],
            number: impl Fn(usize) -> T + Sync,
        ) -> Vec<T> {
            let mut joined = vec![T::default(); trees.len() * places.len()];
            // Each tree's own numbers are freed as soon as they are placed.
            joined.par_chunks_mut(places.len().max(1)).zip(trees).for_each(|(out, tree)| {
                tree.all().for_each(|row, leaf| out[places[row] as usize] = number(leaf));
            });
            joined
        }
        match trees.iter().all(|tree| matches!(tree, Self::Short(_))) {
            true => Self::Short(permute(trees, places, |leaf| leaf as u16)),
            false => Self::Long(permute(trees, places, |leaf| leaf as u32)),
        }
    }

    /// Whether the numbers have the width that trees of these leaves need.
    pub(super) fn has_width_for(&self, leaves_of_tree: impl Iterator<Item = Range<usize>>) -> bool {
        let is_short = leaves_of_tree.map(|leaves| leaves.len()).all(|leaves| leaves <= MAX_SHORT);
        is_short == matches!(self, Self::Short(_))
    }
}

/// Some consecutive numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum NumberSlice<'a> {
    Short(&'a [u16]),
    Long(&'a [u32]),
}

impl<'a> NumberSlice<'a> {
    pub(super) fn range(self, range: Range<usize>) -> Self {
        match self {
            Self::Short(numbers) => Self::Short(&numbers[range]),
            Self::Long(numbers) => Self::Long(&numbers[range]),
        }
    }

    /// The number at a place.
    #[inline]
    pub(super) fn get(self, place: usize) -> usize {
        match self {
            Self::Short(numbers) => numbers[place].into(),
            Self::Long(numbers) => numbers[place] as usize,
        }
    }

    /// Calls `visit` with each place and its number, in order.
    #[inline]
    pub(super) fn for_each(self, mut visit: impl FnMut(usize, usize)) {
        match self {
            Self::Short(numbers) => numbers.iter().enumerate().for_each(|(place, &leaf)| visit(place, leaf.into())),
            Self::Long(numbers) => numbers.iter().enumerate().for_each(|(place, &leaf)| visit(place, leaf as usize)),
        }
    }

    /// Whether all numbers are below `leaves`, and each number below occurs.
    pub(super) fn cover(self, leaves: usize) -> bool {
        let (mut occurs, mut is_outside) = (vec![false; leaves], false);
        self.for_each(|_, leaf| match occurs.get_mut(leaf) {
            Some(occurs) => *occurs = true,
            None => is_outside = true,
        });
        !is_outside && occurs.iter().all(|occurs| *occurs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_are_kept() {
        for leaves in [1_usize, 65_536, 65_537, 1 << 20] {
            let numbers = [0, leaves as u32 / 2, leaves as u32 - 1];
            let kept = LeafNumbers::new(leaves, numbers.into_iter());
            assert_eq!(kept.len(), 3);
            assert!(kept.has_width_for(std::iter::once(0..leaves)) && !kept.all().cover(leaves - 1));
            assert_eq!([0, 1, 2].map(|row| kept.all().get(row) as u32), numbers);
            let mut visited = Vec::new();
            kept.all().for_each(|row, leaf| visited.push((row, leaf as u32)));
            assert_eq!(visited, [(0, numbers[0]), (1, numbers[1]), (2, numbers[2])]);
            // Beside a small tree, whose numbers become as wide.
            let small = LeafNumbers::new(2, [0, 1, 1].into_iter());
            let joined = LeafNumbers::join_permuted(vec![small, kept], &[1, 2, 0]);
            assert!(joined.has_width_for([0..2, 2..2 + leaves].into_iter()));
            assert_eq!([0, 1, 2].map(|row| joined.of_tree(0, 3).get(row)), [1, 0, 1]);
            assert_eq!([1, 2, 0].map(|row| joined.of_tree(1, 3).get(row) as u32), numbers);
        }
    }

    #[test]
    fn numbers_cover_leaves_if_each_has_rows_and_no_other_has() {
        let numbers = |all: &[u32]| LeafNumbers::new(9, all.iter().copied());
        assert!(numbers(&[2, 0, 1, 1]).all().cover(3));
        assert!(!numbers(&[2, 0, 1, 1]).all().cover(4));
        assert!(!numbers(&[2, 0, 1, 1]).all().cover(2));
    }
}
