//! Reading routers and parts of calibrations from tensors.

use std::borrow::Cow;
use std::sync::Arc;

use pointsman::partition::forest::{
    Bootstrap, Forest, ForestParts, HonestForest, LeafNumbers, Node, Scorer, Trees, VoteCounts,
};
use pointsman::partition::{Axis, Edges, Factor};
use pointsman::{Cells, Partition, Router, Table};

use super::arrays::Arrays;
use super::{Header, LEAF, SHARE_OF_SMALL_TABLES};
use crate::error::Parsed;

/// The arrays of a file, each taken once and checked for type and shape.
pub(crate) struct Reader {
    arrays: Arrays,
}

/// The reason of an error of the core.
fn reason(error: pointsman::Error) -> String {
    error.to_string()
}

/// How many inputs trees have: the probabilities, the confidence and the features.
fn tree_inputs(header: &Header, features: &[String]) -> usize {
    header.classes.len() + 1 + features.len()
}

impl Reader {
    pub(super) fn new(arrays: Arrays) -> Self {
        Self { arrays }
    }

    pub(super) fn router(&mut self, header: &Header) -> Parsed<Router> {
        let partition = header.partition()?;
        let (table, backoff) = (self.table(header)?, self.backoff(header)?);
        if let [Factor::Forest { .. }] = partition.factors() {
            let seed = header.seed.ok_or("a forest without its seed")?;
            if header.recalibrated {
                return Err("a forest that serves centroids".into());
            }
            let trees = self.trees("trees", tree_inputs(header, &header.features))?;
            let bootstrap = self.bootstrap(seed)?;
            if !self.has("rows.leaves") {
                return Router::from_forest(partition, trees, bootstrap, backoff, &table).map_err(reason);
            }
            let parts = self.forest_parts(trees, bootstrap, table.rows())?;
            return Router::from_forest_parts(partition, backoff, table, parts).map_err(reason);
        }
        let cells = self.cells(header, &partition, &header.features)?;
        let router = Router::from_parts(partition, cells, backoff, header.recalibrated, &table).map_err(reason)?;
        router.with_added_rows(header.added_rows).map_err(reason)
    }

    pub(crate) fn backoff(&mut self, header: &Header) -> Parsed<Cells> {
        let edges = Edges::of_confidence(self.reals("backoff.edges", None)?).map_err(reason)?;
        Cells::new(header.classes.len(), vec![Axis::Confidence { edges }], Vec::new()).map_err(reason)
    }

    /// The cells of a partition other than a forest; `features` are those they need.
    fn cells(&mut self, header: &Header, partition: &Partition, features: &[String]) -> Parsed<Cells> {
        let mut axes = Vec::new();
        for (i, factor) in partition.factors().iter().enumerate() {
            axes.push(match factor {
                Factor::Tree => Axis::Tree { trees: self.trees("trees", tree_inputs(header, features))? },
                Factor::HonestForest { .. } => {
                    Axis::HonestForest { forest: self.honest_forest(tree_inputs(header, features))? }
                }
                factor => self.axis(i, factor, header.classes.len(), features)?,
            });
        }
        Cells::new(header.classes.len(), axes, features.to_vec()).map_err(reason)
    }

    /// The cells of a policy or of a part; `features` are those they need. Those of a forest are stored with the score of each leaf, since
    /// there are no rows to find it from.
    pub(crate) fn cells_without_rows(
        &mut self,
        header: &Header,
        partition: &Partition,
        features: &[String],
    ) -> Parsed<Cells> {
        let [Factor::Forest { .. }] = partition.factors() else {
            return self.cells(header, partition, features);
        };
        let seed = header.seed.ok_or("a forest without its seed")?;
        let trees = self.trees("trees", tree_inputs(header, features))?;
        let bootstrap = self.bootstrap(seed)?;
        let (forest, edges) = self.scored_forest(trees, bootstrap)?;
        Cells::new(header.classes.len(), vec![Axis::Forest { forest, edges }], features.to_vec()).map_err(reason)
    }

