//! Sentences about a task, and about a policy's costs, limit and traffic.

use std::cmp::Ordering;
use std::io;

use pointsman::certify::CoarserCells;
use pointsman::evaluate::action_name;
use pointsman::monitor::{Traffic, TrafficShift};
use pointsman::partition::SPARSE_BELOW_ROWS;
use pointsman::policy::{AssumedPanel, Promise};
use pointsman::task::{Named, Route};
use pointsman::{CellId, Limit, Oracle, Policy, Router, Table, Task};
use pointsman_report::{perfect_oracles_in_words, route_flag};

use super::{identified_interval, with_error};
use crate::render::number::{counted, exact, fixed, percent, plain, short};
use crate::render::paragraph;
use crate::render::style::{self, DIM};

/// A warning that a router has too few calibration rows to estimate anything; `None` if it has enough.
pub(crate) fn few_rows(router: &Router) -> Option<String> {
    let rows = router.rows().rows();
    (rows < SPARSE_BELOW_ROWS).then(|| {
        format!(
            "{}: fewer than {SPARSE_BELOW_ROWS} show neither how often the model is wrong nor what an oracle saves, and every cost, interval \
             and action is a guess; calibrate on more rows, better hundreds",
            counted(rows, "calibration row", "calibration rows")
        )
    })
}

/// The expected cost of new queries; `None` if labels give only bounds.
pub(crate) fn expected_cost(policy: &Policy) -> Option<String> {
    policy.promise().map(|promise| promised_cost(&promise, policy.task().loss().unit()))
}

