//! Pointsman's reports: data first, then drawn.
//!
//! A [`Report`] is data: what `pointsman evaluate --json` prints, and with [`Report::detailed`] all that a page with
//! sliders needs. Its schema is `docs/report.schema.json`. `FIGURES` draws it as SVG and PNG, [`html`] as one page
//! that needs nothing else. A [`DiagnosisReport`] and [`diagnosis_html`] are the same for `pointsman diagnose`. Every number about losses and prices comes from the core: here they are looked up and drawn.

pub mod chart;
mod diagnosis;
mod figures;
mod landscape;
mod page;
mod reliability;
mod report;
mod words;

pub use diagnosis::{DiagnosisReport, diagnosis_html, flags_in_words, flags_replaced};
pub use figures::{FIGURES, Figure};
pub use page::html;
pub use reliability::reliability;
pub use report::{Detail, Inputs, LossCell, LossReport, LossRow, NextStep, Report, RouterSummary, SweepReport, menu};

/// The former name of [`pointsman::evaluate::rule_name`], which a test of the command line still uses.
#[doc(hidden)]
pub use pointsman::evaluate::rule_name as spoken;
