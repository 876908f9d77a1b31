//! Router files taken apart and put together again with a checksum that is right.
//!
//! Without it the checksum would turn away every mutation, and nothing behind it would be tested.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The metadata key of a router file.
const KEY: &str = "pointsman";

/// The header of a router file, as `pointsman-table` has it.
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

/// One array.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// A router file in parts.
#[derive(Debug, Clone)]
pub struct Parts {
    pub header: Header,
    pub tensors: Vec<Tensor>,
}

impl Parts {
    /// Takes a file apart, if it is one.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
        let header = serde_json::from_str(metadata.metadata().as_ref()?.get(KEY)?).ok()?;
        let file = SafeTensors::deserialize(bytes).ok()?;
        let tensor = |(name, view): (String, TensorView<'_>)| Tensor {
            name,
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        Some(Self { header, tensors: file.tensors().into_iter().map(tensor).collect() })
    }

    /// The file with its checksum made right, if shapes and bytes agree.
    #[must_use]
    pub fn seal(mut self) -> Option<Vec<u8>> {
        self.tensors.sort_by(|a, b| a.name.cmp(&b.name));
        self.tensors.dedup_by(|a, b| a.name == b.name);
        self.header.sha256 = String::new();
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(&self.header).ok()?);
        for tensor in &self.tensors {
            hash.update(format!("\n{} {:?} {:?}\n", tensor.name, tensor.dtype, tensor.shape));
            hash.update(&tensor.bytes);
        }
        self.header.sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let views: Option<Vec<_>> = self
            .tensors
            .iter()
            .map(|t| Some((t.name.as_str(), TensorView::new(t.dtype, t.shape.clone(), &t.bytes).ok()?)))
            .collect();
        let header = serde_json::to_string(&self.header).ok()?;
        safetensors::serialize(views?, Some(HashMap::from([(KEY.to_owned(), header)]))).ok()
    }
}
