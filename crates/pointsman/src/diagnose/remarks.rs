//! Remarks beside the verdict: reasons for caution, and what to do about them.

use super::annotators::Annotator;
use super::{Advice, AgreeingPair, AtLimit, Diagnosis, FlaggedAnnotators};
use crate::number::{count, fixed, percent};

/// Gains that differ by less than this are equal.
const EQUAL_GAIN: f64 = 0.01;

/// The share of the rows in sparse cells above which there is a remark.
const MAX_ROWS_IN_SPARSE_CELLS: f64 = 0.2;

/// The largest number of annotators listed in a sentence.
const MAX_LISTED: usize = 5;

pub(super) fn remarks(diagnosis: &Diagnosis, advice: Advice, partition: &str) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(stopping) =
        diagnosis.stopping.filter(|stopping| stopping.is_suspicious() && advice != Advice::MendLabels)
    {
        remarks.push(format!(
            "Items with more labels disagree {} than others of similar confidence: k depends on the labels, which biases every \
             estimate (--first-labels removes that), or harder items were given more labels on purpose.",
            if stopping.z > 0.0 { "more" } else { "less" }
        ));
    }
    remarks.extend(diagnosis.worth.as_ref().and_then(|worth| missed(worth.limit.as_ref()?, diagnosis)));
    let gain = |name: &str| diagnosis.worth.as_ref().and_then(|worth| worth.gain.get(name).copied().flatten());
    if let (Advice::UseIt, Some(ours), Some(usual)) = (advice, gain("higher-order"), gain("recalibrated-uncertainty"))
        && usual > ours - EQUAL_GAIN
        && partition == diagnosis.partition
    {
        remarks.push(format!(
            "Calibration pays more here than decomposition: ranking by the confidence of the re-calibrated prediction does as \
             well, at a gain of {}.",
            fixed(usual, 3)
        ));
    }
    remarks.extend(annotators(diagnosis, advice));
    let enough = &diagnosis.enough;
    if enough.rows_in_sparse_cells > MAX_ROWS_IN_SPARSE_CELLS {
        remarks.push(format!(
            "{} of the rows are in sparse cells: use fewer bins or more rows.",
            percent(enough.rows_in_sparse_cells)
        ));
    }
    if let Some(better) = enough.better_partition().filter(|better| *better != partition) {
        remarks.push(format!("The partition {better} does better on this table."));
    }
    let model = &diagnosis.weak_model;
    if let Some(miscalibration) = model.miscalibration() {
        let pays = model.recalibrating_saves[1].or(model.recalibrating_saves[0]).is_some_and(|saves| saves.low > 0.0);
        remarks.push(format!(
            "The weak model is {miscalibration}: its calibration error is {:.3}, of which chance alone explains {:.3} (mean confidence {:.3}; {:.3} of \
             the labels are its top class).{}",
            model.error,
            model.floor,
            model.confidence,
            model.accuracy,
            if pays { " Recalibrating, which serves the mean of each cell, would pay." } else { "" }
        ));
    }
    remarks
}

/// Remarks on annotators.
fn annotators(diagnosis: &Diagnosis, advice: Advice) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(flagged) = &diagnosis.flagged_annotators
        && !(advice == Advice::MendLabels && flagged.is_material())
    {
        remarks.push(format!("{}.", without_flagged(diagnosis, flagged)));
    }
    let agrees = |one: &&Annotator| one.flags == ["agreement-high"];
    let names: Vec<&str> = diagnosis.annotators.iter().filter(agrees).map(|one| one.annotator.as_str()).collect();
    if !names.is_empty() {
        remarks.push(format!(
            "{} {} with the others more than these do among themselves, which alone is no reason to leave them out.",
            names[..names.len().min(MAX_LISTED)].join(", "),
            if names.len() == 1 { "agrees" } else { "agree" }
        ));
    }
    remarks
}

/// The remark on a target loss that is not reached in every half.
fn missed(limit: &AtLimit, diagnosis: &Diagnosis) -> Option<String> {
    let (target, halves) = (plain(diagnosis.task.target_loss?), 2 * diagnosis.splits);
    let missed = |rule: &str| limit.missed.get(rule).copied().filter(|&missed| missed > 0);
    if let Some(missed) = missed("router") {
        return Some(format!(
            "In {missed} of {halves} halves Pointsman does not reach a loss of {target}, however much it routes, or reaches it only by chance: what \
             it would route is not known, and the verdict is by the order of routing alone. Use a higher target or more rows."
        ));
    }
    missed("total-uncertainty").map(|missed| {
        format!(
            "In {missed} of {halves} halves the best confidence threshold does not reach a loss of {target}; it is left out."
        )
    })
}

