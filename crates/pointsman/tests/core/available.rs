//! Routes that cannot be taken: the best of the other actions is taken instead, and nothing else changes.

use pointsman::policy::{AvailableRoutes, Reason, Tally, TallySummary};
use pointsman::task::Ties;
use pointsman::{Action, Decision, Decisions, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{Rng, close, said};

const ROUTES: [(&str, f64); 3] = [("strong", 0.03), ("expert", 0.06), ("panel", 0.02)];

/// Two classes, a feature that tells hard items from ambiguous ones, and another model's answers.
fn world(rows: usize, labels: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features, mut answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let p = 0.5 + 0.49 * rng.uniform();
        let is_hard = rng.uniform() < 0.5;
        let truth = match is_hard {
            true if rng.uniform() < p => [0.98, 0.02],
            true => [0.02, 0.98],
            false => [p, 1.0 - p],
        };
        probs.extend([p, 1.0 - p]);
        votes.extend(rng.votes(&truth, labels));
        features.push(f64::from(u8::from(is_hard)) + 0.1 * rng.uniform());
        answers.extend([0.9 * truth[0] + 0.05, 0.9 * truth[1] + 0.05]);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["hard"], features).unwrap().with_oracle("strong", answers).unwrap()
}

fn tasks() -> Vec<Task> {
    let oracles = [Oracle::measured(), Oracle::bayes(), "panel:m=3".parse().unwrap()];
    let routed = ROUTES
        .into_iter()
        .zip(oracles)
        .fold(Task::new(Loss::brier()), |task, ((name, price), oracle)| task.route(name, oracle, price).unwrap());
    let abstaining = routed.clone().abstain(0.2).unwrap();
    let limited = abstaining.clone().budget(0.2).unwrap();
    vec![routed, abstaining.clone().ties(Ties::Paper), abstaining, limited]
}

/// Every set of routes, as names that are missing.
fn missing_routes() -> impl Iterator<Item = Vec<&'static str>> {
    (0..1 << ROUTES.len()).map(|set| (0..ROUTES.len()).filter(|i| set >> i & 1 == 1).map(|i| ROUTES[i].0).collect())
}

fn available(task: &Task, missing: &[&str]) -> AvailableRoutes {
    missing.iter().fold(AvailableRoutes::all(), |available, name| available.without(task, name).unwrap())
}

/// The action of least cost among those that can be taken, by looking at all of them; prices include the limit's.
fn cheapest(decision: &Decision<'_>, policy: &Policy, missing: &[&str]) -> Vec<String> {
    cheapest_but(decision, policy, missing, "")
}

/// The same without one of them.
fn cheapest_but(decision: &Decision<'_>, policy: &Policy, missing: &[&str], taken: &str) -> Vec<String> {
    let names = policy.task().action_names();
    let surcharge = policy.surcharge().map_or(0.0, |found| found.price);
    let open = |name: &String| name != taken && !missing.iter().any(|route| *name == format!("route:{route}"));
    let cost = |place: usize, name: &String| {
        decision.costs()[place] + if name.starts_with("route:") { surcharge } else { 0.0 }
    };
    let costs: Vec<(f64, &String)> =
        names.iter().enumerate().filter(|(_, name)| open(name)).map(|(i, name)| (cost(i, name), name)).collect();
    let least = costs.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    // Equal up to the rounding of sums of a few numbers of size one.
    costs.into_iter().filter(|(cost, _)| *cost <= least + 1e-12).map(|(_, name)| name.clone()).collect()
}

