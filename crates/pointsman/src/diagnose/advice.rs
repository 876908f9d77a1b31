//! The verdict of a diagnosis, in words.

use super::remarks::{plain, remarks, without_flagged};
use super::{Annotator, AtLimit, Diagnosis, Estimate, FlaggedAnnotators, Mismatch, Stopping, Worth};
use crate::evaluate::rule_name;
use crate::number::{count, counted, fixed, percent};
use crate::partition::SPARSE_BELOW_ROWS;
use crate::task::Named;

/// A saving below this share of the cost, or a gain below this, is negligible.
const MATERIAL: f64 = 0.01;

/// If the interval of the saving reaches above this share of the cost, more data is needed.
const UNDECIDED: f64 = 0.05;

/// The largest number of classes listed in a sentence.
const MAX_LISTED: usize = 5;

/// The smallest number of rows for a verdict. Halves of fewer rows have fewer rows than a sparse cell, and intervals would be too narrow.
const MIN_ROWS: usize = 2 * SPARSE_BELOW_ROWS;

/// The smallest number of rows from which a missing or small saving counts, with prices and without. A router that learns from a half of
/// fewer rows often saves nothing where one of all rows saves much, and the interval is about the router of the half.
const MIN_ROWS_FOR_NO_SAVING: usize = 1000;

/// What the diagnosis advises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Advice {
    /// Decomposition pays here.
    UseIt,
    /// A simpler rule does as well.
    NoNeed,
    /// At most a small saving, which the data cannot distinguish from none: whether it is worth it is the user's decision.
    SmallSaving,
    /// Items have one label each: noise and error cannot be separated.
    OneLabel,
    /// There is too little data for a verdict.
    #[default]
    MoreData,
    /// The labels must be corrected first: estimates from them are not valid.
    MendLabels,
}

/// The verdict and the reasons for it.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Recommendation {
    /// The advice.
    pub advice: Advice,
    /// The verdict as a sentence.
    pub sentence: String,
    /// The partition of the verdict: the one asked for or, if only another one certainly pays, that one.
    pub partition: String,
    /// Reasons for caution, and what to do about them.
    pub remarks: Vec<String>,
}

pub(super) fn recommend(diagnosis: &Diagnosis) -> Recommendation {
    let (mut advice, mut sentence) = verdict(diagnosis);
    let mut partition = diagnosis.partition.clone();
    if matches!(advice, Advice::NoNeed | Advice::SmallSaving | Advice::MoreData)
        && let Some((other, reason)) = another_partition(diagnosis)
    {
        (advice, sentence) = (Advice::UseIt, reason);
        partition = other;
    }
    if let Some(flagged) = diagnosis.flagged_annotators.as_ref().filter(|_| advice == Advice::UseIt) {
        sentence = after_leaving_out(&sentence, flagged);
    }
    let remarks = remarks(diagnosis, advice, &partition);
    Recommendation { advice, sentence, partition, remarks }
}

