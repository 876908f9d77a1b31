//! Numbers that depend on bits in no visible way, the same on every machine and in every version: lots, bags, orders and
//! seeds are drawn by them.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// The step of SplitMix64's sequence.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash with one more word in it (the finaliser of SplitMix64).
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    finalise((hash ^ word).wrapping_add(STEP))
}

/// The `place`-th number of the sequence that a seed starts, counted from zero.
pub(crate) fn nth(seed: u64, place: u64) -> u64 {
    finalise(seed.wrapping_add(place.wrapping_add(1).wrapping_mul(STEP)))
}

fn finalise(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The same bits as a number from 0, included, to 1.
pub(crate) fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The class of a distribution in which a number from 0 to 1 falls.
pub(crate) fn class_at(p: &[f64], place: f64) -> usize {
    let mut sum = 0.0;
    let class = p.iter().position(|x| {
        sum += x;
        place < sum
    });
    class.unwrap_or(p.len().saturating_sub(1))
}

/// Brings items into one of all their orders, each as likely as any other.
pub(crate) fn shuffle(items: &mut [u32], random: &mut Pcg64) {
    for i in (1..items.len()).rev() {
        // The remainder's bias is below 2⁻³².
        items.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix() {
        // The first numbers of the published sequence for the seed 1234567.
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|place| nth(1_234_567, place)), known);
        assert_eq!(mix(1_234_567, 0), known[0]);
        assert!(uniform(0) == 0.0 && uniform(u64::MAX) < 1.0);
    }
}
