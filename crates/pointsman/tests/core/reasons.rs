//! Reasons for actions: every line of the table at `Reason`, and the next-best action.

use pointsman::partition::SPARSE_BELOW_ROWS;
use pointsman::policy::{Bid, CapRule, CapSize, Caps, Reason, Tally};
use pointsman::{Action, Loss, Oracle, Partition, Policy, Router, Table, Task};

/// Two cells with enough rows, in which the model is certain of the first and of the second class, and a sparse cell of the third. The model is right
/// in the first; the second is ambiguous; in the fourth the model is wrong and the labels agree.
fn router() -> Router {
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    let mut add = |n: usize, prediction: [f64; 4], label: [u32; 4]| {
        for _ in 0..n {
            probs.extend(prediction);
            votes.extend(label);
        }
    };
    add(100, EASY, [10, 0, 0, 0]);
    add(100, AMBIGUOUS, [0, 5, 5, 0]);
    add(SPARSE_BELOW_ROWS - 1, SPARSELY, [0, 0, 10, 0]);
    add(100, HARD, [10, 0, 0, 0]);
    let table = Table::new(["a", "b", "c", "d"], probs).unwrap().with_votes(votes).unwrap();
    Router::calibrate(&table, &Partition::top_class(1)).unwrap()
}

const EASY: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
const AMBIGUOUS: [f64; 4] = [0.0, 0.6, 0.4, 0.0];
const SPARSELY: [f64; 4] = [0.0, 0.0, 1.0, 0.0];
const HARD: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

fn policy(router: &Router, route: Option<f64>, abstain: Option<f64>) -> Policy {
    let mut task = Task::new(Loss::brier());
    if let Some(price) = route {
        task = task.route("expert", Oracle::bayes(), price).unwrap();
    }
    if let Some(price) = abstain {
        task = task.abstain(price).unwrap();
    }
    router.policy(&task).unwrap()
}

#[track_caller]
fn check(policy: &Policy, query: [f64; 4], action: &str, reason: Reason, next: Option<&str>) {
    let decision = policy.decide(&query).unwrap();
    let found = (decision.action().to_string(), decision.reason(), decision.next_best().map(|next| next.to_string()));
    assert_eq!(found, (action.to_owned(), reason, next.map(str::to_owned)));
}

#[test]
fn queries_are_easy_if_predicted_and_hard_if_routed() {
    let policy = policy(&router(), Some(0.1), Some(0.3));
    check(&policy, EASY, "predict", Reason::Easy, Some("route:expert"));
    check(&policy, HARD, "route:expert", Reason::Hard, Some("abstain"));
}

#[test]
fn queries_are_ambiguous_if_even_an_oracle_errs() {
    let router = router();
    // Even an oracle loses 0.5 here; the mean cost of routing is 0.26.
    check(&policy(&router, Some(0.1), Some(0.3)), AMBIGUOUS, "abstain", Reason::Ambiguous, Some("predict"));
    check(&policy(&router, Some(0.1), None), AMBIGUOUS, "predict", Reason::Ambiguous, Some("route:expert"));
    check(&policy(&router, None, None), EASY, "predict", Reason::Easy, None);
}

#[test]
fn queries_are_hard_if_an_oracle_would_help() {
    let router = router();
    check(&policy(&router, None, Some(0.3)), HARD, "abstain", Reason::Hard, Some("predict"));
    // At such a price the model is good enough.
    check(&policy(&router, Some(3.0), None), HARD, "predict", Reason::Easy, Some("route:expert"));
}

#[test]
fn too_few_rows_are_a_separate_reason() {
    check(&policy(&router(), Some(0.1), None), SPARSELY, "predict", Reason::Sparse, Some("route:expert"));
}