/// The actions that have a share, the most frequent first.
pub(crate) fn most_frequent(shares: &Named<f64>) -> Vec<(&str, f64)> {
    let mut shares: Vec<(&str, f64)> = shares.iter().map(|(name, &share)| (name, share)).collect();
    shares.retain(|(_, share)| *share > 0.0);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// The actions that have a share, in colour.
pub(crate) fn shares_in_words(shares: &Named<f64>) -> String {
    let one = |(name, share): (&str, f64)| {
        let style = style::action_named(name);
        format!("{style}{name}{style:#} {}", percent(share))
    };
    most_frequent(shares).into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The expected cost of a policy and of each action taken always.
pub(crate) fn promised_cost(promise: &Promise, unit: &str) -> String {
    let always: Vec<String> =
        promise.always.iter().map(|(name, &cost)| format!("always {} {}", action_name(name), short(cost))).collect();
    format!(
        "Expected cost per query, estimated on rows left out: {} {unit}{}; {}",
        with_error(promise.cost, promise.standard_error),
        identified_interval(promise.cost, promise.standard_error, promise.identified),
        always.join(", ")
    )
}

/// Which panels' costs rest on an assumption about labels; `None` if none do.
pub(crate) fn assumed_panels(policy: &Policy) -> Option<String> {
    let panels = policy.assumed_panels();
    let names: Vec<&str> = panels.iter().map(|panel| panel.route.as_str()).collect();
    let needs = |panel: &AssumedPanel| {
        let which = if panels.len() == 1 { "that" } else { panel.route.as_str() };
        let (needed, few) = (panel.labels_needed, percent(panel.share));
        format!("{which} takes {needed} labels per item, and {few} of the calibration rows have fewer")
    };
    (!panels.is_empty()).then(|| {
        format!(
            "The labels do not identify the cost of {}: {}. For these rows the cost rests on an assumed distribution of labels, and ± does \
             not include what is wrong with it.",
            names.join(", "),
            panels.iter().map(needs).collect::<Vec<_>>().join("; ")
        )
    })
}

/// A warning per route that is assumed to be perfect although these rows have its oracle's answers.
pub(crate) fn unused_answers(task: &Task, rows: &Table) -> Vec<String> {
    let has_answers = |route: &&Route| rows.oracles().any(|(name, _)| name == route.name());
    let perfect = task.routes().iter().filter(|route| *route.oracle() == Oracle::Bayes);
    let sentence = |route: &Route| {
        format!(
            "{} is taken to know the label distribution, although its answers to the calibration rows are known: to use them write \
             --route {}",
            route.name(),
            route_flag(route, "measured")
        )
    };
    perfect.filter(has_answers).map(sentence).collect()
}

/// Prints which routes have an oracle that is assumed to be perfect, if any have.
pub(crate) fn print_perfect_oracles(out: impl io::Write, task: &Task) -> io::Result<()> {
    perfect_oracles_in_words(task).map_or(Ok(()), |text| paragraph(out, 2, &format!("{DIM}{text}{DIM:#}")))
}

/// By which prices of routing margins, certainty and regret are found under a limit, as the end of a sentence; `None` if they are those of
/// the costs.
pub(crate) fn prices_of_limit(policy: &Policy) -> Option<String> {
    let price = policy.surcharge_price()?;
    match policy.task().limit()? {
        Limit::Budget(_) => (price > 0.0).then(|| {
            format!("with the surcharge of {} that the budget puts on routing, which is not in the costs", short(price))
        }),
        Limit::TargetLoss(_) => Some(format!(
            "with routing at {}, the price that reaches the target loss, instead of its price in the costs",
            short(price)
        )),
    }
}

/// The price that a limit on routing is equivalent to, and its effect; `None` if there is no limit.
pub(crate) fn limit(policy: &Policy) -> Option<String> {
    let (limit, found) = policy.task().limit().zip(policy.surcharge())?;
    let wanted = match limit {
        Limit::Budget(share) => format!("Budget: {} of traffic like the calibration rows", percent(share)),
        Limit::TargetLoss(loss) => format!("Target: an expected loss of at most {}", short(loss)),
    };
    let price = match limit {
        Limit::Budget(_) if found.price == 0.0 => "the prices need not change".to_owned(),
        Limit::Budget(_) => format!("it acts as if routing cost {} more", short(found.price)),
        Limit::TargetLoss(_) if found.share == 0.0 => "it needs no routing".to_owned(),
        Limit::TargetLoss(_) => {
            let own = match policy.task().routes().len() > 1 {
                true => "by any route, instead of their own prices",
                false => "instead of its own price",
            };
            format!("it acts as if routing cost {} {own}", short(found.price))
        }
    };
    // With a forest hardly two queries save the same: a share that rounds to zero is not worth a sentence.
    let is_drawn = found.marginal > 0.0 && found.marginal < 1.0 && percent(found.at_margin) != percent(0.0);
    let random = match is_drawn {
        true => format!(
            " Where routing saves exactly that price, which is so for {} of such traffic, {} of the queries are routed, at random, the same \
             for the same query.",
            percent(found.at_margin),
            percent(found.marginal)
        ),
        false => String::new(),
    };
    let error = Some(found.share_standard_error).filter(|error| error.is_finite() && *error > 0.0);
    let share = percent(found.share) + &error.map_or(String::new(), |error| format!(" ± {}", percent(error)));
    let loss = with_error(found.loss, found.loss_standard_error)
        + &identified_interval(found.loss, found.loss_standard_error, found.loss_identified);
    // If one label per item only bounds the losses, their upper bounds were counted.
    let mut cells = (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
    let loss = match cells.all(|decision| decision.is_known()) {
        true => loss,
        false => format!("at most {loss} if undetermined queries are predicted"),
    };
    let differs = match limit {
        Limit::TargetLoss(target) if short(target) != short(found.loss) => {
            " The price is chosen by the estimates of all rows, which meet the target; this loss is measured anew on rows left out."
        }
        _ => "",
    };
    Some(format!(
        "{wanted}; {price}; {share} of such traffic is routed, and the expected loss is {loss}, without the prices of routing.{differs}{random}"
    ))
}

/// A warning that a limit on routing routes another share of these rows than expected, beyond chance; `None` if it does not.
pub(crate) fn limit_missed(policy: &Policy, traffic: &Traffic, shares: &Named<f64>) -> Option<String> {
    let (limit, found) = policy.task().limit().zip(policy.surcharge())?;
    let routed = shares.iter().filter(|(name, _)| name.starts_with("route:")).map(|(_, share)| share).sum();
    if !traffic.departs_from(found.share, routed) {
        return None;
    }
    let what = if matches!(limit, Limit::Budget(_)) { "budget" } else { "target loss" };
    Some(format!(
        "{} of these rows are routed, not {} as the {what} would route of traffic like the calibration rows: it is a price found on \
         those, and these rows differ; decide --cap NAME=N is a hard limit",
        percent(routed),
        percent(found.share)
    ))
}

/// The share that differs most from the calibration rows; `None` if none does.
pub(crate) fn traffic(traffic: &TrafficShift) -> Option<String> {
    let share = traffic.shares.first()?;
    let (now, before, cell) = (percent(share.share), percent(share.calibration), share.cell);
    // A forest is compared by bins of confidence, which are not its cells.
    let is_bin = share.name.starts_with("confidence");
    let what = match share.confidence {
        None if share.feature.is_some() || is_bin => {
            format!("{now} of these rows have {}, {before} of the calibration rows had", share.name)
        }
        None => {
            format!("{now} of these rows are in cell {cell} ({}), {before} of the calibration rows were", share.name)
        }
        Some([low, high]) if is_bin => format!(
            "{now} of these rows with {} have a confidence from {} to {}, {before} of the calibration rows there had",
            share.name,
            short(low),
            short(high)
        ),
        Some([low, high]) => format!(
            "{now} of these rows in cell {cell} ({}) have a confidence from {} to {}, {before} of the calibration rows there had",
            share.name,
            short(low),
            short(high)
        ),
    };
    let others = match traffic.moved_shares - 1 {
        0 => String::new(),
        n => format!("; {} moved too", counted(n, "other share has", "other shares have")),
    };
    Some(format!("traffic has moved: {what}{others}"))
}

/// A warning that a task has one action only; `None` if it has several.
pub(crate) fn no_choice(task: &Task) -> Option<String> {
    let none = task.routes().is_empty() && task.abstain_price().is_none();
    none.then(|| "no --route and no --abstain: the only action is to predict".to_owned())
}

/// A warning per price that exceeds every loss, which is often in another unit than the loss.
pub(crate) fn overpriced(task: &Task) -> Vec<String> {
    let sentence = |(action, price): (String, f64)| {
        format!(
            "{action} costs {}, but a wrong answer costs at most {} {}: it is never worth its price; prices are in the unit of the loss",
            exact(price),
            short(task.loss().bound()),
            task.loss().unit()
        )
    };
    task.overpriced().into_iter().map(sentence).collect()
}

/// What coarser cells would make certain, and what queries are expected to cost with them and `now`.
pub(crate) fn coarser_cells(found: &CoarserCells, now: Option<&Promise>, unit: &str) -> String {
    let Some(best) = found.partitions.first() else {
        return match found.tried.as_slice() {
            [] => "There are no coarser cells to try: label more items, or try cells by features.".to_owned(),
            tried => format!(
                "Coarser cells ({}) would not make more of the traffic certain: label more items, or try cells by features.",
                tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
    };
    let promises = best.promise.as_ref().zip(now);
    let cost = best.difference.as_ref().zip(promises).map_or(String::new(), |(difference, (then, now))| {
        let (by, error) = (fixed(difference.estimate.abs(), 4), fixed(difference.standard_error.unwrap_or(f64::NAN), 4));
        let [with_it, now] = [then.cost, now.cost].map(|cost| fixed(cost, 4));
        match difference.certain_sign() {
            Some(Ordering::Greater) => format!(
                "; it costs {by} ± {error} {unit} more per query ({with_it} with it, {now} now): certainty is bought at that price"
            ),
            Some(Ordering::Less) => {
                format!("; it also costs {by} ± {error} {unit} less per query ({with_it} with it, {now} now)")
            }
            _ => format!(
                "; queries are expected to cost {with_it} {unit} with it, {now} now, and the difference on the same rows is {} ± {error}, which \
                 does not show which of them costs less",
                fixed(difference.estimate, 4)
            ),
        }
    });
    format!(
        "With coarser cells more would be certain: --partition {} has {} and would make {} certain{cost}. That is a forecast from the \
         same labels, not a certificate; to rely on it, calibrate with it and ask for --confidence {}.",
        best.partition,
        counted(best.cells, "cell", "cells"),
        percent(best.certain),
        rounded_up(found.confidence)
    )
}

/// A confidence with few digits, not below the given one: three digits of the error probability are kept, rounded down.
fn rounded_up(confidence: f64) -> String {
    let error = 1.0 - confidence;
    let decimals = (2.0 - error.log10().floor()).clamp(2.0, 15.0);
    // Rounding of the subtraction does not count as a digit.
    let kept = (error * 10_f64.powf(decimals) * (1.0 + 1e-9)).floor() / 10_f64.powf(decimals);
    plain(format!("{:.*}", decimals as usize, 1.0 - kept).parse().unwrap_or(confidence))
}

#[cfg(test)]
mod tests {
    use super::rounded_up;

    #[test]
    fn confidences_are_rounded_up_to_few_digits() {
        for (confidence, text) in [
            (1.0 - 0.05 / 3.0, "0.9834"),
            (0.95, "0.95"),
            (0.975, "0.975"),
            (1.0 - 1e-4 / 7.0, "0.9999858"),
            (1.0 - 0.1 / 3.0, "0.9667"),
        ] {
            assert_eq!(rounded_up(confidence), text, "{confidence}");
            assert!(text.parse::<f64>().is_ok_and(|rounded| rounded >= confidence - 1e-12), "{confidence}");
        }
    }
}
