//! The losses of a task's oracles on the rows of a mixture.
//!
//! The loss of a measured oracle is the mean of Σ_c ȳ_c ℓ(c, o), which is unbiased for any number of labels. The loss of a panel is
//! unbiased on items with more labels than the panel has experts: the average over all divisions of the labels into a panel and one
//! label that evaluates it. On other items it is the panel's loss under the estimator's law of p*. A mixture may contain both kinds.

use super::moments::Moments;
use super::other_oracles::OtherOracles;
use super::panels::{UnderLaws, bounds, by_votes, integrated, mean_of, points_in_leaves};
use crate::error::{Result, TableError};
use crate::loss::Loss;
use crate::oracle::{Oracle, Panel, Urn};
use crate::parallel::prelude::*;
use crate::partition::forest::RowsInLeaves;
use crate::router::Mixture;
use crate::table::Table;
use crate::table::simplex::dot;
use crate::table::votes::Votes;
use crate::task::Estimator;

/// The loss of each other oracle on each row of a table: one list per oracle.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowLosses {
    other_oracles: OtherOracles,
    /// NaN if the row has too few labels.
    values: Vec<Vec<f64>>,
    /// For panels with such rows, the loss under any label distribution.
    laws: Vec<Option<UnderLaws>>,
}

impl RowLosses {
    /// The losses on rows whose own labels give an unbiased estimate.
    ///
    /// # Errors
    /// If the table lacks the predictions of a measured oracle.
    pub(crate) fn from_labels(table: &Table, loss: &Loss, other_oracles: &OtherOracles) -> Result<Self> {
        let of = |(oracle, name): &(Oracle, String)| match Panel::from_oracle(oracle) {
            Some(panel) => {
                let unbiased = |votes: Votes<'_>| panel.unbiased(loss, votes).unwrap_or(f64::NAN);
                Ok(by_votes(Mixture::all_rows_of(table), unbiased))
            }
            None => measured(table, loss, name),
        };
        let values: Vec<Vec<f64>> = other_oracles.0.iter().map(of).collect::<Result<_>>()?;
        let laws = |(oracle, values): (&Oracle, &Vec<f64>)| {
            let unknown = values.iter().filter(|value| value.is_nan()).count();
            if unknown > 0 { UnderLaws::new(oracle, loss, table.classes().len(), unknown) } else { None }
        };
        let laws = other_oracles.oracles().zip(&values).map(laws).collect();
        Ok(Self { other_oracles: other_oracles.clone(), values, laws })
    }

    /// Fills in the losses of a forest's rows with too few labels for a panel, under the mean of the shrunk snapshot means from the leaves
    /// that contain the row. Once per row instead of once per leaf saves a factor of the number of trees.
    pub(crate) fn in_forest(mut self, table: &Table, leaves: &RowsInLeaves, loss: &Loss, estimator: Estimator) -> Self {
        if self.laws.iter().all(Option::is_none) {
            return self;
        }
        let classes = table.classes().len();
        let points = points_in_leaves(table, leaves, estimator);
        for (values, laws) in self.values.iter_mut().zip(&self.laws) {
            let Some(laws) = laws else { continue };
            values.par_iter_mut().zip(points.par_chunks_exact(classes)).for_each(|(value, point)| {
                // A row whose leaves do not separate noise from error has no point.
                if value.is_nan() && point[0].is_finite() {
                    *value = laws.cost(loss, point);
                }
            });
        }
        self
    }

