//! Worlds of levels: all items of a level have one prediction and a known law of p*.

use pointsman::{CellId, Loss, Partition, Router, Table, Task};

use crate::error::{Error, Result};
use crate::random::Random;

/// Levels per world; each level is one cell.
pub(super) const LEVELS: usize = 10;

/// Items per level for its true losses; the standard error of a mean loss is below 0.002.
const ITEMS_PER_TRUE_LOSS: usize = 100_000;

/// A law of p* that depends on the level.
pub(super) struct Law {
    pub(super) name: &'static str,
    pub(super) prediction: fn(usize) -> Vec<f64>,
    pub(super) draw: fn(usize, &mut Random) -> Vec<f64>,
}

pub(super) const LAWS: [Law; 5] = [
    Law {
        name: "two classes, smooth",
        prediction: two_classes,
        draw: |level, random| match random.below(3) {
            0 => random.dirichlet([2.0, 2.0]),
            _ => random.dirichlet([2.0 + level as f64, 11.0 - level as f64]),
        },
    },
    Law {
        name: "three classes, smooth",
        prediction: three_classes,
        draw: |level, random| match random.below(3) {
            0 => random.dirichlet([1.5; 3]),
            _ => random.dirichlet(three_classes(level).into_iter().map(|f| 6.0 * f + 0.7)),
        },
    },
    Law {
        name: "two classes, atoms on kinks",
        prediction: two_classes,
        draw: |level, random| match random.uniform() {
            u if u < 0.35 => vec![0.8, 0.2],
            u if u < 0.6 => vec![0.5, 0.5],
            u if u < 0.6 + 0.04 * level as f64 => vec![0.95, 0.05],
            _ => vec![0.05, 0.95],
        },
    },
    Law {
        name: "three classes, easy or ambiguous",
        prediction: three_classes,
        draw: |level, random| match random.uniform() {
            u if u < 0.35 + 0.05 * level as f64 => vec![0.97, 0.02, 0.01],
            u if u < 0.9 => vec![0.4, 0.35, 0.25],
            _ => vec![0.04, 0.95, 0.01],
        },
    },
    Law {
        name: "two classes, logistic normal",
        prediction: two_classes,
        draw: |level, random| {
            let logit = 0.35 * (level as f64 - 4.5) + 1.5 * random.normal();
            let p = 1.0 / (1.0 + (-logit).exp());
            vec![p, 1.0 - p]
        },
    },
];

fn two_classes(level: usize) -> Vec<f64> {
    let first = 0.1 + 0.085 * level as f64;
    vec![first, 1.0 - first]
}

fn three_classes(level: usize) -> Vec<f64> {
    let first = 0.38 + 0.06 * level as f64;
    vec![first, 0.6 * (1.0 - first), 0.4 * (1.0 - first)]
}

/// An item: its true distribution and its votes.
pub(super) type Item = (Vec<f64>, Vec<u32>);

/// The true losses of a level: of predicting, and of knowing the truth.
pub(super) type BaseLosses = [f64; 2];

impl Law {
    pub(super) fn classes(&self) -> usize {
        (self.prediction)(0).len()
    }

    pub(super) fn draw_item(&self, level: usize, k: usize, random: &mut Random) -> Item {
        let truth = (self.draw)(level, random);
        let votes = random.votes(&truth, k);
        (truth, votes)
    }

    /// Calibrates a router on items grouped by level.
    pub(super) fn calibrate(&self, items: &[(usize, &[Item])]) -> Result<Router> {
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for (level, items) in items {
            for (_, counts) in *items {
                probs.extend((self.prediction)(*level));
                votes.extend_from_slice(counts);
            }
        }
        let names = (0..self.classes()).map(|class| format!("c{class}"));
        Ok(Router::calibrate(&Table::new(names, probs)?.with_votes(votes)?, &Partition::level_sets())?)
    }

    /// The level of a router's cell.
    pub(super) fn level_of(&self, router: &Router, cell: CellId) -> Result<usize> {
        let mixture = router.mixture(cell);
        let first = mixture.rows().next().map_or(f64::NAN, |row| mixture.table().prediction(row)[0]);
        (0..LEVELS)
            .find(|&level| ((self.prediction)(level)[0] - first).abs() < 1e-6)
            .ok_or_else(|| Error::Setting(format!("cell {cell} is no level")))
    }

    /// The losses of predicting and of knowing the truth in a level, for each loss.
    pub(super) fn base_losses_of(&self, level: usize, losses: &[Loss]) -> Vec<BaseLosses> {
        let mut random = Random::new(level as u64, "truths of levels");
        let (f, mut sums) = ((self.prediction)(level), vec![[0.0; 2]; losses.len()]);
        for _ in 0..ITEMS_PER_TRUE_LOSS {
            let p = (self.draw)(level, &mut random);
            for (loss, [predict, know]) in losses.iter().zip(&mut sums) {
                *predict += loss.expected(&p, &f) / ITEMS_PER_TRUE_LOSS as f64;
                *know += loss.entropy(&p) / ITEMS_PER_TRUE_LOSS as f64;
            }
        }
        sums
    }

    /// The base losses of each loss in each level.
    pub(super) fn base_losses(&self, losses: &[Loss]) -> Vec<Vec<BaseLosses>> {
        let levels: Vec<Vec<BaseLosses>> = (0..LEVELS).map(|level| self.base_losses_of(level, losses)).collect();
        (0..losses.len()).map(|place| levels.iter().map(|level| level[place]).collect()).collect()
    }

    /// The losses as certified for the tasks; the cross-entropy is certified with a floor on probabilities.
    pub(super) fn certified_losses(&self, tasks: &[Task]) -> Result<Vec<Loss>> {
        let mut random = Random::new(0, "certified losses");
        let items: Vec<Item> = (0..2).map(|_| self.draw_item(0, 2, &mut random)).collect();
        let router = self.calibrate(&[(0, &items)])?;
        tasks.iter().map(|task| Ok(router.certificate(task, 0.5)?.loss().clone())).collect()
    }
}

/// The cost of each action, in the order of [`Task::action_names`]; routes know the truth.
pub(super) fn action_costs(task: &Task, [predict, know]: BaseLosses) -> Vec<f64> {
    let routes = task.routes().iter().map(|route| know + route.price());
    [predict].into_iter().chain(routes).chain(task.abstain_price()).collect()
}

/// The losses for a number of classes, with the scale of their prices.
pub(super) fn losses(classes: usize) -> Result<Vec<(Loss, f64)>> {
    let last = if classes == 2 { ("fn-fp:fp=1,fn=4", 1.5) } else { ("asymmetric:4", 1.5) };
    let all = [("brier", 1.0), ("zero-one", 0.6), ("cross-entropy", 1.3), last];
    all.into_iter().map(|(loss, scale)| Ok((loss.parse()?, scale))).collect()
}
