//! Diagnoses of labels that may not be independent, or whose classes may be matched wrongly.

use pointsman::diagnose::diagnose;
use pointsman::diagnose::{Advice, Annotations, Mismatch, diagnose_annotated};
use pointsman::{Diagnosis, Loss, Oracle, Partition, Table, Task};

use crate::annotators::{Labeller, labelled_by};
use crate::world::{CLASS_NAMES, Rng, close, normalised, table};

fn look(table: &Table) -> Diagnosis {
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
    diagnose(table, &task, &Partition::top_class(5), || ()).unwrap()
}

/// Items of some classes, each predicted with noise; `labels` turns p* into counts.
fn world(rng: &mut Rng, rows: usize, classes: usize, labels: impl Fn(&mut Rng, &[f64]) -> Vec<u32>) -> Table {
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let p = rng.dist(classes);
        let noise = rng.dist(classes);
        probs.push(normalised(p.iter().zip(&noise).map(|(p, noise)| 0.7 * p + 0.3 * noise).collect()));
        votes.push(labels(rng, &p));
    }
    table(classes, &probs, &votes)
}

/// For a share of the items one label is recorded k times.
fn partly_copied(rng: &mut Rng, p: &[f64], k: usize, share: f64) -> Vec<u32> {
    if rng.uniform() < share { rng.votes(p, 1).iter().map(|n| n * k as u32).collect() } else { rng.votes(p, k) }
}

/// Copies look like items on which everybody agrees, so counts are no evidence of copying. The effect of copies among the unanimous rows is reported
/// instead.
#[test]
fn unanimous_counts_are_no_evidence_of_copying() {
    let mut rng = Rng::new(1);
    for share in [0.0, 0.3, 0.5, 0.8] {
        let found = look(&world(&mut rng, 600, 3, |rng, p| partly_copied(rng, p, 3, share)));
        assert_ne!(found.verdict.advice, Advice::MendLabels, "{share}: {:?}", found.verdict);
        let said = format!("{} {:?}", found.verdict.sentence, found.verdict.remarks);
        assert!(!said.contains("copied") && !said.contains("majority"), "{share}: {said}");
        let sensitivity = found.agreement.sensitivity.unwrap();
        assert!(sensitivity.irreducible_if_copied > 1.02 * sensitivity.irreducible, "{sensitivity:?}");
    }
    // A majority vote counted as one more label is possible too.
    let majority = |rng: &mut Rng, p: &[f64]| {
        let mut counts = rng.votes(p, 5);
        let top = (0..3).max_by_key(|&class| counts[class]).unwrap();
        counts[top] += 1;
        counts
    };
    let found = look(&world(&mut rng, 600, 3, majority));
    assert!(found.verdict.remarks.iter().all(|remark| !remark.contains("majority")), "{:?}", found.verdict);
}

/// Counts that independent labels cannot produce are reported.
#[test]
fn common_divisors_of_counts_are_reported_as_copies() {
    let mut rng = Rng::new(2);
    let doubled = |rng: &mut Rng, p: &[f64]| rng.votes(p, 3).iter().map(|n| 2 * n).collect();
    let found = look(&world(&mut rng, 300, 3, doubled));
    assert_eq!((found.agreement.copies, found.verdict.advice), (Some(2), Advice::MendLabels));
}

