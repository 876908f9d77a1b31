//! Detection of a majority vote that is given as if it were another annotator.
//!
//! A column "final" beside the labels of an item has their most frequent class, so it never contradicts a majority of the others. If all k
//! labels of an item are independent draws from one law, each of them is equally likely to be the annotator's. An annotator who labels nearly
//! every item then contradicts the most frequent class of the others on as many items as the labels themselves say.

use std::collections::BTreeMap;

use super::Annotations;
use super::class_counts::{ClassCounts, RowCounts};

/// The smallest share of the items that the annotator labels.
const MIN_SHARE_OF_ITEMS: f64 = 0.9;

/// The smallest number of other labels of an item: of three labels, two that agree look the same as a third that errs.
const MIN_OTHERS: usize = 3;

/// The smallest number of items on which an annotator who labels independently would contradict the others' most frequent class.
const MIN_EXPECTED_ITEMS: f64 = 20.0;

/// The largest number of items on which a majority vote does, as a share of that. Votes may have been counted before labels were left out.
const MAX_SHARE_OF_EXPECTED: f64 = 0.05;

/// Whether an annotator, whose labels are at `places`, seems to be the majority vote of the others. `items` is the number of items with labels.
pub(super) fn is_majority_vote(
    annotations: &Annotations,
    counts: &ClassCounts,
    places: &[(usize, usize)],
    items: usize,
) -> bool {
    if (places.len() as f64) < MIN_SHARE_OF_ITEMS * items as f64 {
        return false;
    }
    let mut contradicted = 0_usize;
    // By the number of labels, so that the sum does not depend on the order of items.
    let mut contradicting_labels = BTreeMap::<usize, usize>::new();
    for &(row, place) in places {
        let (labels, counts) = (annotations.labels(row), counts.row(row));
        if labels.len() > MIN_OTHERS {
            let contradicts = contradicting_counts(counts);
            contradicted += usize::from(contradicts(counts.labels_of(labels[place].class)));
            let all = counts.classes.iter().map(|(_, n)| *n).filter(|n| contradicts(*n)).sum::<usize>();
            *contradicting_labels.entry(labels.len()).or_default() += all;
        }
    }
    let expected: f64 = contradicting_labels.iter().map(|(k, labels)| *labels as f64 / *k as f64).sum();
    expected >= MIN_EXPECTED_ITEMS && contradicted as f64 <= MAX_SHARE_OF_EXPECTED * expected
}

/// Whether a label of a class with this count contradicts the others of its row, which have one most frequent class, and another one.
fn contradicting_counts(counts: RowCounts<'_>) -> impl Fn(usize) -> bool {
    let most = counts.classes.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let ties = counts.classes.iter().filter(|(_, n)| *n == most).count();
    // Without its own label, a class that ties with one other is behind that one.
    move |n| if n < most { ties == 1 } else { ties == 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_contradict_the_others_are_counted() {
        // The number of labels of each class, and of those that contradict the most frequent class of the others.
        for (votes, contradicting) in [
            (vec![3, 1], 1),
            (vec![2, 2], 4),
            (vec![2, 1, 1], 2),
            (vec![2, 2, 1], 4),
            (vec![1, 1, 1, 1], 0),
            (vec![4], 0),
            (vec![2, 2, 2], 0),
        ] {
            let labels = votes.iter().enumerate().flat_map(|(class, &n)| vec![class as u32; n]);
            let row: Vec<(u32, u32)> = labels.enumerate().map(|(who, class)| (who as u32, class)).collect();
            let names = (0..row.len()).map(|who| format!("a{who}"));
            let counts = ClassCounts::new(&Annotations::new(names, [row]).unwrap());
            let contradicts = contradicting_counts(counts.row(0));
            assert_eq!(votes.iter().filter(|n| contradicts(**n)).sum::<usize>(), contradicting, "{votes:?}");
        }
    }
}
