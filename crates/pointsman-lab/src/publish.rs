//! Writes the results, figures and pages of a run into the documentation folder.

use std::fs;
use std::path::Path;

use crate::aggregate::shorten;
use crate::error::{Error, Result};
use crate::numbers::{NUMBERS, load_numbers, numbers_page};
use crate::paper::{beyond_page, paper_page, shown_figures, tracks_page};
use crate::run::{load_results, write_json};

/// Publishes a run into the documentation folder: `results/` with numbers rounded to four digits and curves thinned to
/// 21 points, the pages `paper.md`, `beyond.md`, `tracks.md` and `numbers.md`, and the figures that these pages show.
///
/// # Errors
/// If a results file is malformed, a figure was not drawn, or the folder cannot be written.
pub fn publish(output: &Path, docs: &Path) -> Result<()> {
    let (results, figures) = (docs.join("results"), docs.join("figures"));
    for folder in [&results, &figures, &results.join(NUMBERS)] {
        fs::create_dir_all(folder).map_err(|source| Error::folder(folder, source))?;
    }
    for (name, value) in load_results(output)? {
        write_json(&results.join(format!("{name}.json")), &shorten(&value, 4, 5))?;
    }
    for (name, value) in load_numbers(output)? {
        write_json(&results.join(NUMBERS).join(format!("{name}.json")), &shorten(&value, 4, 5))?;
    }
    let (published, numbers) = (load_results(&results)?, load_numbers(&results)?);
    // A run of one experiment draws only its own figures; the published ones of other experiments stay.
    let is_there = |name: &str| figures.join(format!("{name}.svg")).exists();
    for name in shown_figures(&published) {
        let drawn = output.join("figures").join(format!("{name}.svg"));
        if !drawn.exists() && is_there(name) {
            continue;
        }
        let svg = fs::read(&drawn).map_err(|source| Error::folder(&drawn, source))?;
        pointsman_table::write_atomically(figures.join(format!("{name}.svg")), |out| out.write_all(&svg))?;
    }
    let pages = [
        ("paper.md", paper_page(&published)),
        ("beyond.md", beyond_page(&published)),
        ("tracks.md", tracks_page(&published)),
        ("numbers.md", numbers_page(&numbers)),
    ];
    for (name, page) in pages {
        pointsman_table::write_atomically(docs.join(name), |out| out.write_all(page.as_bytes()))?;
    }
    Ok(())
}
