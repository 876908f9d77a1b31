//! Writing tables and cells as tensors.

use std::borrow::Cow;

use pointsman::partition::forest::{ForestParts, LeafNumbers, Node, Trees};
use pointsman::partition::{Axis, Edges};
use pointsman::{Cells, Table};
use safetensors::tensor::{Dtype, TensorView};

use super::arrays::Number;
use super::{LEAF, SHARE_OF_SMALL_TABLES};
use crate::error::Parsed;

/// Tensors to write, sorted by name.
#[derive(Default)]
pub(crate) struct Tensors<'a>(Vec<Tensor<'a>>);

/// A tensor to write.
struct Tensor<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Tensors<'a> {
    /// Adds the rows of a table.
    pub(crate) fn add_rows(&mut self, table: &Table) {
        let (rows, classes) = (table.rows(), table.classes().len());
        self.add_reals("probs", vec![rows, classes], &table.predictions());
        self.add_counts(
            "votes",
            vec![rows, classes],
            (0..rows).flat_map(|row| table.votes(row)).flat_map(|v| v.counts()),
        );
        if table.has_weights() {
            self.add_reals("weights", vec![rows], &(0..rows).map(|row| table.weight(row)).collect::<Vec<_>>());
        }
        if !table.feature_names().is_empty() {
            let values: Vec<f64> = (0..rows).flat_map(|row| table.features(row)).copied().collect();
            self.add_reals("features", vec![rows, table.feature_names().len()], &values);
        }
        for (name, probs) in table.oracles() {
            self.add_reals(&format!("oracle.{name}"), vec![rows, classes], probs);
        }
    }

    /// Adds cells; returns the seed of a forest.
    pub(crate) fn add_cells(&mut self, cells: &Cells, backoff: &Cells) -> Parsed<Option<u64>> {
        let mut seed = None;
        for (i, axis) in cells.axes().iter().enumerate() {
            let edges = format!("axis.{i}.edges");
            match axis {
                Axis::TopClass { edges, .. } => self.add_edges(i, edges),
                Axis::Pooled { groups, edges, .. } => {
                    self.add_edges(i, edges);
                    self.add_counts(&format!("axis.{i}.groups"), vec![groups.len()], groups);
                }
                Axis::Confidence { edges: e } | Axis::Feature { edges: e, .. } => {
                    self.add_reals(&edges, vec![e.values().len()], e.values());
                }
                Axis::LevelSets { levels, classes } => {
                    let shape = vec![levels.len() / classes, *classes];
                    self.add(&format!("axis.{i}.levels"), Dtype::F32, shape, f32::encode(levels).into_owned());
                }
                Axis::Tree { trees } => self.add_trees("trees", trees),
                Axis::Forest { forest, edges: e } => {
                    self.add_trees("trees", forest.trees());
                    let scores = forest.scorer().leaf_scores();
                    self.add_reals("leaves.scores", vec![scores.len()], scores);
                    self.add_reals(&edges, vec![e.values().len()], e.values());
                    let bootstrap = forest.bootstrap();
                    // Older versions know no other share, and draw from all rows.
                    if bootstrap.share() != SHARE_OF_SMALL_TABLES {
                        self.add_reals("trees.bootstrap", vec![2], &[bootstrap.share(), bootstrap.keys().into()]);
                    }
                    seed = Some(bootstrap.seed());
                }
                Axis::HonestForest { forest } => {
                    let scorer = forest.scorer();
                    self.add_trees("trees", scorer.trees());
                    self.add_counts("trees.shares", vec![forest.shares().len()], forest.shares());
                    self.add_reals("trees.scores", vec![scorer.trees().leaves(), scorer.width()], scorer.leaf_scores());
                    self.add_trees("cells", forest.cells());
                }
                other => return Err(format!("this version cannot store the partition axis {other:?}")),
            }
        }
        if let [Axis::Confidence { edges }] = backoff.axes() {
            self.add_reals("backoff.edges", vec![edges.values().len()], edges.values());
        }
        Ok(seed)
    }

    /// Adds what was derived from the rows and trees of a forest, beside its cells.
    pub(crate) fn add_forest_parts(&mut self, parts: &'a ForestParts<'_>) -> Parsed<()> {
        let (trees, rows) = (parts.forest.trees().count(), parts.ranks.len());
        self.add_counts("axis.0.rows", vec![parts.rows_per_cell.len()], &parts.rows_per_cell);
        self.add_borrowed("rows.ranks", vec![rows], &parts.ranks);
        match &*parts.leaf_of_row {
            LeafNumbers::Short(numbers) => self.add_borrowed("rows.leaves", vec![trees, rows], numbers),
            LeafNumbers::Long(numbers) => self.add_borrowed("rows.leaves", vec![trees, rows], numbers),
            _ => return Err("this version cannot store such numbers of leaves".to_owned()),
        }
        self.add_borrowed("leaves.weights", vec![parts.leaf_weights.len()], &parts.leaf_weights);
        self.add_borrowed("leaves.error_shares", vec![parts.leaf_error_shares.len()], &parts.leaf_error_shares);
        if let Some(counts) = &parts.vote_counts {
            self.add_borrowed("leaves.votes", vec![counts.pairs().len(), 2], counts.pairs().as_flattened());
            let pairs: Vec<u32> = counts.pairs_of_leaf().collect();
            self.add_counts("leaves.vote_pairs", vec![pairs.len()], &pairs);
        }
        Ok(())
    }

    /// Adds the edges of several classes or groups of classes, one after the other, and how many each has.
    fn add_edges(&mut self, axis: usize, edges: &[Edges]) {
        let all: Vec<f64> = edges.iter().flat_map(|edges| edges.values()).copied().collect();
        self.add_reals(&format!("axis.{axis}.edges"), vec![all.len()], &all);
        let counts: Vec<u32> = edges.iter().map(|edges| edges.values().len() as u32).collect();
        self.add_counts(&format!("axis.{axis}.counts"), vec![counts.len()], &counts);
    }

    pub(crate) fn add_u64s(&mut self, name: &str, values: &[u64]) {
        self.add(name, Dtype::U64, vec![values.len()], u64::encode(values).into_owned());
    }

    fn add(&mut self, name: &str, dtype: Dtype, shape: Vec<usize>, bytes: impl Into<Cow<'a, [u8]>>) {
        self.0.push(Tensor { name: name.to_owned(), dtype, shape, bytes: bytes.into() });
        self.0.sort_by(|a, b| a.name.cmp(&b.name));
    }

    pub(crate) fn add_reals(&mut self, name: &str, shape: Vec<usize>, values: &[f64]) {
        self.add(name, Dtype::F64, shape, f64::encode(values).into_owned());
    }

    /// Adds numbers without copying them.
    fn add_borrowed<T: Number>(&mut self, name: &str, shape: Vec<usize>, values: &'a [T]) {
        self.add(name, T::DTYPE, shape, T::encode(values));
    }

    fn add_counts<'b>(&mut self, name: &str, shape: Vec<usize>, values: impl IntoIterator<Item = &'b u32>) {
        self.add(name, Dtype::U32, shape, values.into_iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
    }

    fn add_trees(&mut self, what: &str, trees: &Trees) {
        let (mut inputs, mut left, mut thresholds, mut missing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for node in trees.nodes() {
            let (input, threshold, child, right) = match node {
                Node::Leaf => (LEAF, 0.0, 0, false),
                Node::Split { input, threshold, left, missing_right } => (input, threshold, left, missing_right),
            };
            inputs.push(input);
            thresholds.push(threshold);
            left.push(child);
            missing.push(u8::from(right));
        }
        self.add_counts(&format!("{what}.roots"), vec![trees.count()], trees.roots());
        self.add_counts(&format!("{what}.inputs"), vec![inputs.len()], &inputs);
        self.add_counts(&format!("{what}.left"), vec![left.len()], &left);
        self.add_reals(&format!("{what}.thresholds"), vec![thresholds.len()], &thresholds);
        self.add(&format!("{what}.missing"), Dtype::U8, vec![missing.len()], missing);
    }

    pub(super) fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|tensor| tensor.name == wanted)
    }

    pub(super) fn views(&self) -> std::result::Result<Vec<(&str, TensorView<'_>)>, safetensors::SafeTensorError> {
        self.0
            .iter()
            .map(|Tensor { name, dtype, shape, bytes }| {
                Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?))
            })
            .collect()
    }
}
