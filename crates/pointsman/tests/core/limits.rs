//! Budgets and target losses: the promise is kept on the calibration rows exactly, on other rows within sampling error, and at
//! the least cost.

use pointsman::{Action, Limit, Loss, Oracle, Partition, Router, Table, Task, Verdict};

use crate::world::{Rng, close};

/// Confidence says how uncertain a query is, the class whether an oracle would know better.
fn draw(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let p = 0.5 + 0.5 * rng.uniform();
        let yes = rng.uniform() < 0.5;
        let f = if yes { [1.0 - p, p] } else { [p, 1.0 - p] };
        // Behind half the queries of one class the world is certain, and the model does not see it.
        let real = if yes { if rng.uniform() < f[1] { [0.02, 0.98] } else { [0.98, 0.02] } } else { f };
        probs.extend(f);
        votes.extend(rng.votes(&real, 8));
        truth.extend(real);
    }
    Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap().with_truth(truth).unwrap()
}

fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.02).unwrap()
}

fn router() -> Router {
    Router::calibrate(&draw(4_000, 1), &Partition::top_class(10)).unwrap()
}

fn routed(actions: impl Iterator<Item = bool>) -> f64 {
    let all: Vec<bool> = actions.collect();
    all.iter().filter(|&&routed| routed).count() as f64 / all.len() as f64
}

#[test]
fn a_budget_is_kept() {
    let (router, held_out) = (router(), draw(20_000, 2));
    let free = *router.policy(&task()).unwrap().shares().get("route:expert").unwrap();
    assert!((0.3..0.9).contains(&free), "{free}");
    let mut before = f64::INFINITY;
    for budget in [0.0, 0.013, 0.1, 0.2, 0.37, free, 1.0] {
        for task in [task(), task().abstain(0.4).unwrap()] {
            let free = *router.policy(&task).unwrap().shares().get("route:expert").unwrap();
            let policy = router.policy(&task.clone().budget(budget).unwrap()).unwrap();
            let promised = *policy.shares().get("route:expert").unwrap();
            close(promised, budget.min(free), 1e-9, "promised share");
            let found = policy.surcharge().unwrap();
            close(found.share, promised, 1e-9, "reported share");
            assert!(found.price >= 0.0, "{found:?}");
            // Cell shares and lots of 20,000 rows: five standard errors.
            let error = 5.0 * (0.25_f64 / 20_000.0 + 0.25 / 4_000.0).sqrt();
            let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
            close(*evaluation.shares.get("route:expert").unwrap(), promised, error, "expected share of held-out rows");
            let mut verdicts = vec![Verdict::default(); held_out.rows()];
            policy.decide_table(&held_out, &mut verdicts).unwrap();
            let is_routed = |verdict: &Verdict| matches!(policy.decision(*verdict).action(), Action::Route(_));
            close(routed(verdicts.iter().map(is_routed)), promised, error, "share of held-out rows");
            if task.abstain_price().is_none() {
                let cost = *evaluation.mean_cost.get("router").unwrap();
                assert!(cost <= before + 1e-9, "more room costs more: {cost} after {before}");
                before = cost;
            }
        }
    }
}

#[test]
fn the_same_query_gets_the_same_action() {
    let router = router();
    let policy = router.policy(&task().budget(0.23).unwrap()).unwrap();
    let part = policy.surcharge().unwrap().marginal;
    assert!((0.05..0.95).contains(&part), "{part}");
    let table = draw(5_000, 3);
    let mut verdicts = vec![Verdict::default(); table.rows()];
    policy.decide_table(&table, &mut verdicts).unwrap();
    let (mut at_margin, mut drawn) = (0, 0);
    for (row, verdict) in verdicts.iter().enumerate() {
        let decision = policy.decision(*verdict);
        let single: Vec<f32> = table.prediction(row).iter().map(|x| *x as f32).collect();
        let again = policy.decide(&single).unwrap();
        assert_eq!(again.action(), decision.action(), "row {row}");
        assert_eq!(policy.decide(table.prediction(row)).unwrap().action(), decision.action());
        if let Some(part) = decision.lots() {
            at_margin += 1;
            drawn += u32::from(matches!(decision.action(), Action::Route(_)));
            // By id, queries of the same content are drawn one by one, each always alike.
            let named: Vec<_> = (0..400).map(|id| policy.draw_by_id(*verdict, &format!("query {id}"))).collect();
            let share = routed(named.iter().map(|v| matches!(policy.decision(*v).action(), Action::Route(_))));
            close(share, part, 5.0 * (0.25_f64 / 400.0).sqrt(), "share of 400 ids");
            assert_eq!(policy.draw_by_id(named[7], "query 7"), named[7]);
        } else {
            assert_eq!(policy.draw_by_id(*verdict, "any"), *verdict);
        }
    }
    assert!(at_margin > 100);
    close(f64::from(drawn) / f64::from(at_margin), part, 5.0 * (0.25 / f64::from(at_margin)).sqrt(), "share drawn");
    // Batches in single precision draw the same lots.
    let singles: Vec<f32> =
        (0..table.rows()).flat_map(|row| table.prediction(row).to_vec()).map(|x| x as f32).collect();
    let mut batch = vec![Verdict::default(); table.rows()];
    policy.decide_rows(&singles, &[], &mut batch).unwrap();
    assert_eq!(batch, verdicts);
}

