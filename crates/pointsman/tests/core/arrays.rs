//! Arrays are decided like tables, and the costs of given decisions and actions.

use pointsman::{Error, Loss, Oracle, Policy, Router, Table, Task};

use crate::world::Rng;

/// Binary queries with one feature.
fn queries(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features) = (vec![], vec![], vec![]);
    for _ in 0..rows {
        // Rounded to single precision, so that both precisions hold the same numbers.
        let f = f64::from(rng.uniform() as f32);
        probs.extend([f, f64::from((1.0 - f) as f32)]);
        votes.extend(rng.votes(&[0.2 + 0.6 * f, 0.8 - 0.6 * f], 4));
        features.push(rng.uniform());
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["x"], features).unwrap()
}

fn policy(partition: &str, recalibrated: bool) -> Policy {
    let router = Router::calibrate(&queries(600, 1), &partition.parse().unwrap()).unwrap();
    let router = if recalibrated { router.recalibrated() } else { router };
    let loss = Loss::fn_fp(1.0, 3.0).unwrap();
    router.policy(&Task::new(loss).route("expert", Oracle::bayes(), 0.03).unwrap().abstain(0.66).unwrap()).unwrap()
}

#[test]
fn arrays_are_decided_like_tables() {
    // More rows than one task takes at a time.
    let table = queries(40_000, 2);
    let singles: Vec<f32> = table.predictions().iter().map(|&p| p as f32).collect();
    let xs: Vec<f64> = (0..table.rows()).map(|row| table.features(row)[0]).collect();
    for (partition, features) in [("top-class:7", &[][..]), ("features:x_x=5", &xs), ("forest:3", &xs)] {
        let policy = policy(partition, partition.starts_with("top"));
        let wanted = policy.decide_batch(&table).unwrap();
        let found = policy.decide_many(&table.predictions(), features).unwrap();
        let single = policy.decide_many(&singles, features).unwrap();
        for row in 0..table.rows() {
            let [wanted, found, single] = [&wanted, &found, &single].map(|batch| policy.row(batch, row));
            assert_eq!((wanted.code(), wanted.cell(), wanted.costs()), (found.code(), found.cell(), found.costs()));
            assert_eq!((wanted.code(), wanted.cell(), wanted.costs()), (single.code(), single.cell(), single.costs()));
        }
        let answers = policy.answers(&wanted, &table.predictions());
        assert_eq!(answers, policy.answers(&single, &singles));
        for (row, [label, act]) in answers.into_iter().enumerate() {
            let own = table.prediction(row);
            let served = policy.row(&wanted, row).served().map_or(own.to_vec(), <[f64]>::to_vec);
            assert_eq!(label as usize, policy.task().loss().label(&served));
            assert_eq!(act as usize, policy.task().loss().act(&served));
        }
    }
}

#[test]
fn tables_do_not_depend_on_precision() {
    let double = queries(9_000, 4);
    let singles: Vec<f32> = double.predictions().iter().map(|&p| p as f32).collect();
    let votes: Vec<u32> = (0..double.rows()).flat_map(|row| double.votes(row).unwrap().counts()).copied().collect();
    let features = (0..double.rows()).map(|row| double.features(row)[0]).collect();
    let single = Table::from_rows(["no", "yes"], &singles).unwrap().with_vote_rows(&votes).unwrap();
    let single = single.with_features(["x"], features).unwrap();
    assert_eq!(single, double);
    assert_eq!(Table::from_rows(["no", "yes"], &double.predictions()).unwrap().predictions(), double.predictions());
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.03).unwrap();
    for partition in ["top-class:7", "level-sets", "tree", "forest:3"] {
        let partition = partition.parse().unwrap();
        let [a, b] = [&single, &double].map(|table| Router::calibrate(table, &partition).unwrap());
        assert_eq!(a, b);
        let [a, b] = [a, b].map(|router| router.policy(&task).unwrap());
        let (found, wanted) = (a.decide_batch(&single).unwrap(), b.decide_batch(&double).unwrap());
        for row in 0..double.rows() {
            let (found, wanted) = (a.row(&found, row), b.row(&wanted, row));
            assert_eq!((found.code(), found.cell(), found.costs()), (wanted.code(), wanted.cell(), wanted.costs()));
        }
    }
    let mut bad = singles;
    (bad[4_001 * 2], bad[8_000 * 2]) = (7.0, f32::NAN);
    let error = Table::from_rows(["no", "yes"], &bad).unwrap_err();
    assert!(error.to_string().starts_with("row 4001, column prob_*: the probabilities sum to 7."), "{error}");
    assert!(Table::from_rows(["no", "yes"], &bad[1..]).unwrap_err().to_string().contains("whole number of rows"));
}

#[test]
fn first_invalid_row_of_an_array_is_named() {
    let policy = policy("top-class:7", false);
    let mut singles = [0.25_f32, 0.75].repeat(50_000);
    for bad in [30_001, 40_002] {
        singles[2 * bad] = 0.9;
    }
    let Err(Error::Value { row, column, .. }) = policy.decide_many(&singles, &[]) else { panic!("not refused") };
    assert_eq!((row, column.as_str()), (30_001, "prob_*"));
    assert!(policy.decide_many(&singles[1..], &[]).is_err() && policy.decide_many(&singles, &[1.0]).is_err());
    assert!(policy.decide_many::<f32>(&[], &[]).unwrap().is_empty());
}

#[test]
fn costs_of_given_actions_match_the_decisions() {
    let table = queries(2_000, 3);
    let policy = policy("top-class:7", false);
    let decisions = policy.decide_batch(&table).unwrap();
    let labels: Vec<u32> = (0..2_000).map(|row| row % 2).collect();
    let answers = [0.0, 1.0].repeat(2_000);
    let costs = policy.realised(&decisions, &table.predictions(), &labels, &answers).unwrap();
    let loss = policy.task().loss();
    let mut seen = [0; 3];
    for (row, cost) in costs.into_iter().enumerate() {
        let truth = if row % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] };
        let code = policy.row(&decisions, row).code().unwrap();
        seen[code] += 1;
        let mut own = [0.0; 2];
        table.dist_into(row, &mut own);
        let wanted = match code {
            0 => loss.expected(&truth, &own),
            1 => 0.03 + loss.expected(&truth, &[0.0, 1.0]),
            _ => 0.66,
        };
        assert!((cost - wanted).abs() < 1e-12, "row {row}: {cost} for {wanted}");
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
    assert!(policy.realised(&decisions, &table.predictions(), &labels[1..], &answers).is_err());
    let Err(Error::Value { row: 7, .. }) = policy.realised(
        &decisions,
        &table.predictions(),
        &labels.iter().enumerate().map(|(row, &label)| if row == 7 { 2 } else { label }).collect::<Vec<_>>(),
        &answers,
    ) else {
        panic!("a label that is no class")
    };
}
