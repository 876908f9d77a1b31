//! Whether labels, rows and cells are enough, and labels independent, for the terminal.

use std::io::{self, Write};

use pointsman::Diagnosis;
use pointsman::diagnose::Annotator;
use pointsman_report::{annotators_answer, kind_of_cells, sparse_cells};

use super::between;
use crate::render::number::{count, counted, decimals, fixed, maybe, percent};
use crate::render::style::{BOLD, DIM, PLAIN, WARN};
use crate::render::table::Grid;
use crate::render::{entry, heading, paragraph};

/// The largest number of rows in a list.
const MAX_LISTED: usize = 10;

/// The largest number of annotators in a list.
const MAX_ANNOTATORS: usize = 20;

/// Prints the numbers of labels, cells and rows, and compares partitions.
pub(super) fn print_counts(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(&mut *out, "Are labels, rows and cells enough?")?;
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
    let partition = diagnosis.chosen.as_ref().unwrap_or(&diagnosis.partition);
    let kind = kind_of_cells(partition);
    let cells = format!("{} of {partition}{kind}{}", counted(enough.cells, "cell", "cells"), sparse_cells(enough));
    let rows = enough
        .stability
        .map(|share| ("rows", format!("routers of two halves take the same action on {} of the rows", percent(share))));
    for (name, text) in [("labels", labels), ("cells", cells)].into_iter().chain(rows) {
        entry(&mut *out, 9, &format!("{DIM}{name}{DIM:#}"), &text)?;
    }
    if enough.partitions.len() < 2 {
        return Ok(());
    }
    writeln!(out)?;
    print_partitions(out, diagnosis)
}

fn print_partitions(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let enough = &diagnosis.enough;
    let prices = enough.partitions.iter().any(|partition| partition.cost.is_some());
    let targeted = prices && diagnosis.task.target_loss.is_some();
    let (better, value_head) = match (targeted, prices) {
        (true, _) => ("routes less than", "routed"),
        (false, true) => ("saves over", "cost"),
        (false, false) => ("gains over", ""),
    };
    let cost_digits = decimals(enough.partitions.iter().filter_map(|partition| partition.cost));
    let digits = if prices && !targeted { cost_digits } else { 3 };
    let mut grid = Grid::new().text("partition").number("gain").number(value_head);
    grid = grid.number(format!("{better} the first")).number("95 %");
    for (place, partition) in enough.partitions.iter().enumerate() {
        let by = partition.better_by;
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
    for (reason, why) in [
        ("constant", "the same or missing in every row"),
        ("gaps", "values are missing, which bins cannot place; trees and forests can"),
        ("many", "only the first few features are tried"),
    ] {
        let features = enough.features_left_out.iter().filter(|left| left.reason == reason);
        let names = features.map(|left| format!("x_{}", left.feature)).collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            paragraph(&mut *out, 2, &format!("{DIM}Bins not tried: {names} ({why}).{DIM:#}"))?;
        }
    }
    Ok(())
}

/// Prints whether labels are independent, as far as annotators or counts show.
pub(super) fn print_independence(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(&mut *out, "Are the labels independent?")?;
    if diagnosis.annotators.is_empty() {
        print_sensitivity(out, diagnosis)?;
    } else {
        print_annotators(out, diagnosis)?;
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

/// Prints what copied labels would change, which counts without names of annotators cannot rule out.
fn print_sensitivity(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let found = &diagnosis.agreement;
    if found.rows == 0 {
        return paragraph(out, 2, "With one label per item there is nothing to compare.");
    }
    if let Some(copies) = found.copies {
        return paragraph(
            out,
            2,
            &format!("No: all counts are multiples of {copies}, so each label was counted {copies} times."),
        );
    }
    let mut text = format!(
        "Counts cannot show it: a copied label looks like an item on which everybody agrees, and {} of {} are unanimous.",
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
            n => {
                let own = diagnosis.chosen.as_ref().unwrap_or(&diagnosis.partition);
                let why = match *own == sensitivity.partition {
                    true => String::new(),
                    false => format!(
                        ", whose cells this check takes because those of {} are learned from the labels in question,",
                        diagnosis.partition
                    ),
                };
                format!(
                    ", and the action of {} of the partition {}{why} would change:",
                    counted(n, "cell", "cells"),
                    sensitivity.partition
                )
            }
        };
    }
    paragraph(&mut *out, 2, &text)?;
    if let Some(sensitivity) = found.sensitivity.as_ref().filter(|sensitivity| !sensitivity.cells.is_empty()) {
        let mut grid = Grid::new().text("cell").text("action").text("if copied");
        for cell in sensitivity.cells.iter().take(MAX_LISTED) {
            let cells = [&cell.cell, &cell.action, &cell.action_if_copied];
            grid.row(cells.map(|text| (text.clone(), PLAIN)));
        }
        grid.write(&mut *out)?;
        note_more(&mut *out, sensitivity.cells.len(), MAX_LISTED)?;
    }
    let remark = "Annotators can be tested where they are named: give --annotations a file with a column annotator beside id and label, \
                  its rows in the order of labelling.";
    paragraph(out, 2, &format!("{DIM}{remark}{DIM:#}"))
}

/// Prints the annotators: those with flags first, then by their deviation.
fn print_annotators(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let all = &diagnosis.annotators;
    let flagged = all.iter().filter(|one| !one.flags.is_empty()).count();
    let means = " Means over the items, near zero for independent labels:";
    paragraph(&mut *out, 2, &(annotators_answer(diagnosis) + means))?;
    let mut sorted: Vec<&Annotator> = all.iter().collect();
    // All of them stay in alphabetical order, unless the list ends before the last.
    if all.len() > MAX_ANNOTATORS {
        sorted.sort_by(|a, b| b.deviation().total_cmp(&a.deviation()));
    }
    sorted.sort_by_key(|one| one.flags.is_empty());
    let mut grid = Grid::new().text("annotator").numbers(["labels", "agreement", "± s.e.", "follows", "model"]);
    grid = grid.text(if flagged > 0 { "what chance does not explain" } else { "" });
    for one in sorted.into_iter().take(MAX_ANNOTATORS) {
        grid.row([
            (one.annotator.clone(), if one.flags.is_empty() { PLAIN } else { BOLD }),
            (count(one.votes), PLAIN),
            (maybe(one.agreement, 3), PLAIN),
            (maybe(one.agreement_standard_error, 3), DIM),
            (maybe(one.follows, 3), PLAIN),
            (maybe(one.model, 3), PLAIN),
            (one.flags_in_words(), WARN),
        ]);
    }
    grid.write(&mut *out)?;
    note_more(out, all.len(), MAX_ANNOTATORS)
}

/// Prints how many are not listed.
fn note_more(out: &mut impl Write, all: usize, listed: usize) -> io::Result<()> {
    if all <= listed {
        return Ok(());
    }
    paragraph(out, 2, &format!("{DIM}and {} more, in --json{DIM:#}", count(all - listed)))
}
