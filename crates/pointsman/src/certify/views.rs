//! The sets of items of a cell from which losses are bounded.
//!
//! An item with one label shows the loss of predicting, but bounds the irreducible loss only between zero and that of a prediction from
//! other items. If some items of a cell have one label and others several, the irreducible loss is therefore bounded twice: from all items,
//! and from the items with several labels. The second is valid if the number of labels does not depend on the item within the cell, which
//! the estimates assume too.

use super::items::Items;
use super::rules::Rules;
use super::statistics::{self, Answer};
use crate::task::Task;

/// The lower and upper means of each pair of statistics, for each answer.
pub(super) type Ends = Vec<Vec<[f64; 2]>>;

/// Some items of a cell, and the statistics of each answer on them.
pub(super) struct View {
    pub(super) items: Items,
    answers: Vec<Answer>,
}

impl View {
    /// A served centroid is evaluated on the items it was computed from, which is good enough for a forecast.
    pub(super) fn new(rules: &Rules, items: Items, served: Option<&[f64]>) -> Self {
        let found = rules.answers(&items, served.is_some()).into_iter();
        let given = |answer: Option<Answer>| {
            answer.unwrap_or_else(|| match served {
                Some(served) => Answer::given(std::iter::repeat_n(served, items.len()), &items, &rules.loss),
                None => Answer::predict(&items, &rules.loss),
            })
        };
        let answers = found.map(given).collect();
        Self { items, answers }
    }

    /// The means of each pair of statistics.
    pub(super) fn ends(&self) -> Ends {
        self.answers.iter().map(|answer| answer.ends(&self.items)).collect()
    }

    /// The changes of those means under random factors of mean zero, one per item.
    pub(super) fn end_steps(&self, factors: &[f64]) -> Ends {
        self.answers.iter().map(|answer| answer.end_steps(&self.items, factors)).collect()
    }
}

/// All items of a cell and, if some have one label and others several, those with several.
pub(super) struct Views {
    views: Vec<View>,
    /// The means of each pair of statistics, view by view.
    ends: Ends,
}

impl Views {
    pub(super) fn new(rules: &Rules, items: Items, served: Option<&[f64]>) -> Self {
        let several = items.with_several_labels();
        let view = |items: Items| View::new(rules, items, served);
        let views: Vec<View> = [Some(items), several].into_iter().flatten().map(view).collect();
        let of_views: Vec<Ends> = views.iter().map(View::ends).collect();
        let of_answer = |answer: usize| of_views.iter().flat_map(|ends| ends[answer].iter().copied()).collect();
        let ends = (0..of_views[0].len()).map(of_answer).collect();
        Self { views, ends }
    }

    /// All items of the cell.
    pub(super) fn all(&self) -> &Items {
        &self.views[0].items
    }

    /// The number of items of each view.
    fn lens(&self) -> impl Iterator<Item = f64> {
        self.views.iter().map(|view| view.items.len() as f64)
    }

    /// The means of each pair of statistics, view by view.
    pub(super) fn ends(&self) -> &Ends {
        &self.ends
    }

    /// For each view, the number of its items relative to the present number if the cell has `times` its items and the new ones have
    /// several labels.
    pub(super) fn growths(&self, times: f64) -> Vec<f64> {
        let more = (times - 1.0) * self.all().len() as f64;
        self.lens().map(|len| 1.0 + more / len).collect()
    }

    /// The means of the views' items together with new ones whose means are given.
    pub(super) fn blended(&self, of_new_items: &Ends, growths: &[f64]) -> Ends {
        let blend = |(now, new): (&Vec<[f64; 2]>, &Vec<[f64; 2]>)| {
            let end = |(place, now): (usize, &[f64; 2])| {
                let (old, new) = (growths[place / new.len()].recip(), new[place % new.len()]);
                [0, 1].map(|side| old * now[side] + (1.0 - old) * new[side])
            };
            now.iter().enumerate().map(end).collect()
        };
        self.ends.iter().zip(of_new_items).map(blend).collect()
    }

    /// Means that have changed by steps, which are those of `of` items: each view's step is in proportion to its standard error.
    pub(super) fn moved(&self, ends: &Ends, by: &Ends, of: usize, parts: &[f64]) -> Ends {
        let scales: Vec<f64> = self.lens().zip(parts).map(|(len, part)| part * (of as f64 / len).sqrt()).collect();
        let moved = |(ends, by): (&Vec<[f64; 2]>, &Vec<[f64; 2]>)| {
            let end = |(place, end): (usize, &[f64; 2])| {
                let (scale, by) = (scales[place / by.len()], by[place % by.len()]);
                [0, 1].map(|side| end[side] + scale * by[side])
            };
            ends.iter().enumerate().map(end).collect()
        };
        ends.iter().zip(by).map(moved).collect()
    }

    /// The view that shows the cost difference of a pair of actions: items with one label do not if they leave the loss of one unidentified.
    pub(super) fn of_pair(&self, rules: &Rules, task: &Task, pair: usize) -> usize {
        let actions = [pair / task.actions(), pair % task.actions()];
        let needs_several =
            |action: usize| rules.answer(task, action).0.is_some_and(|answer| rules.needs_several_labels(answer));
        if actions.into_iter().any(needs_several) { self.views.len() - 1 } else { 0 }
    }

    /// For each pair of actions, the standard error of their cost difference.
    pub(super) fn standard_errors(&self, rules: &Rules, task: &Task) -> Vec<f64> {
        let actions = task.actions();
        let error = |pair: usize| {
            let view = &self.views[self.of_pair(rules, task, pair)];
            let of = |action: usize| rules.answer(task, action).0.map(|answer| &view.answers[answer]);
            statistics::error_of_difference(of(pair / actions), of(pair % actions), &view.items)
        };
        (0..actions * actions).map(error).collect()
    }
}
