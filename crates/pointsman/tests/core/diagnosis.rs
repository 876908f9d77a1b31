//! Diagnoses of simulations with known answers.

use std::cell::Cell;

use pointsman::diagnose::{Advice, Annotations, Stopping, Unanimity};
use pointsman::diagnose::{diagnose, diagnose_annotated};
use pointsman::{Diagnosis, Loss, Oracle, Partition, Table, Task};

use crate::world::{CLASS_NAMES, Rng, close, table};

/// Items of two classes with p* between 0.5 and 1, predicted with noise; `labels` draws the labels of an item.
fn labelled(rng: &mut Rng, n: usize, labels: impl Fn(&mut Rng, &[f64]) -> Vec<u32>) -> Table {
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let p = 0.5 + 0.5 * rng.uniform();
        let f = (p + 0.2 * (rng.uniform() - 0.5)).clamp(0.01, 0.99);
        probs.push(vec![1.0 - f, f]);
        votes.push(labels(rng, &[1.0 - p, p]));
    }
    table(2, &probs, &votes)
}

/// Two labels, and three more if they disagree.
fn until_two_agree(rng: &mut Rng, p: &[f64]) -> Vec<u32> {
    let mut votes = rng.votes(p, 2);
    if votes.iter().all(|&n| n < 2) {
        votes.iter_mut().zip(rng.votes(p, 3)).for_each(|(all, n)| *all += n);
    }
    votes
}

#[test]
fn stopping_on_agreement_is_detected() {
    let mut rng = Rng::new(5);
    for _ in 0..40 {
        let table = labelled(&mut rng, 300, until_two_agree);
        let found = Stopping::detect(&table).unwrap().expect("k varies");
        assert!(found.is_suspicious() && found.z > 0.0 && found.stopped_at == Some(2), "{found:?}");
        assert!(found.disagreement[0] == 0.0 && found.disagreement[1] > 0.3, "{found:?}");
        // One label, and two more if it contradicts the prediction: rows with one label have no pairs.
        let table = labelled(&mut rng, 300, |rng, p| {
            let mut votes = rng.votes(p, 1);
            if votes[1] == 0 {
                votes.iter_mut().zip(rng.votes(p, 2)).for_each(|(all, n)| *all += n);
            }
            votes
        });
        let found = Stopping::detect(&table).unwrap().expect("k varies");
        assert!(found.is_suspicious() && found.z > 0.0, "{found:?}");
    }
}

