//! The lines of the results table: printed when measured, and stored for the book.

use std::error::Error;
use std::path::Path;

use serde_json::json;

/// The lines measured so far.
#[derive(Default)]
pub(crate) struct Lines(Vec<[String; 4]>);

impl Lines {
    /// Starts a table and prints its header.
    pub(crate) fn new() -> Self {
        println!("{:<78} {:>12} {:>12}   ratio and bar", "", "subject", "peer");
        Self::default()
    }

    /// Adds a line: the task, the subject's figure, the peer's figure, and their comparison.
    pub(crate) fn add(&mut self, what: impl Into<String>, subject: String, peer: impl Into<String>, verdict: String) {
        let (what, peer) = (what.into(), peer.into());
        println!("{what:<78} {subject:>12} {peer:>12}   {verdict}");
        self.0.push([what, subject, peer, verdict]);
    }

    /// Writes the table to the file that the book's page about the race is generated from.
    pub(crate) fn write(&self) -> Result<(), Box<dyn Error>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        let lines: Vec<_> = self
            .0
            .iter()
            .map(|[what, subject, peer, verdict]| json!({"what": what, "subject": subject, "peer": peer, "verdict": verdict}))
            .collect();
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("core.json"), serde_json::to_string_pretty(&lines)? + "\n")?;
        Ok(())
    }
}
