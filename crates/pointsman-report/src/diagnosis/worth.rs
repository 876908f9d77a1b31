//! The card on what routing is worth: costs, savings and gains.

use pointsman::Diagnosis;
use pointsman::diagnose::{Compared, Estimate, Worth};
use pointsman::number::{decimals, fixed, maybe, percent};
use pointsman::task::Named;

use super::html::{self, Scale, estimate_cells, html_facts, html_table};
use super::{CONFIDENCE_THRESHOLD, MAX_NAME_CHARS};
use crate::chart::label;
use crate::page::escaped;
use crate::words::{ranking_label, rule_label};

/// Standard errors on either side of a 95 % interval.
const Z_95_PERCENT: f64 = 1.96;

pub(super) fn card(diagnosis: &Diagnosis) -> String {
    let question = "Is decomposition worth it here?";
    let unit = escaped(diagnosis.unit);
    let Some(worth) = &diagnosis.worth else {
        let Some(bounds) = &diagnosis.bounds else { return String::new() };
        let [low, high] = bounds.reducible;
        let digits = decimals([low, high]);
        let mut items = vec![(
            "reducible loss",
            format!("between {} and {} {} per query", fixed(low, digits), fixed(high, digits), diagnosis.unit),
        )];
        items.extend(
            bounds.decided.map(|share| ("decided by these bounds", format!("{} of the traffic", percent(share)))),
        );
        let answer = "With one label per item it cannot be known: noise and error look alike.";
        return html::card(question, answer, &html_facts(&items));
    };
    let costs = worth.costs.as_ref().zip(worth.savings.as_ref());
    let costs = costs.map_or(String::new(), |(costs, savings)| cost_table(diagnosis, worth, costs, savings, &unit));
    let digits = decimals([worth.loss.estimate, worth.reducible.estimate]);
    let [loss, _] = estimate_cells(Some(&worth.loss), digits, 1.0);
    let [reducible, interval] = estimate_cells(Some(&worth.reducible), digits, 1.0);
    let most = fixed(worth.reducible.per_thousand().high.max(0.0), 1);
    let mut items = vec![
        ("loss per query", format!("{loss} {}", diagnosis.unit)),
        ("of which reducible", format!("{reducible}, interval {interval}")),
        ("most that routing can save", format!("{most} {} per thousand queries", diagnosis.unit)),
    ];
    if let Some(correlation) = worth.correlation {
        let mut text = fixed(correlation, 2);
        if !ranks_better(worth) {
            text += "; if it were 1, ranking by the expected loss would do as well";
        }
        items.push(("correlation of reducible and total loss", text));
    }
    html::card(question, "", &(costs + &gain_table(diagnosis, worth) + &html_facts(&items)))
}

/// Whether Pointsman's gain exceeds that of ranking by confidence by more than a standard error.
fn ranks_better(worth: &Worth) -> bool {
    worth.gain_over_total_uncertainty.is_some_and(|more| more.estimate > (more.high - more.low) / (2.0 * Z_95_PERCENT))
}

/// Pointsman's name with a partition, since the verdict may be about another partition than the requested one.
fn router_with_partition(partition: &str) -> String {
    format!("{} ({})", rule_label("router"), label(partition, MAX_NAME_CHARS))
}

/// The recommended partition, if it is not the requested one.
fn recommended_partition(diagnosis: &Diagnosis) -> Option<&Compared> {
    let name = Some(&diagnosis.verdict.partition).filter(|&name| *name != diagnosis.partition)?;
    diagnosis.enough.partitions.iter().find(|other| other.partition == *name)
}