/// A partition that pays although the one asked for does not, and the verdict on it. Several are compared and the best looks better than it
/// is, so its saving must exceed three standard errors.
fn another_partition(diagnosis: &Diagnosis) -> Option<(String, String)> {
    let worth = diagnosis.worth.as_ref().filter(|_| diagnosis.rows_used >= MIN_ROWS)?;
    // The best simpler rule is the same for every partition.
    let target = diagnosis.task.target_loss.zip(worth.limit.as_ref());
    let ends = |named: &Named<Estimate>| {
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
    let pays = |saves: &Estimate| saves.low > saves.estimate / 3.0 && saves.estimate >= MATERIAL * scale;
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
    if diagnosis.bounds.is_some() {
        let text = "Not with one label per item: noise and model error cannot be separated, and what an oracle would save is \
                    only bounded. First buy a second, independent label for some hundred items.";
        return (Advice::OneLabel, text.into());
    }
    if let Some(text) = labels_to_mend(diagnosis) {
        return (Advice::MendLabels, text);
    }
    let rows = counted(diagnosis.rows_used, "row", "rows");
    let Some(worth) = &diagnosis.worth else {
        let text = format!(
            "More rows first: {rows}, of which {} have two labels or more, halved to learn from one half and judge on the other, are too \
             few. Give hundreds of rows with several labels.",
            percent(diagnosis.enough.paired)
        );
        return (Advice::MoreData, text);
    };
    if diagnosis.rows_used < MIN_ROWS {
        let text = format!(
            "More rows first: {rows}, halved to learn from one half and judge on the other, are too few, whatever the intervals \
             below say. Give at least {MIN_ROWS}, better hundreds."
        );
        return (Advice::MoreData, text);
    }
    match (&worth.savings, &worth.limit, diagnosis.task.target_loss) {
        (Some(_), Some(limit), Some(target)) => by_routing(diagnosis, limit, target),
        (Some(savings), ..) => by_cost(diagnosis, savings),
        (None, ..) => by_gain(diagnosis, worth),
    }
}

/// The reason why the labels must be corrected before anything is estimated from them, if there is one.
fn labels_to_mend(diagnosis: &Diagnosis) -> Option<String> {
    let flagged = diagnosis.flagged_annotators.as_ref().filter(|flagged| flagged.is_material());
    // All other checks take each label for one of its own, which a majority vote is not.
    if let Some(flagged) = flagged.filter(|_| diagnosis.annotators.iter().any(Annotator::is_majority_vote)) {
        return Some(leave_out_first(diagnosis, flagged));
    }
    // Copies make the labels of every item with the fewest labels agree, so they come before the number of labels.
    if let Some(copies) = diagnosis.agreement.copies {
        return Some(format!(
            "Correct the labels first: all counts are multiples of {copies}, so each label was counted {copies} times. Divide all counts \
             by {copies}; in a table of annotations, drop the rows that repeat others."
        ));
    }
    if let Some((stopping, k)) = diagnosis.stopping.and_then(|stopping| Some((stopping, stopping.stopped_at?))) {
        let without_others = if stopping.labels[0] < k { format!(" --min-labels {k}") } else { String::new() };
        return Some(format!(
            "Correct the labels first: every item with {k} labels is unanimous, so labelling went on until annotators agreed, \
             and estimates from such labels are biased. Keep the first labels of every item only: --first-labels {k}{without_others}."
        ));
    }
    if let Some(flagged) = flagged {
        return Some(leave_out_first(diagnosis, flagged));
    }
    if let Some(stopping) = diagnosis.stopping.filter(Stopping::is_suspicious) {
        return Some(numbers_depend_on_labels(&stopping));
    }
    diagnosis.unanimity.map(|found| {
        format!(
            "Check the labels first: in each of the {} rows with several labels they all agree, and yet {} of these rows \
             contradict others of similar prediction. Either nothing here is ambiguous, and a confidence threshold does as \
             well; or labels were copied, and then noise and error cannot be separated: count each independent label once.",
            count(found.rows),
            count(found.contradicting)
        )
    })
}

/// The verdict on annotators whose labels are to be left out before anything is estimated.
fn leave_out_first(diagnosis: &Diagnosis, flagged: &FlaggedAnnotators) -> String {
    let (they, are) = match flagged.annotators.len() {
        1 => ("This annotator", "Leave these labels out"),
        _ => ("These annotators", "Leave them out"),
    };
    format!(
        "Correct the labels first: {}. {they} gave {} of the labels. {are}: {}.",
        without_flagged(diagnosis, flagged),
        percent(flagged.label_share),
        options(flagged)
    )
}

/// The options that leave annotators out.
fn options(flagged: &FlaggedAnnotators) -> String {
    flagged.annotators.iter().map(|name| format!("--without {}", quoted(name))).collect::<Vec<_>>().join(" ")
}

/// A verdict to use it, if a few labels are to be left out before. Nothing is estimated again without them.
fn after_leaving_out(sentence: &str, flagged: &FlaggedAnnotators) -> String {
    let verdict = sentence.strip_prefix("Use it").unwrap_or(sentence);
    let names = flagged.annotators.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match flagged.annotators.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Use it, after leaving out {names}{more} ({}){verdict} This was measured with their labels: run diagnose again without them.",
        options(flagged)
    )
}

