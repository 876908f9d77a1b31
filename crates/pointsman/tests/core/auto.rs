//! The partition that `auto` chooses in simulations of known truth, and its stated reason.

use pointsman::calibrate::Calibration;
use pointsman::partition::Factor;
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::routing_worlds::{Features, Queries, World, tasks};
use crate::world::Rng;

const CANDIDATES: [&str; 4] = ["pooled", "tree", "honest-forest:50", "forest:50"];

/// The true costs of `auto` and of each candidate in simulations of one kind with two labels per item, over 2,000 queries.
struct Costs {
    auto: Vec<f64>,
    candidates: Vec<Vec<f64>>,
}

impl Costs {
    fn of(world: World, rows: usize, worlds: u64) -> Self {
        let queries = Queries::new(world.draw(&mut Rng::new(999), 2000, 2), tasks());
        let mut costs = Self { auto: Vec::new(), candidates: vec![Vec::new(); CANDIDATES.len()] };
        for seed in 0..worlds {
            let table = world.draw(&mut Rng::new(seed), rows, 2);
            let cost = |partition: &str| queries.cost_with(&table, &partition.parse().unwrap()).unwrap();
            costs.auto.push(cost("auto"));
            costs.candidates.iter_mut().zip(CANDIDATES).for_each(|(costs, candidate)| costs.push(cost(candidate)));
        }
        costs
    }

    /// The mean cost of `auto` above the candidate that is best for simulations of this kind, and its standard error.
    fn above_best(&self) -> [f64; 2] {
        let n = self.auto.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let best = self.candidates.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
        let above: Vec<f64> = self.auto.iter().zip(best).map(|(auto, best)| auto - best).collect();
        let excess = mean(&above);
        let squares: f64 = above.iter().map(|x| (x - excess).powi(2)).sum();
        [excess, (squares / (n * (n - 1.0))).sqrt()]
    }
}

/// Kinds of simulations: classes, information in the features, rows. The mean excess is at most 0.005 plus two standard errors, which are at
/// most 0.004, so an excess of 0.013 would be detected. `docs/numbers.md` has more simulations per kind.
#[test]
fn auto_costs_at_most_half_a_point_more_than_the_best_candidate() {
    let kinds = [
        (3, Features::Telling, 300, 6),
        (3, Features::Useless, 300, 6),
        (2, Features::Missing, 300, 6),
        (80, Features::Missing, 300, 4),
        (2, Features::Missing, 130, 6),
    ];
    for (classes, features, rows, worlds) in kinds {
        let [excess, error] = Costs::of(World { classes, features }, rows, worlds).above_best();
        println!("{classes} classes, {features:?}, {rows} rows: {excess:.4} ± {error:.4} above the best");
        assert!(error < 0.004, "{classes} {features:?} {rows}: standard error {error}");
        assert!(excess < 0.005 + 2.0 * error, "{classes} {features:?} {rows}: {excess} ± {error}");
    }
}

/// The share of queries that a router abstains on at a price.
fn abstaining(router: &Router, queries: &Table, price: f64) -> f64 {
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(price).unwrap();
    let policy = router.policy(&task).unwrap();
    let taken = policy.values(&policy.decide_batch(queries).unwrap(), |decision| decision.code());
    taken.iter().filter(|code| **code == Some(2)).count() as f64 / taken.len() as f64
}

/// With 80 classes and 1,000 rows `auto` abstains on about as many queries as with 20,000 rows and five labels per item. The standard deviation
/// between tables is 0.05, so the tolerance of 0.15 is three of them.
#[test]
fn few_rows_of_eighty_classes_do_not_cause_abstention() {
    let world = World { classes: 80, features: Features::Missing };
    let queries = world.draw(&mut Rng::new(999), 2000, 1);
    let many = Router::calibrate(&world.draw(&mut Rng::new(998), 20_000, 5), &Partition::pooled()).unwrap();
    let table = world.draw(&mut Rng::new(0), 1000, 2);
    let [sparse, auto] = [Partition::top_class(10), Partition::auto()].map(|p| Router::calibrate(&table, &p).unwrap());
    for price in [0.8, 0.9, 1.0] {
        let [sparse, found, wanted] = [&sparse, &auto, &many].map(|router| abstaining(router, &queries, price));
        println!("abstain at {price}: {found} of the queries, top-class:10 {sparse}, many rows {wanted}");
        assert!((found - wanted).abs() < 0.15, "abstain at {price}: {found} of the queries instead of {wanted}");
    }
}

#[test]
fn informative_features_are_used_and_named() {
    let world = World { classes: 3, features: Features::Telling };
    let Calibration { router, choice, .. } =
        Router::builder().calibrate(&world.draw(&mut Rng::new(1), 1000, 3)).unwrap();
    let choice = choice.unwrap();
    assert!(router.partition().factors()[0].learns(), "{choice:?}");
    assert_eq!(choice.candidates[0].partition, *router.partition());
    assert!(choice.features_used.contains(&"f0".to_owned()), "{choice:?}");
    assert!(choice.reason().contains("less than pooled cells"), "{}", choice.reason());
    let pooled = choice.candidates.iter().find(|other| other.partition == Partition::pooled()).unwrap();
    assert!(pooled.excess > 2.0 * pooled.standard_error, "{choice:?}");
}

