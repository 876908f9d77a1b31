//! How often the labels of each row name each class.

use super::Annotations;

/// The classes that the labels of each row name, and how often. It is counted once for all annotators of a row, since a row may have very many.
pub(super) struct ClassCounts {
    /// The start of each row's classes, and the end of the last row's.
    starts: Vec<usize>,
    /// Classes in ascending order within a row, with the number of labels of each.
    classes: Vec<(u32, usize)>,
    /// The number of ordered pairs of labels of each row that agree.
    agreeing_pairs: Vec<usize>,
}

impl ClassCounts {
    pub(super) fn new(annotations: &Annotations) -> Self {
        let mut found = Self { starts: vec![0], classes: Vec::new(), agreeing_pairs: Vec::new() };
        let mut labels: Vec<u32> = Vec::new();
        for row in 0..annotations.rows() {
            labels.clear();
            labels.extend(annotations.labels(row).iter().map(|label| label.class));
            labels.sort_unstable();
            found.classes.extend(labels.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())));
            let own = &found.classes[found.starts[row]..];
            found.agreeing_pairs.push(own.iter().map(|(_, n)| n * (n - 1)).sum());
            found.starts.push(found.classes.len());
        }
        found
    }

    /// The counts of one row.
    pub(super) fn row(&self, row: usize) -> RowCounts<'_> {
        let classes = &self.classes[self.starts[row]..self.starts[row + 1]];
        RowCounts { classes, agreeing_pairs: self.agreeing_pairs[row] }
    }
}

/// The classes that the labels of one row name, and how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowCounts<'a> {
    /// In ascending order, with the number of labels of each.
    pub(super) classes: &'a [(u32, usize)],
    /// The number of ordered pairs of labels that agree.
    pub(super) agreeing_pairs: usize,
}

impl RowCounts<'_> {
    /// The number of labels that name a class.
    pub(super) fn labels_of(self, class: u32) -> usize {
        let place = self.classes.binary_search_by_key(&class, |(class, _)| *class);
        place.map_or(0, |place| self.classes[place].1)
    }
}
