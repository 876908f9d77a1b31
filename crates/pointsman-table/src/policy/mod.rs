//! The policy file: a router compiled for a task, without calibration rows, as a `.safetensors` file.
//!
//! It has the cells or trees of a router file, under the same names, and the estimates by which queries are decided:
//!
//! | tensor | type | what |
//! |---|---|---|
//! | `axis.…`, `backoff.edges`, `trees.…`, `cells.…` | | as in a router file |
//! | `sources.rows` | u64, sources | calibration rows behind each estimate: those of the cells and, if a cell has none, of each confidence bin and of all rows |
//! | `sources.paired_rows` | u64, sources | how many of them have two labels or more |
//! | `sources.weights`, `sources.effective_rows` | f64, sources | their weight, and how many rows of equal weight they are worth |
//! | `sources.centroids` | f64, sources × classes | their mean label distribution |
//! | `sources.losses` | f64, sources × (3 + 2 oracles) | the total loss, both ends of the irreducible loss and of each other oracle's loss |
//! | `axis.0.edges` | f64 | edges of the score (`forest`) |
//! | `leaves.scores` | f64, leaves | the score of each leaf (`forest`) |
//! | `leaves.losses` | f64, leaves × columns | the total loss, the irreducible loss (both ends if they differ anywhere), the share of errors if a slope is not zero, both ends of each other oracle's loss (`forest`) |
//! | `leaves.slopes` | f64, 2 | the slopes of the own part of a query's prediction (`forest`) |
//!
//! The one metadata key `pointsman-policy` holds JSON: the format's version, the task as the text of a task file, the oracles beside the
//! Bayes-optimal one, what was promised from held-out rows, the SHA-256 of the router's file, and the header of a router file with the
//! checksum of everything else.

mod task_text;

use std::path::Path;
use std::sync::Arc;

use pointsman::policy::{FigureParts, LeafParts, PolicyParts, SourceParts};
use pointsman::{Oracle, Policy, Router, Task};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic::{output_name, write_atomically};
use crate::error::{ContentError, Error, Parsed, Result, input_name};
use crate::router::reader::Reader;
use crate::router::{
    Header, KEY_OF_POLICIES, Sealed, Source, Tensors, begins_like_policy, hexadecimal, kind_of, read_router, seal,
    unseal,
};
use crate::router_bytes;
use crate::task::parse_task;
pub use task_text::task_text;

/// The version of the format.
const VERSION: u32 = 1;

/// The JSON of the metadata key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyHeader {
    version: u32,
    /// The text of a task file.
    task: String,
    /// The name of the first route and the kind of each oracle that is not Bayes-optimal.
    oracles: Vec<(String, String)>,
    figures: FigureParts,
    /// The SHA-256 of the router's file.
    router_sha256: Option<String>,
    router: Header,
}

impl Sealed for PolicyHeader {
    const KEY: &'static str = KEY_OF_POLICIES;
    const WHAT: &'static str = "policy";
    const NEWEST: u32 = VERSION;

    fn router(&mut self) -> &mut Header {
        &mut self.router
    }
}

/// A router, or a policy that was compiled from one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RouterOrPolicy {
    /// A router, which needs a task.
    Router(Router),
    /// A policy, which has a task.
    Policy(Box<Policy>),
}

