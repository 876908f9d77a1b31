//! Writes the results of a run into the documentation folder, and the pages and figures that are made from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::aggregate::shorten;
use crate::error::{Error, Result};
use crate::figures::figures;
use crate::numbers::{NUMBERS, load_numbers, numbers_page};
use crate::paper::{beyond_page, paper_page, shown_figures, tracks_page};
use crate::run::{load_results, write_json};

/// Publishes a run into the documentation folder: `results/` with numbers rounded to four digits and curves thinned to
/// 21 points, and what [`write_pages`] makes from them.
///
/// # Errors
/// If a results file is malformed, or the folder cannot be written.
pub fn publish(output: &Path, docs: &Path) -> Result<()> {
    let results = docs.join("results");
    let numbers = results.join(NUMBERS);
    fs::create_dir_all(&numbers).map_err(|source| Error::folder(&numbers, source))?;
    for (name, value) in load_results(output)? {
        write_json(&results.join(format!("{name}.json")), &shorten(&value, 4, 5))?;
    }
    for (name, value) in load_numbers(output)? {
        write_json(&numbers.join(format!("{name}.json")), &shorten(&value, 4, 5))?;
    }
    write_pages(docs)
}

/// Writes the pages `paper.md`, `beyond.md`, `tracks.md` and `numbers.md` of the documentation folder, and the figures that they show, from its
/// `results/`.
///
/// # Errors
/// If a results file is malformed, or the folder cannot be written.
pub fn write_pages(docs: &Path) -> Result<()> {
    for (name, text) in pages(docs)? {
        let path = docs.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|source| Error::folder(folder, source))?;
        }
        pointsman_table::write_atomically(path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// The pages and figures that belong to the results in a documentation folder: paths within it, and texts.
///
/// # Errors
/// If a results file is malformed.
pub fn pages(docs: &Path) -> Result<Vec<(String, String)>> {
    let results = docs.join("results");
    let (published, numbers) = (load_results(&results)?, load_numbers(&results)?);
    let mut pages = vec![
        ("paper.md".to_owned(), paper_page(&published)),
        ("beyond.md".to_owned(), beyond_page(&published)),
        ("tracks.md".to_owned(), tracks_page(&published)),
        ("numbers.md".to_owned(), numbers_page(&numbers)),
    ];
    pages.extend(figures_shown(&published));
    Ok(pages)
}

/// The figures that the pages show, as SVG.
fn figures_shown(results: &BTreeMap<String, Value>) -> impl Iterator<Item = (String, String)> {
    let shown = shown_figures(results);
    let pictures = figures(results).into_iter().filter(move |(name, _)| shown.contains(&name.as_str()));
    pictures.map(|(name, picture)| (format!("figures/{name}.svg"), number_clips(&picture.svg())))
}

/// The figure with its clip paths numbered from zero: as drawn, they are numbered over all figures of the process.
fn number_clips(svg: &str) -> String {
    const CLIP: &str = "kuva-clip-";
    let mut parts = svg.split(CLIP);
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    let mut numbers: Vec<&str> = Vec::new();
    for part in parts {
        let (number, rest) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
        let place = numbers.iter().position(|known| *known == number).unwrap_or_else(|| {
            numbers.push(number);
            numbers.len() - 1
        });
        numbered += &format!("{CLIP}{place}{rest}");
    }
    numbered
}