    /// The losses on all rows, for evaluation. A panel's loss is that under the row's true distribution if known; else the unbiased
    /// estimate, or with too few labels the loss under their mean.
    ///
    /// # Errors
    /// If the table lacks the predictions of a measured oracle.
    pub(crate) fn held_out(table: &Table, loss: &Loss, other_oracles: &OtherOracles) -> Result<Self> {
        let of = |(oracle, name): &(Oracle, String)| match Panel::from_oracle(oracle) {
            Some(panel) => {
                let costing = panel.costing_for(loss, table.classes().len(), table.rows());
                let under = |law: &[f64]| costing.cost(loss, &Urn::from_distribution(law));
                Ok(match table.truth(0) {
                    Some(_) => {
                        (0..table.rows()).into_par_iter().map(|row| under(table.truth(row).unwrap_or(&[]))).collect()
                    }
                    None => by_votes(Mixture::all_rows_of(table), |votes| {
                        panel.unbiased(loss, votes).unwrap_or_else(|| under(&mean_of(votes)))
                    }),
                })
            }
            None => measured(table, loss, name),
        };
        let values = other_oracles.0.iter().map(of).collect::<Result<_>>()?;
        Ok(Self { other_oracles: other_oracles.clone(), values, laws: Vec::new() })
    }

    /// The loss of a measured oracle on each row; `None` if the oracle at this place is a panel.
    pub(super) fn measured(&self, place: usize) -> Option<&[f64]> {
        let (oracle, _) = self.other_oracles.0.get(place)?;
        (*oracle == Oracle::Measured).then(|| self.values[place].as_slice())
    }

    /// One list per oracle, one loss per row.
    pub(crate) fn columns(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// The lower and upper bound of each oracle's mean loss over a mixture of the table's rows, equal if it is known. `irreducible` are
    /// the bounds of the irreducible loss.
    pub(super) fn in_mixture(
        &self,
        mixture: Mixture<'_>,
        moments: &Moments,
        estimator: Estimator,
        loss: &Loss,
        irreducible: [f64; 2],
    ) -> Vec<[f64; 2]> {
        let mean = |losses: &[f64]| {
            let sum: f64 = mixture.rows().zip(losses).map(|(row, loss)| mixture.table().weight(row) * loss).sum();
            [sum / moments.weight; 2]
        };
        let of = |((oracle, values), laws): ((&Oracle, &Vec<f64>), &Option<UnderLaws>)| {
            let own: Vec<f64> = mixture.rows().map(|row| values[row]).collect();
            match Panel::from_oracle(oracle).zip(laws.as_ref()) {
                // Known for every row of the table.
                None => mean(&own),
                Some((panel, laws)) if !moments.identified => bounds(panel, laws, loss, &moments.mean, irreducible),
                Some(_) if own.iter().all(|loss| loss.is_finite()) => mean(&own),
                // A function of the irreducible loss, and so of the rows that show it.
                Some((panel, laws)) if panel.depends_on_agreement_only(loss) => {
                    bounds(panel, laws, loss, &moments.mean, irreducible)
                }
                Some((panel, laws)) => {
                    let cost = |urn: &Urn| laws.costing.cost(loss, urn);
                    let under = integrated(panel.labels_needed(loss), &cost, mixture, moments, estimator);
                    let either: Vec<f64> =
                        own.iter().zip(under).map(|(&own, under)| if own.is_finite() { own } else { under }).collect();
                    mean(&either)
                }
            }
        };
        self.other_oracles.oracles().zip(&self.values).zip(&self.laws).map(of).collect()
    }
}

/// Σ_c y_c ℓ(c, o) for each row, where y is its true distribution if known, else the mean of its labels.
fn measured(table: &Table, loss: &Loss, name: &str) -> Result<Vec<f64>> {
    let classes = table.classes().len();
    let answers = answers_of(table, name)?;
    let of = |(truth, losses): &mut (Vec<f64>, Vec<f64>), row: usize| {
        match (table.truth(row), table.votes(row)) {
            (Some(known), _) => truth.copy_from_slice(known),
            (None, Some(votes)) => votes.mean_into(truth),
            (None, None) => {}
        }
        loss.losses_into(&answers[row * classes..][..classes], losses);
        dot(truth, losses)
    };
    let buffers = || (vec![0.0; classes], vec![0.0; classes]);
    Ok((0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(buffers, of).collect())
}

/// A measured oracle's predictions, row by row.
///
/// # Errors
/// If the table has none.
pub(crate) fn answers_of<'a>(table: &'a Table, name: &str) -> Result<&'a [f64]> {
    if let Some((_, answers)) = table.oracles().find(|(other, _)| *other == name) {
        return Ok(answers);
    }
    let oracles = table.oracles().map(|(name, _)| name.to_owned()).collect();
    Err(TableError::NoAnswers { route: name.to_owned(), class: table.classes()[0].clone(), oracles }.into())
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::estimate::{Decomposition, VoteGroups};
    use crate::numeric::mix::{class_at, uniform};
    use crate::oracle::Aggregate;
    use crate::partition::Partition;
    use crate::router::Router;

