//! Certificates in a world whose truth is known: they hold as often as they say, and they say something.

use pointsman::certify::Judgement;
use pointsman::{CellId, Certificate, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{Rng, close, table};

/// Two classes; the confidence is uniform, the truth one of three distributions, whose odds and places depend on the
/// confidence. Everything about a range of confidences is an integral over it.
pub(crate) struct World;

impl World {
    const ATOMS: usize = 3;

    /// The truths at a confidence and how likely each is.
    pub(crate) fn truths(c: f64) -> [(f64, f64); Self::ATOMS] {
        [(0.6, (c + 0.02).min(1.0)), (0.25, 1.2 - c), (0.15, 0.3 * c)]
    }

    /// A confidence and a truth.
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

    /// Mean over confidences from `low` to `high`.
    fn mean(low: f64, high: f64, value: impl Fn(f64, f64) -> f64) -> f64 {
        const STEPS: usize = 100;
        let at = |i: usize| {
            let c = low + (high - low) * (i as f64 + 0.5) / STEPS as f64;
            Self::truths(c).into_iter().map(|(share, p)| share * value(c, p)).sum::<f64>()
        };
        (0..STEPS).map(at).sum::<f64>() / STEPS as f64
    }

    /// The confidences at which a router's cells end.
    fn ends(router: &Router) -> Vec<f64> {
        let pointsman::partition::Axis::Confidence { edges } = &router.cells().axes()[0] else {
            panic!("cells of confidence")
        };
        let mut ends = vec![0.5];
        ends.extend(edges.values());
        ends.push(1.0);
        ends
    }

    /// Share, total and irreducible loss of each of a router's cells of the first class.
    fn cells(router: &Router, loss: &Loss) -> Vec<[f64; 3]> {
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

/// The regret of a policy against the best action in every cell.
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

fn judged(router: &Router, certificate: &Certificate, task: &Task) -> Judgement {
    certificate.judge(&router.policy(task).unwrap()).unwrap()
}

/// All intervals of all cells hold at once at least as often as promised, and so does the regret bound over a grid of prices.
#[test]
fn certificates_hold() {
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
                    // One label per item may decide on nothing; there is no action to regret then.
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

/// Rows in cells whose labels are served back: in-sample losses would be too small, the certificate is not.
#[test]
fn certificates_of_served_centroids_hold() {
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

/// Panels with labels enough and without, and an oracle whose answers are in the table, enclosed all at once.
#[test]
fn certificates_of_panels_and_measured_oracles_hold() {
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
    // The model is right about the truth, but for the lower half of confidences it says the opposite.
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

/// The figures of a world of 20 cells: bounds by betting beside Hoeffding's, printed; a tenfold table settles more.
#[test]
fn bounds_are_far_below_hoeffding() {
    let mut rng = Rng::new(3);
    println!("K = 20, n = 5000, confidence 0.95, route 0.10");
    for (loss, k, most) in [("brier", 2, 0.08), ("brier", 5, 0.035), ("brier", 20, 0.025), ("zero-one", 20, 0.1)] {
        let loss: Loss = loss.parse().unwrap();
        let router = Router::calibrate(&World::draw(&mut rng, 5000, k), &Partition::confidence(20)).unwrap();
        let task = task(&loss, 0.1, None);
        let (certificate, policy) = (router.certificate(&task, 0.95).unwrap(), router.policy(&task).unwrap());
        let judgement = certificate.judge(&policy).unwrap();
        // The same with Hoeffding's intervals of the difference: 20 cells, three intervals each, both ends.
        let range = loss.bound() + if loss == Loss::brier() { 0.5 } else { loss.bound() };
        let half = range * ((2.0 * 60.0 / 0.05_f64).ln() / (2.0 * 250.0)).sqrt();
        let margin = |cell: u32| (policy.cell(CellId(cell)).unwrap().reducible().unwrap() - 0.1).abs();
        let hoeffding = (0..20).map(|cell| (half - margin(cell)).max(0.0) / 20.0).sum::<f64>();
        println!(
            "{loss}, k = {k}: bound {:.4} (Hoeffding {hoeffding:.3}), certain {:.2}, actual regret {:.4}",
            judgement.regret_bound,
            judgement.certain,
            regret(&router.policy(&task).unwrap(), &World::cells(&router, &loss))
        );
        assert!(
            judgement.regret_bound < f64::min(most, 0.5 * hoeffding),
            "{loss}, k = {k}: {}",
            judgement.regret_bound
        );
    }
}

#[test]
fn the_order_of_rows_and_the_number_of_threads_change_nothing() {
    let mut rng = Rng::new(11);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        // Rounded: many rows have the same prediction.
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

/// Rows of equal predictions and opposite labels: sorted by content they would come in blocks, and block-wise bets are not fair.
#[test]
fn equal_predictions_are_mixed() {
    let mut rng = Rng::new(21);
    let mut failed = 0;
    for _ in 0..200 {
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for _ in 0..120 {
            // Two predictions, of which one is nearly always right and the other nearly always wrong.
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
fn edges_cost_a_row_and_empty_cells_say_nothing() {
    let mut rng = Rng::new(31);
    let router = Router::calibrate(&World::draw(&mut rng, 100, 3), &Partition::top_class(4)).unwrap();
    let task = task(&Loss::brier(), 0.1, Some(0.3));
    let certificate = router.certificate(&task, 0.95).unwrap();
    let left_out: Vec<usize> = certificate.cells().iter().map(|cell| cell.rows_left_out()).collect();
    // Three inner edges; the second class has no rows and so one empty cell.
    assert_eq!(left_out, [0, 1, 1, 1, 0]);
    let empty = &certificate.cells()[4];
    assert_eq!((empty.rows(), empty.total().low, empty.total().high), (0, 0.0, 2.0));
    let judgement = judged(&router, &certificate, &task);
    assert!(!judgement.cells[4].certain && judgement.cells[4].regret >= 1.9);
    let costs = certificate.costs(CellId(0), &task).unwrap();
    assert_eq!((costs.len(), costs[2].low, costs[2].high), (3, 0.3, 0.3));
}

#[test]
fn what_cannot_be_certified_is_refused() {
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

/// Several tasks at once are certified a little less tightly; the prices of a task do not matter at all.
#[test]
fn prices_do_not_matter_and_more_losses_cost_little() {
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

/// One label an item: the bounds of the irreducible loss are those of Jensen, and predicting against abstaining is decided.
#[test]
fn one_label_an_item_still_certifies_abstaining() {
    let mut rng = Rng::new(61);
    let router = Router::calibrate(&World::draw(&mut rng, 2000, 1), &Partition::confidence(2)).unwrap();
    let task = task(&Loss::brier(), 0.9, Some(0.05));
    let certificate = router.certificate(&task, 0.95).unwrap();
    for cell in certificate.cells() {
        assert_eq!(cell.irreducible().low, 0.0);
        assert!(cell.irreducible().high < 0.6);
    }
    let judgement = judged(&router, &certificate, &task);
    assert!(judgement.cells.iter().all(|cell| cell.certain), "abstaining at 0.05 beats predicting");
}

/// What holds for every proper loss holds for each of these, and for random matrices.
#[test]
fn the_bound_for_all_losses_holds() {
    let mut rng = Rng::new(71);
    let (mut probs, mut votes, mut truths) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..1500 {
        let truth = if rng.uniform() < 0.5 { [0.9, 0.1] } else { [0.3, 0.7] };
        truths.push(truth);
        votes.push(rng.votes(&truth, 10));
        probs.push(vec![0.6, 0.4]);
    }
    let router = Router::calibrate(&table(2, &probs, &votes), &Partition::level_sets()).unwrap();
    let bound = router.all_losses(CellId(0), 0.9).unwrap();
    assert!(bound.total.unwrap() < 0.05 && bound.irreducible_above < 0.25, "{bound:?}");
    let mut losses: Vec<Loss> = ["brier", "zero-one", "spherical", "three-part"].map(|l| l.parse().unwrap()).into();
    for _ in 0..100 {
        let cost = (0..3).map(|_| (0..2).map(|_| rng.uniform()).collect()).collect();
        losses.push(Loss::matrix(["a", "b", "c"], cost).unwrap());
    }
    for loss in losses {
        let policy = router.policy(&Task::new(loss.clone()).estimator(pointsman::Estimator::Plugin)).unwrap();
        let decision = policy.cell(CellId(0)).unwrap();
        let total = [[0.9, 0.1], [0.3, 0.7]].iter().map(|p| loss.expected(p, &[0.6, 0.4]) / 2.0).sum::<f64>();
        let irreducible = [[0.9, 0.1], [0.3, 0.7]].iter().map(|p| loss.entropy(p) / 2.0).sum::<f64>();
        let b = loss.bound();
        assert!((decision.total() - total).abs() <= b * bound.total.unwrap(), "{loss}");
        let off = irreducible - decision.irreducible().unwrap();
        assert!((-b * bound.irreducible_below..=b * bound.irreducible_above).contains(&off), "{loss}: {off}");
    }
}

/// What is given together spends what may fail once: the parts of the certificates and of the bounds add up to it.
#[test]
fn certificates_and_bounds_for_all_losses_share_their_failures() {
    let mut rng = Rng::new(73);
    let router = Router::calibrate(&World::draw(&mut rng, 2000, 3), &Partition::confidence(4)).unwrap();
    let tasks = [task(&Loss::brier(), 0.1, Some(0.4)), task(&Loss::zero_one(), 0.1, None)];
    for confidence in [0.8, 0.95] {
        let together = router.certify_together(&tasks, confidence).unwrap();
        let delta = 1.0 - confidence;
        // Nine tenths of the failures to the certificates, shares included, and the confidence asked for is the one named.
        let alone = router.certificates(&tasks, 1.0 - 0.9 * delta).unwrap();
        let whole = router.certificates(&tasks, confidence).unwrap();
        for (((found, wanted), whole), task) in together.certificates.iter().zip(&alone).zip(&whole).zip(&tasks) {
            assert_eq!(found.confidence(), confidence);
            for ((found, wanted), whole) in found.cells().iter().zip(wanted.cells()).zip(whole.cells()) {
                close(found.reducible().high, wanted.reducible().high, 1e-9, "reducible");
                close(found.total().low, wanted.total().low, 1e-9, "total");
                assert!(found.total().low < whole.total().low, "the whole of the failures is not there");
            }
            let bounds = [found, wanted].map(|certificate| judged(&router, certificate, task).regret_bound);
            close(bounds[0], bounds[1], 1e-9, "regret bound");
        }
        // One tenth to the bounds.
        for cell in (0..4).map(CellId) {
            let wanted = router.all_losses(cell, 1.0 - 0.1 * delta).unwrap();
            let found = together.all_losses[cell.index()].unwrap();
            close(found.irreducible_above, wanted.irreducible_above, 1e-9, "above");
            assert!(found.irreducible_below > router.all_losses(cell, confidence).unwrap().irreducible_below);
        }
    }
    // Weights leave no bound, and then nothing is spent on it.
    let weighted = World::draw(&mut rng, 2000, 3).with_weights(vec![1.0; 2000]).unwrap();
    let router = Router::calibrate(&weighted, &Partition::confidence(4)).unwrap();
    let together = router.certify_together(&tasks[..1], 0.9).unwrap();
    assert!(together.all_losses.iter().all(Option::is_none));
    assert_eq!(together.certificates[0].cells(), router.certificate(&tasks[0], 0.9).unwrap().cells());
}

#[test]
fn all_losses_are_refused_where_nothing_can_be_said() {
    let mut rng = Rng::new(72);
    let mut rows = |n: usize| {
        let truths: Vec<Vec<f64>> = (0..n).map(|_| rng.dist(3)).collect();
        let votes: Vec<Vec<u32>> = truths.iter().map(|p| rng.votes(p, 3)).collect();
        Router::calibrate(&table(3, &truths, &votes), &Partition::confidence(1)).unwrap()
    };
    let error = rows(900).all_losses(CellId(0), 0.9).unwrap_err().to_string();
    assert!(error.contains("1000 rows") && error.contains("declare"), "{error}");
    let bound = rows(1100).all_losses(CellId(0), 0.9).unwrap();
    assert!(bound.total.is_none() && bound.irreducible_below > 0.0, "predictions vary: {bound:?}");
    assert!(rows(50).all_losses(CellId(1), 0.9).is_err() && rows(50).all_losses(CellId(0), 1.0).is_err());
}

/// A budget is judged as the price it comes to: the same judgement as of that price, but where a lot decides.
#[test]
fn budgets_are_judged_as_prices() {
    let mut rng = Rng::new(81);
    let router = Router::calibrate(&World::draw(&mut rng, 2000, 5), &Partition::confidence(8)).unwrap();
    let task = task(&Loss::brier(), 0.02, None).budget(0.3).unwrap();
    let (policy, certificate) = (router.policy(&task).unwrap(), router.certificate(&task, 0.9).unwrap());
    let judgement = certificate.judge(&policy).unwrap();
    let priced = certificate.judge(&policy.reprice(&policy.priced_task()).unwrap()).unwrap();
    let mut lots = 0;
    for (i, (limited, priced)) in judgement.cells.iter().zip(&priced.cells).enumerate() {
        if policy.cell(CellId(i as u32)).unwrap().marginal_share().is_some() {
            // Both actions are taken there, and cost the same as far as is known.
            assert!(!limited.certain && limited.regret > 0.0);
            lots += 1;
        } else {
            assert_eq!(limited, priced);
        }
    }
    assert_eq!(lots, 1);
    let plan = router.plan(&task, 0.9).unwrap();
    assert!(plan.cells.iter().any(|cell| cell.margin.unwrap().abs() < 1e-9), "the cell of the lot is in the plan");
}

/// A tree's cells were found with the other half of the rows, so its certificate holds; a forest's would not, and is refused.
#[test]
fn trees_are_certified_and_forests_refused() {
    let mut rng = Rng::new(91);
    let loss = Loss::brier();
    // Enough items to know a cell's truth to a hundredth or so.
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
