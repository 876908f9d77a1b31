//! Certificates in simulations of known truth: they have the stated coverage, and they are informative.

use pointsman::certify::Judgement;
use pointsman::{CellId, Certificate, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{Rng, table};

/// Two classes; the confidence is uniform and the truth is one of three distributions that depend on the confidence. Expectations over a range
/// of confidences are integrals.
pub(crate) struct World;

impl World {
    const ATOMS: usize = 3;

    /// The truths at a confidence with their probabilities.
    pub(crate) fn truths(c: f64) -> [(f64, f64); Self::ATOMS] {
        [(0.6, (c + 0.02).min(1.0)), (0.25, 1.2 - c), (0.15, 0.3 * c)]
    }

    /// A random confidence and truth.
    fn item(rng: &mut Rng) -> (f64, f64) {
        let (c, u) = (0.5 + 0.5 * rng.uniform(), rng.uniform());
        let [(a, p), (b, q), (_, r)] = Self::truths(c);
        let truth = if u < a {
            p
        } else if u < a + b {
            q
        } else {
            r
        };
        (c, truth)
    }

    pub(crate) fn draw(rng: &mut Rng, rows: usize, k: usize) -> Table {
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let (c, truth) = Self::item(rng);
            probs.push(vec![c, 1.0 - c]);
            votes.push(rng.votes(&[truth, 1.0 - truth], k));
        }
        table(2, &probs, &votes)
    }

    /// The mean over confidences from `low` to `high`.
    fn mean(low: f64, high: f64, value: impl Fn(f64, f64) -> f64) -> f64 {
        const STEPS: usize = 100;
        let at = |i: usize| {
            let c = low + (high - low) * (i as f64 + 0.5) / STEPS as f64;
            Self::truths(c).into_iter().map(|(share, p)| share * value(c, p)).sum::<f64>()
        };
        (0..STEPS).map(at).sum::<f64>() / STEPS as f64
    }

    /// The confidences at which the cells of a router end.
    fn ends(router: &Router) -> Vec<f64> {
        let pointsman::partition::Axis::Confidence { edges } = &router.cells().axes()[0] else {
            panic!("cells of confidence")
        };
        let mut ends = vec![0.5];
        ends.extend(edges.values());
        ends.push(1.0);
        ends
    }

    /// The share, total and irreducible loss of each cell of the first class.
    pub(crate) fn cells(router: &Router, loss: &Loss) -> Vec<[f64; 3]> {
        Self::ends(router)
            .windows(2)
            .map(|ends| {
                let total = Self::mean(ends[0], ends[1], |c, p| loss.expected(&[p, 1.0 - p], &[c, 1.0 - c]));
                let irreducible = Self::mean(ends[0], ends[1], |_, p| loss.entropy(&[p, 1.0 - p]));
                [2.0 * (ends[1] - ends[0]), total, irreducible]
            })
            .collect()
    }
}

pub(crate) fn task(loss: &Loss, route: f64, abstain: Option<f64>) -> Task {
    let task = Task::new(loss.clone()).route("expert", Oracle::bayes(), route).unwrap();
    abstain.map_or(task.clone(), |price| task.abstain(price).unwrap())
}

/// The regret of a policy against the best action of every cell.
pub(crate) fn regret(policy: &Policy, truth: &[[f64; 3]]) -> f64 {
    let task = policy.task();
    let cell = |(cell, [share, total, irreducible]): (usize, &[f64; 3])| {
        let mut costs = vec![*total, irreducible + task.routes()[0].price()];
        costs.extend(task.abstain_price());
        let taken = crate::world::position(policy, policy.cell(CellId(cell as u32)).unwrap().action()).unwrap();
        share * (costs[taken] - costs.iter().copied().fold(f64::INFINITY, f64::min))
    };
    truth.iter().enumerate().map(cell).sum()
}

pub(crate) fn judged(router: &Router, certificate: &Certificate, task: &Task) -> Judgement {
    certificate.judge(&router.policy(task).unwrap()).unwrap()
}

