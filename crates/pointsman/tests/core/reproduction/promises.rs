//! Promised costs and losses hold on average on new rows of simulations with known truth. The cheapest of several estimates is too low, so
//! estimates from the same rows would not do.

use pointsman::policy::Tally;
use pointsman::{CellId, Error, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{Rng, close, normalised, table};

/// Three classes. The model sees how clear an item is, but not that some unclear ones are clear to annotators.
pub(super) fn draw(rows: usize, k: usize, rng: &mut Rng) -> Table {
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let scale = 0.3 + 2.5 * rng.uniform();
        let f = normalised((0..3).map(|_| (scale * (2.0 * rng.uniform() - 1.0) * 1.5).exp()).collect());
        let top = (0..3).fold(0, |best, class| if f[class] > f[best] { class } else { best });
        let hidden = [0.2, 0.5, 0.8][top];
        let p = if rng.uniform() < hidden {
            let class = rng.votes(&f, 1).iter().position(|&n| n == 1).unwrap();
            (0..3).map(|c| if c == class { 0.9 } else { 0.05 }).collect()
        } else {
            let other = rng.dist(3);
            f.iter().zip(&other).map(|(f, o)| 0.7 * f + 0.3 * o).collect::<Vec<_>>()
        };
        probs.extend(f);
        votes.extend(rng.votes(&p, k));
        truth.extend(p);
    }
    Table::new(["a", "b", "c"], probs).unwrap().with_votes(votes).unwrap().with_truth(truth).unwrap()
}

fn task(loss: &Loss) -> Task {
    let (price, abstain) = match loss.to_string().as_str() {
        "cross-entropy" => (0.15, 0.8),
        "zero-one" => (0.1, 0.4),
        _ => (0.1, 0.5),
    };
    Task::new(loss.clone()).route("expert", Oracle::bayes(), price).unwrap().abstain(abstain).unwrap()
}

/// The cost by the cells' own estimates, from the same rows.
fn by_the_same_rows(policy: &Policy) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for decision in (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))) {
        let weight = decision.estimate().weight;
        sum += weight * decision.costs()[decision.code().unwrap()];
        all += weight;
    }
    sum / all
}

pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt())
}

/// The true cost of each action on each row.
pub(super) fn true_costs(table: &Table, task: &Task) -> Vec<Vec<f64>> {
    let of_row = |row: usize| {
        let (truth, loss) = (table.truth(row).unwrap(), task.loss());
        let routes = task.routes().iter().map(|route| loss.entropy(truth) + route.price());
        [loss.expected(truth, &table.prediction(row))].into_iter().chain(routes).chain(task.abstain_price()).collect()
    };
    (0..table.rows()).map(of_row).collect()
}

/// The true cost of a policy on rows with these costs of actions.
fn true_cost(policy: &Policy, table: &Table, costs: &[Vec<f64>]) -> f64 {
    let decisions = policy.decide_batch(table).unwrap();
    let cost = |(row, costs): (usize, &Vec<f64>)| costs[policy.row(&decisions, row).code().unwrap()];
    costs.iter().enumerate().map(cost).sum::<f64>() / costs.len() as f64
}

/// Promised minus true cost of new rows over many simulations: by the rows that decide, and by held-out rows.
fn errors(loss: &Loss, rows: usize, k: usize, worlds: u64) -> [Vec<f64>; 2] {
    let (new, task) = (draw(5_000, 2, &mut Rng::new(1)), task(loss));
    let costs = true_costs(&new, &task);
    let mut errors = [Vec::new(), Vec::new()];
    for world in 0..worlds {
        let table = draw(rows, k, &mut Rng::new(1_000 + world));
        let policy = Router::calibrate(&table, &Partition::top_class(10)).unwrap().policy(&task).unwrap();
        let cost = true_cost(&policy, &new, &costs);
        errors[0].push(by_the_same_rows(&policy) - cost);
        errors[1].push(policy.promised_cost().unwrap() - cost);
    }
    errors
}

/// With cells of ten rows the cells' own estimates are too low by a seventh; the promise is not.
#[test]
fn promised_cost_holds_on_new_rows() {
    for k in [2, 5] {
        let errors = errors(&Loss::brier(), 300, k, 120);
        let [(same, _), (bias, error)] = errors.each_ref().map(|errors| mean_and_error(errors));
        println!("k = {k}: {same:+.4} by the same rows, {bias:+.4} ± {error:.4} promised");
        assert!(same < -0.02, "{same}");
        // Half a percent of the loss, and three standard errors of the mean over simulations.
        assert!(bias.abs() < 0.005 + 3.0 * error, "k = {k}: {bias:.4} ± {error:.4}");
    }
}

