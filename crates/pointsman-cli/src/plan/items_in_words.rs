//! The items to label, for the terminal.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::human::{cells_in_words, distinction_in_words, saving_in_words, unpriced_in_words};
use super::items::{ListedCell, ListedItems};
use crate::args::{PlanArgs, VotesArgs};
use crate::flags::{self, shell_quoted};
use crate::render::number::{count, counted, short};
use crate::render::{next_step, paragraph};

/// Prints how many items are to be labelled, and what to do with the labels.
pub(super) fn print(out: &mut impl Write, listed: &ListedItems, args: &PlanArgs, unit: &str) -> io::Result<()> {
    writeln!(out)?;
    paragraph(&mut *out, 2, &in_words(listed, args, unit))?;
    let Some(table) = args.items.as_ref().filter(|_| listed.items > 0) else { return Ok(()) };
    let (table, output) = (shell_quoted(table), next_name("more", Some(&args.router)) + ".safetensors");
    if listed.have_votes && listed.rows_elsewhere > 0 {
        let text = format!(
            "When they have their labels, calibrate again with all labels of all items: {} of the router {} not in this table, and \
             calibrating on it alone would lose {}.",
            counted(listed.rows_elsewhere, "row", "rows"),
            if listed.rows_elsewhere == 1 { "is" } else { "are" },
            if listed.rows_elsewhere == 1 { "it" } else { "them" }
        );
        return paragraph(out, 2, &text);
    }
    if listed.have_votes {
        let kept = VotesArgs { first_labels: None, ..args.votes.clone() };
        let reading = flags::reading(&args.reading, Some(&kept));
        let command = format!("pointsman calibrate {table}{reading}{} -o {output}", listed.partition);
        let remark = match &args.votes.annotations {
            Some(file) => format!(
                "When they have their labels, append these to {} and calibrate again with all labels:",
                shell_quoted(file)
            ),
            None => format!("When the new labels are counted in {table} too, calibrate again with all labels:"),
        };
        return next_step(out, &remark, &[command]);
    }
    // Joining the table with the labels leaves out items that nobody labelled, which --strict would refuse.
    let file = next_name("new-labels", args.votes.annotations.as_deref()) + ".csv";
    let labels = VotesArgs {
        annotations: Some(PathBuf::from(&file)),
        strict: false,
        first_labels: None,
        without: args.votes.without.clone(),
        ignored_labels: args.votes.ignored_labels.clone(),
        keep_label: args.votes.keep_label,
    };
    let reading = flags::reading(&args.reading, Some(&labels));
    let router = shell_quoted(&args.router);
    let command = format!("pointsman calibrate {table}{reading} --add-to {router} -o {output}");
    let remark =
        format!("When these labels, and no earlier ones, are in {file}, add the items to those of the router:");
    next_step(out, &remark, &[command])
}

/// A name for a file that is not the name of the present one: with the stem `more`, `more` and then `more-2`, `more-3`.
fn next_name(stem: &str, present: Option<&Path>) -> String {
    let present = present.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let round = match present.strip_prefix(stem) {
        Some("") => Some(1),
        Some(rest) => rest.strip_prefix('-').and_then(|round| round.parse::<u32>().ok()),
        None => None,
    };
    round.map_or(stem.to_owned(), |round| format!("{stem}-{}", round.saturating_add(1)))
}

fn in_words(listed: &ListedItems, args: &PlanArgs, unit: &str) -> String {
    let place = args.output.as_ref().map_or(String::new(), |path| format!(", written to {}", shell_quoted(path)));
    let mut text = match listed.items {
        0 => format!("No items to label{}.", reason_for_none(listed, args)),
        items => format!(
            "{} of the table to label, {} in all{place}: {}.",
            counted(items, "item", "items"),
            counted(listed.labels, "label", "labels"),
            listed.cells.iter().map(|of| cell_in_words(of, listed.have_votes)).collect::<Vec<_>>().join("; ")
        ),
    };
    if listed.missing > 0 {
        text += &format!(" The plan needs {} more than the table has.", counted(listed.missing, "item", "items"));
    }
    text += &cost_and_saving(listed, args, unit);
    if listed.items > 0 {
        if !listed.cells_without_items.is_empty() {
            let cells = cells_in_words(&listed.cells_without_items);
            text += &format!(" None are listed for {cells}: the table has no items there that the plan can use.");
        }
        text += &other_way_in_words(listed, args);
    }
    if listed.not_of_router > 0 {
        text += &format!(
            " {} labels and {} not among those that the router estimates from: labels there would not show in its cells.",
            counted(listed.not_of_router, "other item has", "other items have"),
            if listed.not_of_router == 1 { "is" } else { "are" }
        );
    }
    text
}

