//! Posterior draws of the true label distributions p* of some items, given their votes.
//!
//! A draw has two steps. First a law of p* is drawn: it is fitted to randomly reweighted items (the Bayesian bootstrap), so that its variation
//! reflects the uncertainty of the law. Then the p* of each item is drawn from its posterior under that law. The mean of the draws over the
//! items has the posterior variance of the mean p*.
//!
//! Two and three classes use the law of the estimator `npmle`, more classes a Dirichlet law with the same mean and variance. The iterative
//! fit does not change the features of the law that k labels do not identify; they stay as in its starting point. To make the draws vary in
//! these features, every fit stops after a random number of steps, and fits of three classes have random starting points.
//!
//! Two labels per item do not identify the variance of ‖p*‖² between items, a fourth moment of p*. The width of intervals after more labels
//! depends on it. If all items are either clear or ambiguous, fits that start from atoms of equal weight give too few of both, and the
//! intervals after more labels are 15 to 25 % wider than forecast. So each fit starts with more weight on clear and on ambiguous atoms, by a
//! random tilt up to [`MAX_TILT`].

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::dirichlet::draw_into;
use super::npmle::{self, STEPS, likelihood, maximise_likelihood};
use crate::numeric::mix::uniform;
use crate::table::simplex::dot;
use crate::table::votes::Votes;
use crate::task::MAX_NPMLE_CLASSES;

/// The base-2 logarithm of the smallest number of steps.
const MIN_STEPS_LOG2: f64 = 2.0;

/// Atoms of three classes.
const ATOMS: usize = 200;

/// The start of a draw weighs atoms by exp(t z²), where z is the standardised ‖p‖² of an atom and t is uniform up to this tilt.
const MAX_TILT: f64 = 2.0;

/// The largest z² in the tilt, so that no single atom gets all of the weight.
const MAX_SQUARED_DISTANCE: f64 = 9.0;

/// The range of concentrations if items have one label each, which does not identify the concentration.
const CONCENTRATIONS_OF_SINGLE_LABELS: [f64; 2] = [0.25, 4.0];

/// The smallest concentration otherwise: labels nearly agree within each item.
const MIN_CONCENTRATION: f64 = 0.02;

/// The largest concentration otherwise: all items have nearly the same p*.
const MAX_CONCENTRATION: f64 = 3000.0;

/// The votes of some items, from which laws of p* are drawn.
#[derive(Debug)]
pub(crate) struct PossibleTruths<'a> {
    distinct: Vec<&'a [u32]>,
    /// The index of each item's vote vector.
    votes_of_item: Vec<u32>,
    weights: Option<&'a [f64]>,
    /// Whether at least half of the items have two labels.
    identified: bool,
    atoms: Option<Arc<Atoms>>,
}

/// Candidate values of p*, with the likelihood of each distinct vote vector under each of them.
#[derive(Debug)]
pub(crate) struct Atoms {
    points: Vec<Vec<f64>>,
    likelihoods: Vec<Vec<f64>>,
}

impl Atoms {
    /// Weights that increase with the distance of ‖p‖² from its mean over the atoms; equal weights with zero tilt.
    fn tilted_weights(&self, tilt: f64) -> Vec<f64> {
        let agreements: Vec<f64> = self.points.iter().map(|point| dot(point, point)).collect();
        let n = agreements.len() as f64;
        let mean = agreements.iter().sum::<f64>() / n;
        let variance = agreements.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let weight = |x: &f64| {
            let squared_distance = (x - mean).powi(2) / variance.max(f64::MIN_POSITIVE);
            (tilt * squared_distance.min(MAX_SQUARED_DISTANCE)).exp()
        };
        agreements.iter().map(weight).collect()
    }
}

impl<'a> PossibleTruths<'a> {
    /// The votes of some items; `None` if there are none.
    pub(crate) fn new(items: impl Iterator<Item = Votes<'a>>, weights: Option<&'a [f64]>) -> Option<Self> {
        let items: Vec<Votes<'a>> = items.collect();
        let distinct: BTreeMap<&[u32], u32> = items.iter().map(|votes| (votes.counts(), 0)).collect();
        let distinct: Vec<&[u32]> = distinct.into_keys().collect();
        let place = |votes: &Votes<'a>| distinct.binary_search(&votes.counts()).unwrap_or(0) as u32;
        let votes_of_item: Vec<u32> = items.iter().map(place).collect();
        let paired = items.iter().filter(|votes| votes.k() > 1).count();
        let identified = 2 * paired >= items.len();
        let mut found = Self { distinct, votes_of_item, weights, identified, atoms: None };
        let classes = found.distinct.first()?.len();
        if identified && classes <= MAX_NPMLE_CLASSES {
            let groups = found.groups(|weight| weight);
            let mean = mean_of(&groups);
            let (points, _) = if classes == 2 {
                npmle::even_grid(&groups, &mean)
            } else {
                npmle::sample_atoms(&groups, &mean, ATOMS)
            };
            let likelihoods = {
                let of_counts = likelihood(&points);
                found.distinct.iter().map(|counts| of_counts(counts)).collect()
            };
            found.atoms = Some(Arc::new(Atoms { points, likelihoods }));
        }
        Some(found)
    }