/// A target halfway between never and always routing is met on average.
#[test]
fn target_loss_holds_on_new_rows() {
    let new = draw(5_000, 2, &mut Rng::new(1));
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.0).unwrap();
    let mut exceeded = Vec::new();
    for world in 0..80 {
        let table = draw(300, 2, &mut Rng::new(1_000 + world));
        let policy = Router::calibrate(&table, &Partition::top_class(10)).unwrap().policy(&task).unwrap();
        let replay = policy.replay(&new).unwrap();
        let lost = |policy: &Policy| replay.cost_of(policy).unwrap().mean;
        let [never, all] = [0.0, 1.0].map(|share| lost(&policy.reprice(&task.clone().budget(share).unwrap()).unwrap()));
        let target = 0.5 * (never + all);
        match policy.reprice(&task.clone().target_loss(target).unwrap()) {
            Ok(limited) => exceeded.push(lost(&limited) - target),
            // A few hundred rows may indicate that no routing reaches it; then nothing is promised.
            Err(error) => assert!(matches!(error, Error::OutOfReach { .. }), "{error}"),
        }
    }
    assert!(exceeded.len() > 70, "only {} of 80 worlds reach it", exceeded.len());
    let (mean, error) = mean_and_error(&exceeded);
    println!("exceeded by {mean:+.4} ± {error:.4}");
    assert!(mean < 0.005 + 3.0 * error, "{mean:.4} ± {error:.4}");
}

/// Some classes, a model whose errors depend on its confidence, and annotators who disagree where it is unsure.
fn draw_classes(classes: usize, rows: usize, k: usize, known: bool, rng: &mut Rng) -> Table {
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    let softmax = |logits: &[f64], scale: f64| normalised(logits.iter().map(|x| (scale * x).exp()).collect());
    for _ in 0..rows {
        let mut logits: Vec<f64> = (0..classes).map(|_| 4.0 * (rng.uniform() + rng.uniform() - 1.0)).collect();
        let f = softmax(&logits, 1.2);
        let top = f.iter().copied().fold(0.0, f64::max);
        let wrong = rng.uniform() < 0.4 * (1.2 - top).min(1.0);
        if wrong {
            logits.rotate_right(1 + (rng.uniform() * (classes - 1) as f64) as usize);
        }
        let p = softmax(&logits, if wrong { 1.5 } else { 0.3 + 0.9 * top * top });
        probs.extend(f);
        votes.extend(rng.votes(&p, k));
        truth.extend(p);
    }
    let names = (0..classes).map(|class| format!("c{class}"));
    let table = Table::new(names, probs).unwrap().with_votes(votes).unwrap();
    if known { table.with_truth(truth).unwrap() } else { table }
}

/// Two, three or five labels per item do not identify the irreducible loss under the cross-entropy. The truth is within the identified bounds, widened
/// by 1.96 standard errors, in at least nine of ten simulations.
#[test]
fn identified_bounds_contain_the_truth() {
    // The bounds must also be informative: at most half as wide again as measured before.
    for (classes, rows, widest) in [(3, 300, [0.33, 0.14, 0.04]), (20, 300, [1.0, 0.5, 0.18])] {
        let new = draw_classes(classes, 3_000, 2, true, &mut Rng::new(1));
        for (k, widest) in [2, 3, 5].into_iter().zip(widest) {
            let task = Task::new(Loss::cross_entropy()).route("expert", Oracle::bayes(), 0.1).unwrap();
            let costs = true_costs(&new, &task);
            let (worlds, mut held, mut covered, mut widths) = (20, 0, 0, [0.0; 2]);
            for world in 0..worlds {
                let mut rng = Rng::new(500 + world);
                let table = draw_classes(classes, rows, k, false, &mut rng);
                let policy = Router::calibrate(&table, &Partition::confidence(5)).unwrap().policy(&task).unwrap();
                let cost = true_cost(&policy, &new, &costs);
                let promise = policy.promise().unwrap();
                let [low, high] = promise.identified.unwrap();
                assert!(low <= promise.cost && promise.cost <= high && low < high, "{promise:?}");
                let holds =
                    |[low, high]: [f64; 2], error: f64| low - 1.96 * error <= cost && cost <= high + 1.96 * error;
                covered += u32::from(holds([low, high], promise.standard_error));
                // The same on held-out rows.
                let votes_only = draw_classes(classes, rows, k, false, &mut rng);
                let found = policy.replay(&votes_only).unwrap().evaluate(&policy).unwrap();
                let ends = *found.corrected_identified.get("router").unwrap();
                let estimate = *found.corrected_cost.as_ref().unwrap().get("router").unwrap();
                assert!(ends[0] <= estimate && estimate <= ends[1], "{estimate} {ends:?}");
                let error = found.corrected_standard_error.as_ref().unwrap().get("router").unwrap().unwrap();
                held += u32::from(holds(ends, error));
                widths = [widths[0] + (high - low) / worlds as f64, widths[1] + (ends[1] - ends[0]) / worlds as f64];
            }
            println!(
                "{classes} classes, k = {k}: {covered} of {worlds} promises, {held} held-out costs, widths {widths:.3?}"
            );
            assert!(widths.iter().all(|width| *width < widest), "{classes} {k}: {widths:?}");
            assert!(
                10 * covered >= 9 * worlds as u32 && 10 * held >= 9 * worlds as u32,
                "{classes} {k}: {covered} {held}"
            );
        }
    }
}