/// Items as in [`labelled`], whose labels are drawn one by one and given by nine annotators in random order. If `place` says where, after how
/// many of the others, FINAL gives the most frequent label once more.
fn named(
    rng: &mut Rng,
    n: usize,
    labels: impl Fn(&mut Rng, f64) -> Vec<u32>,
    place: Option<fn(usize) -> usize>,
) -> (Table, Annotations) {
    let (mut probs, mut votes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut order: Vec<u32> = (0..9).collect();
    for _ in 0..n {
        let p = 0.5 + 0.5 * rng.uniform();
        let f = (p + 0.2 * (rng.uniform() - 0.5)).clamp(0.01, 0.99);
        rng.shuffle(&mut order);
        let mut row: Vec<(u32, u32)> = order.iter().copied().zip(labels(rng, p)).collect();
        if let Some(place) = place {
            let yes = row.iter().filter(|(_, label)| *label == 1).count();
            row.insert(place(row.len()), (9, u32::from(2 * yes > row.len())));
        }
        let mut counts = vec![0, 0];
        row.iter().for_each(|(_, label)| counts[*label as usize] += 1);
        probs.push(vec![1.0 - f, f]);
        votes.push(counts);
        rows.push(row);
    }
    let names = (0..9).map(|who| format!("a{who}")).chain(place.map(|_| "FINAL".to_owned()));
    (table(2, &probs, &votes), Annotations::new(names, rows).unwrap())
}

fn draw(rng: &mut Rng, p: f64, labels: usize) -> Vec<u32> {
    (0..labels).map(|_| u32::from(rng.uniform() < p)).collect()
}

/// With a majority vote among the labels, items of two labels are unanimous, as if labelling had stopped there.
#[test]
fn majority_votes_are_named_and_not_taken_for_stopping() {
    let mut rng = Rng::new(13);
    let random_number = |rng: &mut Rng, p: f64| {
        let k = 1 + rng.below(5);
        draw(rng, p, k)
    };
    // FINAL comes last or, in a file without an order, first.
    for place in [(|others| others) as fn(usize) -> usize, |_| 0] {
        let (table, annotations) = named(&mut rng, 1500, random_number, Some(place));
        let with_votes = Stopping::detect(&table).unwrap().expect("k varies");
        assert_eq!(with_votes.stopped_at, Some(2), "{with_votes:?}");
        let found = diagnose_annotated(&table, Some(&annotations), &task(0.1), &Partition::top_class(5), || ());
        let found = found.unwrap();
        let vote = found.annotators.iter().find(|one| one.annotator == "FINAL").unwrap();
        assert_eq!(vote.flags[0], "majority-vote", "{vote:?}");
        assert_eq!(vote.flags_in_words(), "looks like a majority vote of the others");
        assert_eq!(found.flagged_annotators.as_ref().unwrap().annotators[0], "FINAL");
        assert!(!found.stopping.is_some_and(|stopping| stopping.is_suspicious()), "{:?}", found.stopping);
        let said = &found.verdict.sentence;
        assert_eq!(found.verdict.advice, Advice::MendLabels, "{said}");
        assert!(said.starts_with("Correct the labels first: FINAL looks like a majority vote"), "{said}");
        assert!(said.contains("--without FINAL"), "{said}");
        assert!(!said.contains("--first-labels") && !said.contains("until annotators agreed"), "{said}");
    }
}

#[test]
fn stopping_on_agreement_is_detected_where_annotators_are_named() {
    let mut rng = Rng::new(14);
    let until_two_agree = |rng: &mut Rng, p: f64| {
        let mut labels = draw(rng, p, 2);
        if labels[0] != labels[1] {
            labels.extend(draw(rng, p, 3));
        }
        labels
    };
    let (table, annotations) = named(&mut rng, 800, until_two_agree, None);
    let found = diagnose_annotated(&table, Some(&annotations), &task(0.1), &Partition::top_class(5), || ()).unwrap();
    assert_eq!(found.stopping.and_then(|stopping| stopping.stopped_at), Some(2), "{:?}", found.stopping);
    let said = &found.verdict.sentence;
    assert!(said.contains("until annotators agreed") && said.contains("--first-labels 2"), "{said}");
}

/// The majority label of an item, repeated as often as there were labels, is right more often where there were many.
#[test]
fn repeated_majority_labels_are_not_taken_for_stopping() {
    let mut rng = Rng::new(15);
    let mut repeated = |contested: usize| {
        labelled(&mut rng, 1500, |rng, p| {
            let k = 1 + rng.below(5);
            let drawn = rng.votes(p, k);
            match rng.below(1500) < contested {
                true => vec![1, 1],
                false if drawn[1] > drawn[0] => vec![0, k as u32],
                false => vec![k as u32, 0],
            }
        })
    };
    for _ in 0..12 {
        assert_eq!(Stopping::detect(&repeated(0)).unwrap(), None);
        // A few rows on which labels differ do not change that.
        assert_eq!(Stopping::detect(&repeated(3)).unwrap(), None);
    }
    let found = look(&repeated(0), &task(0.1));
    assert_eq!(found.verdict.advice, Advice::MendLabels);
    assert!(found.verdict.sentence.contains("labels were copied"), "{}", found.verdict.sentence);
}

#[test]
fn random_numbers_of_labels_are_not_suspicious() {
    let mut rng = Rng::new(6);
    let (mut warned, mut small) = (0, 0);
    for draw in 0..400 {
        let n = if draw % 2 == 0 { 60 } else { 400 };
        let table = labelled(&mut rng, n, |rng, p| {
            let k = 1 + rng.below(6);
            rng.votes(p, k)
        });
        let found = Stopping::detect(&table).unwrap().expect("k varies");
        warned += usize::from(found.is_suspicious());
        small += usize::from(found.p_value < 0.05);
    }
    // One in a thousand by design; p-values are approximately uniform.
    assert!(warned <= 4 && small <= 36, "{warned} warnings, {small} below 0.05");
}

#[test]
fn equal_numbers_of_labels_are_not_tested() {
    let mut rng = Rng::new(7);
    let table = labelled(&mut rng, 100, |rng, p| rng.votes(p, 3));
    assert_eq!(Stopping::detect(&table).unwrap(), None);
    let bare = Table::new(CLASS_NAMES[..2].to_vec(), vec![0.5, 0.5]).unwrap();
    assert_eq!(Stopping::detect(&bare).unwrap(), None, "no votes, nothing to compare");
}

/// A binary simulation: confidences are uniform on [0.5, 1], and `truth` is the probability that the top class is right.
pub(crate) fn world(seed: u64, n: usize, k: usize, truth: impl Fn(&mut Rng, f64) -> f64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let confidence = 0.5 + 0.5 * rng.uniform();
        let p = truth(&mut rng, confidence);
        // Either class may be on top.
        let (f, p) = if rng.uniform() < 0.5 { (confidence, p) } else { (1.0 - confidence, 1.0 - p) };
        probs.push(vec![1.0 - f, f]);
        votes.push(rng.votes(&[1.0 - p, p], k));
    }
    table(2, &probs, &votes)
}