/// All intervals of all cells hold simultaneously with the stated confidence, and so does the regret bound over a grid of prices.
#[test]
fn certificates_have_the_stated_coverage() {
    const CONFIDENCE: f64 = 0.8;
    const DRAWS: usize = 100;
    for (loss, k) in [("brier", 3), ("zero-one", 2), ("cross-entropy", 4), ("fn-fp:fp=1,fn=4", 1), ("spherical", 5)] {
        let loss: Loss = loss.parse().unwrap();
        let mut rng = Rng::new(1000 + k as u64);
        let (mut failed, mut bounds, mut certain) = (0, 0.0, 0.0);
        for _ in 0..DRAWS {
            let router = Router::calibrate(&World::draw(&mut rng, 600, k), &Partition::confidence(6)).unwrap();
            let certificate = router.certificate(&task(&loss, 0.1, None), CONFIDENCE).unwrap();
            let truth = World::cells(&router, certificate.loss());
            let policy = router.policy(&task(&loss, 0.1, None)).unwrap();
            let mut holds = true;
            for (cell, [_, total, irreducible]) in certificate.cells().iter().zip(&truth) {
                holds &= cell.total().contains(*total)
                    && cell.irreducible().contains(*irreducible)
                    && cell.reducible().contains(total - irreducible);
            }
            for (alpha, beta) in [0.0, 0.02, 0.1, 0.3].into_iter().flat_map(|a| [0.1, 0.3, 0.6].map(|b| (a, b))) {
                for abstain in [None, Some(beta)] {
                    // With one label per item the action may be undetermined; then there is no regret.
                    if k > 1 {
                        let policy = policy.reprice(&task(&loss, alpha, abstain)).unwrap();
                        let judgement = certificate.judge(&policy).unwrap();
                        holds &= regret(&policy, &truth) <= judgement.regret_bound + 1e-12;
                        bounds += judgement.regret_bound;
                        certain += judgement.certain;
                    }
                }
            }
            failed += usize::from(!holds);
        }
        let many = (DRAWS * 24) as f64;
        println!(
            "{loss}, k = {k}: {failed} of {DRAWS} failed, mean bound {}, certain {}",
            bounds / many,
            certain / many
        );
        assert!(failed as f64 <= (1.0 - CONFIDENCE) * DRAWS as f64, "{loss}, k = {k}: {failed} of {DRAWS} failed");
        if k > 1 {
            assert!(
                certain / many > 0.1 && bounds / many < 0.25 * loss.bound(),
                "certificates that say nothing hold too"
            );
        }
    }
}

/// Certificates of served centroids hold although in-sample losses are too small.
#[test]
fn certificates_of_centroids_have_the_stated_coverage() {
    let loss = Loss::brier();
    let mut rng = Rng::new(9);
    let mut failed = 0;
    for _ in 0..100 {
        let router =
            Router::calibrate(&World::draw(&mut rng, 300, 2), &Partition::confidence(10)).unwrap().recalibrated();
        let certificate = router.certificate(&Task::new(loss.clone()), 0.8).unwrap();
        let truth = World::cells(&router, &loss);
        let ends = World::ends(&router);
        let mut holds = true;
        for (i, (cell, [_, _, irreducible])) in certificate.cells().iter().zip(&truth).enumerate() {
            let served = router.mixture(CellId(i as u32)).centroid().unwrap();
            let total = World::mean(ends[i], ends[i + 1], |_, p| loss.expected(&[p, 1.0 - p], &served));
            holds &= cell.total().contains(total) && cell.reducible().contains(total - irreducible);
        }
        failed += usize::from(!holds);
    }
    assert!(failed <= 20, "{failed} of 100 failed");
}

