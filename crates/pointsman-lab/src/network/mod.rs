//! The weak model of the synthetic worlds: a residual network from a number to a probability.
//!
//! h₀ = w x + b; three blocks h ← h + W₂ relu(W₁ relu(h) + b₁) + b₂; output σ(⟨v, relu(h)⟩ + c). Trained on the
//! cross-entropy of single labels with AdamW and a cosine schedule, in single precision on one thread, so that a seed
//! gives the same weights in every run on one machine.

mod cache;
mod train;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, Zip};
use rayon::prelude::*;

use crate::random::Random;
pub use train::Training;

/// Number of residual blocks, of two layers each.
const BLOCKS: usize = 3;

/// Rows per prediction batch.
const ROWS_PER_PREDICTION_BATCH: usize = 4_096;

/// A residual network with one input and one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    width: usize,
    /// w, b, (W₁, b₁, W₂, b₂) per block, v, c; matrices in row-major order, from input to output.
    weights: Vec<f32>,
}

/// The positions of the layers' parameters in the weight vector.
#[derive(Debug, Clone, Copy)]
struct Layout {
    width: usize,
}

impl Layout {
    /// The positions of W₁, b₁, W₂ and b₂ of a block.
    fn block(self, block: usize) -> [std::ops::Range<usize>; 4] {
        let h = self.width;
        let start = 2 * h + block * (2 * h * h + 2 * h);
        let ends = [h * h, h * h + h, 2 * h * h + h, 2 * h * h + 2 * h];
        [
            start..start + ends[0],
            start + ends[0]..start + ends[1],
            start + ends[1]..start + ends[2],
            start + ends[2]..start + ends[3],
        ]
    }

    /// The position of v.
    fn readout(self) -> std::ops::Range<usize> {
        let end = self.len() - 1;
        end - self.width..end
    }

    fn len(self) -> usize {
        let h = self.width;
        2 * h + BLOCKS * (2 * h * h + 2 * h) + h + 1
    }
}

/// Values of the forward pass that the backward pass needs.
struct Trace {
    /// The input of every block, then the input of the readout.
    hidden: Vec<Array2<f32>>,
    /// W₁ relu(h) + b₁ of every block.
    inner: Vec<Array2<f32>>,
    logits: Array1<f32>,
}

fn relu(x: &Array2<f32>) -> Array2<f32> {
    x.mapv(|x| x.max(0.0))
}

/// Sets the gradient to zero where the unit was inactive.
fn mask_inactive(gradient: &mut Array2<f32>, before: &Array2<f32>) {
    Zip::from(gradient).and(before).for_each(|g, &x| {
        if x <= 0.0 {
            *g = 0.0;
        }
    });
}

impl Network {
    /// Draws random weights with He's scale; residual branches and the readout are scaled down by 0.3.
    #[must_use]
    pub fn new(width: usize, seed: u64) -> Self {
        let layout = Layout { width };
        let mut random = Random::new(seed, "network");
        let mut weights = vec![0.0_f32; layout.len()];
        let mut fill = |range: std::ops::Range<usize>, scale: f64, weights: &mut [f32]| {
            weights[range].iter_mut().for_each(|w| *w = (scale * random.normal()) as f32);
        };
        fill(0..2 * width, 1.0, &mut weights);
        let scale = (2.0 / width as f64).sqrt();
        for block in 0..BLOCKS {
            let [first, _, second, _] = layout.block(block);
            fill(first, scale, &mut weights);
            fill(second, 0.3 * scale, &mut weights);
        }
        fill(layout.readout(), 0.3 * scale, &mut weights);
        Self { width, weights }
    }

    /// A network with the given weights; `None` if their number does not fit the width or one is not finite.
    #[must_use]
    pub(crate) fn from_weights(width: usize, weights: Vec<f32>) -> Option<Self> {
        let fits = weights.len() == Layout { width }.len() && weights.iter().all(|w| w.is_finite());
        fits.then_some(Self { width, weights })
    }

    fn layout(&self) -> Layout {
        Layout { width: self.width }
    }

