//! Names as numbers, and labels by the annotators who gave them.

use std::collections::HashMap;

/// Names and their numbers, in order of first appearance.
#[derive(Default)]
pub(super) struct Names(HashMap<String, u32, foldhash::fast::RandomState>);

impl Names {
    /// The number of a name, which is added if it is new.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.0.get(name) {
            return number;
        }
        let next = self.0.len() as u32;
        self.0.insert(name.to_owned(), next);
        next
    }

    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.0.get(name).map(|&number| number as usize)
    }

    /// All names with their numbers, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &String)> {
        self.0.iter().map(|(name, &number)| (number as usize, name))
    }

    /// All names in the order of their numbers.
    pub(super) fn into_vec(self) -> Vec<String> {
        let mut names: Vec<(String, u32)> = self.0.into_iter().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        names.into_iter().map(|(name, _)| name).collect()
    }
}

/// The labels of every item in the order of the file, with their annotators.
pub(super) struct NamedLabels {
    pub(super) annotators: Vec<String>,
    /// Where each item's labels start, and where the last item's end.
    starts: Vec<usize>,
    /// Annotator and class.
    labels: Vec<(u32, u32)>,
}

impl NamedLabels {
    /// Groups labels (item, annotator, class) by item. Annotators without labels are left out.
    pub(super) fn new(mut annotators: Vec<String>, items: usize, given: &[(u32, u32, u32)]) -> Self {
        let mut has_labels = vec![false; annotators.len()];
        given.iter().for_each(|(_, annotator, _)| has_labels[*annotator as usize] = true);
        let number = |annotator: u32| has_labels[..annotator as usize].iter().filter(|has_labels| **has_labels).count();
        let numbers: Vec<u32> = (0..annotators.len() as u32).map(|annotator| number(annotator) as u32).collect();
        let mut places = 0..annotators.len();
        annotators.retain(|_| places.next().is_some_and(|place| has_labels[place]));
        let mut starts = vec![0; items + 1];
        given.iter().for_each(|(item, ..)| starts[*item as usize + 1] += 1);
        for item in 0..items {
            starts[item + 1] += starts[item];
        }
        let (mut next, mut labels) = (starts.clone(), vec![(0, 0); given.len()]);
        for &(item, annotator, class) in given {
            let place = &mut next[item as usize];
            labels[*place] = (numbers[annotator as usize], class);
            *place += 1;
        }
        Self { annotators, starts, labels }
    }

    pub(super) fn labels_of(&self, item: usize) -> &[(u32, u32)] {
        &self.labels[self.starts[item]..self.starts[item + 1]]
    }

    /// Whether the annotators of every item are in order of first appearance, or in alphabetical order.
    pub(super) fn is_sorted_by_annotator(&self) -> bool {
        /// Fewer items with several labels may be in order by chance.
        const MIN_ITEMS: usize = 10;
        let mut by_name: Vec<usize> = (0..self.annotators.len()).collect();
        by_name.sort_unstable_by_key(|&annotator| &self.annotators[annotator]);
        let mut rank = vec![0; by_name.len()];
        by_name.iter().enumerate().for_each(|(place, &annotator)| rank[annotator] = place);
        let several = || (0..self.starts.len() - 1).map(|item| self.labels_of(item)).filter(|labels| labels.len() > 1);
        several().count() >= MIN_ITEMS
            && (several().all(|labels| labels.is_sorted_by_key(|(annotator, _)| *annotator))
                || several().all(|labels| labels.is_sorted_by_key(|(annotator, _)| rank[*annotator as usize])))
    }
}
