//! Exact sums of weights.

/// The 64-bit words of a sum; the last word holds the highest bits.
pub(super) const WORDS: usize = 13;

/// The number of fractional bits: enough for the smallest weight, 10⁻¹⁰⁰.
const FRACTION_BITS: i32 = 7 * 64;

/// A sum of weights as a long fixed-point number. Addition is exact, so the sum does not depend on the order of the weights or on
/// how they were divided among machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum([u64; WORDS]);

impl Sum {
    /// A sum from its words; `None` if it is larger than any sum of weights.
    pub(super) fn from_words(words: [u64; WORDS]) -> Option<Self> {
        // The bits above are reserved for adding sums.
        (words[WORDS - 1] < 1 << 40).then_some(Self(words))
    }

    pub(super) fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Adds a weight, which is from 10⁻¹⁰⁰ to 10¹⁰⁰.
    pub(super) fn add(&mut self, weight: f64) {
        let bits = weight.to_bits();
        let exponent = (bits >> 52 & 0x7FF) as i32 - 1075;
        let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
        let place = (exponent + FRACTION_BITS) as usize;
        let shifted = u128::from(mantissa) << (place % 64);
        let mut words = [0; WORDS];
        words[place / 64] = shifted as u64;
        words[place / 64 + 1] = (shifted >> 64) as u64;
        self.absorb(&Self(words));
    }

    /// Adds another sum.
    pub(super) fn absorb(&mut self, other: &Self) {
        let mut carry = false;
        for (word, more) in self.0.iter_mut().zip(other.0) {
            let (sum, over) = word.overflowing_add(more);
            let (sum, again) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, over || again);
        }
    }

    /// The sum as a floating-point number. Integers are exact; other values may differ in the last digits, but equal sums give equal
    /// values.
    pub(super) fn value(&self) -> f64 {
        let whole = self.0.iter().rev().fold(0.0, |high, &word| high * 2_f64.powi(64) + word as f64);
        whole * 2_f64.powi(-FRACTION_BITS)
    }
}

impl PartialOrd for Sum {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::mix::{nth, uniform};

    fn sum(weights: impl IntoIterator<Item = f64>) -> Sum {
        let mut sum = Sum::default();
        weights.into_iter().for_each(|weight| sum.add(weight));
        sum
    }

    #[test]
    fn sum_does_not_depend_on_order_or_grouping() {
        let weights: Vec<f64> = (0..1000).map(|i| 10_f64.powf(200.0 * uniform(nth(3, i)) - 100.0)).collect();
        let all = sum(weights.iter().copied());
        assert_eq!(all, sum(weights.iter().rev().copied()));
        let (mut first, second) = (sum(weights[..300].iter().copied()), sum(weights[300..].iter().copied()));
        first.absorb(&second);
        assert_eq!(all, first);
        assert!(second < all && sum([1.0]) < sum([1.0, 1e-100]));
    }

    #[test]
    fn values_match_floating_point_sums() {
        assert_eq!(sum([]).value(), 0.0);
        assert_eq!(sum(vec![1.0; 12_345]).value(), 12_345.0);
        assert_eq!(sum([0.1, 0.2]).value(), 0.1 + 0.2);
        for extreme in [1e-100, 1e100, 0.3] {
            assert_eq!(sum([extreme]).value(), extreme);
        }
        assert_eq!(Sum::from_words(*sum([1e100]).words()), Some(sum([1e100])));
        assert_eq!(Sum::from_words([u64::MAX; WORDS]), None);
    }
}
