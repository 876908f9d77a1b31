//! A polynomial for the bias of the entropy of snapshot means, fitted by least squares (see `by_row`).

/// The largest degree of the polynomial; higher degrees mostly add variance.
pub(super) const MAX_DEGREE: usize = 4;

/// A column whose residual is below this part of its size is collinear with those before it.
const COLLINEAR: f64 = 1e-8;

/// 1 − Σ_c p_c^j for j = 2…degree, followed by zeros.
pub(super) fn diversities(p: &[f64], degree: usize) -> [f64; MAX_DEGREE - 1] {
    let mut found = [0.0; MAX_DEGREE - 1];
    for (j, slot) in (2..=degree as i32).zip(&mut found) {
        *slot = 1.0 - p.iter().map(|x| x.powi(j)).sum::<f64>();
    }
    found
}

/// Unbiased estimates of the diversities: the share of j-subsets of the item's labels that are not all equal.
pub(super) fn unbiased_diversities(counts: &[u32], k: u64, degree: usize) -> [f64; MAX_DEGREE - 1] {
    let mut found = [0.0; MAX_DEGREE - 1];
    for (j, slot) in (2..=degree).zip(&mut found) {
        let alike = |n: f64| (0..j).map(|i| (n - i as f64).max(0.0) / (k as f64 - i as f64)).product::<f64>();
        *slot = 1.0 - counts.iter().map(|&n| alike(f64::from(n))).sum::<f64>();
    }
    found
}

/// β_0 + Σ_j β_j (1 − Σ_c p_c^j).
pub(super) struct Polynomial {
    degree: usize,
    constant: f64,
    slopes: [f64; MAX_DEGREE - 1],
}

impl Polynomial {
    /// An unbiased estimate of the polynomial at an item's p*, from its k labels.
    pub(super) fn estimate(&self, counts: &[u32], k: u64) -> f64 {
        let found = unbiased_diversities(counts, k, self.degree);
        self.constant + found.iter().zip(&self.slopes).map(|(x, slope)| slope * x).sum::<f64>()
    }
}

/// Regularised least squares with up to [`MAX_DEGREE`] − 1 columns. It minimises the squared error of the polynomial plus the variance that
/// labels add to its mean over a group; without that, nearly collinear columns get huge slopes of opposite signs.
pub(super) struct LeastSquares {
    degree: usize,
    weight: f64,
    means: [f64; MAX_DEGREE],
    products: [[f64; MAX_DEGREE]; MAX_DEGREE],
    noise: [[f64; MAX_DEGREE - 1]; MAX_DEGREE - 1],
}

impl LeastSquares {
    pub(super) fn new(degree: usize) -> Self {
        let (means, products) = ([0.0; MAX_DEGREE], [[0.0; MAX_DEGREE]; MAX_DEGREE]);
        Self { degree, weight: 0.0, means, products, noise: [[0.0; MAX_DEGREE - 1]; MAX_DEGREE - 1] }
    }

    pub(super) fn add(&mut self, weight: f64, columns: &[f64; MAX_DEGREE - 1], target: f64) {
        let mut row = [0.0; MAX_DEGREE];
        row[..MAX_DEGREE - 1].copy_from_slice(columns);
        row[MAX_DEGREE - 1] = target;
        self.weight += weight;
        for (i, x) in row.iter().enumerate() {
            self.means[i] += weight * x;
            row.iter().zip(&mut self.products[i]).for_each(|(y, sum)| *sum += weight * x * y);
        }
    }

    /// Adds the error of the columns as estimated from labels.
    pub(super) fn add_noise(
        &mut self,
        weight: f64,
        columns: &[f64; MAX_DEGREE - 1],
        estimated: &[f64; MAX_DEGREE - 1],
    ) {
        let errors: [f64; MAX_DEGREE - 1] = std::array::from_fn(|i| columns[i] - estimated[i]);
        for (row, x) in self.noise.iter_mut().zip(&errors) {
            row.iter_mut().zip(&errors).for_each(|(sum, y)| *sum += weight * x * y);
        }
    }

    /// Solves by elimination after centring; a collinear column gets slope zero. Labels add variance to means over `rows_per_mean` rows.
    pub(super) fn solve(mut self, rows_per_mean: usize) -> Polynomial {
        const TARGET: usize = MAX_DEGREE - 1;
        let mut found = Polynomial { degree: self.degree, constant: 0.0, slopes: [0.0; MAX_DEGREE - 1] };
        if self.weight <= 0.0 {
            return found;
        }
        self.means.iter_mut().for_each(|mean| *mean /= self.weight);
        let mut centred = self.products;
        for (i, row) in centred.iter_mut().enumerate() {
            row.iter_mut().zip(&self.means).for_each(|(x, mean)| *x = *x / self.weight - self.means[i] * mean);
        }
        for (row, noise) in centred.iter_mut().zip(&self.noise) {
            row.iter_mut().zip(noise).for_each(|(x, noise)| *x += noise / self.weight / rows_per_mean as f64);
        }
        let sizes: Vec<f64> = (0..TARGET).map(|i| centred[i][i]).collect();
        let columns: Vec<usize> = (0..self.degree.saturating_sub(1)).collect();
        let mut used = Vec::new();
        for &i in &columns {
            if centred[i][i] <= COLLINEAR * sizes[i] || sizes[i] <= f64::MIN_POSITIVE {
                continue;
            }
            used.push(i);
            for j in (i + 1)..TARGET {
                let (part, pivot) = (centred[j][i] / centred[i][i], centred[i]);
                centred[j][i..].iter_mut().zip(&pivot[i..]).for_each(|(x, above)| *x -= part * above);
            }
        }
        for &i in used.iter().rev() {
            let known: f64 = used.iter().filter(|&&j| j > i).map(|&j| centred[i][j] * found.slopes[j]).sum();
            found.slopes[i] = (centred[i][TARGET] - known) / centred[i][i];
        }
        found.constant =
            self.means[TARGET] - found.slopes.iter().zip(&self.means).map(|(slope, mean)| slope * mean).sum::<f64>();
        found
    }
}
