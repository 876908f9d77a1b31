//! Labels with annotators, and tests of whether each annotator labels independently of the others.

mod check;
mod class_counts;
mod majority_vote;
mod pairs;
mod statistics;

use crate::error::{Error, Result, TableError, ValueError};
pub use check::{Annotator, AnnotatorCheck, UsualClass};
pub use pairs::AgreeingPair;
pub use statistics::{AnnotatorStatistics, Suspicion};

/// One label of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedLabel {
    /// The annotator: an index into [`Annotations::names`].
    pub annotator: u32,
    /// The class.
    pub class: u32,
}

/// The labels of a table's rows in the order in which they were given, with their annotators.
///
/// ```
/// use pointsman::diagnose::Annotations;
/// let rows = [vec![(0, 1), (1, 1)], vec![(1, 0), (0, 1)]]; // (annotator, class), row by row
/// let annotations = Annotations::new(["bob", "ann"], rows)?;
/// assert_eq!(annotations.names(), ["ann", "bob"]);
/// assert_eq!(annotations.votes_without(&["bob"], 2)?, [0, 1, 1, 0]);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotations {
    /// In alphabetical order, so that results do not depend on the order given.
    names: Vec<String>,
    /// The start of each row's labels, and the end of the last row's.
    starts: Vec<usize>,
    labels: Vec<NamedLabel>,
}

impl Annotations {
    /// Creates annotations from pairs (index into `names`, class) for each row, in the order of labelling.
    ///
    /// # Errors
    /// If a name is empty or given twice, an annotator has no name, or labels a row twice.
    pub fn new<S: Into<String>, R: IntoIterator<Item = (u32, u32)>>(
        names: impl IntoIterator<Item = S>,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self> {
        let given: Vec<String> = names.into_iter().map(Into::into).collect();
        let mut names = given.clone();
        names.sort_unstable();
        if names.first().is_some_and(String::is_empty) {
            return Err(TableError::Unnamed { what: "annotator" }.into());
        }
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(TableError::RepeatedName { what: "annotator", name: pair[0].clone() }.into());
        }
        let place_of = |name: &String| names.partition_point(|other| other < name) as u32;
        let places: Vec<u32> = given.iter().map(place_of).collect();
        let (mut starts, mut labels) = (vec![0], Vec::<NamedLabel>::new());
        let mut last_row = vec![None; names.len()];
        for (row, own) in rows.into_iter().enumerate() {
            for (annotator, class) in own {
                let Some(&annotator) = places.get(annotator as usize) else {
                    let reason = ValueError::Annotator { annotator, names: names.len() };
                    return Err(Error::value(row, "annotator", reason));
                };
                if last_row[annotator as usize].replace(row) == Some(row) {
                    let reason = ValueError::LabelledTwice { annotator: names[annotator as usize].clone() };
                    return Err(Error::value(row, "annotator", reason));
                }
                labels.push(NamedLabel { annotator, class });
            }
            starts.push(labels.len());
        }
        Ok(Self { names, starts, labels })
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of labels of all rows.
    pub(super) fn total(&self) -> usize {
        self.labels.len()
    }

    /// The annotators' names, in alphabetical order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A row's labels in the order in which they were given.
    #[must_use]
    pub fn labels(&self, row: usize) -> &[NamedLabel] {
        &self.labels[self.starts[row]..self.starts[row + 1]]
    }

    /// Label counts of `classes` classes, row by row, without the labels of the named annotators. A row that nobody else labelled has zero
    /// counts.
    ///
    /// # Errors
    /// If no annotator has one of the names.
    pub fn votes_without<S: AsRef<str>>(&self, left_out: &[S], classes: usize) -> Result<Vec<u32>> {
        let mut is_left_out = vec![false; self.names.len()];
        for name in left_out {
            let found = self.names.binary_search_by(|other| other.as_str().cmp(name.as_ref()));
            let place = found.map_err(|_| TableError::UnknownAnnotator { name: name.as_ref().to_owned() })?;
            is_left_out[place] = true;
        }
        let mut votes = vec![0; self.rows() * classes];
        for row in 0..self.rows() {
            let kept = self.labels(row).iter().filter(|label| !is_left_out[label.annotator as usize]);
            for label in kept.filter(|label| (label.class as usize) < classes) {
                votes[row * classes + label.class as usize] += 1;
            }
        }
        Ok(votes)
    }

    /// The annotations without some annotators; rows may lose all their labels.
    fn without(&self, is_left_out: &[bool]) -> Self {
        let mut kept = Self { names: self.names.clone(), starts: vec![0], labels: Vec::new() };
        for row in 0..self.rows() {
            kept.labels.extend(self.labels(row).iter().filter(|label| !is_left_out[label.annotator as usize]));
            kept.starts.push(kept.labels.len());
        }
        kept
    }

    /// The places of each annotator's labels: the row, and the index among its labels.
    fn by_annotator(&self) -> Vec<Vec<(usize, usize)>> {
        let mut places = vec![Vec::new(); self.names.len()];
        for row in 0..self.rows() {
            for (place, label) in self.labels(row).iter().enumerate() {
                places[label.annotator as usize].push((row, place));
            }
        }
        places
    }
}
