//! The items to label, for the terminal.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pointsman::CellId;

use super::human::{OTHER_LIMIT_PER_ITEM, distinction_in_words, pool_in_words, saving_in_words, unpriced_in_words};
use super::items::{ListedCell, ListedItems};
use super::phrases::{cells_in_words, cost_in_words};
use crate::args::{PlanArgs, VotesArgs};
use crate::flags::{self, shell_quoted};
use crate::render::number::{count, counted};
use crate::render::{next_step, paragraph};

/// The labels of the first new items.
const NEW_LABELS: &str = "new-labels.csv";

/// Prints how many items are to be labelled, and what to do with the labels.
pub(super) fn print(out: &mut impl Write, listed: &ListedItems, args: &PlanArgs, unit: &str) -> io::Result<()> {
    writeln!(out)?;
    paragraph(&mut *out, 2, &in_words(listed, args, unit))?;
    if listed.items == 0 {
        return Ok(());
    }
    match listed.have_votes {
        true => print_calibrating_again(out, listed, args),
        false => print_adding(out, listed, args),
    }
}

/// Prints how to calibrate with more labels on the router's items.
fn print_calibrating_again(out: &mut impl Write, listed: &ListedItems, args: &PlanArgs) -> io::Result<()> {
    let is_whole = listed.rows_elsewhere == listed.added_rows;
    if !is_whole && listed.rows_elsewhere > 0 {
        let how = match listed.added_rows {
            0 => "calibrate again with all labels of all items",
            _ => {
                "calibrate again with all labels of the original items, then add those that were added later to that router"
            }
        };
        let text = format!(
            "When they have their labels, {how}: {} of the router {} not in this table, and calibrating on it alone would lose {}.",
            counted(listed.rows_elsewhere, "row", "rows"),
            if listed.rows_elsewhere == 1 { "is" } else { "are" },
            if listed.rows_elsewhere == 1 { "it" } else { "them" }
        );
        return paragraph(out, 2, &text);
    }
    let table = match &args.items {
        Some(table) if is_whole => shell_quoted(table),
        _ => "calibration.csv".to_owned(),
    };
    let kept = VotesArgs { first_labels: None, ..args.votes.clone() };
    let reading = flags::reading(&args.reading, Some(&kept));
    let [first, last] = routers_with_more_labels(listed, args);
    let mut commands = vec![format!("pointsman calibrate {table}{reading}{} -o {first}", listed.partition)];
    let when = match &args.votes.annotations {
        Some(file) => format!("When they have their labels, append these to {}", shell_quoted(file)),
        None => format!("When the new labels are counted in {table} too,"),
    };
    let and = if args.votes.annotations.is_some() { " and" } else { "" };
    let mut remark = match listed.added_rows {
        0 => format!("{when}{and} calibrate again with all labels:"),
        added => {
            let earlier = flags_of_labels(args, NEW_LABELS);
            commands.push(format!("pointsman calibrate pool.csv{earlier} --add-to {first} -o {last}"));
            let are = counted(added, "row that was added later was", "rows that were added later were");
            format!(
                "{when}{and} calibrate again on the original items, all of them and no others, with all their labels: the {are} chosen cell by \
                 cell, and would count as traffic. Then add the new items again:"
            )
        }
    };
    if has_other_list(listed, args) {
        remark.pop();
        remark +=
            &format!(". The new items of the other list are added afterwards, to {last}, so that no labels are lost:");
    }
    next_step(out, &remark, &commands)
}

