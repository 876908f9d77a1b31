//! Laws of p* within a cell, for simulations.

use crate::random::Random;

/// A law of p*: its name, and a function that draws from it.
pub(super) type Law = (&'static str, fn(&mut Random, &[f64]) -> Vec<f64>);

/// The number of laws at the end of [`LAWS`] that were not used to develop `auto`.
pub(super) const HELD_OUT_LAWS: usize = 2;

/// The laws of p* of the simulation.
pub(super) const LAWS: [Law; 11] = [
    ("one point", |_, mean| mean.to_vec()),
    ("two atoms", |random, mean| {
        let share = if random.uniform() < 0.5 { 0.2 } else { 0.8 };
        let mut p = edge(mean.len(), 1, share);
        if p.len() > 2 {
            let rest = 0.1 / (p.len() - 2) as f64;
            p.iter_mut().enumerate().for_each(|(class, x)| *x = if class < 2 { 0.9 * *x } else { rest });
        }
        p
    }),
    ("atoms on kinks", |random, mean| match random.uniform() {
        u if u < 0.35 => edge(mean.len(), 1, 0.8),
        u if u < 0.65 => edge(mean.len(), other_class(random, mean), 0.5),
        _ => edge(mean.len(), 1, 1.0),
    }),
    ("smooth Dirichlet", |random, mean| random.dirichlet(mean.iter().map(|x| 6.0 * x))),
    ("sparse Dirichlet", |random, mean| random.dirichlet(mean.iter().map(|x| 0.7 * x))),
    ("edges", |random, mean| {
        let other = other_class(random, mean);
        edge(mean.len(), other, random.uniform())
    }),
    ("easy and ambiguous", |random, mean| {
        if random.uniform() < 0.75 {
            return peak(mean.len(), 0, 0.97);
        }
        let mut p = edge(mean.len(), 1, 0.45);
        if p.len() > 2 {
            p[..3].copy_from_slice(&[0.4, 0.35, 0.25]);
        }
        p
    }),
    ("near vertices", |random, mean| peak(mean.len(), class_of(random, mean), 0.95)),
    ("wide Dirichlet", |random, mean| random.dirichlet(mean.iter().map(|_| if mean.len() > 3 { 0.5 } else { 1.0 }))),
    ("logistic normal", |random, mean| normalised(mean.iter().map(|x| x * (1.5 * random.normal()).exp()).collect())),
    ("certain or Dirichlet", |random, mean| {
        if random.uniform() < 0.5 {
            let class = class_of(random, mean);
            return (0..mean.len()).map(|other| f64::from(u8::from(other == class))).collect();
        }
        random.dirichlet(mean.iter().map(|x| 3.0 * x))
    }),
];

/// A distribution with `share` on the first class and the rest on one other class.
fn edge(classes: usize, other: usize, share: f64) -> Vec<f64> {
    let mut p = vec![0.0; classes];
    p[0] = share;
    p[other] += 1.0 - share;
    p
}

/// A distribution with `share` on one class and the rest spread evenly.
fn peak(classes: usize, class: usize, share: f64) -> Vec<f64> {
    let mut p = vec![(1.0 - share) / (classes - 1) as f64; classes];
    p[class] = share;
    p
}

pub(super) fn class_of(random: &mut Random, p: &[f64]) -> usize {
    let mut left = random.uniform();
    for (class, share) in p.iter().enumerate() {
        if left < *share {
            return class;
        }
        left -= share;
    }
    0
}

fn other_class(random: &mut Random, mean: &[f64]) -> usize {
    loop {
        let class = class_of(random, mean);
        if class != 0 {
            return class;
        }
    }
}

fn normalised(mut p: Vec<f64>) -> Vec<f64> {
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|x| *x /= sum);
    p
}

/// A distribution with 0.6 on the first class and decreasing shares on the others.
pub(super) fn mean_distribution(classes: usize) -> Vec<f64> {
    let others: Vec<f64> = (1..classes).map(|class| (class as f64).powf(-1.2)).collect();
    let sum: f64 = others.iter().sum();
    [0.6].into_iter().chain(others.into_iter().map(|x| 0.4 * x / sum)).collect()
}