/// The annotators who do not label independently or agree with the others less than expected, and the irreducible loss with and without
/// them.
pub(super) fn without_flagged(diagnosis: &Diagnosis, flagged: &FlaggedAnnotators) -> String {
    let with_flags = |name: &String, flags: fn(&Annotator) -> String| {
        let flags = diagnosis.annotators.iter().find(|one| one.annotator == *name).map(flags);
        let flags = flags.filter(|flags| !flags.is_empty()).map_or(String::new(), |flags| format!(" ({flags})"));
        format!("{name}{flags}")
    };
    let is_in_pair = |name: &&String| diagnosis.agreeing_pairs.iter().any(|pair| pair.annotator == **name);
    let others = flagged.annotators.iter().filter(|name| !is_in_pair(name));
    let is_vote =
        |name: &&String| diagnosis.annotators.iter().any(|one| one.annotator == **name && one.is_majority_vote());
    let (votes, others): (Vec<&String>, Vec<&String>) = others.partition(is_vote);
    let votes = votes
        .into_iter()
        .map(|name| format!("{name} looks like a majority vote of the others, or errs far less than they do"));
    // Copying, or following the model, is another fault than labelling with more noise.
    let is_dependent =
        |name: &&String| diagnosis.annotators.iter().any(|one| one.annotator == **name && !one.differs_by_noise_only());
    let (dependent, noisy): (Vec<&String>, Vec<&String>) = others.into_iter().partition(|name| is_dependent(name));
    let sentence = |group: &[&String], flags: fn(&Annotator) -> String, [one, several]: [&str; 2]| {
        let names = group.iter().take(MAX_LISTED).map(|name| with_flags(name, flags)).collect::<Vec<_>>().join(", ");
        let more = match group.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!group.is_empty()).then(|| format!("{names}{more} {}", if group.len() == 1 { one } else { several }))
    };
    let independence = "not label independently of the others or of the model";
    let [does, do_] = [format!("does {independence}"), format!("do {independence}")];
    let pairs = diagnosis.agreeing_pairs.iter().take(MAX_LISTED).map(pair_in_words);
    let more_pairs = match diagnosis.agreeing_pairs.len().saturating_sub(MAX_LISTED) {
        0 => None,
        1 => Some("1 more pair agrees like that".to_owned()),
        more => Some(format!("{more} more pairs agree like that")),
    };
    let sentences = [
        sentence(&dependent, Annotator::flags_in_words, [&does, &do_]),
        sentence(
            &noisy,
            Annotator::flags_beside_noise,
            [
                "agrees less with the others than they do among themselves",
                "agree less with the others than these do among themselves",
            ],
        ),
    ];
    let sentences = votes.chain(pairs).chain(more_pairs).chain(sentences.into_iter().flatten());
    let sentences = sentences.collect::<Vec<_>>().join("; ");
    let change = match (flagged.irreducible, flagged.irreducible_without) {
        (Some(with), Some(without)) => {
            format!(", and without these labels the irreducible loss is {}, not {}", fixed(without, 3), fixed(with, 3))
        }
        _ => String::new(),
    };
    format!("{sentences}{change}")
}

/// How often two annotators agree, how often others do, and what is known about who copied.
fn pair_in_words(pair: &AgreeingPair) -> String {
    let (name, colleague) = (&pair.annotator, &pair.colleague);
    let who = if pair.has_clear_order() {
        format!("{name} came later on {} of them", count(pair.later))
    } else {
        format!("who copies whom the labels do not show, and leaving out {name} is enough")
    };
    format!(
        "{name} gives {colleague}’s label on {} of {} common items; other pairs agree on {} ({who})",
        count(pair.agreed),
        count(pair.common),
        percent(pair.others_agree)
    )
}

/// A number as the user wrote it, without the rounding error of a product.
pub(super) fn plain(x: f64) -> String {
    format!("{}", (x * 1e9).round() / 1e9)
}
