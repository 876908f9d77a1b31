//! AdamW on mini-batches.

use super::Network;
use crate::random::Random;

/// How the weak model is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training {
    /// Units per hidden layer.
    pub width: usize,
    /// Passes over the training set.
    pub epochs: usize,
    /// Rows per step.
    pub batch: usize,
    /// The peak learning rate; it falls to zero along a cosine.
    pub rate: f32,
    /// Decoupled weight decay.
    pub decay: f32,
}

impl Default for Training {
    fn default() -> Self {
        Self { width: 64, epochs: 40, batch: 256, rate: 3e-3, decay: 1e-2 }
    }
}

impl Training {
    /// All hyper-parameters as text, for the names of cached models.
    pub(crate) fn key(&self) -> String {
        let Self { width, epochs, batch, rate, decay } = self;
        format!("w{width}-e{epochs}-b{batch}-r{rate}-d{decay}")
    }

    /// Trains a network on inputs and labels in {0, 1}.
    #[must_use]
    pub fn fit(&self, x: &[f64], y: &[u32], seed: u64) -> Network {
        const MEAN_DECAY: f32 = 0.9;
        const SQUARE_DECAY: f32 = 0.999;
        let mut network = Network::new(self.width, seed);
        let mut random = Random::new(seed, "batches");
        let mut order: Vec<usize> = (0..x.len()).collect();
        let (mut mean, mut square) = (vec![0.0_f32; network.weights.len()], vec![0.0_f32; network.weights.len()]);
        let steps = self.epochs * x.len().div_ceil(self.batch);
        let mut step = 0_usize;
        for _ in 0..self.epochs {
            random.shuffle(&mut order);
            for rows in order.chunks(self.batch) {
                let inputs: Vec<f32> = rows.iter().map(|&row| x[row] as f32).collect();
                let labels: Vec<f32> = rows.iter().map(|&row| y[row] as f32).collect();
                let (_, gradient) = network.gradient(&inputs, &labels);
                // A short warm-up, then half a cosine.
                let done = step as f32 / steps as f32;
                let rate =
                    self.rate * (done / 0.05).clamp(0.05, 1.0) * 0.5 * (1.0 + (std::f32::consts::PI * done).cos());
                step += 1;
                let unbias = |decay: f32| 1.0 - decay.powf(step as f32);
                let (mean_scale, square_scale) = (1.0 / unbias(MEAN_DECAY), 1.0 / unbias(SQUARE_DECAY));
                for (((w, g), m), s) in network.weights.iter_mut().zip(gradient).zip(&mut mean).zip(&mut square) {
                    *m = MEAN_DECAY * *m + (1.0 - MEAN_DECAY) * g;
                    *s = SQUARE_DECAY * *s + (1.0 - SQUARE_DECAY) * g * g;
                    let update = *m * mean_scale / ((*s * square_scale).sqrt() + 1e-8);
                    *w -= rate * (update + self.decay * *w);
                }
            }
        }
        network
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worlds::World;

    #[test]
    fn training_fits_three_steps_and_is_deterministic() {
        let draw = World::ThreeSteps.draw(4, "train", 2_000, 1);
        let training = Training { width: 16, epochs: 20, batch: 128, ..Training::default() };
        let network = training.fit(&draw.x, &draw.positive, 4);
        assert_eq!(network, training.fit(&draw.x, &draw.positive, 4));
        let p = network.predict(&[-2.0, 0.0, 2.0]);
        assert!(p[0] < 0.1 && (0.3..0.7).contains(&p[1]) && p[2] > 0.9, "{p:?}");
    }
}
