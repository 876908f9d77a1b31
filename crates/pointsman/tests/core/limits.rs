//! Budgets and target losses: the share is exact on the calibration rows, share and loss hold on other rows within sampling error, at least
//! cost.

use pointsman::task::Ties;
use pointsman::{Action, CellId, Decision, Limit, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{Rng, close, position};

/// The confidence determines the uncertainty of a query, the class whether an oracle would be better.
fn draw(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let p = 0.5 + 0.5 * rng.uniform();
        let yes = rng.uniform() < 0.5;
        let f = if yes { [1.0 - p, p] } else { [p, 1.0 - p] };
        // Half of the queries of one class have a certain truth that the model does not see.
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
fn budgets_are_kept() {
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
            // Shares of cells and random draws of 20,000 rows: five standard errors.
            let error = 5.0 * (0.25_f64 / 20_000.0 + 0.25 / 4_000.0).sqrt();
            let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
            close(*evaluation.shares.get("route:expert").unwrap(), promised, error, "expected share of held-out rows");
            let decisions = policy.decide_batch(&held_out).unwrap();
            let is_routed = |row: usize| matches!(policy.row(&decisions, row).action(), Action::Route(_));
            close(routed((0..held_out.rows()).map(is_routed)), promised, error, "share of held-out rows");
            if task.abstain_price().is_none() {
                let cost = *evaluation.mean_cost.get("router").unwrap();
                assert!(cost <= before + 1e-9, "more room costs more: {cost} after {before}");
                before = cost;
            }
        }
    }
}

#[test]
fn equal_queries_get_equal_actions() {
    let router = router();
    let policy = router.policy(&task().budget(0.23).unwrap()).unwrap();
    let part = policy.surcharge().unwrap().marginal;
    assert!((0.05..0.95).contains(&part), "{part}");
    let table = draw(5_000, 3);
    let decisions = policy.decide_batch(&table).unwrap();
    let (mut at_margin, mut drawn) = (0, 0);
    for row in 0..table.rows() {
        let decision = policy.row(&decisions, row);
        let single: Vec<f32> = table.prediction(row).iter().map(|x| *x as f32).collect();
        let again = policy.decide(&single).unwrap();
        assert_eq!(again.action(), decision.action(), "row {row}");
        assert_eq!(policy.decide(&table.prediction(row)).unwrap().action(), decision.action());
        if decision.marginal_share().is_some() {
            at_margin += 1;
            drawn += u32::from(matches!(decision.action(), Action::Route(_)));
        }
    }
    assert!(at_margin > 100);
    close(f64::from(drawn) / f64::from(at_margin), part, 5.0 * (0.25 / f64::from(at_margin)).sqrt(), "share drawn");
    // Batches in single precision use the same random draws.
    let singles: Vec<f32> =
        (0..table.rows()).flat_map(|row| table.prediction(row).to_vec()).map(|x| x as f32).collect();
    let batch = policy.decide_many(&singles, &[]).unwrap();
    let actions = |decisions| policy.values(decisions, |decision| decision.code());
    assert_eq!(actions(&batch), actions(&decisions));
}

/// Draws are part of a batch; a policy without the limit ignores them.
#[test]
fn batches_of_a_limited_policy_can_be_read_without_the_limit() {
    let router = router();
    let limited = router.policy(&task().budget(0.23).unwrap()).unwrap();
    let (free, table) = (limited.reprice(&task()).unwrap(), draw(2_000, 3));
    let (with, without) = (limited.decide_batch(&table).unwrap(), free.decide_batch(&table).unwrap());
    for row in 0..table.rows() {
        assert_eq!(free.row(&with, row).code(), free.row(&without, row).code());
    }
}