/// Prints how to add new items to the router's.
fn print_adding(out: &mut impl Write, listed: &ListedItems, args: &PlanArgs) -> io::Result<()> {
    let table = args.items.as_deref().map(shell_quoted).unwrap_or_default();
    let file = next_labels(listed, args);
    let reading = flags_of_labels(args, &file);
    let (own, output) = (shell_quoted(&args.router), router_after(&args.router.display().to_string()));
    let command = format!("pointsman calibrate {table}{reading} --add-to {own} -o {output}");
    let also = match has_other_list(listed, args) {
        true => {
            let [_, router] = routers_with_more_labels(listed, args);
            format!(
                " If you also buy labels on items that the router has, use those first: the command below their list writes {router}. Then add \
                 these items to that one, with --add-to {router} -o {}.",
                router_after(&router)
            )
        }
        false => String::new(),
    };
    // Without annotations no such flags could be given to the plan.
    let flags = match &args.votes.annotations {
        Some(_) => "",
        None => {
            " If earlier labels were read with flags such as --without NAME or --ignore-label LABEL, add these flags."
        }
    };
    let remark = format!(
        "When the items are labelled, write the new labels, without earlier ones, to {file}. Then add the items to the router.{flags}{also}"
    );
    next_step(out, &remark, &[command])
}

/// Whether labels of the other kind are bought too, which have a list of their own.
fn has_other_list(listed: &ListedItems, args: &PlanArgs) -> bool {
    args.only.is_none() && !listed.cells_of_other_way.is_empty()
}

/// The routers that get more labels on present items: first without the rows that were added later, then with them; the same if no rows
/// were added.
fn routers_with_more_labels(listed: &ListedItems, args: &PlanArgs) -> [String; 2] {
    let first = router_after(&args.router.display().to_string());
    let last = if listed.added_rows > 0 { router_after(&first) } else { first.clone() };
    [first, last]
}

/// The name of the router of the next round.
fn router_after(router: &str) -> String {
    next_name("more", Some(Path::new(router))) + ".safetensors"
}

/// The file of the labels of this round. Those of new items that were added earlier are in [`NEW_LABELS`].
fn next_labels(listed: &ListedItems, args: &PlanArgs) -> String {
    let name = |present: &Path| next_name("new-labels", Some(present)) + ".csv";
    let first = name(args.votes.annotations.as_deref().unwrap_or(Path::new("")));
    if first == NEW_LABELS && listed.added_rows > 0 { name(Path::new(NEW_LABELS)) } else { first }
}

/// The flags with which new items and a file of their labels are read.
fn flags_of_labels(args: &PlanArgs, file: &str) -> String {
    // Joining the table with the labels leaves out items that nobody labelled, which --strict would refuse.
    let labels = VotesArgs {
        annotations: Some(PathBuf::from(file)),
        strict: false,
        first_labels: None,
        min_labels: None,
        without: args.votes.without.clone(),
        ignored_labels: args.votes.ignored_labels.clone(),
        keep_label: args.votes.keep_label,
    };
    flags::reading(&args.reading, Some(&labels))
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
    let mut cells: Vec<&ListedCell> = listed.cells.iter().collect();
    cells.sort_by_key(|of| of.cell);
    let mut text = match listed.items {
        0 => format!("No items to label{}.", reason_for_none(listed, args)),
        items => format!(
            "{} of the table to label, {} in all{place}: {}.",
            counted(items, "item", "items"),
            counted(listed.labels, "label", "labels"),
            cells.iter().map(|of| cell_in_words(of, listed.have_votes)).collect::<Vec<_>>().join("; ")
        ),
    };
    if listed.missing > 0 {
        text += &format!(
            " The plan needs {} more than the table has.{}",
            counted(listed.missing, "item", "items"),
            pool_in_words(listed.pool)
        );
    }
    if listed.items > 0 && !listed.in_other_tables.is_empty() {
        let of_cell = |(cell, items): &(CellId, usize)| format!("{} of cell {cell}", counted(*items, "item", "items"));
        let items = listed.in_other_tables.iter().map(of_cell).collect::<Vec<_>>().join(", ");
        text += &format!(" The plan asks for more labels also on items that this table does not have: {items}.");
    }
    text += &cost_and_saving(listed, args, unit);
    if listed.items > 0 {
        if !listed.cells_without_items.is_empty() {
            let cells = cells_in_words(&listed.cells_without_items);
            text += &format!(" None are listed for {cells}: the table has no items there that the plan can use.");
        }
        text += &other_way_in_words(listed, args);
        // A pool of new items alone has none, but for a few whose predictions are those of calibration rows by chance.
        let has_known_items = 100 * listed.labelled > listed.candidates;
        if listed.has_shaped_cells && has_known_items && !listed.have_votes && args.votes.annotations.is_none() {
            text += " Items that shaped the cells cannot be recognised: add --annotations with all labels so far.";
        }
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
        false => ("on items that the router has", "the calibration table with its labels, without new items"),
    };
    // Another limit would give the other list another part.
    let annotators = listed.annotators.filter(|_| args.max_labels_per_item.is_none());
    let same = annotators.map_or(String::new(), |most| format!(", and --max-labels-per-item {most} as here"));
    let unknown = listed.annotators.is_none() && args.max_labels_per_item.is_none();
    let both = if unknown { OTHER_LIMIT_PER_ITEM } else { "" };
    let limit = if args.max_labels.is_some() || args.spend.is_some() { " within the limit" } else { "" };
    format!(
        " For {cells} the plan asks for {labels} {way}, which are not in this list: list them with --items and {table}{same}. The two lists are \
         one purchase{limit}{both}. To buy labels of this kind only, add --only {}.",
        only_this_kind(listed)
    )
}

