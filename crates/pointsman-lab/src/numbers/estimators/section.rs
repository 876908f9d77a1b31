//! The section on the estimators of the irreducible loss.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::laws::{HELD_OUT_LAWS, LAWS};
use super::{CLASS_COUNTS, LABELS_PER_ITEM, losses};

/// The allowed ratio of the error of `auto` to that of the best single estimator.
const MAX_ERROR_RATIO: f64 = 1.25;

/// Errors below this are not compared by law.
const MIN_COMPARED_ERROR: f64 = 0.003;

/// Cases in which the former default, `shrink`, failed silently: law, classes, loss, labels.
const FORMER_FAILURES: [(&str, u64, &str, u64); 7] = [
    ("smooth Dirichlet", 30, "cross-entropy", 2),
    ("edges", 30, "cross-entropy", 2),
    ("edges", 3, "cross-entropy", 2),
    ("two atoms", 2, "fn-fp:fp=1,fn=4", 2),
    ("two atoms", 2, "fn-fp:fp=1,fn=4", 50),
    ("two atoms", 2, "zero-one", 5),
    ("two atoms", 2, "zero-one", 10),
];

/// Errors for one loss, number of classes and number of labels, over rows and laws.
struct Entry<'a> {
    classes: u64,
    loss: &'a str,
    labels: u64,
    /// Per estimator: the law and the error in cells of one size.
    errors: BTreeMap<&'a str, Vec<(&'a str, f64)>>,
}

impl<'a> Entry<'a> {
    /// Reads the entries of a results file.
    fn read_all(numbers: &'a Value) -> Vec<Self> {
        let laws: Vec<&str> = numbers["laws"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut entries: Vec<Self> = Vec::new();
        for setting in numbers["settings"].as_array().into_iter().flatten() {
            let number = |key: &str| setting[key].as_u64().unwrap_or(0);
            let (classes, labels, loss) = (number("classes"), number("labels"), setting["loss"].as_str().unwrap_or(""));
            let place = entries.iter().position(|e| (e.classes, e.labels, e.loss) == (classes, labels, loss));
            let place = place.unwrap_or_else(|| {
                entries.push(Self { classes, loss, labels, errors: BTreeMap::new() });
                entries.len() - 1
            });
            for (estimator, errors) in setting["errors"].as_object().into_iter().flatten() {
                let errors = errors.as_array().into_iter().flatten().map(|x| x.as_f64().unwrap_or(f64::NAN));
                entries[place].errors.entry(estimator.as_str()).or_default().extend(laws.iter().copied().zip(errors));
            }
        }
        entries
    }

    /// Root mean square error of an estimator over rows and the wanted laws; `None` if it does not support the number
    /// of classes.
    fn error(&self, estimator: &str, wanted: impl Fn(&str) -> bool) -> Option<f64> {
        let errors = self.errors.get(estimator)?.iter().filter(|(law, _)| wanted(law));
        let (sum, n) = errors.fold((0.0, 0.0), |(sum, n), (_, error)| (sum + error * error, n + 1.0));
        Some((sum / n).sqrt())
    }

    /// The single estimator with the least error, and its error.
    fn best(&self, wanted: impl Fn(&str) -> bool) -> (&'a str, f64) {
        let singles = self.errors.keys().filter(|estimator| **estimator != "auto");
        let errors = singles.filter_map(|&estimator| Some((estimator, self.error(estimator, &wanted)?)));
        errors.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("", f64::NAN))
    }

    fn auto(&self, wanted: impl Fn(&str) -> bool) -> f64 {
        self.error("auto", wanted).unwrap_or(f64::NAN)
    }

    /// The ratio of the error of `auto` to that of the best single estimator.
    fn ratio(&self, wanted: impl Fn(&str) -> bool) -> f64 {
        self.auto(&wanted) / self.best(&wanted).1
    }

    fn name(&self) -> String {
        format!("`{}`, {} classes, k = {}", self.loss, self.classes, self.labels)
    }
}

