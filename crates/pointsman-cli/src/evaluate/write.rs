//! A report on disk: data, figures and the page.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use pointsman_report::chart::UsedFonts;
use pointsman_report::{FIGURES, Inputs, Report, html, menu};
use pointsman_table::write_atomically;

use crate::errors::in_file;
use crate::interrupt::Writing;
use crate::json;
use crate::progress::Progress;
use crate::render;
use crate::render::style::BOLD;

/// Writes report.json, figures/*.svg and *.png, and report.html, and returns the report with its detail and the page's path.
///
/// The page is written last, so that the rest exists if it does.
pub(crate) fn all(report: Report, inputs: &Inputs<'_>, folder: &Path) -> anyhow::Result<(Report, PathBuf)> {
    let losses = menu(inputs.policy.task(), inputs.router.classes().len()).len();
    let progress = Progress::bar("report", (losses + FIGURES.len()) as u64);
    let report = report.detailed(inputs, || progress.step())?;
    let figures = folder.join("figures");
    let writing = Writing::start();
    fs::create_dir_all(&figures).map_err(|error| in_file(&figures, error))?;
    write_atomically(folder.join("report.json"), |out| json::write_pretty(out, &report))?;
    let mut fonts = UsedFonts::default();
    for figure in FIGURES {
        writing.check()?;
        if let Some(picture) = (figure.draw)(&report) {
            let (png, used) = picture.png_and_fonts().map_err(|error| anyhow!("figure {}: {error}", figure.name))?;
            fonts.extend(used);
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
    fonts.families_in_words().iter().for_each(note);
    render::warn_all(fonts.missing_in_words());
    Ok((report, page))
}

/// Prints a remark on standard error.
fn note(text: impl AsRef<str>) {
    if !render::is_quiet() {
        let text = format!("{BOLD}note:{BOLD:#} {}", render::printable(text.as_ref()));
        render::write_message(&text, "note: ".len());
    }
}
