//! The router file: a `.safetensors` file that any language can read and nobody needs to trust.
//!
//! | tensor | type | what |
//! |---|---|---|
//! | `probs` | f64, rows × classes | weak predictions as given |
//! | `votes` | u32, rows × classes | label counts |
//! | `weights` | f64, rows | only if rows have weights |
//! | `features` | f64, rows × features | only the features the cells need |
//! | `oracle.<name>` | f64, rows × classes | another model's predictions |
//! | `axis.<i>.edges` | f64 | inner edges of the i-th factor of the partition; of all classes in order for `top-class` |
//! | `axis.<i>.counts` | u32, classes | how many of them each class has (`top-class`), or each group of classes (`pooled`) |
//! | `axis.0.groups` | u32, classes | the group of each class (`pooled`) |
//! | `axis.<i>.levels` | f32, levels × classes | the distinct predictions (`level-sets`) |
//! | `backoff.edges` | f64 | edges of the confidence over all classes |
//! | `trees.roots` | u32, trees | the first node of each tree (`tree`, `forest`, `honest-forest`) |
//! | `trees.inputs` | u32, nodes | what a node asks for: the classes' probabilities, the confidence, then the features; 4294967295 is a leaf |
//! | `trees.thresholds` | f64, nodes | at or above it a row goes to the right child; 0 in a leaf |
//! | `trees.left` | u32, nodes | the left child, the right one comes next; 0 in a leaf |
//! | `trees.missing` | u8, nodes | 1 if a row without a value goes to the right |
//! | `trees.shares` | u32 | classes whose label shares are scores (`honest-forest`) |
//! | `trees.scores` | f64, leaves × scores | of each leaf the mean reducible and irreducible Brier loss and these shares, by rows that are not in the file |
//! | `cells.roots` and so on | as `trees.…` | the one tree over the scores whose leaves are the cells (`honest-forest`) |
//!
//! The one metadata key `pointsman` holds JSON: the format's version, the classes, the partition, the names of
//! the features, whether centroids are served, the seed of a forest, and the SHA-256 of everything else. Rows are stored in order
//! of cell; which cell each is in is found anew from its prediction when the file is read, so it cannot be wrong. So are the
//! leaves of a forest's trees, and its cells. Files with scores or groups have version 3, others with trees
//! version 2, all others version 1.

use std::fmt::Write as _;
use std::path::Path;

use pointsman::partition::forest::{HonestForest, Node, Scorer, Trees};
use pointsman::partition::{Axis, Edges, Factor};
use pointsman::{Cells, Partition, Router, Table};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic::write_atomically;
use crate::error::{ContentError, Error, Result};
use crate::input::read_all;

/// The newest version of the format.
const VERSION: u32 = 3;

/// The arrays that need a version, newest first; a router without any of them has version 1.
const NEEDS: [(&str, u32); 3] = [("axis.0.groups", VERSION), ("trees.scores", VERSION), ("trees.roots", 2)];

/// The oldest version that can hold a file's arrays: the one it has.
fn version_of(has: impl Fn(&str) -> bool) -> u32 {
    NEEDS.iter().find(|(name, _)| has(name)).map_or(1, |(_, version)| *version)
}

/// The input of a node that asks nothing.
const LEAF: u32 = u32::MAX;

/// The metadata key.
const KEY: &str = "pointsman";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    version: u32,
    classes: Vec<String>,
    partition: String,
    recalibrated: bool,
    features: Vec<String>,
    oracles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    sha256: String,
}

impl Header {
    pub(crate) fn partition(&self) -> Parsed<Partition> {
        self.partition.parse().map_err(|e: pointsman::Error| e.to_string())
    }

    pub(crate) fn is_recalibrated(&self) -> bool {
        self.recalibrated
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The header of a file with these tensors, its checksum still empty.
    pub(crate) fn new(partition: &Partition, recalibrated: bool, rows: &Table, tensors: &Tensors) -> Self {
        Self {
            version: version_of(|wanted| tensors.0.iter().any(|(name, ..)| name == wanted)),
            classes: rows.classes().to_vec(),
            partition: partition.to_string(),
            recalibrated,
            features: rows.feature_names().to_vec(),
            oracles: rows.oracles().map(|(name, _)| name.to_owned()).collect(),
            seed: None,
            sha256: String::new(),
        }
    }
}

/// What a kind of file says about itself: a router's header, alone or with more.
pub(crate) trait Sealed: Serialize + DeserializeOwned {
    /// The metadata key.
    const KEY: &'static str;
    /// What the file is, in an error.
    const WHAT: &'static str;