#[test]
fn draws_by_id_differ_for_queries_of_equal_content() {
    let router = router();
    let policy = router.policy(&task().budget(0.23).unwrap()).unwrap();
    let (table, ids) = (draw(5_000, 3), |n: usize| (0..n).map(|id| format!("query {id}")).collect::<Vec<_>>());
    let at_margin = |row: &usize| policy.decide(&table.prediction(*row)).unwrap().marginal_share().is_some();
    let row = (0..table.rows()).find(at_margin).unwrap();
    let mut decisions = policy.decide_many(&table.prediction(row).repeat(400), &[]).unwrap();
    decisions.draw_by_ids(&policy, &ids(400));
    let actions = policy.values(&decisions, |decision| decision.code());
    let share = routed(actions.iter().map(|code| *code == Some(1)));
    let part = policy.surcharge().unwrap().marginal;
    close(share, part, 5.0 * (0.25_f64 / 400.0).sqrt(), "share of 400 ids");
    // The same id draws the same, and queries off the margin are not drawn.
    decisions.draw_by_ids(&policy, &ids(400));
    assert_eq!(policy.values(&decisions, |decision| decision.code()), actions);
    let off = (0..table.rows()).find(|row| !at_margin(row)).unwrap();
    let mut alone = policy.decide_many(&table.prediction(off), &[]).unwrap();
    let before = policy.row(&alone, 0).code();
    alone.draw_by_ids(&policy, &ids(1));
    assert_eq!(policy.row(&alone, 0).code(), before);
}

#[test]
fn policy_within_the_budget_has_least_cost() {
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
            // A random policy, scaled to the budget.
            let parts: Vec<f64> = cells.iter().map(|_| rng.uniform().powi(4)).collect();
            let share: f64 = parts.iter().zip(&cells).map(|(part, cell)| part * cell.0).sum();
            let scale = (budget / share).min(1.0);
            let other: f64 = parts.iter().zip(&cells).map(|(part, cell)| scale * part * cell.0 * cell.1).sum();
            assert!(other <= saved + 1e-12, "{other} > {saved}");
        }
    }
}

#[test]
fn target_loss_is_met_with_least_routing() {
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
        // Brier losses are within [0, 2], with a standard deviation below 0.5.
        close(loss, found.loss, 5.0 * 0.5 * (1.0_f64 / 20_000.0 + 1.0 / 4_000.0).sqrt(), "held-out loss");
        assert!((0.0..1e3).contains(&policy.priced_task().routes()[0].price()));
    }
    // The least reachable loss is accepted; it may be below that of always routing if held-out rows show that routing the last ones saves nothing.
    let error = router.policy(&task().target_loss(0.9 * floor).unwrap()).unwrap_err().to_string();
    assert!(nearest(&error) <= floor + 1e-6, "{error}");
    let granted = router.policy(&task().target_loss(nearest(&error)).unwrap()).unwrap();
    close(granted.surcharge().unwrap().loss, nearest(&error), 2e-6, "the least that can be asked for");
}

#[test]
fn invalid_limits_are_refused() {
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
    // Repricing keeps the limit and finds its price again.
    let policy = router().policy(&task().budget(0.2).unwrap()).unwrap();
    let dearer = policy.reprice(&task().reprice_route("expert", 0.05).unwrap().budget(0.2).unwrap()).unwrap();
    let (a, b) = (policy.surcharge().unwrap(), dearer.surcharge().unwrap());
    close(a.price - b.price, 0.03, 1e-12, "surcharge");
    close(a.share, b.share, 1e-12, "share");
}

#[test]
fn undetermined_cells_are_not_routed_under_a_limit() {
    let table = Table::new(["no", "yes"], vec![0.5; 8]).unwrap();
    let table = table.with_votes(vec![1, 0, 0, 1, 0, 1, 1, 0]).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(1)).unwrap();
    let policy = router.policy(&task().budget(0.5).unwrap()).unwrap();
    assert_eq!(*policy.shares().get("route:expert").unwrap(), 0.0);
    assert_eq!(policy.decide(&[0.5, 0.5]).unwrap().action(), Action::Undetermined);
}

