//! The cost of the best action per query, estimated from one to five labels per item, in simulations of known truth.

use pointsman::{Evaluation, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, normalised};

const ROWS: usize = 1_000;

/// The way items, the weak model and the oracle differ.
#[derive(Debug, Clone, Copy, PartialEq)]
enum World {
    /// Smooth distributions; the oracle is a better model.
    Smooth,
    /// Clear and ambiguous items; both models are often wrong.
    Clear,
    /// Three kinds of items that the weak model does not distinguish.
    Kinds,
    /// The oracle is another model of the same quality.
    Rival,
}

fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0
}

fn softmax(logits: impl IntoIterator<Item = f64>) -> Vec<f64> {
    normalised(logits.into_iter().map(f64::exp).collect())
}

impl World {
    /// An item's true distribution, the weak model's prediction and the oracle's.
    fn item(self, rng: &mut Rng) -> [Vec<f64>; 3] {
        let mut noisy = |logits: &[f64], scale: f64, noise: f64| {
            let noisy: Vec<f64> = logits.iter().map(|x| scale * x + noise * normal(rng)).collect();
            softmax(noisy)
        };
        match self {
            Self::Smooth | Self::Rival => {
                let logits: Vec<f64> = noisy(&[0.0; 3], 1.0, 1.3).iter().map(|p| p.ln()).collect();
                let p = softmax(logits.iter().copied());
                match self {
                    Self::Smooth => [p, noisy(&logits, 0.8, 1.0), noisy(&logits, 1.0, 0.5)],
                    _ => [p, noisy(&logits, 1.0, 0.8), noisy(&logits, 1.0, 0.8)],
                }
            }
            Self::Clear => {
                let (class, ambiguous) = (rng.below(3), rng.uniform() < 0.3);
                let shares = if ambiguous { [0.5, 0.35, 0.15] } else { [0.96, 0.02, 0.02] };
                let p = (0..3).map(|c| shares[(c + 3 - class) % 3]).collect();
                let logits: Vec<f64> = (0..3).map(|c| if c == class { 1.5 } else { 0.0 }).collect();
                let mut noisy = |scale: f64, noise: f64| {
                    let noisy: Vec<f64> = logits.iter().map(|x| scale * x + noise * normal(rng)).collect();
                    softmax(noisy)
                };
                [p, noisy(1.0, 1.0), noisy(1.7, 0.8)]
            }
            Self::Kinds => {
                let (kind, sharp) = (rng.uniform(), rng.uniform());
                let p = match kind {
                    kind if kind < 0.45 => vec![0.96 - 0.1 * sharp, 0.03 + 0.1 * sharp, 0.01],
                    kind if kind < 0.7 => vec![0.05, 0.92, 0.03],
                    _ => normalised(vec![0.45, 0.2 + 0.3 * sharp, 0.2]),
                };
                let oracle: Vec<f64> = p.iter().map(|p| p.ln() + 0.7 * normal(rng)).collect();
                [p, normalised(vec![0.55 + 0.3 * sharp, 0.25, 0.12]), softmax(oracle)]
            }
        }
    }

    /// Rows with one to five labels each; without and with their true distributions.
    fn table(self, rng: &mut Rng, rows: usize) -> [Table; 2] {
        let (mut probs, mut answers, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let [p, weak, oracle] = self.item(rng);
            let labels = 1 + rng.below(5);
            votes.extend(rng.votes(&p, labels));
            probs.extend(weak);
            answers.extend(oracle);
            truth.extend(p);
        }
        let table = Table::new(CLASS_NAMES[..3].to_vec(), probs).unwrap().with_votes(votes).unwrap();
        let table = table.with_oracle("llm", answers).unwrap();
        [table.clone(), table.with_truth(truth).unwrap()]
    }
}

/// Estimates in one world over several seeds: their errors, standard errors and true regrets.
struct Found {
    errors: Vec<f64>,
    standard_errors: Vec<f64>,
    regrets: Vec<f64>,
    outside: usize,
}

fn best(evaluation: &Evaluation) -> (f64, f64) {
    let cost = |name: &str| *evaluation.best_costs().get(name).unwrap();
    (cost("pointwise-optimal"), cost("router") - cost("pointwise-optimal"))
}