#[test]
fn no_other_policy_within_the_budget_costs_less() {
    let router = router();
    let (free, mut rng) = (router.policy(&task()).unwrap(), Rng::new(9));
    let cells: Vec<(f64, f64)> = (0..router.cells().count())
        .map(|cell| free.cell(pointsman::CellId(cell as u32)).unwrap())
        .map(|d| (d.estimate().weight / 4_000.0, d.costs()[0] - d.costs()[1]))
        .collect();
    for budget in [0.07, 0.3] {
        let policy = router.policy(&task().budget(budget).unwrap()).unwrap();
        let found = policy.surcharge().unwrap();
        let saved: f64 = cells
            .iter()
            .map(|(share, gap)| {
                let over = gap - found.price;
                let part = if over > 1e-12 {
                    1.0
                } else if over < -1e-12 {
                    0.0
                } else {
                    found.marginal
                };
                part * share * gap
            })
            .sum();
        for _ in 0..2_000 {
            // A random policy of parts, scaled into the budget.
            let parts: Vec<f64> = cells.iter().map(|_| rng.uniform().powi(4)).collect();
            let share: f64 = parts.iter().zip(&cells).map(|(part, cell)| part * cell.0).sum();
            let scale = (budget / share).min(1.0);
            let other: f64 = parts.iter().zip(&cells).map(|(part, cell)| scale * part * cell.0 * cell.1).sum();
            assert!(other <= saved + 1e-12, "{other} > {saved}");
        }
    }
}

#[test]
fn a_target_loss_is_met_with_no_more_routing_than_needed() {
    let (router, held_out) = (router(), draw(20_000, 4));
    let always = router.policy(&task().budget(0.0).unwrap()).unwrap().surcharge().unwrap().loss;
    let floor = router.policy(&task().reprice_route("expert", 0.0).unwrap().budget(1.0).unwrap()).unwrap();
    let floor = floor.surcharge().unwrap().loss;
    let mut before = 1.1;
    for target in [floor + 1e-6, 0.5 * (floor + always), 0.2 * floor + 0.8 * always, always, always + 1.0] {
        let policy = router.policy(&task().target_loss(target).unwrap()).unwrap();
        let found = policy.surcharge().unwrap();
        close(found.loss, target.min(always), 1e-9, "promised loss");
        let share = *policy.shares().get("route:expert").unwrap();
        close(share, found.share, 1e-9, "promised share");
        assert!(share < before, "{share} after {before}");
        before = share + 1e-12;
        let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
        let share = *evaluation.shares.get("route:expert").unwrap();
        let loss = *evaluation.mean_cost.get("router").unwrap() - 0.02 * share;
        // Brier losses within [0, 2], their spread below 0.5.
        close(loss, found.loss, 5.0 * 0.5 * (1.0_f64 / 20_000.0 + 1.0 / 4_000.0).sqrt(), "held-out loss");
        assert!((0.0..1e3).contains(&policy.priced_task().routes()[0].price()));
    }
    let error = router.policy(&task().target_loss(0.9 * floor).unwrap()).unwrap_err().to_string();
    assert!(error.contains(&format!("{floor:.6}")), "{error}");
}

#[test]
fn limits_are_refused_where_they_make_no_sense() {
    let bare = Task::new(Loss::brier()).abstain(0.3).unwrap();
    assert!(router().policy(&bare.budget(0.2).unwrap()).unwrap_err().to_string().contains("route"));
    for share in [-0.1, 1.01, f64::NAN, f64::INFINITY] {
        assert!(task().budget(share).unwrap_err().to_string().contains("from 0 to 1"));
    }
    for loss in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(task().target_loss(loss).is_err());
    }
    assert!(task().budget(0.1).unwrap().target_loss(0.1).is_err());
    assert_eq!(task().budget(0.1).unwrap().budget(0.3).unwrap().limit(), Some(Limit::Budget(0.3)));
    // Repricing keeps the limit and finds the price anew.
    let policy = router().policy(&task().budget(0.2).unwrap()).unwrap();
    let dearer = policy.reprice(&task().reprice_route("expert", 0.05).unwrap().budget(0.2).unwrap()).unwrap();
    let (a, b) = (policy.surcharge().unwrap(), dearer.surcharge().unwrap());
    close(a.price - b.price, 0.03, 1e-12, "surcharge");
    close(a.share, b.share, 1e-12, "share");
}

#[test]
fn where_labels_give_only_bounds_nothing_unsure_is_routed() {
    let table = Table::new(["no", "yes"], vec![0.5; 8]).unwrap();
    let table = table.with_votes(vec![1, 0, 0, 1, 0, 1, 1, 0]).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(1)).unwrap();
    let policy = router.policy(&task().budget(0.5).unwrap()).unwrap();
    assert_eq!(*policy.shares().get("route:expert").unwrap(), 0.0);
    assert_eq!(policy.decide(&[0.5, 0.5]).unwrap().action(), Action::Undetermined);
}