/// If the assumed share of copies is the true one, the irreducible loss is that of independent labels. The mean over 40 simulations; the tolerance is
/// three standard errors of that mean.
#[test]
fn sensitivity_matches_the_effect_of_copies() {
    let mut rng = Rng::new(3);
    let mut differences = Vec::new();
    for place in 0..40 {
        // With a thousand rows or more a diagnosis grows forests, which takes most of the time.
        let (rows, k) = (990, 3);
        // A share of copies such that they are a fifth of the unanimous rows; the unanimous share U of independent labels is measured.
        let independent = look(&world(&mut rng, rows, 3, |rng, p| rng.votes(p, k))).agreement;
        let unanimous = independent.unanimous as f64 / independent.rows as f64;
        let share = 0.2 * unanimous / (0.8 + 0.2 * unanimous);
        let copied = world(&mut rng, rows, 3, |rng, p| partly_copied(rng, p, k, share));
        let found = look(&copied).agreement.sensitivity.unwrap();
        differences.push(found.irreducible_if_copied - independent.sensitivity.unwrap().irreducible);
        if place >= 5 {
            continue;
        }
        // For the Brier loss in one cell, the irreducible loss is that of the remaining pairs: 1/(1 − sU) times as large, up to the difference between
        // shrinkage with varying numbers of labels and the exact statistic.
        let one = diagnose(&copied, &Task::new(Loss::brier()), &Partition::confidence(1), || ()).unwrap().agreement;
        let sensitivity = one.sensitivity.unwrap();
        let share = one.unanimous as f64 / one.rows as f64;
        close(sensitivity.irreducible_if_copied * (1.0 - 0.2 * share), sensitivity.irreducible, 1e-4, "one cell");
        assert!(sensitivity.cells.is_empty(), "there is nothing to choose: {sensitivity:?}");
    }
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    close(mean, 0.0, 3.0 * (variance / n).sqrt(), "irreducible loss if copied");
}

/// Cells whose action depends on the independence of labels are named.
#[test]
fn cells_that_copies_would_change_are_named() {
    let mut rng = Rng::new(4);
    let table = world(&mut rng, 3000, 2, |rng, p| rng.votes(p, 3));
    let mut named = 0;
    for price in [0.005, 0.01, 0.015, 0.02, 0.03, 0.05] {
        let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), price).unwrap();
        let found = diagnose(&table, &task, &Partition::top_class(10), || ()).unwrap();
        for cell in found.agreement.sensitivity.unwrap().cells {
            // More noise leaves less to gain from an oracle.
            assert_eq!((cell.action.as_str(), cell.action_if_copied.as_str()), ("route:expert", "predict"));
            named += 1;
        }
    }
    assert!(named > 3, "{named}");
}

/// If named annotators bias the loss, the verdict is to leave them out, which corrects it: the irreducible loss without them is that of the honest
/// labels.
#[test]
fn annotators_who_bias_the_loss_are_left_out() {
    let mut rng = Rng::new(5);
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
    let ask = |table: &Table, annotations: &Annotations| {
        diagnose_annotated(table, Some(annotations), &task, &Partition::top_class(3), || ()).unwrap()
    };
    for (kind, material) in [(Labeller::Random, true), (Labeller::Copier, true), (Labeller::Honest, false)] {
        let labeller = |who| if who < 4 { kind } else { Labeller::Honest };
        let (table, annotations) = labelled_by(&mut rng, 20, 300, 4, labeller);
        let found = ask(&table, &annotations);
        assert_eq!(found.annotators.len(), 20);
        if !material {
            assert_eq!(found.flagged_annotators, None);
            assert_ne!(found.verdict.advice, Advice::MendLabels, "{:?}", found.verdict);
            continue;
        }
        let flagged = found.flagged_annotators.as_ref().unwrap();
        let mut names = flagged.annotators.clone();
        names.sort();
        assert_eq!(names, ["a00", "a01", "a02", "a03"], "{kind:?}");
        assert_eq!(found.verdict.advice, Advice::MendLabels, "{:?}", found.verdict);
        for name in &names {
            assert!(found.verdict.sentence.contains(&format!("--without {name}")), "{}", found.verdict.sentence);
        }
        // The same items labelled by honest annotators only; the noise of 1,500 rows with four labels is about 0.01.
        let (table, annotations) = labelled_by(&mut rng, 20, 300, 4, |_| Labeller::Honest);
        let honest = ask(&table, &annotations).agreement.sensitivity.unwrap().irreducible;
        close(flagged.irreducible_without.unwrap(), honest, 0.04, "irreducible loss without them");
        let sign = if kind == Labeller::Random { 1.0 } else { -1.0 };
        assert!(sign * (flagged.irreducible.unwrap() - flagged.irreducible_without.unwrap()) > 0.03, "{flagged:?}");
    }
}

