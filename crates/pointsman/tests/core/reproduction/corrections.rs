//! Corrected costs, gains, savings and their standard errors with few labels, in simulations of known truth.

use std::sync::LazyLock;

use pointsman::{Evaluation, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, normalised};

/// Three kinds of items that only a feature distinguishes: easy ones, ones that the model gets wrong, and ambiguous ones. Without and with their
/// true distributions.
pub(crate) fn three_kinds(rng: &mut Rng, rows: usize, k: usize) -> (Table, Table) {
    draw(rng, rows, |_| k, |rng, _| [rng.uniform(), rng.uniform()])
}

/// Enough rows to know costs, with their true distributions. Kinds are spread evenly, which reduces the variance.
pub(crate) static POPULATION: LazyLock<Table> = LazyLock::new(|| {
    let (rows, golden) = (8_000, 0.618_033_988_749_894_9);
    let even = |_: &mut Rng, row: usize| [(row as f64 + 0.5) / rows as f64, (row as f64 * golden).fract()];
    draw(&mut Rng::new(77), rows, |_| 2, even).1
});

/// The number of labels of each row is given by `labels`, its kind and sharpness by `kind`.
fn draw(
    rng: &mut Rng,
    rows: usize,
    labels: impl Fn(usize) -> usize,
    kind: impl Fn(&mut Rng, usize) -> [f64; 2],
) -> (Table, Table) {
    let (mut probs, mut features, mut truth, mut votes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let [kind, sharp] = kind(rng, row);
        let f = normalised(vec![0.55 + 0.3 * sharp, 0.25, 0.12]);
        let p = if kind < 0.45 {
            vec![0.96 - 0.1 * sharp, 0.03 + 0.1 * sharp, 0.01]
        } else if kind < 0.7 {
            vec![0.05, 0.92, 0.03]
        } else {
            normalised(vec![0.45, 0.2 + 0.3 * sharp, 0.2])
        };
        probs.extend(f);
        features.extend([kind + 0.08 * (rng.uniform() - 0.5), rng.uniform()]);
        votes.extend(rng.votes(&p, labels(row)));
        truth.extend(p);
    }
    let table = Table::new(CLASS_NAMES[..3].to_vec(), probs).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["kind", "noise"], features).unwrap();
    (table.clone(), table.with_truth(truth).unwrap())
}

fn task(loss: &str, price: f64) -> Task {
    Task::new(loss.parse().unwrap()).route("expert", Oracle::bayes(), price).unwrap()
}

/// An evaluation by labels and the true values for the same policy.
struct Pair {
    labels: Evaluation,
    truth: Evaluation,
}

/// Held-out rows evaluated by labels and by the truth of the population, to which standard errors refer.
fn pairs(loss: &str, price: f64, k: usize, worlds: u64) -> Vec<Pair> {
    let world = |seed: u64| {
        let mut rng = Rng::new(1000 + seed);
        let (calibration, _) = three_kinds(&mut rng, 600, k);
        let router = Router::calibrate(&calibration, &"forest:30".parse::<Partition>().unwrap()).unwrap();
        let policy: Policy = router.policy(&task(loss, price)).unwrap();
        let (held_out, _) = three_kinds(&mut rng, 600, k);
        let evaluate = |table: &Table| policy.replay(table).unwrap().evaluate(&policy).unwrap();
        Pair { labels: evaluate(&held_out), truth: evaluate(&POPULATION) }
    };
    (0..worlds).map(world).collect()
}

/// Under the Brier loss, with two and with three labels; used by several tests.
static BY_TWO_LABELS: LazyLock<Vec<Pair>> = LazyLock::new(|| pairs("brier", 0.3, 2, 30));
static BY_THREE_LABELS: LazyLock<Vec<Pair>> = LazyLock::new(|| pairs("brier", 0.3, 3, 30));

fn mean(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt())
}

fn corrected(evaluation: &Evaluation, name: &str) -> f64 {
    *evaluation.corrected_cost.as_ref().unwrap().get(name).unwrap()
}

fn off(pair: &Pair) -> f64 {
    corrected(&pair.labels, "router") - pair.truth.mean_cost.get("router").unwrap()
}

/// Checks the coverage of 1.96 standard errors: at least 24 of 30 simulations. With coverage 0.93, fewer have probability 0.001.
fn assert_covered(pairs: &[Pair], what: &str, covers: impl Fn(&Pair) -> bool) {
    let covered = pairs.iter().filter(|pair| covers(pair)).count();
    println!("{what}: {covered} of {} cover the truth", pairs.len());
    assert!(10 * covered >= 8 * pairs.len(), "{what}: {covered} of {}", pairs.len());
}

