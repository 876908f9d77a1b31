//! Held-out rows in the cells of a forest: on the same traffic they are like the calibration rows, and drift still shows.

use pointsman::evaluate::CalibrationError;
use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::Rng;

/// Items of three kinds that features show imperfectly, with two to four labels. The labels of a share of the items are those of another kind.
fn items(rng: &mut Rng, rows: usize, drifted: f64) -> Table {
    let (mut probs, mut votes, mut features) = (vec![], vec![], vec![]);
    for _ in 0..rows {
        let (kind, f) = (rng.uniform(), 0.5 + 0.45 * rng.uniform());
        let labels_of = if rng.uniform() < drifted { 1.0 - kind } else { kind };
        let p = match labels_of {
            x if x < 0.4 => [f, 1.0 - f],
            x if x < 0.7 => [0.95, 0.05],
            _ => [0.2, 0.8],
        };
        let labels = 2 + (3.0 * rng.uniform()) as usize;
        probs.extend([f, 1.0 - f]);
        votes.extend(rng.votes(&p, labels));
        features.extend([kind + 0.2 * (rng.uniform() - 0.5), rng.uniform(), rng.uniform()]);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["kind", "noise", "other"], features).unwrap()
}

fn policy(router: &Router) -> Policy {
    router.policy(&Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap()).unwrap()
}

/// The share of the cells that chance explains in one case of twenty.
fn significant(error: &CalibrationError) -> f64 {
    error.cells.iter().filter(|cell| cell.p_value <= 0.05).count() as f64 / error.cells.len() as f64
}

/// The rules were fixed before the errors were seen: on the same traffic W1 is within 3 % of its floor on average, and at most a tenth of the
/// cells are significant; if a fifth of the labels drift, W1 exceeds its floor by a tenth in every world.
#[test]
fn calibration_error_of_forests_shows_drift_and_nothing_else() {
    const WORLDS: u64 = 6;
    let (mut above, mut cells, mut debiased, mut debiased_drift) = (0.0, 0.0, 0.0, 0.0);
    let mut p_values = Vec::new();
    for seed in 0..WORLDS {
        let mut rng = Rng::new(40 + seed);
        let router = Router::calibrate(&items(&mut rng, 1_500, 0.0), &Partition::forest(50)).unwrap();
        let policy = policy(&router);
        let mut error = |drifted: f64| {
            router.calibration_error(&items(&mut rng, 1_000, drifted), &policy, 60, seed, || ()).unwrap()
        };
        let (same, drift) = (error(0.0), error(0.2));
        println!(
            "W1 {:.3}, floor {:.3}, debiased {:.3}, p {:.2}, significant {:.2}; with drift {:.3}, {:.3}, {:.3}, {:.2}, {:.2}",
            same.raw,
            same.floor,
            same.debiased,
            same.p_value,
            significant(&same),
            drift.raw,
            drift.floor,
            drift.debiased,
            drift.p_value,
            significant(&drift)
        );
        above += (same.raw / same.floor - 1.0) / WORLDS as f64;
        cells += significant(&same) / WORLDS as f64;
        debiased += same.debiased / WORLDS as f64;
        debiased_drift += drift.debiased / WORLDS as f64;
        p_values.push(same.p_value);
        assert!(drift.p_value < 0.02, "world {seed}: {}", drift.p_value);
        assert!(drift.raw > 1.1 * drift.floor, "world {seed}: {} {}", drift.raw, drift.floor);
    }
    assert!(above.abs() < 0.03 && cells <= 0.1, "W1 is {above} above its floor, {cells} of the cells are significant");
    // On the same traffic at most one of six is below a twentieth, with a probability of 97 %.
    assert!(p_values.iter().filter(|&&p| p <= 0.05).count() <= 1, "{p_values:?}");
    assert!(debiased < debiased_drift / 2.0, "{debiased} on the same traffic, {debiased_drift} with drift");
}

#[test]
fn cells_of_a_forest_hold_as_many_held_out_rows_as_calibration_rows() {
    let mut rng = Rng::new(7);
    let router = Router::calibrate(&items(&mut rng, 3_000, 0.0), &Partition::forest(50)).unwrap();
    let (policy, held_out) = (policy(&router), items(&mut rng, 3_000, 0.0));
    let cells = policy.replay(&held_out).unwrap().cells(&policy, &held_out).unwrap();
    assert_eq!(cells.len(), 25);
    for cell in &cells {
        // Both counts have a standard error of 11.
        let (stored, met) = (cell.rows as f64, cell.held_out.rows as f64);
        assert!((stored - met).abs() < 60.0, "cell {}: {stored} calibration rows, {met} held-out rows", cell.cell);
    }
    // Queries are scored by all trees, so fewer of them are in the outer cells.
    let decided = router.find_cells(&held_out).unwrap();
    let outer = decided.iter().filter(|cell| [0, 24].contains(&cell.0)).count();
    assert!(outer < cells[0].held_out.rows + cells[24].held_out.rows, "{outer}");
    // Histograms compare the same rows.
    let ids: Vec<_> = cells.iter().map(|cell| pointsman::CellId(cell.cell)).collect();
    let histograms = router.mixture_histograms(&held_out, &ids, 4).unwrap();
    assert!(histograms.iter().all(|histogram| histogram.held_out.is_some()));
}

#[test]
fn order_of_held_out_rows_makes_no_difference() {
    let mut rng = Rng::new(8);
    let router = Router::calibrate(&items(&mut rng, 600, 0.0), &Partition::forest(20)).unwrap();
    let (policy, held_out) = (policy(&router), items(&mut rng, 300, 0.0));
    let reversed = crate::forest::reordered(&held_out, &(0..300).rev().collect::<Vec<_>>());
    let error = |table: &Table| router.calibration_error(table, &policy, 5, 1, || ()).unwrap();
    let (a, b) = (error(&held_out), error(&reversed));
    let rows = |error: &CalibrationError| error.cells.iter().map(|cell| cell.rows_held_out).collect::<Vec<_>>();
    assert_eq!(rows(&a), rows(&b));
}
