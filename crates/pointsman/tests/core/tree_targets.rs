//! What trees are grown on, in worlds whose regions differ in one respect that only a feature shows.

use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::world::Rng;

/// The weak model's prediction of every row.
const PREDICTION: [f64; 3] = [0.45, 0.35, 0.2];

/// A row's region: the true distribution, and the strong model's answer.
type Region = ([f64; 3], [f64; 3]);

/// Rows with a feature `x` that decides the region, the first below ½, and an uninformative feature. A strong model's answers are measured.
fn world(rows: usize, k: usize, seed: u64, regions: [Region; 2]) -> Table {
    let mut rng = Rng::new(seed);
    let (mut votes, mut features, mut truth, mut answers) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let x = rng.uniform();
        let (p, answer) = regions[usize::from(x >= 0.5)];
        votes.extend(rng.votes(&p, k));
        truth.extend(p);
        answers.extend(answer);
        features.extend([x, rng.uniform()]);
    }
    let table = Table::new(["a", "b", "c"], PREDICTION.repeat(rows)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["x", "z"], features).unwrap().with_truth(truth).unwrap();
    table.with_oracle("strong", answers).unwrap()
}

fn learned() -> [Partition; 3] {
    [Partition::tree(), Partition::honest_forest(30), Partition::forest(30)]
}

/// Both regions have the same irreducible Brier loss, 1 − 0.46, and the same reducible one, so the Brier losses do not separate them. The
/// total zero-one loss is 0.4 in the first region and 0.7 in the second.
#[test]
fn forests_separate_regions_of_equal_brier_losses() {
    let strong = [1.0 / 3.0; 3];
    let table = world(3_000, 20, 1, [([0.6, 0.1, 0.3], strong), ([0.3, 0.6, 0.1], strong)]);
    let router = Router::calibrate(&table, &Partition::forest(30)).unwrap();
    let task = Task::new(Loss::zero_one()).route("expert", Oracle::bayes(), 0.1).unwrap();
    let policy = router.policy(&task).unwrap();
    let total = |x: f64| policy.decide_with(&PREDICTION, &[x, 0.5]).unwrap().total();
    let found = [total(0.25), total(0.75)];
    assert!(found[1] - found[0] > 0.1, "{found:?}");
}

/// The weak model is as good in one region as in the other. The strong model knows the truth in the first region and errs in the second.
#[test]
fn trees_separate_regions_where_a_measured_oracle_errs() {
    let p = [0.7, 0.2, 0.1];
    let table = world(2_000, 5, 2, [(p, p), (p, [0.1, 0.2, 0.7])]);
    let losses = [1.0 - 0.54, 1.0 - 0.54 + 0.72];
    for partition in learned() {
        let router = Router::calibrate(&table, &partition).unwrap();
        let task = Task::new(Loss::brier()).route("strong", Oracle::measured(), 0.0).unwrap();
        let policy = router.policy(&task).unwrap();
        let lost = |x: f64| policy.decide_with(&PREDICTION, &[x, 0.5]).unwrap().costs()[1];
        let found = [lost(0.25), lost(0.75)];
        assert!((found[0] - losses[0]).abs() < 0.06 && (found[1] - losses[1]).abs() < 0.06, "{partition}: {found:?}");
    }
}

#[test]
fn trees_grown_on_oracles_do_not_depend_on_row_order() {
    let regions = [([0.6, 0.1, 0.3], [0.5, 0.2, 0.3]), ([0.3, 0.6, 0.1], [0.8, 0.1, 0.1])];
    let table = world(600, 3, 3, regions);
    let order: Vec<u32> = (0..600).map(|i| i * 7 % 600).collect();
    let columns = |table: &Table, row: u32| {
        let row = row as usize;
        (table.prediction(row).into_owned(), table.votes(row).unwrap().counts().to_vec(), table.features(row).to_vec())
    };
    let (mut probs, mut votes, mut features, mut answers) = (vec![], vec![], vec![], vec![]);
    for &row in &order {
        let (prediction, counts, own) = columns(&table, row);
        probs.extend(prediction);
        votes.extend(counts);
        features.extend(own);
        answers.extend_from_slice(&table.oracles().next().unwrap().1[3 * row as usize..][..3]);
    }
    let moved = Table::new(["a", "b", "c"], probs).unwrap().with_votes(votes).unwrap();
    let moved = moved.with_features(["x", "z"], features).unwrap().with_oracle("strong", answers).unwrap();
    let task = Task::new(Loss::cross_entropy()).route("strong", Oracle::measured(), 0.01).unwrap();
    let [first, second] = [&table, &moved].map(|table| {
        let router = Router::calibrate(table, &Partition::forest(20)).unwrap();
        let policy = router.policy(&task).unwrap();
        let costs = |i: u32| policy.decide_with(&PREDICTION, &[f64::from(i) / 50.0, 0.3]).unwrap().costs().to_vec();
        (0..50).map(costs).collect::<Vec<_>>()
    });
    assert_eq!(first, second);
}

/// Losses that the crate itself printed, so that a refactor cannot change silently what trees are grown on.
#[test]
fn losses_of_forests_grown_on_three_and_on_four_targets_are_pinned() {
    let rows = 400_u32;
    let (mut votes, mut features, mut answers) = (vec![], vec![], vec![]);
    for row in 0..rows {
        let [x, z] = [37, 91].map(|step| f64::from(row * step % rows) / f64::from(rows));
        let more = row % 5;
        votes.extend(if x < 0.5 { [10 + more, 2, 8 - more] } else { [6, 10 + more, 4 - more] });
        features.extend([x, z]);
        answers.extend(if z < 0.5 { [0.5, 0.2, 0.3] } else { [0.8, 0.1, 0.1] });
    }
    let table = Table::new(["0", "1", "2"], PREDICTION.repeat(rows as usize)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["f0", "f1"], features).unwrap();
    let task = |loss: Loss| Task::new(loss).route("expert", Oracle::bayes(), 0.0).unwrap();
    let losses = |table: &Table, task: &Task| -> Vec<f64> {
        let router = Router::calibrate(table, &Partition::forest(20)).unwrap();
        let policy = router.policy(task).unwrap();
        let of = |x: f64| policy.decide_with(&PREDICTION, &[x, 0.75]).unwrap().costs().to_vec();
        [0.25, 0.75].map(of).concat()
    };
    let three = losses(&table, &task(Loss::zero_one()));
    let measured = table.with_oracle("strong", answers).unwrap();
    let four = losses(&measured, &task(Loss::brier()).route("strong", Oracle::measured(), 0.0).unwrap());
    let wanted = [
        [0.4927929749988567, 0.4194409466535646, 0.6098267326732671, 0.4176877248338835].as_slice(),
        &[0.6350479368368307, 0.5504235635493979, 0.5908712609111588],
        &[0.6342486720601203, 0.5490236395696491, 1.0366534902927014],
    ];
    let (found, wanted) = ([three, four].concat(), wanted.concat());
    assert_eq!(found.len(), wanted.len());
    assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9), "{found:?}");
}