/// Eight features, two of them informative; few labels.
pub(crate) fn wide(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut truth, mut features) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let x: Vec<f64> = (0..8).map(|_| rng.uniform()).collect();
        let f = 0.2 + 0.6 * x[0];
        let sure = 0.5 + 0.45 * (2.0 * x[1] - 1.0);
        let p = (sure + 0.3 * (x[0] - 0.5) + 0.25 * (6.0 * x[2]).sin() * x[3]).clamp(0.02, 0.98);
        probs.extend([f, 1.0 - f]);
        votes.extend(rng.votes(&[p, 1.0 - p], 3));
        truth.extend([p, 1.0 - p]);
        features.extend(x);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap().with_truth(truth).unwrap();
    table.with_features((0..8).map(|i| format!("x{i}")).collect::<Vec<_>>(), features).unwrap()
}

/// The loss that an error message names.
pub(crate) fn nearest(error: &str) -> f64 {
    error.split("leaves ").nth(1).and_then(|rest| rest.split(';').next()).unwrap().parse().unwrap()
}

/// The decisions of all cells with rows.
fn cells(policy: &Policy) -> impl Iterator<Item = Decision<'_>> {
    (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)))
}

/// The share of the calibration rows that is routed.
fn routed_share(policy: &Policy) -> f64 {
    let (mut all, mut share) = (0.0, 0.0);
    for decision in cells(policy) {
        let weight = decision.estimate().weight;
        let part = decision.marginal_share().unwrap_or(1.0);
        for (action, part) in [(Some(decision.action()), part), (decision.otherwise(), 1.0 - part)] {
            let Some(at) = action.and_then(|action| position(policy, action)) else { continue };
            let route = policy.task().routes().get(at.wrapping_sub(1));
            share += weight * part * f64::from(u8::from(route.is_some()));
        }
        all += weight;
    }
    share / all
}

/// Checks that the limit is kept, and that the actions are best by the priced costs of all actions.
fn check(policy: &Policy, what: &str) {
    let found = policy.surcharge().unwrap();
    close(routed_share(policy), found.share, 1e-9, &format!("share, {what}"));
    // The loss is not that of the rows that decide; `promises` tests it on new rows.
    close(policy.promise().unwrap().loss, found.loss, 1e-12, &format!("loss, {what}"));
    let priced = policy.priced_task();
    let prices = policy.task().routes().iter().zip(priced.routes());
    let extra: Vec<f64> = prices.map(|(own, priced)| priced.price() - own.price()).collect();
    for decision in cells(policy) {
        let cost = |at: usize| decision.costs()[at] + extra.get(at.wrapping_sub(1)).unwrap_or(&0.0);
        let taken = position(policy, decision.action()).unwrap();
        let others = (0..decision.costs().len()).filter(|&at| at != taken);
        let lead = others.map(|at| cost(at) - cost(taken)).fold(f64::INFINITY, f64::min);
        close(decision.margin(), lead.max(0.0), 1e-9, &format!("margin, {what}"));
        // Except for a budget of zero, whose price is only as high as necessary.
        assert!(lead > -1e-9 || found.share == 0.0, "{what}: {lead}");
        assert!(policy.priced_task().routes().iter().all(|route| route.price() >= 0.0));
    }
}

/// A cheap poor oracle and an expensive good one.
pub(crate) fn two_routes(loss: Loss) -> Task {
    let one: Oracle = "panel:m=1,aggregate=plurality".parse().unwrap();
    Task::new(loss).route("cheap", one, 0.0).unwrap().route("expert", Oracle::bayes(), 0.5).unwrap()
}

