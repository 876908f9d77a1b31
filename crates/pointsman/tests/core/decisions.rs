//! Decisions take the cheapest action: the paper's tree, ties, margins, prices, batches and errors.

use pointsman::task::MAX_ROUTES;
use pointsman::task::Ties;
use pointsman::{Action, CellId, Error, Estimator, Loss, Oracle, Partition, Policy, Router, Table, Task};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{Rng, any_loss, dist, position, said, table};

/// A few rows of the same number of classes, with two labels or more each.
fn rows(classes: usize) -> impl Strategy<Value = Table> {
    vec((dist(classes), vec(0_u32..4, classes)), 1..20).prop_map(move |rows| {
        let (probs, mut votes): (Vec<_>, Vec<Vec<u32>>) = rows.into_iter().unzip();
        votes.iter_mut().filter(|v| v.iter().sum::<u32>() < 2).for_each(|v| v[0] += 2);
        table(classes, &probs, &votes)
    })
}

fn world() -> impl Strategy<Value = (Table, Loss)> {
    (2_usize..5).prop_flat_map(|c| (rows(c), any_loss(c)))
}

/// A price relative to the price at which estimated costs tie.
#[derive(Debug, Clone, Copy)]
enum Price {
    Free(f64),
    Tie,
}

fn price() -> impl Strategy<Value = Price> {
    prop_oneof![(0.0..1.5).prop_map(Price::Free), Just(Price::Free(0.0)), Just(Price::Tie)]
}

