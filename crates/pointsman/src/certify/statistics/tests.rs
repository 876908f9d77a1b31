//! Statistics compared with exact expectations by enumeration.

use super::*;

/// All votes of `k` labels over three classes, with their probabilities.
fn all_votes(k: u32, p: [f64; 3]) -> Vec<([u32; 3], f64)> {
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    let votes = (0..=k).flat_map(|a| (0..=k - a).map(move |b| [a, b, k - a - b]));
    votes
        .map(|n| {
            let chance = n.iter().zip(p).map(|(&n, p)| p.powi(n as i32) / factorial(n)).product::<f64>();
            (n, chance * factorial(k))
        })
        .collect()
}

fn losses() -> Vec<Loss> {
    let matrix = vec![vec![0.0, 3.0, 1.0], vec![1.0, 0.0, 2.0], vec![0.4; 3]];
    vec![
        Loss::brier(),
        Loss::cross_entropy().certified(3),
        Loss::spherical(),
        Loss::zero_one(),
        Loss::matrix(["ship", "hold", "ask"], matrix).unwrap(),
    ]
}

const POINTS: [[f64; 3]; 6] =
    [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1], [0.4, 0.35, 0.25], [0.0, 0.5, 0.5], [0.02, 0.01, 0.97]];

/// By enumeration: E T⁻ ≤ G(p*) ≤ E T⁺ with equality for the Brier loss, E u is the loss of predicting, and all ranges hold.
#[test]
fn statistics_enclose_the_irreducible_loss() {
    for (loss, k) in losses().into_iter().flat_map(|loss| [2, 3, 5].map(|k| (loss.clone(), k))) {
        for (p, f) in POINTS.into_iter().flat_map(|p| POINTS.map(|f| (p, f))) {
            let (votes, chances): (Vec<_>, Vec<_>) = all_votes(k, p).into_iter().unzip();
            let items = Items::from_votes(3, f.repeat(votes.len()), votes.concat());
            let enclosing = Approximation::new(&loss, 3);
            let (predict, bayes) = (Answer::predict(&items, &loss), Answer::bayes(&items, &loss, enclosing.as_ref()));
            let mean = |values: &Values| dot(&values.values, &chances);
            let case = format!("{loss}, k = {k}, p = {p:?}, f = {f:?}");
            let (truth, below, above) = (loss.entropy(&p), mean(&bayes.below), mean(bayes.above()));
            assert!(below <= truth + 1e-12 && truth <= above + 1e-12, "{case}: {below} {truth} {above}");
            if loss == Loss::brier() {
                assert!((below - truth).abs() < 1e-12 && (above - truth).abs() < 1e-12, "{case}");
            }
            assert!((mean(&predict.below) - loss.expected(&p, &f)).abs() < 1e-12, "{case}");
            let has_none = loss == Loss::brier() || loss.acts().is_some();
            assert_eq!(bayes.polynomial.is_none(), has_none, "{case}");
            if let Some(Polynomial { below, above, least_apart }) = &bayes.polynomial {
                assert!(mean(below) <= truth + 1e-12 && truth <= mean(above) + 1e-12, "{case}");
                for (u, (low, high)) in predict.below.values.iter().zip(below.values.iter().zip(&above.values)) {
                    assert!((below.range[0] - 1e-12..=below.range[1] + 1e-12).contains(low), "{case}");
                    assert!((above.range[0] - 1e-12..=above.range[1] + 1e-12).contains(high), "{case}");
                    assert!(u - low >= least_apart[0] - 1e-12 && u - high >= least_apart[1] - 1e-12, "{case}");
                }
            }
            for values in [&bayes.below, bayes.above(), &predict.below] {
                let within = |x: &f64| (values.range[0] - 1e-12..=values.range[1] + 1e-12).contains(x);
                assert!(values.values.iter().all(within), "{case}");
            }
            for (u, t) in predict.below.values.iter().zip(&bayes.below.values) {
                let least = if loss == Loss::brier() { -1.0 / f64::from(k) } else { 0.0 };
                assert!(u - t >= least - 1e-12, "{case}");
            }
        }
    }
}

#[test]
fn losses_are_within_the_range_of_their_confidence() {
    for loss in losses() {
        for steps in 1..=60 {
            for f in (0..=60).flat_map(|a| (0..=60 - a).map(move |b| [a, b, 60 - a - b])) {
                if f.iter().all(|&n| n <= steps) && f.contains(&steps) {
                    let f = f.map(|n| f64::from(n) / 60.0);
                    let range = losses_of_confidence([0.0, f64::from(steps) / 60.0], 3, &loss);
                    let mut values = [0.0; 3];
                    loss.losses_into(&f, &mut values);
                    assert!(values.iter().all(|x| (range[0]..=range[1]).contains(x)), "{loss} {f:?} {range:?}");
                }
            }
        }
    }
    for loss in ["brier", "cross-entropy", "spherical", "zero-one", "three-part", "fn-fp:fp=1,fn=3"] {
        let loss: Loss = loss.parse().unwrap();
        for high in (50..=100).map(|n| f64::from(n) / 100.0) {
            let range = losses_of_confidence([0.5, high], 2, &loss);
            for p in [0.5, f64::midpoint(0.5, high), high] {
                for f in [[p, 1.0 - p], [1.0 - p, p]] {
                    let mut values = [0.0; 2];
                    loss.losses_into(&f, &mut values);
                    assert!(values.iter().all(|x| (range[0]..=range[1]).contains(x)), "{loss} {f:?} {range:?}");
                }
            }
        }
    }
}

#[test]
fn single_labels_are_predicted_from_the_items_before() {
    for loss in losses() {
        for p in POINTS {
            // Each possible label once, weighted by its probability.
            let (votes, chances): (Vec<_>, Vec<_>) = all_votes(1, p).into_iter().unzip();
            let items = Items::from_votes(3, [0.3, 0.3, 0.4].repeat(3), votes.concat());
            let bayes = Answer::bayes(&items, &loss, None);
            let certain: f64 = votes.iter().zip(&chances).map(|(n, c)| c * loss.entropy(&n.map(f64::from))).sum();
            let below = dot(&bayes.below.values, &chances);
            assert!(below <= certain + 1e-12 && below >= 0.0, "{loss}");
            assert!(certain <= loss.entropy(&p) + 1e-12);
            // The first item is predicted from its weak prediction alone.
            let first = loss.expected(&votes[0].map(f64::from), &[0.3, 0.3, 0.4]);
            assert!((bayes.above().values[0] - first).abs() < 1e-12, "{loss}");
        }
    }
}

#[test]
fn intervals_of_served_predictions_cover_their_loss() {
    let votes: Vec<u32> = (0..600).flat_map(|i| if i % 3 == 0 { [3, 1, 1] } else { [0, 4, 1] }).collect();
    let items = Items::from_votes(3, [0.3, 0.3, 0.4].repeat(600), votes);
    let mean = [0.2, 0.6, 0.2];
    for loss in losses() {
        for q in POINTS {
            let interval = served(&q, &items, &loss, 0.01);
            let value = loss.expected(&mean, &q);
            assert!(interval.contains(value), "{loss}, {q:?}: {value} in {interval:?}");
            assert!(interval.low >= -1e-9 && interval.high <= loss.bound() + 1e-9);
            assert!(interval.width() < 0.35 * loss.bound(), "{loss}, {q:?}: {interval:?}");
        }
    }
}