/// At the lowest confidences annotators disagree as well; at middle confidences the model errs and they agree.
pub(crate) fn noise_then_error(rng: &mut Rng, confidence: f64) -> f64 {
    if confidence < 0.7 { confidence } else { f64::from(u8::from(rng.uniform() < confidence)) }
}

/// Annotators hardly disagree: nearly all loss is reducible.
pub(crate) fn error_alone(rng: &mut Rng, confidence: f64) -> f64 {
    if rng.uniform() < confidence { 0.99 } else { 0.01 }
}

fn task(route: f64) -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), route).unwrap()
}

pub(crate) fn look(table: &Table, task: &Task) -> Diagnosis {
    diagnose(table, task, &Partition::top_class(5), || ()).unwrap()
}

#[test]
fn decomposition_pays_if_noise_and_error_are_mixed() {
    for k in [3, 10] {
        let table = world(1, 990, k, noise_then_error);
        for task in [Task::new(Loss::brier()), task(0.1)] {
            let found = look(&table, &task);
            assert_eq!(found.verdict.advice, Advice::UseIt, "{:?}", found.verdict);
            let worth = found.worth.unwrap();
            assert!(worth.gain_over_total_uncertainty.unwrap().low > 0.1, "{worth:?}");
            assert!(worth.correlation.unwrap() < 0.5, "{worth:?}");
            assert!(found.weak_model.is_calibrated(), "{:?}", found.weak_model);
        }
    }
}

#[test]
fn decomposition_does_not_pay_for_error_alone() {
    let table = world(2, 2000, 5, error_alone);
    for task in [Task::new(Loss::brier()), task(0.2), Task::new(Loss::zero_one())] {
        let found = look(&table, &task);
        assert_eq!(found.verdict.advice, Advice::NoNeed, "{:?}", found.verdict);
        let worth = found.worth.unwrap();
        assert!(worth.correlation.unwrap() > 0.95, "{worth:?}");
        assert!(worth.gain_over_total_uncertainty.unwrap().high < 0.05, "{worth:?}");
    }
    // Costs too: thresholds on total uncertainty do as well as the router.
    let savings = look(&table, &task(0.2)).worth.unwrap().savings.unwrap();
    assert!(savings.get("total-uncertainty").unwrap().high < 0.01 && savings.get("always-predict").unwrap().low > 0.0);
}

#[test]
fn one_label_per_item_gives_bounds_only() {
    let table = world(3, 600, 1, noise_then_error);
    let found = look(&table, &task(0.9));
    assert_eq!(found.verdict.advice, Advice::OneLabel);
    assert!(found.worth.is_none() && found.enough.plugin_shortfall.is_none() && found.enough.stability.is_none());
    let bounds = found.bounds.unwrap();
    assert!(0.0 <= bounds.reducible[0] && bounds.reducible[0] < bounds.reducible[1], "{bounds:?}");
    assert_eq!(bounds.decided, Some(1.0), "nobody pays 0.9 for at most a Brier loss of 0.5");
    assert!(look(&table, &task(0.1)).bounds.unwrap().decided.unwrap() < 1.0);
}

#[test]
fn few_rows_give_no_verdict() {
    let found = look(&world(4, 40, 3, noise_then_error), &task(0.1));
    assert_eq!(found.verdict.advice, Advice::MoreData, "{:?}", found.verdict);
}

