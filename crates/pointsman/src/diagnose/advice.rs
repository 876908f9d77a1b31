//! The verdict, in plain words.

use super::{AtLimit, Diagnosis, FlaggedAnnotators, Mismatch, Worth};
use crate::diagnose::annotators::Annotator;
use crate::evaluate::rule_name;
use crate::number::{count, counted, fixed, percent};
use crate::partition::SPARSE_BELOW_ROWS;
use crate::task::Named;

/// A saving below this share of the cost, or a gain below it, does not matter.
const MATERIAL: f64 = 0.01;

/// If more than this may be saved for all that is known, it is not known enough.
const UNDECIDED: f64 = 0.05;

/// Classes and annotators listed in a sentence.
const LISTED: usize = 5;

/// With fewer rows intervals are too narrow, if not empty: halves of them have no more than a sparse cell has.
const FEWEST_ROWS: usize = 2 * SPARSE_BELOW_ROWS;

/// What to do about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Advice {
    /// Decomposition pays here.
    UseIt,
    /// Something simpler does as well.
    NoNeed,
    /// Little is saved, if anything, and the data cannot tell it from nothing: whether it is worth the trouble is for the user to say.
    SmallSaving,
    /// Items carry one label each: noise and error cannot be told apart.
    OneLabel,
    /// The data does not decide.
    #[default]
    MoreData,
    /// The labels must be mended first: no estimate from them can be believed.
    MendLabels,
}

/// The verdict and the reasons for it.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Recommendation {
    /// In a word.
    pub advice: Advice,
    /// In a sentence.
    pub sentence: String,
    /// The partition it is about: the one asked for or, if that does not pay and another surely does, that one.
    pub partition: String,
    /// What speaks against relying on it, or what to do about it.
    pub remarks: Vec<String>,
}

pub(super) fn recommend(diagnosis: &Diagnosis) -> Recommendation {
    let (mut advice, mut sentence) = verdict(diagnosis);
    let mut partition = diagnosis.partition.clone();
    if matches!(advice, Advice::NoNeed | Advice::SmallSaving | Advice::MoreData)
        && let Some((other, reason)) = elsewhere(diagnosis)
    {
        (advice, sentence) = (Advice::UseIt, reason);
        partition = other;
    }
    let remarks = remarks(diagnosis, advice, &partition);
    Recommendation { advice, sentence, partition, remarks }
}

/// A partition that pays where the one asked for does not, and what is said of it. Several are compared and the best of them is
/// lucky: its own saving must be beyond three standard errors.
fn elsewhere(diagnosis: &Diagnosis) -> Option<(String, String)> {
    let worth = diagnosis.worth.as_ref().filter(|_| diagnosis.rows_used >= FEWEST_ROWS)?;
    // The best simpler rule is the same for every partition.
    let target = diagnosis.task.target_loss.zip(worth.limit.as_ref());
    let ends = |named: &Named<super::Estimate>| {
        let least =
            named.iter().filter(|(name, _)| *name != "router").min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
        least.map(|(name, value)| (spoken(name), value.estimate))
    };
    let rival = match (target, &worth.costs) {
        (Some((_, limit)), Some(_)) => ends(&limit.routed),
        (_, Some(costs)) => ends(costs),
        _ => Some((String::new(), 1.0)),
    };
    let (rule, scale) = rival.filter(|(_, scale)| *scale > 0.0)?;
    let pays = |saves: &super::Estimate| saves.low > saves.estimate / 3.0 && saves.estimate >= MATERIAL * scale;
    let others = diagnosis.enough.partitions.iter().skip(1).filter_map(|other| Some((other, other.saves?)));
    let (other, saves) =
        others.filter(|(_, saves)| pays(saves)).max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate))?;
    let (name, own) = (&other.partition, &diagnosis.partition);
    let within = |unit: f64, decimals: usize, sign: &str| {
        let [estimate, low, high] = [saves.estimate, saves.low, saves.high].map(|x| fixed(x * unit, decimals) + sign);
        format!("{estimate} (between {low} and {high})")
    };
    let what = match (target, &worth.costs) {
        (Some((loss, _)), Some(_)) => {
            let (spared, loss) = (within(100.0, 1, " %"), plain(loss));
            format!(
                "to lose no more than {loss} it routes {spared} of the queries less than the best simpler rule, {rule}"
            )
        }
        (_, Some(_)) => {
            let saved = within(100.0 / scale, 1, " %");
            format!("at these prices it saves {saved} of the cost of the best simpler rule, {rule}")
        }
        _ => format!("ranking by its reducible loss gains {} over ranking by confidence", within(1.0, 3, "")),
    };
    Some((name.clone(), format!("Use it, with {name}: {what}. With {own} that is not certain.")))
}

