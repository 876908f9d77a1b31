//! Panels of more experts than the labels of calibration rows can tell about.

use super::Policy;
use crate::oracle::Panel;
use crate::partition::CellId;
use crate::router::Router;
use crate::task::Route;

/// A route to a panel whose loss is not identified by the labels of some calibration rows.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AssumedPanel {
    /// The route.
    pub route: String,
    /// The number of labels per item that identify the loss: one per expert and one that judges them, or two under the Brier loss unless the
    /// panel's answer is its most frequent class.
    pub labels_needed: u64,
    /// The share of the calibration rows with fewer labels.
    pub share: f64,
}

impl Policy {
    /// The routes to panels whose loss rests on an assumed law of p*, because some calibration rows have too few labels. Standard errors do
    /// not include what is wrong with that law. Empty for a policy without calibration rows.
    #[must_use]
    pub fn assumed_panels(&self) -> Vec<AssumedPanel> {
        let Some(rows) = self.router().map(Router::rows) else { return Vec::new() };
        let weight_of = |is_counted: &dyn Fn(usize) -> bool| -> f64 {
            (0..rows.rows()).filter(|&row| is_counted(row)).map(|row| rows.weight(row)).sum()
        };
        let all = weight_of(&|_| true);
        let mut estimates = (0..self.cells.count() as u32).filter_map(|cell| self.cell(CellId(cell)));
        let is_noise_known = estimates.all(|decision| decision.estimate().is_known());
        let assumed = |route: &Route| {
            let panel = Panel::from_oracle(route.oracle())?;
            let needed = panel.labels_needed(self.task.loss());
            // Its loss is a multiple of the irreducible loss, which is known or borrowed for every cell then.
            if panel.depends_on_agreement_only(self.task.loss()) && is_noise_known {
                return None;
            }
            let share = weight_of(&|row| rows.votes(row).is_some_and(|votes| votes.k() < needed)) / all;
            (share > 0.0).then(|| AssumedPanel { route: route.name().to_owned(), labels_needed: needed, share })
        };
        self.task.routes().iter().filter_map(assumed).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::oracle::Aggregate;
    use crate::{Loss, Oracle, Partition, Router, Table, Task};

    #[test]
    fn panels_of_more_experts_than_labels_less_one_are_assumed() {
        // Three rows with three labels, one with two.
        let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.4, 0.6]).unwrap();
        let table = table.with_votes(vec![3, 0, 2, 1, 0, 3, 1, 1]).unwrap();
        let router = Router::calibrate(&table, &Partition::confidence(1)).unwrap();
        let shares = |loss: Loss| {
            let panel = |experts: u32| Oracle::panel(experts, Aggregate::Plurality).unwrap();
            let task = Task::new(loss).route("one", panel(1), 0.0).unwrap();
            let task = task.route("two", panel(2), 0.0).unwrap().route("three", panel(3), 0.0).unwrap();
            let task = task.route("mean", Oracle::panel(9, Aggregate::Mean).unwrap(), 0.0).unwrap();
            let assumed = router.policy(&task).unwrap().assumed_panels();
            assumed.into_iter().map(|panel| (panel.route, panel.labels_needed, panel.share)).collect::<Vec<_>>()
        };
        // Two labels identify the Brier loss of shares, whatever the number of experts.
        assert_eq!(shares(Loss::brier()), [("two".to_owned(), 3, 0.25), ("three".to_owned(), 4, 1.0)]);
        assert_eq!(shares(Loss::zero_one()).last(), Some(&("mean".to_owned(), 10, 1.0)));
    }

    /// The Brier loss of shares is a multiple of the irreducible loss, which rows with one label borrow from others.
    #[test]
    fn panels_of_shares_are_assumed_only_if_labels_do_not_show_the_noise() {
        let is_assumed = |labels: fn(usize) -> [u32; 2]| {
            let table = Table::new(["no", "yes"], [0.7, 0.3].repeat(60)).unwrap();
            let table = table.with_votes((0..60).flat_map(labels).collect()).unwrap();
            let task = Task::new(Loss::brier()).route("mean", Oracle::panel(3, Aggregate::Mean).unwrap(), 0.1).unwrap();
            let router = Router::calibrate(&table, &Partition::confidence(1)).unwrap();
            !router.policy(&task).unwrap().assumed_panels().is_empty()
        };
        assert!(!is_assumed(|row| if row % 4 == 0 { [1, 0] } else { [2, 1] }));
        assert!(is_assumed(|row| if row % 4 == 0 { [1, 0] } else { [0, 1] }));
    }
}