#[test]
fn target_loss_with_several_routes_is_met_with_least_routing() {
    let router = router();
    for loss in [Loss::zero_one(), Loss::fn_fp(1.0, 3.0).unwrap()] {
        for task in [two_routes(loss.clone()), two_routes(loss.clone()).abstain(0.3).unwrap()] {
            // A query goes to the oracle with the smallest loss, as if all were free.
            let free = task.clone().reprice_route("expert", 0.0).unwrap();
            let unlimited = router.policy(&free).unwrap();
            let within =
                |share: f64| unlimited.reprice(&free.clone().budget(share).unwrap()).unwrap().surcharge().unwrap();
            let (base, floor) = (within(0.0).loss, within(1.0).loss);
            for part in [0.0, 0.3, 0.7, 0.9] {
                let target = base + part * (floor - base);
                let what = format!("{loss} to {target}");
                let policy = unlimited.reprice(&task.clone().target_loss(target).unwrap()).unwrap();
                let found = policy.surcharge().unwrap();
                close(found.loss, target, 1e-7, &what);
                close(within(found.share).loss, target, 1e-7, &what);
                for less in [0.999, 0.9, 0.5].map(|part| part * found.share).into_iter().filter(|_| found.share > 0.0) {
                    assert!(within(less).loss > target, "{what}: routing {less} is enough");
                }
                check(&policy, &what);
            }
            let error = unlimited.reprice(&task.clone().target_loss(0.8 * floor).unwrap()).unwrap_err().to_string();
            assert!(nearest(&error) <= floor + 1e-6, "{error}");
            assert!(router.policy(&task.target_loss(nearest(&error)).unwrap()).is_ok(), "{error}");
        }
    }
}

#[test]
fn unreachable_targets_with_two_actions_are_left_out() {
    let (router, held_out) = (router(), draw(2_000, 5));
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.0).unwrap().abstain(0.1).unwrap();
    let policy = router.policy(&task.target_loss(0.09).unwrap()).unwrap();
    let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
    assert!(evaluation.two_way.get("predict/route").is_none() && evaluation.two_way.get("predict/abstain").is_some());
}

#[test]
fn budget_with_several_routes_is_kept() {
    let router = router();
    let two = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.02).unwrap();
    let two = two.route("panel", "panel:m=3,aggregate=mean".parse().unwrap(), 0.0).unwrap();
    for task in [two.clone(), two.abstain(0.35).unwrap(), two_routes(Loss::zero_one())] {
        for budget in [0.0, 0.03, 0.1, 0.25, 0.6, 1.0] {
            check(&router.policy(&task.clone().budget(budget).unwrap()).unwrap(), &format!("budget {budget}"));
        }
    }
    // Of routes with equal loss, a target loss takes the cheaper one.
    let twins = task().route("friend", Oracle::bayes(), 0.01).unwrap().target_loss(0.2).unwrap();
    let policy = router.policy(&twins).unwrap();
    assert!(*policy.shares().get("route:expert").unwrap() == 0.0 && policy.surcharge().unwrap().share > 0.1);
}

#[test]
fn budgets_that_do_not_bind_change_nothing() {
    // Labels and model are certain, so free routing is a tie, and so is free abstention.
    let sure = Table::new(["no", "yes"], vec![1.0, 0.0, 0.9, 0.1, 0.6, 0.4]).unwrap();
    let sure = Router::calibrate(&sure.with_votes(vec![9, 0, 9, 0, 5, 4]).unwrap(), &Partition::confidence(3)).unwrap();
    for router in [router(), sure] {
        for price in [0.0, 0.02] {
            let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), price).unwrap();
            for task in [task.clone(), task.clone().abstain(0.4).unwrap(), task.abstain(0.0).unwrap()] {
                for ties in [Ties::Frugal, Ties::Paper] {
                    let task = task.clone().ties(ties);
                    let free = router.policy(&task).unwrap();
                    let share = *free.shares().get("route:expert").unwrap();
                    for budget in [share, 1.0] {
                        let policy = free.reprice(&task.clone().budget(budget).unwrap()).unwrap();
                        let found = policy.surcharge().unwrap();
                        close(found.share, share, 1e-12, "share");
                        for (a, b) in cells(&free).zip(cells(&policy)) {
                            assert_eq!((a.action(), b.marginal_share()), (b.action(), None), "{ties} {price} {budget}");
                            close(b.margin(), a.margin(), if found.price == 0.0 { 1e-12 } else { f64::MAX }, "margin");
                        }
                    }
                    check(&free.reprice(&task.clone().budget(share / 3.0).unwrap()).unwrap(), "a third");
                }
            }
        }
    }
}