    /// The part about the router.
    fn router(&mut self) -> &mut Header;
}

/// The part of a header that every version has.
#[derive(Debug, Deserialize)]
struct AnyHeader {
    version: u32,
}

impl Sealed for Header {
    const KEY: &'static str = KEY;
    const WHAT: &'static str = "router";

    fn router(&mut self) -> &mut Header {
        self
    }
}

/// Writes a router (`-` is standard output); the file appears whole or not at all. The same router gives the same bytes.
///
/// # Errors
/// If the file cannot be written.
pub fn save_router(path: impl AsRef<Path>, router: &Router) -> Result<()> {
    let path = path.as_ref();
    let bytes = router_bytes(router).map_err(Error::content(path))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

/// Reads a router (`-` is standard input), checking everything: a router file is untrusted input.
///
/// # Errors
/// If the file cannot be read, is damaged, contradicts itself or is from a newer version.
pub fn load_router(path: impl AsRef<Path>) -> Result<Router> {
    let path = path.as_ref();
    let bytes = read_all(path)?;
    parse_router(&bytes).map_err(Error::content(path))
}

/// The bytes of a router file.
///
/// # Errors
/// If this version cannot store the router.
pub fn router_bytes(router: &Router) -> std::result::Result<Vec<u8>, ContentError> {
    let mut tensors = Tensors::default();
    tensors.rows(router.rows());
    let seed = tensors.cells(router.cells(), router.backoff()).map_err(ContentError::Unstorable)?;
    let header = Header::new(router.partition(), router.is_recalibrated(), router.rows(), &tensors);
    seal(Header { seed, ..header }, &tensors).map_err(ContentError::Unstorable)
}

/// A file of these tensors, with its checksum.
pub(crate) fn seal<H: Sealed>(mut header: H, tensors: &Tensors) -> Parsed<Vec<u8>> {
    let views = tensors.views().map_err(|e| e.to_string())?;
    header.router().sha256 = checksum(&header, views.iter().map(|(name, view)| (*name, view)))?;
    let header = serde_json::to_string(&header).map_err(|e| e.to_string())?;
    safetensors::serialize(views, Some([(H::KEY.to_owned(), header)].into())).map_err(|e| e.to_string())
}

/// Reads a router from the bytes of its file.
///
/// # Errors
/// If the bytes are damaged, contradict themselves or are from a newer version.
pub fn parse_router(bytes: &[u8]) -> std::result::Result<Router, ContentError> {
    unseal(bytes, |header: &Header, read| read.router(header))
}

/// Reads a file whose version and checksum are right.
pub(crate) fn unseal<H: Sealed, T>(
    bytes: &[u8],
    read: impl FnOnce(&H, &Reader<'_>) -> Parsed<T>,
) -> std::result::Result<T, ContentError> {
    let damaged = |e: &dyn std::fmt::Display| ContentError::Damaged { what: H::WHAT, reason: e.to_string() };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(&e))?;
    let text = metadata.metadata().as_ref().and_then(|m| m.get(H::KEY));
    let text = text.ok_or_else(|| damaged(&format!("no {} header", H::KEY)))?;
    let AnyHeader { version } = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    if version == 0 || version > VERSION {
        return Err(ContentError::Version { what: H::WHAT, version, newest: VERSION });
    }
    let mut header: H = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(&e))?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let claimed = std::mem::take(&mut header.router().sha256);
    let found = checksum(&header, tensors.iter().map(|(name, view)| (name.as_str(), view)));
    if claimed != found.map_err(|e| damaged(&e))? {
        return Err(damaged(&"its checksum does not match"));
    }
    let found = read(&header, &Reader { file: &file }).map_err(|e| damaged(&e))?;
    // An older program would take the file for one that it knows.
    let (claimed, needed) = (header.router().version, version_of(|wanted| file.tensor(wanted).is_ok()));
    if claimed != needed {
        return Err(damaged(&format!("its format is {needed}, and it claims to be {claimed}")));
    }
    Ok(found)
}

/// SHA-256 over the header, its checksum still empty, and over every tensor's name, type, shape and bytes, by name.
fn checksum<'a>(
    header: &impl Serialize,
    tensors: impl Iterator<Item = (&'a str, &'a TensorView<'a>)>,
) -> std::result::Result<String, String> {
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(header).map_err(|e| e.to_string())?);
    for (name, view) in tensors {
        hash.update(format!("\n{name} {:?} {:?}\n", view.dtype(), view.shape()));
        hash.update(view.data());
    }
    Ok(hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Tensors to write, kept by name.
#[derive(Default)]
pub(crate) struct Tensors(Vec<(String, Dtype, Vec<usize>, Vec<u8>)>);

impl Tensors {
    /// What a table holds.
    pub(crate) fn rows(&mut self, table: &Table) {
        let (rows, classes) = (table.rows(), table.classes().len());
        self.reals("probs", vec![rows, classes], &table.predictions());
        self.counts("votes", vec![rows, classes], (0..rows).flat_map(|row| table.votes(row)).flat_map(|v| v.counts()));
        if table.has_weights() {
            self.reals("weights", vec![rows], &(0..rows).map(|row| table.weight(row)).collect::<Vec<_>>());
        }
        if !table.feature_names().is_empty() {
            let values: Vec<f64> = (0..rows).flat_map(|row| table.features(row)).copied().collect();
            self.reals("features", vec![rows, table.feature_names().len()], &values);
        }
        for (name, probs) in table.oracles() {
            self.reals(&format!("oracle.{name}"), vec![rows, classes], probs);
        }
    }

    /// What cells are made of; the seed of a forest.
    pub(crate) fn cells(&mut self, cells: &Cells, backoff: &Cells) -> Parsed<Option<u64>> {
        let mut seed = None;
        for (i, axis) in cells.axes().iter().enumerate() {
            let edges = format!("axis.{i}.edges");
            match axis {
                Axis::TopClass { edges, .. } => self.edges(i, edges),
                Axis::Pooled { groups, edges, .. } => {
                    self.edges(i, edges);
                    self.counts(&format!("axis.{i}.groups"), vec![groups.len()], groups);
                }
                Axis::Confidence { edges: e } | Axis::Feature { edges: e, .. } => {
                    self.reals(&edges, vec![e.values().len()], e.values());
                }
                Axis::LevelSets { levels, classes } => {
                    let bytes = levels.iter().flat_map(|x| x.to_le_bytes()).collect();
                    let shape = vec![levels.len() / classes, *classes];
                    self.push(&format!("axis.{i}.levels"), Dtype::F32, shape, bytes);
                }
                Axis::Tree { trees } => self.trees("trees", trees),
                Axis::Forest { forest, .. } => {
                    self.trees("trees", forest.trees());
                    seed = Some(forest.seed());
                }
                Axis::HonestForest { forest } => {
                    let scorer = forest.scorer();
                    self.trees("trees", scorer.trees());
                    self.counts("trees.shares", vec![forest.shares().len()], forest.shares());
                    self.reals("trees.scores", vec![scorer.trees().leaves(), scorer.width()], scorer.leaf_scores());
                    self.trees("cells", forest.cells());
                }
                other => return Err(format!("this version cannot store the partition axis {other:?}")),
            }
        }
        if let [Axis::Confidence { edges }] = backoff.axes() {
            self.reals("backoff.edges", vec![edges.values().len()], edges.values());
        }
        Ok(seed)
    }

    /// Edges of several classes or groups of them, one after the other, and how many each has.
    fn edges(&mut self, axis: usize, edges: &[Edges]) {
        let all: Vec<f64> = edges.iter().flat_map(|edges| edges.values()).copied().collect();
        self.reals(&format!("axis.{axis}.edges"), vec![all.len()], &all);
        let counts: Vec<u32> = edges.iter().map(|edges| edges.values().len() as u32).collect();
        self.counts(&format!("axis.{axis}.counts"), vec![counts.len()], &counts);
    }

    pub(crate) fn words(&mut self, name: &str, values: &[u64]) {
        self.push(name, Dtype::U64, vec![values.len()], values.iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    fn push(&mut self, name: &str, dtype: Dtype, shape: Vec<usize>, bytes: Vec<u8>) {
        self.0.push((name.to_owned(), dtype, shape, bytes));
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
    }

    fn reals(&mut self, name: &str, shape: Vec<usize>, values: &[f64]) {
        self.push(name, Dtype::F64, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    fn counts<'a>(&mut self, name: &str, shape: Vec<usize>, values: impl IntoIterator<Item = &'a u32>) {
        self.push(name, Dtype::U32, shape, values.into_iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    fn trees(&mut self, what: &str, trees: &Trees) {
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
        self.counts(&format!("{what}.roots"), vec![trees.count()], trees.roots());
        self.counts(&format!("{what}.inputs"), vec![inputs.len()], &inputs);
        self.counts(&format!("{what}.left"), vec![left.len()], &left);
        self.reals(&format!("{what}.thresholds"), vec![thresholds.len()], &thresholds);
        self.push(&format!("{what}.missing"), Dtype::U8, vec![missing.len()], missing);
    }

    fn views(&self) -> std::result::Result<Vec<(&str, TensorView<'_>)>, safetensors::SafeTensorError> {
        self.0
            .iter()
            .map(|(name, dtype, shape, bytes)| Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?)))
            .collect()
    }
}

/// How many inputs trees have: the probabilities, the confidence and the features.
fn inputs(header: &Header, features: &[String]) -> usize {
    header.classes.len() + 1 + features.len()
}

/// Tensors being read, each checked for type and shape.
pub(crate) struct Reader<'a> {
    file: &'a SafeTensors<'a>,
}

pub(crate) type Parsed<T> = std::result::Result<T, String>;

impl Reader<'_> {
    fn router(&self, header: &Header) -> Parsed<Router> {
        let text = |e: pointsman::Error| e.to_string();
        let partition = header.partition()?;
        let (table, backoff) = (self.table(header)?, self.backoff(header)?);
        if let [Factor::Forest { .. }] = partition.factors() {
            let seed = header.seed.ok_or("a forest without its seed")?;
            if header.recalibrated {
                return Err("a forest that serves centroids".into());
            }
            let trees = self.trees("trees", inputs(header, &header.features))?;
            return Router::from_forest(partition, trees, seed, backoff, &table).map_err(text);
        }
        let cells = self.cells(header, &partition, &header.features)?;
        Router::from_parts(partition, cells, backoff, header.recalibrated, &table).map_err(text)
    }

    pub(crate) fn backoff(&self, header: &Header) -> Parsed<Cells> {
        let text = |e: pointsman::Error| e.to_string();
        let edges = Edges::of_confidence(self.reals("backoff.edges", None)?).map_err(text)?;
        Cells::new(header.classes.len(), vec![Axis::Confidence { edges }], Vec::new()).map_err(text)
    }

    /// The cells of a partition that is no forest; `features` are those they need.
    pub(crate) fn cells(&self, header: &Header, partition: &Partition, features: &[String]) -> Parsed<Cells> {
        let mut axes = Vec::new();
        for (i, factor) in partition.factors().iter().enumerate() {
            axes.push(match factor {
                Factor::Tree => Axis::Tree { trees: self.trees("trees", inputs(header, features))? },
                Factor::HonestForest { .. } => {
                    Axis::HonestForest { forest: self.honest_forest(inputs(header, features))? }
                }
                factor => self.axis(i, factor, header.classes.len(), features)?,
            });
        }
        Cells::new(header.classes.len(), axes, features.to_vec()).map_err(|e| e.to_string())
    }

    fn honest_forest(&self, inputs: usize) -> Parsed<HonestForest> {
        let shares = self.counts("trees.shares", None)?;
        let width = HonestForest::LOSSES + shares.len();
        let scores = self.reals("trees.scores", Some(width))?;
        let (trees, cells) = (self.trees("trees", inputs)?, self.trees("cells", width)?);
        Scorer::new(trees, width, scores)
            .and_then(|scorer| HonestForest::new(scorer, shares, cells))
            .map_err(|e| e.to_string())
    }

    /// Trees over so many inputs.
    fn trees(&self, what: &str, width: usize) -> Parsed<Trees> {
        let [roots, inputs, left] =
            ["roots", "inputs", "left"].map(|name| self.counts(&format!("{what}.{name}"), None));
        let (inputs, left, thresholds) = (inputs?, left?, self.reals(&format!("{what}.thresholds"), None)?);
        let missing = self.bytes(&format!("{what}.missing"), Dtype::U8, None)?;
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

    pub(crate) fn table(&self, header: &Header) -> Parsed<Table> {
        let text = |e: pointsman::Error| e.to_string();
        let classes = header.classes.len();
        let mut table = Table::new(header.classes.clone(), self.reals("probs", Some(classes))?).map_err(text)?;
        table = table.with_votes(self.counts("votes", Some(classes))?).map_err(text)?;
        if self.has("weights") {
            table = table.with_weights(self.reals("weights", None)?).map_err(text)?;
        }
        if !header.features.is_empty() {
            let values = self.reals("features", Some(header.features.len()))?;
            table = table.with_features(header.features.clone(), values).map_err(text)?;
        }
        for name in &header.oracles {
            let probs = self.reals(&format!("oracle.{name}"), Some(classes))?;
            table = table.with_oracle(name.clone(), probs).map_err(text)?;
        }
        Ok(table)
    }

    /// Confidence edges of several classes or groups of them.
    fn edges(&self, axis: usize) -> Parsed<Vec<Edges>> {
        let name = format!("axis.{axis}.edges");
        let (mut all, counts) = (self.reals(&name, None)?, self.counts(&format!("axis.{axis}.counts"), None)?);
        let mut edges = Vec::with_capacity(counts.len());
        for count in counts {
            let count = count as usize;
            if count > all.len() {
                return Err(format!("{name} is shorter than its counts say"));
            }
            let rest = all.split_off(count);
            edges.push(Edges::of_confidence(std::mem::replace(&mut all, rest)).map_err(|e| e.to_string())?);
        }
        if !all.is_empty() {
            return Err(format!("{name} is longer than its counts say"));
        }
        Ok(edges)
    }

    fn axis(&self, i: usize, factor: &Factor, classes: usize, features: &[String]) -> Parsed<Axis> {
        let name = format!("axis.{i}.edges");
        let text = |e: pointsman::Error| e.to_string();
        Ok(match factor {
            Factor::TopClass { .. } => Axis::top_class(self.edges(i)?),
            Factor::Pooled => Axis::pooled(self.counts(&format!("axis.{i}.groups"), None)?, self.edges(i)?),
            Factor::Confidence { .. } => {
                Axis::Confidence { edges: Edges::of_confidence(self.reals(&name, None)?).map_err(text)? }
            }
            Factor::LevelSets => {
                let bytes = self.bytes(&format!("axis.{i}.levels"), Dtype::F32, Some(classes))?;
                let levels = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
                Axis::LevelSets { levels, classes }
            }
            Factor::Feature { name: feature, .. } => {
                let slot = features.iter().position(|f| f == feature).ok_or("a feature without a name")?;
                let edges = Edges::of_feature(self.reals(&name, None)?).map_err(text)?;
                Axis::Feature { name: feature.clone(), slot, edges }
            }
            other => return Err(format!("unknown factor {other}")),
        })
    }

    pub(crate) fn words(&self, name: &str) -> Parsed<Vec<u64>> {
        Ok(self.bytes(name, Dtype::U64, None)?.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.file.tensor(name).is_ok()
    }

    /// A tensor's bytes, if it has the type and, with `width`, that many columns.
    fn bytes(&self, name: &str, dtype: Dtype, width: Option<usize>) -> Parsed<&[u8]> {
        let view = self.file.tensor(name).map_err(|_| format!("the array {name} is missing"))?;
        let fits = match (view.shape(), width) {
            ([_], None) => true,
            ([_, columns], Some(width)) => *columns == width,
            _ => false,
        };
        if view.dtype() != dtype || !fits {
            return Err(format!("the array {name} has type {:?} and shape {:?}", view.dtype(), view.shape()));
        }
        Ok(view.data())
    }

    fn reals(&self, name: &str, width: Option<usize>) -> Parsed<Vec<f64>> {
        Ok(self.bytes(name, Dtype::F64, width)?.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    fn counts(&self, name: &str, width: Option<usize>) -> Parsed<Vec<u32>> {
        Ok(self.bytes(name, Dtype::U32, width)?.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect())
    }
}