#[test]
fn two_labels_identify_costs_under_brier() {
    let table = draw(300, 2, &mut Rng::new(3));
    let policy = Router::calibrate(&table, &Partition::top_class(2)).unwrap().policy(&task(&Loss::brier())).unwrap();
    let promise = policy.promise().unwrap();
    assert!(promise.identified.is_none() && promise.loss_identified.is_none());
}

/// The tally of decisions on the calibration rows equals the promise.
#[test]
fn tally_on_calibration_rows_equals_the_promise() {
    for (loss, k, single) in [
        (Loss::brier(), 2, false),
        (Loss::cross_entropy(), 3, false),
        (Loss::brier(), 3, true),
        (Loss::cross_entropy(), 3, true),
    ] {
        let mut table = draw(400, k, &mut Rng::new(4));
        if single {
            // Three in four rows of one class have one label, and few of the others.
            let kept = |row: usize| match (table.peak(row).class, row % 8) {
                (0, 0..6) | (_, 0) => 1,
                _ => k as u32,
            };
            let first = |row: usize| {
                let mut left = kept(row);
                let of_class = move |&n: &u32| {
                    let n = n.min(left);
                    left -= n;
                    n
                };
                table.votes(row).unwrap().counts().iter().map(of_class).collect::<Vec<u32>>()
            };
            let votes = (0..400).flat_map(first).collect();
            let probs = (0..400).flat_map(|row| table.prediction(row).to_vec()).collect();
            table = Table::new(table.classes().to_vec(), probs).unwrap().with_votes(votes).unwrap();
        }
        let router = Router::calibrate(&table, &Partition::top_class(3)).unwrap();
        for task in [task(&loss), task(&loss).budget(0.2).unwrap()] {
            let policy = router.policy(&task).unwrap();
            let promise = policy.promise().unwrap();
            assert_eq!(policy.promised_cost(), Some(promise.cost));
            assert_eq!(policy.surcharge_price(), policy.surcharge().map(|it| it.price));
            let mut tally = Tally::default();
            tally.add(&policy, &policy.decide_batch(&table).unwrap());
            let summary = tally.summary(&policy);
            let cost = *summary.expected_cost.as_ref().unwrap().get("router").unwrap();
            assert!((cost - promise.cost).abs() < 1e-12, "{cost} {promise:?}");
            let error = summary.standard_error.unwrap();
            assert!((error - promise.standard_error).abs() < 1e-12, "{error} {promise:?}");
            assert_eq!(summary.identified.is_some(), loss != Loss::brier());
            let ends = summary.identified.zip(promise.identified);
            assert!(ends.is_none_or(|(a, b)| (a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9), "{ends:?}");
        }
    }
}

/// A cell whose rows have one label each borrows the irreducible loss from rows of similar confidence, so that its costs are known. With one label
/// per row in the whole table nothing is promised.
#[test]
fn cells_of_one_label_items_borrow_from_others() {
    let mut rng = Rng::new(77);
    // The first class has one label per item, the second three.
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for row in 0..400 {
        let p = 0.55 + 0.4 * rng.uniform();
        let (one, truth) = (row % 20 == 0, if rng.below(3) == 0 { 0.5 } else { p });
        let of_top = rng.votes(&[truth, 1.0 - truth], if one { 1 } else { 3 });
        let swap = |x: [f64; 2]| if one { vec![x[0], x[1]] } else { vec![x[1], x[0]] };
        probs.push(swap([p, 1.0 - p]));
        votes.push(if one { of_top } else { vec![of_top[1], of_top[0]] });
    }
    let rows = table(2, &probs, &votes);
    let queries = Table::new(rows.classes().to_vec(), probs.concat()).unwrap();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.03).unwrap();
    for partition in [Partition::top_class(1), Partition::forest(20)] {
        let router = Router::calibrate(&rows, &partition).unwrap();
        let policy = router.policy(&task).unwrap();
        let decisions = policy.decide_batch(&queries).unwrap();
        let mut tally = Tally::default();
        tally.add(&policy, &decisions);
        let summary = tally.summary(&policy);
        let cost = *summary.expected_cost.as_ref().and_then(|costs| costs.get("router")).unwrap();
        assert!(cost.is_finite() && cost > 0.0, "{partition}");
        let promise = policy.promise().unwrap();
        if partition == Partition::top_class(1) {
            close(promise.cost, cost, 0.02, "promise and tally");
        }
        let always = promise.always.get("route:expert").copied().unwrap();
        assert!(always <= 1.0 + 0.03);
        assert_eq!(summary.shares.get("undetermined"), None, "{partition}");
        assert_eq!((summary.identified, promise.identified), (None, None), "{partition}");
    }
    // With one label per row nothing is promised.
    let single: Vec<Vec<u32>> = (0..100).map(|_| rng.votes(&[0.7, 0.3], 1)).collect();
    let router = Router::calibrate(&table(2, &vec![vec![0.7, 0.3]; 100], &single), &Partition::top_class(1)).unwrap();
    assert!(router.policy(&task).unwrap().promise().is_none());
}

