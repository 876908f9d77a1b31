//! The diagnosis for humans.

use std::io::{self, Write};
use std::path::Path;

use pointsman::diagnose::{Advice, Compared, Estimate, Worth};
use pointsman::evaluate::rule_name;
use pointsman::partition::SPARSE_BELOW_ROWS;
use pointsman::{Diagnosis, Task};
use pointsman_report::{DiagnosisReport, flags_in_words, replace_flags};

use crate::args::DiagnoseArgs;
use crate::plan::{self, shell_quoted};
use crate::render::number::{count, counted, decimals, fixed, maybe, percent};
use crate::render::style::{BAD, BOLD, DIM, GOOD, PLAIN, WARN};
use crate::render::table::Grid;
use crate::render::wrap::hanging;
use crate::render::{self, entry, next_step, paragraph};

/// Rows of a list that may be long.
const MOST_LISTED: usize = 10;

pub(super) fn print(args: &DiagnoseArgs, task: &Task, report: &DiagnosisReport, page: Option<&Path>) -> io::Result<()> {
    let diagnosis = &report.diagnosis;
    let mut out = io::BufWriter::new(render::stdout());
    let rows = counted(diagnosis.rows, "row", "rows");
    let sampled = match diagnosis.rows_used {
        used if used < diagnosis.rows => format!(", of which {} were used", count(used)),
        _ => String::new(),
    };
    let (table, splits) = (shell_quoted(&args.table), diagnosis.splits);
    let title = format!("{BOLD}{table}{BOLD:#}: {rows}{sampled}; halved {splits} times, each half judged by the other");
    paragraph(&mut out, 0, &title)?;
    if let Some(chosen) = &diagnosis.chosen {
        let text = format!("{} chooses {chosen} on all of them, and anew in each half", diagnosis.partition);
        paragraph(&mut out, 0, &format!("{DIM}{text}{DIM:#}"))?;
    }
    writeln!(out)?;
    let style = match diagnosis.verdict.advice {
        Advice::UseIt => GOOD.bold(),
        Advice::OneLabel | Advice::MoreData => WARN,
        Advice::MendLabels => BAD,
        _ => BOLD,
    };
    let sentence = replace_flags(diagnosis, &diagnosis.verdict.sentence);
    paragraph(&mut out, 0, &format!("{style}{sentence}{style:#}"))?;
    for remark in &diagnosis.verdict.remarks {
        hanging(&mut out, 2, 4, &format!("• {}", replace_flags(diagnosis, remark)))?;
    }
    plan::print_perfect_oracles(&mut out, task)?;
    worth(&mut out, diagnosis)?;
    weak_model(&mut out, diagnosis)?;
    enough(&mut out, diagnosis)?;
    independence(&mut out, diagnosis)?;
    if let Some(next) = &report.next_step {
        next_step(&mut out, &next.remark, &next.commands)?;
    }
    if let Some(page) = page {
        let folder = shell_quoted(page.parent().unwrap_or(Path::new(".")));
        let text = format!(
            "Written into {folder}: diagnosis.json and its page; report.html is the report of one half judged on the other. Open it:"
        );
        writeln!(out)?;
        paragraph(&mut out, 0, &text)?;
        writeln!(out, "  {BOLD}{}{BOLD:#}", shell_quoted(page))?;
    }
    out.flush()
}

fn heading(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out)?;
    paragraph(out, 0, &format!("{BOLD}{text}{BOLD:#}"))
}

fn between(interval: &Estimate, digits: usize) -> String {
    format!("{} to {}", fixed(interval.low, digits), fixed(interval.high, digits))
}

