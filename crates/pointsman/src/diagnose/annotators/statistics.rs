//! Four statistics of an annotator's labels, each of mean zero if all labels of an item are independent draws from one law.
//!
//! Let k be the number of labels of an item, y the annotator's label, M_c the number of other labels that are c, and
//! S = Σ_c M_c(M_c − 1) / ((k − 1)(k − 2)) the share of pairs of other labels that agree:
//!
//! | statistic | of an item | needs |
//! |---|---|---|
//! | agreement | M_y/(k − 1) − S | k ≥ 3 |
//! | follows | 1\[y = the label before\] − S | k ≥ 3, not the first label |
//! | model | 1\[y = top class of the prediction\] − M_top/(k − 1) | k ≥ 2 |
//! | class c | 1\[y = c\] − M_c/(k − 1) | k ≥ 2 |
//!
//! The means are zero whatever the item's law is: no cells and no model of the labels are needed.

use super::class_counts::{ClassCounts, RowCounts};
use super::{Annotations, NamedLabel};
use crate::certify::EProcess;

/// Means within this distance of zero are accepted.
pub(super) const TOLERANCE: f64 = 0.05;

/// The statistics of one annotator, item by item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AnnotatorStatistics {
    /// The excess of agreement with the others over their agreement among themselves.
    pub agreement: Vec<f64>,
    /// The excess of agreement with the previous label over the agreement of others among themselves.
    pub follows: Vec<f64>,
    /// The excess of the model's top class over the labels of others.
    pub model: Vec<f64>,
    /// The excess of each tested class over the labels of others.
    pub classes: Vec<(u32, Vec<f64>)>,
}

/// A way in which an annotator's labels are not independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// They agree with the others more than the others do among themselves.
    AgreementHigh,
    /// They agree with the others less than the others do among themselves.
    AgreementLow,
    /// They repeat the previous label.
    FollowsHigh,
    /// They repeat the model's top class.
    ModelHigh,
    /// They name a class too often.
    ClassHigh(u32),
    /// They name a class too rarely.
    ClassLow(u32),
}

impl Suspicion {
    /// The key in reports: `agreement-low`, `class-spam-high`, …
    #[must_use]
    pub fn name(self, classes: &[String]) -> String {
        let class = |class: u32| classes.get(class as usize).cloned().unwrap_or_else(|| class.to_string());
        match self {
            Self::AgreementHigh => "agreement-high".to_owned(),
            Self::AgreementLow => "agreement-low".to_owned(),
            Self::FollowsHigh => "follows-high".to_owned(),
            Self::ModelHigh => "model-high".to_owned(),
            Self::ClassHigh(c) => format!("class-{}-high", class(c)),
            Self::ClassLow(c) => format!("class-{}-low", class(c)),
        }
    }
}

impl AnnotatorStatistics {
    /// The statistics of one annotator, an index into [`Annotations::names`], for some classes; `top_classes` has each row's top class.
    #[must_use]
    pub fn new(annotations: &Annotations, annotator: u32, top_classes: &[u32], classes: &[u32]) -> Self {
        let of_row = |row: usize| {
            let place = annotations.labels(row).iter().position(|label| label.annotator == annotator)?;
            Some((row, place))
        };
        let rows = 0..annotations.rows().min(top_classes.len());
        let counts = ClassCounts::new(annotations);
        Self::from_places(annotations, &counts, rows.filter_map(of_row), top_classes, classes)
    }

    /// As [`Self::new`], from the places of the annotator's labels: the row, and the index among its labels.
    pub(super) fn from_places(
        annotations: &Annotations,
        counts: &ClassCounts,
        places: impl IntoIterator<Item = (usize, usize)>,
        top_classes: &[u32],
        classes: &[u32],
    ) -> Self {
        let mut found = Self {
            agreement: Vec::new(),
            follows: Vec::new(),
            model: Vec::new(),
            classes: classes.iter().map(|&class| (class, Vec::new())).collect(),
        };
        for (row, place) in places {
            found.add(annotations.labels(row), counts.row(row), place, top_classes[row]);
        }
        found
    }

    /// Adds an item: its labels, how often they name each class, the index of the annotator's label, and the model's top class.
    fn add(&mut self, labels: &[NamedLabel], counts: RowCounts<'_>, place: usize, top: u32) {
        let others = labels.len() - 1;
        if others == 0 {
            return;
        }
        let own = labels[place].class;
        // The share of the others that name a class.
        let share = |class: u32| (counts.labels_of(class) - usize::from(own == class)) as f64 / others as f64;
        let difference = |class: u32| f64::from(u8::from(own == class)) - share(class);
        self.model.push(difference(top));
        self.classes.iter_mut().for_each(|(class, values)| values.push(difference(*class)));
        if others < 2 {
            return;
        }
        // The ordered pairs of other labels that agree: all pairs that agree minus those with the annotator's own label.
        let agreeing = counts.agreeing_pairs - 2 * (counts.labels_of(own) - 1);
        let pairs = agreeing as f64 / (others * (others - 1)) as f64;
        self.agreement.push(share(own) - pairs);
        if place > 0 {
            self.follows.push(f64::from(u8::from(labels[place - 1].class == own)) - pairs);
        }
    }

    /// The natural logarithm of the e-value of every suspicion. If the annotator labels independently, an e-value exceeds 1/δ with
    /// probability δ at most.
    #[must_use]
    pub fn ln_e_values(&self) -> Vec<(Suspicion, f64)> {
        let mut found = vec![
            (Suspicion::AgreementHigh, ln_e_value(&self.agreement, true)),
            (Suspicion::AgreementLow, ln_e_value(&self.agreement, false)),
            (Suspicion::FollowsHigh, ln_e_value(&self.follows, true)),
            (Suspicion::ModelHigh, ln_e_value(&self.model, true)),
        ];
        for (class, values) in &self.classes {
            found.push((Suspicion::ClassHigh(*class), ln_e_value(values, true)));
            found.push((Suspicion::ClassLow(*class), ln_e_value(values, false)));
        }
        found
    }
}

/// The evidence that differences in [−1, 1] have a mean above the tolerance, or below its negative. Equal values are added together, in
/// ascending order, so the result does not depend on the order of items.
fn ln_e_value(differences: &[f64], high: bool) -> f64 {
    let mut evidence = if high {
        EProcess::above(f64::midpoint(1.0, TOLERANCE))
    } else {
        EProcess::below(f64::midpoint(1.0, -TOLERANCE))
    };
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    for equal in sorted.chunk_by(|a, b| a == b) {
        evidence.add_repeated(f64::midpoint(1.0, equal[0]), 1.0, equal.len());
    }
    evidence.ln_value()
}
