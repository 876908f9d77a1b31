//! Plans in a world whose truth is known: what they ask for settles what they say it settles.

use pointsman::{Loss, Oracle, Partition, Plan, Router, Table, Task};

use crate::world::{Rng, table};

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
    let table: Table = table(2, &probs, &votes);
    Router::calibrate(&table, &Partition::level_sets()).unwrap()
}

fn task(route: f64, abstain: f64) -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), route).unwrap().abstain(abstain).unwrap()
}

fn is_certain(router: &Router, task: &Task, cell: pointsman::CellId) -> bool {
    let certificate = router.certificate(task, 0.9).unwrap();
    certificate.judge(&router.policy(task).unwrap()).unwrap().cells[cell.index()].certain
}

/// More labels for the items of a cell, as many as the plan says, settle it most of the time; so do more items.
#[test]
fn what_a_plan_asks_for_settles_the_cell() {
    let mut rng = Rng::new(4);
    let (mut by_labels, mut by_items) = ([0, 0], [0, 0]);
    for _ in 0..20 {
        let items = draw(&mut rng, 0..8, 2400, 3);
        let router = calibrated(&items);
        let task = task(0.01 + 0.2 * rng.uniform(), 0.2 + 0.4 * rng.uniform());
        let Plan { cells, .. } = router.plan(&task, 0.9).unwrap();
        for plan in &cells {
            // Cells are sorted by prediction, that is by level.
            let cell = |item: &Item| ((item.prediction[0] - 0.55) / 0.05).round() as usize == plan.cell.index();
            if let Some(more) = plan.more_labels {
                let mut items = items.clone();
                for item in items.iter_mut().filter(|item| cell(item)) {
                    let new = rng.votes(&item.truth, more);
                    item.votes.iter_mut().zip(new).for_each(|(n, more)| *n += more);
                }
                by_labels[usize::from(is_certain(&calibrated(&items), &task, plan.cell))] += 1;
            }
            if let Some(more) = plan.more_items {
                let mut items = items.clone();
                items.extend(draw(&mut rng, plan.cell.index()..plan.cell.index() + 1, more, 3));
                by_items[usize::from(is_certain(&calibrated(&items), &task, plan.cell))] += 1;
            }
        }
    }
    println!("settled by labels: {} of {}", by_labels[1], by_labels[0] + by_labels[1]);
    println!("settled by items: {} of {}", by_items[1], by_items[0] + by_items[1]);
    for [no, yes] in [by_labels, by_items] {
        assert!(yes + no >= 15 && 10 * yes >= 6 * (yes + no), "{yes} of {} settled", yes + no);
    }
}

#[test]
fn plans_are_in_order_and_leave_out_what_is_certain() {
    let mut rng = Rng::new(5);
    let router = calibrated(&draw(&mut rng, 0..8, 1000, 3));
    let plan = router.plan(&task(0.06, 0.45), 0.95).unwrap();
    assert!(!plan.cells.is_empty());
    let (can, cannot): (Vec<_>, Vec<_>) = plan.cells.iter().partition(|cell| cell.labels.is_some());
    for list in [&can, &cannot] {
        assert!(list.windows(2).all(|pair| pair[0].worth >= pair[1].worth));
    }
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