#[test]
fn corrected_costs_of_a_forest_are_unbiased_for_brier() {
    for (k, pairs) in [(2, &*BY_TWO_LABELS), (5, &pairs("brier", 0.3, 5, 30))] {
        let (bias, error) = mean(pairs.iter().map(off));
        println!("k = {k}: bias {bias:+.4} ± {error:.4}");
        assert!(bias.abs() <= 4.0 * error, "k = {k}: bias {bias} with standard error {error}");
        let (plain, _) = mean(
            pairs.iter().map(|p| p.labels.mean_cost.get("router").unwrap() - p.truth.mean_cost.get("router").unwrap()),
        );
        assert!(plain < -8.0 * error || k > 2, "k = {k}: by the labels as they are {plain}");
        assert_covered(pairs, "cost", |p| {
            let error = p.labels.corrected_standard_error.as_ref().unwrap().get("router").unwrap().unwrap();
            off(p).abs() <= 1.96 * error
        });
    }
}

/// Few labels do not show which action is best on a row, but no rule costs less than the best possible one: the estimate is near the truth, and
/// no regret is negative.
#[test]
fn best_possible_cost_is_below_every_rule() {
    for (k, pairs) in [(2, &*BY_TWO_LABELS), (3, &*BY_THREE_LABELS)] {
        let best =
            |p: &Pair| corrected(&p.labels, "pointwise-optimal") - p.truth.mean_cost.get("pointwise-optimal").unwrap();
        let (bias, error) = mean(pairs.iter().map(best));
        println!("k = {k}: bias {bias:+.4} ± {error:.4}");
        // The remaining error of few labels: the law of a row is known only from similar rows.
        assert!(bias.abs() <= 0.01 + 2.0 * error, "k = {k}: bias {bias} with standard error {error}");
        for pair in pairs {
            let regret = pair.labels.corrected_regret.as_ref().unwrap().get("pointwise-optimal").unwrap();
            assert!(*regret >= 0.0, "k = {k}: {regret}");
        }
    }
}

#[test]
fn corrections_of_other_losses_leave_a_quarter_of_the_bias() {
    for (loss, price, k) in [("cross-entropy", 0.4, 3), ("zero-one", 0.2, 2), ("asymmetric:2", 0.4, 3)] {
        let pairs = pairs(loss, price, k, 20);
        let plain = |p: &Pair| p.labels.mean_cost.get("router").unwrap() - p.truth.mean_cost.get("router").unwrap();
        let ((bias, error), (plain, _)) = (mean(pairs.iter().map(off)), mean(pairs.iter().map(plain)));
        println!("{loss}, k = {k}: bias {bias:+.4} ± {error:.4}, by the labels as they are {plain:+.4}");
        assert!(bias.abs() <= plain.abs() / 4.0 + 3.0 * error, "{loss}: {bias} of {plain}");
    }
}

/// With two or three uncorrected labels, ranking by the entropy of the prediction looks as good as a better forest.
#[test]
fn corrected_gains_rank_like_the_truth() {
    let pairs = &*BY_TWO_LABELS;
    let of = |gains: &pointsman::task::Named<Option<f64>>, name: &str| gains.get(name).unwrap().unwrap();
    let off =
        |p: &Pair| of(p.labels.corrected_gain.as_ref().unwrap(), "higher-order") - of(&p.truth.gain, "higher-order");
    let (bias, error) = mean(pairs.iter().map(off));
    let (plain, _) = mean(pairs.iter().map(|p| of(&p.labels.gain, "higher-order") - of(&p.truth.gain, "higher-order")));
    println!("gain: bias {bias:+.3} ± {error:.3}, by the labels as they are {plain:+.3}");
    // The best ranking is estimated from shrunk snapshot means, so a tenth of the bias may remain.
    assert!(bias.abs() <= plain.abs() / 10.0 + 4.0 * error && plain < -0.2, "{bias} {plain}");
    assert_covered(pairs, "gain", |p| {
        let error = of(p.labels.corrected_gain_standard_error.as_ref().unwrap(), "higher-order");
        off(p).abs() <= 1.96 * error
    });
    for pair in pairs {
        let gain = pair.labels.best_gain();
        assert!(of(gain, "higher-order") > of(gain, "total-uncertainty") && of(gain, "pointwise-optimal") == 1.0);
    }
}

