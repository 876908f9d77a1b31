//! Changes to a valid file, encoded as bytes, so that a fuzzer gets past the checks of a file's form.

use safetensors::tensor::Dtype;

use crate::seal::{PartHeader, Parts, PolicyHeader, Tensor};

/// The file encoded by some bytes. The first byte selects: a raw file, a file with a repaired checksum, or changes to a
/// valid file.
#[must_use]
pub fn served(data: &[u8], bases: &[Parts]) -> Option<Vec<u8>> {
    let (mode, bytes) = data.split_first()?;
    match mode % 3 {
        0 => Some(bytes.to_vec()),
        1 => Parts::of(bytes).and_then(Parts::seal),
        _ => Recipe(bytes).cook(bases).seal(),
    }
}

/// Bytes that encode changes to a valid file.
pub struct Recipe<'a>(pub &'a [u8]);

impl Recipe<'_> {
    fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    fn text(&mut self) -> String {
        let length = usize::from(self.byte() % 32).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    fn real(&mut self) -> f64 {
        match self.byte() % 8 {
            0 => f64::from_le_bytes(self.bytes()),
            1 => {
                self.pick(&[0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324])
            }
            2 => self.pick(&[1.0, 0.5, 1.0 + 1e-9, 1.0 - 1e-9, 1.000_1, 2.0, 1e-100, 1e100]),
            _ => f64::from(self.byte()) / 255.0,
        }
    }

    /// Applies changes to one of the valid files until the recipe is used up.
    ///
    /// # Panics
    /// If there is no valid file.
    #[must_use]
    pub fn cook(mut self, bases: &[Parts]) -> Parts {
        let mut parts = bases[usize::from(self.byte()) % bases.len()].clone();
        while !self.0.is_empty() {
            match (&mut parts.part, &mut parts.policy) {
                (Some(part), _) if self.byte() % 4 == 0 => self.change_part(part),
                (_, Some(policy)) if self.byte() % 4 == 0 => self.change_policy(policy),
                _ => self.change(&mut parts, bases),
            }
        }
        parts
    }

    fn change_part(&mut self, part: &mut PartHeader) {
        match self.byte() % 6 {
            0 => part.cap = None,
            1 => part.cap = Some((u64::from(self.byte() % 8), u64::from(self.byte()))),
            2 => part.cap = Some((u64::from_le_bytes(self.bytes()), u64::from_le_bytes(self.bytes()))),
            3 => part.needs.push(self.text()),
            4 => drop(part.needs.pop()),
            _ => part.version = u32::from(self.byte() % 5),
        }
    }

    fn change_policy(&mut self, policy: &mut PolicyHeader) {
        match self.byte() % 8 {
            0 => policy.task = self.text(),
            1 => policy.task.push_str(self.pick(&["budget = 0.1\n", "abstain = 0.1\n", "[[route]]\ncost = 1\n"])),
            2 => policy.oracles.push((self.text(), self.pick(&["measured", "bayes", "panel:m=3"]).to_owned())),
            3 => drop(policy.oracles.pop()),
            4 => policy.figures.shares.push(f64::from(self.byte()) / 255.0),
            5 => policy.figures.limit = None,
            6 => policy.router_sha256 = Some(self.text()),
            _ => policy.version = u32::from(self.byte() % 3),
        }
    }

    fn change(&mut self, parts: &mut Parts, bases: &[Parts]) {
        let header = &mut parts.header;
        match self.byte() % 16 {
            0 => header.partition = self.text(),
            1 => {
                let known = ["top-class:3", "confidence:4", "level-sets", "features:x_length=3", "top-class:100000"];
                header.partition = self.pick(&known).to_owned();
            }
            2 => {
                let more = self.pick(&["*level-sets", "*confidence:2", "*features:x_b=2", ",x_c=2"]);
                header.partition.push_str(more);
            }
            3 => header.classes.push(self.text()),
            4 => drop(header.classes.pop()),
            5 => header.features.push(self.text()),
            6 => drop(header.features.pop()),
            7 => header.oracles.push(self.text()),
            8 => header.recalibrated = !header.recalibrated,
            9 => header.version = u32::from(self.byte() % 6),
            10 => {
                // Replaces an array by that of another base.
                let other = &bases[usize::from(self.byte()) % bases.len()];
                let mut tensor = other.tensors[usize::from(self.byte()) % other.tensors.len()].clone();
                if self.byte() % 2 == 0 {
                    tensor.name =
                        self.pick(&["axis.0.edges", "axis.1.edges", "axis.0.counts", "axis.0.levels"]).to_owned();
                }
                parts.tensors.retain(|old| old.name != tensor.name);
                parts.tensors.push(tensor);
            }
            _ if parts.tensors.is_empty() => {}
            kind => {
                let index = usize::from(self.byte()) % parts.tensors.len();
                self.change_tensor(kind, index, parts);
            }
        }
    }

    fn change_tensor(&mut self, kind: u8, index: usize, parts: &mut Parts) {
        let tensor: &mut Tensor = &mut parts.tensors[index];
        let size = match tensor.dtype {
            Dtype::F64 | Dtype::U64 | Dtype::I64 => 8,
            _ => 4,
        };
        match kind {
            // One element.
            11 | 12 => {
                let elements = tensor.bytes.len() / size;
                if elements > 0 {
                    let at = usize::from(self.byte()) % elements * size;
                    let bytes = match tensor.dtype {
                        Dtype::F64 => self.real().to_le_bytes().to_vec(),
                        Dtype::F32 => (self.real() as f32).to_le_bytes().to_vec(),
                        Dtype::U64 | Dtype::I64 => self.bytes::<8>().to_vec(),
                        _ => u32::from(self.byte()).wrapping_sub(u32::from(self.byte() % 2)).to_le_bytes().to_vec(),
                    };
                    tensor.bytes[at..at + size].copy_from_slice(&bytes);
                }
            }
            // More or fewer rows.
            13 => {
                let Some(rows) = tensor.shape.first().copied() else { return };
                let width = tensor.shape.iter().skip(1).product::<usize>() * size;
                let wanted = rows.saturating_add_signed(isize::from(self.byte() as i8 % 4));
                if wanted > rows {
                    for _ in 0..(wanted - rows) * width / size {
                        let value = self.real();
                        match tensor.dtype {
                            Dtype::F64 => tensor.bytes.extend(value.to_le_bytes()),
                            Dtype::F32 => tensor.bytes.extend((value as f32).to_le_bytes()),
                            Dtype::U64 | Dtype::I64 => tensor.bytes.extend((value as u64).to_le_bytes()),
                            _ => tensor.bytes.extend((value as u32).to_le_bytes()),
                        }
                    }
                } else {
                    tensor.bytes.truncate(wanted * width);
                }
                tensor.shape[0] = wanted;
            }
            // The shape alone: transposed, flattened, or with zeros in it.
            14 => match self.byte() % 4 {
                0 => tensor.shape.reverse(),
                1 => tensor.shape = vec![tensor.shape.iter().product()],
                2 => tensor.shape.push(1),
                _ => {
                    tensor.shape = vec![0, usize::from(self.byte())];
                    tensor.bytes.clear();
                }
            },
            _ => match self.byte() % 3 {
                0 => drop(parts.tensors.remove(index)),
                1 => tensor.name = self.text(),
                _ => {
                    tensor.dtype = if size == 8 { Dtype::I64 } else { self.pick(&[Dtype::F32, Dtype::U32, Dtype::I32]) }
                }
            },
        }
    }
}