    fn matrix(&self, range: std::ops::Range<usize>) -> ArrayView2<'_, f32> {
        let shape = (self.width, self.width);
        ArrayView2::from_shape(shape, &self.weights[range]).unwrap_or_else(|_| unreachable!("ranges have that size"))
    }

    fn vector(&self, range: std::ops::Range<usize>) -> ArrayView1<'_, f32> {
        ArrayView1::from(&self.weights[range])
    }

    fn forward(&self, x: &[f32]) -> Trace {
        let (h, layout) = (self.width, self.layout());
        let input = ArrayView1::from(x).insert_axis(Axis(1));
        let first = self.vector(0..h).insert_axis(Axis(0));
        let mut state = &input * &first + self.vector(h..2 * h);
        let (mut hidden, mut inner) = (Vec::with_capacity(BLOCKS + 1), Vec::with_capacity(BLOCKS));
        for block in 0..BLOCKS {
            let [w1, b1, w2, b2] = layout.block(block);
            let before = relu(&state).dot(&self.matrix(w1)) + self.vector(b1);
            let mut after = &state + &self.vector(b2);
            general_mat_mul(1.0, &relu(&before), &self.matrix(w2), 1.0, &mut after);
            hidden.push(std::mem::replace(&mut state, after));
            inner.push(before);
        }
        let logits = relu(&state).dot(&self.vector(layout.readout())) + self.weights[layout.len() - 1];
        hidden.push(state);
        Trace { hidden, inner, logits }
    }

    /// The mean cross-entropy of labels y ∈ {0, 1}, and its gradient with respect to every weight.
    pub(crate) fn gradient(&self, x: &[f32], y: &[f32]) -> (f64, Vec<f32>) {
        let (h, layout) = (self.width, self.layout());
        let trace = self.forward(x);
        let rows = x.len() as f32;
        let mut loss = 0.0_f64;
        let mut error = trace.logits.clone();
        for (error, &y) in error.iter_mut().zip(y) {
            let logit = *error;
            // ln(1 + e^z) − y z, without overflow.
            loss += f64::from(logit.max(0.0) - y * logit) + f64::from(-logit.abs()).exp().ln_1p();
            *error = (1.0 / (1.0 + (-logit).exp()) - y) / rows;
        }
        let mut gradient = vec![0.0_f32; layout.len()];
        let last = &trace.hidden[BLOCKS];
        let write = |range: std::ops::Range<usize>, gradient: &mut [f32], value: Array1<f32>| {
            ArrayViewMut1::from(&mut gradient[range]).assign(&value);
        };
        write(layout.readout(), &mut gradient, relu(last).t().dot(&error));
        gradient[layout.len() - 1] = error.sum();
        let readout = self.vector(layout.readout()).insert_axis(Axis(0));
        let mut back = &error.view().insert_axis(Axis(1)) * &readout;
        mask_inactive(&mut back, last);
        for block in (0..BLOCKS).rev() {
            let [w1, b1, w2, b2] = layout.block(block);
            let (hidden, before) = (&trace.hidden[block], &trace.inner[block]);
            let mut product = |range: std::ops::Range<usize>, left: &Array2<f32>, right: &Array2<f32>| {
                if let Ok(mut out) = ArrayViewMut2::from_shape((h, h), &mut gradient[range]) {
                    general_mat_mul(1.0, &left.t(), right, 0.0, &mut out);
                }
            };
            product(w2.clone(), &relu(before), &back);
            let mut branch = back.dot(&self.matrix(w2).t());
            mask_inactive(&mut branch, before);
            product(w1.clone(), &relu(hidden), &branch);
            write(b2, &mut gradient, back.sum_axis(Axis(0)));
            write(b1, &mut gradient, branch.sum_axis(Axis(0)));
            let mut through = branch.dot(&self.matrix(w1).t());
            mask_inactive(&mut through, hidden);
            back += &through;
        }
        write(0..h, &mut gradient, back.t().dot(&ArrayView1::from(x)));
        write(h..2 * h, &mut gradient, back.sum_axis(Axis(0)));
        (loss / f64::from(rows), gradient)
    }

    /// The probability of the positive class for each input.
    #[must_use]
    pub fn predict(&self, x: &[f64]) -> Vec<f64> {
        let chunk = |x: &[f64]| {
            let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            self.forward(&x).logits.iter().map(|&z| 1.0 / (1.0 + (-f64::from(z)).exp())).collect::<Vec<_>>()
        };
        x.par_chunks(ROWS_PER_PREDICTION_BATCH).flat_map_iter(chunk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_matches_finite_differences() {
        let network = Network::new(8, 5);
        let mut random = Random::new(1, "check");
        let x: Vec<f32> = (0..40).map(|_| random.normal() as f32).collect();
        let y: Vec<f32> = (0..40).map(|_| f32::from(u8::from(random.uniform() < 0.4))).collect();
        let (_, gradient) = network.gradient(&x, &y);
        let size = gradient.iter().map(|g| f64::from(g.abs())).fold(0.0, f64::max);
        assert!(size > 1e-3);
        let slope = |direction: &dyn Fn(usize) -> f32| {
            let at = |step: f32| {
                let weights = network.weights.iter().enumerate().map(|(i, w)| w + step * direction(i)).collect();
                Network::from_weights(8, weights).unwrap().gradient(&x, &y).0
            };
            (at(1e-3) - at(-1e-3)) / 2e-3
        };
        for (i, &wanted) in gradient.iter().enumerate() {
            let found = slope(&|j| f32::from(u8::from(i == j)));
            assert!((found - f64::from(wanted)).abs() < 0.01 * size, "weight {i}: {found} and {wanted}");
        }
    }

    #[test]
    fn weights_of_wrong_number_or_not_finite_are_refused() {
        let network = Network::new(4, 0);
        assert!(Network::from_weights(4, network.weights.clone()).is_some());
        assert!(Network::from_weights(5, network.weights.clone()).is_none());
        assert!(Network::from_weights(4, vec![f32::NAN; network.weights.len()]).is_none());
    }
}
