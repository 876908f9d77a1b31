//! A Dirichlet law of p* in a cell, fitted to the label counts, and the posterior of each item.
//!
//! The counts N of an item with p* ∼ Dirichlet(A p̄) are Dirichlet-multinomial. The mean p̄ is the cell's; the concentration A maximises
//! the likelihood on a logarithmic grid. The posterior of an item's p* is Dirichlet(A p̄ + N), and its irreducible loss is E G(p*).

use std::collections::{BTreeMap, HashMap};

use rand_distr::{Distribution, Gamma};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use statrs::function::beta::beta_reg;
use statrs::function::gamma::{digamma, gamma_lr, ln_gamma};

use crate::loss::{Loss, Shape};
use crate::table::votes::Votes;

/// The smallest concentration of the grid: labels nearly agree within each item.
const MIN_CONCENTRATION: f64 = 0.02;

/// The largest concentration of the grid: all items have nearly the same p*.
const MAX_CONCENTRATION: f64 = 3000.0;

/// Steps of the grid of concentrations.
const GRID_STEPS: u32 = 120;

/// Draws per row if E G(p*) has no closed form.
const DRAWS: u32 = 200;

/// The largest count whose likelihood is summed term by term; above it, the difference of two log-gamma values is accurate enough.
///
/// Counts come from files and go up to 2³², so memory and time must not grow with them.
const MAX_SUMMED_COUNT: usize = 1000;

/// Intervals of the integral of the largest share.
const INTERVALS: u32 = 128;

/// The largest number of cached integrands.
const MAX_INTEGRANDS: usize = 20_000;

/// The prior standard deviation of the log-concentration of one class around that of all classes. It is wide, so that it matters only for
/// classes with few labels.
const LOG_CONCENTRATION_SD: f64 = 4.0;

/// The likelihood of items' labels if p* ∼ Dirichlet(A p̄).
///
/// Σ_c Σ_{j<N_c} ln(A p̄_c + j) − Σ_{j<k} ln(A + j), summed over items, depends only on the weight of items with more than j labels, so
/// one evaluation costs as much as one item.
pub(super) struct Likelihood {
    /// The weight of items with more than j labels: one list per class, and one for all classes.
    above: Vec<Vec<f64>>,
    /// Counts above [`MAX_SUMMED_COUNT`], and their weights.
    beyond: Vec<Vec<(f64, f64)>>,
}

impl Likelihood {
    pub(super) fn new(groups: &[(&[u32], f64)], classes: usize) -> Self {
        let mut above = vec![Vec::<f64>::new(); classes + 1];
        let mut beyond = vec![Vec::<(f64, f64)>::new(); classes + 1];
        for &(counts, weight) in groups {
            let labels = Votes::new(counts).k();
            let counts = counts.iter().map(|&n| u64::from(n)).chain([labels]);
            for ((above, beyond), count) in above.iter_mut().zip(&mut beyond).zip(counts) {
                let n = count.min(MAX_SUMMED_COUNT as u64) as usize;
                if count > n as u64 {
                    beyond.push((count as f64, weight));
                }
                if above.len() < n {
                    above.resize(n, 0.0);
                }
                above[..n].iter_mut().for_each(|x| *x += weight);
            }
        }
        Self { above, beyond }
    }

    /// The log-likelihood, up to a constant that does not depend on the concentration.
    pub(super) fn log(&self, mean: &[f64], concentration: f64) -> f64 {
        let classes: f64 =
            mean.iter().enumerate().map(|(class, share)| self.rising(class, concentration * share)).sum();
        classes - self.rising(mean.len(), concentration)
    }

    fn rising(&self, class: usize, start: f64) -> f64 {
        let above = self.above[class].iter().enumerate();
        let counted: f64 = above.map(|(j, weight)| weight * (start + j as f64).ln()).sum();
        let rest =
            |(n, weight): &(f64, f64)| weight * (ln_gamma(start + n) - ln_gamma(start + MAX_SUMMED_COUNT as f64));
        counted + self.beyond[class].iter().map(rest).sum::<f64>()
    }
}

