//! Losses are proper, bounded, Lipschitz in the truth, and equal those of the paper's appendix.

use pointsman::Loss;
use pointsman::loss::LOG_FLOOR;
use pointsman::table::MAX_CLASSES;
use proptest::prelude::*;

use crate::world::{any_loss, dist, normalised};

/// The rounding error of an expected loss: a few units in the last place of the largest loss.
fn rounding(loss: &Loss) -> f64 {
    1e-12 * loss.bound().max(1.0)
}

fn losses(loss: &Loss, q: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; q.len()];
    loss.losses_into(q, &mut out);
    out
}

fn distance(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(x, y)| (x - y).abs()).sum()
}

fn case() -> impl Strategy<Value = (Loss, Vec<f64>, Vec<f64>, Vec<f64>)> {
    (2_usize..6).prop_flat_map(|c| (any_loss(c), dist(c), dist(c), dist(c)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_prediction_beats_the_truth((loss, p, q, _) in case()) {
        let (own, other) = (loss.expected(&p, &p), loss.expected(&p, &q));
        prop_assert!(other >= own - rounding(&loss), "{loss}: L(p, q) = {other} below L(p, p) = {own}");
    }

    #[test]
    fn entropy_is_the_loss_of_the_truth((loss, p, _, _) in case()) {
        let (entropy, own) = (loss.entropy(&p), loss.expected(&p, &p));
        prop_assert!((entropy - own).abs() <= rounding(&loss), "{loss}: {entropy} and {own}");
    }

    #[test]
    fn losses_lie_between_zero_and_the_bound((loss, p, q, _) in case()) {
        for x in losses(&loss, &q).into_iter().chain([loss.entropy(&p), loss.expected(&p, &q)]) {
            prop_assert!((-1e-15..=loss.bound() * (1.0 + 1e-15)).contains(&x), "{loss}: {x}");
        }
    }

    #[test]
    fn total_and_irreducible_loss_are_lipschitz_in_the_truth((loss, p, r, q) in case()) {
        prop_assert!(loss.lipschitz() <= loss.bound() / 2.0);
        let reach = loss.lipschitz() * distance(&p, &r) + rounding(&loss);
        prop_assert!((loss.expected(&p, &q) - loss.expected(&r, &q)).abs() <= reach, "{loss}: total");
        prop_assert!((loss.entropy(&p) - loss.entropy(&r)).abs() <= reach, "{loss}: irreducible");
    }

    #[test]
    fn entropy_is_concave((loss, p, r, _) in case(), t in 0.0..1.0) {
        let middle: Vec<f64> = p.iter().zip(&r).map(|(x, y)| t * x + (1.0 - t) * y).collect();
        let chord = t * loss.entropy(&p) + (1.0 - t) * loss.entropy(&r);
        prop_assert!(loss.entropy(&middle) >= chord - rounding(&loss), "{loss}");
    }

    /// The projected prediction is the best of all predictions above the floor, so the cross-entropy is proper.
    #[test]
    fn cross_entropy_of_the_truth_is_the_least_above_the_floor(
        (p, a) in (2_usize..6).prop_flat_map(|c| (dist(c), dist(c)))
    ) {
        let room = 1.0 - a.len() as f64 * LOG_FLOOR;
        let rival: f64 = -p.iter().zip(&a).map(|(p, a)| p * (LOG_FLOOR + room * a).ln()).sum::<f64>();
        prop_assert!(Loss::cross_entropy().entropy(&p) <= rival + 1e-12);
    }

    /// If no entry is below the floor, the cross-entropy is the plain one.
    #[test]
    fn cross_entropy_is_plain_above_the_floor(
        p in dist(4), q in proptest::collection::vec(0.01..1.0, 4).prop_map(normalised)
    ) {
        let plain: f64 = -p.iter().zip(&q).map(|(p, q)| p * q.ln()).sum::<f64>();
        prop_assert!((Loss::cross_entropy().expected(&p, &q) - plain).abs() <= 1e-14);
    }

    #[test]
    fn fn_fp_thresholds_the_odds(fp in 0.1..5.0_f64, fn_ in 0.1..5.0_f64, y in dist(2), p in dist(2)) {
        prop_assume!((p[1] * fn_ - p[0] * fp).abs() > 1e-9);
        let positive = p[1] / p[0] >= fp / fn_;
        let paper = if positive { fp * y[0] } else { fn_ * y[1] };
        prop_assert!((Loss::fn_fp(fp, fn_).unwrap().expected(&y, &p) - paper).abs() <= 1e-15);
    }

    #[test]
    fn three_part_has_thresholds_a_quarter_and_fifteen_sixteenths(y in dist(2), p in dist(2)) {
        prop_assume!((p[1] - 0.25).abs() > 1e-9 && (p[1] - 0.9375).abs() > 1e-9);
        let paper = match p[1] {
            x if x < 0.25 => y[1],
            x if x < 0.9375 => 0.25,
            _ => 4.0 * y[0],
        };
        prop_assert!((Loss::three_part().expected(&y, &p) - paper).abs() <= 1e-15);
    }

    #[test]
    fn asymmetric_biases_the_first_score(
        gamma in 0.1..5.0, (y, p) in (2_usize..6).prop_flat_map(|c| (dist(c), dist(c)))
    ) {
        let mut scores = p.clone();
        scores[0] = gamma * p[0] + (1.0 - gamma);
        let best = (0..p.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        prop_assume!((0..p.len()).all(|c| c == best || scores[c] < scores[best] - 1e-9));
        let paper = if best == 0 { gamma * (1.0 - y[0]) } else { 1.0 - y[best] };
        let loss = Loss::asymmetric(gamma).unwrap();
        prop_assert!((loss.expected(&y, &p) - paper).abs() <= 1e-14);
        prop_assert_eq!(loss.act(&p), best);
    }

    #[test]
    fn brier_spherical_and_zero_one_are_the_textbook_formulas(p in dist(3), y in 0_usize..3) {
        let square: f64 = (0..3).map(|c| (f64::from(u8::from(c == y)) - p[c]).powi(2)).sum();
        prop_assert!((losses(&Loss::brier(), &p)[y] - square).abs() <= 1e-15);
        let norm = p.iter().map(|x| x * x).sum::<f64>().sqrt();
        prop_assert!((losses(&Loss::spherical(), &p)[y] - (1.0 - p[y] / norm)).abs() <= 1e-15);
        prop_assume!((0..3).all(|c| c == 0 || (p[c] - p[0]).abs() > 1e-9));
        let wrong = (0..3).any(|c| p[c] > p[y] + 1e-9);
        prop_assume!((0..3).all(|c| c == y || (p[c] - p[y]).abs() > 1e-9));
        prop_assert_eq!(losses(&Loss::zero_one(), &p)[y], f64::from(u8::from(wrong)));
    }

    /// The named decision losses equal their cost matrices.
    #[test]
    fn named_losses_equal_their_matrices(y in dist(3), p in dist(3), gamma in 0.1..4.0) {
        let rows = |gamma: f64| vec![vec![0.0, gamma, gamma], vec![1.0, 0.0, 1.0], vec![1.0, 1.0, 0.0]];
        for (named, gamma) in [(Loss::zero_one(), 1.0), (Loss::asymmetric(gamma).unwrap(), gamma)] {
            let matrix = Loss::matrix(["a", "b", "c"], rows(gamma)).unwrap();
            prop_assert!((named.entropy(&p) - matrix.entropy(&p)).abs() <= 1e-14);
            prop_assert!((named.bound() - matrix.bound().max(1.0)).abs() <= 0.0);
            prop_assert_eq!(losses(&named, &p), losses(&matrix, &p));
            prop_assert!((named.expected(&y, &p) - matrix.expected(&y, &p)).abs() <= 1e-14);
        }
    }
}

/// Exact ties, as of snapshot means, in thirds and sevenths that floats cannot represent.
#[test]
fn first_listed_act_wins_ties() {
    for k in 2_u32..40 {
        let share = |n: u32| f64::from(n) / f64::from(k);
        for n in 0..=k / 2 {
            let (a, b) = (share(n), share(k - 2 * n));
            if n > k - 2 * n {
                assert_eq!(losses(&Loss::zero_one(), &[a, b, a]), [0.0, 1.0, 1.0], "{n} of {k}");
                assert_eq!(losses(&Loss::zero_one(), &[b, a, a]), [1.0, 0.0, 1.0], "{n} of {k}");
            }
        }
        // p₁/p₀ = (k − n)/n is the ratio of the prices, so the costs tie; positive is listed first.
        for n in 1..k {
            let loss = Loss::fn_fp(f64::from(k - n), f64::from(n)).unwrap();
            assert_eq!(loss.act(&[share(n), share(k - n)]), 0, "{n} of {k}");
            assert_eq!(loss.acts().unwrap()[0], "positive");
            // Below the threshold the act is negative.
            assert_eq!(loss.act(&[share(n) + 1e-9, share(k - n) - 1e-9]), 1, "{n} of {k}");
        }
        // Predicting the first class costs 2(1 − p₀), another one 1 − p_c: equal at 2p₀ − p_c = 1.
        if k % 3 == 0 {
            let asymmetric = Loss::asymmetric(2.0).unwrap();
            assert_eq!(asymmetric.act(&[2.0 / 3.0, 1.0 / 3.0]), 0);
            assert_eq!(asymmetric.act(&[2.0 / 3.0 - 1e-9, 1.0 / 3.0 + 1e-9]), 1);
        }
    }
    let three_part = Loss::three_part();
    let act = |p1: f64| three_part.acts().unwrap()[three_part.act(&[1.0 - p1, p1])].as_str();
    assert_eq!(
        [act(0.25 - 1e-9), act(0.25), act(0.9375 - 1e-9), act(0.9375)],
        ["negative", "hedge", "hedge", "positive"]
    );
    let same = Loss::matrix(["x", "y"], vec![vec![0.1, 0.7], vec![0.1, 0.7]]).unwrap();
    assert_eq!(same.act(&[0.3, 0.7]), 0);
}

#[test]
fn losses_of_predictions_with_zeros_are_at_most_the_bound() {
    let loss = Loss::cross_entropy();
    assert_eq!(losses(&loss, &[1.0, 0.0])[1], loss.bound());
    assert!((losses(&loss, &[1.0, 0.0])[0] - LOG_FLOOR).abs() < 1e-11);
    assert!((losses(&loss, &[0.5, 0.5, 0.0])[0] - (2.0_f64.ln() + LOG_FLOOR)).abs() < 1e-11);
    // The floor leaves room for the largest number of classes of a table.
    let mut vertex = vec![0.0; MAX_CLASSES];
    vertex[7] = 1.0;
    let all = losses(&loss, &vertex);
    assert_eq!(all[0], loss.bound());
    assert!((all[7] + (1.0 - (MAX_CLASSES - 1) as f64 * LOG_FLOOR).ln()).abs() < 1e-11);
}

#[test]
fn invalid_cost_matrices_are_refused() {
    let ok = || vec![vec![0.0, 1.0], vec![1.0, 0.0]];
    assert!(Loss::matrix(["a", "b"], ok()).is_ok());
    let mut cases = vec![
        (vec!["a"], ok(), "one row per act"),
        (vec!["a", "b", "c"], ok(), "one row per act"),
        (vec![], vec![], "one row per act"),
        (vec!["a", "a"], ok(), "given twice"),
        (vec!["a", ""], ok(), "empty"),
        (vec!["a", "b"], vec![vec![0.0, 1.0], vec![1.0]], "\"b\" has 1 costs"),
        (vec!["a", "b"], vec![vec![0.0], vec![1.0]], "1 columns"),
        (vec!["a", "b"], vec![vec![], vec![]], "0 columns"),
    ];
    for bad in [-1.0, -1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        cases.push((vec!["a", "b"], vec![vec![0.0, 1.0], vec![bad, 0.0]], "costs are from 0 to 1e100"));
    }
    for (acts, cost, reason) in cases {
        let error = Loss::matrix(acts.clone(), cost.clone()).unwrap_err().to_string();
        assert!(error.contains(reason), "{acts:?} {cost:?}: {error}");
    }
    let loss = Loss::matrix(["a"], vec![vec![0.0, 1.0, 2.0]]).unwrap();
    assert!(loss.check_classes(3).is_ok());
    assert!(loss.check_classes(2).unwrap_err().to_string().contains("for 3 classes"));
    assert!(Loss::three_part().check_classes(3).is_err() && Loss::fn_fp(1.0, 1.0).unwrap().check_classes(3).is_err());
    assert!(Loss::brier().check_classes(3).is_ok() && Loss::asymmetric(2.0).unwrap().check_classes(7).is_ok());
}

#[test]
fn text_forms_of_losses_round_trip() {
    let texts = [
        ("brier", Loss::brier()),
        ("cross-entropy", Loss::cross_entropy()),
        ("spherical", Loss::spherical()),
        ("zero-one", Loss::zero_one()),
        ("three-part", Loss::three_part()),
        ("asymmetric:2", Loss::asymmetric(2.0).unwrap()),
        ("asymmetric:0.25", Loss::asymmetric(0.25).unwrap()),
        ("fn-fp:fp=1,fn=3", Loss::fn_fp(1.0, 3.0).unwrap()),
        ("fn-fp:fp=0.1,fn=0", Loss::fn_fp(0.1, 0.0).unwrap()),
    ];
    for (text, loss) in texts {
        assert_eq!(text.parse::<Loss>().unwrap(), loss, "{text}");
        assert_eq!(loss.to_string(), text);
    }
    assert_eq!("fn-fp:fn=3".parse::<Loss>().unwrap(), Loss::fn_fp(1.0, 3.0).unwrap());
    assert_eq!("fn-fp:fn=3,fp=2".parse::<Loss>().unwrap(), Loss::fn_fp(2.0, 3.0).unwrap());
}

#[test]
fn invalid_losses_are_refused() {
    for text in [
        "",
        "Brier",
        "brier ",
        "brier:2",
        "log",
        "cross-entropy:1e-3",
        "zero-one:",
        "three-part:4",
        "asymmetric",
        "asymmetric:",
        "asymmetric:x",
        "asymmetric:-1",
        "asymmetric:nan",
        "asymmetric:inf",
        "asymmetric:1,2",
        "fn-fp:1,3",
        "fn-fp:fp",
        "fn-fp:fp=",
        "fn-fp:fp=x",
        "fn-fp:fp=-1",
        "fn-fp:fn=nan",
        "fn-fp:fn=inf",
        "fn-fp:tp=1",
        "matrix(a, b)",
    ] {
        let error = text.parse::<Loss>().expect_err(text).to_string();
        assert!(
            error.contains("use ")
                || error.contains("from 0 to 1e100")
                || error.contains("not a number")
                || error.contains("neither")
                || error.contains("least 0"),
            "{text:?}: {error}"
        );
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Loss::asymmetric(bad).is_err() && Loss::fn_fp(bad, 1.0).is_err() && Loss::fn_fp(1.0, bad).is_err());
    }
}

#[test]
fn label_is_the_class_of_the_act() {
    let yes = |p: f64| [1.0 - p, p];
    let fn_fp = Loss::fn_fp(1.0, 3.0).unwrap();
    assert_eq!([0.1, 0.2, 0.3, 0.4, 0.6].map(|p| fn_fp.label(&yes(p))), [0, 0, 1, 1, 1]);
    // Positive above 15/16, negative below 1/4; in between the hedge predicts the top class.
    let three_part = Loss::three_part();
    assert_eq!([0.2, 0.3, 0.45, 0.6, 0.95].map(|p| three_part.label(&yes(p))), [0, 0, 0, 1, 1]);
    let asymmetric = Loss::asymmetric(3.0).unwrap();
    assert_eq!([0.1, 0.3, 0.6].map(|p| asymmetric.label(&yes(p))), [0, 1, 1]);
    // The acts of a user's matrix are not classes, whatever their names.
    let own = Loss::matrix(["positive", "negative"], vec![vec![0.0, 0.0], vec![1.0, 1.0]]).unwrap();
    assert_eq!([0.2, 0.8].map(|p| own.label(&yes(p))), [0, 1]);
    assert_eq!([0.2, 0.8].map(|p| Loss::brier().label(&yes(p))), [0, 1]);
}
