//! Forests grown on one half of the rows and filled by the other: their cells behave like all cells.

use pointsman::oracle::Aggregate;
use pointsman::partition::forest::{HonestForest, Node, Scorer, Trees};
use pointsman::partition::{Axis, SPARSE_BELOW_ROWS};
use pointsman::{CellId, Cells, Estimator, Loss, Oracle, Partition, Router, Table, Task};
use proptest::prelude::*;

use crate::certificates::{World, regret, task};
use crate::world::{CLASS_NAMES, Rng, close};

/// Predictions carry little information; the truth depends on the first of some features, any of which may be missing.
fn world(rows: usize, classes: usize, features: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut values, mut oracle, mut truths) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let (f, x) = (rng.dist(classes), rng.uniform());
        let mut truth = vec![0.0; classes];
        match (x * 3.0) as usize {
            0 => truth.copy_from_slice(&f),
            place => truth[place % classes] = 1.0,
        }
        votes.extend(rng.votes(&truth, 4));
        oracle.extend(truth.iter().map(|p| 0.8 * p + 0.2 / classes as f64));
        probs.extend(f);
        truths.extend(truth);
        values.push(x);
        values.extend((1..features).map(|_| if rng.uniform() < 0.1 { f64::NAN } else { rng.uniform() }));
    }
    let table = Table::new(CLASS_NAMES[..classes].to_vec(), probs).unwrap().with_votes(votes).unwrap();
    let names = (0..features).map(|i| i.to_string());
    table
        .with_features(names, values)
        .and_then(|t| t.with_oracle("gpt", oracle))
        .and_then(|t| t.with_truth(truths))
        .unwrap()
}

fn forest(router: &Router) -> &HonestForest {
    let Axis::HonestForest { forest } = &router.cells().axes()[0] else { panic!("an honest forest") };
    forest
}

#[test]
fn one_half_fills_at_most_25_cells() {
    let (mut sparse, mut all) = (0, 0);
    for rows in [130, 401, 1_600] {
        let router = Router::calibrate(&world(rows, 2, 2, 1), &Partition::honest_forest(10)).unwrap();
        let (kept, cells) = (router.rows().rows(), router.cells().count());
        assert_eq!(kept, rows.div_ceil(2), "half of the rows are kept");
        let most = (rows / 2 / SPARSE_BELOW_ROWS).min(25);
        assert!(cells <= most && 2 * cells >= most, "{cells} cells of {kept} rows");
        for cell in (0..cells as u32).map(CellId) {
            let name = router.cells().name(cell, router.classes());
            assert!(cells == 1 || name.contains("reducible") || name.contains("share of"), "{name}");
            // The cells were divided by the other half, so the number of rows in a cell is random.
            sparse += usize::from(router.mixture(cell).len() < SPARSE_BELOW_ROWS / 2);
            all += 1;
        }
    }
    assert!(5 * sparse <= all, "{sparse} of {all} cells are sparse");
}