/// The cells whose labels are to be bought in the other way than this table allows, and how to list them; empty if there are none.
fn other_way_in_words(listed: &ListedItems, args: &PlanArgs) -> String {
    if listed.cells_of_other_way.is_empty() {
        return String::new();
    }
    let cells = cells_in_words(&listed.cells_of_other_way);
    let labels = counted(listed.labels_of_other_way, "label", "labels");
    let (way, table) = match listed.have_votes {
        true => ("on new items", "a table without votes"),
        false => ("on items that the router has", "the calibration table with its labels"),
    };
    // Another limit would give the other list another part.
    let annotators = listed.annotators.filter(|_| args.max_labels_per_item.is_none());
    let same = annotators.map_or(String::new(), |most| format!(", and --max-labels-per-item {most} as here"));
    let limit = if args.max_labels.is_some() || args.spend.is_some() { ", within the limit" } else { "" };
    format!(
        " None are listed for {cells}: {labels} {way} are recommended there; list them with --items and {table}{same}. Both lists together are what \
         is recommended{limit}; to buy labels of this kind only, add --only {}.",
        only_this_kind(listed)
    )
}

/// The value of `--only` for labels as in this list.
fn only_this_kind(listed: &ListedItems) -> &'static str {
    if listed.have_votes { "present-items" } else { "new-items" }
}

/// The items listed of a cell, as in "cell 3: 40 items with 2 labels each".
fn cell_in_words(of: &ListedCell, have_votes: bool) -> String {
    let [fewest, most] = of.labels;
    let labels = match (fewest == most, have_votes) {
        (true, false) => counted(most, "label each", "labels each"),
        (true, true) => counted(most, "more label each", "more labels each"),
        (false, _) => format!("{} to {} more labels each", count(fewest), count(most)),
    };
    format!("cell {}: {} with {labels}", of.cell, counted(of.items, "item", "items"))
}

/// Why no items are listed.
fn reason_for_none(listed: &ListedItems, args: &PlanArgs) -> String {
    let is_priced = args.label_price.is_some() && args.traffic.is_some();
    if listed.cells_without_items.is_empty() && !listed.cells_of_other_way.is_empty() {
        let cells = cells_in_words(&listed.cells_of_other_way);
        let only = only_this_kind(listed);
        return match listed.have_votes {
            true => format!(
                ": for {cells} new items are recommended, not more labels on items that the router has; give --items a table without votes, \
                 or add --only {only}"
            ),
            false => format!(
                ": for {cells} more labels on items that the router has are recommended, not new items; give --items the calibration table \
                 with its labels, or add --only {only}"
            ),
        };
    }
    if listed.have_votes {
        let are_not = if is_priced { "not worth their price" } else { "not recommended" };
        return format!(": more labels on items that have some are {are_not}");
    }
    if listed.candidates == 0 && listed.labelled > 0 {
        return ": all items of the table have labels already; give --items a table of others".to_owned();
    }
    match (listed.cells_without_items.as_slice(), is_priced) {
        ([], true) => ": no labels are worth their price".to_owned(),
        ([], false) => ": the plan recommends none".to_owned(),
        (cells, _) => {
            let there = if cells.len() == 1 { "there" } else { "in any of them" };
            format!(
                ": new items are recommended for {}, but the table has no items {there}; give --items a larger table of new items",
                cells_in_words(cells)
            )
        }
    }
}

/// The price of the labels listed and what they are expected to save: over the traffic if it is known.
fn cost_and_saving(listed: &ListedItems, args: &PlanArgs, unit: &str) -> String {
    let cost = listed.cost(args).filter(|_| listed.items > 0).map(short);
    let worth = Some([listed.worth, listed.worth_error]).filter(|[worth, _]| *worth > 0.0);
    match (cost, worth, args.traffic.zip(listed.saving(args))) {
        (Some(cost), Some(_), Some((traffic, [saving, error]))) => format!(
            " Those listed cost {cost} and are expected to save {} over {} queries, in {unit}{}.",
            saving_in_words(saving, error),
            count(traffic as usize),
            distinction_in_words(saving, error)
        ),
        (cost, Some([worth, error]), _) => {
            let cost = cost.map_or(String::new(), |cost| format!(" cost {cost} {unit} and"));
            format!(
                " Those listed{cost} are expected to save {} {unit} per thousand queries, the sum of their column worth{}.{}",
                saving_in_words(worth, error),
                distinction_in_words(worth, error),
                unpriced_in_words(args)
            )
        }
        (Some(cost), None, _) => format!(" Those listed cost {cost}, in {unit}."),
        (None, None, _) => String::new(),
    }
}
