//! Pointsman's reports: data first, then drawn.
//!
//! A [`Report`] is data: what `pointsman evaluate --json` prints and, with [`Report::detailed`], all that an
//! interactive page needs. Its schema is `docs/report.schema.json`. `FIGURES` draws it as SVG and PNG, [`html`] as one
//! self-contained page. A [`DiagnosisReport`] and [`diagnosis_html`] do the same for `pointsman diagnose`. All losses
//! and costs are computed by the core crate; this crate looks them up and draws them.

pub mod chart;
mod diagnosis;
mod figures;
mod landscape;
mod page;
mod reliability;
mod report;
mod words;

pub use diagnosis::{
    CONFIDENCE_THRESHOLD, DiagnosisReport, annotators_answer, calibration_answer, diagnosis_html, kind_of_cells,
    sparse_cells,
};
pub use figures::{FIGURES, Figure};
pub use page::html;
pub use reliability::reliability;
pub use report::{
    Detail, Inputs, LossCell, LossReport, LossRow, MadeFrom, NextStep, Report, RouterSummary, SweepReport,
    calibration_rows_in_words, menu,
};
pub use words::{caps_in_words, perfect_oracles_in_words, route_flag, shell_quoted};
