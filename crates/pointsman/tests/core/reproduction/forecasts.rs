//! Forecasts of plans in simulations of known truth: they have the stated probability and worth.

use pointsman::certify::CellPlan;
use pointsman::{Loss, Oracle, Task};

use crate::plans::{Item, calibrated, task};
use crate::world::Rng;

/// The levels of a simulation, each with one prediction and one law of true distributions.
pub(super) const LEVELS: usize = 10;

pub(super) struct Law {
    pub(super) prediction: fn(usize) -> Vec<f64>,
    truth: fn(&mut Rng, usize) -> Vec<f64>,
}

/// A third of the items of a level are of any kind, the others nearly as predicted.
pub(super) const BETA: Law = Law {
    prediction: |level| {
        let c = 0.1 + 0.085 * level as f64;
        vec![c, 1.0 - c]
    },
    truth: |rng, level| {
        let mut gamma = |shape: usize| (0..shape).map(|_| -(1.0 - rng.uniform()).ln()).sum::<f64>();
        let (of_any_kind, predicted) = ([gamma(2), gamma(2)], [gamma(2 + level), gamma(11 - level)]);
        let [a, b] = if rng.below(3) == 0 { of_any_kind } else { predicted };
        vec![a / (a + b), b / (a + b)]
    },
};

/// Three classes; items are clear or ambiguous.
const CLEAR_OR_NOT: Law = Law {
    prediction: |level| {
        let c = 0.38 + 0.06 * level as f64;
        vec![c, 0.6 * (1.0 - c), 0.4 * (1.0 - c)]
    },
    truth: |rng, level| match rng.uniform() {
        u if u < 0.35 + 0.05 * level as f64 => vec![0.97, 0.02, 0.01],
        u if u < 0.9 => vec![0.4, 0.35, 0.25],
        _ => vec![0.04, 0.95, 0.01],
    },
};

/// Four classes, as of tickets that are sorted into queues: the harder an item is, the more labels differ.
const FOUR_CLASSES: Law = Law {
    prediction: |level| {
        let c = 0.4 + 0.055 * level as f64;
        vec![c, 0.5 * (1.0 - c), 0.3 * (1.0 - c), 0.2 * (1.0 - c)]
    },
    truth: |rng, level| {
        let hard = f64::midpoint(rng.uniform(), rng.uniform());
        let mut truth = vec![0.15 * hard; 4];
        let class = if rng.uniform() < 0.45 + 0.05 * level as f64 { 0 } else { 1 + rng.below(3) };
        truth[class] = 1.0 - 0.45 * hard;
        truth
    },
};

impl Law {
    pub(super) fn draw(&self, rng: &mut Rng, level: usize, k: usize) -> Item {
        let truth = (self.truth)(rng, level);
        Item { prediction: (self.prediction)(level), votes: rng.votes(&truth, k), truth }
    }
}

/// The cost of an action in a level of continuous truths, from enough draws that the error is negligible.
pub(super) fn true_cost(task: &Task, items: &[Item], action: &str) -> f64 {
    let mean = |value: &dyn Fn(&Item) -> f64| items.iter().map(value).sum::<f64>() / items.len() as f64;
    match action {
        "predict" => mean(&|item| task.loss().expected(&item.truth, &item.prediction)),
        "abstain" => task.abstain_price().unwrap(),
        _ => mean(&|item| task.loss().entropy(&item.truth)) + task.routes()[0].price(),
    }
}

/// Cells whose labels were bought as planned: the stated probabilities and the results.
#[derive(Default)]
struct Tally {
    cells: f64,
    stated: f64,
    determined: f64,
    /// Determined minus stated, summed per simulation, because cells of one simulation share their prices.
    by_world: Vec<f64>,
}

impl Tally {
    fn add(&mut self, chance: f64, determined: bool) {
        let determined = f64::from(u8::from(determined));
        self.cells += 1.0;
        self.stated += chance;
        self.determined += determined;
        *self.by_world.last_mut().unwrap() += determined - chance;
    }

    /// The rate determined, the rate stated, and the standard error of their difference.
    fn rates(&self) -> [f64; 3] {
        let error = self.by_world.iter().map(|x| x * x).sum::<f64>().sqrt();
        [self.determined, self.stated, error].map(|sum| sum / self.cells)
    }
}

/// The results of plans, bought by labels and by items, and the stated and actual saving of the cheaper way.
#[derive(Default)]
struct Followed {
    by_labels: Tally,
    by_items: Tally,
    worth: f64,
    saved: Vec<f64>,
}

