//! Evaluation on held-out rows: all numbers of a small example by hand, and properties of any evaluation.

use pointsman::evaluate::{Sweep, SweepAxis, Truth};
use pointsman::{CellId, Estimator, Evaluation, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, table};

pub(crate) const NO: [f64; 2] = [0.75, 0.25];
pub(crate) const YES: [f64; 2] = [0.25, 0.75];

/// Two cells. `NO`: total 0.625, irreducible 0.5. `YES`: total 1.125, irreducible 0.
pub(crate) fn router() -> Router {
    let calibration = table(2, &[NO.to_vec(), YES.to_vec()], &[vec![2, 2], vec![4, 0]]);
    Router::calibrate(&calibration, &Partition::top_class(1)).unwrap()
}

pub(crate) fn task() -> Task {
    let task = Task::new(Loss::brier()).estimator(Estimator::Plugin);
    task.route("expert", Oracle::bayes(), 0.25).unwrap().abstain(0.6).unwrap()
}

/// | row | prediction | truth | predict | route | abstain | reducible |
/// |---|---|---|---|---|---|---|
/// | 0 | no | (1, 0) | 0.125 | 0.25 | 0.6 | 0.125 |
/// | 1 | no | (½, ½) | 0.625 | 0.75 | 0.6 | 0.125 |
/// | 2 | yes | (0, 1) | 0.125 | 0.25 | 0.6 | 0.125 |
/// | 3 | yes | (1, 0) | 1.125 | 0.25 | 0.6 | 1.125 |
fn held_out() -> Table {
    table(2, &[NO, NO, YES, YES].map(|p| p.to_vec()), &[[4, 0], [2, 2], [0, 4], [4, 0]].map(|v| v.to_vec()))
}

pub(crate) fn evaluate(policy: &Policy, table: &Table) -> Evaluation {
    policy.replay(table).unwrap().evaluate(policy).unwrap()
}

fn names<T>(named: &pointsman::task::Named<T>) -> Vec<&str> {
    named.iter().map(|(name, _)| name).collect()
}

#[track_caller]
fn all_close(found: &pointsman::task::Named<f64>, wanted: &[(&str, f64)]) {
    assert_eq!(names(found), wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for ((name, found), (_, wanted)) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= 1e-15, "{name}: found {found}, expected {wanted}");
    }
}

#[test]
fn small_example_matches_hand_computed_values() {
    let policy = router().policy(&task()).unwrap();
    let evaluation = evaluate(&policy, &held_out());
    assert_eq!((evaluation.rows, evaluation.loss.as_str(), evaluation.unit), (4, "brier", "Brier points"));
    assert_eq!(evaluation.truth, Truth::Votes);
    // The router abstains on `NO` (0.625, 0.75, 0.6) and routes `YES` (1.125, 0.25, 0.6).
    all_close(&evaluation.shares, &[("predict", 0.0), ("route:expert", 0.5), ("abstain", 0.5)]);
    all_close(
        &evaluation.mean_cost,
        &[
            ("router", (0.6 + 0.6 + 0.25 + 0.25) / 4.0),
            ("always-predict", 0.5),
            ("always-route:expert", 0.375),
            ("always-abstain", 0.6),
            // In hindsight `NO` should predict (0.375, 0.5, 0.6) and `YES` should route (0.625, 0.25, 0.6).
            ("cell-optimal", 0.3125),
            ("pointwise-optimal", (0.125 + 0.6 + 0.125 + 0.25) / 4.0),
        ],
    );
    all_close(&evaluation.regret, &[("cell-optimal", 0.425 - 0.3125), ("pointwise-optimal", 0.425 - 0.275)]);
    all_close(&evaluation.two_way, &[("predict/route", 0.3125), ("predict/abstain", 0.6)]);
    // Four deviations of 0.175 give √(4 · 0.175²)/4; predicting deviates by 0.375, 0.125, 0.375, 0.625.
    let predicting = (2.0 * 0.375_f64.powi(2) + 0.125_f64.powi(2) + 0.625_f64.powi(2)).sqrt() / 4.0;
    let error = |name: &str| evaluation.standard_error.get(name).unwrap().unwrap();
    assert!((error("router") - 0.0875).abs() <= 1e-15 && (error("always-predict") - predicting).abs() <= 1e-15);
    assert_eq!(error("always-abstain"), 0.0);
    assert_eq!(names(&evaluation.standard_error), names(&evaluation.mean_cost));
    // Covariance 0.625/4, variances 0.75/4 and 0.6875/4.
    assert!((evaluation.correlation.unwrap() - 0.625 / (0.75_f64 * 0.6875).sqrt()).abs() <= 1e-15);
    all_close(&evaluation.support, &[("enough", 0.0), ("sparse", 1.0), ("empty", 0.0)]);
    assert_eq!(evaluation.task.routes[0].name, "expert");
    assert_eq!((evaluation.task.routes[0].cost, evaluation.task.abstain), (0.25, Some(0.6)));
}