/// The labels of all rows separate noise from error, and those of half of the rows do not.
#[test]
fn too_few_rows_with_several_labels_ask_for_rows() {
    // Of forty rows 21 have three labels, the others one.
    let row = Cell::new(0);
    let table = labelled(&mut Rng::new(8), 40, |rng, p| {
        row.set(row.get() + 1);
        rng.votes(p, if row.get() % 2 == 0 || row.get() == 1 { 3 } else { 1 })
    });
    let found = look(&table, &Task::new(Loss::brier()));
    assert_eq!(found.verdict.advice, Advice::MoreData, "{:?}", found.verdict);
    assert!(found.bounds.is_none() && found.verdict.sentence.contains("have two labels or more"), "{found:?}");
}

/// A router that learns from half of some hundred rows often saves nothing where one of all rows saves much.
#[test]
fn no_saving_on_few_rows_is_no_reason_against_it() {
    for seed in 0..4 {
        let verdict = look(&world(70 + seed, 200, 3, noise_then_error), &Task::new(Loss::brier())).verdict;
        assert!(matches!(verdict.advice, Advice::UseIt | Advice::MoreData), "{verdict:?}");
    }
}

/// Intervals of zero width are not evidence with few rows.
#[test]
fn very_few_rows_give_no_verdict() {
    for n in [4, 10] {
        let table = table(2, &vec![vec![0.3, 0.7]; n], &vec![vec![1, 2]; n]);
        for task in [Task::new(Loss::brier()), task(0.1)] {
            let verdict = look(&table, &task).verdict;
            assert_eq!(verdict.advice, Advice::MoreData, "{verdict:?}");
            assert!(verdict.sentence.contains(&format!("{n} rows")), "{verdict:?}");
        }
    }
}

/// A router of half of few rows says little about one of all rows or of more.
#[test]
fn few_rows_are_no_reason_against_routing_at_prices() {
    let mut asked = 0;
    for seed in 0..10 {
        let found = look(&world(200 + seed, 300, 3, error_alone), &task(0.2)).verdict;
        assert!(!matches!(found.advice, Advice::NoNeed | Advice::SmallSaving), "{found:?}");
        asked += usize::from(
            found.sentence.starts_with("More rows first, at least 1,000: on 300 rows, of which half learn"),
        );
    }
    assert!(asked > 0);
    // Nor is it if all rules do the same.
    let dear = look(&world(2, 300, 5, error_alone), &task(1.9)).verdict;
    assert_eq!(dear.advice, Advice::MoreData, "{dear:?}");
    assert!(dear.sentence.contains("did the same as the best simpler rule, always predict, in every half"), "{dear:?}");
    let many = look(&world(2, 1_000, 5, error_alone), &task(1.9)).verdict;
    assert_eq!(many.advice, Advice::NoNeed, "{many:?}");
    let limited = task(0.2).target_loss(0.9).unwrap();
    assert_eq!(
        look(&world(2, 300, 5, error_alone), &limited).verdict.advice,
        Advice::NoNeed,
        "nothing is to be routed"
    );
    // No router saves more than what is reducible.
    let votes: Vec<Vec<u32>> = (0..200).map(|row| if row % 2 == 0 { vec![2, 1] } else { vec![1, 2] }).collect();
    let noise = table(2, &vec![vec![0.48, 0.52]; 200], &votes);
    let found = look(&noise, &task(0.1)).verdict;
    assert!(found.advice == Advice::NoNeed && found.sentence.contains("no router saves more than"), "{found:?}");
    let abstaining = look(&noise, &task(0.1).abstain(0.45).unwrap()).verdict;
    assert_ne!(abstaining.advice, Advice::NoNeed, "{abstaining:?}");
}

/// The cells are too coarse for the errors, which a threshold separates.
#[test]
fn cheaper_rule_is_called_cheaper() {
    let near_half = |_: &mut Rng, confidence: f64| if confidence < 0.53 { 0.01 } else { confidence };
    let found = diagnose(&world(4, 3_000, 5, near_half), &task(0.2), &Partition::top_class(3), || ()).unwrap();
    let verdict = &found.verdict;
    let is_cheaper = "No need at these prices: the best confidence threshold is cheaper. Pointsman would cost ";
    assert!(verdict.sentence.starts_with(is_cheaper), "{verdict:?}");
}

