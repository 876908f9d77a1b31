//! Annotators with names: statistics against an independent implementation, and detection in simulations of known behaviour.

use pointsman::Table;
use pointsman::certify::EProcess;
use pointsman::diagnose::{Annotations, AnnotatorCheck, AnnotatorStatistics};
use serde_json::Value;

use crate::world::{Rng, close, table};

fn golden(text: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(text).unwrap()["cases"].as_array().unwrap().clone()
}

fn reals(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

fn integers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

#[test]
fn e_processes_match_golden_values() {
    let mut checked = 0;
    for case in golden(include_str!("../golden/e-processes.json")) {
        // Other golden cases are about future labels.
        let Some(expected) = case.get("ln_e") else { continue };
        let (name, mean) = (case["name"].as_str().unwrap(), case["m"].as_f64().unwrap());
        let above = case["above"].as_bool().unwrap();
        let mut evidence = if above { EProcess::above(mean) } else { EProcess::below(mean) };
        for ((z, w), expected) in reals(&case["z"]).into_iter().zip(reals(&case["w"])).zip(reals(expected)) {
            evidence.add(z, w);
            close(evidence.ln_value(), expected, 1e-12 * expected.abs().max(1.0), name);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn annotator_statistics_match_golden_values() {
    for case in golden(include_str!("../golden/annotators.json")) {
        let items = case["items"].as_array().unwrap();
        let rows = items.iter().map(|item| integers(&item["who"]).into_iter().zip(integers(&item["labels"])));
        let annotations = Annotations::new(["a", "b", "c", "d", "e"], rows).unwrap();
        let tops: Vec<u32> = items.iter().map(|item| item["top"].as_u64().unwrap() as u32).collect();
        for (annotator, expected) in case["expected"].as_object().unwrap() {
            let found = AnnotatorStatistics::new(&annotations, annotator.parse().unwrap(), &tops, &[0, 1, 2]);
            for (name, values) in [
                ("agreement", &found.agreement),
                ("follows", &found.follows),
                ("model", &found.model),
                ("class_0", &found.classes[0].1),
            ] {
                let expected = reals(&expected[name]);
                assert_eq!(values.len(), expected.len(), "{name}");
                values.iter().zip(expected).for_each(|(x, y)| close(*x, y, 1e-12, name));
            }
            let names: Vec<String> = (0..3).map(|class| class.to_string()).collect();
            let evidence = found.ln_e_values();
            assert_eq!(evidence.len(), expected["ln_e"].as_object().unwrap().len());
            for (suspicion, evidence) in evidence {
                let name = suspicion.name(&names);
                let expected = expected["ln_e"][&name].as_f64().unwrap();
                close(evidence, expected, 1e-12 * expected.abs().max(1.0), &name);
            }
        }
    }
}

/// A way of labelling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Labeller {
    Honest,
    Copier,
    ModelFollower,
    Constant,
    Random,
}

/// Items of three classes, each labelled by `k` annotators, about `items` per annotator; `labeller` gives the behaviour of each.
pub(crate) fn labelled_by(
    rng: &mut Rng,
    annotators: usize,
    items: usize,
    k: usize,
    labeller: impl Fn(usize) -> Labeller,
) -> (Table, Annotations) {
    let (mut probs, mut votes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut order: Vec<u32> = (0..annotators as u32).collect();
    for _ in 0..annotators * items / k {
        // Some items are clear and some are ambiguous.
        let mixed = rng.dist(3);
        let top = rng.below(3);
        let clear = rng.uniform();
        let p: Vec<f64> =
            mixed.iter().enumerate().map(|(c, x)| (1.0 - clear) * x + if c == top { clear } else { 0.0 }).collect();
        let noise = rng.dist(3);
        let f: Vec<f64> = p.iter().zip(&noise).map(|(p, n)| 0.6 * p + 0.4 * n).collect();
        let predicted = pointsman::table::top_class(&f) as u32;
        rng.shuffle(&mut order);
        let mut labels: Vec<(u32, u32)> = Vec::new();
        for &annotator in &order[..k] {
            let drawn = rng.votes(&p, 1).iter().position(|&n| n > 0).unwrap() as u32;
            let label = match labeller(annotator as usize) {
                Labeller::Honest => drawn,
                Labeller::Copier => labels.last().map_or(drawn, |(_, label)| *label),
                Labeller::ModelFollower => predicted,
                Labeller::Constant => 0,
                Labeller::Random => rng.below(3) as u32,
            };
            labels.push((annotator, label));
        }
        let mut counts = vec![0; 3];
        labels.iter().for_each(|(_, class)| counts[*class as usize] += 1);
        probs.push(f);
        votes.push(counts);
        rows.push(labels);
    }
    let names = (0..annotators).map(|annotator| format!("a{annotator:02}"));
    (table(3, &probs, &votes), Annotations::new(names, rows).unwrap())
}

/// With 200 items per annotator, each kind of bad labeller is found in nine of ten simulations, and at most one in twenty honest annotators is
/// flagged. At least 33 of 40 simulations must agree: a power of 0.9 minus two standard errors of 0.047.
#[test]
fn bad_labellers_are_flagged_and_honest_ones_are_not() {
    let mut rng = Rng::new(16);
    let (worlds, annotators) = (40, 15);
    let (mut accused, mut honest) = (0, 0);
    for k in [3, 5] {
        for (kind, flag) in [
            (Labeller::Copier, "follows-high"),
            (Labeller::ModelFollower, "model-high"),
            (Labeller::Constant, "class-ant-high"),
            (Labeller::Random, "agreement-low"),
        ] {
            let mut found = 0;
            for _ in 0..worlds {
                let labeller = |who| if who == 3 { kind } else { Labeller::Honest };
                let (table, annotations) = labelled_by(&mut rng, annotators, 200, k, labeller);
                let check = AnnotatorCheck::new(&table, &annotations).unwrap();
                let flagged = check.annotators[3].flags.iter().any(|name| name == flag);
                found += usize::from(flagged && check.left_out.contains(&"a03".to_owned()));
                accused += check.left_out.iter().filter(|name| *name != "a03").count();
                honest += annotators - 1;
            }
            println!("{kind:?}, k = {k}: {found} of {worlds}");
            assert!(found >= 33, "{kind:?}, k = {k}: {found} of {worlds}");
        }
    }
    println!("{accused} of {honest} honest annotators accused");
    assert!(accused as f64 <= 0.05 * honest as f64, "{accused} of {honest}");
}

/// If everybody labels independently, at most one annotator in twenty is flagged for leaving out.
#[test]
fn independent_annotators_are_rarely_flagged() {
    let mut rng = Rng::new(17);
    let mut accused = 0;
    for world in 0..40 {
        let (table, annotations) = labelled_by(&mut rng, 20, 100, 2 + world % 4, |_| Labeller::Honest);
        accused += AnnotatorCheck::new(&table, &annotations).unwrap().left_out.len();
    }
    assert!(accused <= 40, "{accused} of 800");
}

/// An annotator who labels every item is no majority vote of the others.
#[test]
fn annotators_of_all_items_are_not_taken_for_majority_votes() {
    let mut rng = Rng::new(21);
    for annotators in [4, 5, 8] {
        let (table, annotations) = labelled_by(&mut rng, annotators, 400, annotators, |_| Labeller::Honest);
        let check = AnnotatorCheck::new(&table, &annotations).unwrap();
        assert!(check.annotators.iter().all(|one| !one.flags.contains(&"majority-vote".to_owned())), "{check:?}");
    }
}

/// With several bad labellers the one with the strongest evidence is left out first, and the others are examined without their labels.
#[test]
fn several_bad_labellers_are_left_out_one_by_one() {
    let mut rng = Rng::new(18);
    let kinds = [Labeller::Copier, Labeller::ModelFollower, Labeller::Constant, Labeller::Random];
    let labeller = |who: usize| kinds.get(who).copied().unwrap_or(Labeller::Honest);
    let (table, annotations) = labelled_by(&mut rng, 20, 400, 5, labeller);
    let check = AnnotatorCheck::new(&table, &annotations).unwrap();
    let mut left_out = check.left_out.clone();
    left_out.sort();
    assert_eq!(left_out, ["a00", "a01", "a02", "a03"], "{:?}", check.left_out);
    assert!(check.annotators[4..].iter().all(|one| !one.flags.iter().any(|flag| flag != "agreement-high")));
    // The order of items and of names has no effect.
    let turned: Vec<usize> = (0..table.rows()).rev().collect();
    let probs: Vec<Vec<f64>> = turned.iter().map(|&row| table.prediction(row).to_vec()).collect();
    let votes: Vec<Vec<u32>> = turned.iter().map(|&row| table.votes(row).unwrap().counts().to_vec()).collect();
    let labels = |row: usize| annotations.labels(row).iter().map(|label| (19 - label.annotator, label.class)).collect();
    let rows: Vec<Vec<(u32, u32)>> = turned.iter().map(|&row| labels(row)).collect();
    let other = Annotations::new((0..20).rev().map(|who| format!("a{who:02}")), rows).unwrap();
    assert_eq!(AnnotatorCheck::new(&crate::world::table(3, &probs, &votes), &other).unwrap(), check);
}

/// Items of two classes that `annotators` label, three per item, with the same share of ambiguous items; the last annotator repeats the first
/// one's label where that is given, before it if `after` is false.
fn copied_by_the_last(annotators: usize, items: usize, after: bool, k: usize) -> (Table, Annotations) {
    let mut rng = Rng::new(19);
    let (mut probs, mut votes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut order: Vec<usize> = (0..annotators).collect();
    for _ in 0..items {
        let first = 0.1 + 0.8 * rng.uniform();
        let p = vec![first, 1.0 - first];
        rng.shuffle(&mut order);
        let mut team: Vec<usize> = order[..k].to_vec();
        let last = annotators - 1;
        if team.contains(&0) && team.contains(&last) && after {
            team.retain(|&who| who != last);
            team.push(last);
        }
        let mut given = vec![0; annotators];
        team.iter().for_each(|&who| given[who] = u32::from(rng.uniform() > p[0]));
        if team.contains(&0) {
            given[last] = given[0];
        }
        let mut counts = vec![0, 0];
        team.iter().for_each(|&who| counts[given[who] as usize] += 1);
        probs.push(p);
        votes.push(counts);
        rows.push(team.iter().map(|&who| (who as u32, given[who])).collect::<Vec<_>>());
    }
    let names = (0..annotators).map(|who| format!("a{who:02}"));
    (table(2, &probs, &votes), Annotations::new(names, rows).unwrap())
}

#[test]
fn a_copier_of_one_colleague_is_named_with_the_colleague() {
    let (table, annotations) = copied_by_the_last(8, 1500, true, 3);
    let check = AnnotatorCheck::new(&table, &annotations).unwrap();
    let [pair] = check.pairs.as_slice() else { panic!("{:?}", check.pairs) };
    assert_eq!((pair.annotator.as_str(), pair.colleague.as_str()), ("a07", "a00"));
    let is_common = |row: &usize| {
        let has = |who: u32| annotations.labels(*row).iter().any(|label| label.annotator == who);
        has(0) && has(7)
    };
    let common = (0..table.rows()).filter(is_common).count();
    assert_eq!((pair.common, pair.agreed, pair.later), (common, common, common));
    assert!(pair.has_clear_order() && (0.5..0.75).contains(&pair.others_agree), "{pair:?}");
    assert_eq!(check.left_out, ["a07"]);
    assert_eq!(check.annotators[7].flags[0], "agrees-with-a00");
    assert!(check.annotators[7].flags_in_words().contains("gives a00’s label"), "{:?}", check.annotators[7]);
    assert!(check.annotators[0].flags.iter().all(|flag| !flag.starts_with("agrees-with")));
    assert!(!check.annotators[7].differs_by_noise_only());
}

#[test]
fn without_an_order_the_one_with_fewer_labels_is_left_out() {
    let (table, annotations) = copied_by_the_last(8, 1500, false, 3);
    let check = AnnotatorCheck::new(&table, &annotations).unwrap();
    let [pair] = check.pairs.as_slice() else { panic!("{:?}", check.pairs) };
    let labels = |who: usize| check.annotators[who].votes;
    assert!(!pair.has_clear_order(), "{pair:?}");
    let fewer = if labels(7) <= labels(0) { "a07" } else { "a00" };
    assert_eq!((pair.annotator.as_str(), check.left_out[0].as_str()), (fewer, fewer));
}

/// Two labels that agree on every item cannot be compared with others of the same item, so items of similar prediction are used.
#[test]
fn copies_are_found_where_items_have_two_labels() {
    let (table, annotations) = copied_by_the_last(6, 1500, true, 2);
    let check = AnnotatorCheck::new(&table, &annotations).unwrap();
    assert_eq!(check.left_out, ["a05"], "{:?}", check.pairs);
    assert_eq!(check.pairs[0].colleague, "a00");
}

/// Of three annotators, two who agree look the same as a third who errs.
#[test]
fn pairs_of_three_annotators_are_not_tested() {
    let (table, annotations) = copied_by_the_last(3, 1500, true, 3);
    assert_eq!(AnnotatorCheck::new(&table, &annotations).unwrap().pairs, []);
}

#[test]
fn an_annotator_who_gives_one_label_is_described_by_it() {
    let mut rng = Rng::new(20);
    let labeller = |who| if who == 2 { Labeller::Constant } else { Labeller::Honest };
    let (table, annotations) = labelled_by(&mut rng, 10, 200, 4, labeller);
    let check = AnnotatorCheck::new(&table, &annotations).unwrap();
    let one = &check.annotators[2];
    assert_eq!(one.usual_class.as_ref().map(|usual| usual.votes), Some(one.votes));
    assert_eq!(one.flags_in_words(), format!("says {} on all {} labels", table.classes()[0], one.votes));
    assert!(check.annotators[3].usual_class.is_none() && !one.differs_by_noise_only());
    // A few other labels do not hide the usual one.
    let labels = |row: usize| {
        let change = |(place, label): (usize, &pointsman::diagnose::NamedLabel)| {
            let is_changed = label.annotator == 2 && row % 40 == 7;
            (label.annotator, if is_changed { 1 + place as u32 % 2 } else { label.class })
        };
        annotations.labels(row).iter().enumerate().map(change).collect::<Vec<_>>()
    };
    let changed = Annotations::new((0..10).map(|who| format!("a{who:02}")), (0..table.rows()).map(labels)).unwrap();
    let check = AnnotatorCheck::new(&table, &changed).unwrap();
    let one = &check.annotators[2];
    let usual = one.usual_class.as_ref().unwrap().votes;
    assert!(usual < one.votes);
    assert_eq!(one.flags_in_words(), format!("says {} on {usual} of {} labels", table.classes()[0], one.votes));
}

#[test]
fn inconsistent_annotations_are_refused() {
    let refused = |names: &[&str], labels: Vec<(u32, u32)>, part: &str| {
        let error = Annotations::new(names.to_vec(), [labels]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(&["ann", "ann"], vec![], "annotator \"ann\" is given twice");
    refused(&["ann", ""], vec![], "an annotator without a name");
    refused(&["ann"], vec![(1, 0)], "annotator 1 has no name");
    refused(&["ann"], vec![(0, 0), (0, 1)], "\"ann\" labels it twice");
    let table = table(2, &[vec![0.5, 0.5]], &[vec![1, 1]]);
    let check = |rows: Vec<Vec<(u32, u32)>>| {
        AnnotatorCheck::new(&table, &Annotations::new(["ann", "bob"], rows).unwrap()).map_err(|error| error.to_string())
    };
    assert!(check(vec![vec![], vec![]]).unwrap_err().contains("2 rows"));
    assert!(check(vec![vec![(0, 2)]]).unwrap_err().contains("2 classes"));
    // One item is no evidence against anybody.
    let found = check(vec![vec![(0, 0), (1, 1)]]).unwrap();
    assert!(found.left_out.is_empty() && found.annotators[0].agreement.is_none(), "{found:?}");
    let error = Annotations::new(["ann"], [vec![(0, 0)]]).unwrap().votes_without(&["bob"], 2).unwrap_err().to_string();
    assert!(error.contains("\"bob\""), "{error}");
}
