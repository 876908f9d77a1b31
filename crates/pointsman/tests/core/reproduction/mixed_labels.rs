//! Tables in which some items have one label and others three: nothing is undetermined, and promises hold on average, as do their standard
//! errors. The number of labels does not depend on the item.

use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::Rng;

const PRICE: f64 = 0.15;
const ABSTAIN: f64 = 0.6;
const WORLDS: u64 = 30;

fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), PRICE).unwrap().abstain(ABSTAIN).unwrap()
}

/// Items that are clear, that mislead the model, or that are ambiguous; a feature tells them apart roughly. A share of the items has one
/// label, the others three.
fn draw(rows: usize, share: f64, rng: &mut Rng) -> Table {
    let (mut probs, mut votes, mut truths, mut features) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (kind, class, other) = (rng.uniform(), rng.below(3), 1 + rng.below(2));
        let noise = rng.uniform() + rng.uniform() - 1.0;
        let mix = |weight: f64, first: usize, second: usize| -> Vec<f64> {
            let own =
                |c: usize| weight * f64::from(u8::from(c == first)) + (1.0 - weight) * f64::from(u8::from(c == second));
            (0..3).map(|c| 0.05 + 0.85 * own(c)).collect()
        };
        let sharp = rng.uniform();
        let (p, truth, feature) = match kind {
            kind if kind < 0.6 => {
                (mix(0.6 + 0.4 * sharp, class, (class + other) % 3), (class, 0.95), 20.0 + 12.0 * noise)
            }
            kind if kind < 0.8 => {
                (mix(0.15 + 0.4 * sharp, class, (class + other) % 3), (class, 0.9), 40.0 + 20.0 * noise)
            }
            _ => (mix(0.5 + 0.4 * sharp, class, (class + other) % 3), (class, 0.4), 8.0 + 6.0 * noise),
        };
        let truth: Vec<f64> = (0..3).map(|c| if c == truth.0 { truth.1 } else { (1.0 - truth.1) / 2.0 }).collect();
        let labels = if rng.uniform() < share { 1 } else { 3 };
        votes.extend(rng.votes(&truth, labels));
        probs.extend(p);
        truths.extend(truth);
        features.push(feature);
    }
    let table = Table::new(["a", "b", "c"], probs).unwrap().with_votes(votes).unwrap().with_truth(truths).unwrap();
    table.with_features(["words"], features).unwrap()
}

/// The rows with several labels.
fn without_one_label_items(table: &Table) -> Table {
    let rows: Vec<u32> = (0..table.rows() as u32).filter(|&row| table.votes(row as usize).unwrap().k() > 1).collect();
    let probs = rows.iter().flat_map(|&row| table.prediction(row as usize).to_vec()).collect();
    let votes = rows.iter().flat_map(|&row| table.votes(row as usize).unwrap().counts().to_vec()).collect();
    let features = rows.iter().map(|&row| table.features(row as usize)[0]).collect();
    let table = Table::new(["a", "b", "c"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["words"], features).unwrap()
}

/// The true costs per query of the policy and of always routing.
fn true_costs(policy: &Policy, queries: &Table) -> [f64; 2] {
    let actions = policy.values(&policy.decide_batch(queries).unwrap(), |decision| decision.code());
    let (mut cost, mut routed) = (0.0, 0.0);
    for (row, action) in actions.into_iter().enumerate() {
        let (truth, served) = (queries.truth(row).unwrap(), queries.prediction(row));
        let predict: f64 = 1.0 - truth.iter().zip(&served[..]).map(|(p, q)| 2.0 * p * q - q * q).sum::<f64>();
        let route = 1.0 - truth.iter().map(|p| p * p).sum::<f64>() + PRICE;
        routed += route;
        cost += match action.expect("a determined action") {
            0 => predict,
            1 => route,
            _ => ABSTAIN,
        };
    }
    [cost, routed].map(|sum| sum / queries.rows() as f64)
}

/// The mean of some numbers, and its standard error.
fn mean(values: &[f64]) -> [f64; 2] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    [mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()]
}

fn check(partition: &Partition, rows: usize) {
    for share in [0.3, 0.6, 0.8] {
        // Promise less truth; always routing less truth; the true cost less that without one-label items; the stated standard error.
        let mut found = [(); 4].map(|()| Vec::new());
        for world in 0..WORLDS {
            let mut rng = Rng::new(world + 1);
            let (table, queries) = (draw(rows, share, &mut rng), draw(6000, 0.0, &mut rng));
            let policy = Router::calibrate(&table, partition).unwrap().policy(&task()).unwrap();
            let promise = policy.promise().unwrap();
            assert!(promise.identified.is_none() && promise.shares.get("undetermined").is_none(), "{promise:?}");
            let [cost, routed] = true_costs(&policy, &queries);
            let less = Router::calibrate(&without_one_label_items(&table), partition).unwrap();
            let [without, _] = true_costs(&less.policy(&task()).unwrap(), &queries);
            let always = promise.always.get("route:expert").unwrap() - routed;
            let values = [promise.cost - cost, always, cost - without, promise.standard_error.powi(2)];
            found.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        }
        let [promise, always, excess, squares] = &found;
        let [bias, error] = mean(promise);
        let [always_bias, always_error] = mean(always);
        let [excess, excess_error] = mean(excess);
        // The truth is estimated from 6,000 queries, whose costs have a standard deviation of about 0.3.
        let spread = (error * error * WORLDS as f64 - 0.09 / 6000.0).sqrt();
        let ratio = mean(squares)[0].sqrt() / spread;
        println!(
            "{partition}, {share}: promise {bias:+.4} ± {error:.4}, always route {always_bias:+.4} ± {always_error:.4}, \
             cost beyond that without one-label items {excess:+.4} ± {excess_error:.4}, stated error {ratio:.2} of the spread"
        );
        assert!(bias.abs() < 3.0 * error, "{partition}, {share}: the promise is wrong by {bias} ± {error}");
        assert!(always_bias.abs() < 3.0 * always_error, "{partition}, {share}: {always_bias} ± {always_error}");
        assert!(excess < 3.0 * excess_error.max(0.0005), "{partition}, {share}: {excess} ± {excess_error}");
        // Thirty worlds determine the spread to 13 %.
        assert!((0.7..1.6).contains(&ratio), "{partition}, {share}: the standard error is {ratio} of the spread");
    }
}

#[test]
fn promises_hold_with_one_label_items_in_confidence_bins() {
    check(&Partition::confidence(10), 1500);
}

#[test]
fn promises_hold_with_one_label_items_in_pooled_cells() {
    check(&Partition::pooled(), 1500);
}

#[test]
fn promises_hold_with_one_label_items_in_forests() {
    check(&Partition::forest(30), 1500);
}
