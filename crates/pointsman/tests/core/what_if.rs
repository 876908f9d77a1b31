//! Logged queries under another policy: counts, shares and costs by hand.

use pointsman::monitor::WhatIf;
use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{Rng, close};

fn world(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let p = 0.5 + 0.5 * rng.uniform();
        probs.extend([p, 1.0 - p]);
        votes.extend(rng.votes(&[p, 1.0 - p], 6));
    }
    Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap()
}

fn task(price: f64) -> Task {
    Task::new(Loss::zero_one()).route("a", Oracle::bayes(), price).unwrap().abstain(0.25).unwrap()
}

fn codes(policy: &Policy, table: &Table) -> Vec<Option<usize>> {
    (0..table.rows()).map(|row| policy.decide(&table.prediction(row)).unwrap().code()).collect()
}

#[test]
fn changes_are_counted_by_hand() {
    let (router, queries) = (Router::calibrate(&world(3_000, 1), &Partition::confidence(12)).unwrap(), world(900, 2));
    let (old_task, new_task) = (task(0.0), task(0.02).without_abstaining().route("b", Oracle::bayes(), 0.01).unwrap());
    let (old, new) = (router.policy(&old_task).unwrap(), router.policy(&new_task).unwrap());
    let before = codes(&old, &queries);
    let mut what_if = WhatIf::new(&new);
    // Two batches give what one would.
    for rows in [(0..400).collect::<Vec<_>>(), (400..900).collect()] {
        let part =
            Table::new(["no", "yes"], rows.iter().flat_map(|&row| queries.prediction(row).to_vec()).collect()).unwrap();
        let decisions = new.decide_batch(&part).unwrap();
        what_if.add(&new, &decisions, &old_task.action_names(), &before[rows[0]..]);
    }
    let summary = what_if.summary(&new);
    let (old_names, new_names) = (old_task.action_names(), new_task.action_names());
    let (mut changed, mut after, mut compared, mut differences) = (0, 0.0, 0, Vec::new());
    for row in 0..queries.rows() {
        let decision = new.decide(&queries.prediction(row)).unwrap();
        let (from, to) = (&old_names[before[row].unwrap()], &new_names[decision.code().unwrap()]);
        changed += u64::from(from != to);
        after += decision.costs()[decision.code().unwrap()];
        if let Some(place) = new_names.iter().position(|name| name == from) {
            compared += 1;
            differences.push(decision.costs()[decision.code().unwrap()] - decision.costs()[place]);
        }
    }
    assert_eq!((summary.decisions, summary.changed), (900, changed));
    assert!(changed > 0 && compared < 900, "{summary:?}");
    assert_eq!(summary.cost.not_compared, 900 - compared);
    // The cost of an action that the task lacks is unknown, and a mean over the other queries would not be that of the same traffic.
    assert_eq!(summary.cost.before, None);
    assert_eq!(summary.matrix.iter().map(|flow| flow.decisions).sum::<u64>(), 900);
    let moved = summary.matrix.iter().filter(|flow| flow.from != flow.to).map(|flow| flow.decisions).sum::<u64>();
    assert_eq!(moved, changed);
    // Sums of 900 numbers of size one in another order.
    close(summary.cost.expected.unwrap(), after / 900.0, 1e-12, "expected cost");
    let mean = differences.iter().sum::<f64>() / compared as f64;
    close(summary.cost.difference.unwrap(), mean, 1e-12, "difference");
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (compared - 1) as f64;
    close(
        summary.cost.difference_standard_error.unwrap(),
        (variance / compared as f64).sqrt(),
        1e-12,
        "standard error",
    );
    let shares: f64 = summary.shares.iter().map(|(_, share)| share).sum();
    close(shares, 1.0, 1e-12, "shares");
    assert_eq!(summary.cells.iter().map(|cell| cell.decisions).sum::<u64>(), 900);
    assert_eq!(summary.cells.iter().map(|cell| cell.changed).sum::<u64>(), changed);
    let total: f64 = summary.cells.iter().map(|cell| cell.expected_cost * cell.decisions as f64).sum();
    close(total, after, 1e-9, "costs of the cells");
    // A cell of a partition has one cost per action: differences vary within it only if logged actions do.
    assert!(summary.cells.iter().any(|cell| cell.difference_standard_error == Some(0.0)), "{summary:?}");
}

#[test]
fn the_same_policy_changes_nothing() {
    let (table, queries) = (world(1_000, 3), world(300, 4));
    for partition in [Partition::top_class(5), Partition::forest(10)] {
        let policy = Router::calibrate(&table, &partition).unwrap().policy(&task(0.02).budget(0.2).unwrap()).unwrap();
        let decisions = policy.decide_batch(&queries).unwrap();
        let before: Vec<Option<usize>> = (0..queries.rows()).map(|row| policy.row(&decisions, row).code()).collect();
        let mut what_if = WhatIf::new(&policy);
        what_if.add(&policy, &decisions, &policy.task().action_names(), &before);
        let summary = what_if.summary(&policy);
        assert_eq!((summary.changed, summary.cost.not_compared), (0, 0));
        assert_eq!((summary.cost.before, summary.cost.difference), (summary.cost.expected, Some(0.0)));
        assert_eq!((summary.cost.difference, summary.cost.difference_standard_error), (Some(0.0), Some(0.0)));
        assert_eq!(summary.shares_before.iter().count(), summary.matrix.len());
    }
}

#[test]
fn nothing_logged_gives_no_costs() {
    let policy = Router::calibrate(&world(200, 5), &Partition::top_class(2)).unwrap().policy(&task(0.1)).unwrap();
    let summary = WhatIf::new(&policy).summary(&policy);
    assert_eq!((summary.decisions, summary.cost.expected, summary.cost.difference), (0, None, None));
    assert!(summary.matrix.is_empty() && summary.cells.is_empty());
}

/// Where every decision that changes is left out of the difference, the others say nothing about it.
#[test]
fn difference_is_unknown_if_no_changed_decision_is_compared() {
    let (table, queries) = (world(1_000, 3), world(300, 4));
    let policy = Router::calibrate(&table, &Partition::top_class(5)).unwrap().policy(&task(0.02)).unwrap();
    let decisions = policy.decide_batch(&queries).unwrap();
    // What is abstained from now was sent to a route that the task does not have.
    let logged = ["predict", "route:people"].map(str::to_owned);
    let before: Vec<Option<usize>> =
        codes(&policy, &queries).into_iter().map(|code| Some(usize::from(code != Some(0)))).collect();
    let mut what_if = WhatIf::new(&policy);
    what_if.add(&policy, &decisions, &logged, &before);
    let summary = what_if.summary(&policy);
    let routed = before.iter().filter(|code| **code == Some(1)).count() as u64;
    assert!(routed > 0 && routed < queries.rows() as u64, "{routed}");
    assert_eq!((summary.changed, summary.cost.not_compared), (routed, routed));
    assert_eq!((summary.cost.difference, summary.cost.difference_standard_error), (None, None));
    for cell in &summary.cells {
        assert_eq!(cell.difference.is_none(), cell.changed > 0, "{cell:?}");
    }
}