/// The concentration of the grid with the largest value.
pub(super) fn best_concentration(value: impl Fn(f64) -> f64) -> f64 {
    let candidate = |step: u32| {
        MIN_CONCENTRATION * (MAX_CONCENTRATION / MIN_CONCENTRATION).powf(f64::from(step) / f64::from(GRID_STEPS))
    };
    let best = (0..=GRID_STEPS).map(candidate).map(|a| (value(a), a)).max_by(|x, y| x.0.total_cmp(&y.0));
    best.map_or(1.0, |(_, a)| a)
}

/// The maximum-likelihood concentration A of Dirichlet(A p̄).
pub(super) fn concentration(groups: &[(&[u32], f64)], mean: &[f64]) -> f64 {
    let likelihood = Likelihood::new(groups, mean.len());
    best_concentration(|a| likelihood.log(mean, a))
}

/// The concentration of one class given that of all classes: the maximum a posteriori from `rows` rows, with a normal prior on its
/// logarithm around that of `near`.
pub(super) fn concentration_near(groups: &[(&[u32], f64)], rows: f64, mean: &[f64], near: f64) -> f64 {
    let likelihood = Likelihood::new(groups, mean.len());
    let rows_per_weight = rows / groups.iter().map(|(_, weight)| weight).sum::<f64>();
    best_concentration(|a| rows_per_weight * likelihood.log(mean, a) + log_prior(a, near))
}

/// The log prior density of a concentration around `near`.
pub(super) fn log_prior(concentration: f64, near: f64) -> f64 {
    -0.5 * ((concentration / near).ln() / LOG_CONCENTRATION_SD).powi(2)
}

/// The mean over the rows of E G(p*) under their posteriors.
pub(super) fn irreducible(rows: &[(&[u32], f64)], mean: &[f64], loss: &Loss) -> f64 {
    let concentration = concentration(rows, mean);
    let mut random = Pcg64::seed_from_u64(0x5EED);
    let mut integrals = Integrals::default();
    let mut known = BTreeMap::<&[u32], f64>::new();
    let (mut sum, mut weights, mut posterior) = (0.0, 0.0, vec![0.0; mean.len()]);
    for &(counts, weight) in rows {
        for ((slot, share), &n) in posterior.iter_mut().zip(mean).zip(counts) {
            *slot = concentration * share + f64::from(n);
        }
        let expected = known.get(counts).copied().or_else(|| {
            let found = closed_form(&posterior, loss, &mut integrals)?;
            known.insert(counts, found);
            Some(found)
        });
        sum += weight * expected.unwrap_or_else(|| sampled(&posterior, loss, &mut random));
        weights += weight;
    }
    sum / weights
}

/// E G(p) for p ∼ Dirichlet(a), if it can be computed without sampling; a class with parameter zero has probability zero.
fn closed_form(a: &[f64], loss: &Loss, integrals: &mut Integrals) -> Option<f64> {
    let sum: f64 = a.iter().sum();
    Some(match loss.shape() {
        Shape::Brier => 1.0 - a.iter().map(|x| x * (x + 1.0)).sum::<f64>() / (sum * (sum + 1.0)),
        Shape::Log => {
            digamma(sum + 1.0) - a.iter().filter(|x| **x > 0.0).map(|x| x / sum * digamma(x + 1.0)).sum::<f64>()
        }
        Shape::Lines(lines) if a.len() == 2 => expected_envelope(&lines, a[0], a[1]),
        Shape::ZeroOne if a.len() == 2 => expected_envelope(&[[0.0, 1.0], [1.0, 0.0]], a[0], a[1]),
        Shape::ZeroOne => 1.0 - integrals.expected_largest(a, sum),
        _ => return None,
    })
}