    /// The distinct vote vectors with the total of their items' weights, each transformed by `reweight`.
    fn groups(&self, mut reweight: impl FnMut(f64) -> f64) -> Vec<(&'a [u32], f64)> {
        let mut groups: Vec<(&'a [u32], f64)> = self.distinct.iter().map(|counts| (*counts, 0.0)).collect();
        for (item, &votes) in self.votes_of_item.iter().enumerate() {
            groups[votes as usize].1 += reweight(self.weights.map_or(1.0, |weights| weights[item]));
        }
        groups
    }

    /// Draws a law of p*.
    pub(crate) fn draw_law(&self, random: &mut Pcg64) -> TruthLaw {
        // Exponential weights: the Bayesian bootstrap.
        let groups = self.groups(|weight| -weight * (1.0 - uniform(random.next_u64())).ln());
        let mean = mean_of(&groups);
        let place = uniform(random.next_u64());
        let Some(atoms) = &self.atoms else {
            let [low, high] = CONCENTRATIONS_OF_SINGLE_LABELS;
            let a = if self.identified { concentration(&groups, &mean) } else { low * (high / low).powf(place) };
            return TruthLaw::Dirichlet(mean.into_iter().map(|share| a * share).collect());
        };
        let most = (STEPS as f64).log2();
        let steps = (MIN_STEPS_LOG2 + (most - MIN_STEPS_LOG2) * place).exp2() as usize;
        let mut weights = match mean.len() {
            2 => npmle::even_grid(&groups, &mean).1,
            _ => atoms.tilted_weights(MAX_TILT * uniform(random.next_u64())),
        };
        let all: f64 = groups.iter().map(|(_, weight)| weight).sum();
        let shares = groups.iter().map(|(_, weight)| weight / all);
        let shares: Vec<(f64, &[f64])> = shares.zip(atoms.likelihoods.iter().map(Vec::as_slice)).collect();
        maximise_likelihood(&shares, &mut weights, steps);
        TruthLaw::Atoms(Arc::clone(atoms), weights)
    }

    /// The posterior of each item's p* under a law.
    pub(crate) fn posteriors<'b>(&'b self, law: &'b TruthLaw) -> Posteriors<'b> {
        let forms = match law {
            TruthLaw::Atoms(atoms, weights) => {
                let sums = |likelihood: &Vec<f64>| {
                    let mut sum = 0.0;
                    let add = |(w, l): (&f64, &f64)| {
                        sum += w * l;
                        sum
                    };
                    weights.iter().zip(likelihood).map(add).collect()
                };
                Forms::Atoms { points: &atoms.points, sums: atoms.likelihoods.iter().map(sums).collect() }
            }
            TruthLaw::Dirichlet(parameters) => {
                let posterior =
                    |counts: &&[u32]| counts.iter().zip(parameters).map(|(&n, a)| a + f64::from(n)).collect();
                Forms::Dirichlet(self.distinct.iter().map(posterior).collect())
            }
        };
        Posteriors { votes_of_item: &self.votes_of_item, forms }
    }
}

/// The concentration of the Dirichlet law with this mean that matches the share of label pairs that differ, which is estimated without
/// bias.
fn concentration(groups: &[(&[u32], f64)], mean: &[f64]) -> f64 {
    let paired = groups.iter().filter_map(|&(counts, weight)| Some((weight, Votes::new(counts).disagreement()?)));
    let (sum, all) = paired.fold((0.0, 0.0), |(sum, all), (weight, noise)| (sum + weight * noise, all + weight));
    let (noise, largest) = (sum / all, 1.0 - dot(mean, mean));
    if noise < largest {
        (noise / (largest - noise)).clamp(MIN_CONCENTRATION, MAX_CONCENTRATION)
    } else {
        MAX_CONCENTRATION
    }
}

/// The mean of the snapshot means.
fn mean_of(groups: &[(&[u32], f64)]) -> Vec<f64> {
    let mut mean = vec![0.0; groups.first().map_or(0, |(counts, _)| counts.len())];
    let all: f64 = groups.iter().map(|(_, weight)| weight).sum();
    for &(counts, weight) in groups {
        let scale = weight / all / Votes::new(counts).k() as f64;
        mean.iter_mut().zip(counts).for_each(|(sum, &n)| *sum += scale * f64::from(n));
    }
    mean
}

/// A law of p*.
#[derive(Debug)]
pub(crate) enum TruthLaw {
    /// Atoms and their weights.
    Atoms(Arc<Atoms>, Vec<f64>),
    /// The parameters of a Dirichlet distribution.
    Dirichlet(Vec<f64>),
}

/// The posterior of each item's p*.
#[derive(Debug)]
pub(crate) struct Posteriors<'a> {
    votes_of_item: &'a [u32],
    forms: Forms<'a>,
}

/// The posterior of p* for each distinct vote vector.
#[derive(Debug)]
enum Forms<'a> {
    /// Points, and for each distinct vote vector the cumulative weights of the points.
    Atoms {
        points: &'a [Vec<f64>],
        sums: Vec<Vec<f64>>,
    },
    Dirichlet(Vec<Vec<f64>>),
}

impl Posteriors<'_> {
    /// Draws an item's p*.
    pub(crate) fn draw_into(&self, item: usize, random: &mut Pcg64, out: &mut [f64]) {
        let votes = self.votes_of_item[item] as usize;
        match &self.forms {
            Forms::Atoms { points, sums } => {
                let u = uniform(random.next_u64()) * sums[votes].last().copied().unwrap_or(0.0);
                let place = sums[votes].partition_point(|sum| *sum <= u);
                out.copy_from_slice(&points[place.min(points.len() - 1)]);
            }
            Forms::Dirichlet(posteriors) => draw_into(&posteriors[votes], random, out),
        }
    }
}