/// The verdict on items whose number of labels seems to depend on what the labels say.
fn numbers_depend_on_labels(stopping: &Stopping) -> String {
    let remedy = match stopping.first_labels() {
        Some(k) => format!("keep the first {k} labels of every item only: --first-labels {k}"),
        None => "leave out the items with one label, and keep the first two labels of the others: --first-labels 2 --min-labels 2"
            .to_owned(),
    };
    format!(
        "Correct the labels first: items with more labels disagree {} than others of similar confidence, so the number of labels \
         depends on the labels, and estimates from such labels are biased. Unless harder items were given more labels on purpose, \
         before anybody labelled them, {remedy}.",
        if stopping.z > 0.0 { "more" } else { "less" }
    )
}

/// The verdict on classes that seem to be matched wrongly.
fn matched_wrongly(mismatch: &Mismatch) -> String {
    format!(
        "Check the columns first: the classes of votes and probabilities seem to be matched wrongly: {}. Where the model predicts one of \
         these classes, labels agree with it in {} of cases, less than the {} of pure chance; matched like that, in {}. If the columns \
         are right, the model is wrong on most of these rows.",
        mismatch.matches_in_words(MAX_LISTED),
        percent(mismatch.agreement),
        percent(mismatch.chance),
        percent(mismatch.agreement_if_matched)
    )
}

/// A name quoted for the command line.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.@".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// A saving per thousand queries, in the loss's unit.
fn per_thousand(saving: Estimate, unit: &str) -> String {
    let Estimate { estimate, low, high } = saving.per_thousand();
    let decimals = if low.abs().max(high.abs()) >= 100.0 { 0 } else { 1 };
    let [estimate, low, high] = [estimate, low, high].map(|x| fixed(x, decimals));
    format!("{estimate} {unit} per thousand queries (between {low} and {high})")
}

/// What Pointsman would do to a cost, with its interval: save a share of it, or cost more.
fn change_in_words(saving: &Estimate, scale: f64, unit: &str) -> String {
    let (change, is_dearer) = if saving.estimate < 0.0 { (saving.negated(), true) } else { (*saving, false) };
    let [estimate, low, high] = [change.estimate, change.low, change.high].map(|x| percent(x / scale));
    let worth = per_thousand(change, unit);
    match is_dearer {
        true => format!("cost {estimate} more (between {low} and {high}): {worth}"),
        false => format!("save {estimate} (between {low} and {high}) of its cost: {worth}"),
    }
}

/// Whether two rules had the same cost on every row of every half.
fn is_same(difference: &Estimate) -> bool {
    difference.low == 0.0 && difference.high == 0.0
}

/// Whether a saving is certainly negligible, or not positive and certainly small.
fn is_nothing(saving: &Estimate, scale: f64) -> bool {
    saving.high < MATERIAL * scale || saving.estimate <= 0.0 && saving.high < UNDECIDED * scale
}

/// The name of a rule within a sentence.
fn spoken(rule: &str) -> String {
    match rule {
        "total-uncertainty" => "the best confidence threshold".to_owned(),
        always => rule_name(always),
    }
}

/// The verdict if there are prices: by the smallest saving over a simpler rule.
fn by_cost(diagnosis: &Diagnosis, savings: &Named<Estimate>) -> (Advice, String) {
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
    // No router saves more than is reducible, however many rows it learns from. Abstaining saves irreducible loss, too.
    let reducible = diagnosis.worth.as_ref().map_or(f64::INFINITY, |worth| worth.reducible.high);
    let is_bounded = diagnosis.task.abstain.is_none() && reducible < MATERIAL * scale;
    if saving.low > 0.0 && saving.estimate >= MATERIAL * scale {
        let text = format!(
            "Use it: at these prices{within} it saves {between} of the cost of the best simpler rule, {rule}: {worth}."
        );
        (Advice::UseIt, text)
    } else if is_bounded {
        let most = share(reducible.max(0.0));
        let text = format!(
            "No need at these prices{within}: no router saves more than {most} of the cost of the best simpler rule, {rule}, since no more \
             is reducible."
        );
        (Advice::NoNeed, text)
    } else if diagnosis.rows_used < MIN_ROWS_FOR_NO_SAVING && saving.high < UNDECIDED * scale {
        let shown = match is_same(saving) {
            true => format!("Pointsman did the same as the best simpler rule, {rule}, in every half"),
            false => {
                let change = change_in_words(saving, scale, diagnosis.unit);
                format!("compared with the best simpler rule, {rule}, Pointsman would {change}")
            }
        };
        let text = format!("{} At these prices{within}, {shown}.", too_few_for_no_saving(diagnosis));
        (Advice::MoreData, text)
    } else if is_nothing(saving, scale) {
        let as_well = if saving.high < 0.0 { "is cheaper" } else { "does as well" };
        let change = change_in_words(saving, scale, diagnosis.unit);
        let text = format!("No need at these prices{within}: {rule} {as_well}. Pointsman would {change}.");
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
             rows are too few to decide. Four times as many rows like these would halve the interval."
        );
        (Advice::MoreData, text)
    }
}

