//! What plans promise that labels save, and what they do save if they are bought, in simulations of known truth.

use std::collections::BTreeMap;

use pointsman::certify::{Offer, Plan};
use pointsman::{CellId, Loss, Oracle, Partition, Router, Table, Task};

use crate::routing_worlds::{Features, Queries, World};
use crate::world::Rng;

/// One setting: a law, a number of rows and of labels per item, a loss and the scale of its prices, and a partition.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) classes: usize,
    pub(super) rows: usize,
    pub(super) labels: usize,
    pub(super) loss: Loss,
    pub(super) scale: f64,
    pub(super) partition: Partition,
}

/// The kinds of labels that are bought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    NewItems,
    MoreLabels,
}

/// The mean promise and saving per thousand queries over seeds, and the standard error of their difference.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) promised: f64,
    pub(super) saved: f64,
    pub(super) error: f64,
    /// The mean over the seeds of the stated standard error, as a root of mean squares.
    pub(super) stated: f64,
    /// The root of the mean square of promise minus saving.
    pub(super) spread: f64,
}

impl Setting {
    fn world(&self) -> World {
        World { classes: self.classes, features: Features::Missing }
    }

    fn task(&self, rng: &mut Rng, with_abstention: bool) -> Task {
        let price = self.scale * (0.2 + 0.6 * rng.uniform());
        let task = Task::new(self.loss.clone()).route("expert", Oracle::bayes(), price).unwrap();
        if with_abstention { task.abstain(self.scale * (1.2 + rng.uniform())).unwrap() } else { task }
    }

    /// Buys what plans offer in simulated worlds, with free labels.
    pub(super) fn follow(&self, kind: Kind, seeds: std::ops::Range<u64>) -> Outcome {
        let queries = self.world().draw(&mut Rng::new(1), 20_000, 1);
        let (mut differences, mut squares, mut sums) = (Vec::new(), 0.0, [0.0; 2]);
        for seed in seeds {
            let mut rng = Rng::new(1000 + seed);
            let task = self.task(&mut rng, seed % 2 == 1);
            let table = self.world().draw(&mut rng, self.rows, self.labels);
            let router = Router::calibrate(&table, &self.partition).unwrap();
            let plan = router.plan(&task, 0.95).unwrap();
            let (later, offers) = match kind {
                Kind::NewItems => self.with_items(&mut rng, &router, &plan),
                Kind::MoreLabels => self.with_labels(&mut rng, &table, &router, &plan),
            };
            let truth = Queries::new(queries.clone(), vec![task.clone()]);
            let cost = |router: &Router| truth.cost_of(&router.policy(&task).unwrap(), 0);
            let saved = 1000.0 * (cost(&router) - cost(&later));
            let promised: f64 = offers.iter().map(|offer| offer.worth).sum();
            differences.push(promised - saved);
            squares += offers.iter().map(|offer| offer.worth_error.powi(2)).sum::<f64>();
            sums[0] += promised;
            sums[1] += saved;
        }
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let variance = differences.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let spread = (differences.iter().map(|x| x * x).sum::<f64>() / n).sqrt();
        let [promised, saved] = sums.map(|sum| sum / n);
        Outcome { promised, saved, error: (variance / n).sqrt(), stated: (squares / n).sqrt(), spread }
    }

    /// The router with the new items of a plan within four times its labels.
    fn with_items(&self, rng: &mut Rng, router: &Router, plan: &Plan) -> (Router, Vec<Offer>) {
        let most = 4 * self.rows * self.labels;
        let offers = plan.purchase_within(most, 0.0, 1000.0, |offer| offer.more_items.is_some()).offers;
        let mut left: BTreeMap<CellId, usize> =
            offers.iter().map(|offer| (offer.cell, offer.more_items.unwrap())).collect();
        let mut later = router.clone();
        while left.values().any(|items| *items > 0) {
            let new = self.world().draw(rng, 4 * self.rows, self.labels);
            let found = router.find_cells(&new).unwrap();
            let is_bought = |cell: &CellId| match left.get_mut(cell) {
                Some(items) if *items > 0 => {
                    *items -= 1;
                    true
                }
                _ => false,
            };
            let bought: Vec<bool> = found.iter().map(is_bought).collect();
            if bought.iter().any(|bought| *bought) {
                later = later.with_more_rows(&new.keep_rows(|row| bought[row])).unwrap();
            }
        }
        (later, offers)
    }

    /// The router with more labels on the items of a table.
    fn with_labels(&self, rng: &mut Rng, table: &Table, router: &Router, plan: &Plan) -> (Router, Vec<Offer>) {
        let offers = plan.purchase_of(0.0, 1000.0, |offer| offer.more_labels.is_some()).offers;
        let cells = router.find_cells(table).unwrap();
        let mut votes = Vec::new();
        for row in 0..table.rows() {
            let offer = offers.iter().find(|offer| offer.cell == cells[row]);
            let more = rng.votes(table.truth(row).unwrap(), offer.map_or(0, |offer| offer.more_labels.unwrap()));
            votes.extend(table.votes(row).unwrap().counts().iter().zip(more).map(|(count, more)| count + more));
        }
        let labelled = Table::new(table.classes().to_vec(), table.predictions().into_owned()).unwrap();
        (Router::calibrate(&labelled.with_votes(votes).unwrap(), &self.partition).unwrap(), offers)
    }
}

fn explore(partition: &Partition, seeds: std::ops::Range<u64>) {
    for (loss, scale) in [(Loss::zero_one(), 0.25), (Loss::brier(), 0.3), (Loss::cross_entropy(), 0.5)] {
        for (classes, rows, labels) in [(3, 400, 2), (3, 400, 3), (3, 1500, 3), (4, 600, 5), (2, 600, 3)] {
            let setting = Setting { classes, rows, labels, loss: loss.clone(), scale, partition: partition.clone() };
            for kind in [Kind::NewItems, Kind::MoreLabels] {
                let found = setting.follow(kind, seeds.clone());
                let off = (found.promised - found.saved) / found.error;
                println!(
                    "{loss} {partition} {classes} classes {rows} rows {labels} labels {kind:?}: promised {:.2} saved {:.2} ± {:.2} \
                     ({off:.1} s.e.), stated {:.2}, spread {:.2}",
                    found.promised, found.saved, found.error, found.stated, found.spread
                );
            }
        }
    }
}

#[test]
#[ignore = "exploration"]
fn explore_worth() {
    let text = std::env::var("PARTITION").unwrap_or("confidence:5".to_owned());
    let seeds = std::env::var("SEEDS").map_or(64, |text| text.parse().unwrap());
    explore(&text.parse().unwrap(), 0..seeds);
}