#[test]
fn the_cheapest_available_action_is_taken() {
    let (table, queries) = (world(1_500, 5, 1), world(300, 5, 2));
    for partition in [Partition::top_class(5), "features:hard=4".parse().unwrap(), Partition::forest(20)] {
        let router = Router::calibrate(&table, &partition).unwrap();
        for task in tasks() {
            let policy = router.policy(&task).unwrap();
            let columns = policy.cells().features().len();
            let mut changed = 0;
            for missing in missing_routes() {
                let available = available(&task, &missing);
                for row in 0..queries.rows() {
                    let prediction = queries.prediction(row);
                    let own = policy.decide_with(&prediction, &queries.features(row)[..columns]).unwrap();
                    let taken = own.among(&available);
                    let next = taken.next_best_among(&available).map(|action| action.to_string());
                    let is_denied = |name: &String| missing.iter().any(|route| *name == format!("route:{route}"));
                    assert!(next.as_ref().is_none_or(|next| !is_denied(next)), "{next:?} without {missing:?}");
                    assert_ne!(next, Some(taken.action().to_string()));
                    if task.limit().is_none() {
                        let others = cheapest_but(&own, &policy, &missing, &taken.action().to_string());
                        assert_eq!(next.is_some(), !others.is_empty());
                        assert!(next.is_none_or(|next| others.contains(&next)), "{others:?}");
                    }
                    let is_missing = matches!(own.action(), Action::Route(name) if missing.contains(&name));
                    if !is_missing {
                        assert_eq!(said(taken), said(own), "{task:?} without {missing:?}: row {row}");
                        continue;
                    }
                    changed += 1;
                    let best = cheapest(&own, &policy, &missing);
                    assert!(best.contains(&taken.action().to_string()), "{} is not in {best:?}", taken.action());
                    assert_eq!(taken.wanted(), Some(own.action()));
                    assert_eq!(taken.reason(), Reason::Degraded);
                    assert_eq!(taken.costs(), own.costs());
                    assert!(taken.margin() <= 0.0 || policy.surcharge().is_some(), "{}", taken.margin());
                }
            }
            assert!(changed > 100, "{partition}: only {changed} decisions changed");
        }
    }
}

#[test]
fn batches_change_as_single_decisions_do() {
    let (table, queries) = (world(1_500, 5, 3), world(400, 5, 4));
    for partition in [Partition::top_class(5), Partition::forest(20)] {
        let router = Router::calibrate(&table, &partition).unwrap();
        for task in tasks() {
            let policy = router.policy(&task).unwrap();
            for missing in missing_routes() {
                let available = available(&task, &missing);
                let own = policy.decide_batch(&queries).unwrap();
                let mut batch = own.clone();
                batch.keep_available(&policy, &available);
                for row in 0..queries.rows() {
                    assert_eq!(
                        said(policy.row(&batch, row)),
                        said(policy.row(&own, row).among(&available)),
                        "row {row}"
                    );
                }
                if missing.is_empty() {
                    assert_eq!(batch.store(), own.store());
                }
            }
        }
    }
}

