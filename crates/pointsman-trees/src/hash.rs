//! Random numbers from a seed and an index, the same on every machine and in every version.

/// The increment of SplitMix64.
const SPLITMIX_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The `place`-th number of SplitMix64's sequence for a seed, counted from zero.
pub(crate) fn draw(seed: u64, place: u64) -> u64 {
    let z = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(SPLITMIX_STEP));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Maps 64 random bits to a uniform number in [0, 1).
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix() {
        // The first numbers of the published sequence for the seed 1234567.
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|place| draw(1_234_567, place)), known);
        assert!(unit(0) == 0.0 && unit(u64::MAX) < 1.0);
    }
}