/// A verdict is rarely wrong, even with few rows: uncertainty is reported as such.
#[test]
fn wrong_verdicts_are_rare() {
    let (mut needless, mut missed) = (0, 0);
    for seed in 0..20 {
        let found = look(&world(200 + seed, 300, 3, error_alone), &task(0.2)).verdict;
        needless += usize::from(found.advice == Advice::UseIt);
        let found = look(&world(300 + seed, 300, 3, noise_then_error), &task(0.1)).verdict;
        missed += usize::from(found.advice == Advice::NoNeed);
    }
    assert!(needless <= 1 && missed <= 1, "{needless} needless, {missed} missed");
}

#[test]
fn overconfident_models_are_distinguished_from_calibrated_ones() {
    let honest = look(&world(5, 990, 5, error_alone), &task(0.2));
    assert!(honest.weak_model.is_calibrated() && !honest.weak_model.is_overconfident(), "{:?}", honest.weak_model);
    // Right in a quarter of the cases beyond chance.
    let boasting = |rng: &mut Rng, confidence: f64| error_alone(rng, 0.5 + (confidence - 0.5) / 4.0);
    let found = look(&world(5, 990, 5, boasting), &task(0.2));
    let model = &found.weak_model;
    assert!(model.is_overconfident() && model.error > 2.0 * model.floor, "{model:?}");
    assert!(model.recalibrating_saves[0].unwrap().low > 0.0, "{model:?}");
    assert!(found.verdict.remarks.iter().any(|remark| remark.contains("overconfident")), "{:?}", found.verdict);
}

#[test]
fn calibration_floor_equals_the_error_by_chance() {
    let (mut error, mut floor, mut refused) = (0.0, 0.0, 0);
    for seed in 0..40 {
        let model = look(&world(100 + seed, 300, 3, error_alone), &Task::new(Loss::brier())).weak_model;
        error += model.error / 40.0;
        floor += model.floor / 40.0;
        refused += usize::from(!model.is_calibrated());
    }
    close(floor / error, 1.0, 0.1, "floor over error");
    assert!(refused <= 3, "{refused}");
}

/// Five copies of one label look like five labels that agree.
#[test]
fn labels_that_never_differ_are_reported() {
    let copied = |seed: u64, n: usize, k: u32| {
        let drawn = world(seed, n, 1, |_, confidence| confidence);
        let votes = (0..n).flat_map(|row| drawn.votes(row).unwrap().counts().iter().map(move |count| k * count));
        let probs = (0..n).flat_map(|row| drawn.prediction(row).to_vec()).collect();
        Table::new(CLASS_NAMES[..2].to_vec(), probs).unwrap().with_votes(votes.collect::<Vec<u32>>()).unwrap()
    };
    for k in [2, 5] {
        let found = look(&copied(1, 400, k), &task(0.1));
        assert_eq!(found.verdict.advice, Advice::MendLabels, "{:?}", found.verdict);
        assert!(found.verdict.sentence.contains("each of the 400 rows"), "{}", found.verdict.sentence);
        let unanimity = found.unanimity.unwrap();
        assert!(unanimity.rows == 400 && (60..140).contains(&unanimity.contradicting), "{unanimity:?}");
    }
    // Few rows, one label per row, a single contested row, or a model that is always right: nothing is reported.
    assert_eq!(Unanimity::detect(&copied(1, 50, 5)).unwrap(), None);
    assert_eq!(Unanimity::detect(&copied(1, 400, 1)).unwrap(), None);
    let right = world(2, 400, 5, |_, _| 1.0);
    assert_eq!(Unanimity::detect(&right).unwrap(), None);
    for seed in 0..20 {
        assert_eq!(Unanimity::detect(&world(seed, 300, 2, |_, confidence| confidence)).unwrap(), None);
    }
}

#[test]
fn stopping_rules_make_the_verdict_mend_labels() {
    let mut rng = Rng::new(9);
    let found = look(&labelled(&mut rng, 400, until_two_agree), &task(0.1));
    assert_eq!(found.verdict.advice, Advice::MendLabels);
    assert!(found.verdict.sentence.contains("--first-labels 2"), "{}", found.verdict.sentence);
}