fn worth(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "Is decomposition worth it here?")?;
    let unit = diagnosis.unit;
    let Some(worth) = &diagnosis.worth else {
        let Some(bounds) = &diagnosis.bounds else { return Ok(()) };
        let [low, high] = bounds.reducible;
        let digits = decimals([low, high]);
        let (low, high) = (fixed(low, digits), fixed(high, digits));
        let mut text = format!(
            "With one label per item it cannot be known. The reducible loss lies between {low} and {high} ({unit} per query)."
        );
        if let Some(decided) = bounds.decided {
            text += &format!(" At these prices {} of the traffic is decided by such bounds.", percent(decided));
        }
        text += " A second label on some items would identify the Brier split exactly and cross-entropy to ±0.04 nats (binary).";
        return paragraph(out, 2, &text);
    };
    if let (Some(costs), Some(savings)) = (&worth.costs, &worth.savings) {
        let digits = decimals(costs.iter().map(|(_, cost)| cost.estimate));
        let limit = worth.limit.as_ref();
        let money = |value: &Estimate| [fixed(value.estimate, digits), between(value, digits)];
        let share = |value: &Estimate| {
            let [low, high] = [value.low, value.high].map(|x| fixed(100.0 * x, 1));
            [percent(value.estimate), format!("{low} to {high}")]
        };
        // A target loss is about how much is routed, and only then about what that costs.
        let target = limit.filter(|_| diagnosis.task.target_loss.is_some());
        let mut grid = Grid::new().text("");
        grid = match target {
            Some(_) => {
                grid.numbers(["routed", "95 %", "Pointsman routes less by", "95 %"]).number(format!("cost, {unit}"))
            }
            None => grid.number(format!("cost, {unit}")).numbers(["95 %", "Pointsman saves", "95 %"]),
        };
        grid = grid.numbers(limit.filter(|_| target.is_none()).map(|_| "routed"));
        let is_advised = |other: &&Compared| {
            other.partition == diagnosis.verdict.partition && other.partition != diagnosis.partition
        };
        let advised = diagnosis.enough.partitions.iter().find(is_advised);
        for (name, cost) in costs.iter() {
            let style = if name == "router" { GOOD.bold() } else { PLAIN };
            let routed = limit.and_then(|limit| limit.routed.get(name)).map(share);
            let (main, rest, last) = match target {
                Some(target) => (routed, target.spared.get(name).map(share), Some(money(cost))),
                None => (Some(money(cost)), savings.get(name).map(money), routed),
            };
            let [[value, interval], [more, its_interval], [last, _]] =
                [main, rest, last].map(Option::unwrap_or_default);
            let rule = match name {
                "router" => format!("{} ({})", rule_name(name), diagnosis.partition),
                _ => rule_name(name),
            };
            grid.row([
                (rule, style),
                (value, style),
                (interval, DIM),
                (more, PLAIN),
                (its_interval, DIM),
                (last, PLAIN),
            ]);
            if let Some(advised) = advised.filter(|_| name == "router") {
                let cost = advised.cost.map_or("–".to_owned(), |cost| fixed(cost, digits));
                let routed = advised.routed.map_or(String::new(), percent);
                let [value, last] = if target.is_some() { [routed, cost] } else { [cost, routed] };
                let rule = format!("{} ({})", rule_name(name), advised.partition);
                let empty = || (String::new(), PLAIN);
                grid.row([(rule, GOOD.bold()), (value, GOOD.bold()), empty(), empty(), empty(), (last, PLAIN)]);
            }
        }
        grid.write(&mut *out)?;
        let remark =
            "The best confidence threshold is one on the entropy of the prediction, learned from the same rows.";
        paragraph(&mut *out, 2, &format!("{DIM}{remark}{DIM:#}"))?;
        if limit.is_some() {
            let remark = "Each rule routes in its own order until the limit is reached on the rows judged; rules that cannot keep the limit \
                          are left out.";
            paragraph(&mut *out, 2, &format!("{DIM}{remark}{DIM:#}"))?;
        }
    }
    gains(out, worth, unit)
}

fn gains(out: &mut impl Write, worth: &Worth, unit: &str) -> io::Result<()> {
    let digits = decimals([worth.loss.estimate, worth.reducible.estimate]);
    let text = format!(
        "Of a loss of {} per query {} is reducible, 95 % {}: no routing saves more than {} {unit} per thousand queries.",
        fixed(worth.loss.estimate, digits),
        fixed(worth.reducible.estimate, digits),
        between(&worth.reducible, digits),
        fixed(worth.reducible.per_thousand().high.max(0.0), 1)
    );
    paragraph(&mut *out, 2, &text)?;
    let gain = |name| maybe(worth.gain.get(name).copied().flatten(), 3);
    let mut text = format!(
        "Without prices, ranking by reducible loss gains {GOOD}{}{GOOD:#}, ranking by confidence {} (0 random, 1 the best order known)",
        gain("higher-order"),
        gain("total-uncertainty")
    );
    if let Some(more) = &worth.gain_over_total_uncertainty {
        text += &format!(": a difference of {}, 95 % {}", fixed(more.estimate, 3), between(more, 3));
    }
    text.push('.');
    if let Some(&Some(gain)) = worth.gain.get("recalibrated-uncertainty") {
        text += &format!(" Ranking by the confidence of the re-calibrated prediction would gain {}.", fixed(gain, 3));
    }
    if let Some(correlation) = worth.correlation {
        text += &format!(
            " Over cells, the correlation of reducible and total loss is {}: if it were 1, ranking by the expected loss would be enough.",
            fixed(correlation, 2)
        );
    }
    paragraph(out, 2, &text)
}

