//! The router file: a `.safetensors` file, which any language can read and which is checked when it is read.
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
//! | `trees.inputs` | u32, nodes | the input of a node: the classes' probabilities, the confidence, then the features; 4294967295 is a leaf |
//! | `trees.thresholds` | f64, nodes | at or above it a row goes to the right child; 0 in a leaf |
//! | `trees.left` | u32, nodes | the left child, the right one comes next; 0 in a leaf |
//! | `trees.missing` | u8, nodes | 1 if a row without a value goes to the right |
//! | `trees.bootstrap` | f64, 2 | the share of the rows that each tree was grown on, and the number of rows it was drawn from, in the label-free order; left out if the share is 0.6 (`forest`) |
//! | `leaves.scores` | f64, leaves | the score of each leaf (`forest`) |
//! | `axis.0.edges` | f64 | edges of the score (`forest`) |
//! | `axis.0.rows` | u32, cells | the number of rows in each cell (`forest`) |
//! | `rows.ranks` | u32, rows | the rank of each row in the label-free order (`forest`) |
//! | `rows.leaves` | u16 or u32, trees × rows | the leaf of each row in each tree, counted from the tree's first leaf; u32 if a tree has more than 65,536 leaves (`forest`) |
//! | `leaves.weights`, `leaves.error_shares` | f64, leaves | the weight of each leaf's rows, and the share of their labels that are not their top class (`forest`) |
//! | `leaves.votes` | u32, pairs × 2 | leaf by leaf, each distinct vote vector, numbered by its first row, and its number of rows; left out if rows have weights, or too few of them share their votes (`forest`) |
//! | `leaves.vote_pairs` | u32, leaves | how many of these pairs each leaf has |
//! | `trees.shares` | u32 | classes whose label shares are scores (`honest-forest`) |
//! | `trees.scores` | f64, leaves × scores | per leaf: the mean reducible and irreducible Brier loss and these shares, estimated from rows that are not in the file |
//! | `cells.roots` and so on | as `trees.…` | the one tree over the scores whose leaves are the cells (`honest-forest`) |
//!
//! The one metadata key `pointsman` holds JSON: the format's version, the classes, the partition, the names of
//! the features, whether centroids are served, the seed of a forest, the number of rows that were added later, and a SHA-256 of everything else. Rows are stored in the order of
//! their cells. The cell of each row is not stored but found from its prediction when the file is read, so it cannot be wrong.
//!
//! The rows of a forest take long to assign to leaves, so what follows from rows and trees is stored: the last eight arrays for `forest` above.
//! Reading checks their lengths, ranges and sums, and [`Router::verify_leaves`] all of their values. Older files do not have them, and then
//! they are derived when the file is read.
//!
//! Files with leaves of rows have version 5, others with a share of rows per tree version 4, others with scores or groups version 3, others
//! with trees version 2, all others version 1. The checksum is over the header, still without it, and over the name, type, shape and bytes of
//! each tensor, by name; from version 5 on, over the SHA-256 of each 256 KiB of a tensor instead of its bytes.

mod arrays;
pub(crate) mod reader;
mod sealed;
mod source;
mod tensors;

use std::path::Path;

use pointsman::{Partition, Router, Table};
use serde::{Deserialize, Serialize};

use self::sealed::version_of;
pub(crate) use self::sealed::{KEY_OF_POLICIES, Sealed, begins_like_policy, hexadecimal, kind_of, seal, unseal};
pub(crate) use self::source::Source;
pub(crate) use self::tensors::Tensors;
use crate::atomic::{output_name, write_atomically};
use crate::error::{ContentError, Error, Parsed, Result, input_name};

/// The share of the rows that each tree of a forest is grown on, unless the table is large.
const SHARE_OF_SMALL_TABLES: f64 = 0.6;

/// The input of a leaf.
const LEAF: u32 = u32::MAX;

/// The JSON of the metadata key.
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
    #[serde(default, skip_serializing_if = "is_zero")]
    added_rows: usize,
    sha256: String,
}

/// Whether no rows were added, which is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(added_rows: &usize) -> bool {
    *added_rows == 0
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

    pub(crate) fn classes(&self) -> &[String] {
        &self.classes
    }

    pub(crate) fn features(&self) -> &[String] {
        &self.features
    }

    /// The header of a file with these tensors, its checksum still empty.
    pub(crate) fn new(partition: &Partition, recalibrated: bool, rows: &Table, tensors: &Tensors<'_>) -> Self {
        let oracles = rows.oracles().map(|(name, _)| name.to_owned()).collect();
        Self { oracles, ..Self::without_rows(partition, recalibrated, rows.classes(), rows.feature_names(), tensors) }
    }

    /// The header of a file without rows.
    pub(crate) fn without_rows(
        partition: &Partition,
        recalibrated: bool,
        classes: &[String],
        features: &[String],
        tensors: &Tensors<'_>,
    ) -> Self {
        Self {
            version: version_of(|name| tensors.has(name)),
            classes: classes.to_vec(),
            partition: partition.to_string(),
            recalibrated,
            features: features.to_vec(),
            oracles: Vec::new(),
            seed: None,
            added_rows: 0,
            sha256: String::new(),
        }
    }

    pub(crate) fn with_seed(self, seed: Option<u64>) -> Self {
        Self { seed, ..self }
    }
}

impl Sealed for Header {
    const KEY: &'static str = "pointsman";
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
    let bytes = router_bytes(router).map_err(Error::content(output_name(path)))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

/// Reads a router (`-` is standard input). A router file is untrusted input: everything is checked, except whether the stored leaves of a
/// forest are those of its rows, which [`Router::verify_leaves`] checks.
///
/// # Errors
/// If the file cannot be read, is damaged, contradicts itself or is from a newer version.
pub fn load_router(path: impl AsRef<Path>) -> Result<Router> {
    let path = path.as_ref();
    read_router(&Source::open(path)?).map_err(Error::content(input_name(path)))
}

/// The bytes of a router file.
///
/// # Errors
/// If this version cannot store the router.
pub fn router_bytes(router: &Router) -> std::result::Result<Vec<u8>, ContentError> {
    let (parts, mut tensors) = (router.forest_parts(), Tensors::default());
    tensors.add_rows(router.rows());
    if let Some(parts) = &parts {
        tensors.add_forest_parts(parts).map_err(ContentError::Unstorable)?;
    }
    let seed = tensors.add_cells(router.cells(), router.backoff()).map_err(ContentError::Unstorable)?;
    let header = Header::new(router.partition(), router.is_recalibrated(), router.rows(), &tensors);
    seal(Header { seed, added_rows: router.added_rows(), ..header }, &tensors).map_err(ContentError::Unstorable)
}

/// Reads a router from the bytes of its file.
///
/// # Errors
/// If the bytes are damaged, contradict themselves or are from a newer version.
pub fn parse_router(bytes: &[u8]) -> std::result::Result<Router, ContentError> {
    read_router(&Source::from_bytes(bytes))
}

/// Reads a router from the bytes of its file, wherever they are.
pub(crate) fn read_router(source: &Source<'_>) -> std::result::Result<Router, ContentError> {
    unseal(source, |header: &Header, read| read.router(header))
}
