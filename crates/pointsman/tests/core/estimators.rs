//! Estimates of the irreducible loss from few labels, compared with known truths.

use pointsman::{Action, CellId, Estimator, Loss, Oracle, Partition, Router, Table, Task};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{Rng, any_loss, close, dist, irreducible, normalised, one_cell, population, table};

/// Items of one cell: share, p*, f.
type Items = Vec<(f64, Vec<f64>, Vec<f64>)>;

fn items(classes: usize) -> impl Strategy<Value = Items> {
    let inside = move || vec(0.01..1.0, classes).prop_map(normalised);
    vec((0.1..1.0, inside(), dist(classes)), 1..6)
}

fn mean(items: &Items, value: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
    let weight: f64 = items.iter().map(|item| item.0).sum();
    items.iter().map(|(share, p, f)| share * value(p, f)).sum::<f64>() / weight
}

/// Rows with `k` labels each.
fn rows(classes: usize, k: u32) -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<Vec<u32>>)> {
    let votes = vec(0..classes, k as usize).prop_map(move |labels| {
        let mut counts = vec![0; classes];
        labels.into_iter().for_each(|label| counts[label] += 1);
        counts
    });
    vec((dist(classes), votes), 1..30).prop_map(|rows| rows.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// With a common k and no clamping, the shrunk mixture has the variance given by label pairs, so the Brier loss is exact.
    #[test]
    fn brier_shrinkage_is_the_u_statistic((k, probs, votes) in (2_usize..5, 2_u32..7).prop_flat_map(|(c, k)| (Just(f64::from(k)), rows(c, k)))
        .prop_map(|(k, (probs, votes))| (k, probs, votes))) {
        let n = votes.len() as f64;
        let classes = votes[0].len();
        let centroid: Vec<f64> = (0..classes).map(|c| votes.iter().map(|v| f64::from(v[c]) / k).sum::<f64>() / n).collect();
        let ceiling = 1.0 - centroid.iter().map(|x| x * x).sum::<f64>();
        let unbiased = votes
            .iter()
            .map(|v| 1.0 - v.iter().map(|&n| f64::from(n) * (f64::from(n) - 1.0)).sum::<f64>() / (k * (k - 1.0)))
            .sum::<f64>() / n;
        let found = irreducible(&table(classes, &probs, &votes), &Loss::brier(), Estimator::Shrink);
        // Clamped: the pairs indicate more noise than the centroid allows.
        prop_assert!((found - unbiased.min(ceiling)).abs() <= 1e-12, "{found}, {unbiased}, {ceiling}");
    }

    /// plug-in ≤ shrink ≤ G(centroid) with a common k, for every concave entropy and every sample, not only in expectation.
    #[test]
    fn shrinkage_lies_between_the_plug_in_and_the_centroid(
        (loss, (probs, votes)) in (2_usize..5, 2_u32..7).prop_flat_map(|(c, k)| (any_loss(c), rows(c, k)))
    ) {
        let table = table(votes[0].len(), &probs, &votes);
        let policy = one_cell(&table, &loss, Estimator::Shrink);
        let estimate = policy.cell(CellId(0)).unwrap().estimate();
        let shrink = estimate.irreducible().unwrap();
        let plugin = irreducible(&table, &loss, Estimator::Plugin);
        let rounding = 1e-12 * loss.bound().max(1.0);
        prop_assert!(plugin <= shrink + rounding, "{loss}: plug-in {plugin}, shrink {shrink}");
        prop_assert!(shrink <= loss.entropy(&estimate.centroid), "{loss}: shrink {shrink}");
    }

    /// With any mixture of k the estimate is at most the entropy of the centroid.
    #[test]
    fn no_estimate_exceeds_the_entropy_of_the_centroid(
        (loss, votes) in (2_usize..5).prop_flat_map(|c| (any_loss(c), vec(vec(0_u32..5, c), 1..20)))
    ) {
        let votes: Vec<Vec<u32>> = votes.into_iter().map(|mut v| { v[0] += 1; v }).collect();
        let classes = votes[0].len();
        let probs = vec![vec![1.0 / classes as f64; classes]; votes.len()];
        for estimator in [Estimator::Shrink, Estimator::Plugin] {
            let policy = one_cell(&table(classes, &probs, &votes), &loss, estimator);
            let estimate = policy.cell(CellId(0)).unwrap().estimate();
            let ceiling = loss.entropy(&estimate.centroid);
            prop_assert!(estimate.irreducible_high <= ceiling + 1e-12 * loss.bound().max(1.0), "{loss}");
            prop_assert!(estimate.irreducible_low <= estimate.irreducible_high + 1e-12 * loss.bound().max(1.0), "{loss}");
        }
    }

    /// With every possible vote at its probability, the total loss is exactly E L(p*, f), for every loss and every k.
    #[test]
    fn total_loss_is_unbiased_for_every_k(
        (loss, items) in (2_usize..4).prop_flat_map(|c| (any_loss(c), items(c))), k in proptest::sample::select(vec![1_u32, 2, 5])
    ) {
        let policy = one_cell(&population(&items, &[(1.0, k)]), &loss, Estimator::Shrink);
        let wanted = mean(&items, |p, f| loss.expected(p, f));
        prop_assert!((policy.cell(CellId(0)).unwrap().total() - wanted).abs() <= 1e-12 * loss.bound().max(1.0), "{loss}");
    }

    /// In an infinite sample, shrinkage gives the true irreducible Brier loss, even if k varies between rows.
    #[test]
    fn brier_shrinkage_is_consistent(items in (2_usize..4).prop_flat_map(items), varying: bool, k in 2_u32..6) {
        let ks = if varying { vec![(0.3, 1), (0.5, 2), (0.2, 5)] } else { vec![(1.0, k)] };
        let found = irreducible(&population(&items, &ks), &Loss::brier(), Estimator::Shrink);
        prop_assert!((found - mean(&items, |p, _| Loss::brier().entropy(p))).abs() <= 1e-12);
    }

    #[test]
    fn weight_two_equals_a_repeated_row(
        (loss, rows) in (2_usize..4).prop_flat_map(|c| (any_loss(c), vec((dist(c), vec(0_u32..4, c), 1_u32..4), 1..12))), plugin: bool
    ) {
        let estimator = if plugin { Estimator::Plugin } else { Estimator::Shrink };
        let classes = rows[0].0.len();
        let (mut once, mut often) = ((Vec::new(), Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for (p, mut votes, times) in rows {
            votes[0] += 1;
            once.0.push(p.clone());
            once.1.push(votes.clone());
            once.2.push(f64::from(times));
            (0..times).for_each(|_| { often.0.push(p.clone()); often.1.push(votes.clone()); });
        }
        let weighted = one_cell(&table(classes, &once.0, &once.1).with_weights(once.2).unwrap(), &loss, estimator);
        let repeated = one_cell(&table(classes, &often.0, &often.1), &loss, estimator);
        let (a, b) = (weighted.cell(CellId(0)).unwrap().estimate(), repeated.cell(CellId(0)).unwrap().estimate());
        let rounding = 1e-12 * loss.bound().max(1.0);
        // λ is a square root, which magnifies the rounding of a τ² near zero; an entropy with a kink passes it on.
        let magnified = if plugin || loss == Loss::brier() { rounding } else { 1e-7 * loss.bound() };
        for (x, y) in [(a.irreducible_low, b.irreducible_low), (a.irreducible_high, b.irreducible_high)] {
            prop_assert!((x - y).abs() <= magnified, "{loss}: {x} and {y}");
        }
        prop_assert!((a.total - b.total).abs() <= rounding);
        prop_assert!(a.centroid.iter().zip(&b.centroid).all(|(x, y)| (x - y).abs() <= 1e-15));
    }

    /// With one label per item the true irreducible loss is within the bounds, and no point estimate is given.
    #[test]
    fn one_label_bounds_the_irreducible_loss((loss, items) in (2_usize..4).prop_flat_map(|c| (any_loss(c), items(c)))) {
        let policy = one_cell(&population(&items, &[(1.0, 1)]), &loss, Estimator::Shrink);
        let decision = policy.cell(CellId(0)).unwrap();
        let estimate = decision.estimate();
        let truth = mean(&items, |p, _| loss.entropy(p));
        let rounding = 1e-12 * loss.bound().max(1.0);
        prop_assert!(estimate.irreducible_low <= truth + rounding && truth <= estimate.irreducible_high + rounding);
        let centroid: Vec<f64> = (0..items[0].1.len()).map(|c| mean(&items, |p, _| p[c])).collect();
        prop_assert!((estimate.irreducible_high - loss.entropy(&centroid)).abs() <= rounding, "{loss}");
        // At the lower bound every item has one possible label; a cost matrix may charge even for that.
        let vertex = |class: usize| (0..centroid.len()).map(|c| f64::from(u8::from(c == class))).collect::<Vec<_>>();
        let certain: f64 = centroid.iter().enumerate().map(|(c, share)| share * loss.entropy(&vertex(c))).sum();
        prop_assert!((estimate.irreducible_low - certain).abs() <= rounding, "{loss}");
        if estimate.irreducible_low < estimate.irreducible_high {
            prop_assert!(!estimate.is_known());
            prop_assert_eq!((decision.irreducible(), decision.reducible()), (None, None));
        }
        // The plug-in would call every loss reducible, so it is not used.
        let plugin = one_cell(&population(&items, &[(1.0, 1)]), &loss, Estimator::Plugin);
        prop_assert_eq!(plugin.cell(CellId(0)).unwrap().estimate(), estimate);
    }

    /// An action is taken only if it is best for every irreducible loss within the bounds.
    #[test]
    fn one_label_decides_only_if_the_bounds_do(
        (loss, items) in (2_usize..4).prop_flat_map(|c| (any_loss(c), items(c))),
        alpha in 0.0..1.0, beta in proptest::option::of(0.0..1.5)
    ) {
        let router = Router::calibrate(&population(&items, &[(1.0, 1)]), &Partition::confidence(1)).unwrap();
        let alpha = alpha * loss.bound() / 2.0;
        let beta = beta.map(|beta| beta * loss.bound() / 2.0);
        let mut task = Task::new(loss.clone()).route("oracle", Oracle::bayes(), alpha).unwrap();
        if let Some(beta) = beta {
            task = task.abstain(beta).unwrap();
        }
        let policy = router.policy(&task).unwrap();
        let decision = policy.cell(CellId(0)).unwrap();
        let (low, high) = (decision.estimate().irreducible_low, decision.estimate().irreducible_high);
        let best = |il: f64| {
            let mut costs = vec![(decision.total(), Action::Predict), (il + alpha, Action::Route("oracle"))];
            costs.extend(beta.map(|beta| (beta, Action::Abstain)));
            costs.sort_by(|a, b| a.0.total_cmp(&b.0));
            prop_assume!(costs.windows(2).all(|w| w[1].0 - w[0].0 > 1e-9));
            Ok(costs[0].1)
        };
        let (optimistic, pessimistic) = (best(low)?, best(high)?);
        let wanted = if optimistic == pessimistic { optimistic } else { Action::Undetermined };
        prop_assert_eq!(decision.action(), wanted, "{} {} {}", loss, low, high);
    }
}

/// A law of p*₁.
type Mixture = fn(&mut Rng) -> f64;

/// The binary mixtures on which the estimators were chosen.
fn mixtures() -> Vec<(&'static str, Mixture)> {
    vec![
        ("point mass .5", |_| 0.5),
        ("point mass .1", |_| 0.1),
        ("{0, 1}", |rng| if rng.uniform() < 0.5 { 0.0 } else { 1.0 }),
        ("{.2, .8}", |rng| if rng.uniform() < 0.5 { 0.2 } else { 0.8 }),
        ("80/20 of .02/.5", |rng| if rng.uniform() < 0.8 { 0.02 } else { 0.5 }),
        ("Beta(1, 1)", Rng::uniform),
        ("Beta(.3, .3)", |rng| {
            loop {
                // Jöhnk's rejection method.
                let (x, y) = (rng.uniform().powf(1.0 / 0.3), rng.uniform().powf(1.0 / 0.3));
                if x + y > 0.0 && x + y <= 1.0 {
                    return x / (x + y);
                }
            }
        }),
        ("Beta(8, 2)", |rng| {
            // The eighth of nine order statistics of uniforms.
            let mut draws: Vec<f64> = (0..9).map(|_| rng.uniform()).collect();
            draws.sort_by(f64::total_cmp);
            draws[7]
        }),
    ]
}

/// A sample of a mixture, and the true distributions of its items.
fn sample(rng: &mut Rng, mixture: Mixture, n: usize, k: impl Fn(&mut Rng) -> usize) -> (Table, Vec<Vec<f64>>) {
    let truth: Vec<Vec<f64>> = (0..n).map(|_| mixture(rng)).map(|p| vec![1.0 - p, p]).collect();
    let votes: Vec<Vec<u32>> = truth
        .iter()
        .map(|p| {
            let k = k(rng);
            rng.votes(p, k)
        })
        .collect();
    (table(2, &vec![vec![0.5, 0.5]; n], &votes), truth)
}

/// The root mean square errors of plug-in and shrinkage, averaged over the mixtures.
fn errors(rng: &mut Rng, loss: &Loss, k: impl Fn(&mut Rng) -> usize) -> [f64; 2] {
    errors_of([Estimator::Plugin, Estimator::Shrink], rng, loss, k)
}

/// The root mean square errors of estimators, averaged over the mixtures.
fn errors_of<const N: usize>(
    estimators: [Estimator; N],
    rng: &mut Rng,
    loss: &Loss,
    k: impl Fn(&mut Rng) -> usize,
) -> [f64; N] {
    const REPETITIONS: usize = 8;
    let mut means = [0.0; N];
    for (_, mixture) in mixtures() {
        let mut squares = [0.0; N];
        for _ in 0..REPETITIONS {
            let (table, truth) = sample(rng, mixture, 500, &k);
            let wanted = truth.iter().map(|p| loss.entropy(p)).sum::<f64>() / truth.len() as f64;
            for (sum, estimator) in squares.iter_mut().zip(estimators) {
                *sum += (irreducible(&table, loss, estimator) - wanted).powi(2);
            }
        }
        for (mean, sum) in means.iter_mut().zip(squares) {
            *mean += (sum / REPETITIONS as f64).sqrt() / mixtures().len() as f64;
        }
    }
    means
}

/// At every small k the mean error is at most half of the plug-in's, as when the estimator was chosen.
#[test]
fn shrinkage_halves_the_error_of_the_plug_in() {
    let mut rng = Rng::new(20);
    let wanted = [
        (Loss::brier(), [(2, 0.122, 0.016), (3, 0.081, 0.013), (5, 0.049, 0.009)]),
        (Loss::cross_entropy(), [(2, 0.206, 0.023), (3, 0.142, 0.017), (5, 0.088, 0.013)]),
        (Loss::zero_one(), [(2, 0.067, 0.025), (3, 0.066, 0.019), (5, 0.044, 0.015)]),
    ];
    for (loss, cases) in wanted {
        for (k, usual_plugin, usual_shrink) in cases {
            let [plugin, shrink] = errors(&mut rng, &loss, |_| k);
            assert!(shrink < plugin / 2.0, "{loss}, k = {k}: plug-in {plugin}, shrink {shrink}");
            close(plugin, usual_plugin, 0.1 * usual_plugin, &format!("{loss}, k = {k}: plug-in"));
            assert!(shrink < 1.3 * usual_shrink, "{loss}, k = {k}: shrink {shrink}");
        }
    }
}

/// The maximum-likelihood law and the Dirichlet posterior have errors as small as when they were chosen (thousandths, 500 rows).
#[test]
fn other_estimators_keep_their_accuracy() {
    let mut rng = Rng::new(23);
    let wanted = [
        (Loss::cross_entropy(), [(2, 23.0, 25.0), (5, 12.0, 14.0)]),
        (Loss::zero_one(), [(3, 17.0, 20.0), (10, 9.0, 14.0)]),
        (Loss::fn_fp(1.0, 4.0).unwrap(), [(5, 20.0, 29.0), (10, 13.0, 24.0)]),
        (Loss::brier(), [(2, 16.0, 17.0), (5, 9.0, 9.0)]),
    ];
    for (loss, cases) in wanted {
        for (k, usual_npmle, usual_dirichlet) in cases {
            let [npmle, dirichlet] = errors_of([Estimator::Npmle, Estimator::Dirichlet], &mut rng, &loss, |_| k);
            assert!(1e3 * npmle < 1.35 * usual_npmle, "{loss}, k = {k}: npmle {npmle}");
            assert!(1e3 * dirichlet < 1.35 * usual_dirichlet, "{loss}, k = {k}: dirichlet {dirichlet}");
        }
    }
    let varying = |rng: &mut Rng| 1 + rng.below(10);
    let [npmle] = errors_of([Estimator::Npmle], &mut rng, &Loss::cross_entropy(), varying);
    assert!(npmle < 0.018, "k from 1 to 10: npmle {npmle}");
}

/// With three classes every estimator except the plug-in is near the truth, and none exceeds the entropy of the centroid.
#[test]
fn estimators_are_accurate_with_three_classes() {
    let mut rng = Rng::new(24);
    let truth: Vec<Vec<f64>> = (0..600).map(|_| rng.dist(3)).collect();
    let votes: Vec<Vec<u32>> = truth.iter().map(|p| rng.votes(p, 5)).collect();
    let table3 = table(3, &vec![vec![0.4, 0.3, 0.3]; 600], &votes);
    for loss in ["brier", "cross-entropy", "zero-one", "spherical", "asymmetric:3"] {
        let loss: Loss = loss.parse().unwrap();
        let wanted = truth.iter().map(|p| loss.entropy(p)).sum::<f64>() / 600.0;
        let error = |estimator| (irreducible(&table3, &loss, estimator) - wanted).abs();
        for estimator in [Estimator::Shrink, Estimator::Npmle, Estimator::Dirichlet] {
            assert!(error(estimator) < 0.04 * loss.bound().min(2.0), "{loss}, {estimator}: {}", error(estimator));
            assert!(error(estimator) < 0.5 * error(Estimator::Plugin), "{loss}, {estimator}: {}", error(estimator));
        }
    }
    let table4 = table(4, &[vec![0.4, 0.3, 0.2, 0.1]], &[vec![1, 1, 1, 0]]);
    let router = Router::calibrate(&table4, &Partition::confidence(1)).unwrap();
    let refused = router.policy(&Task::new(Loss::brier()).estimator(Estimator::Npmle)).unwrap_err();
    assert!(refused.to_string().contains("at most 3 classes"), "{refused}");
    assert!(router.policy(&Task::new(Loss::brier()).estimator(Estimator::Dirichlet)).is_ok());
}

/// With one to ten labels per row the correction still works.
#[test]
fn shrinkage_is_accurate_if_the_number_of_labels_varies() {
    let mut rng = Rng::new(21);
    let [plugin, shrink] = errors(&mut rng, &Loss::cross_entropy(), |rng| 1 + rng.below(10));
    assert!(shrink < plugin / 4.0 && shrink < 0.022, "plug-in {plugin}, shrink {shrink}");
}

/// For every noisy mixture, with varying numbers of labels, shrinkage is above the plug-in on average.
#[test]
fn shrinkage_raises_the_plug_in_for_the_cross_entropy() {
    let mut rng = Rng::new(22);
    for (name, mixture) in mixtures() {
        let mut gap = 0.0;
        for _ in 0..8 {
            let (table, _) = sample(&mut rng, mixture, 500, |rng| 1 + rng.below(5));
            let loss = Loss::cross_entropy();
            gap += irreducible(&table, &loss, Estimator::Shrink) - irreducible(&table, &loss, Estimator::Plugin);
        }
        if name == "{0, 1}" {
            assert!(gap.abs() < 1e-9, "{name}: no noise, nothing to correct: {gap}");
        } else {
            assert!(gap / 8.0 > 0.02, "{name}: {gap}");
        }
    }
}

/// Rows with one label count for the mean and the total loss; the noise is estimated from rows with two.
#[test]
fn single_labels_count_for_total_loss_and_pairs_for_noise() {
    let probs = vec![vec![0.5, 0.5]; 4];
    let policy = one_cell(
        &table(2, &probs, &[vec![1, 0], vec![0, 1], vec![1, 1], vec![2, 0]]),
        &Loss::brier(),
        Estimator::Shrink,
    );
    let estimate = policy.cell(CellId(0)).unwrap().estimate();
    assert_eq!(estimate.centroid, [0.625, 0.375]);
    assert_eq!(estimate.total, 0.5);
    // S = (1 + 0)/2 exceeds 1 − ‖p̄‖² = 0.46875, so the variance is clamped to zero and every item equals the centroid.
    assert!(estimate.is_known());
    close(estimate.irreducible_low, 0.46875, 1e-15, "irreducible");
}
