//! Writing tables and cells as tensors.

use pointsman::partition::forest::{Node, Trees};
use pointsman::partition::{Axis, Edges};
use pointsman::{Cells, Table};
use safetensors::tensor::{Dtype, TensorView};

use super::{LEAF, SHARE_OF_SMALL_TABLES};
use crate::error::Parsed;

/// Tensors to write, sorted by name.
#[derive(Default)]
pub(crate) struct Tensors(Vec<(String, Dtype, Vec<usize>, Vec<u8>)>);

impl Tensors {
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
                    let bytes = levels.iter().flat_map(|x| x.to_le_bytes()).collect();
                    let shape = vec![levels.len() / classes, *classes];
                    self.add(&format!("axis.{i}.levels"), Dtype::F32, shape, bytes);
                }
                Axis::Tree { trees } => self.add_trees("trees", trees),
                Axis::Forest { forest, .. } => {
                    self.add_trees("trees", forest.trees());
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

    /// Adds cells without rows; returns the seed of a forest. What a router finds from its rows is stored: the score of each leaf, and the
    /// edges of scores.
    pub(crate) fn add_cells_without_rows(&mut self, cells: &Cells, backoff: &Cells) -> Parsed<Option<u64>> {
        if let [Axis::Forest { forest, edges }] = cells.axes() {
            let scores = forest.scorer().leaf_scores();
            self.add_reals("leaves.scores", vec![scores.len()], scores);
            self.add_reals("axis.0.edges", vec![edges.values().len()], edges.values());
        }
        self.add_cells(cells, backoff)
    }

    /// Adds the edges of several classes or groups of classes, one after the other, and how many each has.
    fn add_edges(&mut self, axis: usize, edges: &[Edges]) {
        let all: Vec<f64> = edges.iter().flat_map(|edges| edges.values()).copied().collect();
        self.add_reals(&format!("axis.{axis}.edges"), vec![all.len()], &all);
        let counts: Vec<u32> = edges.iter().map(|edges| edges.values().len() as u32).collect();
        self.add_counts(&format!("axis.{axis}.counts"), vec![counts.len()], &counts);
    }

    pub(crate) fn add_u64s(&mut self, name: &str, values: &[u64]) {
        self.add(name, Dtype::U64, vec![values.len()], values.iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    fn add(&mut self, name: &str, dtype: Dtype, shape: Vec<usize>, bytes: Vec<u8>) {
        self.0.push((name.to_owned(), dtype, shape, bytes));
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
    }

    pub(crate) fn add_reals(&mut self, name: &str, shape: Vec<usize>, values: &[f64]) {
        self.add(name, Dtype::F64, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    fn add_counts<'a>(&mut self, name: &str, shape: Vec<usize>, values: impl IntoIterator<Item = &'a u32>) {
        self.add(name, Dtype::U32, shape, values.into_iter().flat_map(|x| x.to_le_bytes()).collect());
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
        self.0.iter().any(|(name, ..)| name == wanted)
    }

    pub(super) fn views(&self) -> std::result::Result<Vec<(&str, TensorView<'_>)>, safetensors::SafeTensorError> {
        self.0
            .iter()
            .map(|(name, dtype, shape, bytes)| Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?)))
            .collect()
    }
}