/// How a plan calls the labels that it names: without prices or a limit nobody can recommend them.
fn asked_in_words(args: &PlanArgs) -> &'static str {
    let is_priced = args.label_price.is_some() && args.traffic.is_some();
    if is_priced || args.max_labels.is_some() || args.spend.is_some() { "recommended" } else { "asked for" }
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
    let (is_priced, asked) = (args.label_price.is_some() && args.traffic.is_some(), asked_in_words(args));
    if listed.cells_without_items.is_empty() && !listed.cells_of_other_way.is_empty() {
        let cells = cells_in_words(&listed.cells_of_other_way);
        let only = only_this_kind(listed);
        return match listed.have_votes {
            true => format!(
                ": for {cells} new items are {asked}, not more labels on items that the router has; give --items a table without votes, \
                 or add --only {only}"
            ),
            false => format!(
                ": for {cells} more labels on items that the router has are {asked}, not new items; give --items the calibration table \
                 with its labels, without new items, or add --only {only}"
            ),
        };
    }
    if listed.have_votes {
        let are = if is_priced { "worth their price" } else { asked };
        return format!(": more labels on items that have some are not {are}");
    }
    if listed.candidates == 0 && listed.labelled > 0 {
        return ": all items of the table have labels already; give --items a table of others".to_owned();
    }
    match (listed.cells_without_items.as_slice(), is_priced) {
        ([], true) => ": no labels are worth their price".to_owned(),
        ([], false) => format!(": none are {asked}"),
        (cells, _) => {
            let there = if cells.len() == 1 { "there" } else { "in any of them" };
            format!(
                ": new items are {asked} for {}, but the table has no items {there}; give --items a larger table of new items",
                cells_in_words(cells)
            )
        }
    }
}

/// The price of the labels listed and what they are expected to save: over the traffic if it is known.
fn cost_and_saving(listed: &ListedItems, args: &PlanArgs, unit: &str) -> String {
    let cost = Some(cost_in_words(listed.labels, args, unit)).filter(|cost| listed.items > 0 && !cost.is_empty());
    let worth = Some([listed.worth, listed.worth_error]).filter(|[worth, _]| *worth > 0.0);
    match (cost, worth, args.traffic.zip(listed.saving(args))) {
        (Some(cost), Some(_), Some((traffic, [saving, error]))) => format!(
            " Those listed{cost} and are expected to save {} {unit} over {} queries{}.",
            saving_in_words(saving, error),
            count(traffic as usize),
            distinction_in_words(saving, error, listed.cost(args).unwrap_or(0.0))
        ),
        (cost, Some([worth, error]), _) => {
            let cost = cost.map_or(String::new(), |cost| format!("{cost} and"));
            format!(
                " Those listed{cost} are expected to save {} {unit} per thousand queries, the sum of their column worth{}.{}",
                saving_in_words(worth, error),
                distinction_in_words(worth, error, 0.0),
                unpriced_in_words(args)
            )
        }
        (Some(cost), None, _) => format!(" Those listed{cost}."),
        (None, None, _) => String::new(),
    }
}