/// Costs per query, and Pointsman's savings or, at a target loss, its reduction in routing.
fn cost_table(
    diagnosis: &Diagnosis,
    worth: &Worth,
    costs: &Named<Estimate>,
    savings: &Named<Estimate>,
    unit: &str,
) -> String {
    let target = worth.limit.as_ref().filter(|_| diagnosis.task.target_loss.is_some());
    let digits = decimals(costs.iter().map(|(_, cost)| cost.estimate));
    let saved = target.map_or(savings, |limit| &limit.spared);
    let (saved_digits, saved_scale) = if target.is_some() { (1, 100.0) } else { (digits, 1.0) };
    let scale = Scale::new(saved.iter().map(|(_, saving)| saving));
    let cost_head = format!("cost per query, {unit}");
    let saves = if target.is_some() { "Pointsman routes less by, %" } else { "Pointsman saves" };
    let other = recommended_partition(diagnosis);
    // Of two partitions, only the savings of the requested one have intervals.
    let saves = match other {
        Some(_) => saves.replace("Pointsman", &escaped(&router_with_partition(&diagnosis.partition))),
        None => saves.to_owned(),
    };
    let mut heads = vec!["rule", &cost_head, "interval", &saves, "interval", "interval (line at zero)"];
    heads.extend(worth.limit.as_ref().map(|_| "routed"));
    let row = |(name, cost): (&str, &Estimate)| {
        let name_of_rule =
            if name == "router" { router_with_partition(&diagnosis.partition) } else { rule_label(name) };
        let mut cells = vec![escaped(&name_of_rule)];
        cells.extend(estimate_cells(Some(cost), digits, 1.0));
        cells.extend(estimate_cells(saved.get(name), saved_digits, saved_scale));
        cells.push(scale.draw(saved.get(name), "predict"));
        let routed = worth.limit.as_ref().map(|limit| limit.routed.get(name));
        cells.extend(routed.map(|routed| routed.map_or(String::new(), |routed| percent(routed.estimate))));
        (name == "router", cells)
    };
    let mut rows: Vec<_> = costs.iter().map(row).collect();
    let mut caption = CONFIDENCE_THRESHOLD.to_owned();
    if let Some((other, cost)) = other.and_then(|other| Some((other, other.cost?))) {
        let name = router_with_partition(&other.partition);
        let mut cells = vec![escaped(&name), fixed(cost, digits)];
        cells.resize(heads.len(), String::new());
        if let (Some(last), Some(routed)) = (cells.last_mut().filter(|_| worth.limit.is_some()), other.routed) {
            *last = percent(routed);
        }
        let after_own = rows.iter().position(|(own, _)| *own).map_or(0, |place| place + 1);
        rows.insert(after_own, (true, cells));
        if let Some(saves) = &other.saves {
            let [estimate, ends] = estimate_cells(Some(saves), saved_digits, saved_scale);
            let what = match target.is_some() {
                true => "routes less than the best simpler rule by, %:",
                false => "saves against the best simpler rule",
            };
            caption += &escaped(&format!(" {name}, which is recommended, {what} {estimate}, interval {ends}."));
        }
    }
    if worth.limit.is_some() {
        caption += " Each rule routes in its own order until it reaches the limit on the evaluated rows; rules that cannot keep the limit are left out.";
    }
    html_table("Costs and savings", &heads, &rows) + &format!("<p class=\"caption\">{caption}</p>")
}

fn gain_table(diagnosis: &Diagnosis, worth: &Worth) -> String {
    let own = router_with_partition(&diagnosis.partition);
    let intervals = || worth.gain_interval.iter().filter_map(|(_, interval)| interval.as_ref());
    let scale = Scale::new(intervals().chain(&worth.gain_over_total_uncertainty));
    let row = |(name, &gain): (&str, &Option<f64>)| {
        let interval = worth.gain_interval.get(name).and_then(Option::as_ref);
        let [_, ends] = estimate_cells(interval, 3, 1.0);
        let name_of_ranking = if name == "higher-order" { own.clone() } else { ranking_label(name) };
        let cells = vec![escaped(&name_of_ranking), maybe(gain, 3), ends, scale.draw(interval, "predict")];
        (name == "higher-order", cells)
    };
    let mut rows: Vec<_> = worth.gain.iter().map(row).collect();
    if let Some(other) = recommended_partition(diagnosis) {
        let after_own = rows.iter().position(|(own, _)| *own).map_or(0, |place| place + 1);
        let cells =
            vec![escaped(&router_with_partition(&other.partition)), maybe(other.gain, 3), String::new(), String::new()];
        rows.insert(after_own, (true, cells));
    }
    if let Some(more) = &worth.gain_over_total_uncertainty {
        let [more_by, ends] = estimate_cells(Some(more), 3, 1.0);
        let name = escaped(&format!("{own} less {}", ranking_label("total-uncertainty")));
        rows.push((false, vec![name, more_by, ends, scale.draw(Some(more), "vermilion")]));
    }
    "<h3>Routing gain: 0 is routing at random, 1 the best possible order</h3>".to_owned()
        + &html_table("Routing gains", &["ranking", "gain", "interval", "interval (line at zero)"], &rows)
}