/// Three labels, and four more if most of them contradict the prediction: rows with three labels need not be unanimous.
#[test]
fn numbers_of_labels_that_depend_on_labels_make_the_verdict_mend_labels() {
    let mut rng = Rng::new(12);
    let more_if_contradicted = |rng: &mut Rng, p: &[f64], first: usize| {
        let mut votes = rng.votes(p, first);
        if votes[0] > votes[1] {
            votes.iter_mut().zip(rng.votes(p, 4)).for_each(|(all, n)| *all += n);
        }
        votes
    };
    let found = look(&labelled(&mut rng, 600, |rng, p| more_if_contradicted(rng, p, 3)), &task(0.1));
    let stopping = found.stopping.expect("k varies");
    assert!(stopping.is_suspicious() && stopping.stopped_at.is_none(), "{stopping:?}");
    assert_eq!((found.verdict.advice, stopping.first_labels()), (Advice::MendLabels, Some(3)));
    assert!(found.verdict.sentence.contains("--first-labels 3"), "{}", found.verdict.sentence);
    // One label shows nothing of the noise, so keeping the first of every item is no remedy.
    let single = Stopping::detect(&labelled(&mut rng, 600, |rng, p| more_if_contradicted(rng, p, 1))).unwrap();
    assert_eq!(single.expect("k varies").first_labels(), None);
}

#[test]
fn diagnosis_does_not_depend_on_row_order_or_threads() {
    let table = world(6, 500, 4, noise_then_error);
    let turned = {
        let rows: Vec<usize> = (0..500).rev().collect();
        let probs: Vec<Vec<f64>> = rows.iter().map(|&row| table.prediction(row).to_vec()).collect();
        let votes: Vec<Vec<u32>> = rows.iter().map(|&row| table.votes(row).unwrap().counts().to_vec()).collect();
        crate::world::table(2, &probs, &votes)
    };
    let task = task(0.1).abstain(0.4).unwrap();
    let said = |table: &Table, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| serde_json::to_string(&look(table, &task)).unwrap())
    };
    let first = said(&table, 1);
    assert_eq!(first, said(&table, 3));
    assert_eq!(first, said(&turned, 2));
}

#[test]
fn better_partitions_are_named() {
    // A feature, not the confidence, determines whether annotators disagree.
    let mut rng = Rng::new(8);
    let (mut probs, mut votes, mut features) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..990 {
        let f = 0.5 + 0.4 * rng.uniform();
        let noisy = rng.uniform() < 0.5;
        let p = if noisy { f } else { error_alone(&mut rng, f) };
        probs.push(vec![1.0 - f, f]);
        votes.push(rng.votes(&[1.0 - p, p], 5));
        features.push(f64::from(u8::from(noisy)) + 0.1 * rng.uniform());
    }
    let table = table(2, &probs, &votes).with_features(["length"], features).unwrap();
    let found = look(&table, &task(0.2));
    assert_eq!(found.enough.better_partition(), Some("top-class:5*features:x_length=4"), "{:?}", found.enough);
    // The verdict is about the partition that pays, not about the one asked for.
    let verdict = &found.verdict;
    assert_eq!(verdict.partition, "top-class:5*features:x_length=4", "{verdict:?}");
    assert!(
        verdict.advice == Advice::UseIt && verdict.sentence.starts_with("Use it, with top-class:5*"),
        "{verdict:?}"
    );
    assert!(found.worth.as_ref().unwrap().savings.as_ref().unwrap().get("total-uncertainty").unwrap().low < 0.01);
    // The best ranking is no worse than any that was compared.
    let gains: Vec<f64> = found.enough.partitions.iter().filter_map(|compared| compared.gain).collect();
    assert!(gains.len() > 3 && gains.iter().all(|gain| *gain <= 1.0 + 1e-12), "{gains:?}");
}

/// Bins of informative features are compared; features that are not compared are listed.
#[test]
fn features_that_are_not_compared_are_listed() {
    let names = ["flat", "a", "gone", "gappy", "b", "c", "d", "e"];
    let mut rng = Rng::new(12);
    let mut features = Vec::new();
    for row in 0..200 {
        let gap = if row % 9 == 0 { f64::NAN } else { rng.uniform() };
        features.extend([
            3.0,
            rng.uniform(),
            f64::NAN,
            gap,
            rng.uniform(),
            rng.uniform(),
            rng.uniform(),
            rng.uniform(),
        ]);
    }
    let table = world(11, 200, 3, noise_then_error).with_features(names, features).unwrap();
    let found = look(&table, &task(0.2)).enough;
    let left: Vec<(&str, &str)> =
        found.features_left_out.iter().map(|left| (left.feature.as_str(), left.reason)).collect();
    assert_eq!(left, [("flat", "constant"), ("gone", "constant"), ("gappy", "gaps"), ("e", "many")]);
    let tried = found.partitions.iter().filter(|compared| compared.partition.contains("features")).count();
    assert_eq!(tried, 4, "{:?}", found.partitions);
}