/// E min over lines (at class 0, at class 1) for p₁ ∼ Beta(b, a).
fn expected_envelope(lines: &[[f64; 2]], a: f64, b: f64) -> f64 {
    let value = |line: &[f64; 2], p: f64| line[0] + (line[1] - line[0]) * p;
    if a == 0.0 || b == 0.0 {
        let p = if a == 0.0 { 1.0 } else { 0.0 };
        return lines.iter().map(|line| value(line, p)).fold(f64::INFINITY, f64::min);
    }
    // The lowest line can change where two lines cross.
    let mut cuts = vec![0.0, 1.0];
    for (i, one) in lines.iter().enumerate() {
        for two in &lines[..i] {
            let cut = (two[0] - one[0]) / ((one[1] - one[0]) - (two[1] - two[0]));
            if cut > 0.0 && cut < 1.0 {
                cuts.push(cut);
            }
        }
    }
    cuts.sort_by(f64::total_cmp);
    // The mass and the partial mean of p₁ below a cut.
    let mass = |p: f64| {
        if p <= 0.0 {
            0.0
        } else if p >= 1.0 {
            1.0
        } else {
            beta_reg(b, a, p)
        }
    };
    let mean = b / (a + b);
    let moment = |p: f64| {
        mean * if p <= 0.0 {
            0.0
        } else if p >= 1.0 {
            1.0
        } else {
            beta_reg(b + 1.0, a, p)
        }
    };
    let part = |ends: &[f64]| {
        let middle = ends[0].midpoint(ends[1]);
        let least = lines.iter().min_by(|x, y| value(x, middle).total_cmp(&value(y, middle)));
        least.map_or(0.0, |line| {
            let (mass, moment) = (mass(ends[1]) - mass(ends[0]), moment(ends[1]) - moment(ends[0]));
            line[0] * mass + (line[1] - line[0]) * moment
        })
    };
    cuts.windows(2).map(part).sum()
}

/// Cached integrands of E max p, by upper limit and parameter; rows share most of them.
#[derive(Default)]
struct Integrals(HashMap<[u64; 2], Vec<f64>>);

