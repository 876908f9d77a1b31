//! What the tests of all crates share: random numbers that are the same on every machine and in every version, and how a
//! test is skipped.

#[cfg(feature = "disk")]
pub mod disk;
#[cfg(feature = "postgres")]
pub mod postgres;

/// Prints that a test is skipped for want of something that `make test` installs; with `CI=true` the test fails instead.
///
/// # Panics
/// If the environment variable `CI` is `true`.
#[track_caller]
pub fn skip(reason: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "nothing is skipped with CI=true: {reason}");
    announce(reason);
}

/// Prints that a test is skipped for want of something that only the machine's owner can provide: a data set, a font.
///
/// It writes to the standard error itself, so that the line is shown although the test passes.
pub fn announce(reason: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED: {reason}\n").as_bytes());
}

/// A SplitMix64 generator.
///
/// ```
/// use pointsman_testing::Rng;
/// let mut rng = Rng::new(7);
/// let p = rng.dist(3);
/// assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// assert_eq!(rng.votes(&p, 5).iter().sum::<u32>(), 5);
/// ```
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number from 0 to n − 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// A point uniform on the simplex.
    pub fn dist(&mut self, classes: usize) -> Vec<f64> {
        let raw: Vec<f64> = (0..classes).map(|_| -(1.0 - self.uniform()).ln() + 1e-12).collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|x| x / sum).collect()
    }

    /// The class of one label drawn from a distribution.
    pub fn label(&mut self, p: &[f64]) -> usize {
        let place = self.uniform();
        let mut sum = 0.0;
        let class = p.iter().position(|x| {
            sum += x;
            place < sum
        });
        class.unwrap_or(p.len() - 1)
    }

    /// Label counts of `k` labels drawn from a distribution.
    pub fn votes(&mut self, p: &[f64], k: usize) -> Vec<u32> {
        let mut counts = vec![0; p.len()];
        for _ in 0..k {
            counts[self.label(p)] += 1;
        }
        counts
    }

    /// Puts items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A linear congruential generator (Knuth's MMIX), for tests whose expectations were written for its draws.
#[derive(Debug, Clone)]
pub struct Lcg(u64);

impl Lcg {
    /// A generator that starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits, the higher ones more random than the lower ones.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    /// A number uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number from 0 to n − 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }
}

/// A number from 0 to 1 for each whole number, spread evenly and in no visible order (Knuth's multiplicative hash).
#[must_use]
pub fn scattered(i: u32) -> f64 {
    f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24)
}