/// That a saving which does not show on few rows may show on more.
fn too_few_for_no_saving(diagnosis: &Diagnosis) -> String {
    let rows = counted(diagnosis.rows_used, "row", "rows");
    let least = count(MIN_ROWS_FOR_NO_SAVING);
    format!(
        "More rows first, at least {least}: on {rows}, of which half learn, a saving does not show; it may with more."
    )
}

/// The verdict at a target loss: by the smallest share spared over a simpler rule.
fn by_routing(diagnosis: &Diagnosis, limit: &AtLimit, target: f64) -> (Advice, String) {
    let Some((rival, spared)) = limit.spared.iter().min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) else {
        let text = format!(
            "Use it: nothing simpler reaches a loss of {} on all halves of these rows, however much it routes.",
            plain(target)
        );
        return (Advice::UseIt, text);
    };
    let routed = limit.routed.get(rival).map_or(0.0, |routed| routed.estimate);
    // No router routes less than nothing, however many rows it learns from.
    let is_bounded = limit.routed.get(rival).is_some_and(|routed| routed.high < MATERIAL);
    let scale = if routed > 0.0 { routed } else { 1.0 };
    let share = |x: f64| percent(x);
    let between =
        format!("{} of the queries (between {} and {})", share(spared.estimate), share(spared.low), share(spared.high));
    let change = match spared.estimate < 0.0 {
        true => {
            let [estimate, low, high] = [-spared.estimate, -spared.high, -spared.low].map(share);
            format!("{estimate} of the queries (between {low} and {high}) more")
        }
        false => format!("{between} less"),
    };
    let (rule, target, routed) = (spoken(rival), plain(target), share(routed));
    if spared.low > 0.0 && spared.estimate >= MATERIAL * scale {
        let text = format!(
            "Use it: to lose no more than {target} it routes {between} less than the best simpler rule, {rule}, which routes {routed}."
        );
        (Advice::UseIt, text)
    } else if diagnosis.rows_used < MIN_ROWS_FOR_NO_SAVING && spared.high < UNDECIDED * scale && !is_bounded {
        let text = format!(
            "{} To lose no more than {target} Pointsman {} the best simpler rule, {rule}, which routes {routed}.",
            too_few_for_no_saving(diagnosis),
            if is_same(spared) { "did the same as".to_owned() } else { format!("would route {change} than") }
        );
        (Advice::MoreData, text)
    } else if is_nothing(spared, scale) {
        let as_well = if spared.high < 0.0 { "routes less" } else { "does as well" };
        let text = format!(
            "No need: to lose no more than {target}, {rule} {as_well}, with {routed} of the queries. Pointsman would route {change}."
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
             {rule}, which routes {routed}, and these rows are too few to decide. Four times as many rows like these would halve the interval."
        );
        (Advice::MoreData, text)
    }
}

/// The verdict without prices: by the ranking of queries. A gain is relative to what the best ranking wins, which is almost nothing if no
/// loss is reducible; then the loss saved decides.
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
    } else if diagnosis.rows_used < MIN_ROWS_FOR_NO_SAVING {
        let text = format!(
            "{} Ranking by reducible loss gains {between} over ranking by confidence; {saved}; {most}.",
            too_few_for_no_saving(diagnosis)
        );
        (Advice::MoreData, text)
    } else if is_nothing(&saves, scale) || is_nothing(&gain, 1.0) {
        let as_well = if gain.high < 0.0 { "is better" } else { "does as well" };
        let text = format!("No need: ranking by confidence {as_well}. The difference in gain is {between}; {saved}.");
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
