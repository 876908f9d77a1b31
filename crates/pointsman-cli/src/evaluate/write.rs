//! The report on disk: data, figures and the page.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use pointsman_report::{FIGURES, Inputs, Report, html, menu};
use pointsman_table::write_atomically;

use super::named;
use crate::interrupt::Writing;
use crate::json;
use crate::progress::Progress;

/// Writes report.json, figures/*.svg and *.png, and report.html; gives the report with its detail and the page's path.
///
/// The page comes last: if it is there, so is the rest.
pub(crate) fn all(report: Report, inputs: &Inputs<'_>, folder: &Path) -> anyhow::Result<(Report, PathBuf)> {
    let losses = menu(inputs.policy.task(), inputs.router.classes().len()).len();
    let progress = Progress::bar("report", (losses + FIGURES.len()) as u64);
    let report = report.detailed(inputs, || progress.step())?;
    let figures = folder.join("figures");
    let writing = Writing::start();
    fs::create_dir_all(&figures).map_err(|error| named(&figures, error))?;
    write_atomically(folder.join("report.json"), |out| json::write_pretty(out, &report))?;
    for figure in FIGURES {
        writing.check()?;
        if let Some(picture) = (figure.draw)(&report) {
            let png = picture.png().map_err(|error| anyhow!("figure {}: {error}", figure.name))?;
            let path = figures.join(figure.name);
            write_atomically(path.with_extension("svg"), |out| out.write_all(picture.svg().as_bytes()))?;
            write_atomically(path.with_extension("png"), |out| out.write_all(&png))?;
        }
        progress.step();
    }
    writing.check()?;
    let page = folder.join("report.html");
    let text = html(&report)?;
    write_atomically(&page, |out| out.write_all(text.as_bytes()))?;
    Ok((report, page))
}