#[test]
fn curves_and_gains_match_hand_computed_values() {
    let policy = router().policy(&task()).unwrap();
    let evaluation = evaluate(&policy, &held_out());
    let rankings = ["higher-order", "total-uncertainty", "cell-optimal", "pointwise-optimal", "random"];
    assert_eq!(names(&evaluation.curves), rankings);
    assert_eq!(names(&evaluation.gain), rankings);
    let curve = |name: &str, wanted: [f64; 5]| {
        let curve = evaluation.curves.get(name).unwrap();
        assert_eq!(curve.len(), 101);
        for (i, wanted) in wanted.into_iter().enumerate() {
            assert!((curve[25 * i] - wanted).abs() <= 1e-15, "{name} at {} %: {}", 25 * i, curve[25 * i]);
        }
        // Linear between the rows.
        assert!((curve[10] - (0.6 * wanted[0] + 0.4 * wanted[1])).abs() <= 1e-15, "{name} at 10 %");
    };
    // Ranked by cell, ties averaged: rows 2 and 3 save 0.625 each on average, then rows 0 and 1 save 0.125 each.
    curve("higher-order", [0.5, 0.34375, 0.1875, 0.15625, 0.125]);
    curve("cell-optimal", [0.5, 0.34375, 0.1875, 0.15625, 0.125]);
    // Row 3 first, then the three rows that save 0.125.
    curve("pointwise-optimal", [0.5, 0.21875, 0.1875, 0.15625, 0.125]);
    curve("random", [0.5, 0.40625, 0.3125, 0.21875, 0.125]);
    // All predictions are equally uncertain.
    curve("total-uncertainty", [0.5, 0.40625, 0.3125, 0.21875, 0.125]);
    // Areas: 0.25, 0.21875 for the best and 0.3125 for a random ranking.
    let gain = |name: &str| evaluation.gain.get(name).unwrap().unwrap();
    assert!((gain("higher-order") - 2.0 / 3.0).abs() <= 1e-14 && (gain("cell-optimal") - 2.0 / 3.0).abs() <= 1e-14);
    assert_eq!((gain("pointwise-optimal"), gain("random"), gain("total-uncertainty")), (1.0, 0.0, 0.0));
}

#[test]
fn total_uncertainty_ranks_by_the_served_prediction() {
    let calibration = [vec![0.6, 0.4], vec![0.1, 0.9]];
    let votes = [vec![4, 0], vec![2, 2]];
    let router = Router::calibrate(&table(2, &calibration, &votes), &Partition::top_class(1)).unwrap();
    let held_out = table(2, &calibration, &[vec![0, 4], vec![0, 4]]);
    let order = |router: &Router| {
        let evaluation = evaluate(&router.policy(&task()).unwrap(), &held_out);
        let curve = evaluation.curves.get("total-uncertainty").unwrap();
        (curve[0], curve[50], curve[100])
    };
    // Of the weak predictions, 0.6 is the less certain one and costs 0.72, the other 0.02.
    let (none, half, all) = order(&router);
    assert!((none - 0.37).abs() < 1e-15 && (half - 0.01).abs() < 1e-15 && all.abs() < 1e-15);
    // Of the centroids, (1, 0) is certain and costs 2; (½, ½) is uncertain, costs ½ and is routed first.
    assert_eq!(order(&router.recalibrated()), (1.25, 1.0, 0.0));
}