    /// The true distribution over three classes, given two features.
    fn truth(features: &[f64]) -> [f64; 3] {
        let (first, second) = (0.1 + 0.8 * features[0] * features[1], 0.05 + 0.05 * features[0]);
        [first, second, 1.0 - first - second]
    }

    fn labelled_table(rows: usize, k: usize) -> Table {
        let mut random = Pcg64::seed_from_u64(11);
        let mut unit = move || uniform(random.next_u64());
        let (mut votes, mut features) = (vec![], vec![]);
        for _ in 0..rows {
            let x = [unit(), unit()];
            let mut counts = [0; 3];
            (0..k).for_each(|_| counts[class_at(&truth(&x), unit())] += 1);
            votes.extend(counts);
            features.extend(x);
        }
        let table = Table::new(["a", "b", "c"], [0.5, 0.1, 0.4].repeat(rows)).unwrap().with_votes(votes).unwrap();
        table.with_features(["x", "y"], features).unwrap()
    }

    #[test]
    fn panel_loss_per_row_is_as_accurate_as_per_leaf() {
        let table = labelled_table(600, 3);
        let router = Router::calibrate(&table, &Partition::forest(10)).unwrap();
        let leaves = router.leaves().unwrap().rows();
        for (loss, aggregate) in
            [(Loss::zero_one(), Aggregate::Plurality), (Loss::spherical(), Aggregate::Laplace(1.0))]
        {
            let oracle = Oracle::panel(9, aggregate).unwrap();
            let other_oracles = OtherOracles(vec![(oracle.clone(), "jury".into())]);
            let by_leaf = RowLosses::from_labels(router.rows(), &loss, &other_oracles).unwrap();
            let count = leaves.leaves() as f64;
            let by_row = by_leaf.clone().in_forest(router.rows(), leaves, &loss, Estimator::Shrink);
            assert!(by_row.columns()[0].iter().all(|value| value.is_finite()));
            let mut errors = [0.0; 2];
            for rows in (0..leaves.trees()).flat_map(|tree| {
                let tree = leaves.tree(tree);
                tree.leaves().map(|leaf| tree.rows_of(leaf).to_vec()).collect::<Vec<_>>()
            }) {
                let mixture = Mixture::of_rows(router.rows(), &rows);
                let truth = |row: &u32| oracle.cost(&loss, &truth(router.rows().features(*row as usize))).unwrap();
                let truth = rows.iter().map(truth).sum::<f64>() / rows.len() as f64;
                for (error, losses) in errors.iter_mut().zip([&by_leaf, &by_row]) {
                    let d = Decomposition::fit(
                        mixture,
                        &loss,
                        Estimator::Shrink,
                        None,
                        losses,
                        None,
                        &mut VoteGroups::default(),
                    )
                    .unwrap();
                    *error += (d.oracles[0][0] - truth).abs() / count;
                }
            }
            println!("{loss}: mean error of a leaf {:.4} leaf by leaf, {:.4} row by row", errors[0], errors[1]);
            assert!(errors[1] < 1.1 * errors[0], "{loss}: {errors:?}");
        }
    }
}
