//! The section on certificates.

use std::fmt::Write;

use serde_json::Value;

use super::WIDTH_ROWS;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(in crate::numbers) fn section(numbers: &Value) -> String {
    let mut out = String::from(
        "## Certificates\n\n\
         `show --confidence` prints intervals of every cell and says which actions are certain; all of it holds together with the confidence asked for, for every \
         loss declared and whatever the prices. Worlds of ten cells (60 or 250 rows) have certificates for five losses at once, with the bounds for all losses where \
         there are any, at a confidence of 0.8: at most a fifth of the worlds may fail in anything. Actions are judged at twelve pairs of prices per loss.\n\n\
         | law of p\\* | labels | worlds | failed in anything | certain cells | of them wrong | regret bounds | of them violated |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut sums = [0.0; 6];
    for row in elements(&numbers["soundness"]) {
        let keys = ["worlds", "failed", "certain", "certain_and_wrong", "regret_bounds", "regret_bounds_violated"];
        let values = keys.map(|key| number(&row[key]));
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        let columns = values.map(|value| format!("{value:.0}")).join(" | ");
        let _ = writeln!(out, "| {} | {} | {columns} |", row["law"].as_str().unwrap_or(""), row["labels"]);
    }
    let _ = writeln!(out, "| all | | {} |", sums.map(|sum| format!("{sum:.0}")).join(" | "));
    out += "\n**Widths beside a bootstrap.** One cell; each interval by itself is one of 95 %. The bootstrap draws rows with their labels, 200 times, and leaves out a \
            fortieth of the estimates at either end. It is narrow where the estimate is biased or k labels cannot identify the loss, and then it misses the truth: \
            a certificate must be as wide as that. Widths are those of the certificate, in brackets how many times that of the bootstrap; coverage is the mean over the three \
            numbers of rows. Means over two laws per number of classes; single settings are in `docs/results/numbers/certificates.json`.\n\n";
    for part in ["irreducible", "reducible"] {
        let _ = writeln!(
            out,
            "| {part} loss: classes | loss | labels | 100 rows | 300 rows | 1,000 rows | coverage | of the bootstrap | identified |\n\
             |---|---|---|---|---|---|---|---|---|"
        );
        width_rows(numbers, part, &mut out);
        out += "\n";
    }
    out += "*Identified* is the width of what that many labels identify of the irreducible loss, however many rows there are. \
            A certificate of a finite sample needs about 1.4 times the width of a normal interval even where nothing else is open.\n\n\
            **Coarser cells.** Where most cells are undetermined, `show` and `plan` name the coarser partition that would make more actions certain. 2,000 rows with three labels in forty cells; \
            shares of the traffic whose action is certain at 0.9 confidence before, as forecast, by certificates of the cells advised on the same rows (with the \
            confidence that allows for the choice), and on 2,000 new rows.\n\n\
            | loss | worlds | advised | before | forecast | same rows | new rows | certain cells | of them wrong |\n|---|---|---|---|---|---|---|---|---|\n";
    for row in elements(&numbers["coarser"]) {
        let shares = ["before", "forecast", "same_rows", "new_rows"].map(|key| format!("{:.2}", number(&row[key])));
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            row["loss"].as_str().unwrap_or(""),
            row["worlds"],
            row["advised"],
            shares.join(" | "),
            row["certain"],
            row["certain_and_wrong"],
        );
    }
    out
}

/// One row per number of classes, loss and number of labels.
fn width_rows(numbers: &Value, part: &str, out: &mut String) {
    let key = |row: &Value| {
        let classes = if row["law"].as_str().unwrap_or("").starts_with("two") { 2 } else { 3 };
        (classes, row["loss"].as_str().unwrap_or("").to_owned(), row["labels"].as_u64().unwrap_or(0))
    };
    let mut seen = Vec::new();
    for row in elements(&numbers["widths"]) {
        if !seen.contains(&key(row)) {
            seen.push(key(row));
        }
    }
    seen.sort_by_key(|(classes, _, _)| *classes);
    for (classes, loss, labels) in seen {
        let group: Vec<&Value> =
            elements(&numbers["widths"]).filter(|row| key(row) == (classes, loss.clone(), labels)).collect();
        let mean = |rows: usize, what: &str| {
            let values: Vec<f64> =
                group.iter().filter(|row| row["rows"] == rows).map(|row| number(&row[part][what])).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let over_rows =
            |what: &str| WIDTH_ROWS.map(|rows| mean(rows, what)).iter().sum::<f64>() / WIDTH_ROWS.len() as f64;
        let width = |rows: usize| {
            let (certificate, bootstrap) = (mean(rows, "certificate"), mean(rows, "bootstrap"));
            format!("{certificate:.3} ({:.1})", certificate / bootstrap)
        };
        let _ = writeln!(
            out,
            "| {classes} | `{loss}` | {labels} | {} | {:.3} | {:.3} | {:.3} |",
            WIDTH_ROWS.map(width).join(" | "),
            over_rows("covered"),
            over_rows("bootstrap_covered"),
            mean(WIDTH_ROWS[2], "identified"),
        );
    }
}