/// If abstaining is cheap the target loss is easy; if it is expensive no routing reaches it. The rest of the sweep is still reported.
#[test]
fn sweep_continues_past_unreachable_targets() {
    let target = 0.05;
    let policy = router().policy(&task().abstain(0.01).unwrap().target_loss(target).unwrap()).unwrap();
    let replay = policy.replay(&held_out()).unwrap();
    let points = replay.sweep(&policy, &"abstain=0.01:0.81:0.4".parse().unwrap()).unwrap();
    let named = |place: usize, name: &str| points[place].mean_cost.get(name).is_some();
    assert!(named(0, "router") && points[0].least_loss.is_none(), "{:?}", points[0]);
    assert!(!named(2, "router") && named(2, "always-predict") && points[2].shares.iter().next().is_none());
    // The least loss that is named can be reached, and a smaller one cannot.
    let least = points[2].least_loss.unwrap();
    let ask = |loss: f64| policy.reprice(&task().abstain(0.81).unwrap().target_loss(loss).unwrap());
    assert!(least > target && ask(least).is_ok(), "{least}");
    assert!(matches!(ask(least - 2e-6), Err(pointsman::Error::OutOfReach { .. })));
}

#[test]
fn sweep_equals_an_evaluation_at_each_price() {
    let policy = router().policy(&task()).unwrap();
    let replay = policy.replay(&held_out()).unwrap();
    let points = replay.sweep(&policy, &"abstain=0.2:0.7:0.1".parse().unwrap()).unwrap();
    assert_eq!(points.iter().map(|point| point.price).collect::<Vec<_>>(), [0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
    for point in &points {
        let task = task().abstain(point.price).unwrap();
        let evaluation = replay.evaluate(&policy.reprice(&task).unwrap()).unwrap();
        for (name, cost) in point.mean_cost.iter() {
            let wanted = evaluation.mean_cost.get(name).or_else(|| evaluation.two_way.get(name)).unwrap();
            assert_eq!(cost.to_bits(), wanted.to_bits(), "{name} at {}", point.price);
        }
        assert_eq!(point.shares, evaluation.shares);
        assert_eq!(names(&point.mean_cost).len(), names(&evaluation.mean_cost).len() + 2);
    }
    // At 0.2 everything is abstained on; at 0.7 `NO` predicts.
    all_close(&points[0].shares, &[("predict", 0.0), ("route:expert", 0.0), ("abstain", 1.0)]);
    all_close(&points[5].shares, &[("predict", 0.5), ("route:expert", 0.5), ("abstain", 0.0)]);
    let routed = |text: &str| {
        let points = replay.sweep(&policy, &text.parse().unwrap()).unwrap();
        points.iter().map(|point| *point.shares.get("route:expert").unwrap()).collect::<Vec<_>>()
    };
    // `NO` routes up to 0.1, `YES` up to 0.6, where abstaining costs the same; ties prefer the oracle.
    assert_eq!(routed("route=0:0.8:0.2"), [1.0, 0.5, 0.5, 0.5, 0.0]);
    assert_eq!(routed("route:expert=0:0.8:0.2"), [1.0, 0.5, 0.5, 0.5, 0.0]);
    assert!(replay.sweep(&policy, &"route:novice=0:1:0.5".parse().unwrap()).is_err());
    assert!(replay.sweep(&policy, &Sweep::new(SweepAxis::Abstain, vec![f64::NAN])).is_err());
    let bare = policy.reprice(&task().without_routes()).unwrap();
    assert!(replay.sweep(&bare, &"route=0:1:0.5".parse().unwrap()).is_err());
}

/// Truth columns take precedence over votes.
#[test]
fn known_truth_takes_precedence_over_votes() {
    let policy = router().policy(&task()).unwrap();
    let truth = vec![0.5, 0.5, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
    let both = held_out().with_truth(truth.clone()).unwrap();
    let alone = Table::new(CLASS_NAMES[..2].to_vec(), [NO, NO, YES, YES].concat()).unwrap().with_truth(truth).unwrap();
    let (a, b) = (evaluate(&policy, &both), evaluate(&policy, &alone));
    assert_eq!((a.truth, b.truth), (Truth::Known, Truth::Known));
    assert_eq!(a.mean_cost, b.mean_cost);
    assert_eq!(a.gain, b.gain);
    // 0.625, 0.125, 1.125, 0.125 by truth, not 0.125, 0.625, 0.125, 1.125 by votes.
    let costs = policy.replay(&both.with_weights(vec![1.0, 1e-9, 1e-9, 1e-9]).unwrap()).unwrap();
    let first = *costs.evaluate(&policy).unwrap().mean_cost.get("always-predict").unwrap();
    assert!((first - 0.625).abs() < 1e-8);
}

#[test]
fn invalid_held_out_tables_are_refused() {
    let policy = router().policy(&task()).unwrap();
    let plain = Table::new(CLASS_NAMES[..2].to_vec(), NO.to_vec()).unwrap();
    assert!(policy.replay(&plain).unwrap_err().to_string().contains("votes_<class> or true_<class>"));
    let empty = Table::new(CLASS_NAMES[..2].to_vec(), vec![]).unwrap().with_votes(vec![]).unwrap();
    assert!(policy.replay(&empty).is_err());
    let other = Table::new(["bee", "ant"], NO.to_vec()).unwrap().with_votes(vec![1, 0]).unwrap();
    assert!(policy.replay(&other).unwrap_err().to_string().contains("classes"));
}

/// With one label per item, undetermined rows have their own share and count as predicted.
#[test]
fn undetermined_rows_count_as_predicted() {
    let calibration = table(2, &[NO.to_vec(), NO.to_vec()], &[vec![1, 0], vec![0, 1]]);
    let router = Router::calibrate(&calibration, &Partition::confidence(1)).unwrap();
    let policy = router.policy(&Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.25).unwrap()).unwrap();
    let evaluation = evaluate(&policy, &held_out());
    all_close(&evaluation.shares, &[("predict", 0.0), ("route:expert", 0.0), ("undetermined", 1.0)]);
    let cost = |name: &str| *evaluation.mean_cost.get(name).unwrap();
    assert_eq!(cost("router"), cost("always-predict"));
}

/// The order of held-out rows changes no decision, and costs only by rounding.
#[test]
fn evaluation_does_not_depend_on_row_order() {
    let mut rng = Rng::new(11);
    let probs: Vec<Vec<f64>> = (0..200).map(|_| rng.dist(3)).collect();
    let votes: Vec<Vec<u32>> = probs.iter().map(|p| rng.votes(p, 4)).collect();
    let task = Task::new(Loss::cross_entropy()).route("a", Oracle::bayes(), 0.05).unwrap();
    let policy = Router::calibrate(&table(3, &probs, &votes), &Partition::top_class(4)).unwrap().policy(&task).unwrap();
    let mut order: Vec<usize> = (0..200).collect();
    let of = |order: &[usize]| {
        let pick = |i: &usize| (probs[*i].clone(), votes[*i].clone());
        let (probs, votes): (Vec<_>, Vec<_>) = order.iter().map(pick).unzip();
        evaluate(&policy, &table(3, &probs, &votes))
    };
    let first = of(&order);
    rng.shuffle(&mut order);
    let second = of(&order);
    for ((name, a), (_, b)) in first.mean_cost.iter().zip(second.mean_cost.iter()) {
        assert!((a - b).abs() < 1e-13, "{name}");
    }
    for ((name, a), (_, b)) in first.gain.iter().zip(second.gain.iter()) {
        assert!((a.unwrap() - b.unwrap()).abs() < 1e-12, "{name}");
    }
}

#[test]
fn routing_curves_of_scores_match_the_evaluation() {
    let policy = router().policy(&task()).unwrap();
    let replay = policy.replay(&held_out()).unwrap();
    let evaluation = replay.evaluate(&policy).unwrap();
    assert_eq!(replay.reducible(), [0.125, 0.125, 0.125, 1.125]);
    let best = replay.routing_curve(&replay.reducible()).unwrap();
    assert_eq!(best.gain, Some(1.0));
    assert_eq!(&best.curve, evaluation.curves.get("pointwise-optimal").unwrap());
    let random = replay.routing_curve(&[0.0; 4]).unwrap();
    assert!(random.gain.unwrap().abs() < 1e-12);
    let own = replay.routing_curve(&[0.125, 0.125, 1.125, 1.125]).unwrap();
    assert!((own.gain.unwrap() - evaluation.gain.get("higher-order").unwrap().unwrap()).abs() < 1e-12);
    assert!((own.area - own.curve.iter().sum::<f64>() / 101.0).abs() < 0.01);
    assert!(replay.routing_curve(&[0.0; 3]).is_err());
    assert!(replay.routing_curve(&[0.0, f64::NAN, 0.0, 0.0]).is_err());
}

#[test]
fn policies_and_cells_are_compared_on_the_same_rows() {
    let policy = router().policy(&task()).unwrap();
    let replay = policy.replay(&held_out()).unwrap();
    let evaluation = replay.evaluate(&policy).unwrap();
    let cost = replay.cost_of(&policy).unwrap();
    assert_eq!(Some(&cost.mean), evaluation.mean_cost.get("router"));
    assert_eq!(Some(&cost.standard_error), evaluation.standard_error.get("router"));
    let two_way = policy.reprice(&task().without_abstaining()).unwrap();
    let difference = replay.difference(&policy, &two_way).unwrap();
    let two_way = evaluation.two_way.get("predict/route").unwrap();
    assert!((difference.mean - (cost.mean - two_way)).abs() < 1e-15);
    assert_eq!(replay.difference(&policy, &policy).unwrap().standard_error, Some(0.0));
    let other = router().policy(&Task::new(Loss::zero_one())).unwrap();
    assert!(replay.cost_of(&other).is_err() && replay.difference(&policy, &other).is_err());

    let cells = replay.cell_losses();
    assert_eq!(cells.iter().map(|cell| (cell.cell, cell.share)).collect::<Vec<_>>(), [(0, 0.5), (1, 0.5)]);
    assert_eq!((cells[0].total, cells[0].irreducible, cells[1].total), (0.375, 0.25, 0.625));
    let correlations = replay.correlations();
    assert_eq!(correlations.rows, evaluation.correlation);
    // Two points always lie on a line.
    assert!((correlations.cells.unwrap() - 1.0).abs() < 1e-12);
    assert!((correlations.irreducible_cells.unwrap() + 1.0).abs() < 1e-12);
}

/// One row has no standard error, which is not a standard error of zero.
#[test]
fn one_row_has_no_standard_error() {
    let policy = router().policy(&task()).unwrap();
    let replay = policy.replay(&table(2, &[NO.to_vec()], &[vec![1, 3]])).unwrap();
    let evaluation = replay.evaluate(&policy).unwrap();
    assert!(evaluation.standard_error.iter().all(|(_, error)| error.is_none()), "{:?}", evaluation.standard_error);
    assert_eq!(replay.cost_of(&policy).unwrap().standard_error, None);
}

/// Costs that one label per item does not identify are listed and have no gain; the others are unchanged.
#[test]
fn one_label_does_not_identify_the_loss_of_an_oracle() {
    let asked = task().route("gpt", Oracle::measured(), 0.1).unwrap();
    let answers = [NO, YES].repeat(2).concat();
    let with_answers = |table: Table| {
        let rows = table.rows();
        table.with_oracle("gpt", answers[..2 * rows].to_vec()).unwrap()
    };
    let calibration = with_answers(table(2, &[NO.to_vec(), YES.to_vec()], &[vec![2, 2], vec![4, 0]]));
    let router = Router::calibrate(&calibration, &Partition::top_class(1)).unwrap();
    let rows = [NO.to_vec(), YES.to_vec(), NO.to_vec(), YES.to_vec()];
    let held_out = |votes: [Vec<u32>; 4]| with_answers(table(2, &rows, &votes));
    let single = held_out([vec![1, 0], vec![0, 1], vec![0, 1], vec![1, 0]]);
    let policy = router.policy(&asked).unwrap();
    let evaluation = policy.replay(&single).unwrap().evaluate(&policy).unwrap();
    assert!(evaluation.corrected_cost.is_none() && !evaluation.regret_ignores_limit);
    for name in ["always-route:expert", "cell-optimal", "pointwise-optimal"] {
        assert!(!evaluation.is_identified(name), "{name}: {:?}", evaluation.unidentified);
    }
    for name in ["always-predict", "always-route:gpt", "always-abstain"] {
        assert!(evaluation.is_identified(name), "{name}: {:?}", evaluation.unidentified);
    }
    assert!(evaluation.gain.iter().all(|(_, gain)| gain.is_none()) && evaluation.correlation.is_none());
    // The cost of a router that only predicts or abstains is identified.
    let plain = router.policy(&Task::new(Loss::brier()).abstain(0.6).unwrap()).unwrap();
    let evaluation = plain.replay(&single).unwrap().evaluate(&plain).unwrap();
    assert_eq!(evaluation.unidentified, ["pointwise-optimal"]);
    let several = held_out([vec![2, 0], vec![0, 2], vec![1, 1], vec![1, 1]]);
    assert!(policy.replay(&several).unwrap().evaluate(&policy).unwrap().unidentified.is_empty());
}

/// Under the truth estimated from three labels routing looks too cheap; the corrected costs do not.
#[test]
fn corrected_costs_are_near_the_truth() {
    let mut rng = Rng::new(31);
    let draw = |rng: &mut Rng, rows: usize| {
        let (mut probs, mut truth, mut votes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let f = if rng.uniform() < 0.5 { [0.6, 0.4] } else { [0.2, 0.8] };
            let p = (f[1] + 0.5 * (rng.uniform() - 0.5)).clamp(0.0, 1.0);
            probs.extend(f);
            truth.extend([1.0 - p, p]);
            votes.extend(rng.votes(&[1.0 - p, p], 3));
        }
        let table = Table::new(CLASS_NAMES[..2].to_vec(), probs).unwrap().with_votes(votes).unwrap();
        (table.clone(), table.with_truth(truth).unwrap())
    };
    let (calibration, _) = draw(&mut rng, 4000);
    let (held_out, known) = draw(&mut rng, 8000);
    let router = Router::calibrate(&calibration, &Partition::top_class(2)).unwrap();
    for loss in ["brier", "cross-entropy"] {
        let task =
            Task::new(loss.parse().unwrap()).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.9).unwrap();
        let policy = router.policy(&task).unwrap();
        let votes = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
        let truth = policy.replay(&known).unwrap().evaluate(&policy).unwrap();
        assert_eq!(truth.corrected_cost.as_ref().unwrap().get("router"), truth.mean_cost.get("router"));
        let wanted = truth.mean_cost.get("always-route:expert").unwrap();
        let plain = votes.mean_cost.get("always-route:expert").unwrap();
        let corrected = votes.corrected_cost.as_ref().unwrap().get("always-route:expert").unwrap();
        assert!((corrected - wanted).abs() < 0.02, "{loss}: corrected {corrected}, true {wanted}");
        assert!(wanted - plain > 0.1, "{loss}: plain {plain}, true {wanted}");
        // Everything that conclusions use: costs, costs with two actions, and regrets.
        assert!(votes.is_corrected() && !truth.is_corrected());
        for (name, cost) in votes.best_costs().iter() {
            let wanted = truth.mean_cost.get(name).unwrap();
            assert!((cost - wanted).abs() < 0.02, "{loss}, {name}: corrected {cost}, true {wanted}");
        }
        for (name, cost) in votes.best_two_way().iter() {
            let wanted = truth.two_way.get(name).unwrap();
            assert!((cost - wanted).abs() < 0.02, "{loss}, {name}: corrected {cost}, true {wanted}");
        }
        let regret = |evaluation: &Evaluation| *evaluation.best_regret().get("cell-optimal").unwrap();
        assert!((regret(&votes) - regret(&truth)).abs() < 0.01, "{loss}: {} {}", regret(&votes), regret(&truth));
        // At these prices the bias changes the best action under the first loss only.
        let by_labels = votes.regret.get("cell-optimal").unwrap() - regret(&truth);
        assert!(by_labels > 0.02 || loss != "brier", "{loss}: {:?}", votes.regret);
        let replay = policy.replay(&held_out).unwrap();
        let swept = replay.sweep(&policy, &"abstain=0.9:0.9:1".parse().unwrap()).unwrap();
        assert_eq!(swept[0].best_costs().get("router"), votes.best_costs().get("router"));
        let grid = replay.price_grid(&policy, &[CellId(0)], 4).unwrap();
        let own = grid.own[0] * grid.abstain_prices.len() + grid.own[1];
        assert!(grid.corrected && grid.router[own].as_ref() == votes.best_costs().get("router"));
    }
}
