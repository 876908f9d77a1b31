//! Plans in a world whose truth is known: what they ask for settles what they say it settles.

use pointsman::certify::CellPlan;
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{Rng, close, table};

/// Eight predictions, each for items of three kinds whose truths are known.
#[derive(Clone)]
struct Item {
    prediction: Vec<f64>,
    truth: Vec<f64>,
    votes: Vec<u32>,
}

fn draw(rng: &mut Rng, levels: std::ops::Range<usize>, rows: usize, k: usize) -> Vec<Item> {
    let item = |_| {
        let level = (levels.start + rng.below(levels.len())) as f64;
        let c = 0.55 + 0.05 * level;
        // The higher the confidence, the less of it is deserved.
        let truth = match rng.below(3) {
            0 => c,
            1 => c - 0.04 * level,
            _ => 0.9 - 0.08 * level,
        };
        let truth = vec![truth, 1.0 - truth];
        Item { prediction: vec![c, 1.0 - c], votes: rng.votes(&truth, k), truth }
    };
    (0..rows).map(item).collect()
}

fn calibrated(items: &[Item]) -> Router {
    let (probs, votes): (Vec<_>, Vec<_>) = items.iter().map(|i| (i.prediction.clone(), i.votes.clone())).unzip();
    let table: Table = table(probs[0].len(), &probs, &votes);
    Router::calibrate(&table, &Partition::level_sets()).unwrap()
}

fn task(route: f64, abstain: f64) -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), route).unwrap().abstain(abstain).unwrap()
}

/// The levels of a world, each of one prediction and one law of true distributions.
const LEVELS: usize = 10;

struct Law {
    prediction: fn(usize) -> Vec<f64>,
    truth: fn(&mut Rng, usize) -> Vec<f64>,
}

/// A third of a level's items are of any kind, the others more or less as predicted.
const BETA: Law = Law {
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

impl Law {
    fn draw(&self, rng: &mut Rng, level: usize, k: usize) -> Item {
        let truth = (self.truth)(rng, level);
        Item { prediction: (self.prediction)(level), votes: rng.votes(&truth, k), truth }
    }
}

/// What an action costs in a level of continuous truths, by so many of them that the error does not matter.
fn true_cost(task: &Task, items: &[Item], action: &str) -> f64 {
    let mean = |value: &dyn Fn(&Item) -> f64| items.iter().map(value).sum::<f64>() / items.len() as f64;
    match action {
        "predict" => mean(&|item| task.loss().expected(&item.truth, &item.prediction)),
        "abstain" => task.abstain_price().unwrap(),
        _ => mean(&|item| task.loss().entropy(&item.truth)) + task.routes()[0].price(),
    }
}

/// Cells whose labels were bought as planned: what was stated, and what came of it.
#[derive(Default)]
struct Tally {
    cells: f64,
    stated: f64,
    settled: f64,
    /// Settled minus stated, summed per world: cells of one world share their prices.
    by_world: Vec<f64>,
}

impl Tally {
    fn add(&mut self, chance: f64, settled: bool) {
        let settled = f64::from(u8::from(settled));
        self.cells += 1.0;
        self.stated += chance;
        self.settled += settled;
        *self.by_world.last_mut().unwrap() += settled - chance;
    }

    /// Rate settled, rate stated, and the standard error of their difference.
    fn rates(&self) -> [f64; 3] {
        let error = self.by_world.iter().map(|x| x * x).sum::<f64>().sqrt();
        [self.settled, self.stated, error].map(|sum| sum / self.cells)
    }
}

/// What came of plans: bought by labels, by items, and what the cheaper of the two was said to be worth and has saved.
#[derive(Default)]
struct Followed {
    by_labels: Tally,
    by_items: Tally,
    worth: f64,
    saved: Vec<f64>,
}

/// Plans in so many worlds, and what comes of buying what each asks for in each cell, by either way.
fn follow(law: &Law, seed: u64, worlds: usize, loss: &Loss, scale: f64, k: usize) -> Followed {
    let mut rng = Rng::new(seed);
    let mut followed = Followed::default();
    let level_items =
        |level: usize| (0..4000).map(|i| law.draw(&mut Rng::new((4000 * level + i) as u64), level, 1)).collect();
    let truths: Vec<Vec<Item>> = (0..LEVELS).map(level_items).collect();
    for _ in 0..worlds {
        followed.by_labels.by_world.push(0.0);
        followed.by_items.by_world.push(0.0);
        let items: Vec<Item> = (0..1000).map(|i| law.draw(&mut rng, i % LEVELS, k)).collect();
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
                let settled =
                    bought(&items, &task, plan, &truths[level], (in_all == plan.labels).then_some(&mut followed));
                followed.by_labels.add(chance, settled);
            }
            if let (Some(more), Some(chance)) = (plan.more_items, plan.chance_by_items) {
                let mut items = items.clone();
                items.extend((0..more).map(|_| law.draw(&mut rng, level, k)));
                let settled =
                    bought(&items, &task, plan, &truths[level], (in_all != plan.labels).then_some(&mut followed));
                followed.by_items.add(chance, settled);
            }
        }
    }
    followed
}