    /// A forest with the score of each leaf, and the edges of scores.
    fn scored_forest(&mut self, trees: Trees, bootstrap: Bootstrap) -> Parsed<(Arc<Forest>, Edges)> {
        let scorer = Scorer::new(trees, 1, self.reals("leaves.scores", None)?).map_err(reason)?;
        let forest = Arc::new(Forest::new(scorer, bootstrap).map_err(reason)?);
        Ok((forest, Edges::of_feature(self.reals("axis.0.edges", None)?).map_err(reason)?))
    }

    /// What was derived from the rows and trees of a forest.
    fn forest_parts(&mut self, trees: Trees, bootstrap: Bootstrap, rows: usize) -> Parsed<ForestParts<'static>> {
        let (forest, edges) = self.scored_forest(trees, bootstrap)?;
        let leaf_of_row = match self.arrays.holds::<u16>("rows.leaves") {
            true => LeafNumbers::Short(self.arrays.take("rows.leaves", Some(rows))?),
            false => LeafNumbers::Long(self.arrays.take("rows.leaves", Some(rows))?),
        };
        let mut vote_counts = None;
        if self.has("leaves.votes") {
            let (pairs, of_leaf) = (self.counts("leaves.votes", Some(2))?, self.counts("leaves.vote_pairs", None)?);
            let counts = VoteCounts::from_parts(pairs, &of_leaf);
            let counts = counts.ok_or("leaves.votes has another number of pairs than leaves.vote_pairs says")?;
            vote_counts = Some(Cow::Owned(counts));
        }
        Ok(ForestParts {
            rows_per_cell: self.counts("axis.0.rows", None)?,
            ranks: self.counts("rows.ranks", None)?.into(),
            leaf_of_row: Cow::Owned(leaf_of_row),
            leaf_weights: self.reals("leaves.weights", None)?.into(),
            leaf_error_shares: self.reals("leaves.error_shares", None)?.into(),
            vote_counts,
            forest,
            edges,
        })
    }

    fn honest_forest(&mut self, inputs: usize) -> Parsed<HonestForest> {
        let shares = self.counts("trees.shares", None)?;
        let width = HonestForest::LOSSES + shares.len();
        let scores = self.reals("trees.scores", Some(width))?;
        let (trees, cells) = (self.trees("trees", inputs)?, self.trees("cells", width)?);
        Scorer::new(trees, width, scores)
            .and_then(|scorer| HonestForest::new(scorer, shares, cells))
            .map_err(|e| e.to_string())
    }

    /// How the rows of each tree were drawn. Files without it are older, or their table is small.
    fn bootstrap(&mut self, seed: u64) -> Parsed<Bootstrap> {
        let (share, keys) = match self.has("trees.bootstrap") {
            false => (SHARE_OF_SMALL_TABLES, u32::MAX),
            true => match *self.reals("trees.bootstrap", None)? {
                [share, keys] if keys >= 0.0 && keys <= f64::from(u32::MAX) && keys.fract() == 0.0 => {
                    (share, keys as u32)
                }
                _ => return Err("the array trees.bootstrap is not a share and a number of rows".into()),
            },
        };
        Bootstrap::from_parts(seed, share, keys).map_err(|e| format!("the partition's {e}"))
    }

    /// Trees over `width` inputs.
    fn trees(&mut self, what: &str, width: usize) -> Parsed<Trees> {
        let [roots, inputs, left] =
            ["roots", "inputs", "left"].map(|name| self.counts(&format!("{what}.{name}"), None));
        let (inputs, left, thresholds) = (inputs?, left?, self.reals(&format!("{what}.thresholds"), None)?);
        let missing: Vec<u8> = self.arrays.take(&format!("{what}.missing"), None)?;
        if [left.len(), thresholds.len(), missing.len()] != [inputs.len(); 3] {
            return Err(format!("the arrays {what}.* differ in length"));
        }
        let node = |i: usize| match inputs[i] {
            LEAF => Node::Leaf,
            input => Node::Split { input, threshold: thresholds[i], left: left[i], missing_right: missing[i] != 0 },
        };
        let nodes: Vec<Node> = (0..inputs.len()).map(node).collect();
        Trees::new(width, roots?, &nodes).map_err(|e| format!("the partition's {e}"))
    }

    pub(crate) fn table(&mut self, header: &Header) -> Parsed<Table> {
        let classes = header.classes.len();
        let mut table = Table::new(header.classes.clone(), self.reals("probs", Some(classes))?).map_err(reason)?;
        table = table.with_votes(self.counts("votes", Some(classes))?).map_err(reason)?;
        if self.has("weights") {
            table = table.with_weights(self.reals("weights", None)?).map_err(reason)?;
        }
        if !header.features.is_empty() {
            let values = self.reals("features", Some(header.features.len()))?;
            table = table.with_features(header.features.clone(), values).map_err(reason)?;
        }
        for name in &header.oracles {
            let probs = self.reals(&format!("oracle.{name}"), Some(classes))?;
            table = table.with_oracle(name.clone(), probs).map_err(reason)?;
        }
        Ok(table)
    }

    /// Confidence edges of several classes or groups of classes.
    fn edges(&mut self, axis: usize) -> Parsed<Vec<Edges>> {
        let name = format!("axis.{axis}.edges");
        let (mut all, counts) = (self.reals(&name, None)?, self.counts(&format!("axis.{axis}.counts"), None)?);
        let mut edges = Vec::with_capacity(counts.len());
        for count in counts {
            let count = count as usize;
            if count > all.len() {
                return Err(format!("{name} is shorter than its counts say"));
            }
            let rest = all.split_off(count);
            edges.push(Edges::of_confidence(std::mem::replace(&mut all, rest)).map_err(reason)?);
        }
        if !all.is_empty() {
            return Err(format!("{name} is longer than its counts say"));
        }
        Ok(edges)
    }

    fn axis(&mut self, i: usize, factor: &Factor, classes: usize, features: &[String]) -> Parsed<Axis> {
        let name = format!("axis.{i}.edges");
        Ok(match factor {
            Factor::TopClass { .. } => Axis::top_class(self.edges(i)?),
            Factor::Pooled => Axis::pooled(self.counts(&format!("axis.{i}.groups"), None)?, self.edges(i)?),
            Factor::Confidence { .. } => {
                Axis::Confidence { edges: Edges::of_confidence(self.reals(&name, None)?).map_err(reason)? }
            }
            Factor::LevelSets => {
                Axis::LevelSets { levels: self.arrays.take(&format!("axis.{i}.levels"), Some(classes))?, classes }
            }
            Factor::Feature { name: feature, .. } => {
                let slot = features.iter().position(|f| f == feature).ok_or("a feature without a name")?;
                let edges = Edges::of_feature(self.reals(&name, None)?).map_err(reason)?;
                Axis::Feature { name: feature.clone(), slot, edges }
            }
            other => return Err(format!("unknown factor {other}")),
        })
    }

    pub(crate) fn u64s(&mut self, name: &str) -> Parsed<Vec<u64>> {
        self.arrays.take(name, None)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.arrays.has(name)
    }

    pub(crate) fn reals(&mut self, name: &str, width: Option<usize>) -> Parsed<Vec<f64>> {
        self.arrays.take(name, width)
    }

    /// The numbers of an array with rows and columns.
    pub(crate) fn matrix(&mut self, name: &str) -> Parsed<Vec<f64>> {
        let width = self.arrays.columns(name);
        self.reals(name, width.or(Some(1)))
    }

    /// An array of two numbers.
    pub(crate) fn pair(&mut self, name: &str) -> Parsed<[f64; 2]> {
        self.reals(name, None)?.try_into().map_err(|_| format!("the array {name} has not two numbers"))
    }

    fn counts(&mut self, name: &str, width: Option<usize>) -> Parsed<Vec<u32>> {
        self.arrays.take(name, width)
    }
}