/// The decision tree of the paper's proposition; `at_least` is ≥ up to rounding.
fn tree(il: f64, rl: f64, alpha: f64, beta: f64, at_least: impl Fn(f64, f64) -> bool) -> &'static str {
    match at_least(rl, alpha) {
        true if at_least(il, beta - alpha) => "abstain",
        true => "route:oracle",
        false if at_least(il + rl, beta) => "abstain",
        false => "predict",
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn cheapest_action_equals_the_papers_tree((table, loss) in world(), alpha in price(), beta in price(), plugin: bool) {
        let router = Router::calibrate(&table, &Partition::top_class(2)).unwrap();
        let estimator = if plugin { Estimator::Plugin } else { Estimator::Shrink };
        let bare = router.policy(&Task::new(loss.clone()).estimator(estimator).ties(Ties::Paper)).unwrap();
        for cell in (0..router.cells().count() as u32).map(CellId) {
            let Some(known) = bare.cell(cell) else { continue };
            let (il, tl) = (known.irreducible().unwrap(), known.total());
            let rl = tl - il;
            let alpha = match alpha {
                Price::Free(x) => x * loss.bound(),
                Price::Tie => rl.max(0.0),
            };
            let beta = match beta {
                Price::Free(x) => x * loss.bound(),
                Price::Tie => tl.min(il + alpha),
            };
            let task = bare.task().clone().route("oracle", Oracle::bayes(), alpha).unwrap().abstain(beta).unwrap();
            let rounding = 1e-12 * loss.bound().max(alpha).max(beta);
            let wanted = tree(il, rl, alpha, beta, |a, b| a >= b - rounding);
            let policy = bare.reprice(&task).unwrap();
            prop_assert_eq!(policy.cell(cell).unwrap().action().to_string(), wanted, "{} {:?}", loss, [il, rl, alpha, beta]);
        }
    }

    #[test]
    fn action_costs_least_and_margin_is_to_the_next_best(
        (table, loss) in world(), prices in vec(0.0..1.0, 0..4), beta in proptest::option::of(0.0..1.0), paper: bool
    ) {
        let mut task = Task::new(loss.clone()).ties(if paper { Ties::Paper } else { Ties::Frugal });
        for (i, price) in prices.iter().enumerate() {
            task = task.route(format!("r{i}"), Oracle::bayes(), price * loss.bound()).unwrap();
        }
        if let Some(beta) = beta {
            task = task.abstain(beta * loss.bound()).unwrap();
        }
        let policy = Router::calibrate(&table, &Partition::top_class(2)).unwrap().policy(&task).unwrap();
        for row in 0..table.rows() {
            let decision = policy.decide(&table.prediction(row)).unwrap();
            let costs = decision.costs();
            prop_assert_eq!(costs.len(), 1 + prices.len() + usize::from(beta.is_some()));
            prop_assert_eq!(costs, decision.costs_high());
            // Each cost equals its definition.
            prop_assert_eq!(costs[0], decision.total());
            for (cost, route) in costs[1..].iter().zip(task.routes()) {
                prop_assert_eq!(*cost, decision.irreducible().unwrap() + route.price());
            }
            let chosen = position(&policy, decision.action()).unwrap();
            let mut sorted = costs.to_vec();
            sorted.sort_by(f64::total_cmp);
            let tie = 1e-12 * loss.bound();
            prop_assert!(costs[chosen] <= sorted[0] + tie);
            let margin = sorted.get(1).map_or(f64::INFINITY, |second| second - sorted[0]);
            if margin.is_infinite() {
                prop_assert_eq!(decision.margin(), margin);
            } else {
                prop_assert!((decision.margin() - margin).abs() <= 2.0 * tie);
            }
            // Among tied actions the rule decides: by default the first, in the paper abstaining first and predicting last.
            let rival = |a: usize| (0..costs.len()).filter(|b| *b != a).map(|b| costs[b]).fold(f64::INFINITY, f64::min);
            let tied: Vec<usize> = (0..costs.len()).filter(|&a| costs[a] <= rival(a) + tie).collect();
            let wanted = if !paper {
                tied[0]
            } else if beta.is_some() && tied.contains(&(costs.len() - 1)) {
                costs.len() - 1
            } else {
                tied.iter().copied().find(|&a| a > 0).unwrap_or(0)
            };
            prop_assert_eq!(chosen, wanted, "{:?}", costs);
        }
    }

    #[test]
    fn repricing_equals_compiling_again(
        (table, loss) in world(), old in (0.0..1.0, 0.0..1.0), new in vec(0.0..1.0, 0..3), beta in proptest::option::of(0.0..1.0),
    ) {
        let router = Router::calibrate(&table, &Partition::top_class(3)).unwrap();
        let first = Task::new(loss.clone()).route("a", Oracle::bayes(), old.0).unwrap().abstain(old.1).unwrap();
        let mut task = Task::new(loss).ties(Ties::Paper);
        for (i, price) in new.into_iter().enumerate() {
            task = task.route(format!("r{i}"), Oracle::bayes(), price).unwrap();
        }
        if let Some(beta) = beta {
            task = task.abstain(beta).unwrap();
        }
        let (repriced, fresh) = (router.policy(&first).unwrap().reprice(&task).unwrap(), router.policy(&task).unwrap());
        prop_assert_eq!(repriced.task(), fresh.task());
        for cell in (0..router.cells().count() as u32).map(CellId) {
            prop_assert_eq!(repriced.cell(cell).map(said), fresh.cell(cell).map(said));
        }
        for row in 0..table.rows() {
            prop_assert_eq!(
                said(repriced.decide(&table.prediction(row)).unwrap()),
                said(fresh.decide(&table.prediction(row)).unwrap())
            );
        }
    }
}

/// Two classes and two cells of known estimates: below confidence 0.7 predicting costs 0.625, above 0.125.
fn fixed() -> Router {
    let probs = [vec![0.75, 0.25], vec![0.25, 0.75]];
    Router::calibrate(&table(2, &probs, &[vec![2, 2], vec![4, 0]]), &Partition::top_class(1)).unwrap()
}

fn fixed_policy(routes: &[(&str, f64)], abstain: Option<f64>, ties: Ties) -> Policy {
    let mut task = Task::new(Loss::brier()).estimator(Estimator::Plugin).ties(ties);
    for (name, price) in routes {
        task = task.route(*name, Oracle::bayes(), *price).unwrap();
    }
    if let Some(price) = abstain {
        task = task.abstain(price).unwrap();
    }
    fixed().policy(&task).unwrap()
}

