//! The irreducible loss and panels by forests.

use pointsman::oracle::Aggregate;
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::forest::world;
use crate::world::{Rng, close};

/// Ambiguous for low `y`; elsewhere the weak model is nearly right. Two more features are uninformative.
fn waves(rows: usize, k: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features, mut truth) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let x = [rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform()];
        let wave = (6.0 * x[0]).sin();
        let p = 0.5 + if x[1] > 0.5 { 0.45 * wave } else { 0.0 };
        probs.extend([0.5 + 0.4 * wave, 0.5 - 0.4 * wave]);
        votes.extend(rng.votes(&[p, 1.0 - p], k));
        truth.extend([p, 1.0 - p]);
        features.extend(x);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["x", "y", "z", "w"], features).unwrap().with_truth(truth).unwrap()
}

/// With small leaves and few labels, clamping in each leaf would bias the average.
#[test]
fn irreducible_loss_of_forests_is_nearly_unbiased() {
    const SEEDS: u64 = 6;
    let mean_of =
        |table: &Table, value: &dyn Fn(usize) -> f64| (0..table.rows()).map(value).sum::<f64>() / table.rows() as f64;
    for (k, bounds) in [(2, [0.001, 0.008, 0.018]), (5, [0.001, 0.004, 0.01])] {
        let mut bias = [0.0; 3];
        for seed in 0..SEEDS {
            let table = waves(1_500, k, 100 + seed);
            let router = Router::calibrate(&table, &Partition::forest(40)).unwrap();
            let found = |loss: &Loss, others: &[Oracle]| {
                let mut task = Task::new(loss.clone()).route("expert", Oracle::bayes(), 0.0).unwrap();
                for (i, oracle) in others.iter().enumerate() {
                    task = task.route(format!("other {i}"), oracle.clone(), 0.0).unwrap();
                }
                let policy = router.policy(&task).unwrap();
                let decided = policy.decide_batch(&table).unwrap();
                mean_of(&table, &|row| policy.row(&decided, row).costs()[1])
            };
            // For Brier the labels give an unbiased estimate; other losses are compared with the truth.
            let differ = |row: usize| table.votes(row).unwrap().disagreement().unwrap();
            let brier = found(&Loss::brier(), &[]);
            bias[0] += (brier - mean_of(&table, &differ)) / SEEDS as f64;
            for (bias, loss) in bias[1..].iter_mut().zip([Loss::cross_entropy(), Loss::zero_one()]) {
                let truth = |row: usize| loss.entropy(table.truth(row).unwrap());
                *bias += (found(&loss, &[]) - mean_of(&table, &truth)) / SEEDS as f64;
            }
            let panel = Oracle::panel(3, Aggregate::Mean).unwrap();
            close(found(&Loss::brier(), &[panel]), brier, 1e-12, "beside a panel");
        }
        println!("{k} labels: off by {bias:.4?} (Brier, cross-entropy, zero-one)");
        assert!(bias.iter().zip(bounds).all(|(bias, bound)| bias.abs() < bound), "{k} labels: {bias:?}");
    }
}

/// Very large panels with more experts than labels are computed once per row, not once per leaf.
#[test]
fn large_panels_are_computed_once_per_row() {
    let table = world(400, 3, 24);
    let router = Router::calibrate(&table, &Partition::forest(25)).unwrap();
    for (m, loss) in [(120, Loss::zero_one()), (1_000, Loss::spherical())] {
        for aggregate in [Aggregate::Plurality, Aggregate::Laplace(1.0)] {
            let jury = Oracle::panel(m, aggregate).unwrap();
            let policy = router.policy(&Task::new(loss.clone()).route("jury", jury.clone(), 0.0).unwrap()).unwrap();
            let decided = policy.decide_batch(&table).unwrap();
            let mut error = 0.0;
            for row in 0..table.rows() {
                let truth = jury.cost(&loss, table.truth(row).unwrap()).unwrap();
                error += (policy.row(&decided, row).costs()[1] - truth).abs() / table.rows() as f64;
            }
            assert!(error < 0.06, "{jury} {loss}: {error}");
        }
    }
}
