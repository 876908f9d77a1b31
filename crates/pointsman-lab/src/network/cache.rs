//! Trained networks on disk, so that a continued run does not train them again.

use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::Network;
use crate::error::Result;

const NAME: &str = "weights";

impl Network {
    /// Writes the weights as a safetensors file.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let bytes: Vec<u8> = self.weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::F32, vec![self.weights.len()], &bytes);
        let file = view.and_then(|view| safetensors::serialize([(NAME, view)], None));
        let file = file.map_err(|error| crate::Error::results(path, error.to_string()))?;
        Ok(pointsman_table::write_atomically(path, |out| out.write_all(&file))?)
    }

    /// Loads a network; `None` if the file is missing or does not hold a network of that width.
    pub(crate) fn load(path: &Path, width: usize) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let tensors = SafeTensors::deserialize(&bytes).ok()?;
        let tensor = tensors.tensor(NAME).ok().filter(|tensor| tensor.dtype() == Dtype::F32)?;
        let weights = tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        Self::from_weights(width, weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_network_loads_and_damaged_files_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let network = Network::new(4, 1);
        assert!(Network::load(&path, 4).is_none());
        network.save(&path).unwrap();
        assert_eq!(Network::load(&path, 4).as_ref(), Some(&network));
        assert!(Network::load(&path, 5).is_none());
        std::fs::write(&path, b"no network").unwrap();
        assert!(Network::load(&path, 4).is_none());
    }
}