impl Integrals {
    /// E max_c p_c = ∫ (1 − Π_c P(a_c, t)) dt / Σa, by Simpson's rule up to a limit beyond which the integrand is negligible.
    fn expected_largest(&mut self, a: &[f64], sum: f64) -> f64 {
        let largest = a.iter().copied().fold(0.0, f64::max);
        let end = largest + 12.0 * largest.sqrt() + 30.0;
        let step = end / f64::from(INTERVALS);
        let at = |i: u32| f64::from(i) * step;
        if self.0.len() > MAX_INTEGRANDS {
            self.0.clear();
        }
        let mut below = vec![1.0; INTERVALS as usize + 1];
        for &x in a.iter().filter(|x| **x > 0.0) {
            let integrand = self.0.entry([end.to_bits(), x.to_bits()]).or_insert_with(|| {
                (0..=INTERVALS).map(|i| if at(i) > 0.0 { gamma_lr(x, at(i)) } else { 0.0 }).collect()
            });
            below.iter_mut().zip(integrand.iter()).for_each(|(product, factor)| *product *= factor);
        }
        let weight = |i: usize| {
            if i == 0 || i == INTERVALS as usize {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        let integral: f64 =
            below.iter().enumerate().map(|(i, below)| weight(i) * (1.0 - below)).sum::<f64>() * step / 3.0;
        (integral / sum).min(1.0)
    }
}

/// E G(p) by Monte Carlo with a seeded generator.
fn sampled(a: &[f64], loss: &Loss, random: &mut Pcg64) -> f64 {
    let mut point = vec![0.0; a.len()];
    let total: f64 = (0..DRAWS)
        .map(|_| {
            draw_into(a, random, &mut point);
            loss.entropy(&point)
        })
        .sum();
    total / f64::from(DRAWS)
}

/// Draws from Dirichlet(a).
pub(crate) fn draw_into(a: &[f64], random: &mut Pcg64, out: &mut [f64]) {
    for (slot, &x) in out.iter_mut().zip(a) {
        *slot = Gamma::new(x, 1.0).map_or(0.0, |gamma| gamma.sample(random));
    }
    let sum: f64 = out.iter().sum();
    if sum > 0.0 {
        out.iter_mut().for_each(|x| *x /= sum);
    } else {
        // With very small parameters all gamma draws can underflow; the mass then goes to the class with the largest parameter.
        out.fill(0.0);
        out[crate::table::simplex::top_class(a)] = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::vote_groups::weighted_distinct_votes;
    use crate::{Estimator, Oracle, Partition, Router, Table, Task};

    fn router(votes: Vec<u32>) -> Router {
        let probs = [0.6, 0.4].repeat(votes.len() / 2);
        let table = Table::new(["a", "b"], probs).unwrap().with_votes(votes).unwrap();
        Router::calibrate(&table, &Partition::top_class(1)).unwrap()
    }

    #[test]
    fn large_counts_give_the_same_concentration_as_summing_all_terms() {
        let router = router(vec![900, 600, 2000, 3000, 700, 100, 1500, 1400]);
        let mixture = router.all_rows();
        let mean = mixture.centroid().unwrap();
        let rising = |start: f64, n: u64| (0..n).map(|j| (start + j as f64).ln()).sum::<f64>();
        let likelihood = |a: f64| -> f64 {
            let row = |row: usize| {
                let votes = mixture.votes(row);
                let classes = votes.counts().iter().zip(&mean).map(|(&n, share)| rising(a * share, u64::from(n)));
                classes.sum::<f64>() - rising(a, votes.k())
            };
            mixture.rows().map(row).sum()
        };
        let candidates = (0..=GRID_STEPS).map(|s| {
            MIN_CONCENTRATION * (MAX_CONCENTRATION / MIN_CONCENTRATION).powf(f64::from(s) / f64::from(GRID_STEPS))
        });
        let best = candidates.max_by(|x, y| likelihood(*x).total_cmp(&likelihood(*y))).unwrap();
        assert_eq!(concentration(&weighted_distinct_votes(mixture), &mean), best);
    }

    /// Found by fuzzing: a count of 2³² took 32 GB.
    #[test]
    fn memory_does_not_grow_with_counts() {
        let router = router(vec![u32::MAX, 1, 3, u32::MAX - 3]);
        for loss in ["brier", "cross-entropy", "zero-one", "spherical"] {
            for estimator in [Estimator::Npmle, Estimator::Dirichlet] {
                let task = Task::new(loss.parse().unwrap()).route("expert", Oracle::bayes(), 0.05).unwrap();
                let policy = router.policy(&task.estimator(estimator)).unwrap();
                let decision = policy.decide(&[0.6, 0.4]).unwrap();
                assert!(decision.costs().iter().all(|cost| cost.is_finite()), "{loss} {estimator}");
            }
        }
    }

    #[test]
    fn closed_forms_agree_with_sampling() {
        let mut random = Pcg64::seed_from_u64(1);
        let cases: [(&[f64], &[&str]); 4] = [
            (&[0.7, 2.5], &["brier", "cross-entropy", "zero-one", "fn-fp:fp=1,fn=4", "three-part", "asymmetric:2"]),
            (&[12.0, 0.3], &["brier", "cross-entropy", "zero-one", "fn-fp:fp=1,fn=4", "three-part", "asymmetric:2"]),
            (&[0.5, 1.5, 4.0], &["brier", "cross-entropy", "zero-one"]),
            (&[0.2, 0.2, 0.2, 30.0, 6.0], &["brier", "cross-entropy", "zero-one"]),
        ];
        for (a, losses) in cases {
            for name in losses {
                let loss: Loss = name.parse().unwrap();
                let mut point = vec![0.0; a.len()];
                let draws = 40_000;
                let mut values = Vec::with_capacity(draws);
                for _ in 0..draws {
                    draw_into(a, &mut random, &mut point);
                    values.push(loss.entropy(&point));
                }
                let mean = values.iter().sum::<f64>() / draws as f64;
                let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64;
                let found = closed_form(a, &loss, &mut Integrals::default()).unwrap();
                let error = 5.0 * (variance / draws as f64).sqrt() + 1e-5;
                assert!((found - mean).abs() < error, "{name} {a:?}: {found}, sampled {mean} ± {error}");
            }
        }
    }
}