/// Whether the cell of a plan is settled by these items; what that saves is noted for the way that the plan asks for.
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

/// What a plan asks for settles cells as often as it says, by labels and by items, within a tenth and two standard errors; and it is worth
/// what is said, within three tenths and two standard errors.
#[test]
fn forecasts_come_true_at_the_stated_rate() {
    let asymmetric: Loss = "fn-fp:fp=1,fn=4".parse().unwrap();
    let (mut worth, mut saved) = (0.0, Vec::new());
    for (seed, loss, scale) in
        [(24, Loss::brier(), 1.0), (25, Loss::zero_one(), 0.6), (26, Loss::cross_entropy(), 1.3), (27, asymmetric, 1.5)]
    {
        let followed = follow(&BETA, seed, 40, &loss, scale, 3);
        for (way, tally) in [("labels", &followed.by_labels), ("items", &followed.by_items)] {
            let [settled, stated, error] = tally.rates();
            println!(
                "{loss}, by {way}: {settled:.2} of {} cells settled, {stated:.2} stated ± {error:.2}",
                tally.cells
            );
            assert!(tally.cells >= 15.0, "{loss}, by {way}: {} cells", tally.cells);
            assert!(
                (settled - stated).abs() < 0.1 + 2.0 * error,
                "{loss}, by {way}: {settled}, not {stated} ± {error}"
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

/// Three classes whose items are clear or ambiguous: a Dirichlet law fitted to their votes has too few of either, and forecasts of the
/// cross-entropy that took it for the law of the items came true too rarely.
#[test]
fn forecasts_by_labels_come_true_where_items_are_clear_or_ambiguous() {
    let loss = Loss::cross_entropy();
    let tally = follow(&CLEAR_OR_NOT, 29, 40, &loss, 1.3, 3).by_labels;
    let [settled, stated, error] = tally.rates();
    println!("{settled:.2} of {} cells settled, {stated:.2} stated ± {error:.2}", tally.cells);
    assert!(tally.cells >= 30.0, "{} cells", tally.cells);
    assert!((settled - stated).abs() < 0.1 + 2.0 * error, "{settled}, not {stated} ± {error}");
}

/// Items with one to five labels, of which those with one leave the cost of an expert open: new items with several labels each settle cells that
/// more items of that mixture would not. Where a plan says that no number of new items is likely to settle a cell, so it is; and labels that
/// it asks for there save what is said.
#[test]
fn cells_out_of_reach_are_rarely_settled_and_their_labels_worth_what_is_said() {
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
                    let settled = bought(&items, &task, plan, &truths[level], saved.is_some().then_some(&mut followed));
                    saved.into_iter().for_each(|saved| saved.extend(&followed.saved));
                    settled
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
            let [settled, stated, error] = tally.rates();
            println!("{which}: {settled:.2} of {} cells settled, {stated:.2} stated ± {error:.2}", tally.cells);
            assert!((settled - stated).abs() < 0.1 + 2.0 * error, "{which}: {settled}, not {stated} ± {error}");
        }
        let [settled, ..] = out_of_reach.rates();
        assert!(settled < 0.75, "{settled} of the cells out of reach settled");
        let error = saved.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (bought, saved) = (saved.len(), saved.iter().sum::<f64>());
        println!("{loss}: {bought} cells out of reach, worth {worth:.2}, saved {saved:.2} ± {error:.2}");
        assert!((worth - saved).abs() < 0.3 * worth + 2.0 * error, "worth {worth}, saved {saved} ± {error}");
        assert!(bought > 5 && worth > 0.0);
    }
}

/// Labels are bought where they pay although no number of them makes the cell certain.
#[test]
fn labels_are_bought_where_they_pay_without_certainty() {
    let votes: Vec<Vec<u32>> = (0..400).map(|i| if i % 10 < 7 { vec![1, 0] } else { vec![0, 1] }).collect();
    let router = Router::calibrate(&table(2, &vec![vec![0.8, 0.2]; 400], &votes), &Partition::confidence(1)).unwrap();
    let total = router.policy(&Task::new(Loss::brier())).unwrap().cell(pointsman::CellId(0)).unwrap().total();
    let plan = router.plan(&Task::new(Loss::brier()).abstain(total).unwrap(), 0.95).unwrap();
    let (cell, asked) = (&plan.cells[0], plan.cells[0].asked().unwrap());
    assert!(cell.settling().is_none() && asked.worth > 0.0 && asked.labels > 0);
    assert!(asked.worth <= cell.worth + 1e-9);
    let first = plan.begin_with(3).unwrap();
    assert_eq!((first.cells.len(), first.settled, first.labels), (1, 0, asked.labels));
    let queries = 4.0 * asked.pays_after(1.0).unwrap();
    let purchase = plan.purchase(1.0, queries);
    assert!(purchase.saving > purchase.cost && purchase.cells == [cell.cell]);
    assert_eq!(plan.purchase(1e9, queries).cells, []);
    // More traffic pays for as many labels or more.
    assert!(plan.purchase(1.0, 100.0 * queries).labels >= purchase.labels);
    // Fewer items are worth less, and no items nothing.
    let worths: Vec<f64> = [0, 10, 50, 100, 1000, 100_000].map(|items| cell.worth_of_items(items)).into();
    assert!(worths[0] == 0.0 && worths.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "{worths:?}");
    let fresh = Table::new(["c0", "c1"], [0.8, 0.2].repeat(30)).unwrap();
    let listed = plan.items_of(&router, &fresh, std::slice::from_ref(&asked));
    if let (Ok(listed), Some(items)) = (listed, asked.more_items) {
        assert_eq!(listed.len(), items.min(30));
        assert_eq!(plan.items_missing(&listed, &[asked]), items.saturating_sub(30));
        close(plan.worth_of_listed(&listed), cell.worth_of_items(listed.len()), 1e-12, "worth of what there is");
    }
}

/// The labels worth most come first, and those that cost more than they save are not bought.
#[test]
fn labels_are_bought_only_where_they_pay() {
    let mut rng = Rng::new(7);
    let items = draw(&mut rng, 0..8, 1200, 3);
    let router = calibrated(&items);
    let plan = router.plan(&task(0.08, 0.42), 0.9).unwrap();
    let asked: Vec<_> = plan.cells.iter().filter(|cell| cell.labels.is_some()).collect();
    assert!(!asked.is_empty());
    let purchase = plan.purchase(0.0, 1e6);
    assert_eq!(purchase.cells.len(), asked.iter().filter(|cell| cell.worth > 0.0).count());
    assert_eq!(plan.purchase(1e9, 1e6).cells, []);
    assert_eq!((plan.purchase(1e9, 1e6).labels, plan.purchase(1e9, 1e6).cost), (0, 0.0));
    let first = asked[0];
    let queries = first.pays_after(2.0).unwrap();
    close(first.saving(queries), first.price(2.0).unwrap(), 1e-9 * queries.max(1.0), "break even");
    assert!(plan.purchase(2.0, 1.01 * queries).cells.contains(&first.cell));
    // Fewer labels, which do not settle the cell, may pay before those that do.
    let settling = first.settling().unwrap();
    for offer in plan.purchase(2.0, 0.99 * queries).offers {
        assert!(offer.saving(0.99 * queries) > offer.price(2.0) && offer != settling, "{offer:?}");
    }
    assert!(!plan.purchase_of(2.0, 0.99 * queries, |offer| *offer == settling).cells.contains(&first.cell));

    // Items with votes get more labels, items without are new.
    let (probs, votes): (Vec<_>, Vec<_>) = items.iter().map(|i| (i.prediction.clone(), i.votes.clone())).unzip();
    let labelled = table(2, &probs, &votes);
    let cells = router.find_cells(&labelled).unwrap();
    let again = plan.items(&router, &labelled, |_| true).unwrap();
    for item in &again {
        let of_cell = plan.cells.iter().find(|plan| plan.cell == item.cell).unwrap();
        assert_eq!((cells[item.row], Some(item.labels)), (item.cell, of_cell.more_labels));
    }
    let of_first = again.iter().filter(|item| item.cell == first.cell).count();
    assert_eq!(of_first, first.more_labels.map_or(0, |_| router.mixture(first.cell).len()));
    let fresh = Table::new(labelled.classes().to_vec(), probs.concat()).unwrap();
    let new = plan.items(&router, &fresh, |_| true).unwrap();
    for of_cell in &plan.cells {
        let listed: Vec<_> = new.iter().filter(|item| item.cell == of_cell.cell).collect();
        let here = cells.iter().filter(|cell| **cell == of_cell.cell).count();
        assert_eq!(listed.len(), of_cell.more_items.unwrap_or(0).min(here));
        assert!(listed.iter().all(|item| item.labels == 3));
    }
    assert!(plan.items(&router, &fresh, |_| false).unwrap().is_empty());
}

#[test]
fn plans_are_in_order_and_leave_out_what_is_certain() {
    let mut rng = Rng::new(5);
    let router = calibrated(&draw(&mut rng, 0..8, 1000, 3));
    let plan = router.plan(&task(0.06, 0.45), 0.95).unwrap();
    assert!(!plan.cells.is_empty());
    let (can, cannot): (Vec<_>, Vec<_>) = plan.cells.iter().partition(|cell| cell.labels.is_some());
    assert!(can.windows(2).all(|pair| pair[0].worth_per_label() >= pair[1].worth_per_label()));
    assert!(cannot.windows(2).all(|pair| pair[0].worth >= pair[1].worth));
    // The number is found by some draws and its chance stated by others.
    assert!(can.iter().all(|cell| cell.chance.is_some_and(|chance| (0.5..=1.0).contains(&chance))));
    let by_items = plan.cells.iter().filter_map(|cell| cell.chance_by_items);
    assert!(by_items.clone().count() > 0 && by_items.into_iter().all(|chance| (0.75..=1.0).contains(&chance)));
    assert!(cannot.iter().all(|cell| cell.chance.is_none()));
    assert!(plan.cells.iter().take(can.len()).all(|cell| cell.labels.is_some()));
    for cell in &plan.cells {
        assert!(!plan.judgement.cells[cell.cell.index()].certain && cell.action != cell.rival);
        assert!(cell.worth <= cell.at_stake + 1e-9, "{cell:?}");
    }
    // Asked again, the same is said.
    assert_eq!(router.plan(&task(0.06, 0.45), 0.95).unwrap().cells, plan.cells);
}

/// Two actions that cost the same cannot be told apart, whatever is labelled.
#[test]
fn what_labels_cannot_settle_is_said_to_be_so() {
    // The expert saves exactly 0.02 everywhere, which is its price.
    let votes: Vec<Vec<u32>> = (0..400).map(|i| if i % 10 < 7 { vec![1, 0] } else { vec![0, 1] }).collect();
    let router = Router::calibrate(&table(2, &vec![vec![0.8, 0.2]; 400], &votes), &Partition::confidence(1)).unwrap();
    let total = router.policy(&Task::new(Loss::brier())).unwrap().cell(pointsman::CellId(0)).unwrap().total();
    let task = Task::new(Loss::brier()).abstain(total).unwrap();
    let plan = router.plan(&task, 0.95).unwrap();
    assert_eq!((plan.cells.len(), plan.cells[0].more_labels, plan.cells[0].more_items), (1, None, None));
    assert_eq!(plan.cells[0].labels, None);
    assert!(plan.cells[0].worth > 0.0);
}

/// A cell whose only row gave its edge has nothing to go by, and the plan says so instead of guessing.
#[test]
fn cells_without_usable_rows_are_listed_without_figures() {
    let probs: Vec<Vec<f64>> = [0.6, 0.7, 0.8].map(|c| vec![c, 1.0 - c]).into();
    let router = Router::calibrate(&table(2, &probs, &vec![vec![2, 1]; 3]), &Partition::confidence(3)).unwrap();
    let plan = router.plan(&task(0.1, 0.3), 0.9).unwrap();
    assert_eq!(plan.cells.len(), 3);
    let without: Vec<_> = plan.cells.iter().filter(|cell| cell.cell.0 > 0).collect();
    assert!(without.iter().all(|cell| (cell.more_labels, cell.more_items, cell.labels) == (None, None, None)));
}
