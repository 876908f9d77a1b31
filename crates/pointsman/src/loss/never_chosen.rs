//! Acts of a cost matrix that are the cheapest under no prediction.

use super::{Kind, Loss};
use crate::numeric::linear;

/// Differences of costs up to this, relative to the largest cost, count as zero.
const NEGLIGIBLE: f64 = 1e-9;

/// The largest problem, in acts² × (classes + 1)², for which mixtures of acts are tried: about a second.
const MAX_WORK: usize = 100_000_000;

/// An act that is never taken, whatever the prediction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NeverChosen {
    /// The act.
    pub act: String,
    /// One act that costs no more under every class; `None` if only several acts together are cheaper under every prediction.
    pub dominated_by: Option<String>,
}

impl Loss {
    /// The acts of a cost matrix that are never taken, in order. In a very large matrix only acts dominated by a single act are found.
    ///
    /// ```
    /// use pointsman::Loss;
    /// let cost = vec![vec![0.0, 4.0], vec![1.0, 5.0], vec![4.0, 0.0], vec![3.0, 3.0]];
    /// let found = Loss::matrix(["ship", "ship late", "hold", "ask"], cost)?.never_chosen();
    /// assert_eq!((found[0].act.as_str(), found[0].dominated_by.as_deref()), ("ship late", Some("ship")));
    /// assert_eq!((found[1].act.as_str(), found[1].dominated_by.as_deref()), ("ask", None)); // 2 at most for ship or hold
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    #[must_use]
    pub fn never_chosen(&self) -> Vec<NeverChosen> {
        let Kind::Matrix(matrix, _) = &self.0 else { return Vec::new() };
        let costs: Vec<&[f64]> = (0..matrix.acts().len()).map(|act| matrix.row(act)).collect();
        let name = |act: usize| matrix.acts()[act].clone();
        let dominating: Vec<Option<usize>> = (0..costs.len()).map(|act| dominating(&costs, act)).collect();
        // In a mixture, a dominated act can be replaced by the act that dominates it.
        let left: Vec<usize> = (0..costs.len()).filter(|&act| dominating[act].is_none()).collect();
        let is_small = (left.len() * (matrix.classes() + 1)).saturating_pow(2) <= MAX_WORK;
        (0..costs.len())
            .filter_map(|act| match dominating[act] {
                Some(other) => Some(NeverChosen { act: name(act), dominated_by: Some(name(other)) }),
                None if is_small && is_beaten_everywhere(&costs, &left, act, matrix.bound()) => {
                    Some(NeverChosen { act: name(act), dominated_by: None })
                }
                None => None,
            })
            .collect()
    }
}

/// An act that is always preferred to this one: an earlier one that costs no more under any class, or a later one that always costs less.
fn dominating(costs: &[&[f64]], act: usize) -> Option<usize> {
    let is_dominated = |other: usize| {
        let mut pairs = costs[other].iter().zip(costs[act]);
        if other < act { pairs.all(|(theirs, own)| theirs <= own) } else { pairs.all(|(theirs, own)| theirs < own) }
    };
    (0..costs.len()).find(|&other| other != act && is_dominated(other))
}

