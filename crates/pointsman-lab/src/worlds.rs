//! The synthetic worlds of the paper's appendix: binary, with a known true probability f*(x).

use crate::random::Random;

/// A binary world: x ~ N(0, 1), y ~ Bernoulli(f*(x)).
///
/// | world | f*(x) |
/// |---|---|
/// | `johnson` | (0.98 u + 1) / 2 with u = 0.6 cos v + 0.4 cos 4.2x, v = sgn x · (120 \|x\| − 112 w − 0.0635), w = 0.2 ln(1 + e^((\|x\| − 1)/0.2)) |
/// | `three-steps` | 0 up to −1; sin(100x)/2 + ½ between; 1 from 1 |
/// | `piecewise` | ½ up to −1; sin(100x)/4 + ½ up to −½; ¼ up to 0; sin(100x)/4 + ½ up to ½; sin(100x)/4 + ¼ above |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum World {
    /// A fast oscillation in the middle that a small model cannot follow, and slow ones at the sides that it can.
    Johnson,
    /// Certain at both sides, a fast oscillation in between.
    ThreeSteps,
    /// Regions with and without an oscillation have the same mean.
    Piecewise,
}

/// Inputs with their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The inputs.
    pub x: Vec<f64>,
    /// The number of positive labels per input.
    pub positive: Vec<u32>,
    /// The number of labels per input.
    pub labels: u32,
}

impl World {
    /// All worlds.
    pub const ALL: [Self; 3] = [Self::Johnson, Self::ThreeSteps, Self::Piecewise];

    /// The world's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Johnson => "johnson",
            Self::ThreeSteps => "three-steps",
            Self::Piecewise => "piecewise",
        }
    }

    /// f*(x): the true probability of the positive class.
    #[must_use]
    pub fn truth(self, x: f64) -> f64 {
        let wave = (100.0 * x).sin();
        match self {
            Self::Johnson => {
                let w = 0.2 * ((x.abs() - 1.0) / 0.2).exp().ln_1p();
                // sgn 0 = 0; otherwise the sign does not matter, since the cosine is even.
                let sign = if x == 0.0 { 0.0 } else { x.signum() };
                let v = sign * (120.0 * x.abs() - 112.0 * w - 0.0635);
                let u = 0.6 * v.cos() + 0.4 * (4.2 * x).cos();
                0.98f64.mul_add(u, 1.0) / 2.0
            }
            Self::ThreeSteps if x <= -1.0 => 0.0,
            Self::ThreeSteps if x < 1.0 => wave / 2.0 + 0.5,
            Self::ThreeSteps => 1.0,
            Self::Piecewise if x <= -1.0 => 0.5,
            Self::Piecewise if x <= -0.5 => wave / 4.0 + 0.5,
            Self::Piecewise if x <= 0.0 => 0.25,
            Self::Piecewise if x <= 0.5 => wave / 4.0 + 0.5,
            Self::Piecewise => wave / 4.0 + 0.25,
        }
    }

    /// Draws inputs with `labels` labels each. Draws of one seed for different purposes (`train`, `calibration`) are
    /// independent.
    #[must_use]
    pub fn draw(self, seed: u64, purpose: &str, rows: usize, labels: u32) -> Draw {
        let mut random = Random::new(seed, &format!("{}/{purpose}", self.name()));
        let x: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
        let positive = x.iter().map(|&x| random.binomial(labels, self.truth(x))).collect();
        Draw { x, positive, labels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_matches_the_paper() {
        // By hand: at x = 2, w = 0.2 ln(1 + e^5) = 1.001343…, v = 240 − 112 w − 0.0635.
        let w = 0.2 * (1.0 + 5.0_f64.exp()).ln();
        let u = 0.6 * (240.0 - 112.0 * w - 0.0635_f64).cos() + 0.4 * 8.4_f64.cos();
        assert!((World::Johnson.truth(2.0) - (0.98 * u + 1.0) / 2.0).abs() < 1e-12);
        assert!((World::Johnson.truth(-2.0) - World::Johnson.truth(2.0)).abs() < 1e-12);
        assert!((World::Johnson.truth(0.0) - (0.98 * 1.0 + 1.0) / 2.0).abs() < 1e-12);
        let at = |world: World, x: &[f64]| x.iter().map(|&x| world.truth(x)).collect::<Vec<_>>();
        let wave = |x: f64| (100.0 * x).sin();
        assert_eq!(at(World::ThreeSteps, &[-3.0, -1.0, 0.3, 1.0, 2.0]), [0.0, 0.0, wave(0.3) / 2.0 + 0.5, 1.0, 1.0]);
        assert_eq!(
            at(World::Piecewise, &[-2.0, -1.0, -0.7, -0.5, -0.2, 0.0]),
            [0.5, 0.5, wave(-0.7) / 4.0 + 0.5, wave(-0.5) / 4.0 + 0.5, 0.25, 0.25]
        );
        assert_eq!(
            at(World::Piecewise, &[0.2, 0.5, 0.9]),
            [wave(0.2) / 4.0 + 0.5, wave(0.5) / 4.0 + 0.5, wave(0.9) / 4.0 + 0.25]
        );
        for world in World::ALL {
            assert!((-4_000..=4_000).all(|i| (0.0..=1.0).contains(&world.truth(f64::from(i) / 1_000.0))));
        }
    }

    #[test]
    fn draws_follow_the_truth_and_the_seed() {
        let draw = World::ThreeSteps.draw(1, "calibration", 2_000, 10);
        assert_eq!(draw, World::ThreeSteps.draw(1, "calibration", 2_000, 10));
        assert_ne!(draw.x, World::ThreeSteps.draw(2, "calibration", 2_000, 10).x);
        for (x, positive) in draw.x.iter().zip(&draw.positive) {
            assert!(*positive <= 10 && (*x > -1.0 || *positive == 0) && (*x < 1.0 || *positive == 10));
        }
    }
}
