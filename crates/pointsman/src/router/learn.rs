//! Fitting a router to a table, including partitions that are learned from labels.

use super::fitted::FittedPartition;
use super::{Router, label_free};
use crate::error::{Result, TableError};
use crate::parallel;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::partition::forest::{self, Bootstrap, Halves, HonestForest, Trees};
use crate::partition::{Axis, Cells, Factor, Partition};
use crate::table::Table;

/// The number of confidence bins that queries of empty cells fall back to, unless the partition has bins of its own.
const BACKOFF_BINS: usize = 10;

impl Router {
    /// Fits a given partition. `step` is called as trees are grown.
    pub(crate) fn fit(table: &Table, partition: &Partition, seed: u64, step: &(dyn Fn() + Sync)) -> Result<Self> {
        if !table.has_votes() {
            return Err(TableError::NoVotes { purpose: "calibration", columns: "votes_<class>" }.into());
        }
        partition.check()?;
        super::check_rows(table)?;
        // Trees cannot split on constant features, so queries need not provide them.
        let reduced =
            if partition.factors().iter().any(Factor::learns) { table.without_constant_features() } else { None };
        let table = reduced.as_ref().unwrap_or(table);
        match partition.factors() {
            [Factor::Tree] => {
                let divide = |divide: &[u32], columns: &[usize]| {
                    Ok(Axis::Tree { trees: forest::grow_honest_tree(table, divide, columns, seed)? })
                };
                Self::learn_honestly(table, partition, seed, divide)
            }
            [Factor::HonestForest { trees }] => {
                super::check_size(table.rows(), *trees)?;
                let divide = |divide: &[u32], columns: &[usize]| {
                    Ok(Axis::HonestForest { forest: HonestForest::learn(table, divide, columns, *trees, seed, step)? })
                };
                Self::learn_honestly(table, partition, seed, divide)
            }
            [Factor::Forest { trees }] => {
                let backoff = FittedPartition::fit_backoff(table, BACKOFF_BINS)?;
                let bootstrap = Bootstrap::new(seed, table.rows());
                let trees = grow(table, *trees, bootstrap, step)?;
                Self::from_forest(partition.clone(), trees, bootstrap, backoff, table)
            }
            factors => {
                let bins = factors.iter().find_map(|factor| match factor {
                    Factor::TopClass { bins } | Factor::Confidence { bins } => Some(*bins),
                    Factor::Pooled => Some((table.rows() / SPARSE_BELOW_ROWS).max(1)),
                    _ => None,
                });
                let (cells, backoff) = parallel::join(
                    || Cells::fit(partition, table),
                    || FittedPartition::fit_backoff(table, bins.unwrap_or(BACKOFF_BINS)),
                );
                Self::from_parts(partition.clone(), cells?, backoff?, false, table)
            }
        }
    }

    /// Learns the cells from one half of the rows and keeps the other half as calibration rows.
    fn learn_honestly(
        table: &Table,
        partition: &Partition,
        seed: u64,
        divide: impl FnOnce(&[u32], &[usize]) -> Result<Axis>,
    ) -> Result<Self> {
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let halves = Halves::new(&label_free::order_of_table(table, 0), seed);
        let kept = table.select(&halves.kept, &columns);
        let axes = vec![divide(&halves.divide, &columns)?];
        let cells = Cells::new(table.classes().len(), axes, table.feature_names().to_vec())?;
        let backoff = FittedPartition::fit_backoff(&kept, BACKOFF_BINS)?;
        Self::from_parts(partition.clone(), cells, backoff, false, &kept)
    }
}

fn grow(table: &Table, trees: usize, bootstrap: Bootstrap, step: &(dyn Fn() + Sync)) -> Result<Trees> {
    super::check_size(table.rows(), trees)?;
    let columns: Vec<usize> = (0..table.feature_names().len()).collect();
    forest::grow_forest(table, &label_free::order_of_table(table, 0), &columns, trees, bootstrap, step)
}