/// The first cell has irreducible loss 0.5 and total loss 0.625, all exact in binary.
#[test]
fn ties_avoid_payments_by_default() {
    let first = |routes: &[(&str, f64)], abstain, ties| {
        fixed_policy(routes, abstain, ties).cell(CellId(0)).unwrap().action().to_string()
    };
    let both =
        |routes: &[(&str, f64)], abstain| [first(routes, abstain, Ties::Frugal), first(routes, abstain, Ties::Paper)];
    assert_eq!(both(&[("a", 0.125)], None), ["predict", "route:a"]);
    assert_eq!(both(&[], Some(0.625)), ["predict", "abstain"]);
    assert_eq!(both(&[("a", 0.125)], Some(0.625)), ["predict", "abstain"]);
    assert_eq!(both(&[("a", 0.0625)], Some(0.5625)), ["route:a", "abstain"]);
    assert_eq!(both(&[("a", 0.0625), ("b", 0.0625)], None), ["route:a", "route:a"]);
    assert_eq!(both(&[("b", 0.0625), ("a", 0.0625)], Some(1.0)), ["route:b", "route:b"]);
    assert_eq!(both(&[("a", 0.2), ("b", 0.125)], None), ["predict", "route:b"]);
    assert_eq!(both(&[], None), ["predict", "predict"]);
    // A free oracle on a noiseless cell saves nothing, so it is not used.
    let noiseless = table(2, &[vec![1.0, 0.0]], &[vec![3, 0]]);
    let router = Router::calibrate(&noiseless, &Partition::top_class(1)).unwrap();
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.0).unwrap();
    assert_eq!(router.policy(&task).unwrap().cell(CellId(0)).unwrap().action(), Action::Predict);
}

#[test]
fn cheapest_of_several_routes_is_taken() {
    let policy = fixed_policy(&[("dear", 0.5), ("cheap", 0.25), ("middling", 0.3)], Some(0.6), Ties::Frugal);
    let decision = policy.cell(CellId(1)).unwrap();
    assert_eq!(decision.costs(), [1.125, 0.5, 0.25, 0.3, 0.6]);
    assert_eq!((decision.action(), decision.margin()), (Action::Route("cheap"), 0.3 - 0.25));
    let decision = policy.cell(CellId(0)).unwrap();
    assert_eq!(decision.costs(), [0.625, 1.0, 0.75, 0.8, 0.6]);
    assert_eq!((decision.action(), decision.margin()), (Action::Abstain, 0.625 - 0.6));
    assert_eq!(fixed_policy(&[], None, Ties::Frugal).cell(CellId(0)).unwrap().margin(), f64::INFINITY);
    assert!(policy.cell(CellId(2)).is_none());
}

#[test]
fn queries_batches_and_single_precision_agree() {
    let mut rng = Rng::new(5);
    // Multiples of 1/64: exact in both precisions.
    let grid = |rng: &mut Rng| {
        let p = peaked(rng, 3);
        let counts = rng.votes(&p, 64);
        counts.iter().map(|&n| f64::from(n) / 64.0).collect::<Vec<_>>()
    };
    let probs: Vec<Vec<f64>> = (0..300).map(|_| grid(&mut rng)).collect();
    let votes: Vec<Vec<u32>> = probs.iter().map(|p| rng.votes(p, 3)).collect();
    let features: Vec<f64> = (0..300).map(|_| rng.uniform()).collect();
    let table = table(3, &probs, &votes).with_features(["size"], features).unwrap();
    let queries: Vec<Vec<f64>> = (0..500).map(|_| grid(&mut rng)).collect();
    let sizes: Vec<f64> = (0..500).map(|_| rng.uniform()).collect();
    let task = Task::new(Loss::cross_entropy()).route("a", Oracle::bayes(), 0.1).unwrap().abstain(0.7).unwrap();
    for partition in ["top-class:4", "confidence:7", "level-sets", "features:x_size=5", "top-class:2*features:x_size=3"]
    {
        let router = Router::calibrate(&table, &partition.parse().unwrap()).unwrap();
        let policy = router.policy(&task).unwrap();
        let width = policy.cells().features().len();
        let sizes: Vec<f64> = if width == 1 { sizes.clone() } else { Vec::new() };
        let double = queries.concat();
        let single: Vec<f32> = double.iter().map(|&x| x as f32).collect();
        let out = policy.decide_many(&double, &sizes).unwrap();
        let out_single = policy.decide_many(&single, &sizes).unwrap();
        for row in 0..500 {
            let features = &sizes[row * width..(row + 1) * width];
            let batch = said(policy.row(&out, row));
            assert_eq!(batch, said(policy.row(&out_single, row)), "{partition}");
            assert_eq!(batch, said(policy.decide_with(&queries[row], features).unwrap()), "{partition}, row {row}");
            assert_eq!(batch, said(policy.decide_with(&single[row * 3..][..3], features).unwrap()), "{partition}");
        }
    }
}