/// Plans in several simulations, and the results of buying what each asks for in each cell, by either way. `labels` draws the number of labels
/// of an item.
fn follow(
    law: &Law,
    seed: u64,
    worlds: usize,
    loss: &Loss,
    scale: f64,
    labels: impl Fn(&mut Rng) -> usize,
) -> Followed {
    let mut rng = Rng::new(seed);
    let mut followed = Followed::default();
    let level_items =
        |level: usize| (0..4000).map(|i| law.draw(&mut Rng::new((4000 * level + i) as u64), level, 1)).collect();
    let truths: Vec<Vec<Item>> = (0..LEVELS).map(level_items).collect();
    for _ in 0..worlds {
        followed.by_labels.by_world.push(0.0);
        followed.by_items.by_world.push(0.0);
        let mut draw = |i: usize| {
            let k = labels(&mut rng);
            law.draw(&mut rng, i % LEVELS, k)
        };
        let items: Vec<Item> = (0..1000).map(&mut draw).collect();
        let router = calibrated(&items);
        let (route, abstain) = (scale * (0.01 + 0.2 * rng.uniform()), scale * (0.2 + 0.4 * rng.uniform()));
        let task = Task::new(loss.clone()).route("expert", Oracle::bayes(), route).unwrap().abstain(abstain).unwrap();
        for plan in &router.plan(&task, 0.9).unwrap().cells {
            let cell = router.mixture(plan.cell);
            let level = (0..LEVELS).find(|&level| {
                (cell.table().prediction(cell.rows().next().unwrap())[0] - (law.prediction)(level)[0]).abs() < 1e-6
            });
            let level = level.unwrap();
            let is_in = |item: &Item| item.prediction[0] == (law.prediction)(level)[0];
            let in_all = plan.more_labels.map(|more| more * router.mixture(plan.cell).len());
            if let (Some(more), Some(chance)) = (plan.more_labels, plan.chance_by_labels) {
                let mut items = items.clone();
                for item in items.iter_mut().filter(|item| is_in(item)) {
                    let new = rng.votes(&item.truth, more);
                    item.votes.iter_mut().zip(new).for_each(|(n, more)| *n += more);
                }
                let determined =
                    bought(&items, &task, plan, &truths[level], (in_all == plan.labels).then_some(&mut followed));
                followed.by_labels.add(chance, determined);
            }
            if let (Some(more), Some(chance)) = (plan.more_items, plan.chance_by_items) {
                let mut items = items.clone();
                items.extend((0..more).map(|_| law.draw(&mut rng, level, plan.labels_per_new_item)));
                let determined =
                    bought(&items, &task, plan, &truths[level], (in_all != plan.labels).then_some(&mut followed));
                followed.by_items.add(chance, determined);
            }
        }
    }
    followed
}

/// Whether these items determine the cell of a plan; the saving is recorded for the way that the plan asks for.
fn bought(items: &[Item], task: &Task, plan: &CellPlan, truths: &[Item], asked: Option<&mut Followed>) -> bool {
    let router = calibrated(items);
    let policy = router.policy(task).unwrap();
    if let Some(followed) = asked {
        let now = policy.cell(plan.cell).unwrap().action().to_string();
        let cost = |action: &str| true_cost(task, truths, action);
        followed.worth += plan.worth;
        followed.saved.push(1000.0 * plan.share * (cost(&plan.action) - cost(&now)));
    }
    router.certificate(task, 0.9).unwrap().judge(&policy).unwrap().cells[plan.cell.index()].certain
}

/// The labels that a plan asks for determine cells with the stated probability, by labels and by items, within 0.1 and two standard errors; and
/// they are worth what is stated, within 30 % and two standard errors.
#[test]
fn forecasts_have_the_stated_probability() {
    let asymmetric: Loss = "fn-fp:fp=1,fn=4".parse().unwrap();
    let (mut worth, mut saved) = (0.0, Vec::new());
    for (seed, loss, scale) in
        [(24, Loss::brier(), 1.0), (25, Loss::zero_one(), 0.6), (26, Loss::cross_entropy(), 1.3), (27, asymmetric, 1.5)]
    {
        let followed = follow(&BETA, seed, 40, &loss, scale, |_| 3);
        for (way, tally) in [("labels", &followed.by_labels), ("items", &followed.by_items)] {
            let [determined, stated, error] = tally.rates();
            println!(
                "{loss}, by {way}: {determined:.2} of {} cells determined, {stated:.2} stated ± {error:.2}",
                tally.cells
            );
            assert!(tally.cells >= 15.0, "{loss}, by {way}: {} cells", tally.cells);
            assert!(
                (determined - stated).abs() < 0.1 + 2.0 * error,
                "{loss}, by {way}: {determined}, not {stated} ± {error}"
            );
        }
        worth += followed.worth;
        saved.extend(followed.saved);
    }
    let error = saved.iter().map(|x| x * x).sum::<f64>().sqrt();
    let saved = saved.iter().sum::<f64>();
    println!("worth {worth:.2}, saved {saved:.2} ± {error:.2}");
    assert!((worth - saved).abs() < 0.3 * worth + 2.0 * error, "worth {worth}, saved {saved} ± {error}");
}

/// Three classes whose items are clear or ambiguous: a Dirichlet law fitted to their votes has too few of either, and forecasts of the cross-entropy
/// based on it were too optimistic.
#[test]
fn forecasts_by_labels_hold_for_clear_or_ambiguous_items() {
    let loss = Loss::cross_entropy();
    let tally = follow(&CLEAR_OR_NOT, 29, 40, &loss, 1.3, |_| 3).by_labels;
    let [determined, stated, error] = tally.rates();
    println!("{determined:.2} of {} cells determined, {stated:.2} stated ± {error:.2}", tally.cells);
    assert!(tally.cells >= 30.0, "{} cells", tally.cells);
    assert!((determined - stated).abs() < 0.1 + 2.0 * error, "{determined}, not {stated} ± {error}");
}

