//! How often copying one colleague is found, and how often honest pairs are accused.
//!
//! The rule, fixed before it was measured: in at most 2 of 100 honest worlds is any pair reported, and a copier of nine labels in ten, with 100
//! common items, is found in nine of ten worlds. Limits in the tests are those rates plus or minus two standard errors of the simulation.

use pointsman::Table;
use pointsman::diagnose::{Annotations, AnnotatorCheck};

use crate::world::{Rng, normalised, table};

/// How honest annotators differ.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Crew {
    /// All draw from the item's distribution.
    Alike,
    /// Each errs on a share of the items between 0 and 0.2.
    Skills,
    /// Each prefers some classes, by a standard deviation of 0.4 in log odds.
    Preferences,
    /// One errs on 0.4 of the items, the others never.
    OneErrs,
    /// Items come in kinds of different difficulty, which the predictions do not show, and the first two annotators get more of the clear ones.
    ClearItems,
}

/// The number of labels of an item.
#[derive(Debug, Clone, Copy)]
enum Labels {
    Two,
    Three,
    /// One to five, three on average.
    Varied,
}

/// About a standard normal variable.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0
}

/// Items of three classes. With `common`, the second annotator labels that many items after the first and repeats nine labels in ten.
fn world(
    rng: &mut Rng,
    crew: Crew,
    annotators: usize,
    items: usize,
    labels: Labels,
    common: usize,
) -> (Table, Annotations) {
    let errors: Vec<f64> = (0..annotators)
        .map(|who| match crew {
            Crew::Skills => 0.2 * rng.uniform(),
            Crew::OneErrs if who == 2 => 0.4,
            _ => 0.0,
        })
        .collect();
    let preferences: Vec<Vec<f64>> = (0..annotators).map(|_| (0..3).map(|_| 0.4 * normal(rng)).collect()).collect();
    let (mut probs, mut votes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut order: Vec<usize> = (0..annotators).collect();
    for item in 0..items {
        let top = rng.below(3);
        let clear = 0.4 + 0.6 * rng.uniform();
        let mixed = rng.dist(3);
        let blend = |clear: f64| -> Vec<f64> {
            mixed.iter().enumerate().map(|(c, x)| (1.0 - clear) * x + if c == top { clear } else { 0.0 }).collect()
        };
        let noise = rng.dist(3);
        let f: Vec<f64> = blend(clear).iter().zip(&noise).map(|(p, noise)| 0.7 * p + 0.3 * noise).collect();
        let k = match labels {
            Labels::Two => 2,
            Labels::Three => 3,
            Labels::Varied => {
                let u = rng.uniform();
                1 + [0.08, 0.28, 0.7, 0.9].iter().filter(|&&limit| u > limit).count()
            }
        };
        order.sort_unstable();
        rng.shuffle(&mut order);
        if common > 0 {
            order.retain(|&who| who > 1);
            match item {
                _ if item < common => order.splice(0..0, [0, 1]).for_each(drop),
                _ => {
                    // Otherwise the two are never together.
                    let one = rng.below(2);
                    let at = rng.below(order.len() + 1);
                    order.insert(at, one);
                    order.push(1 - one);
                }
            }
        }
        let k = if item < common { k.max(2) } else { k };
        let team = order[..k].to_vec();
        let is_clear_kind = match crew {
            Crew::ClearItems if team.iter().any(|who| *who < 2) => rng.uniform() < 0.7,
            _ => rng.uniform() < 0.5,
        };
        let p = if crew == Crew::ClearItems { blend(if is_clear_kind { 0.95 } else { 0.5 }) } else { blend(clear) };
        let mut given: Vec<(u32, u32)> = Vec::new();
        for &who in &team {
            let own = match crew {
                Crew::Preferences => {
                    normalised(p.iter().zip(&preferences[who]).map(|(p, preference)| p * preference.exp()).collect())
                }
                _ => p.clone(),
            };
            let drawn = rng.votes(&own, 1).iter().position(|&n| n > 0).unwrap() as u32;
            let mut label = if rng.uniform() < errors[who] { rng.below(3) as u32 } else { drawn };
            if common > 0 && who == 1 && rng.uniform() < 0.9 {
                label = given.iter().find(|(other, _)| *other == 0).map_or(label, |(_, label)| *label);
            }
            given.push((who as u32, label));
        }
        let mut counts = vec![0; 3];
        given.iter().for_each(|(_, class)| counts[*class as usize] += 1);
        probs.push(f);
        votes.push(counts);
        rows.push(given);
    }
    let names = (0..annotators).map(|who| format!("a{who:02}"));
    (table(3, &probs, &votes), Annotations::new(names, rows).unwrap())
}

#[test]
fn honest_pairs_are_rarely_reported() {
    let mut rng = Rng::new(41);
    let worlds = 100;
    let mut failed = Vec::new();
    for (crew, annotators, items, labels) in [
        (Crew::Alike, 12, 2000, Labels::Varied),
        (Crew::Alike, 12, 1500, Labels::Two),
        (Crew::Alike, 30, 2000, Labels::Three),
        (Crew::Alike, 4, 1000, Labels::Three),
        (Crew::Skills, 12, 2000, Labels::Varied),
        (Crew::Skills, 6, 3000, Labels::Three),
        (Crew::Skills, 12, 6000, Labels::Two),
        (Crew::Preferences, 12, 2000, Labels::Varied),
        (Crew::Preferences, 5, 1000, Labels::Three),
        (Crew::OneErrs, 4, 1000, Labels::Three),
        (Crew::OneErrs, 3, 1000, Labels::Three),
        (Crew::ClearItems, 12, 2000, Labels::Varied),
        (Crew::ClearItems, 8, 2000, Labels::Two),
    ] {
        let mut accused = 0;
        for _ in 0..worlds {
            let (table, annotations) = world(&mut rng, crew, annotators, items, labels, 0);
            let check = AnnotatorCheck::new(&table, &annotations).unwrap();
            accused += usize::from(!check.pairs.is_empty());
        }
        println!("{crew:?}, {annotators} annotators, {items} items, {labels:?}: {accused} of {worlds} worlds");
        // Two standard errors of a rate of 0.02 are 0.028.
        if accused > 4 {
            failed.push((crew, annotators, labels, accused));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn copiers_of_one_colleague_are_found() {
    let mut rng = Rng::new(42);
    let worlds = 50;
    let mut failed = Vec::new();
    for (crew, annotators, items, labels, common) in [
        (Crew::Alike, 12, 2000, Labels::Varied, 100),
        (Crew::Alike, 12, 2000, Labels::Two, 100),
        (Crew::Alike, 30, 2000, Labels::Three, 100),
        (Crew::Alike, 4, 1000, Labels::Three, 100),
        (Crew::Skills, 12, 2000, Labels::Varied, 100),
        (Crew::Preferences, 12, 2000, Labels::Varied, 100),
        (Crew::ClearItems, 12, 2000, Labels::Varied, 100),
        (Crew::Skills, 12, 2000, Labels::Varied, 400),
        (Crew::Preferences, 12, 2000, Labels::Varied, 400),
    ] {
        let (mut found, mut others) = (0, 0);
        for _ in 0..worlds {
            let (table, annotations) = world(&mut rng, crew, annotators, items, labels, common);
            let check = AnnotatorCheck::new(&table, &annotations).unwrap();
            let is_copier =
                |pair: &&pointsman::diagnose::AgreeingPair| pair.annotator == "a01" && pair.colleague == "a00";
            found += usize::from(check.pairs.iter().any(|pair| is_copier(&pair)));
            others += usize::from(check.pairs.iter().any(|pair| !is_copier(&pair)));
        }
        println!(
            "{crew:?}, {annotators} annotators, {labels:?}, {common} common items: found in {found} of {worlds} worlds, others reported in {others}"
        );
        // Two standard errors of a rate of 0.9 are 0.085.
        if found < 41 || others > 3 {
            failed.push((crew, annotators, labels, common, found, others));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