/// The section of `docs/numbers.md`.
pub(in crate::numbers) fn section(numbers: &Value) -> String {
    let entries = Entry::read_all(numbers);
    let mut text = String::from(
        "## The irreducible loss from few labels\n\n\
         The mean entropy of the labels' shares (`plugin`, the paper's estimate) is too small; how much too small depends on the law of p\\* within a \
         cell, of which k labels per item show k moments. The default estimator, `auto`, is a rule:\n\n\
         | loss | classes | `auto` is |\n|---|---|---|\n\
         | Brier | any | `shrink`, which is exact for it |\n\
         | cross-entropy | any | `npmle` stopped early, class by class: its entropy is a sum over classes |\n\
         | any other | 2, 3 | `npmle` stopped early |\n\
         | any other | 4 or more | `shrink` |\n\
         | any, in the leaves of a forest | any | `shrink` |\n\n\
         `npmle` starts at a Dirichlet law fitted to the cell and takes 300 steps of expectation maximisation towards the likeliest law. `auto` takes one \
         per 50 labels (with three classes one per 10 rows), from 5 to 300: with few it stays near the Dirichlet law, with many it sees atoms and kinks. \
         Class by class, the concentration of each class is a compromise between its own labels and that of all classes together.\n\n",
    );
    text += &rule_paragraph(&entries);
    text += &errors_table(&entries);
    text += &former_failures(&entries);
    text += &worst_by_law(&entries);
    text += &identified_section(numbers);
    text
}

