//! Small synthetic tables of three classes.

use pointsman_testing::Lcg;
use std::fmt::Write;
use std::fs;
use std::path::Path;

pub(crate) const CLASSES: [&str; 3] = ["cat", "dog", "owl"];

/// Rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) ids: Vec<String>,
    pub(crate) probs: Vec<[f64; 3]>,
    pub(crate) votes: Vec<[u32; 3]>,
    pub(crate) length: Vec<f64>,
}

/// Rows with five labels each, the weak prediction being a blurred truth.
pub(crate) fn rows(n: usize, seed: u64) -> Rows {
    let mut random = Lcg::new(seed);
    let mut out = Rows { ids: Vec::new(), probs: Vec::new(), votes: Vec::new(), length: Vec::new() };
    for row in 0..n {
        let point = |random: &mut Lcg| {
            let raw = [0; 3].map(|_| -random.uniform().max(1e-12).ln());
            let sum: f64 = raw.iter().sum();
            raw.map(|x| x / sum)
        };
        let (truth, noise) = (point(&mut random), point(&mut random));
        let mixed: [f64; 3] = std::array::from_fn(|c| 0.6 * truth[c] + 0.4 * noise[c]);
        // As a file would have them.
        let mut probs = mixed.map(|p| (p * 1e6).round() / 1e6);
        probs[2] = ((1.0 - probs[0] - probs[1]) * 1e6).round() / 1e6;
        let mut votes = [0; 3];
        for _ in 0..5 {
            let u = random.uniform();
            let class = if u < truth[0] {
                0
            } else if u < truth[0] + truth[1] {
                1
            } else {
                2
            };
            votes[class] += 1;
        }
        out.ids.push(format!("q{row}"));
        out.probs.push(probs);
        out.votes.push(votes);
        out.length.push((random.uniform() * 100.0).round());
    }
    out
}

impl Rows {
    pub(crate) fn to_csv(&self) -> String {
        let columns = |prefix: &str| CLASSES.map(|class| format!("{prefix}{class}")).join(",");
        let mut text = format!("id,{},{},x_length,split\n", columns("prob_"), columns("votes_"));
        for row in 0..self.ids.len() {
            let (p, v) = (self.probs[row], self.votes[row]);
            writeln!(
                text,
                "{},{},{},{},{},{},{},{},{}",
                self.ids[row],
                p[0],
                p[1],
                p[2],
                v[0],
                v[1],
                v[2],
                self.length[row],
                row % 2
            )
            .unwrap();
        }
        text
    }

    pub(crate) fn write_csv(&self, path: &Path) {
        fs::write(path, self.to_csv()).unwrap();
    }

    /// The same rows with one label each.
    pub(crate) fn with_one_label(mut self) -> Self {
        for votes in &mut self.votes {
            let class = votes.iter().position(|&n| n > 0).unwrap();
            *votes = [0; 3];
            votes[class] = 1;
        }
        self
    }

    /// The same rows from last to first.
    pub(crate) fn reversed(mut self) -> Self {
        self.ids.reverse();
        self.probs.reverse();
        self.votes.reverse();
        self.length.reverse();
        self
    }
}
