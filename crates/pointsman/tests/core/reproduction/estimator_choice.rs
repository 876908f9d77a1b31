//! `auto` compared with single estimators, and identification from labels, in simulations of known truth.

use pointsman::{CellId, Estimator, Loss, Partition, Router, Table, Task};

use crate::world::{Rng, irreducible, normalised, table};

/// A law of p* and its name.
type Law = (&'static str, fn(&mut Rng, usize) -> Vec<f64>);

/// A distribution on two classes.
fn edge(classes: usize, one: usize, other: usize, share: f64) -> Vec<f64> {
    let mut p = vec![0.0; classes];
    p[one] += share;
    p[other] += 1.0 - share;
    p
}

/// `share` on one class, the rest spread evenly over the others.
fn peak(classes: usize, class: usize, share: f64) -> Vec<f64> {
    let mut p = vec![(1.0 - share) / (classes - 1) as f64; classes];
    p[class] = share;
    p
}

const LAWS: [Law; 7] = [
    ("point", |_, classes| normalised((1..=classes).map(|c| 1.0 / c as f64).collect())),
    ("atoms", |rng, classes| {
        let share = if rng.uniform() < 0.5 { 0.2 } else { 0.8 };
        edge(classes, 0, 1, share)
    }),
    ("kink", |rng, classes| {
        let share = [0.8, 0.5, 1.0][rng.below(3)];
        edge(classes, 0, 1, share)
    }),
    ("edges", |rng, classes| {
        let other = 1 + rng.below(classes - 1);
        edge(classes, 0, other, rng.uniform())
    }),
    (
        "easy and ambiguous",
        |rng, classes| {
            if rng.uniform() < 0.75 { peak(classes, 0, 0.97) } else { edge(classes, 0, 1, 0.45) }
        },
    ),
    ("vertices", |rng, classes| {
        let class = rng.below(classes);
        peak(classes, class, 0.95)
    }),
    ("uniform", |rng, classes| rng.dist(classes)),
];

fn law(name: &str) -> Law {
    LAWS.into_iter().find(|(other, _)| *other == name).unwrap()
}

/// Rows of one law with `k` labels each, and their true distributions.
fn sample(rng: &mut Rng, (_, draw): Law, classes: usize, rows: usize, k: usize) -> (Table, Vec<Vec<f64>>) {
    let truth: Vec<Vec<f64>> = (0..rows).map(|_| draw(rng, classes)).collect();
    let votes: Vec<u32> = truth.iter().flat_map(|p| rng.votes(p, k)).collect();
    let names = (0..classes).map(|class| format!("c{class}"));
    let table = Table::new(names, vec![1.0 / classes as f64; classes * rows]).unwrap();
    (table.with_votes(votes).unwrap(), truth)
}

fn mean_entropy(loss: &Loss, truth: &[Vec<f64>]) -> f64 {
    truth.iter().map(|p| loss.entropy(p)).sum::<f64>() / truth.len() as f64
}

/// The root mean square errors of estimators on the same samples of one law.
fn errors(rng: &mut Rng, law: Law, setting: (usize, usize, usize), loss: &Loss, estimators: &[Estimator]) -> Vec<f64> {
    const WORLDS: usize = 12;
    let (classes, rows, k) = setting;
    let mut squares = vec![0.0; estimators.len()];
    for _ in 0..WORLDS {
        let (table, truth) = sample(rng, law, classes, rows, k);
        let wanted = mean_entropy(loss, &truth);
        for (sum, &estimator) in squares.iter_mut().zip(estimators) {
            *sum += (irreducible(&table, loss, estimator) - wanted).powi(2) / WORLDS as f64;
        }
    }
    squares.into_iter().map(f64::sqrt).collect()
}

#[test]
fn auto_is_the_default() {
    assert_eq!(Estimator::default(), Estimator::Auto);
    assert_eq!(Task::new(Loss::brier()).chosen_estimator(), Estimator::Auto);
    assert_eq!("auto".parse::<Estimator>().unwrap().to_string(), "auto");
}

/// Averaged over laws, the error of `auto` is at most a quarter larger than that of the best single estimator. All estimators see the same
/// samples, so their errors are correlated. The largest ratio of the simulation in the book is 1.07.
#[test]
fn auto_is_within_a_quarter_of_the_best_estimator() {
    let mut rng = Rng::new(160);
    let losses = |classes: usize| {
        let cost_matrix = if classes == 2 { "fn-fp:fp=1,fn=4" } else { "asymmetric:4" };
        ["brier", "cross-entropy", "zero-one", "spherical", cost_matrix]
    };
    for (classes, k) in [(2, 2), (2, 3), (2, 10), (3, 2), (3, 5), (10, 2), (10, 5), (30, 3)] {
        for loss in losses(classes).map(|loss| loss.parse::<Loss>().unwrap()) {
            let mut estimators = vec![Estimator::Auto, Estimator::Shrink, Estimator::Plugin];
            // `dirichlet` has to sample here, is far from the best, and would take longer than all the rest.
            let closed = classes == 2 || ["brier", "cross-entropy"].contains(&loss.to_string().as_str());
            estimators.extend(closed.then_some(Estimator::Dirichlet));
            estimators.extend((classes <= 3).then_some(Estimator::Npmle));
            let mut means = vec![0.0; estimators.len()];
            for law in LAWS {
                let found = errors(&mut rng, law, (classes, 200, k), &loss, &estimators);
                means.iter_mut().zip(found).for_each(|(mean, error)| *mean += error / LAWS.len() as f64);
            }
            let best = means[1..].iter().copied().fold(f64::INFINITY, f64::min);
            assert!(means[0] <= 1.25 * best, "{classes} classes, k = {k}, {loss}: {estimators:?} err by {means:?}");
        }
    }
}

/// Laws that two moments do not determine, on which `shrink` failed silently.
#[test]
fn auto_is_accurate_beyond_two_moments() {
    let mut rng = Rng::new(161);
    for (name, classes, k, loss, factor) in [
        ("edges", 30, 2, "cross-entropy", 0.6),
        ("edges", 30, 5, "cross-entropy", 0.5),
        ("uniform", 30, 3, "cross-entropy", 0.5),
        ("edges", 3, 2, "cross-entropy", 0.7),
        ("atoms", 2, 50, "fn-fp:fp=1,fn=4", 0.5),
        ("kink", 2, 50, "fn-fp:fp=1,fn=4", 0.7),
    ] {
        let loss: Loss = loss.parse().unwrap();
        let found = errors(&mut rng, law(name), (classes, 500, k), &loss, &[Estimator::Auto, Estimator::Shrink]);
        assert!(found[0] <= factor * found[1], "{name}, {classes} classes, k = {k}, {loss}: {found:?}");
    }
    let found = errors(
        &mut rng,
        law("atoms"),
        (2, 500, 10),
        &Loss::zero_one(),
        &[Estimator::Auto, Estimator::Shrink, Estimator::Plugin],
    );
    assert!(found[0] <= found[1] && found[0] <= 1.1 * found[2], "zero-one on two atoms: {found:?}");
}

/// Thirty classes with two labels per item: single classes have too few labels for their own law, and the law of all classes helps. Fitted class
/// by class alone, the error was 1.9 times that of `dirichlet`.
#[test]
fn rare_classes_share_the_concentration_of_all_classes() {
    let mut rng = Rng::new(166);
    let smooth: Law = ("smooth", |rng, classes| {
        let shares = normalised((1..=classes).map(|c| 1.0 / c as f64).collect());
        // The mean of twelve draws varies about like a Dirichlet law of concentration twelve.
        normalised(rng.votes(&shares, 12).into_iter().zip(&shares).map(|(n, p)| f64::from(n) + p).collect())
    });
    let estimators = [Estimator::Auto, Estimator::Dirichlet];
    let found = errors(&mut rng, smooth, (30, 500, 2), &Loss::cross_entropy(), &estimators);
    println!("auto and dirichlet err by {found:?}");
    assert!(found[0] <= 1.25 * found[1] + 0.02, "auto and dirichlet err by {found:?}");
}

/// Named estimators give the same values as before `auto` existed.
#[test]
fn named_estimators_keep_their_values() {
    let rows = 60_u32;
    let counts = |i: u32| [3 * u32::from(i % 5 < 2) + i % 2, i * 7 % 3, 1 + i * 3 % 4 * u32::from(i % 5 > 2)];
    let table = Table::new(["a", "b", "c"], [0.2, 0.3, 0.5].repeat(rows as usize)).unwrap();
    let table = table.with_votes((0..rows).flat_map(counts).collect()).unwrap();
    let table = table.with_weights((0..rows).map(|i| 0.5 + f64::from(i % 7) / 4.0).collect()).unwrap();
    for (loss, estimator, value) in [
        ("cross-entropy", Estimator::Npmle, 1.0401972433450748),
        ("cross-entropy", Estimator::Dirichlet, 1.0311825419441267),
        ("cross-entropy", Estimator::Shrink, 1.0600956341801047),
        ("cross-entropy", Estimator::Plugin, 0.7091996164136545),
        ("zero-one", Estimator::Npmle, 0.5405064282663997),
        ("zero-one", Estimator::Dirichlet, 0.5343371580029926),
        ("zero-one", Estimator::Shrink, 0.5556284418529317),
        ("zero-one", Estimator::Plugin, 0.34511661807580174),
        ("asymmetric:4", Estimator::Npmle, 0.5556284418529317),
        ("asymmetric:4", Estimator::Dirichlet, 0.5556284418529317),
        ("asymmetric:4", Estimator::Shrink, 0.5556284418529317),
        ("asymmetric:4", Estimator::Plugin, 0.5036362163913185),
    ] {
        let found = irreducible(&table, &loss.parse().unwrap(), estimator);
        assert!((found - value).abs() < 1e-12, "{loss}, {estimator}: {found}, was {value}");
    }
}

/// A router with one cell, and the bounds that its labels identify.
fn identified(table: &Table, loss: &Loss) -> ([f64; 2], f64) {
    let router = Router::calibrate(table, &Partition::confidence(1)).unwrap();
    let policy = router.policy(&Task::new(loss.clone())).unwrap();
    let estimate = policy.cell(CellId(0)).unwrap().estimate().irreducible_high;
    (policy.identified(&router).unwrap()[0].unwrap(), estimate)
}

/// The interval always contains the estimate, and the truth up to three standard errors: of the mean disagreement of label pairs (0.5/√2000 at
/// most), on which losses up to 2 depend with a slope of at most 1; and for the cross-entropy of the variances τ_c² of the C shares, p_c√(2/(k(k−1)n)) each,
/// on which it depends with a slope of 1/(2p_c).
#[test]
fn identified_interval_contains_the_truth() {
    let mut rng = Rng::new(162);
    let rows = 2000;
    for (classes, k) in [(2, 2), (2, 3), (2, 5), (2, 20), (3, 2), (3, 5), (10, 3)] {
        let cost_matrix = if classes == 2 { "fn-fp:fp=1,fn=4" } else { "asymmetric:4" };
        for loss in ["brier", "cross-entropy", "zero-one", "spherical", cost_matrix] {
            let loss: Loss = loss.parse().unwrap();
            let mut error = 3.0 * 0.5 / (rows as f64).sqrt() * loss.bound().min(2.0) / 2.0;
            if loss == Loss::cross_entropy() {
                error = error.max(3.0 * 0.5 * (2.0 * classes as f64 / (k * (k - 1) * rows) as f64).sqrt());
            }
            for law in LAWS {
                let (table, truth) = sample(&mut rng, law, classes, rows, k);
                let wanted = mean_entropy(&loss, &truth);
                let ([low, high], estimate) = identified(&table, &loss);
                let case = format!("{}, {classes} classes, k = {k}, {loss}", law.0);
                assert!(low <= estimate && estimate <= high, "{case}: {estimate} in {low} to {high}");
                assert!(low - error <= wanted && wanted <= high + error, "{case}: {wanted} in {low} to {high}");
                assert!(loss != Loss::brier() || high - low < 1e-12, "{case}: {low} to {high}");
            }
        }
    }
}

/// With two classes and two labels the interval lies within the closed forms in the mean disagreement U, up to the grid step of 0.01 of the fitted
/// law.
#[test]
fn identified_interval_matches_closed_forms_for_two_labels() {
    const GRID: f64 = 0.005;
    let mut rng = Rng::new(163);
    for law in LAWS {
        let (table, _) = sample(&mut rng, law, 2, 1000, 2);
        let brier = identified(&table, &Loss::brier()).1;
        let [low, high] = identified(&table, &Loss::cross_entropy()).0;
        let least = 2.0 * std::f64::consts::LN_2 * brier;
        assert!(low >= least - GRID && high <= least + 0.0756 + GRID, "{}: {low} to {high}, U = {brier}", law.0);
        let [low, high] = identified(&table, &Loss::zero_one()).0;
        let least = (1.0 - (1.0 - 2.0 * brier).max(0.0).sqrt()) / 2.0;
        assert!(low >= least - GRID && high <= brier + GRID, "{}: {low} to {high}, U = {brier}", law.0);
    }
}

/// More labels give narrower intervals; one label gives the bounds shown for it.
#[test]
fn more_labels_narrow_the_identified_interval() {
    let mut rng = Rng::new(164);
    for loss in ["cross-entropy", "zero-one", "three-part"] {
        let loss: Loss = loss.parse().unwrap();
        let widths: Vec<f64> = [1, 2, 5, 20]
            .into_iter()
            .map(|k| {
                let (table, _) = sample(&mut rng, law("uniform"), 2, 2000, k);
                let ([low, high], _) = identified(&table, &loss);
                high - low
            })
            .collect();
        assert!(widths.windows(2).all(|pair| pair[1] < pair[0] + 1e-9), "{loss}: {widths:?}");
        assert!(widths[3] < 0.3 * widths[1], "{loss}: {widths:?}");
    }
}

#[test]
fn identified_refuses_the_policy_of_another_router() {
    let mut rng = Rng::new(165);
    let (table, _) = sample(&mut rng, law("uniform"), 2, 200, 3);
    let [one, other] = [Partition::top_class(1), Partition::confidence(1)]
        .map(|partition| Router::calibrate(&table, &partition).unwrap());
    let policy = one.policy(&Task::new(Loss::zero_one())).unwrap();
    assert_eq!(policy.identified(&one).unwrap().len(), one.cells().count());
    assert!(policy.identified(&other).is_err());
}

/// Two labels identify the irreducible Brier loss: the interval is a point, even if some items have one label and neighbouring cells are pooled.
#[test]
fn brier_loss_is_identified_by_two_labels() {
    let mut rng = Rng::new(41);
    let probs: Vec<Vec<f64>> = (0..600).map(|_| 0.5 + 0.5 * rng.uniform()).map(|p| vec![p, 1.0 - p]).collect();
    let votes: Vec<Vec<u32>> = probs
        .iter()
        .map(|p| {
            let k = 1 + rng.below(4);
            rng.votes(p, k)
        })
        .collect();
    let router = Router::calibrate(&table(2, &probs, &votes), &Partition::pooled()).unwrap();
    for (loss, is_point) in [(Loss::brier(), true), (Loss::cross_entropy(), false)] {
        let policy = router.policy(&Task::new(loss)).unwrap();
        for (cell, ends) in policy.identified(&router).unwrap().into_iter().enumerate() {
            let Some([low, high]) = ends else { continue };
            let estimate = policy.cell(CellId(cell as u32)).unwrap().irreducible().unwrap();
            assert!(low <= estimate && estimate <= high, "{low} {estimate} {high}");
            assert_eq!(low == high, is_point, "{low} {high}");
        }
    }
}