/// Items with equal inputs are in one cell, which may have most of the rows.
#[test]
fn items_with_equal_inputs_share_a_cell() {
    let mut rng = Rng::new(2);
    let x: Vec<f64> = (0..600).map(|i| if i % 2 == 0 { rng.uniform() } else { 0.5 }).collect();
    let votes = x.iter().flat_map(|x| rng.votes(&if *x < 0.5 { [0.9, 0.1] } else { [0.4, 0.6] }, 3)).collect();
    let table = Table::new(["a", "b"], [0.6, 0.4].repeat(600)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["x"], x.clone()).unwrap();
    let router = Router::calibrate(&table, &Partition::honest_forest(8)).unwrap();
    let found = router.find_cells(&table).unwrap();
    let mut alike: Vec<CellId> = found.into_iter().zip(&x).filter(|(_, x)| **x == 0.5).map(|(cell, _)| cell).collect();
    alike.dedup();
    assert_eq!((alike.len(), router.cells().count() > 1), (1, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Tables, arrays of both precisions and single queries have the same cells, also with few trees or many inputs, which use other code.
    #[test]
    fn batches_and_single_queries_agree(
        seed in any::<u64>(), classes in 2_usize..5, wide: bool, trees in 1_usize..20, budget: bool,
    ) {
        let features = if wide { 70 } else { 2 };
        let router = Router::calibrate(&world(200, classes, features, seed), &Partition::honest_forest(trees)).unwrap();
        let test = world(150, classes, features, seed ^ 1);
        let mut task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
        if budget {
            task = task.budget(0.3).unwrap();
        }
        let policy = router.policy(&task).unwrap();
        let values: Vec<f64> = (0..test.rows()).flat_map(|row| test.features(row)).copied().collect();
        let double: Vec<f64> = (0..test.rows()).flat_map(|row| test.prediction(row).to_vec()).collect();
        let single: Vec<f32> = double.iter().map(|&x| x as f32).collect();
        let (batch, cells) = (policy.decide_batch(&test).unwrap(), router.find_cells(&test).unwrap());
        let many = policy.decide_many(&double, &values).unwrap();
        let of_singles = policy.decide_many(&single, &values).unwrap();
        for row in 0..test.rows() {
            let one = policy.decide_with(&test.prediction(row), test.features(row)).unwrap();
            let same = |other: pointsman::Decision<'_>| (one.cell(), one.action()) == (other.cell(), other.action());
            prop_assert!(one.cell() == cells[row] && same(policy.row(&batch, row)) && same(policy.row(&many, row)));
            let prediction = &single[row * classes..][..classes];
            let one = policy.decide_with(prediction, test.features(row)).unwrap();
            prop_assert_eq!(one.cell(), policy.row(&of_singles, row).cell());
        }
    }
}

/// Everything that a forest refuses works with an honest forest.
#[test]
fn honest_forests_support_everything_that_cells_do() {
    let (table, test) = (world(1_200, 3, 2, 3), world(2_000, 3, 2, 4));
    let router = Router::calibrate(&table, &Partition::honest_forest(15)).unwrap();
    let task = task(&Loss::brier(), 0.05, Some(0.4));
    for estimator in [Estimator::Shrink, Estimator::Plugin, Estimator::Npmle, Estimator::Dirichlet] {
        let policy = router.policy(&task.clone().estimator(estimator)).unwrap();
        let evaluation = policy.replay(&test).unwrap().evaluate(&policy).unwrap();
        let gain = evaluation.gain.get("higher-order").unwrap().unwrap();
        assert!(gain > 0.6, "{estimator}: {gain}");
    }
    let many = (0..30).fold(task.clone(), |task, i| task.route(format!("r{i}"), Oracle::bayes(), 0.1).unwrap());
    assert_eq!(router.policy(&many).unwrap().decide_with(&[0.2, 0.3, 0.5], &[0.5, 0.5]).unwrap().costs().len(), 33);
    let asked = Task::new(Loss::zero_one()).route("gpt", Oracle::measured(), 0.02).unwrap();
    let asked = asked.route("jury", Oracle::panel(3, Aggregate::Plurality).unwrap(), 0.05).unwrap();
    let policy = router.policy(&asked.clone().budget(0.25).unwrap()).unwrap();
    let evaluation = policy.replay(&test).unwrap().evaluate(&policy).unwrap();
    let routed = evaluation.shares.iter().filter(|(name, _)| name.starts_with("route")).map(|(_, share)| share).sum();
    // Four standard errors of shares of 600 and of 2,000 rows.
    close(routed, 0.25, 0.08, "the share routed");
    assert!(router.certificate(&asked, 0.9).is_ok() && router.plan(&asked, 0.9).is_ok());
    let served = router.clone().recalibrated();
    let (policy, certificate) = (served.policy(&task).unwrap(), served.certificate(&task, 0.9).unwrap());
    assert!(certificate.judge(&policy).unwrap().regret_bound > 0.0);
    let decision = policy.decide_with(&[0.2, 0.3, 0.5], &[0.5, 0.5]).unwrap();
    assert_eq!(decision.served(), served.mixture(decision.cell()).centroid().as_deref());
    assert!(decision.trees().is_none(), "its costs are its cell's");
}

#[test]
fn inconsistent_scores_are_refused() {
    let router = Router::calibrate(&world(200, 2, 1, 5), &Partition::honest_forest(3)).unwrap();
    let (scorer, cells) = (forest(&router).scorer(), forest(&router).cells());
    let with = |change: &dyn Fn(&mut Vec<f64>)| {
        let mut scores = scorer.leaf_scores().to_vec();
        change(&mut scores);
        Scorer::new(scorer.trees().clone(), 4, scores)
    };
    assert_eq!(&with(&|_| ()).unwrap(), scorer);
    assert!(with(&|scores| scores.truncate(8)).unwrap_err().to_string().contains("leaves"));
    for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e9] {
        let error = with(&|scores| scores[5] = score).unwrap_err().to_string();
        assert!(error.contains("leaf 1") && error.contains(&score.to_string()), "{error}");
    }
    let none = Trees::new(4, vec![0], &[Node::Leaf]).unwrap();
    assert!(Scorer::new(none.clone(), 0, vec![]).is_err() && Scorer::new(none.clone(), 17, vec![0.1; 17]).is_err());
    // Cells of other scores, of several trees, and with repeated or unknown classes.
    let made = |shares: &[u32], cells: &Trees| HonestForest::new(scorer.clone(), shares.to_vec(), cells.clone());
    assert_eq!(&made(&[0, 1], cells).unwrap(), forest(&router));
    let fewer = Trees::new(3, vec![0], &[Node::Leaf]).unwrap();
    let two = Trees::new(4, vec![0, 1], &[Node::Leaf; 2]).unwrap();
    for (shares, cells) in [(&[0][..], cells), (&[1, 1], cells), (&[0, 1], &fewer), (&[0, 1], &two)] {
        assert!(made(shares, cells).is_err());
    }
    let axes = vec![Axis::HonestForest { forest: made(&[0, 2], cells).unwrap() }];
    assert!(Cells::new(2, axes, vec!["0".into()]).is_err(), "a third of two classes");
    let axes = vec![Axis::HonestForest { forest: forest(&router).clone() }];
    assert!(Cells::new(2, axes, vec![]).is_err(), "a feature that is not there");
    // A partition that claims another number of trees.
    let again = |trees: usize| {
        let (cells, backoff) = (router.cells().as_ref().clone(), router.backoff().as_ref().clone());
        Router::from_parts(Partition::honest_forest(trees), cells, backoff, false, router.rows())
    };
    assert_eq!(again(3).unwrap(), router);
    assert!(again(4).is_err());
}

/// Routers that would take too long to read are not created.
#[test]
fn trees_times_rows_are_bounded() {
    let rows = 860_000;
    let table = Table::new(["a", "b"], [0.6, 0.4].repeat(rows)).unwrap().with_votes([2, 1].repeat(rows)).unwrap();
    let error = Router::calibrate(&table, &Partition::honest_forest(5_000)).unwrap_err().to_string();
    assert!(error.contains("5000 trees over 860000 rows"), "{error}");
}

/// With more classes than leaves have room for, the classes whose shares vary most are used.
#[test]
fn classes_whose_shares_vary_most_are_used() {
    let (mut rng, classes, n) = (Rng::new(9), 40, 600);
    let x: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
    let mut votes = vec![0; n * classes];
    for (row, x) in x.iter().enumerate() {
        votes[row * classes + if *x < 0.5 { 30 } else { 35 }] = 3;
    }
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let mut probs = vec![0.2 / 39.0; n * classes];
    probs.iter_mut().skip(30).step_by(classes).for_each(|p| *p = 0.8);
    let table = Table::new(names, probs).unwrap().with_votes(votes).unwrap().with_features(["x"], x).unwrap();
    let router = Router::calibrate(&table, &Partition::honest_forest(10)).unwrap();
    let shares = forest(&router).shares();
    assert!(shares.len() == 14 && shares.contains(&30) && shares.contains(&35), "{shares:?}");
    let policy = router.policy(&task(&Loss::zero_one(), 0.1, None)).unwrap();
    let total = |x: f64| policy.decide_with(&table.prediction(0), &[x]).unwrap().total();
    assert!(total(0.2) < 0.05 && total(0.8) > 0.95);
}

/// The cells were found with other rows, so no row is left out of certificates.
#[test]
fn all_kept_rows_are_used_for_certificates() {
    let router = Router::calibrate(&world(1_000, 2, 2, 6), &Partition::honest_forest(12)).unwrap();
    let certificate = router.certificate(&task(&Loss::brier(), 0.05, None), 0.9).unwrap();
    assert!(certificate.cells().iter().all(|cell| cell.rows_left_out() == 0));
    assert_eq!(certificate.cells().iter().map(|cell| cell.rows()).sum::<usize>(), router.rows().rows());
}

/// The share, total and irreducible loss of each cell of a router, by a fine grid of confidences.
fn truth(router: &Router, loss: &Loss) -> Vec<[f64; 3]> {
    const STEPS: usize = 4_000;
    let at = |i: usize| 0.5 + 0.5 * (i as f64 + 0.5) / STEPS as f64;
    let grid = Table::new(router.classes().to_vec(), (0..STEPS).flat_map(|i| [at(i), 1.0 - at(i)]).collect()).unwrap();
    let mut cells = vec![[0.0; 3]; router.cells().count()];
    for (i, cell) in router.find_cells(&grid).unwrap().into_iter().enumerate() {
        let [share, total, irreducible] = &mut cells[cell.index()];
        *share += 1.0 / STEPS as f64;
        for (odds, p) in World::truths(at(i)) {
            *total += odds * loss.expected(&[p, 1.0 - p], &[at(i), 1.0 - at(i)]);
            *irreducible += odds * loss.entropy(&[p, 1.0 - p]);
        }
    }
    cells
        .iter()
        .map(|[share, total, noise]| [*share, total / share / STEPS as f64, noise / share / STEPS as f64])
        .collect()
}

/// The estimates of a cell hold for new rows. With the rows on which the trees were grown they would not, because those rows are in cells chosen by
/// their own labels.
#[test]
fn cell_estimates_have_no_selection_bias() {
    let loss = Loss::brier();
    // The estimated reducible loss of the highest cell minus the truth.
    let mut off = [vec![], vec![]];
    for draw in 0..160 {
        let (table, fresh) = (world(500, 2, 3, 100 + draw), world(2_000, 2, 3, 500 + draw));
        let honest = Router::calibrate(&table, &Partition::honest_forest(4)).unwrap();
        let last = CellId(honest.cells().count() as u32 - 1);
        let cells = honest.find_cells(&fresh).unwrap();
        let met: Vec<f64> = (0..fresh.rows())
            .filter(|&row| cells[row] == last)
            .map(|row| {
                let truth = fresh.truth(row).unwrap();
                loss.expected(truth, &fresh.prediction(row)) - loss.entropy(truth)
            })
            .collect();
        let truth = met.iter().sum::<f64>() / met.len() as f64;
        for (off, router) in off.iter_mut().zip([&honest, &Router::calibrate_like(&table, &honest).unwrap()]) {
            let policy = router.policy(&task(&loss, 0.1, None)).unwrap();
            let cell = policy.cell(last).unwrap();
            off.push(cell.total() - cell.irreducible().unwrap() - truth);
        }
    }
    // Means in standard errors.
    let [honest, own] = off.map(|off| {
        let n = off.len() as f64;
        let mean = off.iter().sum::<f64>() / n;
        mean / (off.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n / n).sqrt()
    });
    println!("off by {honest:.1} standard errors, with the rows that divided by {own:.1}");
    assert!(honest.abs() < 3.0 && own > 4.0, "off by {honest} and {own} standard errors");
}

/// All intervals of all cells hold simultaneously with the stated confidence, and so does the regret bound at several prices.
#[test]
fn certificates_of_honest_partitions_have_the_stated_coverage() {
    const CONFIDENCE: f64 = 0.8;
    const DRAWS: usize = 150;
    // The largest error of the grid of confidences.
    const GRID: f64 = 2e-3;
    let asked = [
        (Partition::honest_forest(4), Loss::brier(), 3),
        (Partition::honest_forest(4), Loss::zero_one(), 4),
        (Partition::tree(), Loss::brier(), 3),
        (Partition::tree(), Loss::zero_one(), 4),
    ];
    for (partition, loss, k) in asked {
        let mut rng = Rng::new(2000 + k as u64);
        let (mut failed, mut certain) = (0, 0.0);
        for draw in 0..DRAWS {
            let table = World::draw(&mut rng, 600, k);
            let router = Router::builder().partition(partition.clone()).seed(draw as u64).fit(&table).unwrap();
            let certificate = router.certificate(&task(&loss, 0.1, None), CONFIDENCE).unwrap();
            let truth = truth(&router, certificate.loss());
            let near = |interval: pointsman::certify::Interval, value: f64| {
                (interval.low - GRID..=interval.high + GRID).contains(&value)
            };
            let mut holds = certificate.cells().iter().zip(&truth).all(|(cell, [share, total, irreducible])| {
                // A cell too narrow for the grid is skipped.
                *share == 0.0
                    || near(cell.total(), *total)
                        && near(cell.irreducible(), *irreducible)
                        && near(cell.reducible(), total - irreducible)
            });
            for (alpha, abstain) in [(0.02, None), (0.1, Some(0.3)), (0.3, None)] {
                let policy = router.policy(&task(&loss, alpha, abstain)).unwrap();
                let judgement = certificate.judge(&policy).unwrap();
                let known: Vec<[f64; 3]> =
                    truth.iter().map(|cell| if cell[0] > 0.0 { *cell } else { [0.0; 3] }).collect();
                holds &= regret(&policy, &known) <= judgement.regret_bound + GRID;
                certain += judgement.certain / (3 * DRAWS) as f64;
            }
            failed += usize::from(!holds);
        }
        println!("{partition}, {loss}, k = {k}: {failed} of {DRAWS} failed, certain {certain:.3}");
        assert!(failed as f64 <= (1.0 - CONFIDENCE) * DRAWS as f64, "{partition}, {loss}: {failed} of {DRAWS} failed");
        assert!(certain > 0.1, "{partition}, {loss}: certificates that say nothing hold too");
    }
}
