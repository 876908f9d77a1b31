//! Hashes and pseudo-random numbers that are the same on every machine and in every version. Random draws, bootstrap samples, row
//! orders and seeds are derived from them.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// The increment of SplitMix64.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Adds a word to a hash, with the finaliser of SplitMix64.
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    finalise((hash ^ word).wrapping_add(STEP))
}

/// The `place`-th number, from zero, of SplitMix64's sequence for a seed.
pub(crate) fn nth(seed: u64, place: u64) -> u64 {
    finalise(seed.wrapping_add(place.wrapping_add(1).wrapping_mul(STEP)))
}

fn finalise(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Maps 64 random bits to a uniform number in [0, 1).
pub(crate) fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The class at a quantile of a distribution: the first whose cumulative probability exceeds `place`.
pub(crate) fn class_at(p: &[f64], place: f64) -> usize {
    let mut sum = 0.0;
    let class = p.iter().position(|x| {
        sum += x;
        place < sum
    });
    class.unwrap_or(p.len().saturating_sub(1))
}

/// Shuffles items uniformly at random (Fisher–Yates).
pub(crate) fn shuffle(items: &mut [u32], random: &mut Pcg64) {
    for i in (1..items.len()).rev() {
        // The bias of the remainder is below 2⁻³².
        items.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        // The first numbers of the published sequence for the seed 1234567.
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|place| nth(1_234_567, place)), known);
        assert_eq!(mix(1_234_567, 0), known[0]);
        assert!(uniform(0) == 0.0 && uniform(u64::MAX) < 1.0);
    }
}