fn verdict(diagnosis: &Diagnosis) -> (Advice, String) {
    if let Some(mismatch) = &diagnosis.mismatch {
        return (Advice::MendLabels, matched_wrongly(mismatch));
    }
    let Some(worth) = &diagnosis.worth else {
        let text = "Not with one label per item: noise and model error cannot be separated, and what an oracle would save is \
                    only bounded. A second, independent label on some hundred items is what to buy first.";
        return (Advice::OneLabel, text.into());
    };
    if let Some(text) = labels_to_mend(diagnosis) {
        return (Advice::MendLabels, text);
    }
    if diagnosis.rows_used < FEWEST_ROWS {
        let text = format!(
            "More rows first: {}, halved to learn from one half and judge on the other, are too few, whatever the intervals \
             below say. Give at least {FEWEST_ROWS}, better hundreds.",
            counted(diagnosis.rows_used, "row", "rows")
        );
        return (Advice::MoreData, text);
    }
    match (&worth.savings, &worth.limit, diagnosis.task.target_loss) {
        (Some(_), Some(limit), Some(target)) => by_routing(limit, target),
        (Some(savings), ..) => by_money(diagnosis, savings),
        (None, ..) => by_gain(diagnosis, worth),
    }
}

/// Why the labels must be mended before anything is estimated from them, if they must.
fn labels_to_mend(diagnosis: &Diagnosis) -> Option<String> {
    if let Some(k) = diagnosis.stopping.and_then(|stopping| stopping.stopped_at) {
        return Some(format!(
            "Mend the labels first: every item with {k} labels is unanimous, so labelling went on until annotators agreed, \
             and no estimate from such labels can be believed. Keep the first labels of every item only: --first-labels {k}."
        ));
    }
    if let Some(copies) = diagnosis.agreement.copies {
        return Some(format!(
            "Mend the labels first: all counts are multiples of {copies}, so labels are copies of one another and count \
             more than once."
        ));
    }
    if let Some(flagged) = diagnosis.flagged_annotators.as_ref().filter(|flagged| flagged.is_material()) {
        let flags: String = flagged.annotators.iter().map(|name| format!(" --without {}", quoted(name))).collect();
        return Some(format!(
            "Mend the labels first: {}. Leave them out:{flags}.",
            without_flagged(diagnosis, flagged)
        ));
    }
    diagnosis.unanimity.map(|found| {
        format!(
            "Look at the labels first: in each of the {} rows with several labels they all agree, and yet {} of these rows \
             contradict others of similar prediction. Either nothing here is ambiguous, and a confidence threshold does as \
             well; or labels were copied, and then noise and error cannot be separated: count each independent label once.",
            count(found.rows),
            count(found.contradicting)
        )
    })
}

/// What is said of classes that seem to be matched wrongly.
fn matched_wrongly(mismatch: &Mismatch) -> String {
    format!(
        "Look at the columns first: the classes of votes and probabilities seem to be matched wrongly. The labels name the model's top \
         class in {} of cases, where chance alone would give {}, and in {} if {}. If the columns are right, the model is wrong \
         on most of these rows.",
        percent(mismatch.agreement),
        percent(mismatch.chance),
        percent(mismatch.agreement_if_matched),
        mismatch.matches_in_words(LISTED)
    )
}

/// Which annotators do not label independently, and what the irreducible loss is with and without them.
fn without_flagged(diagnosis: &Diagnosis, flagged: &FlaggedAnnotators) -> String {
    let flags = |name: &String| {
        let flags = diagnosis.annotators.iter().find(|one| one.annotator == *name).map(|one| one.flags.join(", "));
        format!("{name} ({})", flags.unwrap_or_default())
    };
    let mut names = flagged.annotators.iter().take(LISTED).map(flags).collect::<Vec<_>>().join(", ");
    if flagged.annotators.len() > LISTED {
        names += &format!(" and {} more", flagged.annotators.len() - LISTED);
    }
    let does = if flagged.annotators.len() == 1 { "does" } else { "do" };
    let change = match (flagged.irreducible, flagged.irreducible_without) {
        (Some(with), Some(without)) => {
            format!(", and without these labels the irreducible loss is {}, not {}", fixed(without, 3), fixed(with, 3))
        }
        _ => String::new(),
    };
    format!("{names} {does} not label independently of the others or of the model{change}")
}

/// A name as a command line takes it.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.@".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// What a saving per query comes to on a thousand queries, in the loss's unit.
fn per_thousand(saving: super::Estimate, unit: &str) -> String {
    let super::Estimate { estimate, low, high } = saving.per_thousand();
    let decimals = if low.abs().max(high.abs()) >= 100.0 { 0 } else { 1 };
    let [estimate, low, high] = [estimate, low, high].map(|x| fixed(x, decimals));
    format!("{estimate} {unit} per thousand queries (between {low} and {high})")
}

