//! Pinned decisions and costs of a small fixed table, so that a refactor cannot change them silently.
//!
//! The numbers were printed by the crate itself; the golden cases show that such numbers are correct.

use pointsman::{Estimator, Loss, Oracle, Router, Table, Task};

/// Thirteen rows, three classes, one to five labels; sums, ties and weights of every kind.
fn three_classes() -> Table {
    let probs = vec![
        0.7, 0.2, 0.1, //
        0.62, 0.3, 0.08, //
        0.9, 0.05, 0.05, //
        0.4, 0.4, 0.2, //
        0.333, 0.333, 0.333, //
        0.1, 0.8, 0.1, //
        0.05, 0.55, 0.4, //
        0.0, 1.0, 0.0, //
        0.25, 0.5, 0.25, //
        0.2, 0.2, 0.6, //
        0.01, 0.09, 0.9, //
        0.3, 0.3, 0.4, //
        0.45, 0.35, 0.2,
    ];
    let votes = vec![
        3, 0, 0, 2, 1, 0, 4, 0, 1, 1, 1, 1, 0, 2, 0, 0, 3, 1, 0, 1, 1, 1, 2, 0, 0, 1, 0, 1, 0, 2, 0, 0, 5, 2, 2, 1, 1,
        0, 1,
    ];
    let weights = vec![1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 0.25, 1.0, 1.0];
    Table::new(["ant", "bee", "cat"], probs).unwrap().with_votes(votes).unwrap().with_weights(weights).unwrap()
}

fn two_classes() -> Table {
    let probs = vec![0.9, 0.1, 0.6, 0.4, 0.75, 0.25, 0.5, 0.5, 0.2, 0.8, 0.02, 0.98, 0.35, 0.65, 0.0, 1.0];
    let votes = vec![5, 0, 3, 2, 4, 1, 2, 2, 1, 4, 0, 3, 2, 3, 1, 4];
    Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap()
}

/// Each cell's irreducible and total loss, and its action at prices of 2 % and 22 % of the bound.
fn found(table: &Table, loss: &str, estimator: Estimator, recalibrated: bool) -> Vec<(f64, f64, String)> {
    let loss: Loss = match loss {
        "matrix" => {
            let cost = vec![vec![0.0, 3.0, 1.0], vec![1.0, 0.0, 2.0], vec![0.4, 0.4, 0.4]];
            Loss::matrix(["ship", "hold", "ask"], cost).unwrap()
        }
        text => text.parse().unwrap(),
    };
    let mut router = Router::calibrate(table, &"top-class:2".parse().unwrap()).unwrap();
    if recalibrated {
        router = router.recalibrated();
    }
    let (route, abstain) = (0.02 * loss.bound(), 0.22 * loss.bound());
    let task = Task::new(loss).estimator(estimator).route("expert", Oracle::bayes(), route).unwrap();
    let policy = router.policy(&task.abstain(abstain).unwrap()).unwrap();
    let cell = |cell: u32| policy.cell(pointsman::CellId(cell)).unwrap();
    (0..router.cells().count() as u32)
        .map(|c| (cell(c).irreducible().unwrap(), cell(c).total(), cell(c).action().to_string()))
        .collect()
}

#[track_caller]
fn pinned(table: &Table, loss: &str, estimator: Estimator, recalibrated: bool, wanted: &[(f64, f64, &str)]) {
    let found = found(table, loss, estimator, recalibrated);
    let same = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(found, wanted)| {
            (found.0 - wanted.0).abs() <= 1e-12 && (found.1 - wanted.1).abs() <= 1e-12 && found.2 == wanted.2
        });
    assert!(same, "{loss}, {estimator}, recalibrated {recalibrated}:\n{found:?}");
}

