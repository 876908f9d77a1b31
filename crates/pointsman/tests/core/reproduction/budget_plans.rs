//! Plans under a budget in simulations of known truth: they promise no more than labels can save.

use pointsman::{CellId, Loss, Oracle, Router, Task};

use super::forecasts::{BETA, LEVELS, true_cost};
use crate::plans::{Item, calibrated};
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

/// What a plan promises per thousand queries if labels are free, and the most that any labels could save.
fn promised_and_most(router: &Router, task: &Task, budget: f64, truths: &[Vec<Item>]) -> [f64; 2] {
    let (plan, policy) = (router.plan(task, 0.9).unwrap(), router.policy(task).unwrap());
    let mut cells = Vec::new();
    let mut estimated = Vec::new();
    for cell in (0..router.cells().count() as u32).map(CellId) {
        let mixture = router.mixture(cell);
        let Some(row) = mixture.rows().next() else { continue };
        let confidence = mixture.table().prediction(row)[0];
        let level = (0..LEVELS).find(|&level| (confidence - (BETA.prediction)(level)[0]).abs() < 1e-6).unwrap();
        let costs = ["predict", "expert"].map(|action| true_cost(task, &truths[level], action));
        cells.push((mixture.len() as f64 / router.rows().rows() as f64, costs));
        let decision = policy.cell(cell).unwrap();
        estimated.push(decision.costs()[0] - decision.costs()[1]);
    }
    let truly: Vec<f64> = cells.iter().map(|(_, [predict, route])| predict - route).collect();
    let most = cost_in_order(&cells, &estimated, budget) - cost_in_order(&cells, &truly, budget);
    [plan.purchase(0.0, 1000.0).saving, 1000.0 * most]
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
            let found = promised_and_most(&calibrated(&items), &task, budget, &truths);
            sums.iter_mut().zip(found).for_each(|(sum, x)| *sum += x / 50.0);
        }
        println!("budget {budget}: promised {:.3} per thousand queries, at most {:.3}", sums[0], sums[1]);
        assert!(sums[0] <= sums[1] + 1e-9, "budget {budget}: {sums:?}");
        assert!(budget == 0.0 || sums[0] > 0.0, "budget {budget}: {sums:?}");
    }
}