/// Rows of three kinds that the model does not distinguish: most trees of a forest have few leaves, and all queries are decided alike.
fn draw_kinds(rows: usize, rng: &mut Rng) -> Table {
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (kind, sharp) = (rng.uniform(), rng.uniform());
        let p = match kind {
            kind if kind < 0.45 => vec![0.96 - 0.1 * sharp, 0.03 + 0.1 * sharp, 0.01],
            kind if kind < 0.7 => vec![0.05, 0.92, 0.03],
            _ => normalised(vec![0.45, 0.2 + 0.3 * sharp, 0.2]),
        };
        probs.extend(normalised(vec![0.55 + 0.3 * sharp, 0.25, 0.12]));
        votes.extend(rng.votes(&p, 2));
        truth.extend(p);
    }
    Table::new(["a", "b", "c"], probs).unwrap().with_votes(votes).unwrap().with_truth(truth).unwrap()
}

/// Where two actions cost about the same, the decisions on many rows depend on the labels of each. The standard error of a forest's promise
/// includes that: it is the spread of the promise around the true cost of the policy. The variance over rows alone was too small by a factor of
/// 1.5 to 2 in its root.
#[test]
fn standard_error_of_a_promise_over_a_forest_is_its_spread() {
    let new = draw_kinds(2_000, &mut Rng::new(1));
    for abstain in [0.34, 0.35] {
        let task = Task::new(Loss::brier()).route("people", Oracle::bayes(), 0.05).unwrap().abstain(abstain).unwrap();
        let costs = true_costs(&new, &task);
        let (mut errors, mut variances, mut covered) = (Vec::new(), Vec::new(), 0);
        for world in 0..80 {
            let table = draw_kinds(500, &mut Rng::new(3_000 + world));
            let policy = Router::calibrate(&table, &Partition::forest(20)).unwrap().policy(&task).unwrap();
            let promise = policy.promise().unwrap();
            let error = promise.cost - true_cost(&policy, &new, &costs);
            covered += u32::from(error.abs() <= 1.96 * promise.standard_error + 1e-9);
            errors.push(error);
            variances.push(promise.standard_error.powi(2));
        }
        let spread = mean_and_error(&errors).1 * (errors.len() as f64).sqrt();
        let ratio = spread / mean_and_error(&variances).0.sqrt();
        println!("abstaining at {abstain}: spread / standard error {ratio:.2}, {covered} of 80 covered");
        assert!((0.75..1.25).contains(&ratio), "{abstain}: {ratio}");
        assert!(covered >= 70, "{abstain}: {covered} of 80 covered");
    }
}
