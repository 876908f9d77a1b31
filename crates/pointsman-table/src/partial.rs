//! Parts of a calibration as files, to be sent from the machine that has the rows to the one that merges.
//!
//! A router file with the rows that the part keeps and all their features; with a cap, two more arrays:
//!
//! | tensor | type | what |
//! |---|---|---|
//! | `keys` | u64, rows | the hash of each row's id |
//! | `seen` | u64, cells × 13 | the total weight of each cell's rows so far, a fixed-point number with 448 fractional bits, lowest word first |
//!
//! The part of a forest also has `leaves.scores` and `axis.0.edges`, as a policy file does: the scores of the sample on which it was grown.
//!
//! The metadata key is `pointsman-part`. Its JSON holds the version, the cap, the features the cells need, and the router's header.

use std::path::Path;

use pointsman::router::{Cap, Partial};
use serde::{Deserialize, Serialize};

use crate::atomic::{output_name, write_atomically};
use crate::error::{ContentError, Error, Result, input_name};
use crate::router::{Header, Sealed, Source, Tensors, seal, unseal};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartHeader {
    version: u32,
    /// Rows and seed.
    cap: Option<(usize, u64)>,
    needs: Vec<String>,
    router: Header,
}

impl Sealed for PartHeader {
    const KEY: &'static str = "pointsman-part";
    const WHAT: &'static str = "part of a calibration";

    fn router(&mut self) -> &mut Header {
        &mut self.router
    }
}

/// The bytes of a part.
///
/// # Errors
/// If this version cannot store its cells.
pub fn partial_bytes(part: &Partial) -> std::result::Result<Vec<u8>, ContentError> {
    let mut tensors = Tensors::default();
    tensors.add_rows(part.kept());
    let seed = tensors.add_cells(part.cells(), part.backoff()).map_err(ContentError::Unstorable)?;
    if part.cap().is_some() {
        tensors.add_u64s("keys", part.keys());
        tensors.add_u64s("seen", &part.seen());
    }
    let router = Header::new(part.partition(), part.is_recalibrated(), part.kept(), &tensors).with_seed(seed);
    let cap = part.cap().map(|cap| (cap.rows, cap.seed));
    let header = PartHeader { version: router.version(), cap, needs: part.cells().features().to_vec(), router };
    seal(header, &tensors).map_err(ContentError::Unstorable)
}

/// Reads a part from its bytes, checking everything.
///
/// # Errors
/// If the bytes are damaged, contradict themselves or are from a newer version.
pub fn parse_partial(bytes: &[u8]) -> std::result::Result<Partial, ContentError> {
    read(&Source::from_bytes(bytes))
}

fn read(source: &Source<'_>) -> std::result::Result<Partial, ContentError> {
    unseal(source, |header: &PartHeader, read| {
        let PartHeader { cap, needs, router, .. } = header;
        let partition = router.partition()?;
        let cells = read.cells_without_rows(router, &partition, needs)?;
        let (keys, seen) = match cap {
            Some(_) => (read.u64s("keys")?, read.u64s("seen")?),
            None => (Vec::new(), Vec::new()),
        };
        let rows = (read.table(router)?, keys, seen.as_slice());
        let cap = cap.map(|(rows, seed)| Cap { rows, seed });
        Partial::from_parts(partition, cells, read.backoff(router)?, router.is_recalibrated(), cap, rows)
            .map_err(|e| e.to_string())
    })
}

/// Writes a part (`-` is standard output); the file appears whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn save_partial(path: impl AsRef<Path>, part: &Partial) -> Result<()> {
    let path = path.as_ref();
    let bytes = partial_bytes(part).map_err(Error::content(output_name(path)))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

/// Reads a part (`-` is standard input), checking everything.
///
/// # Errors
/// If the file cannot be read, is damaged, contradicts itself or is from a newer version.
pub fn load_partial(path: impl AsRef<Path>) -> Result<Partial> {
    let path = path.as_ref();
    read(&Source::open(path)?).map_err(Error::content(input_name(path)))
}