/// Writes a policy without calibration rows (`-` is standard output); the file appears whole or not at all. The same policy gives the same
/// bytes.
///
/// # Errors
/// If the file cannot be written.
pub fn save_policy(path: impl AsRef<Path>, policy: &Policy) -> Result<()> {
    let path = path.as_ref();
    let bytes = policy_bytes(policy).map_err(Error::content(output_name(path)))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

/// Reads a policy (`-` is standard input), checking everything: a policy file is untrusted input.
///
/// # Errors
/// If the file cannot be read, is damaged, contradicts itself or is from a newer version.
pub fn load_policy(path: impl AsRef<Path>) -> Result<Policy> {
    let path = path.as_ref();
    unseal(&Source::open(path)?, read).map_err(Error::content(input_name(path)))
}

/// Reads a router or a policy (`-` is standard input), checking everything.
///
/// # Errors
/// If the file cannot be read, is damaged, contradicts itself or is from a newer version.
pub fn load_router_or_policy(path: impl AsRef<Path>) -> Result<RouterOrPolicy> {
    let path = path.as_ref();
    read_router_or_policy(&Source::open(path)?).map_err(Error::content(input_name(path)))
}

/// Reads a router or a policy from the bytes of its file.
///
/// # Errors
/// If the bytes are damaged, contradict themselves or are from a newer version.
pub fn parse_router_or_policy(bytes: &[u8]) -> std::result::Result<RouterOrPolicy, ContentError> {
    read_router_or_policy(&Source::from_bytes(bytes))
}

fn read_router_or_policy(source: &Source<'_>) -> std::result::Result<RouterOrPolicy, ContentError> {
    let is_policy = kind_of(source).map_or_else(|| begins_like_policy(source), |(key, _)| key == KEY_OF_POLICIES);
    match is_policy {
        true => unseal(source, read).map(|policy| RouterOrPolicy::Policy(Box::new(policy))),
        false => read_router(source).map(RouterOrPolicy::Router),
    }
}

/// The bytes of a policy file. The promise is estimated from held-out rows first, which takes longer than compiling.
///
/// # Errors
/// If this version cannot store the policy.
pub fn policy_bytes(policy: &Policy) -> std::result::Result<Vec<u8>, ContentError> {
    let router_sha256 = match policy.router() {
        Some(router) => Some(hexadecimal(&Sha256::digest(router_bytes(router)?))),
        None => policy.origin().map(str::to_owned),
    };
    write(policy.to_parts(), router_sha256).map_err(ContentError::Unstorable)
}

fn write(parts: PolicyParts, router_sha256: Option<String>) -> Parsed<Vec<u8>> {
    let mut tensors = Tensors::default();
    let seed = tensors.add_cells(&parts.cells, &parts.backoff)?;
    let SourceParts { rows, paired_rows, weights, effective_rows, centroids, losses } = &parts.sources;
    let count = rows.len();
    tensors.add_u64s("sources.rows", rows);
    tensors.add_u64s("sources.paired_rows", paired_rows);
    tensors.add_reals("sources.weights", vec![count], weights);
    tensors.add_reals("sources.effective_rows", vec![count], effective_rows);
    tensors.add_reals("sources.centroids", vec![count, parts.classes.len()], centroids);
    tensors.add_reals("sources.losses", vec![count, losses.len() / count.max(1)], losses);
    if let Some((LeafParts { losses, slopes }, leaves)) = parts.leaves.as_ref().zip(leaves_of(&parts)) {
        tensors.add_reals("leaves.losses", vec![leaves, losses.len() / leaves.max(1)], losses);
        tensors.add_reals("leaves.slopes", vec![2], slopes);
    }
    let PolicyParts { partition, classes, cells, recalibrated, task, oracles, figures, .. } = &parts;
    let text = task_text(task);
    let is_exact = parse_task(&text).is_ok_and(|back| back.for_classes(classes).is_ok_and(|back| back == *task));
    if !is_exact {
        return Err(format!("this version cannot store the task {}", task.loss()));
    }
    let router = Header::without_rows(partition, *recalibrated, classes, cells.features(), &tensors).with_seed(seed);
    let oracles = oracles.iter().map(|(name, oracle)| (name.clone(), oracle.to_string())).collect();
    let header =
        PolicyHeader { version: VERSION, task: text, oracles, figures: figures.clone(), router_sha256, router };
    seal(header, &tensors)
}

/// The number of leaves of a forest.
fn leaves_of(parts: &PolicyParts) -> Option<usize> {
    match parts.cells.axes() {
        [pointsman::partition::Axis::Forest { forest, .. }] => Some(forest.trees().leaves()),
        _ => None,
    }
}

/// The SHA-256 of the text of a task: equal tasks have equal hashes, however their files were written.
#[must_use]
pub fn task_sha256(task: &Task) -> String {
    hexadecimal(&Sha256::digest(task_text(task)))
}

/// Reads a policy from the bytes of its file.
///
/// # Errors
/// If the bytes are damaged, contradict themselves or are from a newer version.
pub fn parse_policy(bytes: &[u8]) -> std::result::Result<Policy, ContentError> {
    unseal(&Source::from_bytes(bytes), read)
}

fn read(header: &PolicyHeader, read: &mut Reader) -> Parsed<Policy> {
    let PolicyHeader { task, oracles, figures, router_sha256, router, .. } = header;
    let is_hash = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if router_sha256.as_ref().is_some_and(|text| !is_hash(text)) {
        return Err("the hash of the router is not a SHA-256".into());
    }
    let partition = router.partition()?;
    let cells = read.cells_without_rows(router, &partition, router.features())?;
    let sources = SourceParts {
        rows: read.u64s("sources.rows")?,
        paired_rows: read.u64s("sources.paired_rows")?,
        weights: read.reals("sources.weights", None)?,
        effective_rows: read.reals("sources.effective_rows", None)?,
        centroids: read.reals("sources.centroids", Some(router.classes().len()))?,
        losses: read.reals("sources.losses", Some(3 + 2 * oracles.len()))?,
    };
    let leaves = match read.has("leaves.losses") {
        false => None,
        true => Some(LeafParts { losses: read.matrix("leaves.losses")?, slopes: read.pair("leaves.slopes")? }),
    };
    let oracle = |(name, kind): &(String, String)| -> Parsed<(String, Oracle)> {
        Ok((name.clone(), kind.parse().map_err(|e: pointsman::Error| e.to_string())?))
    };
    let parts = PolicyParts {
        cells: Arc::new(cells),
        backoff: Arc::new(read.backoff(router)?),
        recalibrated: router.is_recalibrated(),
        task: parse_task(task).map_err(|e| format!("its task: {e}"))?,
        oracles: oracles.iter().map(oracle).collect::<Parsed<_>>()?,
        sources,
        leaves,
        figures: figures.clone(),
        origin: router_sha256.clone(),
        partition,
        classes: router.classes().to_vec(),
    };
    Policy::from_parts(parts).map_err(|e| e.to_string())
}