fn weak_model(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "Is the weak model calibrated?")?;
    let model = &diagnosis.weak_model;
    let answer = match (model.is_calibrated(), model.is_overconfident()) {
        (true, _) => "Yes, as far as these rows show",
        (false, true) => "No, it is overconfident",
        (false, false) => "No",
    };
    let mut text = format!(
        "{answer}: its calibration error is {}, of which chance alone explains {}; mean confidence {}, and {} of the labels are its top class.",
        fixed(model.error, 3),
        fixed(model.floor, 3),
        fixed(model.confidence, 3),
        fixed(model.accuracy, 3)
    );
    let saved = |saves: &Estimate| {
        let digits = decimals([saves.estimate, saves.low, saves.high]).min(5);
        format!("{} (95 % {})", fixed(saves.estimate, digits), between(saves, digits))
    };
    match &model.recalibrating_saves {
        [_, Some(cost)] if cost.estimate < 0.0 => {
            text += &format!(" At these prices --recalibrate would cost {} more per query.", saved(&cost.negated()));
        }
        [_, Some(cost)] => text += &format!(" At these prices --recalibrate would save {} per query.", saved(cost)),
        [Some(loss), None] if loss.estimate < 0.0 => {
            text += &format!(" --recalibrate would raise its loss by {}.", saved(&loss.negated()));
        }
        [Some(loss), None] => text += &format!(" --recalibrate would lower its loss by {}.", saved(loss)),
        [None, None] => {}
    }
    paragraph(out, 2, &text)
}

fn enough(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "Are labels, rows and cells enough?")?;
    let enough = &diagnosis.enough;
    let [fewest, median, most] = enough.labels;
    let mut labels = if fewest == most {
        counted(fewest as usize, "label per row", "labels per row")
    } else {
        format!("{fewest} to {most} labels per row, median {median}; {} have two or more", percent(enough.paired))
    };
    if let Some(shortfall) = enough.plugin_shortfall {
        let shortfall = fixed(shortfall, decimals([shortfall]).min(4));
        labels += &format!(
            "; taking their mean for the truth (plugin) would put the irreducible loss too low by {shortfall}"
        );
    }
    let mut cells = format!(
        "{} of {}",
        counted(enough.cells, "cell", "cells"),
        diagnosis.chosen.as_ref().unwrap_or(&diagnosis.partition)
    );
    if enough.sparse_cells + enough.empty_cells > 0 {
        cells += &format!(
            "; {} sparse (under {SPARSE_BELOW_ROWS} rows) with {} of the rows, {} empty",
            count(enough.sparse_cells),
            percent(enough.rows_in_sparse_cells),
            count(enough.empty_cells)
        );
    }
    let mut lines = vec![("labels", labels), ("cells", cells)];
    if let Some(stability) = enough.stability {
        lines.push((
            "rows",
            format!("routers of two halves take the same action on {} of the rows", percent(stability)),
        ));
    }
    for (name, text) in lines {
        entry(&mut *out, 9, &format!("{DIM}{name}{DIM:#}"), &text)?;
    }
    if enough.partitions.len() < 2 {
        return Ok(());
    }
    writeln!(out)?;
    let digits = decimals(enough.partitions.iter().filter_map(|partition| partition.cost));
    let prices = enough.partitions.iter().any(|partition| partition.cost.is_some());
    let targeted = prices && diagnosis.task.target_loss.is_some();
    let better = match (targeted, prices) {
        (true, _) => "routes less than",
        (false, true) => "saves over",
        (false, false) => "gains over",
    };
    let last = match (targeted, prices) {
        (true, _) => "routed",
        (false, true) => "cost",
        (false, false) => "",
    };
    let mut grid = Grid::new().text("partition").number("gain").number(last);
    grid = grid.number(format!("{better} the first")).number("95 %");
    for (place, partition) in enough.partitions.iter().enumerate() {
        let by = partition.better_by;
        let digits = if prices && !targeted { digits } else { 3 };
        let value = if targeted { partition.routed } else { partition.cost };
        grid.row([
            (partition.partition.clone(), if place == 0 { BOLD } else { PLAIN }),
            (maybe(partition.gain, 3), PLAIN),
            (value.map_or(String::new(), |value| fixed(value, digits)), PLAIN),
            (by.map_or(String::new(), |by| fixed(by.estimate, digits)), PLAIN),
            (by.map_or(String::new(), |by| between(&by, digits)), DIM),
        ]);
    }
    grid.write(&mut *out)?;
    let named = |reason: &str| {
        let features = enough.features_left_out.iter().filter(|left| left.reason == reason);
        features.map(|left| format!("x_{}", left.feature)).collect::<Vec<_>>().join(", ")
    };
    for (reason, why) in [
        ("constant", "the same or missing in every row"),
        ("gaps", "values are missing, which bins cannot place; trees and forests can"),
        ("many", "only the first few features are tried"),
    ] {
        let names = named(reason);
        if !names.is_empty() {
            paragraph(&mut *out, 2, &format!("{DIM}Bins not tried: {names} ({why}).{DIM:#}"))?;
        }
    }
    Ok(())
}

