//! Seeded random numbers, the same on every machine.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
///
/// Streams of one seed and different purposes are independent, so that drawing more test rows does not change the
/// training set.
#[derive(Debug, Clone)]
pub(crate) struct Random(Pcg64);

impl Random {
    /// The stream of a seed for one purpose.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a only has to separate the purposes.
        Self(Pcg64::seed_from_u64(fnv(purpose.bytes()) ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Uniform on (0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// The number of positive labels among `n`, each positive with probability `p`.
    pub(crate) fn binomial(&mut self, n: u32, p: f64) -> u32 {
        (0..n).filter(|_| self.uniform() <= p).count() as u32
    }

    /// Uniform on 0..n; n must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (((1.0 - self.uniform()) * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// A draw from the Gamma distribution of scale one, by Marsaglia and Tsang's method.
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * (1.0 - self.uniform()).powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        loop {
            let x = self.normal();
            let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
            if v > 0.0 && (1.0 - self.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// A draw from a Dirichlet distribution.
    pub(crate) fn dirichlet(&mut self, parameters: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let mut p: Vec<f64> = parameters.into_iter().map(|a| self.gamma(a).max(1e-300)).collect();
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|x| *x /= sum);
        p
    }

    /// The counts of `k` labels drawn from `p`.
    pub(crate) fn votes(&mut self, p: &[f64], k: usize) -> Vec<u32> {
        let mut counts = vec![0; p.len()];
        for _ in 0..k {
            let (u, mut sum) = (self.uniform(), 0.0);
            let class = p.iter().position(|x| {
                sum += x;
                u <= sum
            });
            counts[class.unwrap_or(p.len() - 1)] += 1;
        }
        counts
    }

    /// Shuffles the items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// FNV-1a, 64 bits.
pub(crate) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_right_moments_and_are_reproducible() {
        let mut random = Random::new(3, "test");
        let x: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = x.iter().sum::<f64>() / 20_000.0;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        let votes: u32 = (0..5_000).map(|_| random.binomial(20, 0.3)).sum();
        assert!((f64::from(votes) / 100_000.0 - 0.3).abs() < 0.01);
        assert!((0..10_000).all(|_| random.below(3) < 3));
        assert_ne!(Random::new(3, "train").uniform(), Random::new(3, "test").uniform());
        assert_eq!(Random::new(3, "train").uniform(), Random::new(3, "train").uniform());
    }
}