/// Panels with enough labels and with too few, and a measured oracle, are covered simultaneously.
#[test]
fn certificates_of_panels_and_measured_oracles_have_the_stated_coverage() {
    let loss = Loss::zero_one();
    let (small, large): (Oracle, Oracle) =
        ("panel:m=2,aggregate=plurality".parse().unwrap(), "panel:m=7,aggregate=plurality".parse().unwrap());
    let task = Task::new(loss.clone())
        .route("pair", small.clone(), 0.05)
        .and_then(|task| task.route("jury", large.clone(), 0.1))
        .and_then(|task| task.route("model", Oracle::measured(), 0.02))
        .and_then(|task| task.route("sage", Oracle::bayes(), 0.2))
        .and_then(|task| task.abstain(0.4))
        .unwrap();
    // The model is right about the truth, except that it says the opposite at the lower half of confidences.
    let model = |c: f64, p: f64| if c < 0.75 { [1.0 - p, p] } else { [p, 1.0 - p] };
    let mut rng = Rng::new(13);
    let (mut failed, mut certain) = (0, 0.0);
    for _ in 0..100 {
        let (mut probs, mut votes, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..500 {
            let (c, p) = World::item(&mut rng);
            probs.push(vec![c, 1.0 - c]);
            votes.push(rng.votes(&[p, 1.0 - p], 3));
            answers.extend(model(c, p));
        }
        let table = table(2, &probs, &votes).with_oracle("model", answers).unwrap();
        let router = Router::calibrate(&table, &Partition::confidence(4)).unwrap();
        let (certificate, policy) = (router.certificate(&task, 0.8).unwrap(), router.policy(&task).unwrap());
        let judgement = certificate.judge(&policy).unwrap();
        certain += judgement.certain / 100.0;
        let (mut holds, mut regret) = (true, 0.0);
        for (i, ends) in World::ends(&router).windows(2).enumerate() {
            let mean = |value: &dyn Fn(f64, f64) -> f64| World::mean(ends[0], ends[1], value);
            let truth = [
                mean(&|c, p| loss.expected(&[p, 1.0 - p], &[c, 1.0 - c])),
                mean(&|_, p| small.cost(&loss, &[p, 1.0 - p]).unwrap()) + 0.05,
                mean(&|_, p| large.cost(&loss, &[p, 1.0 - p]).unwrap()) + 0.1,
                mean(&|c, p| loss.expected(&[p, 1.0 - p], &model(c, p))) + 0.02,
                mean(&|_, p| loss.entropy(&[p, 1.0 - p])) + 0.2,
                0.4,
            ];
            let cell = CellId(i as u32);
            let found = certificate.costs(cell, &task).unwrap();
            holds &= found.iter().zip(truth).all(|(cost, truth)| cost.contains(truth));
            let taken = truth[crate::world::position(&policy, policy.cell(cell).unwrap().action()).unwrap()];
            let lost = taken - truth.iter().copied().fold(f64::INFINITY, f64::min);
            holds &= lost <= judgement.cells[i].regret + 1e-12;
            regret += 2.0 * (ends[1] - ends[0]) * lost;
        }
        holds &= regret <= judgement.regret_bound + 1e-12;
        failed += usize::from(!holds);
    }
    println!("panels and measured: {failed} of 100 failed, certain {certain:.3}");
    assert!(failed <= 20, "{failed} of 100 failed");
}

#[test]
fn certificates_do_not_depend_on_row_order_or_threads() {
    let mut rng = Rng::new(11);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        // Rounded, so that many rows have the same prediction.
        let c = 0.5 + (rng.uniform() * 10.0).round() / 20.0;
        probs.push(vec![c, 1.0 - c]);
        votes.push(rng.votes(&[0.8 * c, 1.0 - 0.8 * c], 3));
    }
    let certificate = |probs: &[Vec<f64>], votes: &[Vec<u32>], threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let router = Router::calibrate(&table(2, probs, votes), &Partition::top_class(4)).unwrap();
            router.certificate(&task(&Loss::brier(), 0.1, None), 0.9).unwrap().cells().to_vec()
        })
    };
    let found = certificate(&probs, &votes, 1);
    let mut order: Vec<usize> = (0..400).collect();
    for threads in [1, 3] {
        rng.shuffle(&mut order);
        let shuffled = |i: &usize| (probs[*i].clone(), votes[*i].clone());
        let (probs, votes): (Vec<_>, Vec<_>) = order.iter().map(shuffled).unzip();
        assert_eq!(certificate(&probs, &votes, threads), found);
    }
}

/// Rows of equal predictions and opposite labels: sorted by content they would be in blocks, and bets on blocks are not fair.
#[test]
fn rows_of_equal_predictions_are_shuffled() {
    let mut rng = Rng::new(21);
    let mut failed = 0;
    for _ in 0..200 {
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for _ in 0..120 {
            // Two predictions, one nearly always right and the other nearly always wrong.
            let (f, p) = if rng.uniform() < 0.5 { (0.7, 0.95) } else { (0.8, 0.05) };
            probs.push(vec![f, 1.0 - f]);
            votes.push(rng.votes(&[p, 1.0 - p], 2));
        }
        let router = Router::calibrate(&table(2, &probs, &votes), &Partition::confidence(1)).unwrap();
        let certificate = router.certificate(&Task::new(Loss::zero_one()), 0.8).unwrap();
        failed += usize::from(!certificate.cells()[0].total().contains(0.5));
    }
    assert!(failed <= 40, "{failed} of 200 failed");
}

#[test]
fn edges_cost_a_row_and_empty_cells_have_trivial_intervals() {
    let mut rng = Rng::new(31);
    let router = Router::calibrate(&World::draw(&mut rng, 100, 3), &Partition::top_class(4)).unwrap();
    let task = task(&Loss::brier(), 0.1, Some(0.3));
    let certificate = router.certificate(&task, 0.95).unwrap();
    let left_out: Vec<usize> = certificate.cells().iter().map(|cell| cell.rows_left_out()).collect();
    // Three inner edges; the second class has no rows and therefore one empty cell.
    assert_eq!(left_out, [0, 1, 1, 1, 0]);
    let empty = &certificate.cells()[4];
    assert_eq!((empty.rows(), empty.total().low, empty.total().high), (0, 0.0, 2.0));
    let judgement = judged(&router, &certificate, &task);
    assert!(!judgement.cells[4].certain && judgement.cells[4].regret >= 1.9);
    let costs = certificate.costs(CellId(0), &task).unwrap();
    assert_eq!((costs.len(), costs[2].low, costs[2].high), (3, 0.3, 0.3));
}