/// Whether a mixture m of other acts costs less under every class: min_m max_y Σ_b m_b (cost_b(y) − cost_act(y)) < 0. By duality this
/// is max_q min_b ⟨cost_b − cost_act, q⟩ < 0. Solved as a linear program over m and the maximum t = t⁺ − t⁻, with a slack per class.
fn is_beaten_everywhere(costs: &[&[f64]], left: &[usize], act: usize, largest: f64) -> bool {
    let others: Vec<usize> = left.iter().copied().filter(|&other| other != act).collect();
    if others.is_empty() || largest <= 0.0 {
        return false;
    }
    let classes = costs[act].len();
    let column =
        |entries: &dyn Fn(usize) -> f64, sum: f64| (0..classes).map(entries).chain([sum]).collect::<Vec<f64>>();
    let excess = |other: usize, class: usize| (costs[other][class] - costs[act][class]) / largest;
    let mut columns: Vec<Vec<f64>> = others.iter().map(|&other| column(&|class| excess(other, class), 1.0)).collect();
    columns.extend((0..classes).map(|slack| column(&|class| f64::from(u8::from(class == slack)), 0.0)));
    columns.push(column(&|_| -1.0, 0.0));
    columns.push(column(&|_| 1.0, 0.0));
    let mut cost = vec![0.0; columns.len()];
    let last = cost.len() - 1;
    (cost[last - 1], cost[last]) = (1.0, -1.0);
    linear::minimum(&columns, &column(&|_| 0.0, 1.0), &cost).is_some_and(|least| least < -NEGLIGIBLE)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Rng;

    use super::*;

    fn never_chosen(costs: &[&[f64]]) -> Vec<String> {
        let names = (0..costs.len()).map(|act| act.to_string());
        let loss = Loss::matrix(names, costs.iter().map(|row| row.to_vec()).collect()).unwrap();
        loss.never_chosen().into_iter().map(|it| it.act).collect()
    }

    #[test]
    fn ties_are_won_by_the_first_act() {
        assert_eq!(never_chosen(&[&[0.0, 1.0], &[0.0, 1.0]]), ["1"], "the first of two equal acts is taken");
        assert_eq!(
            never_chosen(&[&[0.0, 1.0], &[0.0, 0.5]]),
            Vec::<String>::new(),
            "under the first class alone the first act is taken"
        );
        assert_eq!(never_chosen(&[&[0.0, 0.5], &[0.0, 1.0]]), ["1"]);
        assert_eq!(never_chosen(&[&[2.0, 1.0]]), Vec::<String>::new());
        assert_eq!(never_chosen(&[&[0.0, 0.0], &[0.0, 0.0]]), ["1"]);
    }

    #[test]
    fn a_hedge_is_taken_if_it_is_cheap_enough() {
        assert_eq!(never_chosen(&[&[0.0, 1.0], &[1.0, 0.0], &[0.49, 0.49]]), Vec::<String>::new());
        assert_eq!(never_chosen(&[&[0.0, 1.0], &[1.0, 0.0], &[0.51, 0.51]]), ["2"]);
        let hedge = [0.67; 3];
        assert_eq!(never_chosen(&[&[0.0, 1.0, 1.0], &[1.0, 0.0, 1.0], &[1.0, 1.0, 0.0], &hedge]), ["3"]);
        assert_eq!(
            never_chosen(&[&[0.0, 1.0, 1.0], &[1.0, 0.0, 1.0], &[1.0, 1.0, 0.0], &[0.66; 3]]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn no_prediction_of_a_grid_takes_a_never_chosen_act() {
        let mut rng = Rng::new(1);
        let mut next = || rng.below(6) as f64;
        let mut found = 0;
        for _ in 0..300 {
            let cost: Vec<Vec<f64>> = (0..4).map(|_| (0..3).map(|_| next()).collect()).collect();
            let loss = Loss::matrix(["a", "b", "c", "d"], cost.clone()).unwrap();
            let never: Vec<String> = loss.never_chosen().into_iter().map(|it| it.act).collect();
            found += never.len();
            for i in 0..=40 {
                for j in 0..=40 - i {
                    let q = [i, j, 40 - i - j].map(|n| f64::from(n) / 40.0);
                    let act = &loss.acts().unwrap()[loss.act(&q)];
                    assert!(!never.contains(act), "{cost:?} {q:?} takes {act}");
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    /// Each of these acts is the cheapest under some prediction.
    #[test]
    fn thousands_of_undominated_acts_are_all_kept() {
        let acts = 5_000;
        let curve = |act: usize| {
            let slope = act as f64 / acts as f64;
            vec![slope * slope, (1.0 - slope).powi(2)]
        };
        let loss = Loss::matrix((0..acts).map(|act| act.to_string()), (0..acts).map(curve).collect()).unwrap();
        assert!(loss.never_chosen().is_empty());
        assert!((loss.largest_entropy(2) - 0.25).abs() < 1e-6, "{}", loss.largest_entropy(2));
    }

    #[test]
    fn largest_entropy_of_two_classes_matches_a_grid_search() {
        let mut rng = Rng::new(9);
        let mut next = || rng.below(7) as f64;
        for acts in [1, 2, 3, 6, 12] {
            for _ in 0..200 {
                let cost: Vec<Vec<f64>> = (0..acts).map(|_| vec![next(), next()]).collect();
                let loss = Loss::matrix((0..acts).map(|act| act.to_string()), cost.clone()).unwrap();
                // Costs are integers below 7, so lines cross at fractions with denominators up to 12.
                let grid = (0..=27_720).map(|i| f64::from(i) / 27_720.0).map(|x| loss.entropy(&[1.0 - x, x]));
                let (found, most) = (loss.largest_entropy(2), grid.fold(0.0, f64::max));
                assert!((found - most).abs() < 1e-9, "{cost:?}: {found} instead of {most}");
            }
        }
    }
}
