//! Draws of the true label distributions that may be behind the votes of some items.
//!
//! First a law of p* is drawn: the law fitted to the items reweighted at random (the Bayesian bootstrap), which makes laws differ as far as
//! the items leave them open. Then each item has a p* drawn from its posterior under that law. The mean of such draws over the items varies as
//! the mean of their p* does, given what is known.
//!
//! Two classes have the law of the estimator `npmle`, more have a Dirichlet law of the same mean and variance. What k labels cannot identify is left as the
//! maximisation starts; so that this is not taken for knowledge, every draw stops after another number of steps.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::dirichlet::draw_into;
use super::npmle::{Law, STEPS, likelihood};
use crate::mix::{class_at, uniform};
use crate::simplex::dot;
use crate::votes::Votes;

/// The fewest steps of a maximisation, as a power of two.
const FEWEST_STEPS_LOG: f64 = 2.0;

/// Concentrations of the Dirichlet law where items carry one label each, which says nothing about them.
const CONCENTRATIONS_OF_SINGLE_LABELS: [f64; 2] = [0.25, 4.0];

/// The range of concentrations otherwise: from labels that nearly agree within each item to items that are all alike.
const LOWEST: f64 = 0.02;
const HIGHEST: f64 = 3000.0;

/// The votes of some items.
#[derive(Debug)]
pub(crate) struct PossibleTruths<'a> {
    distinct: Vec<&'a [u32]>,
    /// Which of the distinct votes each item has.
    votes_of_item: Vec<u32>,
    weights: Option<&'a [f64]>,
    /// Whether half of the items or more carry two labels.
    identified: bool,
}

impl<'a> PossibleTruths<'a> {
    /// `None` if there are no items.
    pub(crate) fn of(items: impl Iterator<Item = Votes<'a>>, weights: Option<&'a [f64]>) -> Option<Self> {
        let items: Vec<Votes<'a>> = items.collect();
        let distinct: BTreeMap<&[u32], u32> = items.iter().map(|votes| (votes.counts(), 0)).collect();
        let distinct: Vec<&[u32]> = distinct.into_keys().collect();
        let place = |votes: &Votes<'a>| distinct.binary_search(&votes.counts()).unwrap_or(0) as u32;
        let votes_of_item = items.iter().map(place).collect();
        let paired = items.iter().filter(|votes| votes.k() > 1).count();
        let identified = 2 * paired >= items.len();
        (!items.is_empty()).then_some(Self { distinct, votes_of_item, weights, identified })
    }

    /// A law that may be behind the votes, as the posterior of each of the distinct votes.
    pub(crate) fn draw_law(&self, random: &mut Pcg64) -> TruthLaw<'_> {
        let mut groups: Vec<(&[u32], f64)> = self.distinct.iter().map(|counts| (*counts, 0.0)).collect();
        for (item, &votes) in self.votes_of_item.iter().enumerate() {
            let weight = self.weights.map_or(1.0, |weights| weights[item]);
            // Exponential weights make the Bayesian bootstrap.
            groups[votes as usize].1 -= weight * (1.0 - uniform(random.next_u64())).ln();
        }
        let mean = mean_of(&groups);
        let place = uniform(random.next_u64());
        let posteriors = if mean.len() == 2 && self.identified {
            let most = (STEPS as f64).log2();
            let steps = (FEWEST_STEPS_LOG + (most - FEWEST_STEPS_LOG) * place).exp2() as usize;
            Posteriors::atoms(&Law::of_two_classes(&groups, &mean, steps), &self.distinct)
        } else {
            let [low, high] = CONCENTRATIONS_OF_SINGLE_LABELS;
            let a = if self.identified { concentration(&groups, &mean) } else { low * (high / low).powf(place) };
            Posteriors::dirichlet(a, &mean, &self.distinct)
        };
        TruthLaw { votes_of_item: &self.votes_of_item, posteriors }
    }
}

/// The concentration of the Dirichlet law with this mean whose labels differ within an item as often as those of the items do: that
/// is what pairs of labels tell without bias.
fn concentration(groups: &[(&[u32], f64)], mean: &[f64]) -> f64 {
    let paired = groups.iter().filter_map(|&(counts, weight)| Some((weight, Votes::new(counts).disagreement()?)));
    let (sum, all) = paired.fold((0.0, 0.0), |(sum, all), (weight, noise)| (sum + weight * noise, all + weight));
    let (noise, largest) = (sum / all, 1.0 - dot(mean, mean));
    if noise < largest { (noise / (largest - noise)).clamp(LOWEST, HIGHEST) } else { HIGHEST }
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

/// A law of p*, given each item's votes.
#[derive(Debug)]
pub(crate) struct TruthLaw<'a> {
    votes_of_item: &'a [u32],
    posteriors: Posteriors,
}

/// The posterior of p* for each of the distinct votes.
#[derive(Debug)]
enum Posteriors {
    Atoms { atoms: Vec<Vec<f64>>, weights: Vec<Vec<f64>> },
    Dirichlet(Vec<Vec<f64>>),
}

impl Posteriors {
    fn atoms(law: &Law, distinct: &[&[u32]]) -> Self {
        let likelihood = likelihood(&law.atoms);
        let posterior = |counts: &&[u32]| {
            let mut weights: Vec<f64> = law.weights.iter().zip(likelihood(counts)).map(|(w, l)| w * l).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
            weights
        };
        Self::Atoms { weights: distinct.iter().map(posterior).collect(), atoms: law.atoms.clone() }
    }

    fn dirichlet(concentration: f64, mean: &[f64], distinct: &[&[u32]]) -> Self {
        let posterior =
            |counts: &&[u32]| counts.iter().zip(mean).map(|(&n, share)| concentration * share + f64::from(n)).collect();
        Self::Dirichlet(distinct.iter().map(posterior).collect())
    }
}

impl TruthLaw<'_> {
    /// Writes what p* of an item may be.
    pub(crate) fn draw_into(&self, item: usize, random: &mut Pcg64, out: &mut [f64]) {
        let votes = self.votes_of_item[item] as usize;
        match &self.posteriors {
            Posteriors::Atoms { atoms, weights } => {
                out.copy_from_slice(&atoms[class_at(&weights[votes], uniform(random.next_u64()))]);
            }
            Posteriors::Dirichlet(posteriors) => draw_into(&posteriors[votes], random, out),
        }
    }
}
