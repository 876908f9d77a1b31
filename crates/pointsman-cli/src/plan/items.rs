//! The items of a table to label.

use std::collections::HashMap;
use std::path::Path;

use anyhow::bail;
use pointsman::certify::{ItemToLabel, Offer, Plan, price_of_labels, saving_over};
use pointsman::{CellId, Router};
use pointsman_table::{Column, ColumnKind, Frame, TableWriter};

use super::buying::Buying;
use super::candidates::Candidates;
use super::way::Way;
use crate::args::PlanArgs;
use crate::flags::shell_quoted_text;
use crate::render::number::{count, counted};
use crate::render::warn_all;
use crate::{errors, words};

/// The items of a table to label.
#[derive(Debug)]
pub(super) struct ListedItems {
    pub(super) items: usize,
    pub(super) labels: usize,
    /// Whether the table has votes, so that its items get more labels.
    pub(super) have_votes: bool,
    /// The items to choose from.
    pub(super) candidates: usize,
    /// Items that have labels elsewhere, and are left off.
    pub(super) labelled: usize,
    /// Rows with votes that are not the router's: labels on them would not show in its cells.
    pub(super) not_of_router: usize,
    /// The router's rows that a table with votes does not have.
    pub(super) rows_elsewhere: usize,
    /// New items that the plan needs and the table does not have.
    pub(super) missing: usize,
    /// The size of a pool in which the new items are likely to be found, if there are any.
    pub(super) pool: Option<f64>,
    /// The cells that the plan recommends such labels for, but of which the table has no items that it can use.
    pub(super) cells_without_items: Vec<CellId>,
    /// The items that the plan recommends more labels for and the table does not have, by cell.
    pub(super) in_other_tables: Vec<(CellId, usize)>,
    /// The cells for which the plan recommends labels of the other kind: on new items, or on those that the router has.
    pub(super) cells_of_other_way: Vec<CellId>,
    /// The number of those labels.
    pub(super) labels_of_other_way: usize,
    /// The number of annotators, if they are named.
    pub(super) annotators: Option<usize>,
    /// The expected saving per thousand queries.
    pub(super) worth: f64,
    /// Its standard error.
    pub(super) worth_error: f64,
    /// The number of items and of labels of each cell, in the order of the list.
    pub(super) cells: Vec<ListedCell>,
    /// The flags that calibrate with the router's partition again.
    pub(super) partition: String,
    /// Whether items that are not among the router's rows shaped its cells.
    pub(super) has_shaped_cells: bool,
    /// The router's rows that were added later.
    pub(super) added_rows: usize,
}

impl ListedItems {
    /// The price of their labels, if that of one label is known.
    pub(super) fn cost(&self, args: &PlanArgs) -> Option<f64> {
        args.label_price.map(|price| price_of_labels(self.labels, price))
    }

    /// The expected saving over the traffic and its standard error, if the traffic is known.
    pub(super) fn saving(&self, args: &PlanArgs) -> Option<[f64; 2]> {
        args.traffic.map(|traffic| [self.worth, self.worth_error].map(|worth| saving_over(worth, traffic)))
    }
}

/// The items listed of one cell.
#[derive(Debug)]
pub(super) struct ListedCell {
    pub(super) cell: CellId,
    pub(super) items: usize,
    /// The fewest and most labels of one item.
    pub(super) labels: [usize; 2],
}

impl ListedCell {
    /// The items of each cell, in the order of the list.
    fn all(listed: &[ItemToLabel]) -> Vec<Self> {
        let mut cells: Vec<Self> = Vec::new();
        for item in listed {
            match cells.iter_mut().find(|of| of.cell == item.cell) {
                Some(Self { items, labels: [fewest, most], .. }) => {
                    *items += 1;
                    (*fewest, *most) = (item.labels.min(*fewest), item.labels.max(*most));
                }
                None => cells.push(Self { cell: item.cell, items: 1, labels: [item.labels; 2] }),
            }
        }
        cells
    }
}

/// Finds the items to label, and writes them to `-o`.
pub(super) fn list(
    args: &PlanArgs,
    router: &Router,
    found: &Plan,
    candidates: &Candidates,
    buying: Buying<'_>,
) -> anyhow::Result<ListedItems> {
    let Candidates { frame, have_votes, .. } = candidates;
    let have_votes = *have_votes;
    let mut new_in_table = HashMap::new();
    for cell in router.find_cells(&frame.table).map_err(|error| errors::in_rows(error, frame))? {
        *new_in_table.entry(cell).or_default() += 1;
    }
    let recommended = buying.recommended(found);
    let offers = buying.list(found, &recommended, (!have_votes).then_some(&new_in_table));
    let is_of_other_way = |offer: &&Offer| offer.more_labels.is_some() != have_votes;
    let (of_other_way, of_this_way): (Vec<&Offer>, Vec<&Offer>) = recommended.iter().partition(is_of_other_way);
    let items = found.items_of(router, &frame.table, &offers).map_err(|error| errors::in_rows(error, frame))?;
    let is_listed = |offer: &&&Offer| items.iter().any(|item| item.cell == offer.cell);
    let cells_without_items = of_this_way.iter().filter(|offer| !is_listed(offer)).map(|offer| offer.cell).collect();
    // A largest number of labels moves offers to cells in which the table has items; the plan needs those that it recommends.
    let missing = if have_votes { 0 } else { found.items_missing(&items, &recommended) };
    let in_other_tables = of_this_way.iter().filter_map(|offer| {
        let listed = items.iter().filter(|item| item.cell == offer.cell).count();
        let missing = Way::new(offer, found, router).present_items()?.saturating_sub(listed);
        (missing > 0).then_some((offer.cell, missing))
    });
    let in_other_tables = in_other_tables.collect();
    warn_all(too_few_annotators(frame, &items));
    if let Some(output) = &args.output {
        let path = args.items.as_deref().unwrap_or(Path::new(""));
        write(output, path, frame, &items)?;
    }
    let served = if router.is_recalibrated() { " --recalibrate" } else { "" };
    Ok(ListedItems {
        items: items.len(),
        labels: items.iter().map(|item| item.labels).sum(),
        have_votes,
        candidates: frame.table.rows(),
        labelled: candidates.labelled,
        not_of_router: candidates.not_of_router,
        rows_elsewhere: candidates.rows_elsewhere,
        cells_without_items,
        in_other_tables,
        cells_of_other_way: of_other_way.iter().map(|offer| offer.cell).collect(),
        labels_of_other_way: of_other_way.iter().map(|offer| offer.labels).sum(),
        annotators: candidates.annotators,
        missing,
        pool: found.pool_for(&recommended),
        worth: found.worth_of_listed(&items),
        worth_error: found.error_of_listed(&items, &offers),
        cells: ListedCell::all(&items),
        partition: format!(" --partition {}{served}", shell_quoted_text(&router.partition().to_string())),
        has_shaped_cells: words::table::learned_from_other_items(router),
        added_rows: router.added_rows(),
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
        Column::Real(items.iter().map(|item| rounded(item.worth)).collect()),
    ])?;
    Ok(writer.finish()?)
}

/// A worth with six significant digits: it is a forecast.
fn rounded(worth: f64) -> f64 {
    format!("{worth:.5e}").parse().unwrap_or(worth)
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