fn independence(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "Are the labels independent?")?;
    if diagnosis.annotators.is_empty() {
        sensitivity(out, diagnosis)?;
    } else {
        annotators(out, diagnosis)?;
    }
    let identical = diagnosis.agreement.identical_rows;
    if identical > 0 {
        let rows = counted(identical, "row equals", "rows equal");
        let text =
            format!("{rows} another in prediction, features and votes: copies count twice, here and in a router.");
        paragraph(&mut *out, 2, &text)?;
    }
    Ok(())
}

/// What counts without names cannot say, and what hangs on it.
fn sensitivity(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let found = &diagnosis.agreement;
    if found.rows == 0 {
        return paragraph(out, 2, "With one label per item there is nothing to compare.");
    }
    let mut text = format!(
        "Counts cannot show it: a label that was copied looks like an item on which everybody agrees, and {} of {} are unanimous.",
        count(found.unanimous),
        counted(found.rows, "row with several labels", "rows with several labels")
    );
    if let Some(sensitivity) = &found.sensitivity {
        let (own, copied) = (sensitivity.irreducible, sensitivity.irreducible_if_copied);
        let digits = decimals([own, copied]);
        text += &format!(
            " If {} of the unanimous rows were copies, the irreducible loss would be {}, not {}",
            percent(sensitivity.share),
            fixed(copied, digits),
            fixed(own, digits)
        );
        text += &match sensitivity.cells.len() {
            0 if diagnosis.task.routes.is_empty() && diagnosis.task.abstain.is_none() => ".".to_owned(),
            0 => ", and no cell's action would change.".to_owned(),
            n => format!(", and the action of {} would change:", counted(n, "cell", "cells")),
        };
    }
    paragraph(&mut *out, 2, &text)?;
    if let Some(sensitivity) = found.sensitivity.as_ref().filter(|sensitivity| !sensitivity.cells.is_empty()) {
        let mut grid = Grid::new().text("cell").text("action").text("if copied");
        for cell in sensitivity.cells.iter().take(MOST_LISTED) {
            let cells = [&cell.cell, &cell.action, &cell.action_if_copied];
            grid.row(cells.map(|text| (text.clone(), PLAIN)));
        }
        grid.write(&mut *out)?;
        note_more(&mut *out, sensitivity.cells.len())?;
    }
    let remark = "Annotators can be tested where they are named: give --annotations a file with a column annotator beside id and label, \
                  its rows in the order of labelling.";
    paragraph(out, 2, &format!("{DIM}{remark}{DIM:#}"))
}

/// Annotators beside each other, those with flags first.
fn annotators(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let all = &diagnosis.annotators;
    let flagged = all.iter().filter(|one| !one.flags.is_empty()).count();
    let text = match flagged {
        0 => format!(
            "As far as these labels show, none of {} differs from the others beyond chance.",
            counted(all.len(), "annotator", "annotators")
        ),
        _ => format!(
            "{} of {} by more than chance explains if labels are independent. Means over the items, near zero for independent labels:",
            count(flagged),
            counted(all.len(), "annotator differs", "annotators differ")
        ),
    };
    paragraph(&mut *out, 2, &text)?;
    if flagged == 0 {
        return Ok(());
    }
    let mut grid = Grid::new()
        .text("annotator")
        .numbers(["labels", "agreement", "follows", "model"])
        .text("what chance does not explain");
    for one in all.iter().filter(|one| !one.flags.is_empty()).take(MOST_LISTED) {
        grid.row([
            (one.annotator.clone(), BOLD),
            (count(one.votes), PLAIN),
            (maybe(one.agreement, 3), PLAIN),
            (maybe(one.follows, 3), PLAIN),
            (maybe(one.model, 3), PLAIN),
            (flags_in_words(one), WARN),
        ]);
    }
    grid.write(&mut *out)?;
    note_more(out, flagged)
}

/// Says how many are not listed.
fn note_more(out: &mut impl Write, all: usize) -> io::Result<()> {
    if all <= MOST_LISTED {
        return Ok(());
    }
    paragraph(out, 2, &format!("{DIM}and {} more, in --json{DIM:#}", count(all - MOST_LISTED)))
}