#[test]
fn one_label_per_item_leaves_the_reason_unknown() {
    // Half of the single labels agree with the model: either the items are ambiguous or the model errs, and labels do not show which.
    let (probs, votes) = ([0.8, 0.2].repeat(100), [1, 0, 0, 1].repeat(50));
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(1)).unwrap();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.3).unwrap();
    let policy = router.policy(&task).unwrap();
    let decision = policy.decide(&[0.8, 0.2]).unwrap();
    assert_eq!((decision.action(), decision.reason()), (Action::Undetermined, Reason::Sparse));
    assert_eq!(decision.next_best(), None);
    let task = Task::new(Loss::brier()).abstain(0.1).unwrap();
    let policy = router.policy(&task).unwrap();
    let decision = policy.decide(&[0.8, 0.2]).unwrap();
    assert_eq!((decision.action(), decision.reason()), (Action::Abstain, Reason::Sparse));
}

#[test]
fn capped_action_becomes_the_next_best() {
    let router = router();
    let policy = policy(&router, Some(0.1), Some(0.3));
    let mut decisions = policy.decide_many(&[HARD, EASY, HARD].concat(), &[]).unwrap();
    let caps = Caps::new(policy.task(), [("expert", CapSize::Queries(1))]).unwrap();
    let keys = [1, 2, 3];
    let bids = policy.bids(&caps, &decisions, &keys);
    let scan = |see: &mut dyn FnMut(&Bid)| {
        bids.iter().for_each(see);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(mut rule) = CapRule::find(&caps, 3, scan);
    policy.apply_caps(&mut rule, &mut decisions, &keys);
    let mut reasons: Vec<(String, Reason, Option<String>)> = (0..3)
        .map(|row| policy.row(&decisions, row))
        .map(|d| (d.action().to_string(), d.reason(), d.next_best().map(|next| next.to_string())))
        .collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            ("abstain".to_owned(), Reason::Degraded, Some("route:expert".to_owned())),
            ("predict".to_owned(), Reason::Easy, Some("route:expert".to_owned())),
            ("route:expert".to_owned(), Reason::Hard, Some("abstain".to_owned())),
        ]
    );
    let mut tally = Tally::default();
    tally.add(&policy, &decisions);
    let counted = tally.summary(&policy).reasons;
    let counted: Vec<(&str, u64)> = counted.iter().map(|(name, n)| (name, *n)).collect();
    assert_eq!(counted, [("easy", 1), ("hard", 1), ("ambiguous", 0), ("sparse", 0), ("degraded", 1)]);
}

/// A budget of nothing keeps every query from its route; queries that would not be routed anyway keep their reason.
#[test]
fn query_that_a_limit_keeps_from_its_route_is_degraded() {
    let router = router();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(1.9).unwrap();
    check(
        &router.policy(&task.clone().budget(1.0).unwrap()).unwrap(),
        HARD,
        "route:expert",
        Reason::Hard,
        Some("abstain"),
    );
    let policy = router.policy(&task.clone().budget(0.0).unwrap()).unwrap();
    check(&policy, HARD, "abstain", Reason::Degraded, Some("route:expert"));
    check(&policy, EASY, "predict", Reason::Easy, Some("route:expert"));
    let mut tally = Tally::default();
    tally.add(&policy, &policy.decide_many(&[HARD, EASY, HARD].concat(), &[]).unwrap());
    assert_eq!(tally.summary(&policy).reasons.get("degraded"), Some(&2));
    // The fourth class has 100 of 329 rows, and nothing saves more.
    let least = policy.decide(&HARD).unwrap().least_budget().unwrap();
    let rows = 300 + SPARSE_BELOW_ROWS - 1;
    assert!((least - 100.0 / rows as f64).abs() < 1e-9, "{least}");
    assert_eq!(policy.decide(&EASY).unwrap().least_budget(), None);
}

#[test]
fn no_queries_have_no_expected_cost() {
    let router = router();
    let summary = Tally::default().summary(&policy(&router, Some(0.1), None));
    assert_eq!((summary.rows, summary.expected_cost.is_none()), (0, true));
    assert!(summary.shares.iter().all(|(_, share)| *share == 0.0));
}