/// A distribution with additional mass on one class, so that top classes and confidences vary.
fn peaked(rng: &mut Rng, classes: usize) -> Vec<f64> {
    let mut p = rng.dist(classes);
    let (top, pull) = (rng.below(classes), rng.uniform());
    p.iter_mut().for_each(|x| *x *= 1.0 - pull);
    p[top] += pull;
    p
}

#[test]
fn invalid_queries_are_refused_with_their_row() {
    let features = table(2, &[vec![0.75, 0.25]], &[vec![2, 2]]).with_features(["size"], vec![1.0]).unwrap();
    let router = Router::calibrate(&features, &"top-class:1*features:x_size=2".parse().unwrap()).unwrap();
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    let plain = fixed_policy(&[], None, Ties::Frugal);
    assert!(plain.decide(&[0.5, 0.5]).is_ok() && plain.decide(&[0.5_f32, 0.5]).is_ok());
    // Sums within 1e-3 of one pass, in either precision.
    assert!(plain.decide(&[0.5, 0.4991]).is_ok() && plain.decide(&[0.5_f32, 0.5009]).is_ok());
    for bad in [vec![], vec![1.0], vec![0.2, 0.3, 0.5]] {
        assert!(matches!(plain.decide(&bad), Err(Error::Table(_))), "{bad:?}");
    }
    let column = |result: pointsman::Result<()>| match result {
        Err(Error::Value { row, column, .. }) => (row, column),
        other => panic!("{other:?}"),
    };
    let cases: [([f64; 2], &str); 8] = [
        ([f64::NAN, 1.0], "prob_ant"),
        ([1.0, f64::NAN], "prob_bee"),
        ([1.0, f64::INFINITY], "prob_bee"),
        ([f64::NEG_INFINITY, 1.0], "prob_ant"),
        ([1.1, -0.1], "prob_bee"),
        ([1.0, -1e-9], "prob_bee"),
        ([0.5, 0.4], "prob_*"),
        ([0.0, 0.0], "prob_*"),
    ];
    for (bad, name) in cases {
        assert_eq!(column(plain.decide(&bad).map(drop)), (0, name.to_owned()), "{bad:?}");
        let single = bad.map(|x| x as f32);
        assert_eq!(column(plain.decide(&single).map(drop)), (0, name.to_owned()), "{bad:?}");
        let mut batch = [0.5; 10];
        batch[6..8].copy_from_slice(&bad);
        assert_eq!(column(plain.decide_many(&batch, &[]).map(drop)), (3, name.to_owned()), "{bad:?}");
    }
    assert!(matches!(policy.decide(&[0.5, 0.5]), Err(Error::Table(_))), "features are needed");
    assert!(policy.decide_with(&[0.5, 0.5], &[3.0]).is_ok());
    assert!(matches!(policy.decide_with(&[0.5, 0.5], &[3.0, 4.0]), Err(Error::Table(_))));
    assert!(matches!(plain.decide_with(&[0.5, 0.5], &[3.0]), Err(Error::Table(_))));
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(column(policy.decide_with(&[0.5, 0.5], &[bad]).map(drop)), (0, "x_size".to_owned()));
        assert_eq!(column(policy.decide_many(&[0.5; 4], &[1.0, bad]).map(drop)), (1, "x_size".to_owned()));
    }
    assert!(plain.decide_many(&[0.5; 3], &[]).is_err());
    assert!(plain.decide_many(&[0.5; 4], &[1.0]).is_err());
    assert!(plain.decide_many::<f64>(&[], &[]).unwrap().is_empty());
}