#[test]
fn invalid_certificates_are_refused() {
    let mut rng = Rng::new(41);
    let table = World::draw(&mut rng, 50, 2);
    let router = Router::calibrate(&table, &Partition::confidence(2)).unwrap();
    let task = task(&Loss::brier(), 0.1, None);
    for confidence in [0.0, 1.0, -0.5, 95.0, f64::NAN, f64::INFINITY] {
        let error = router.certificate(&task, confidence).unwrap_err().to_string();
        assert!(error.contains("between 0 and 1"), "{error}");
    }
    let mut weights = vec![1.0; 50];
    weights[7] = 1e6;
    let heavy = Router::calibrate(&table.clone().with_weights(weights).unwrap(), &Partition::confidence(2)).unwrap();
    let error = heavy.certificate(&task, 0.95).unwrap_err().to_string();
    assert!(error.contains("times the mean"), "{error}");
    let light = table.clone().with_weights((0..50).map(|i| 1.0 + f64::from(i % 2)).collect()).unwrap();
    let light = Router::calibrate(&light, &Partition::confidence(2)).unwrap();
    assert!(light.certificate(&task, 0.95).is_ok());
    let certificate = router.certificate(&task, 0.95).unwrap();
    let other = router.policy(&Task::new(Loss::zero_one())).unwrap();
    assert!(certificate.judge(&other).is_err());
}

/// Certificates of several tasks are slightly wider; the prices of a task have no effect.
#[test]
fn certificates_ignore_prices_and_widen_little_with_more_tasks() {
    let mut rng = Rng::new(51);
    let router = Router::calibrate(&World::draw(&mut rng, 1000, 3), &Partition::confidence(4)).unwrap();
    let cheap = router.certificate(&task(&Loss::brier(), 0.01, None), 0.95).unwrap();
    let dear = router.certificate(&task(&Loss::brier(), 0.5, Some(0.2)), 0.95).unwrap();
    assert_eq!(cheap.cells(), dear.cells());
    let tasks = [Loss::brier(), Loss::zero_one(), Loss::spherical()].map(|loss| task(&loss, 0.1, None));
    let all = router.certificates(&tasks, 0.95).unwrap();
    for (one, three) in cheap.cells().iter().zip(all[0].cells()) {
        let ratio = three.reducible().width() / one.reducible().width();
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
    }
}

/// The cells of a tree were learned from the other half of the rows, so its certificate is valid; that of a forest would not be.
#[test]
fn trees_are_certified_and_forests_are_refused() {
    let mut rng = Rng::new(91);
    let loss = Loss::brier();
    // Enough items to know the truth of a cell to about 0.01.
    let items: Vec<(f64, f64)> = (0..20_000).map(|_| World::item(&mut rng)).collect();
    let probs: Vec<Vec<f64>> = items.iter().map(|(c, _)| vec![*c, 1.0 - c]).collect();
    let fresh = table(2, &probs, &vec![vec![1, 0]; items.len()]);
    let mut failed = 0;
    for _ in 0..20 {
        let router = Router::calibrate(&World::draw(&mut rng, 1000, 3), &Partition::tree()).unwrap();
        let certificate = router.certificate(&Task::new(loss.clone()), 0.8).unwrap();
        let mut sums = vec![[0.0; 3]; router.cells().count()];
        for (cell, (c, p)) in router.find_cells(&fresh).unwrap().into_iter().zip(&items) {
            let (truth, prediction) = ([*p, 1.0 - p], [*c, 1.0 - c]);
            let values = [1.0, loss.expected(&truth, &prediction), loss.entropy(&truth)];
            sums[cell.index()].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        let holds = certificate.cells().iter().zip(sums).all(|(cell, [n, total, irreducible])| {
            let near = |interval: pointsman::certify::Interval, sum: f64| {
                (interval.low - 0.01..=interval.high + 0.01).contains(&(sum / n)) || n < 500.0
            };
            near(cell.total(), total)
                && near(cell.irreducible(), irreducible)
                && near(cell.reducible(), total - irreducible)
        });
        failed += usize::from(!holds);
    }
    assert!(failed <= 4, "{failed} of 20 failed");
    let forest = Router::calibrate(&World::draw(&mut rng, 200, 3), &Partition::forest(5)).unwrap();
    for error in [
        forest.certificate(&Task::new(loss.clone()), 0.9).map(|_| ()),
        forest.plan(&Task::new(loss), 0.9).map(|_| ()),
        forest.all_losses(CellId(0), 0.9).map(|_| ()),
    ] {
        assert!(error.unwrap_err().to_string().contains("pointsman calibrate TABLE --certifiable -o ROUTER"));
    }
}