#[test]
fn uninformative_features_are_named_as_ignored() {
    let world = World { classes: 3, features: Features::Useless };
    let table = world.draw(&mut Rng::new(2), 600, 2);
    let Calibration { router, choice, .. } = Router::builder().calibrate(&table).unwrap();
    let choice = choice.unwrap();
    assert_eq!(choice.features_used.len() + choice.features_ignored.len(), 10);
    assert_eq!(choice.features_used, router.features_used());
}

/// The partition chosen by `auto:certifiable` has cells that can be certified, have centroids and can be filled with other rows.
#[test]
fn certifiable_partitions_have_cells() {
    let world = World { classes: 3, features: Features::Telling };
    let table = world.draw(&mut Rng::new(3), 600, 3);
    let certifiable = Router::builder().partition(Partition::certifiable());
    let Calibration { router, choice, .. } = certifiable.calibrate(&table).unwrap();
    let is_forest = |partition: &Partition| matches!(partition.factors(), [Factor::Forest { .. }]);
    assert!(!choice.unwrap().candidates.iter().any(|candidate| is_forest(&candidate.partition)));
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
    assert!(router.is_certifiable() && router.certificate(&task, 0.9).is_ok());
    assert!(router.recalibrated().policy(&task).is_ok());
}

/// Neither too few labels for a comparison nor too many rows for a forest is an error.
#[test]
fn auto_succeeds_if_nothing_can_be_compared() {
    let world = World { classes: 3, features: Features::Missing };
    for (rows, k) in [(1, 3), (50, 3), (400, 1)] {
        let table = world.draw(&mut Rng::new(4), rows, k);
        let Calibration { router, choice, .. } = Router::builder().calibrate(&table).unwrap();
        assert_eq!(*router.partition(), Partition::pooled());
        assert!(choice.unwrap().reason().contains("two labels or more"));
    }
    // Forests are compared however many rows there are.
    let n = 1_342_178;
    let table = Table::new(["a", "b"], [0.6, 0.4].repeat(n)).unwrap().with_votes([2, 1].repeat(n)).unwrap();
    let Calibration { router, choice, .. } = Router::builder().calibrate(&table).unwrap();
    assert_eq!(*router.partition(), Partition::pooled());
    assert_eq!(choice.unwrap().candidates.len(), 4);
    assert!(Router::calibrate(&Table::new(["a", "b"], vec![0.6, 0.4]).unwrap(), &Partition::auto()).is_err());
}

/// Progress is complete when the router is, for every choice.
#[test]
fn progress_is_reported_steps_times() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let world = World { classes: 3, features: Features::Telling };
    let tables = [world.draw(&mut Rng::new(1), 60, 2), world.draw(&mut Rng::new(1), 400, 3)];
    let partitions = ["forest:7", "forest:30", "honest-forest:30", "auto", "auto:certifiable", "pooled", "top-class:3"];
    for partition in partitions.map(|text| text.parse::<Partition>().unwrap()) {
        for table in &tables {
            let calls = AtomicU64::new(0);
            let step = || {
                calls.fetch_add(1, Ordering::Relaxed);
            };
            Router::builder().partition(partition.clone()).progress(&step).fit(table).unwrap();
            assert_eq!(calls.into_inner(), Router::steps(&partition), "{partition} of {} rows", table.rows());
        }
    }
}

/// Items of four classes that are predicted well; labels are noise where a feature says so, whatever the class.
fn noise_by_feature() -> Table {
    let (mut rng, mut probs, mut votes, mut noisy) = (Rng::new(5), Vec::new(), Vec::new(), Vec::new());
    for row in 0..800 {
        let (class, is_noisy) = (row % 4, (row / 4) % 2 == 1);
        let mut counts = [0; 4];
        (0..3).for_each(|_| counts[if is_noisy { rng.below(4) } else { class }] += 1);
        let top = 0.7 + 0.1 * rng.uniform();
        probs.extend((0..4).map(|c| if c == class { top } else { (1.0 - top) / 3.0 }));
        votes.extend(counts);
        noisy.push(f64::from(u8::from(is_noisy)));
    }
    let table = Table::new(["a", "b", "c", "d"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["noisy"], noisy).unwrap()
}

/// Trees find the noise, but the means of their cells say nothing of the class.
#[test]
fn recalibrated_partitions_are_chosen_by_what_they_serve() {
    let table = noise_by_feature();
    let builder = Router::builder().recalibrated(true);
    let tree = builder.clone().partition(Partition::tree()).calibrate(&table).unwrap();
    let served = tree.served.unwrap();
    assert!(served.loss > served.own_loss + 5.0 * served.standard_error, "{served:?}");
    let auto = builder.calibrate(&table).unwrap();
    let (choice, found) = (auto.choice.unwrap(), auto.served.unwrap());
    assert!(auto.router.is_recalibrated() && *auto.router.partition() != Partition::tree(), "{choice:?}");
    assert!(found.loss < served.loss - 5.0 * served.standard_error, "{found:?}, {served:?}");
    // The costs of the choice are the losses of what is served, as shares of that of the predictions.
    let share = found.loss / found.own_loss;
    assert!((choice.candidates[0].cost - share).abs() < 1e-9, "{share}: {choice:?}");
    assert!(choice.reason().contains("by the Brier loss of always serving the means of cells"), "{}", choice.reason());
}