#[test]
fn undetermined_alternatives_give_a_known_cost() {
    // One label per item bounds the irreducible loss: two routes that lose it are compared, but not one of them with predicting.
    let table = world(600, 1, 5);
    let router = Router::calibrate(&table, &Partition::top_class(3)).unwrap();
    let task = tasks().remove(2);
    let policy = router.policy(&task).unwrap();
    let mut seen = [0; 2];
    for missing in missing_routes() {
        let available = available(&task, &missing);
        for row in 0..table.rows() {
            let own = policy.decide(&table.prediction(row)).unwrap();
            let taken = own.among(&available);
            match (own.code(), taken.code()) {
                (Some(_), None) => panic!("a determined action became undetermined without {missing:?}"),
                (None, Some(code)) => {
                    seen[0] += 1;
                    // Before, the cheapest action of known cost counted.
                    let known = own.costs().iter().zip(own.costs_high()).filter(|(low, high)| low == high);
                    let before = known.map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
                    close(taken.cost_of_cap(), own.costs_high()[code] - before, 1e-12, "cost of the missing routes");
                    assert_eq!(taken.margin(), 0.0);
                }
                _ => {}
            }
            if let Action::Route(name) = taken.action() {
                assert!(!missing.contains(&name), "{name} is missing and taken");
                seen[1] += 1;
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

#[test]
fn unknown_routes_are_refused_by_name() {
    let error = AvailableRoutes::all().without(&tasks()[0], "nobody").unwrap_err().to_string();
    assert!(error.contains("nobody") && error.contains("strong, expert, panel"), "{error}");
}

/// The summary of some batches.
fn summary(policy: &Policy, batches: &[&Decisions]) -> TallySummary {
    let mut tally = Tally::default();
    batches.iter().for_each(|batch| tally.add(policy, batch));
    tally.summary(policy)
}

fn expected_cost(summary: &TallySummary, name: &str) -> f64 {
    *summary.expected_cost.as_ref().unwrap().get(name).unwrap()
}

#[test]
fn expected_cost_leaves_out_any_number_of_missing_routes() {
    let (table, queries) = (world(600, 5, 6), world(200, 5, 7));
    let names: Vec<String> = (0..12).map(|route| format!("r{route}")).collect();
    let route = |task: Task, name: &String| task.route(name, Oracle::bayes(), 0.02).unwrap();
    let task = names.iter().fold(Task::new(Loss::brier()), route);
    let down = names.iter().fold(AvailableRoutes::all(), |down, name| down.without(&task, name).unwrap());
    let policy = Router::calibrate(&table, &Partition::top_class(5)).unwrap().policy(&task).unwrap();
    let mut batch = policy.decide_batch(&queries).unwrap();
    batch.keep_available(&policy, &down);
    let found = summary(&policy, &[&batch]);
    assert!(found.capped.is_some());
    close(expected_cost(&found, "router"), expected_cost(&found, "always-predict"), 1e-12, "only predicting is left");
}

#[test]
fn routes_missing_for_a_batch_that_does_not_want_them_are_missing_all_the_same() {
    let (table, queries) = (world(1_500, 5, 8), world(400, 5, 9));
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
    let policy = Router::calibrate(&table, &Partition::top_class(10)).unwrap().policy(&task).unwrap();
    let down = AvailableRoutes::all().without(&task, "expert").unwrap();
    let all = policy.decide_batch(&queries).unwrap();
    let decide = |is_kept: &dyn Fn(bool) -> bool| {
        let wants = |row: &usize| policy.row(&all, *row).action() == Action::Route("expert");
        let rows: Vec<usize> = (0..queries.rows()).filter(|row| is_kept(wants(row))).collect();
        assert!(!rows.is_empty());
        let predictions: Vec<f64> = rows.iter().flat_map(|&row| queries.prediction(row).to_vec()).collect();
        let part = Table::new(["no", "yes"], predictions).unwrap();
        let mut batch = policy.decide_batch(&part).unwrap();
        batch.keep_available(&policy, &down);
        batch
    };
    let [whole, wanting, others] = [decide(&|_| true), decide(&|wants| wants), decide(&|wants| !wants)];
    assert!(wanting.is_capped() && !others.is_capped());
    let [whole, parts] = [summary(&policy, &[&whole]), summary(&policy, &[&wanting, &others])];
    close(expected_cost(&parts, "router"), expected_cost(&whole, "router"), 1e-12, "in two batches");
    close(expected_cost(&whole, "router"), expected_cost(&whole, "always-predict"), 1e-12, "nothing is routed");
}

#[test]
fn restored_batches_have_the_expected_cost_of_their_moves() {
    let (table, queries) = (world(1_500, 5, 10), world(400, 5, 11));
    for partition in [Partition::top_class(5), Partition::forest(20)] {
        let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap();
        let policy = Router::calibrate(&table, &partition).unwrap().policy(&task).unwrap();
        let mut batch = policy.decide_batch(&queries).unwrap();
        batch.keep_available(&policy, &AvailableRoutes::all().without(&task, "expert").unwrap());
        let restored = policy.restore(batch.store()).unwrap();
        let [own, restored] = [batch, restored].map(|batch| summary(&policy, &[&batch]));
        assert!(own.capped.is_some());
        close(expected_cost(&restored, "router"), expected_cost(&own, "router"), 1e-12, "expected cost");
        let [own, restored] = [own, restored].map(|summary| summary.capped.unwrap().cost);
        close(restored, own, 1e-12, "cost of the missing route");
    }
}