/// Whether a saving is known to be next to nothing: too small to matter, or not positive and at most small.
fn is_nothing(saving: &super::Estimate, scale: f64) -> bool {
    saving.high < MATERIAL * scale || saving.estimate <= 0.0 && saving.high < UNDECIDED * scale
}

/// A rule's name within a sentence.
fn spoken(rule: &str) -> String {
    match rule {
        "total-uncertainty" => "the best confidence threshold".to_owned(),
        always => rule_name(always),
    }
}

/// At prices, the least saving against anything simpler decides.
fn by_money(diagnosis: &Diagnosis, savings: &Named<super::Estimate>) -> (Advice, String) {
    let Some((rival, saving)) = savings.iter().min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) else {
        return (Advice::NoNeed, "The only action is to predict: there is nothing to decide.".into());
    };
    let cost = diagnosis.worth.as_ref().and_then(|worth| worth.costs.as_ref()?.get(rival)).map_or(0.0, |c| c.estimate);
    let scale = if cost > 0.0 { cost } else { 1.0 };
    let share = |x: f64| percent(x / scale);
    let between = format!("{} (between {} and {})", share(saving.estimate), share(saving.low), share(saving.high));
    let rule = spoken(rival);
    let within = match diagnosis.task.budget {
        Some(most) => format!(" and with at most {} % routed", plain(100.0 * most)),
        None => String::new(),
    };
    let worth = per_thousand(*saving, diagnosis.unit);
    if saving.low > 0.0 && saving.estimate >= MATERIAL * scale {
        let text = format!(
            "Use it: at these prices{within} it saves {between} of the cost of the best simpler rule, {rule}: {worth}."
        );
        (Advice::UseIt, text)
    } else if is_nothing(saving, scale) {
        let text = format!(
            "No need at these prices{within}: {rule} does as well. Pointsman would {}.",
            match saving.estimate < 0.0 {
                true => {
                    let more = saving.negated();
                    let [estimate, low, high] = [more.estimate, more.low, more.high].map(share);
                    let worth = per_thousand(more, diagnosis.unit);
                    format!("cost {estimate} more (between {low} and {high}): {worth}")
                }
                false => format!("save {between} of its cost: {worth}"),
            }
        );
        (Advice::NoNeed, text)
    } else if saving.high < UNDECIDED * scale {
        let text = format!(
            "A small saving at best: at these prices{within} Pointsman saves {between} of the cost of the best simpler rule, {rule}: \
             {worth}. Whether that is worth it is your decision."
        );
        (Advice::SmallSaving, text)
    } else {
        let text = format!(
            "More rows or labels first: the saving over the best simpler rule, {rule}, is {between} of its cost ({worth}), and these \
             rows are too few to decide."
        );
        (Advice::MoreData, text)
    }
}

/// At a target loss the least routing spared against anything simpler decides.
fn by_routing(limit: &AtLimit, target: f64) -> (Advice, String) {
    let Some((rival, spared)) = limit.spared.iter().min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) else {
        let text = format!(
            "Use it: nothing simpler reaches a loss of {} on all halves of these rows, however much it routes.",
            plain(target)
        );
        return (Advice::UseIt, text);
    };
    let routed = limit.routed.get(rival).map_or(0.0, |routed| routed.estimate);
    let scale = if routed > 0.0 { routed } else { 1.0 };
    let share = |x: f64| percent(x);
    let between =
        format!("{} of the queries (between {} and {})", share(spared.estimate), share(spared.low), share(spared.high));
    let (rule, target, routed) = (spoken(rival), plain(target), share(routed));
    if spared.low > 0.0 && spared.estimate >= MATERIAL * scale {
        let text = format!(
            "Use it: to lose no more than {target} it routes {between} less than the best simpler rule, {rule}, which routes {routed}."
        );
        (Advice::UseIt, text)
    } else if is_nothing(spared, scale) {
        let text = format!(
            "No need: to lose no more than {target}, {rule} does as well, routing {routed}. Pointsman would route {between} less."
        );
        (Advice::NoNeed, text)
    } else if spared.high < UNDECIDED * scale {
        let text = format!(
            "A small saving at best: to lose no more than {target} Pointsman routes {between} less than the best simpler rule, {rule}, \
             which routes {routed}. Whether that is worth it is your decision."
        );
        (Advice::SmallSaving, text)
    } else {
        let text = format!(
            "More rows or labels first: to lose no more than {target} Pointsman routes {between} less than the best simpler rule, \
             {rule}, which routes {routed}, and these rows are too few to decide."
        );
        (Advice::MoreData, text)
    }
}