#[test]
fn invalid_routes_and_prices_are_refused() {
    let task = || Task::new(Loss::brier());
    for bad in [-1.0, -1e-300, f64::NAN, f64::INFINITY] {
        assert!(task().route("a", Oracle::bayes(), bad).is_err() && task().abstain(bad).is_err(), "{bad}");
        let priced = task().route("a", Oracle::bayes(), 1.0).unwrap();
        assert!(priced.reprice_route("a", bad).is_err(), "{bad}");
    }
    for name in ["", "a,b", "a=b", "a:b", "a\"b", "a\nb", "a\0b", &"x".repeat(65)] {
        assert!(task().route(name, Oracle::bayes(), 1.0).is_err(), "{name:?}");
    }
    for name in ["a", "large model", "Ärztin", &"x".repeat(64)] {
        assert!(task().route(name, Oracle::bayes(), 0.0).is_ok(), "{name:?}");
    }
    let one = task().route("a", Oracle::bayes(), 1.0).unwrap();
    assert!(one.clone().route("a", Oracle::bayes(), 2.0).unwrap_err().to_string().contains("two routes"));
    assert!(one.clone().reprice_route("b", 1.0).unwrap_err().to_string().contains("there are: a"));
    assert_eq!(one.reprice_route("a", 2.0).unwrap().routes()[0].price(), 2.0);
    assert_eq!(task().abstain(-0.0).unwrap().abstain_price().unwrap().to_bits(), 0.0_f64.to_bits());
    let mut full = task();
    for i in 0..MAX_ROUTES {
        full = full.route(format!("r{i}"), Oracle::bayes(), 1.0 + i as f64).unwrap();
    }
    assert!(full.clone().route("more", Oracle::bayes(), 1.0).is_err());
    // The last action of the largest task still has its own code.
    let policy = fixed().policy(&full.abstain(0.01).unwrap()).unwrap();
    assert_eq!(policy.cell(CellId(0)).unwrap().action(), Action::Abstain);
}

#[test]
fn repricing_refuses_another_loss_or_estimator() {
    let policy = fixed_policy(&[("a", 0.1)], None, Ties::Frugal);
    assert!(policy.reprice(&Task::new(Loss::spherical()).estimator(Estimator::Plugin)).is_err());
    assert!(policy.reprice(&Task::new(Loss::brier())).is_err(), "another estimator");
    assert!(policy.reprice(&Task::new(Loss::brier()).estimator(Estimator::Plugin)).is_ok());
    assert!(fixed().policy(&Task::new(Loss::matrix(["a"], vec![vec![0.0; 3]]).unwrap())).is_err());
    for text in ["", "Frugal", "never"] {
        assert!(text.parse::<Ties>().is_err() && text.parse::<Estimator>().is_err() && text.parse::<Oracle>().is_err());
    }
    assert_eq!(["frugal", "paper"].map(|text| text.parse::<Ties>().unwrap().to_string()), ["frugal", "paper"]);
}

#[test]
fn tables_are_decided_like_their_rows() {
    let mut rng = Rng::new(5);
    let n = 3000;
    let (mut probs, mut features, mut votes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let p = rng.uniform();
        probs.extend([p, 1.0 - p]);
        features.extend([rng.uniform(), rng.uniform()]);
        votes.extend([1, 2]);
    }
    let table =
        Table::new(["a", "b"], probs).unwrap().with_votes(votes).unwrap().with_features(["u", "v"], features).unwrap();
    let partition: Partition = "top-class:4*features:x_v=5".parse().unwrap();
    let policy = Router::calibrate(&table, &partition).unwrap().policy(&Task::new(Loss::brier())).unwrap();
    let decisions = policy.decide_batch(&table).unwrap();
    for row in 0..n {
        let alone = policy.decide_with(&table.prediction(row), &table.features(row)[1..]).unwrap();
        assert_eq!(said(policy.row(&decisions, row)), said(alone), "row {row}");
    }
    let other = Table::new(["a", "c"], vec![0.5, 0.5]).unwrap();
    let error = policy.decide_batch(&other).unwrap_err().to_string();
    assert!(error.contains("a, c") && error.contains("a, b"), "{error}");
    let bare = Table::new(["a", "b"], vec![0.5, 0.5]).unwrap();
    let error = policy.decide_batch(&bare).unwrap_err().to_string();
    assert!(error.contains("x_v"), "{error}");
}
