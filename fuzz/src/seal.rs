//! Router files, parts of a calibration and policy files, disassembled and reassembled with a valid checksum.
//!
//! Otherwise the checksum would reject every mutation, and the code behind it would not be tested.

use std::collections::HashMap;

use pointsman::policy::FigureParts;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The metadata keys of the kinds of file.
const ROUTER: &str = "pointsman";
const PART: &str = "pointsman-part";
const POLICY: &str = "pointsman-policy";

/// The first version whose checksum is that of pieces of 256 KiB.
const FIRST_VERSION_OF_PIECES: u32 = 5;

/// The header of a router file, as in `pointsman-table`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    pub version: u32,
    pub classes: Vec<String>,
    pub partition: String,
    pub recalibrated: bool,
    pub features: Vec<String>,
    pub oracles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub sha256: String,
}

/// The header fields that a part of a calibration has in addition to a router's.
#[derive(Debug, Clone)]
pub struct PartHeader {
    pub version: u32,
    /// Rows and seed.
    pub cap: Option<(u64, u64)>,
    pub needs: Vec<String>,
}

/// The header of a part, as in `pointsman-table`.
#[derive(Serialize, Deserialize)]
struct WholePart {
    version: u32,
    cap: Option<(u64, u64)>,
    needs: Vec<String>,
    router: Header,
}

/// The header fields that a policy has in addition to a router's.
#[derive(Debug, Clone)]
pub struct PolicyHeader {
    pub version: u32,
    pub task: String,
    pub oracles: Vec<(String, String)>,
    pub figures: FigureParts,
    pub router_sha256: Option<String>,
}

/// The header of a policy, as in `pointsman-table`.
#[derive(Serialize, Deserialize)]
struct WholePolicy {
    version: u32,
    task: String,
    oracles: Vec<(String, String)>,
    figures: FigureParts,
    router_sha256: Option<String>,
    router: Header,
}

/// One array.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// A disassembled file.
#[derive(Debug, Clone)]
pub struct Parts {
    pub header: Header,
    /// Present if the file is a part of a calibration.
    pub part: Option<PartHeader>,
    /// Present if the file is a policy.
    pub policy: Option<PolicyHeader>,
    pub tensors: Vec<Tensor>,
}

impl Parts {
    /// Disassembles a file; `None` if it is malformed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
        let metadata = metadata.metadata().as_ref()?;
        let (header, part, policy) = match (metadata.get(PART), metadata.get(POLICY)) {
            (None, None) => (serde_json::from_str(metadata.get(ROUTER)?).ok()?, None, None),
            (Some(text), _) => {
                let WholePart { version, cap, needs, router } = serde_json::from_str(text).ok()?;
                (router, Some(PartHeader { version, cap, needs }), None)
            }
            (None, Some(text)) => {
                let whole: WholePolicy = serde_json::from_str(text).ok()?;
                let WholePolicy { version, task, oracles, figures, router_sha256, router } = whole;
                (router, None, Some(PolicyHeader { version, task, oracles, figures, router_sha256 }))
            }
        };
        let file = SafeTensors::deserialize(bytes).ok()?;
        let tensor = |(name, view): (String, TensorView<'_>)| Tensor {
            name,
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        Some(Self { header, part, policy, tensors: file.tensors().into_iter().map(tensor).collect() })
    }

    /// Assembles the file with a valid checksum; `None` if shapes and bytes disagree.
    #[must_use]
    pub fn seal(mut self) -> Option<Vec<u8>> {
        self.tensors.sort_by(|a, b| a.name.cmp(&b.name));
        self.tensors.dedup_by(|a, b| a.name == b.name);
        self.header.sha256 = String::new();
        let mut hash = Sha256::new();
        hash.update(self.header_text()?);
        for tensor in &self.tensors {
            hash.update(format!("\n{} {:?} {:?}\n", tensor.name, tensor.dtype, tensor.shape));
            match self.header.version >= FIRST_VERSION_OF_PIECES {
                true => tensor.bytes.chunks(1 << 18).for_each(|piece| hash.update(Sha256::digest(piece))),
                false => hash.update(&tensor.bytes),
            }
        }
        self.header.sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let views: Option<Vec<_>> = self
            .tensors
            .iter()
            .map(|t| Some((t.name.as_str(), TensorView::new(t.dtype, t.shape.clone(), &t.bytes).ok()?)))
            .collect();
        let key = match (&self.part, &self.policy) {
            (Some(_), _) => PART,
            (None, Some(_)) => POLICY,
            (None, None) => ROUTER,
        };
        safetensors::serialize(views?, Some(HashMap::from([(key.to_owned(), self.header_text()?)]))).ok()
    }

    fn header_text(&self) -> Option<String> {
        let router = self.header.clone();
        match (self.part.clone(), self.policy.clone()) {
            (None, None) => serde_json::to_string(&router).ok(),
            (Some(PartHeader { version, cap, needs }), _) => {
                serde_json::to_string(&WholePart { version, cap, needs, router }).ok()
            }
            (None, Some(PolicyHeader { version, task, oracles, figures, router_sha256 })) => {
                serde_json::to_string(&WholePolicy { version, task, oracles, figures, router_sha256, router }).ok()
            }
        }
    }
}
