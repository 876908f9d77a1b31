//! Rows added to a router cell by cell.

use pointsman::{CellId, Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{Rng, close, table};

/// Rows of two levels, the second of which is hard.
fn rows(rng: &mut Rng, levels: &[usize]) -> Table {
    let mut probs = Vec::new();
    let mut votes = Vec::new();
    for &level in levels {
        let (confidence, truth) = if level == 0 { (0.9, 0.92) } else { (0.6, 0.3) };
        probs.push(vec![confidence, 1.0 - confidence]);
        votes.push(rng.votes(&[truth, 1.0 - truth], 3));
    }
    table(2, &probs, &votes)
}

fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap()
}

/// Adding many rows to one cell does not change its share of the traffic.
#[test]
fn cells_keep_their_share_of_the_traffic() {
    let mut rng = Rng::new(3);
    let levels: Vec<usize> = (0..400).map(|row| usize::from(row % 4 == 0)).collect();
    let router = Router::calibrate(&rows(&mut rng, &levels), &Partition::level_sets()).unwrap();
    let new = rows(&mut rng, &[1; 700]);
    let more = router.with_more_rows(&new).unwrap();
    assert_eq!(more.rows().rows(), 1100);
    let share = |router: &Router| {
        let policy = router.policy(&task()).unwrap();
        policy.shares().iter().map(|(_, &share)| share).collect::<Vec<f64>>()
    };
    let (before, after) = (share(&router), share(&more));
    before.iter().zip(&after).for_each(|(a, b)| close(*a, *b, 1e-12, "share"));
    // The estimates of the cell are those of all its rows, each counted once.
    let hard = |router: &Router| {
        (0..2)
            .map(CellId)
            .find(|&cell| router.mixture(cell).rows().any(|row| router.rows().prediction(row)[0] < 0.7))
            .unwrap()
    };
    let alone = {
        let classes = || new.classes().to_vec();
        let mut all = Table::new(classes(), Vec::new()).unwrap().with_votes(Vec::new()).unwrap();
        let kept = router.mixture(hard(&router));
        for row in kept.rows() {
            let votes = kept.table().votes(row).unwrap().counts().to_vec();
            let row = Table::new(classes(), kept.table().prediction(row).to_vec()).unwrap().with_votes(votes).unwrap();
            if all.rows() == 0 { all = row } else { all.append(&row).unwrap() }
        }
        all.append(&new).unwrap();
        Router::calibrate(&all, &Partition::level_sets()).unwrap()
    };
    let irreducible = |router: &Router, cell: CellId| {
        let policy = router.policy(&task()).unwrap();
        policy.cell(cell).unwrap().irreducible().unwrap()
    };
    close(irreducible(&more, hard(&more)), irreducible(&alone, CellId(0)), 1e-12, "irreducible");
    // A weight shared by all rows of a cell does not change its certificate, except for the error probability of the shares.
    let width =
        |router: &Router| router.certificate(&task(), 0.9).unwrap().cells()[hard(router).index()].total().width();
    assert!(width(&more) < 0.5 * width(&router), "{} of {}", width(&more), width(&router));
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let mut rng = Rng::new(4);
    let router = Router::calibrate(&rows(&mut rng, &[0; 40]), &Partition::top_class(2)).unwrap();
    // The second class has no calibration rows, so its share is unknown.
    let other = table(2, &[vec![0.2, 0.8]], &[vec![1, 2]]);
    let error = router.with_more_rows(&other).unwrap_err().to_string();
    assert!(error.contains("no calibration rows"), "{error}");
    let forest = Router::calibrate(&rows(&mut rng, &[0, 1].repeat(60)), &Partition::forest(5)).unwrap();
    assert!(forest.with_more_rows(&other).unwrap_err().to_string().contains("--certifiable"));
}

fn predictions(table: &Table) -> Vec<Vec<f64>> {
    (0..table.rows()).map(|row| table.prediction(row).to_vec()).collect()
}