/// Without prices, the order in which queries would be routed decides. A gain is relative to what the best order wins, which is next to
/// nothing where no loss is reducible: then it is the loss saved that tells.
fn by_gain(diagnosis: &Diagnosis, worth: &Worth) -> (Advice, String) {
    let (loss, saves) = (worth.loss.estimate, worth.ranking_saves);
    let scale = if loss > 0.0 { loss } else { 1.0 };
    let share = |x: f64| percent(x / scale);
    let most = format!(
        "at most {} of the loss of {} is reducible ({}): {} {} per thousand queries",
        fixed(worth.reducible.high.max(0.0), 4),
        fixed(loss, 4),
        share(worth.reducible.high.max(0.0)),
        fixed(worth.reducible.per_thousand().high.max(0.0), 1),
        diagnosis.unit
    );
    let Some(gain) = worth.gain_over_total_uncertainty.filter(|_| worth.reducible.high >= MATERIAL * scale) else {
        return (Advice::NoNeed, format!("No need: routing can save next to nothing, {most}."));
    };
    let [estimate, low, high] = [gain.estimate, gain.low, gain.high].map(|x| fixed(x, 3));
    let between = format!("{estimate} (between {low} and {high})");
    let saved = format!(
        "averaged over how much is routed, it saves {} (between {} and {}) of the loss: {}",
        share(saves.estimate),
        share(saves.low),
        share(saves.high),
        per_thousand(saves, diagnosis.unit)
    );
    if gain.low > 0.0 && gain.estimate >= MATERIAL && worth.reducible.low > 0.0 {
        let text = format!("Use it: ranking by reducible loss gains {between} over ranking by confidence; {saved}.");
        (Advice::UseIt, text)
    } else if is_nothing(&saves, scale) || is_nothing(&gain, 1.0) {
        let text =
            format!("No need: ranking by confidence does as well. The difference in gain is {between}; {saved}.");
        (Advice::NoNeed, text)
    } else if saves.high < UNDECIDED * scale || gain.high < UNDECIDED {
        let text = format!(
            "A small saving at best from ranking by reducible loss instead of confidence: {saved}; {most}. Whether that is worth \
             it is your decision, and prices (--route) say more."
        );
        (Advice::SmallSaving, text)
    } else {
        let text = format!(
            "More rows or labels first: these rows are too few to decide whether ranking by reducible loss is better than by confidence; \
             {saved}; {most}."
        );
        (Advice::MoreData, text)
    }
}

/// As it was asked for, rounding of a product left out.
fn plain(x: f64) -> String {
    format!("{}", (x * 1e9).round() / 1e9)
}

fn remarks(diagnosis: &Diagnosis, advice: Advice, partition: &str) -> Vec<String> {
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
        && usual > ours - MATERIAL
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
    if enough.rows_in_sparse_cells > 0.2 {
        remarks.push(format!(
            "{} of the rows are in sparse cells: use fewer bins or more rows.",
            percent(enough.rows_in_sparse_cells)
        ));
    }
    if let Some(better) = enough.better_partition().filter(|better| *better != partition) {
        remarks.push(format!("The partition {better} does better on this table."));
    }
    let model = &diagnosis.weak_model;
    if !model.is_calibrated() {
        let pays = model.recalibrating_saves[1].or(model.recalibrating_saves[0]).is_some_and(|saves| saves.low > 0.0);
        remarks.push(format!(
            "The weak model is {}: its calibration error is {:.3}, of which chance alone explains {:.3} (mean confidence {:.3}; {:.3} of \
             the labels are its top class).{}",
            if model.is_overconfident() { "overconfident" } else { "not calibrated" },
            model.error,
            model.floor,
            model.confidence,
            model.accuracy,
            if pays { " Recalibrating, which serves the mean of each cell, would pay." } else { "" }
        ));
    }
    remarks
}

/// What is said of annotators beside the verdict.
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
            names[..names.len().min(LISTED)].join(", "),
            if names.len() == 1 { "agrees" } else { "agree" }
        ));
    }
    remarks
}

/// What is said of a target loss where not every half reaches it.
fn missed(limit: &AtLimit, diagnosis: &Diagnosis) -> Option<String> {
    let (target, halves) = (plain(diagnosis.task.target_loss?), 2 * diagnosis.splits);
    let missed = |rule: &str| limit.missed.get(rule).copied().filter(|&missed| missed > 0);
    if let Some(missed) = missed("router") {
        return Some(format!(
            "In {missed} of {halves} halves Pointsman does not reach a loss of {target}, however much it routes, or reaches it only by chance: what \
             it would route is not known, and the verdict is by the order of routing alone. A higher target or more rows would tell."
        ));
    }
    missed("total-uncertainty").map(|missed| {
        format!(
            "In {missed} of {halves} halves the best confidence threshold does not reach a loss of {target}; it is left out."
        )
    })
}
