//! Runs every experiment and writes what `docs/` shows of it: `publish OUT DOCS [quick|full] [SEEDS] [TEST_ROWS]`.

use std::path::Path;
use std::time::Instant;

use pointsman_lab::{Experiment, Monitor, Settings, compact, load_results, paper_page, reproduce};

/// A line a step.
struct Lines(Instant);

impl Monitor for Lines {
    fn begin(&self, what: &str, steps: u64) {
        println!("{:7.1} s  {what}: {steps} steps", self.0.elapsed().as_secs_f64());
    }
    fn step(&self) {
        println!("{:7.1} s", self.0.elapsed().as_secs_f64());
    }
    fn keep_going(&self) -> bool {
        true
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [out, docs, rest @ ..] = args.as_slice() else {
        return Err("publish OUT DOCS [quick|full] [SEEDS] [TEST_ROWS]".into());
    };
    let quick = rest.first().is_some_and(|word| word == "quick");
    let mut settings = if quick { Settings::quick(out) } else { Settings::full(out) };
    if let Some(seeds) = rest.get(1) {
        settings.seeds = seeds.parse()?;
    }
    if let Some(rows) = rest.get(2) {
        settings.test_rows = rows.parse()?;
    }
    let outcome = reproduce(&Experiment::ALL, &settings, &Lines(Instant::now()))?;
    println!("{outcome:?}");
    let docs = Path::new(docs);
    compact(&settings.output, &docs.join("results"))?;
    std::fs::write(docs.join("paper.md"), paper_page(&load_results(&docs.join("results"))?))?;
    Ok(())
}