/// Items of which a third have one label and the others two to five. The rule, fixed before the first run: over at least 40 cells, the share of cells
/// determined is within 0.15 of the probability stated.
#[test]
fn forecasts_hold_if_some_items_have_one_label() {
    let labels = |rng: &mut Rng| if rng.below(3) == 0 { 1 } else { 2 + rng.below(4) };
    for (name, law, seed, worlds) in [("two classes", &BETA, 33, 40), ("four classes", &FOUR_CLASSES, 34, 40)] {
        let followed = follow(law, seed, worlds, &Loss::brier(), 1.0, labels);
        for (way, tally) in [("labels", &followed.by_labels), ("items", &followed.by_items)] {
            let [determined, stated, error] = tally.rates();
            println!(
                "{name}, by {way}: {determined:.2} of {} cells determined, {stated:.2} stated ± {error:.2}",
                tally.cells
            );
            assert!(tally.cells >= 40.0, "{name}, by {way}: {} cells", tally.cells);
            assert!((determined - stated).abs() < 0.15, "{name}, by {way}: {determined}, not {stated} ± {error}");
        }
    }
}

/// Items with one to five labels; those with one do not identify the cost of an expert. New items with several labels each determine cells that more
/// items of that mixture would not. If a plan states that no number of new items is likely to determine a cell, they rarely do; and the labels that
/// it asks for there save what is stated.
#[test]
fn cells_out_of_reach_are_rarely_determined() {
    for (seed, law, loss) in [(31, &BETA, Loss::brier()), (32, &CLEAR_OR_NOT, Loss::brier())] {
        let mut rng = Rng::new(seed);
        let level_items =
            |level: usize| (0..4000).map(|i| law.draw(&mut Rng::new((4000 * level + i) as u64), level, 1)).collect();
        let truths: Vec<Vec<Item>> = (0..LEVELS).map(level_items).collect();
        let (mut out_of_reach, mut within_reach) = (Tally::default(), Tally::default());
        let (mut worth, mut saved) = (0.0, Vec::new());
        for _ in 0..25 {
            out_of_reach.by_world.push(0.0);
            within_reach.by_world.push(0.0);
            let draw = |i: usize, rng: &mut Rng| {
                let k = 1 + rng.below(5);
                law.draw(rng, i % LEVELS, k)
            };
            let items: Vec<Item> = (0..800).map(|i| draw(i, &mut rng)).collect();
            let router = calibrated(&items);
            let (route, abstain) = (0.02 + 0.15 * rng.uniform(), 0.25 + 0.3 * rng.uniform());
            let task = task(route, abstain);
            for plan in &router.plan(&task, 0.9).unwrap().cells {
                let cell = router.mixture(plan.cell);
                let confidence = cell.table().prediction(cell.rows().next().unwrap())[0];
                let level = (0..LEVELS).find(|&level| (confidence - (law.prediction)(level)[0]).abs() < 1e-6).unwrap();
                let mut with = |more: usize, saved: Option<&mut Vec<f64>>| {
                    let mut items = items.clone();
                    items.extend((0..more).map(|_| law.draw(&mut rng, level, plan.labels_per_new_item)));
                    let mut followed = Followed::default();
                    let determined =
                        bought(&items, &task, plan, &truths[level], saved.is_some().then_some(&mut followed));
                    saved.into_iter().for_each(|saved| saved.extend(&followed.saved));
                    determined
                };
                match (plan.more_items, plan.chance_by_items) {
                    (Some(more), Some(chance)) => within_reach.add(chance, with(more, None)),
                    _ => {
                        let most = plan.by_items.last().unwrap();
                        out_of_reach.add(most.chance, with(most.more_items.unwrap(), None));
                    }
                }
                if let (None, Some(asked)) = (plan.labels, plan.asked())
                    && let Some(more) = asked.more_items
                {
                    worth += asked.worth;
                    with(more, Some(&mut saved));
                }
            }
        }
        for (which, tally) in [("out of reach", &out_of_reach), ("within reach", &within_reach)] {
            let [determined, stated, error] = tally.rates();
            println!("{which}: {determined:.2} of {} cells determined, {stated:.2} stated ± {error:.2}", tally.cells);
            assert!((determined - stated).abs() < 0.1 + 2.0 * error, "{which}: {determined}, not {stated} ± {error}");
        }
        let [determined, ..] = out_of_reach.rates();
        assert!(determined < 0.75, "{determined} of the cells out of reach determined");
        let error = saved.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (bought, saved) = (saved.len(), saved.iter().sum::<f64>());
        println!("{loss}: {bought} cells out of reach, worth {worth:.2}, saved {saved:.2} ± {error:.2}");
        assert!((worth - saved).abs() < 0.3 * worth + 2.0 * error, "worth {worth}, saved {saved} ± {error}");
        assert!(bought > 5 && worth > 0.0);
    }
}