#[test]
fn losses_of_three_classes_are_pinned() {
    let table = three_classes();
    pinned(
        &table,
        "brier",
        Estimator::Shrink,
        false,
        &[
            (0.6481481481481481, 0.6916666666666668, "abstain"),
            (0.3530158730158732, 0.3502190476190476, "predict"),
            (0.46875, 0.48, "abstain"),
            (0.45486111111111116, 0.5383333333333333, "abstain"),
            (0.6399999999999999, 0.7, "abstain"),
            (0.3911111111111112, 0.4089733333333333, "predict"),
        ],
    );
    pinned(
        &table,
        "brier",
        Estimator::Plugin,
        true,
        &[
            (0.3888888888888889, 0.6481481481481483, "route:expert"),
            (0.29968253968253966, 0.353015873015873, "route:expert"),
            (0.375, 0.46875, "route:expert"),
            (0.4097222222222222, 0.45486111111111116, "abstain"),
            (0.6399999999999999, 0.6400000000000001, "abstain"),
            (0.3555555555555555, 0.3911111111111111, "predict"),
        ],
    );
    pinned(
        &table,
        "cross-entropy",
        Estimator::Shrink,
        false,
        &[
            (1.072043343575071, 1.1499749616849497, "predict"),
            (0.6105178681313053, 0.6109777090567291, "predict"),
            (0.6615642381584822, 0.741084694876152, "predict"),
            (0.8028187820379638, 2.674087728028463, "route:expert"),
            (1.0549201679861442, 1.14643638983558, "predict"),
            (0.579916171418601, 0.7226958791225203, "predict"),
        ],
    );
    pinned(
        &table,
        "cross-entropy",
        Estimator::Plugin,
        true,
        &[
            (0.597254156410185, 1.0720433435750707, "route:expert"),
            (0.4352097281034199, 0.6105178681313054, "predict"),
            (0.519861635420834, 0.661564238158482, "predict"),
            (0.5994256564573106, 0.8028187820379638, "predict"),
            (1.0549201679861442, 1.0549201679861442, "predict"),
            (0.5092125346366503, 0.5799161714186009, "predict"),
        ],
    );
    pinned(
        &table,
        "spherical",
        Estimator::Shrink,
        false,
        &[
            (0.40682898599826045, 0.44305011588775983, "abstain"),
            (0.19564676479538745, 0.18927963001910975, "predict"),
            (0.2711310131443374, 0.27344550750449736, "abstain"),
            (0.2616647855554438, 0.2820057573562519, "abstain"),
            (0.3999999999999999, 0.45120452754397183, "abstain"),
            (0.21968667261869168, 0.23818354707986011, "abstain"),
        ],
    );
    pinned(
        &table,
        "spherical",
        Estimator::Plugin,
        true,
        &[
            (0.23851431654127556, 0.40682898599826056, "abstain"),
            (0.17056498641096401, 0.19564676479538728, "route:expert"),
            (0.21966991411008932, 0.2711310131443375, "abstain"),
            (0.2320372962289876, 0.2616647855554437, "abstain"),
            (0.3999999999999999, 0.4000000000000001, "abstain"),
            (0.20371520600005608, 0.21968667261869168, "predict"),
        ],
    );
    pinned(
        &table,
        "zero-one",
        Estimator::Shrink,
        false,
        &[
            (0.5555555555555556, 0.7222222222222222, "abstain"),
            (0.21904761904761916, 0.21904761904761902, "predict"),
            (0.375, 0.375, "abstain"),
            (0.29166666666666674, 0.29166666666666663, "abstain"),
            (0.6, 0.8, "abstain"),
            (0.2666666666666667, 0.26666666666666666, "abstain"),
        ],
    );
    pinned(
        &table,
        "zero-one",
        Estimator::Plugin,
        true,
        &[
            (0.3888888888888889, 0.5555555555555555, "abstain"),
            (0.21904761904761907, 0.21904761904761902, "predict"),
            (0.375, 0.375, "abstain"),
            (0.2916666666666667, 0.29166666666666663, "abstain"),
            (0.6, 0.6000000000000001, "abstain"),
            (0.2666666666666667, 0.26666666666666666, "abstain"),
        ],
    );
    pinned(
        &table,
        "asymmetric:2",
        Estimator::Shrink,
        false,
        &[
            (0.5555555555555556, 0.5555555555555555, "abstain"),
            (0.4380952380952383, 0.43809523809523804, "predict"),
            (0.375, 0.375, "predict"),
            (0.29166666666666674, 0.29166666666666663, "predict"),
            (0.6, 0.8, "abstain"),
            (0.2666666666666667, 0.26666666666666666, "predict"),
        ],
    );
    pinned(
        &table,
        "asymmetric:2",
        Estimator::Plugin,
        true,
        &[
            (0.3888888888888889, 0.5555555555555555, "route:expert"),
            (0.43809523809523815, 0.43809523809523804, "predict"),
            (0.375, 0.375, "predict"),
            (0.2916666666666667, 0.29166666666666663, "predict"),
            (0.6, 0.6000000000000001, "abstain"),
            (0.2666666666666667, 0.26666666666666666, "predict"),
        ],
    );
    pinned(
        &table,
        "matrix",
        Estimator::Shrink,
        false,
        &[
            (0.39999999999999997, 0.4000000000000001, "predict"),
            (0.4, 0.3714285714285715, "predict"),
            (0.4, 0.4, "predict"),
            (0.39999999999999997, 0.41666666666666663, "predict"),
            (0.4000000000000001, 0.4000000000000001, "predict"),
            (0.4, 0.4, "predict"),
        ],
    );
    pinned(
        &table,
        "matrix",
        Estimator::Plugin,
        true,
        &[
            (0.26666666666666666, 0.4000000000000001, "route:expert"),
            (0.2571428571428572, 0.4, "route:expert"),
            (0.30000000000000004, 0.4, "route:expert"),
            (0.3666666666666667, 0.4, "predict"),
            (0.4000000000000001, 0.4000000000000001, "predict"),
            (0.4, 0.4, "predict"),
        ],
    );
}