/// Unique rows identify the table from which a router was made.
#[test]
fn routers_recognise_their_rows() {
    let mut rng = Rng::new(5);
    let draw = |rng: &mut Rng, n: usize| {
        let probs: Vec<Vec<f64>> = (0..n).map(|_| rng.uniform()).map(|p| vec![p, 1.0 - p]).collect();
        let votes: Vec<Vec<u32>> = probs.iter().map(|p| rng.votes(p, 3)).collect();
        table(2, &probs, &votes)
    };
    let (own, other) = (draw(&mut rng, 200), draw(&mut rng, 200));
    let router = Router::calibrate(&own, &Partition::top_class(4)).unwrap();
    assert!(router.has_seen(&own) && !router.has_seen(&other));
    let tree = Router::calibrate(&own, &Partition::tree()).unwrap();
    assert!(tree.has_seen(&own) && !tree.has_seen(&other));
    // Items are recognised by their predictions, with any votes, including items added later.
    let again = table(2, &predictions(&own), &vec![vec![1, 0]; 200]);
    assert!(!router.has_seen(&again) && router.items_seen(&again).unwrap().into_iter().all(|seen| seen));
    assert!(!router.items_seen(&other).unwrap().contains(&true));
    let more = router.with_more_rows(&other).unwrap();
    assert!(!more.has_seen(&other) && more.items_seen(&other).unwrap().into_iter().all(|seen| seen));
    // A table that holds some of them has that many, and one without them has none.
    let mixed = table(2, &[&predictions(&own)[..10], &predictions(&other)[..]].concat(), &vec![vec![1, 0]; 210]);
    assert_eq!([&own, &again, &mixed, &other].map(|table| router.calibration_rows_in(table)), [200, 200, 10, 0]);
    // Few distinct predictions repeat by chance, which is no evidence.
    let levels: Vec<usize> = (0..300).map(|row| row % 2).collect();
    let few = Router::calibrate(&rows(&mut rng, &levels), &Partition::level_sets()).unwrap();
    assert!(!few.has_seen(&rows(&mut rng, &levels)));
    assert_eq!(few.items_seen(&rows(&mut rng, &levels)), None);
    assert_eq!(few.calibration_rows_in(&rows(&mut rng, &levels)), 0);
}

/// Rounded predictions agree with those of other items by chance.
#[test]
fn rounded_predictions_are_not_mistaken_for_calibration_rows() {
    let mut rng = Rng::new(6);
    let draw = |rng: &mut Rng, n: usize| {
        let rounded = |p: Vec<f64>| {
            let first = (p[0] * 300.0).round();
            let second = (p[1] * 300.0).round().min(300.0 - first);
            vec![first / 300.0, second / 300.0, (300.0 - first - second) / 300.0]
        };
        let probs: Vec<Vec<f64>> = (0..n).map(|_| rounded(rng.dist(3))).collect();
        let votes: Vec<Vec<u32>> = probs.iter().map(|p| rng.votes(p, 3)).collect();
        table(3, &probs, &votes)
    };
    let own = draw(&mut rng, 1_000);
    let router = Router::calibrate(&own, &Partition::top_class(4)).unwrap();
    let other = draw(&mut rng, 4_000);
    let by_chance = router.items_seen(&other).unwrap().into_iter().filter(|seen| *seen).count();
    assert!(by_chance > 20, "{by_chance} of 4,000 agree by chance");
    assert_eq!(router.calibration_rows_in(&other), 0);
}

/// Two classes, probabilities with three decimals: a pool of new items has more than half of the router's predictions by chance.
#[test]
fn pool_of_new_items_with_rounded_predictions_is_not_the_calibration_table() {
    let mut rng = Rng::new(7);
    let draw = |rng: &mut Rng, n: usize| {
        let probs: Vec<Vec<f64>> =
            (0..n).map(|_| (1_000.0 * rng.uniform()).round() / 1_000.0).map(|p| vec![p, 1.0 - p]).collect();
        let votes: Vec<Vec<u32>> = probs.iter().map(|p| rng.votes(p, 3)).collect();
        table(2, &probs, &votes)
    };
    let own = draw(&mut rng, 500);
    let router = Router::calibrate(&own, &Partition::top_class(2)).unwrap();
    for rows in [200, 1_000, 2_000, 5_000, 20_000] {
        assert!(!router.has_most_items_in(&draw(&mut rng, rows)), "{rows} new items");
    }
    let mut pool = draw(&mut rng, 500);
    pool.append(&own).unwrap();
    assert!(router.has_most_items_in(&own) && router.has_most_items_in(&pool));
    // All of a tree's rows are in the table from which half shaped its cells.
    let tree = Router::calibrate(&draw(&mut rng, 400), &Partition::tree()).unwrap();
    assert!(!tree.has_most_items_in(&pool));
}
