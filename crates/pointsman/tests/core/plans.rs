//! Plans in simulations of known truth: the labels that they ask for determine cells with the stated probability.

use pointsman::certify::Offer;
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{Rng, close, table};

/// Eight predictions, each for items of three kinds whose truths are known.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) prediction: Vec<f64>,
    pub(crate) truth: Vec<f64>,
    pub(crate) votes: Vec<u32>,
}

fn draw(rng: &mut Rng, levels: std::ops::Range<usize>, rows: usize, k: usize) -> Vec<Item> {
    let item = |_| {
        let level = (levels.start + rng.below(levels.len())) as f64;
        let c = 0.55 + 0.05 * level;
        // Higher confidences are more overconfident.
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

pub(crate) fn calibrated(items: &[Item]) -> Router {
    let (probs, votes): (Vec<_>, Vec<_>) = items.iter().map(|i| (i.prediction.clone(), i.votes.clone())).unzip();
    let table: Table = table(probs[0].len(), &probs, &votes);
    Router::calibrate(&table, &Partition::level_sets()).unwrap()
}

pub(crate) fn task(route: f64, abstain: f64) -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), route).unwrap().abstain(abstain).unwrap()
}

/// Labels are bought if they pay, even if no number of them determines the cell.
#[test]
fn labels_are_bought_if_they_pay_without_certainty() {
    let votes: Vec<Vec<u32>> = (0..400).map(|i| if i % 10 < 7 { vec![1, 0] } else { vec![0, 1] }).collect();
    let router = Router::calibrate(&table(2, &vec![vec![0.8, 0.2]; 400], &votes), &Partition::confidence(1)).unwrap();
    let total = router.policy(&Task::new(Loss::brier())).unwrap().cell(pointsman::CellId(0)).unwrap().total();
    let plan = router.plan(&Task::new(Loss::brier()).abstain(total).unwrap(), 0.95).unwrap();
    let (cell, asked) = (&plan.cells[0], plan.cells[0].asked().unwrap());
    assert!(cell.determining().is_none() && asked.worth > 0.0 && asked.labels > 0);
    assert!(asked.worth <= cell.worth + 1e-9);
    let first = plan.begin_with(3).unwrap();
    assert_eq!((first.cells.len(), first.determined, first.labels), (1, 0, asked.labels));
    let queries = 4.0 * asked.pays_after(1.0).unwrap();
    let purchase = plan.purchase(1.0, queries);
    assert!(purchase.saving > purchase.cost && purchase.cells == [cell.cell]);
    assert_eq!(plan.purchase(1e9, queries).cells, []);
    // More traffic pays for at least as many labels.
    assert!(plan.purchase(1.0, 100.0 * queries).labels >= purchase.labels);
    // Fewer items are worth less, and zero items are worth nothing.
    let worths: Vec<f64> = [0, 10, 50, 100, 1000, 100_000].map(|items| cell.worth_of_items(items)).into();
    assert!(worths[0] == 0.0 && worths.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "{worths:?}");
    let fresh = Table::new(["c0", "c1"], [0.8, 0.2].repeat(30)).unwrap();
    let listed = plan.items_of(&router, &fresh, std::slice::from_ref(&asked));
    if let (Ok(listed), Some(items)) = (listed, asked.more_items) {
        assert_eq!(listed.len(), items.min(30));
        assert_eq!(plan.items_missing(&listed, &[asked]), items.saturating_sub(30));
        close(plan.worth_of_listed(&listed), cell.worth_of_items(listed.len()), 1e-12, "worth of what there is");
        let sum: f64 = listed.iter().map(|item| item.worth).sum();
        close(sum, cell.worth_of_items(listed.len()), 1e-12, "items add up to it");
    }
}

