//! The report as one self-contained page.

use serde_json::{Number, Value};

use crate::report::Report;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Significant digits of the numbers in the page.
const DIGITS: usize = 6;

/// The report as one page that needs nothing else: no network, no other file. Sliders look the report's price grid up.
///
/// # Errors
/// If the report cannot be serialised.
pub fn html(report: &Report) -> serde_json::Result<String> {
    let mut data = serde_json::to_value(report)?;
    round(&mut data);
    // Only the places marked in the template are replaced: never one that a class is named after.
    let mut page = String::with_capacity(1 << 20);
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        match name {
            "style" => page.push_str(STYLE),
            "script" => page.push_str(SCRIPT),
            "data" => page.push_str(&inert(&serde_json::to_string(&data)?)),
            "money" => page.push_str(&escaped(&report.money_line())),
            "savings" => page.push_str(&escaped(&report.savings_line().unwrap_or_default())),
            "open" => page.push_str(&escaped(&report.open_line().unwrap_or_default())),
            "task" => page.push_str(&escaped(&report.task_line())),
            "costs" => page.push_str(&cost_matrix(report)),
            _ => {}
        }
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

/// The cost matrix of the task's loss with the names of acts and classes; nothing if it has none.
fn cost_matrix(report: &Report) -> String {
    let Some(matrix) = &report.evaluation.task.cost_matrix else { return String::new() };
    let acts: String = matrix.acts.iter().map(|act| format!("<th>{}</th>", escaped(act))).collect();
    let row = |(place, class): (usize, &String)| {
        let costs: String = matrix.cost.iter().map(|row| format!("<td>{}</td>", row[place])).collect();
        format!("<tr><th>{}</th>{costs}</tr>", escaped(class))
    };
    let rows: String = matrix.classes.iter().enumerate().map(row).collect();
    let order = match matrix.classes_named {
        true => "",
        false => ". The matrix names no classes: its columns were taken in this order",
    };
    format!(
        "<details class=\"cost-matrix\" open><summary>What each act costs under each true class{order}</summary>\
         <table><tr><th>true class</th>{acts}</tr>{rows}</table></details>"
    )
}

/// JSON that no HTML parser finds a tag in, and no script a line end.
fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Text for the body of the page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Cuts every number to what a reader can use; the full ones are in `report.json`.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let x = number.as_f64().unwrap_or(0.0);
            let short: f64 = format!("{x:.*e}", DIGITS - 1).parse().unwrap_or(x);
            let whole = short.fract() == 0.0 && short.abs() < 1e15;
            *number = if whole { (short as i64).into() } else { Number::from_f64(short).unwrap_or(number.clone()) };
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(map) => map.values_mut().for_each(round),
        _ => {}
    }
}