#[test]
fn invalid_diagnoses_are_refused() {
    let table = world(1, 3, 2, error_alone);
    let error = diagnose(&table, &task(0.1), &Partition::top_class(5), || ()).unwrap_err().to_string();
    assert!(error.contains("3 rows"), "{error}");
    let bare = Table::new(CLASS_NAMES[..2].to_vec(), [0.5, 0.5].repeat(9)).unwrap();
    let error = diagnose(&bare, &task(0.1), &Partition::top_class(5), || ()).unwrap_err().to_string();
    assert!(error.contains("votes"), "{error}");
    let table = world(1, 50, 2, error_alone);
    let error = diagnose(&table, &task(0.1), &"features:x_size=3".parse().unwrap(), || ()).unwrap_err().to_string();
    assert!(error.contains("x_size"), "{error}");
    assert!(pointsman::diagnose::halves(&world(1, 1, 2, error_alone)).is_err());
    assert_eq!(pointsman::diagnose::halves(&table).unwrap().map(|half| half.rows()), [25, 25]);
}

#[test]
fn imperfect_oracles_are_evaluated_by_their_loss() {
    let table = world(7, 900, 5, noise_then_error);
    // An oracle that always answers "ant" is useless; three experts are nearly as good as the truth.
    let fool = [1.0, 0.0].repeat(900);
    let table = table.with_oracle("fool", fool).unwrap();
    let task = Task::new(Loss::brier())
        .route("sage", Oracle::bayes(), 0.1)
        .unwrap()
        .route("jury", "panel:m=3,aggregate=mean".parse().unwrap(), 0.1)
        .unwrap()
        .route("fool", Oracle::measured(), 0.1)
        .unwrap();
    let costs = look(&table, &task).worth.unwrap().costs.unwrap();
    let cost = |name: &str| costs.get(name).unwrap().estimate;
    assert!(cost("router") < cost("always-route:sage"), "{costs:?}");
    assert!(cost("always-route:sage") < cost("always-route:jury"), "{costs:?}");
    assert!(cost("always-route:jury") < cost("always-route:fool"), "{costs:?}");
    // A panel of three loses a third more than the irreducible Brier loss.
    let irreducible = cost("always-route:sage") - 0.1;
    close((cost("always-route:jury") - 0.1) / irreducible, 4.0 / 3.0, 0.03, "jury over sage");
}

/// With `auto` the chosen partition is evaluated, chosen again by each half. Here a feature shows where the model is wrong, which pooled cells do
/// not use.
#[test]
fn choice_of_auto_is_evaluated() {
    let mut rng = Rng::new(90);
    let (mut probs, mut votes, mut x) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..500 {
        let (p, wrong) = (0.55 + 0.3 * rng.uniform(), rng.below(3) == 0);
        let truth = if wrong { 0.05 } else { p };
        probs.extend([p, 1.0 - p]);
        votes.extend(rng.votes(&[truth, 1.0 - truth], 4));
        x.push(f64::from(u8::from(wrong)) + 0.2 * rng.uniform());
    }
    let table = Table::new(["a", "b"], probs).unwrap().with_votes(votes).unwrap().with_features(["x"], x).unwrap();
    let diagnosed = |partition: Partition| diagnose(&table, &task(0.1), &partition, || ()).unwrap();
    let (auto, pooled) = (diagnosed(Partition::auto()), diagnosed(Partition::pooled()));
    assert_eq!((auto.partition.as_str(), pooled.chosen.as_deref()), ("auto", None));
    assert!(auto.chosen.as_deref().is_some_and(|chosen| chosen != "pooled"), "{:?}", auto.chosen);
    let cost = |of: &Diagnosis| of.worth.as_ref().unwrap().costs.as_ref().unwrap().get("router").unwrap().estimate;
    assert!(cost(&auto) < 0.9 * cost(&pooled), "{} and {}", cost(&auto), cost(&pooled));
    assert_eq!(auto.verdict.advice, Advice::UseIt, "{}", auto.verdict.sentence);
    assert_eq!(auto.verdict.partition, "auto");
}