#[test]
fn losses_of_two_classes_are_pinned() {
    let table = two_classes();
    pinned(
        &table,
        "brier",
        Estimator::Shrink,
        false,
        &[
            (0.4949999999999999, 0.49, "abstain"),
            (0.17999999999999994, 0.17250000000000001, "predict"),
            (0.41999999999999993, 0.4025000000000001, "predict"),
            (0.17999999999999994, 0.20039999999999997, "predict"),
        ],
    );
    pinned(
        &table,
        "brier",
        Estimator::Plugin,
        true,
        &[
            (0.49, 0.4950000000000001, "abstain"),
            (0.15999999999999992, 0.18000000000000005, "predict"),
            (0.3999999999999999, 0.42, "predict"),
            (0.15999999999999992, 0.18000000000000005, "predict"),
        ],
    );
    pinned(
        &table,
        "cross-entropy",
        Estimator::Shrink,
        false,
        &[
            (0.6881388137135884, 0.683079423784601, "predict"),
            (0.3250829733914482, 0.3063825229216146, "predict"),
            (0.6108643020548934, 0.5894005114965658, "predict"),
            (0.3250829733914482, 1.3916528094553873, "route:expert"),
        ],
    );
    pinned(
        &table,
        "cross-entropy",
        Estimator::Plugin,
        true,
        &[
            (0.683079423784601, 0.6881388137135884, "predict"),
            (0.25020171176934397, 0.3250829733914482, "predict"),
            (0.5867070452737222, 0.6108643020548934, "predict"),
            (0.25020171176934397, 0.3250829733914482, "predict"),
        ],
    );
    pinned(
        &table,
        "fn-fp:fp=1,fn=3",
        Estimator::Shrink,
        false,
        &[
            (0.55, 0.55, "predict"),
            (0.30000000000000004, 0.4, "route:expert"),
            (0.30000000000000004, 0.30000000000000004, "predict"),
            (0.1, 0.1, "predict"),
        ],
    );
    pinned(
        &table,
        "fn-fp:fp=1,fn=3",
        Estimator::Plugin,
        true,
        &[
            (0.55, 0.55, "predict"),
            (0.30000000000000004, 0.30000000000000004, "predict"),
            (0.30000000000000004, 0.30000000000000004, "predict"),
            (0.1, 0.1, "predict"),
        ],
    );
    pinned(
        &table,
        "three-part",
        Estimator::Shrink,
        false,
        &[(0.25, 0.25, "predict"), (0.1, 0.125, "predict"), (0.25, 0.25, "predict"), (0.25, 0.4, "route:expert")],
    );
    pinned(
        &table,
        "three-part",
        Estimator::Plugin,
        true,
        &[(0.25, 0.25, "predict"), (0.1, 0.1, "predict"), (0.25, 0.25, "predict"), (0.125, 0.25, "route:expert")],
    );
}