/// The saving over thresholds chosen on other rows, with the same keys wherever costs are named.
#[test]
fn standard_errors_of_savings_cover_the_truth() {
    let pairs = &*BY_THREE_LABELS;
    let saving = |evaluation: &Evaluation, name: &str| *evaluation.savings.as_ref().unwrap().get(name).unwrap();
    for name in ["always-predict", "always-route:expert", "best-threshold"] {
        assert_covered(pairs, name, |p| {
            let (found, truth) = (saving(&p.labels, name), saving(&p.truth, name));
            (found.estimate - truth.estimate).abs() <= 1.96 * found.standard_error.unwrap()
        });
    }
    let Evaluation { mean_cost, corrected_cost, corrected_standard_error, savings, .. } = &pairs[0].labels;
    let names = |costs: &pointsman::task::Named<f64>| costs.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let (costs, errors) = (corrected_cost.as_ref().unwrap(), corrected_standard_error.as_ref().unwrap());
    assert_eq!(names(mean_cost), names(costs));
    assert_eq!(names(mean_cost), errors.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
    let against = savings.as_ref().unwrap().get("always-predict").unwrap();
    let share = against.estimate / costs.get("always-predict").unwrap();
    assert!((against.share.unwrap() - share).abs() < 1e-12 && against.share_standard_error.unwrap() > 0.0);
}

/// Three labels do not identify the saving of the best ranking; the standard error includes this.
#[test]
fn standard_errors_of_gains_cover_the_truth() {
    let of = |gains: &pointsman::task::Named<Option<f64>>, name: &str| gains.get(name).unwrap().unwrap();
    for (loss, pairs) in [("brier", &*BY_THREE_LABELS), ("cross-entropy", &pairs("cross-entropy", 0.4, 3, 30))] {
        assert_covered(pairs, loss, |p| {
            let error = of(p.labels.corrected_gain_standard_error.as_ref().unwrap(), "higher-order");
            let found = of(p.labels.corrected_gain.as_ref().unwrap(), "higher-order");
            (found - of(&p.truth.gain, "higher-order")).abs() <= 1.96 * error
        });
    }
}

/// If rows of similar confidence are alike, powers of their shares are nearly collinear; the slopes must stay bounded.
#[test]
fn corrections_are_stable_if_items_are_alike() {
    for loss in ["cross-entropy", "zero-one"] {
        for seed in 0..12 {
            let mut rng = Rng::new(seed);
            let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..300 {
                let logits: Vec<f64> = (0..3).map(|_| 3.0 * (rng.uniform() + rng.uniform() - 1.0)).collect();
                let softmax = |scale: f64| normalised(logits.iter().map(|x| (scale * x).exp()).collect());
                let (f, p) = (softmax(1.2), softmax(0.4));
                probs.extend(f);
                votes.extend(rng.votes(&p, 5));
                truth.extend(p);
            }
            let table = Table::new(CLASS_NAMES[..3].to_vec(), probs).unwrap().with_votes(votes).unwrap();
            let router = Router::calibrate(&table, &Partition::top_class(2)).unwrap();
            let policy = router.policy(&task(loss, 0.1)).unwrap();
            let cost = |table: &Table| {
                let found = policy.replay(table).unwrap().evaluate(&policy).unwrap();
                *found.best_costs().get("always-route:expert").unwrap()
            };
            let (found, truth) = (cost(&table), cost(&table.clone().with_truth(truth).unwrap()));
            println!("{loss}, {seed}: {found:.3}, in truth {truth:.3}");
            assert!((found - truth).abs() < 0.1, "{loss}, {seed}: {found} instead of {truth}");
        }
    }
}

/// The laws of rows with similar scores need more rows with two labels than the correction of costs; without them only gains are less certain.
#[test]
fn a_few_rows_with_two_labels_are_enough_to_correct_costs() {
    let mut rng = Rng::new(31);
    let router = Router::calibrate(&three_kinds(&mut rng, 600, 2).0, &Partition::confidence(4)).unwrap();
    let policy = router.policy(&task("brier", 0.3)).unwrap();
    let labels = |row: usize| if row % 20 < 3 { 2 } else { 1 };
    let (held_out, known) = draw(&mut rng, 5_000, labels, |rng, _| [rng.uniform(), rng.uniform()]);
    let found = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
    let truth = policy.replay(&known).unwrap().evaluate(&policy).unwrap();
    let error = found.corrected_standard_error.as_ref().unwrap().get("router").unwrap().unwrap();
    let off = corrected(&found, "router") - truth.mean_cost.get("router").unwrap();
    assert!(off.abs() < 3.0 * error, "{off} with standard error {error}");
    assert!(found.savings.is_some() && found.corrected_gain.is_some());
}

/// The threshold rule has the router's actions and budget. With known truth the best such rule is found by trying all.
#[test]
fn best_threshold_under_a_budget_may_abstain() {
    let mut rng = Rng::new(41);
    let router = Router::calibrate(&three_kinds(&mut rng, 600, 5).0, &Partition::confidence(4)).unwrap();
    for (budget, abstain) in [(0.2, 0.35), (0.1, 0.3), (0.5, 0.45)] {
        let task = task("brier", 0.05).abstain(abstain).unwrap().budget(budget).unwrap();
        let policy = router.policy(&task).unwrap();
        // A hundred confidences with ten rows each, so that thresholds are at whole percents.
        let (rows, cuts) = (1_000, 100);
        let ten_alike = |rng: &mut Rng, row: usize| [rng.uniform(), (row / 10) as f64 / 100.0];
        let (_, known) = draw(&mut rng, rows, |_| 2, ten_alike);
        let replay = policy.replay(&known).unwrap();
        let found = replay.evaluate(&policy).unwrap();
        let costs = replay.action_costs(&policy).unwrap();
        // Items with less sharp predictions come first and are the least certain.
        let mean = |rows: std::ops::Range<usize>, action: usize| -> f64 {
            costs[10 * rows.start..10 * rows.end].iter().map(|costs| costs[action]).sum::<f64>() / 1_000.0
        };
        let most = (100.0 * found.shares.get("route:expert").unwrap()).round() as usize;
        let mut best = [f64::INFINITY; 2];
        for first in 0..=cuts {
            for second in first..=cuts {
                for (top, middle) in [(1, 2), (2, 1), (1, 1), (2, 2)] {
                    let routed = if top == 1 { first } else { 0 } + if middle == 1 { second - first } else { 0 };
                    if routed <= most {
                        let cost = mean(0..first, top) + mean(first..second, middle) + mean(second..cuts, 0);
                        best[0] = best[0].min(cost);
                        if [top, middle] == [1, 1] {
                            best[1] = best[1].min(cost);
                        }
                    }
                }
            }
        }
        let saving = found.savings.as_ref().unwrap().get("best-threshold").unwrap();
        let rival = saving.estimate + found.mean_cost.get("router").unwrap();
        let open = saving.standard_error.unwrap();
        println!(
            "budget {budget}: {rival:.4}, best {:.4}, without abstaining {:.4}, routed {most} %",
            best[0], best[1]
        );
        assert!(rival > best[0] - 0.002 && rival < best[0] + 0.01 + open, "{rival} instead of {}", best[0]);
        assert!(rival < best[1], "{rival}: {best:?}");
    }
}

/// A rule that routes nothing has a known cost, so the bounds of the share follow from those of the saving. The cost of a rule that routes is bounded too.
#[test]
fn saved_shares_are_bounded_if_both_costs_are() {
    let mut rng = Rng::new(51);
    let router = Router::calibrate(&three_kinds(&mut rng, 600, 3).0, &Partition::confidence(4)).unwrap();
    let policy = router.policy(&task("cross-entropy", 0.4)).unwrap();
    let (held_out, _) = three_kinds(&mut rng, 600, 3);
    let found = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
    let (savings, costs) = (found.savings.as_ref().unwrap(), found.corrected_cost.as_ref().unwrap());
    for (name, is_known) in [("always-predict", true), ("always-route:expert", false)] {
        let (saving, cost) = (savings.get(name).unwrap(), costs.get(name).unwrap());
        let (Some([low, high]), Some(ends)) = (saving.share_identified, saving.identified) else { continue };
        let share = saving.share.unwrap();
        assert!(low <= share && share <= high, "{name}: {share} {low} {high}");
        let fixed = ends.map(|end| end / cost);
        let is_fixed = (low - fixed[0]).abs() < 1e-9 && (high - fixed[1]).abs() < 1e-9;
        assert_eq!(is_fixed, is_known, "{name}: {low} {high} {fixed:?}");
    }
    assert!(savings.get("always-predict").unwrap().share_identified.is_some());
}
