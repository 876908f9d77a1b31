//! Simulated data with known truth: the paper's sinusoid, and a model too smooth to follow it.

use std::path::Path;

use pointsman_table::{Column, ColumnKind, TableWriter};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::interrupt::Writing;

/// Labels per row.
pub(super) const LABELS: u32 = 20;
/// The standard deviation of the weak model's window. The fast oscillation has a period of 0.05.
const WINDOW_DEVIATION: f64 = 0.1;
/// Points of the window on each side.
const NODES: i32 = 60;

/// The true probability of the class `yes`: the sinusoid of the paper's synthetic experiments.
pub(super) fn truth(x: f64) -> f64 {
    let w = 0.2 * ((x.abs() - 1.0) / 0.2).exp().ln_1p();
    let v = x.signum() * (120.0 * x.abs() - 112.0 * w - 0.0635);
    let u = 0.6 * v.cos() + 0.4 * (4.2 * x).cos();
    (0.98 * u + 1.0) / 2.0
}

/// The weak model, like a small network: the truth averaged over a Gaussian window.
pub(super) fn weak(x: f64) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for node in -NODES..=NODES {
        // Four standard deviations to each side.
        let z = 4.0 * f64::from(node) / f64::from(NODES);
        let w = (-z * z / 2.0).exp();
        sum += w * truth(x + WINDOW_DEVIATION * z);
        weight += w;
    }
    sum / weight
}

/// Draws inputs and labels.
#[derive(Debug)]
pub(super) struct World {
    random: Pcg64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Pcg64::seed_from_u64(seed) }
    }

    /// Writes a table; only held-out tables have the known truth.
    pub(super) fn write(&mut self, path: &Path, rows: u32, known: bool, writing: &Writing) -> anyhow::Result<()> {
        const BATCH: u32 = 1 << 14;
        let text = ["id"].map(|name| (name, ColumnKind::Text));
        let reals = ["prob_no", "prob_yes"].map(|name| (name, ColumnKind::Real));
        let counts = ["votes_no", "votes_yes"].map(|name| (name, ColumnKind::Count));
        let mut names: Vec<(String, ColumnKind)> =
            text.into_iter().chain(reals).chain(counts).map(|(name, kind)| (name.to_owned(), kind)).collect();
        names.push(("x_position".to_owned(), ColumnKind::Real));
        if known {
            names.extend(["true_no", "true_yes"].map(|name| (name.to_owned(), ColumnKind::Real)));
        }
        let mut writer = TableWriter::create(path, None, &names)?;
        for start in (0..rows).step_by(BATCH as usize) {
            writing.check()?;
            writer.write(&self.batch(start..rows.min(start + BATCH), known))?;
        }
        Ok(writer.finish()?)
    }

    fn batch(&mut self, rows: std::ops::Range<u32>, known: bool) -> Vec<Column> {
        let ids = rows.clone().map(|row| format!("q{row}")).collect();
        let x: Vec<f64> = rows.map(|_| self.normal()).collect();
        let yes: Vec<u64> = x.iter().map(|&x| self.votes(truth(x))).collect();
        let no = yes.iter().map(|&n| u64::from(LABELS) - n).collect();
        let weak: Vec<f64> = x.iter().map(|&x| weak(x)).collect();
        let rest = |p: &[f64]| Column::Real(p.iter().map(|p| 1.0 - p).collect());
        let truth: Vec<f64> = x.iter().map(|&x| truth(x)).collect();
        let mut columns =
            vec![Column::Text(ids), rest(&weak), Column::Real(weak), Column::Count(no), Column::Count(yes)];
        columns.push(Column::Real(x));
        if known {
            columns.extend([rest(&truth), Column::Real(truth)]);
        }
        columns
    }

    /// A number in (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// The number of annotators who answer yes.
    fn votes(&mut self, p: f64) -> u64 {
        (0..LABELS).filter(|_| self.uniform() <= p).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_model_follows_the_slow_part_only() {
        assert!((truth(0.0) - 0.5 * (1.0 + 0.98 * (0.6 * 0.0_f64.cos() + 0.4))).abs() < 0.01);
        for i in -40..=40 {
            let x = f64::from(i) / 10.0;
            assert!((0.0..=1.0).contains(&truth(x)) && (0.0..=1.0).contains(&weak(x)), "{x}");
        }
        // In the middle only cos 4.2x remains, a little damped.
        let slow = |x: f64| 0.5 + 0.49 * 0.4 * (4.2 * x).cos() * (-0.5 * (4.2 * WINDOW_DEVIATION).powi(2)).exp();
        assert!((weak(0.3) - slow(0.3)).abs() < 0.01);
    }

    #[test]
    fn draws_have_the_right_moments() {
        let mut world = World::new(3);
        let x: Vec<f64> = (0..20_000).map(|_| world.normal()).collect();
        let mean = x.iter().sum::<f64>() / 20_000.0;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        let votes: u64 = (0..5_000).map(|_| world.votes(0.3)).sum();
        assert!((votes as f64 / 100_000.0 - 0.3).abs() < 0.01);
    }
}
