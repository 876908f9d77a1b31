//! The items of a table to label.

use std::path::Path;

use anyhow::bail;
use pointsman::certify::{ItemToLabel, Offer, Plan};
use pointsman::{CellId, Router, Table};
use pointsman_table::{Column, ColumnKind, Frame, Need, TableWriter};

use super::purchase;
use crate::args::PlanArgs;
use crate::flags::shell_quoted_text;
use crate::render::number::{count, counted};
use crate::render::warn_all;
use crate::{errors, input, words};

/// The items of a table to label.
#[derive(Debug)]
pub(super) struct ListedItems {
    pub(super) items: usize,
    pub(super) labels: usize,
    /// Whether the table has votes, so that its items get more labels.
    pub(super) have_votes: bool,
    /// Rows with votes that are not the router's: labels on them would not show in its cells.
    pub(super) not_of_router: usize,
    /// New items that the plan needs and the table does not have.
    pub(super) missing: usize,
    /// The cells that the plan recommends labels for, but without an item listed.
    pub(super) cells_without_items: Vec<CellId>,
    /// The expected saving of new items per thousand queries.
    pub(super) worth: Option<f64>,
    /// The flags that calibrate with the router's partition again.
    pub(super) partition: String,
}

/// Finds the items to label, and writes them to `-o`.
pub(super) fn list(args: &PlanArgs, router: &Router, found: &Plan, path: &Path) -> anyhow::Result<ListedItems> {
    let mut options = input::read_options(&args.reading, Some(&args.votes), Need::VotesIfAny)?;
    options.classes = Some(router.classes().to_vec());
    let frame = input::read_frame(path, &options)?;
    input::check_classes(router, frame.table.classes(), path)?;
    warn_all(words::table::reading(&frame));
    let have_votes = frame.table.has_votes();
    let is_possible = |offer: &Offer| match have_votes {
        true => offer.more_labels.is_some(),
        false => offer.more_items.is_some(),
    };
    let offers = match args.label_price.zip(args.traffic) {
        Some((price, traffic)) => found.purchase_of(price, traffic, is_possible).offers,
        None => found.asked(),
    };
    let mut cells_without_items = match purchase(found, args) {
        Some(bought) => bought.cells,
        None => found.asked().into_iter().map(|offer| offer.cell).collect(),
    };
    let mut items = found.items_of(router, &frame.table, &offers).map_err(|error| errors::in_rows(error, &frame))?;
    cells_without_items.retain(|cell| !items.iter().any(|item| item.cell == *cell));
    // Whoever stops half-way has labelled the items that are worth most.
    let worth_per_label = |item: &ItemToLabel| item.worth / item.labels.max(1) as f64;
    items.sort_by(|a, b| worth_per_label(b).total_cmp(&worth_per_label(a)));
    if !have_votes {
        warn_all(labelled_items(router, &frame.table, &items));
    }
    warn_all(too_few_annotators(&frame, &items));
    if let Some(output) = &args.output {
        write(output, path, &frame, &items)?;
    }
    let served = if router.is_recalibrated() { " --recalibrate" } else { "" };
    let of_router = if have_votes { router.rows_in_common(&frame.table) } else { Vec::new() };
    Ok(ListedItems {
        items: items.len(),
        labels: items.iter().map(|item| item.labels).sum(),
        have_votes,
        not_of_router: of_router.into_iter().filter(|is_common| !is_common).count(),
        cells_without_items,
        missing: if have_votes { 0 } else { found.items_missing(&items, &offers) },
        worth: (!have_votes).then(|| found.worth_of_listed(&items)),
        partition: format!(" --partition {}{served}", shell_quoted_text(&router.partition().to_string())),
    })
}

/// Writes the items with their ids.
fn write(output: &Path, table: &Path, frame: &Frame, items: &[ItemToLabel]) -> anyhow::Result<()> {
    let Some(ids) = &frame.ids else {
        bail!("{}: has no column id: items to label are named by their ids", table.display());
    };
    let names = [
        ("id", ColumnKind::Text),
        ("cell", ColumnKind::Count),
        ("labels", ColumnKind::Count),
        ("worth", ColumnKind::Real),
    ];
    let mut writer = TableWriter::create(output, None, &names.map(|(name, kind)| (name.to_owned(), kind)))?;
    writer.write(&[
        Column::Text(items.iter().map(|item| ids[item.row].clone()).collect()),
        Column::Count(items.iter().map(|item| u64::from(item.cell.0)).collect()),
        Column::Count(items.iter().map(|item| item.labels as u64).collect()),
        Column::Real(items.iter().map(|item| item.worth).collect()),
    ])?;
    Ok(writer.finish()?)
}

/// A warning that items need more labels than there are annotators who have not labelled them, if annotators are named.
fn too_few_annotators(frame: &Frame, listed: &[ItemToLabel]) -> Option<String> {
    let annotators = frame.annotations.as_ref()?.names().len();
    let given = |row: usize| frame.table.votes(row).map_or(0, |votes| votes.k() as usize);
    let is_beyond = |item: &&ItemToLabel| item.labels > annotators.saturating_sub(given(item.row));
    let beyond = listed.iter().filter(is_beyond).count();
    let most = listed.iter().map(|item| item.labels + given(item.row)).max()?;
    (beyond > 0).then(|| {
        format!(
            "{} more labels than there are annotators left, since each annotator gives one label per item: there are {} and the plan would need {}; \
             find more annotators, or give --items a table of new items",
            counted(beyond, "item listed needs", "items listed need"),
            count(annotators),
            count(most)
        )
    })
}

/// A warning that items listed as new have the prediction of a calibration row; if predictions repeat, only if most of the table does.
fn labelled_items(router: &Router, table: &Table, listed: &[ItemToLabel]) -> Option<String> {
    let (known, of) = match router.items_seen(table) {
        Some(seen) => {
            let known = listed.iter().filter(|item| seen[item.row]).count();
            (Some(known).filter(|known| *known > 0)?, counted(listed.len(), "item listed", "items listed"))
        }
        None => {
            let known = router.items_in_common(table);
            let of = counted(table.rows(), "item", "items") + " to choose from";
            (Some(known).filter(|known| 2 * known > table.rows())?, of)
        }
    };
    Some(format!(
        "{} of the {of} have the prediction of a calibration row: these items have labels, which --annotations or columns of votes would \
         give, and more labels on them are worth less than new items",
        count(known)
    ))
}
