//! Values of a decision as stores write them: numbers as bytes, and values of a list as places in it.

use pointsman::Support;

/// The supports, in the order of their codes.
pub(super) const SUPPORTS: [Support; 3] = [Support::Enough, Support::Sparse, Support::Empty];

/// Numbers as bytes, the lowest byte first.
pub(super) fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Numbers from their bytes.
pub(super) fn reals(bytes: &[u8]) -> Vec<f64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| f64::from_le_bytes(*word)).collect()
}

/// The place of a value in a list that contains it.
pub(super) fn place<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter().position(|other| other == value).unwrap_or(0) as u8
}
