//! What a router rests on: labels per row and rows per cell.

use std::io::{self, Write};

use pointsman::partition::{Factor, SPARSE_BELOW_ROWS};
use pointsman::{CellId, Router, Support, Table};

use crate::render::number::{count, counted};
use crate::render::style::DIM;
use crate::render::{self, entry};

/// Counts of a router's labels and cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouterStats {
    /// Fewest, median and most labels per row.
    pub(crate) labels: [u64; 3],
    pub(crate) cells: usize,
    pub(crate) sparse: usize,
    pub(crate) empty: usize,
}

impl RouterStats {
    pub(crate) fn new(router: &Router) -> Self {
        let cells = router.cells().count();
        let with = |wanted: Support| {
            (0..cells as u32).filter(|&cell| router.mixture(CellId(cell)).support() == wanted).count()
        };
        let labels = labels_per_row(router.rows());
        Self { labels, cells, sparse: with(Support::Sparse), empty: with(Support::Empty) }
    }

    fn labels_in_words(&self) -> String {
        match self.labels {
            [min, _, max] if min == max => counted(min as usize, "label per row", "labels per row"),
            [min, median, max] => format!("{min} to {max} labels per row, median {median}"),
        }
    }

    fn cells_in_words(&self) -> String {
        let cells = counted(self.cells, "cell", "cells");
        match (self.sparse, self.empty) {
            (0, 0) => format!("{cells}, each with at least {SPARSE_BELOW_ROWS} rows"),
            (sparse, empty) => {
                format!("{cells}: {} sparse (under {SPARSE_BELOW_ROWS} rows), {} empty", count(sparse), count(empty))
            }
        }
    }

    /// Describes the router in a few lines.
    pub(crate) fn describe(&self, out: &mut impl Write, router: &Router) -> io::Result<()> {
        const MAX_LISTED: usize = 12;
        let mut line = |name: &str, text: String| describe_line(&mut *out, name, &text);
        let classes = router.classes();
        let shown = classes.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if classes.len() > MAX_LISTED { ", …" } else { "" };
        line("classes", format!("{} ({shown}{more})", count(classes.len())))?;
        line("labels", self.labels_in_words())?;
        line("partition", router.partition().to_string())?;
        let own = if is_forest(router) { "; costs are each query's own, not its cell's" } else { "" };
        line("cells", self.cells_in_words() + own)?;
        let served =
            if router.is_recalibrated() { "each cell's mean label distribution" } else { "the weak prediction" };
        line("serves", served.to_owned())
    }
}

/// A property of a router and its value.
pub(crate) fn describe_line(out: impl Write, name: &str, text: &str) -> io::Result<()> {
    const TEXT_COLUMN: usize = 13;
    entry(out, TEXT_COLUMN, &format!("{DIM}{name}{DIM:#}"), &render::printable(text))
}

/// Fewest, median and most labels per row; zeros if there are none.
pub(crate) fn labels_per_row(table: &Table) -> [u64; 3] {
    let mut k: Vec<u64> = (0..table.rows()).filter_map(|row| table.votes(row)).map(pointsman::Votes::k).collect();
    k.sort_unstable();
    match k.len() {
        0 => [0; 3],
        n => [k[0], k[n / 2], k[n - 1]],
    }
}

/// Whether every query has its own costs instead of its cell's.
pub(crate) fn is_forest(router: &Router) -> bool {
    matches!(router.partition().factors(), [Factor::Forest { .. }])
}