fn simulate(world: World, task: &Task, partition: &str, seeds: u64) -> Found {
    let mut found = Found { errors: vec![], standard_errors: vec![], regrets: vec![], outside: 0 };
    for seed in 0..seeds {
        let mut rng = Rng::new(100 + seed);
        let [calibration, _] = world.table(&mut rng, ROWS);
        let router = Router::calibrate(&calibration, &partition.parse::<Partition>().unwrap()).unwrap();
        let policy: Policy = router.policy(task).unwrap();
        let [labels, known] = world.table(&mut rng, ROWS);
        let evaluate = |table: &Table| policy.replay(table).unwrap().evaluate(&policy).unwrap();
        let (by_labels, truth) = (evaluate(&labels), evaluate(&known));
        let regrets = by_labels.corrected_regret_standard_error.as_ref().unwrap();
        let regret = by_labels.best_regret().get("pointwise-optimal").unwrap();
        for (name, cost) in by_labels.best_costs().iter() {
            assert!(best(&by_labels).0 <= cost + 1e-12, "{world:?}: {name}");
        }
        let [low, high] = *by_labels.corrected_identified.get("pointwise-optimal").unwrap();
        assert!(low <= best(&by_labels).0 && best(&by_labels).0 <= high);
        // The bounds hold on average over labels.
        found.outside += usize::from(best(&truth).0 < low - 0.03 || best(&truth).0 > high + 0.03);
        found.errors.push(regret - best(&truth).1);
        // Where labels leave more open than a standard error says, none is stated; then the range around the estimate must cover.
        let stated = *regrets.get("pointwise-optimal").unwrap();
        found.standard_errors.push(stated.unwrap_or((high - low) / 2.0 / 1.96));
        found.regrets.push(best(&truth).1);
    }
    found
}

impl Found {
    /// Checks the bias and the coverage of 1.96 standard errors: the share of the simulations that are at least covered.
    fn check(&self, what: &str, largest_bias: f64, least_covered: f64) {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let n = self.errors.len() as f64;
        let bias = mean(&self.errors);
        let error = (self.errors.iter().map(|x| (x - bias).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        let intervals = self.errors.iter().zip(&self.standard_errors);
        let covered = intervals.filter(|(error, standard)| error.abs() <= 1.96 * **standard).count();
        let (regret, standard) = (mean(&self.regrets), mean(&self.standard_errors));
        println!(
            "{what}: regret {regret:.4}, bias {bias:+.4} ± {error:.4}, s.e. {standard:.4}, {covered} of {n} covered"
        );
        assert!(bias.abs() <= largest_bias + 2.0 * error, "{what}: bias {bias} ± {error}");
        assert!(covered as f64 >= least_covered * n, "{what}: {covered} of {n} covered");
        assert_eq!(self.outside, 0, "{what}");
    }
}

fn task(loss: &str, oracle: Oracle, price: f64) -> Task {
    Task::new(loss.parse().unwrap()).route("llm", oracle, price).unwrap()
}

/// Also for a router that does nothing: the best possible cost is not the router's.
#[test]
fn best_possible_cost_with_a_measured_oracle() {
    for (world, loss, price) in [
        (World::Smooth, "brier", 0.05),
        (World::Clear, "brier", 0.05),
        (World::Kinds, "brier", 0.2),
        (World::Rival, "brier", 0.02),
        (World::Smooth, "zero-one", 0.05),
    ] {
        for partition in ["top-class:1", "confidence:4"] {
            let found = simulate(world, &task(loss, Oracle::measured(), price), partition, 12);
            found.check(&format!("{world:?}, {loss}, {partition}"), 0.004, 0.8);
        }
    }
}

#[test]
fn best_possible_cost_with_a_perfect_oracle_or_a_panel() {
    for (world, oracle, price, least_covered) in [
        (World::Smooth, "bayes", 0.08, 0.8),
        (World::Clear, "bayes", 0.15, 0.8),
        // A panel's loss on rows with one label is a mean over other rows, whose variance is not part of the standard error.
        (World::Smooth, "panel:m=3,aggregate=mean", 0.05, 0.65),
    ] {
        let found = simulate(world, &task("brier", oracle.parse().unwrap(), price), "confidence:4", 12);
        found.check(&format!("{world:?}, {oracle}"), 0.005, least_covered);
    }
}

/// A measured oracle, people and abstaining compete, and rows are of different kinds: the estimate is neither above nor below the truth by more
/// than its standard error tells. Draws from one Dirichlet law per row were too high by 2.5 standard errors or more in `Clear` and `Kinds`.
#[test]
fn best_possible_cost_where_several_actions_compete() {
    for (world, loss, abstain) in [
        (World::Smooth, "brier", 0.45),
        (World::Clear, "brier", 0.35),
        (World::Kinds, "brier", 0.35),
        (World::Clear, "zero-one", 0.25),
    ] {
        let task = task(loss, Oracle::measured(), 0.05);
        let task = task.route("people", Oracle::bayes(), 0.12).unwrap().abstain(abstain).unwrap();
        let found = simulate(world, &task, "confidence:4", 30);
        found.check(&format!("{world:?}, {loss}, three actions"), 0.012, 0.85);
        let z = found.errors.iter().zip(&found.standard_errors).map(|(error, standard)| error / standard);
        let mean = z.sum::<f64>() / found.errors.len() as f64;
        assert!(mean.abs() < 1.0, "{world:?}: wrong by {mean} standard errors on average");
    }
}
