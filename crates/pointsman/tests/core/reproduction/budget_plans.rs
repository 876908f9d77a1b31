//! Plans under a budget in simulations of known truth: they promise no more than labels can save.

use pointsman::{CellId, Loss, Oracle, Partition, Router, Table, Task};

use super::forecasts::{BETA, LEVELS, true_cost};
use crate::plans::{Item, calibrated};
use crate::routing_worlds::{Features, World};
use crate::world::Rng;

/// The true cost per query if cells are routed in the order of some advantages of routing until the budget is spent.
fn cost_in_order(cells: &[(f64, [f64; 2])], advantages: &[f64], budget: f64) -> f64 {
    let mut order: Vec<usize> = (0..cells.len()).filter(|&cell| advantages[cell] > 0.0).collect();
    order.sort_by(|&a, &b| advantages[b].total_cmp(&advantages[a]));
    let mut left = budget;
    let mut cost: f64 = cells.iter().map(|(share, [predict, _])| share * predict).sum();
    for cell in order {
        let (share, [predict, route]) = cells[cell];
        let routed = share.min(left);
        cost += routed * (route - predict);
        left -= routed;
    }
    cost
}

/// A cell's share of the queries, and the true costs of predicting and of routing in it.
type Cell = (f64, [f64; 2]);

/// What a plan promises per thousand queries if labels are free, and the most that any labels could save. `truth` gives a cell's truth.
fn promised_and_most(router: &Router, task: &Task, budget: f64, truth: impl Fn(CellId) -> Option<Cell>) -> [f64; 2] {
    let (plan, policy) = (router.plan(task, 0.9).unwrap(), router.policy(task).unwrap());
    let (mut cells, mut estimated) = (Vec::new(), Vec::new());
    for cell in (0..router.cells().count() as u32).map(CellId) {
        let Some(truth) = truth(cell) else { continue };
        let decision = policy.cell(cell).unwrap();
        cells.push(truth);
        estimated.push(decision.costs()[0] - decision.costs()[1]);
    }
    let truly: Vec<f64> = cells.iter().map(|(_, [predict, route])| predict - route).collect();
    let most = cost_in_order(&cells, &estimated, budget) - cost_in_order(&cells, &truly, budget);
    [plan.purchase(0.0, 1000.0).saving, 1000.0 * most]
}

/// The truth of a cell of level sets.
fn truth_of_level(router: &Router, task: &Task, truths: &[Vec<Item>], cell: CellId) -> Option<Cell> {
    let mixture = router.mixture(cell);
    let confidence = mixture.table().prediction(mixture.rows().next()?)[0];
    let level = (0..LEVELS).find(|&level| (confidence - (BETA.prediction)(level)[0]).abs() < 1e-6)?;
    let costs = ["predict", "expert"].map(|action| true_cost(task, &truths[level], action));
    Some((mixture.len() as f64 / router.rows().rows() as f64, costs))
}

/// The truth of each cell by many queries of known truth.
fn truths_of_queries(router: &Router, task: &Task, queries: &Table) -> Vec<Option<Cell>> {
    let policy = router.policy(task).unwrap();
    let cells = policy.values(&policy.decide_batch(queries).unwrap(), |decision| decision.cell());
    let mut sums = vec![(0.0, [0.0; 2]); router.cells().count()];
    for (row, cell) in cells.into_iter().enumerate() {
        let (truth, (count, [predict, route])) = (queries.truth(row).unwrap(), &mut sums[cell.index()]);
        *count += 1.0;
        *predict += task.loss().expected(truth, &queries.prediction(row));
        *route += task.loss().entropy(truth) + task.routes()[0].price();
    }
    let cell = |(count, costs): (f64, [f64; 2])| {
        (count > 0.0).then(|| (count / queries.rows() as f64, costs.map(|cost| cost / count)))
    };
    sums.into_iter().map(cell).collect()
}

/// The rule, fixed before the first run: on average over at least 40 worlds the promise is not above the most that labels can save, and it is zero if
/// nothing may be routed.
#[test]
fn plans_under_a_budget_promise_no_more_than_can_be_saved() {
    let level_items =
        |level: usize| (0..4000).map(|i| BETA.draw(&mut Rng::new((4000 * level + i) as u64), level, 1)).collect();
    let truths: Vec<Vec<Item>> = (0..LEVELS).map(level_items).collect();
    for budget in [0.0, 0.2, 0.5] {
        let mut rng = Rng::new(41);
        let mut sums = [0.0; 2];
        for _ in 0..50 {
            let items: Vec<Item> = (0..400).map(|i| BETA.draw(&mut rng, i % LEVELS, 3)).collect();
            let price = 0.01 + 0.05 * rng.uniform();
            let task =
                Task::new(Loss::brier()).route("expert", Oracle::bayes(), price).unwrap().budget(budget).unwrap();
            let router = calibrated(&items);
            let truth = |cell: CellId| truth_of_level(&router, &task, &truths, cell);
            let found = promised_and_most(&router, &task, budget, truth);
            sums.iter_mut().zip(found).for_each(|(sum, x)| *sum += x / 50.0);
        }
        println!("budget {budget}: promised {:.3} per thousand queries, at most {:.3}", sums[0], sums[1]);
        assert!(sums[0] <= sums[1] + 1e-9, "budget {budget}: {sums:?}");
        assert!(budget == 0.0 || sums[0] > 0.0, "budget {budget}: {sums:?}");
    }
}

/// The same rule, fixed before the first run, for pooled cells, whose estimates use neighbouring cells too.
#[test]
fn plans_of_pooled_cells_promise_no_more_than_can_be_saved() {
    const WORLDS: usize = 24;
    let world = World { classes: 3, features: Features::Missing };
    let queries = world.draw(&mut Rng::new(1), 20_000, 1);
    for budget in [0.2, 0.5] {
        let mut sums = [0.0; 2];
        for seed in 0..WORLDS {
            let mut rng = Rng::new(100 + seed as u64);
            let table = world.draw(&mut rng, 600, 3);
            let router = Router::calibrate(&table, &Partition::pooled()).unwrap();
            let price = 0.05 + 0.1 * rng.uniform();
            let task =
                Task::new(Loss::brier()).route("expert", Oracle::bayes(), price).unwrap().budget(budget).unwrap();
            let truths = truths_of_queries(&router, &task, &queries);
            let found = promised_and_most(&router, &task, budget, |cell| truths[cell.index()]);
            sums.iter_mut().zip(found).for_each(|(sum, x)| *sum += x / WORLDS as f64);
        }
        println!("pooled, budget {budget}: promised {:.3} per thousand queries, at most {:.3}", sums[0], sums[1]);
        assert!(sums[0] <= sums[1] + 1e-9 && sums[0] > 0.0, "budget {budget}: {sums:?}");
    }
}