/// The labels worth most come first, and those that cost more than they save are not bought.
#[test]
fn labels_are_bought_only_if_they_pay() {
    let mut rng = Rng::new(7);
    let items = draw(&mut rng, 0..8, 1200, 3);
    let router = calibrated(&items);
    let plan = router.plan(&task(0.08, 0.42), 0.9).unwrap();
    let asked: Vec<_> = plan.cells.iter().filter(|cell| cell.labels.is_some()).collect();
    assert!(!asked.is_empty());
    let purchase = plan.purchase(0.0, 1e6);
    // Labels of unknown price are bought if they save more than 0.001 % of the cost of queries.
    let least = 0.01 * plan.promise.as_ref().unwrap().cost;
    assert_eq!(purchase.cells.len(), asked.iter().filter(|cell| cell.worth > least).count());
    assert_eq!(plan.purchase(1e9, 1e6).cells, []);
    assert_eq!((plan.purchase(1e9, 1e6).labels, plan.purchase(1e9, 1e6).cost), (0, 0.0));
    let (first, determining) = (asked[0], asked[0].determining().unwrap());
    let queries = determining.pays_after(2.0).unwrap();
    close(determining.saving(queries), determining.price(2.0), 1e-9 * queries.max(1.0), "break even");
    assert!(plan.purchase(2.0, 1.01 * queries).cells.contains(&first.cell));
    // Fewer labels, which do not determine the cell, may pay earlier than those that do.
    for offer in plan.purchase(2.0, 0.99 * queries).offers {
        assert!(offer.saving(0.99 * queries) > offer.price(2.0) && offer != determining, "{offer:?}");
    }
    assert!(!plan.purchase_of(2.0, 0.99 * queries, |offer| *offer == determining).cells.contains(&first.cell));

    // Items with votes get more labels; items without votes are new.
    let (probs, votes): (Vec<_>, Vec<_>) = items.iter().map(|i| (i.prediction.clone(), i.votes.clone())).unzip();
    let labelled = table(2, &probs, &votes);
    let cells = router.find_cells(&labelled).unwrap();
    let again = plan.items(&router, &labelled, |_| true).unwrap();
    for item in &again {
        let of_cell = plan.cells.iter().find(|plan| plan.cell == item.cell).unwrap();
        assert_eq!((cells[item.row], Some(item.labels)), (item.cell, of_cell.more_labels));
    }
    // All of an offer's labels are worth what the offer is, in the way that the table has them.
    let mut differing = 0;
    for of_cell in &plan.cells {
        let by_labels = of_cell.determining_of(|offer| offer.more_labels.is_some());
        let by_items = of_cell.determining_of(|offer| offer.more_items.is_some());
        let listed: f64 = again.iter().filter(|item| item.cell == of_cell.cell).map(|item| item.worth).sum();
        close(listed, by_labels.as_ref().map_or(0.0, |offer| offer.worth), 1e-9, "worth of the labels listed");
        differing += usize::from(by_labels.zip(by_items).is_some_and(|(one, two)| one.worth != two.worth));
    }
    assert!(differing > 0);
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

/// The first cells to label end where a label is worth less than a tenth of one in the best cell.
#[test]
fn first_cells_end_where_worth_per_label_falls_off() {
    let (mut first_cells, mut left_out) = (0, 0);
    for seed in 40..46 {
        let mut rng = Rng::new(seed);
        let plan = calibrated(&draw(&mut rng, 0..8, 800, 3)).plan(&task(0.06, 0.45), 0.95).unwrap();
        let Some(first) = plan.begin_with(usize::MAX) else { continue };
        let asked = plan.asked();
        let best = asked.iter().filter(|offer| first.cells.contains(&offer.cell)).map(Offer::worth_per_label);
        let best = best.fold(0.0, f64::max);
        for offer in &asked {
            let is_first = first.cells.contains(&offer.cell);
            assert!(!is_first || offer.worth_per_label() >= 0.1 * best, "{offer:?}");
            first_cells += usize::from(is_first);
            left_out += usize::from(!is_first);
        }
        // Labels of the first cells alone are counted.
        let labels = asked.iter().filter(|offer| first.cells.contains(&offer.cell)).map(|offer| offer.labels);
        assert_eq!(first.labels, labels.sum::<usize>());
    }
    assert!(first_cells > 0 && left_out > 0, "{first_cells} {left_out}");
}

#[test]
fn plans_are_sorted_and_leave_out_certain_cells() {
    let mut rng = Rng::new(5);
    let router = calibrated(&draw(&mut rng, 0..8, 1000, 3));
    let plan = router.plan(&task(0.06, 0.45), 0.95).unwrap();
    assert!(!plan.cells.is_empty());
    let (can, cannot): (Vec<_>, Vec<_>) = plan.cells.iter().partition(|cell| cell.labels.is_some());
    assert!(can.windows(2).all(|pair| pair[0].worth_per_label() >= pair[1].worth_per_label()));
    assert!(cannot.windows(2).all(|pair| pair[0].worth >= pair[1].worth));
    // The number is found by one series of draws and its probability stated by another.
    assert!(can.iter().all(|cell| cell.chance.is_some_and(|chance| (0.5..=1.0).contains(&chance))));
    let by_items = plan.cells.iter().filter_map(|cell| cell.chance_by_items);
    assert!(by_items.clone().count() > 0 && by_items.into_iter().all(|chance| (0.75..=1.0).contains(&chance)));
    assert!(cannot.iter().all(|cell| cell.chance.is_none()));
    assert!(plan.cells.iter().take(can.len()).all(|cell| cell.labels.is_some()));
    for cell in &plan.cells {
        assert!(!plan.judgement.cells[cell.cell.index()].certain && cell.action != cell.rival);
        assert!(cell.worth <= cell.at_stake + 1e-9, "{cell:?}");
    }
    // Plans are deterministic.
    assert_eq!(router.plan(&task(0.06, 0.45), 0.95).unwrap().cells, plan.cells);
}

/// Two actions of equal cost cannot be distinguished by any labels.
#[test]
fn cells_that_labels_cannot_determine_are_reported() {
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

/// A cell whose only row defines its edge has no data, and the plan states no figures for it.
#[test]
fn cells_without_usable_rows_are_listed_without_figures() {
    let probs: Vec<Vec<f64>> = [0.6, 0.7, 0.8].map(|c| vec![c, 1.0 - c]).into();
    let router = Router::calibrate(&table(2, &probs, &vec![vec![2, 1]; 3]), &Partition::confidence(3)).unwrap();
    let plan = router.plan(&task(0.1, 0.3), 0.9).unwrap();
    assert_eq!(plan.cells.len(), 3);
    let without: Vec<_> = plan.cells.iter().filter(|cell| cell.cell.0 > 0).collect();
    assert!(without.iter().all(|cell| (cell.more_labels, cell.more_items, cell.labels) == (None, None, None)));
}

/// New items may determine a cell that more labels do not determine, and more labels may still be worth buying.
#[test]
fn more_labels_are_offered_wherever_they_do_not_determine_the_cell() {
    let mut rng = Rng::new(5);
    let router = calibrated(&draw(&mut rng, 0..8, 1000, 3));
    let plan = router.plan(&task(0.06, 0.45), 0.95).unwrap();
    let mut by_items_alone = 0;
    for cell in &plan.cells {
        assert_eq!(cell.by_labels.is_empty(), cell.more_labels.is_some(), "{cell:?}");
        let present = cell.asked_of(|offer| offer.more_labels.is_some());
        assert!(present.as_ref().is_none_or(|offer| offer.more_items.is_none() && offer.worth >= 0.0));
        by_items_alone += usize::from(cell.more_items.is_some() && cell.more_labels.is_none() && present.is_some());
    }
    assert!(by_items_alone > 0);
    let first = plan.begin_with_of(3, |offer| offer.more_labels.is_some()).unwrap();
    let asked = plan.asked_of(|offer| offer.more_labels.is_some());
    assert!(first.cells.iter().all(|cell| asked.iter().any(|offer| offer.cell == *cell)), "{first:?}");
    let labels: usize = asked.iter().filter(|offer| first.cells.contains(&offer.cell)).map(|offer| offer.labels).sum();
    assert_eq!(first.labels, labels);
    assert!(plan.begin_with_of(3, |_| false).is_none());
}

/// Items with all the labels that they may get are not listed, and the others have the whole worth of the offer between them.
#[test]
fn listed_labels_have_the_worth_of_the_offer() {
    let mut rng = Rng::new(11);
    let mut items = draw(&mut rng, 0..8, 1000, 3);
    for item in items.iter_mut().step_by(2) {
        let truth = item.truth.clone();
        item.votes.iter_mut().zip(rng.votes(&truth, 2)).for_each(|(n, more)| *n += more);
    }
    let router = calibrated(&items);
    let (probs, votes): (Vec<_>, Vec<_>) = items.iter().map(|i| (i.prediction.clone(), i.votes.clone())).unzip();
    let table = table(2, &probs, &votes);
    let mut offers = 0;
    for most in [4, 5, 8] {
        let plan = router.plan_within(&task(0.06, 0.45), 0.95, Some(most)).unwrap();
        for offer in plan.asked_of(|offer| offer.more_labels.is_some()) {
            let listed = plan.items_of(&router, &table, std::slice::from_ref(&offer)).unwrap();
            assert_eq!(listed.iter().map(|item| item.labels).sum::<usize>(), offer.labels);
            close(plan.worth_of_listed(&listed), offer.worth, 1e-9, "worth of the listed labels");
            for item in &listed {
                close(item.worth / item.labels as f64, offer.worth / offer.labels as f64, 1e-9, "worth per label");
            }
            offers += 1;
        }
    }
    assert!(offers > 0);
}

/// A new item gets no more labels than an item may get, and then tells no more than one with more labels.
#[test]
fn new_items_keep_to_the_largest_number_of_labels_per_item() {
    let mut rng = Rng::new(31);
    let router = calibrated(&draw(&mut rng, 0..8, 600, 5));
    let plan = |most| router.plan_within(&task(0.05, 0.4), 0.95, most).unwrap();
    let (limited, unlimited) = (plan(Some(2)), plan(None));
    assert!(!limited.cells.is_empty());
    let mut smaller = 0;
    for (few, many) in limited.cells.iter().map(|few| (few, unlimited.cells.iter().find(|cell| cell.cell == few.cell)))
    {
        let many = many.unwrap();
        assert_eq!((few.labels_per_new_item, many.labels_per_new_item), (2, 5));
        for (few, many) in few.by_items.iter().zip(&many.by_items) {
            assert_eq!((few.more_items, Some(few.labels / 2)), (many.more_items, many.more_items));
            smaller += usize::from(few.worth < many.worth);
        }
    }
    assert!(smaller > 0);
    let worth = |plan: &pointsman::certify::Plan| {
        plan.cells.iter().flat_map(|cell| &cell.by_items).map(|offer| offer.worth).sum::<f64>()
    };
    assert!(worth(&limited) < worth(&unlimited));
    // One label per item shows nothing of what an expert would save.
    let one = plan(Some(1));
    assert!(one.cells.iter().flat_map(|cell| &cell.by_items).all(|offer| offer.worth == 0.0));
}