/// A table with permuted votes: class c is counted as `permutation[c]`.
fn permuted(rng: &mut Rng, rows: usize, permutation: &[usize], noise: f64) -> Table {
    let classes = permutation.len();
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let top = rng.below(classes);
        let p: Vec<f64> =
            rng.dist(classes).iter().enumerate().map(|(c, x)| 0.3 * x + if c == top { 0.7 } else { 0.0 }).collect();
        probs.push(normalised(p.iter().map(|p| p + noise * rng.uniform()).collect()));
        let counts = rng.votes(&p, 3);
        let mut given = vec![0; classes];
        counts.iter().zip(permutation).for_each(|(n, &class)| given[class] = *n);
        votes.push(given);
    }
    let names = (0..classes).map(|class| format!("class {class}"));
    Table::new(names, probs.concat()).unwrap().with_votes(votes.concat()).unwrap()
}

#[test]
fn permuted_classes_of_votes_are_detected() {
    let mut rng = Rng::new(6);
    for classes in [2, 3, 4, 10, 30] {
        let mut permutation: Vec<usize> = (0..classes).collect();
        permutation.rotate_left(1);
        let found = Mismatch::detect(&permuted(&mut rng, 60 * classes, &permutation, 0.2)).unwrap().unwrap();
        assert_eq!(found.matches.len(), classes, "{found:?}");
        for (class, one) in found.matches.iter().enumerate() {
            let expected = (format!("class {class}"), format!("class {}", permutation[class]));
            assert_eq!((one.class.clone(), one.votes.clone()), expected);
        }
        assert!(found.agreement < found.chance && found.agreement_if_matched > 0.5, "{found:?}");
    }
    // Two of ten classes are exchanged; the others are unchanged.
    let swapped = [1, 0, 2, 3, 4, 5, 6, 7, 8, 9];
    let table = permuted(&mut rng, 600, &swapped, 0.2);
    let found = Mismatch::detect(&table).unwrap().unwrap();
    assert_eq!(found.matches.iter().map(|one| one.class.as_str()).collect::<Vec<_>>(), ["class 0", "class 1"]);
    let verdict = look(&table).verdict;
    assert_eq!(verdict.advice, Advice::MendLabels, "{verdict:?}");
    for part in ["seem to be matched wrongly", "votes for class 1 fit class 0", "votes for class 0 fit class 1"] {
        assert!(verdict.sentence.contains(part), "{}", verdict.sentence);
    }
    // More classes than are assigned exactly.
    let mut many: Vec<usize> = (0..300).collect();
    many.rotate_left(7);
    assert_eq!(Mismatch::detect(&permuted(&mut rng, 6000, &many, 0.05)).unwrap().unwrap().matches.len(), 300);
}

/// Bad models are not reported as permuted: uninformative ones, constant ones, and ones that confuse two classes.
#[test]
fn bad_models_are_not_reported_as_permuted_classes() {
    let mut rng = Rng::new(7);
    for draw in 0..300 {
        let classes = 2 + draw % 7;
        let rows = [60, 300, 1000][draw % 3];
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let p = rng.dist(classes);
            let top = pointsman::table::top_class(&p);
            let said = match draw % 4 {
                0 => rng.below(classes),
                1 => 0,
                // Two classes cannot be distinguished.
                2 if top < 2 => rng.below(2),
                // Right in a third of the cases.
                3 if rng.uniform() < 0.67 => rng.below(classes),
                _ => top,
            };
            probs.push(
                (0..classes).map(|c| if c == said { 0.7 } else { 0.3 / (classes - 1) as f64 }).collect::<Vec<_>>(),
            );
            votes.push(rng.votes(&p, 3));
        }
        let names = (0..classes).map(|class| class.to_string());
        let table = Table::new(names, probs.concat()).unwrap().with_votes(votes.concat()).unwrap();
        assert_eq!(Mismatch::detect(&table).unwrap(), None, "draw {draw}");
    }
    let bare = Table::new(CLASS_NAMES[..2].to_vec(), [0.5, 0.5].repeat(99)).unwrap();
    assert_eq!(Mismatch::detect(&bare).unwrap(), None);
}