/// The rule, and how often `auto` satisfies it.
fn rule_paragraph(entries: &[Entry<'_>]) -> String {
    let laws = LAWS.map(|(name, _)| name);
    let (old, new) = laws.split_at(laws.len() - HELD_OUT_LAWS);
    let (of_all, of_new) = (worst_ratios(entries, &|_| true), worst_ratios(entries, &|law| new.contains(&law)));
    format!(
        "The rule of judgement was fixed before measuring: for each loss, number of classes (2, 3, 10, 30) and number of labels (2 to 50), the root mean square \
         error over all laws of p\\* and 50, 200, 500 and 2,000 rows per cell; `auto` may have at most {MAX_ERROR_RATIO} times that of the best single estimator. \
         `auto` was made with nine laws ({}) and other seeds; two more ({}) were not used for that, but one constant (how much \
         classes may differ in concentration) was changed after a first run of this very simulation. Of {} entries, {of_all} On the new laws \
         alone, {of_new}\n\n",
        old.join(", "),
        new.join(", "),
        entries.len(),
    )
}

/// How many entries exceed the allowed ratio, which ones, and the largest ratio.
fn worst_ratios(entries: &[Entry<'_>], wanted: &dyn Fn(&str) -> bool) -> String {
    let most = entries.iter().map(|entry| entry.ratio(wanted)).fold(0.0, f64::max);
    let over = entries.iter().filter(|entry| entry.ratio(wanted) > MAX_ERROR_RATIO);
    let names: Vec<String> = over.map(|entry| format!("{} ({:.2})", entry.name(), entry.ratio(wanted))).collect();
    match names.len() {
        0 => format!("none exceeds {MAX_ERROR_RATIO}; the largest ratio is {most:.2}."),
        n => format!("{n} exceed {MAX_ERROR_RATIO}: {}.", names.join("; ")),
    }
}

fn errors_table(entries: &[Entry<'_>]) -> String {
    let mut text = String::from(
        "Root mean square error × 1000 of `auto`, in brackets that of the best single estimator (s `shrink`, p `plugin`, n `npmle`, d `dirichlet`); single \
         settings are in `docs/results/numbers/estimators.json`:\n\n\
         | classes | loss | k = 2 | 3 | 5 | 10 | 20 | 50 |\n|---|---|---|---|---|---|---|---|\n",
    );
    for classes in CLASS_COUNTS {
        for loss in losses(classes) {
            let _ = write!(text, "| {classes} | `{loss}` |");
            for labels in LABELS_PER_ITEM {
                let wanted = (classes as u64, loss, labels as u64);
                let Some(entry) = entries.iter().find(|e| (e.classes, e.loss, e.labels) == wanted) else { continue };
                let (best, error) = entry.best(|_| true);
                let initial = best.get(..1).unwrap_or("");
                let _ = write!(text, " {:.0} ({:.0} {initial}) |", 1000.0 * entry.auto(|_| true), 1000.0 * error);
            }
            text.push('\n');
        }
    }
    text + "\n"
}

fn former_failures(entries: &[Entry<'_>]) -> String {
    let mut text = String::from(
        "Where `shrink`, the default before, failed without a word (root mean square error × 1000, over rows per cell):\n\n\
         | law | classes | loss | labels | `shrink` | `auto` | best single |\n|---|---|---|---|---|---|---|\n",
    );
    for (law, classes, loss, labels) in FORMER_FAILURES {
        let Some(entry) = entries.iter().find(|e| (e.classes, e.loss, e.labels) == (classes, loss, labels)) else {
            continue;
        };
        let of_law = |other: &str| other == law;
        let (best, error) = entry.best(of_law);
        let shrink = entry.error("shrink", of_law).unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {law} | {classes} | `{loss}` | {labels} | {:.0} | {:.0} | {:.0} `{best}` |",
            1000.0 * shrink,
            1000.0 * entry.auto(of_law),
            1000.0 * error,
        );
    }
    text + "\n"
}

/// The largest ratio per law.
fn worst_by_law(entries: &[Entry<'_>]) -> String {
    let mut text = format!(
        "**Law by law** no rule can keep to {MAX_ERROR_RATIO}: which estimator is best depends on the law, and few labels do not show which one it is. Entries in which \
         `auto` errs more than {MAX_ERROR_RATIO} times as much as the estimator that is best for that very law (errors up to {MIN_COMPARED_ERROR} left out), and the worst of them:\n\n\
         | law | above {MAX_ERROR_RATIO} | worst | `auto` | best single |\n|---|---|---|---|---|\n"
    );
    for (law, _) in LAWS {
        let of_law = |other: &str| other == law;
        let counted: Vec<&Entry<'_>> = entries.iter().filter(|entry| entry.auto(of_law) > MIN_COMPARED_ERROR).collect();
        let over = counted.iter().filter(|entry| entry.ratio(of_law) > MAX_ERROR_RATIO).count();
        let worst = counted.iter().max_by(|a, b| a.ratio(of_law).total_cmp(&b.ratio(of_law)));
        let Some(worst) = worst else { continue };
        let (best, error) = worst.best(of_law);
        let _ = writeln!(
            text,
            "| {law} | {over} of {} | {} | {:.3} | {error:.3} `{best}` |",
            entries.len(),
            worst.name(),
            worst.auto(of_law),
        );
    }
    text + "\n"
}

fn identified_section(numbers: &Value) -> String {
    let mut text = String::from(
        "**What k labels identify.** However many rows there are, k labels per item show the moments of p\\* up to order k and nothing else: laws that agree \
         in them may differ in the irreducible loss. `show` prints that interval (`irreducible_identified` in the JSON): a point for Brier from two labels on; \
         for two classes the least and largest value among all laws with the fitted law of votes (a linear program), for the cross-entropy the sum of such \
         intervals over classes or the polynomial enclosure, else T⁻ to T⁺ and what the Brier loss leaves open. It says nothing about the error of few rows: \
         `--confidence` does. With 2,000 rows, over these laws: mean width, share of worlds whose truth lies outside, and how far outside at most \
         (sampling error included).\n\n\
         | classes | loss | labels | mean width | truth outside | by at most |\n|---|---|---|---|---|---|\n",
    );
    for row in numbers["identified"].as_array().into_iter().flatten() {
        if row["loss"] == "brier" {
            continue;
        }
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {:.3} | {:.2} | {:.3} |",
            row["classes"],
            row["loss"].as_str().unwrap_or(""),
            row["labels"],
            number("width"),
            number("missed"),
            number("farthest"),
        );
    }
    text
}
