//! Warnings about a router and the table it was calibrated on.

use pointsman::calibrate::Served;
use pointsman::partition::{Factor, SPARSE_BELOW_ROWS};
use pointsman::{Partition, Router, Table};
use pointsman_table::Frame;

use crate::render::number::{count, counted, fixed};
use crate::stats::{RouterStats, is_forest};
use crate::words;

/// A warning per reason why a router's estimates are weak: few rows, one label per item, or cells with few rows.
pub(super) fn weak_estimates(router: &Router, stats: &RouterStats) -> Vec<String> {
    let mut sentences: Vec<String> = words::policy::few_rows(router).into_iter().collect();
    if stats.labels[2] == 1 {
        sentences.push(
            "one label per item: noise and model error cannot be separated, so route costs are only bounded and some \
             decisions stay undetermined; a second label on some items would identify the Brier split exactly and \
             cross-entropy to ±0.04 nats (binary)"
                .to_owned(),
        );
    }
    // Pooled cells are shrunk towards their neighbours, and a forest's costs do not rest on cells.
    let is_pooled = matches!(router.partition().factors(), [Factor::Pooled]);
    if stats.sparse + stats.empty > 0 && !is_forest(router) && !is_pooled {
        // The number of cells of a partition that learns is not chosen by its user.
        let learns = router.partition().factors().iter().any(Factor::learns);
        let remedy = if learns { "more rows would give better estimates there" } else { "use fewer bins or more rows" };
        let fall_back = match stats.empty {
            0 => "",
            _ => " (an empty cell falls back to the rows of the same confidence)",
        };
        sentences.push(format!(
            "{} of the {} fewer than {SPARSE_BELOW_ROWS} calibration rows: {remedy}{fall_back}",
            count(stats.sparse + stats.empty),
            if stats.sparse + stats.empty == 1 {
                format!("{} has", counted(stats.cells, "cell", "cells"))
            } else {
                format!("{} have", counted(stats.cells, "cell", "cells"))
            }
        ));
    }
    sentences
}

/// A warning that the means of cells predict worse than the classifier, by more than chance explains.
pub(super) fn worse_served(served: &Served, partition: &Partition) -> Option<String> {
    let Served { loss, own_loss, standard_error, rows, .. } = *served;
    if loss - own_loss <= 2.0 * standard_error {
        return None;
    }
    let has_top_class = partition
        .factors()
        .iter()
        .any(|factor| matches!(factor, Factor::TopClass { .. } | Factor::Pooled | Factor::LevelSets));
    let else_divide = match has_top_class {
        true => "",
        false => ", or divide by the class that it predicts: --partition top-class:10",
    };
    Some(format!(
        "--recalibrate serves a worse prediction than the classifier's own: on {} left out, the means of cells by {partition} have a Brier \
         loss of {}, its own predictions {} (standard error of the difference {}); leave --recalibrate out{else_divide}",
        counted(rows, "row", "rows"),
        fixed(loss, 4),
        fixed(own_loss, 4),
        fixed(standard_error, 4)
    ))
}

/// A warning that a table seems to hold rows from which the cells of `--like` were learned, half of which that router keeps, or those on
/// which its forest was grown, also with more labels.
pub(super) fn rows_of_like(table: &Table, like: &Router) -> Option<String> {
    let sentence = match is_forest(like) {
        true => {
            "rows of --like are in this table too: its trees were grown on them, so that the expected costs of this router are too \
             low; leave these rows out, or grow a forest on all rows"
        }
        false => {
            "rows that --like keeps are in this table too: if those that its cells were learned from are as well, certificates \
             do not hold; for more labels on the same items, calibrate again without --like; --add-to adds new rows to those of a router"
        }
    };
    (like.partition().factors().iter().any(Factor::learns) && like.calibration_rows_in(table) > 0)
        .then(|| sentence.to_owned())
}

/// A warning that rows of `--add-to` are already in the router; where predictions repeat too often to say which, if most seem to be.
pub(super) fn repeated_rows(table: &Table, router: &Router) -> Option<String> {
    let rows = table.rows();
    let repeated = match router.calibration_rows_in(table) {
        0 => Some(router.items_in_common(table)).filter(|repeated| 2 * repeated > rows)?,
        repeated => repeated,
    };
    let shaped = match router.partition().factors().iter().any(Factor::learns) {
        true => ", and certificates do not hold if items that shaped the cells are among the rows",
        false => "",
    };
    Some(format!(
        "{} of the {} to be added have the prediction of a row that the router has: an item that counts twice is no further \
         evidence{shaped}; give only the new items, in a file of their own or by --where; for more labels on the original items, calibrate \
         again on these, without items chosen by plan",
        count(repeated),
        counted(rows, "row", "rows")
    ))
}

/// A warning that most rows of `--add-to` have one label.
pub(super) fn added_with_one_label(table: &Table) -> Option<String> {
    let rows = table.rows();
    let single = (0..rows).filter(|&row| table.votes(row).is_some_and(|votes| votes.k() == 1)).count();
    (2 * single > rows).then(|| {
        format!(
            "{} of the {} added have one label, which cannot separate noise from model error and so says little about what an oracle \
             would save: give items two labels or more",
            count(single),
            counted(rows, "row", "rows")
        )
    })
}

/// A warning that trees cannot split on features that are constant, or missing in all rows.
pub(super) fn constant_features(table: &Table, router: &Router) -> Option<String> {
    if !router.partition().factors().iter().any(Factor::learns) {
        return None;
    }
    let left = table.feature_names().iter().filter(|name| !router.cells().features().contains(name));
    let names: Vec<String> = left.map(|name| format!("x_{name}")).collect();
    let which = match names.as_slice() {
        [] => return None,
        [name] => format!("feature {name} is"),
        _ => format!("features {} are", names.join(", ")),
    };
    Some(format!("{which} left out, because the value is the same or missing in all rows"))
}

/// A warning that tables list their classes in different orders: classes are matched by name, but some losses depend on the order.
pub(super) fn class_order(frame: &Frame) -> Option<String> {
    let file = frame.reordered.first()?;
    Some(format!(
        "{file}{} its classes in another order than {}, whose order the router takes: {}",
        match frame.reordered.len() {
            1 => " has".to_owned(),
            n => format!(" and {} more have", n - 1),
        },
        frame.file_of(0),
        frame.table.classes().join(", ")
    ))
}
