//! The report as one self-contained page.

use pointsman::evaluate::action_name;
use pointsman::number::exact;
use serde_json::{Map, Number, Value, json};

use crate::chart::label;
use crate::report::{MadeFrom, NextStep, Report};
use crate::words::{loss_name, prices_of, ranking_label, rule_label};

const TEMPLATE: &str = include_str!("page.html");
pub(crate) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Largest length of an action's name in a legend, in characters.
const MAX_ACTION_CHARS: usize = 33;

/// Significant digits of the numbers on the page.
const SIGNIFICANT_DIGITS: usize = 6;

/// The report as one self-contained page, whose sliders look up the report's price grid.
///
/// # Errors
/// If the report cannot be serialised.
pub fn html(report: &Report) -> serde_json::Result<String> {
    let mut data = serde_json::to_value(report)?;
    data["names"] = display_names(report);
    data["kind_of_rows"] = report.kind_of_rows().into();
    data["best_threshold_cost"] = json!(report.best_threshold().map(|threshold| threshold.cost));
    round_numbers(&mut data);
    let data = escape_json(&serde_json::to_string(&data)?);
    Ok(fill(TEMPLATE, |name| match name {
        "style" => STYLE.to_owned(),
        "script" => SCRIPT.to_owned(),
        "data" => data.clone(),
        "headline" => escaped(&report.headline()),
        "kind_of_rows" => report.kind_of_rows().to_owned(),
        "not_held_out" => not_held_out(report),
        "shares" => escaped(&report.shares_line()),
        "limit" => escaped(&report.limit_line().unwrap_or_default()),
        "caps" => caps(report),
        "money" => escaped(&capitalised(&report.costs_line())),
        "savings" => escaped(&report.savings_line().unwrap_or_default()),
        "open" => {
            let lines = [report.open_line(), report.best_possible_line(), report.ignored_limits_line()];
            escaped(&lines.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        "task" => escaped(&prices_of(&report.evaluation.task, report.evaluation.unit)),
        "oracles" => report.perfect_oracles.as_ref().map_or(String::new(), |text| format!("{}.", escaped(text))),
        "made_from" => escaped(&report.made_from.as_ref().map_or(String::new(), MadeFrom::in_words)),
        "costs" => cost_matrix(report),
        "advice" => advice(&report.warnings, report.next_step.as_ref()),
        _ => String::new(),
    }))
}

/// The caps and their effect at the task's prices, as HTML; empty without caps.
fn caps(report: &Report) -> String {
    let lines = report.cap_lines();
    if lines.is_empty() {
        return String::new();
    }
    let drawn = "These numbers are those at the task’s own prices; shares and costs keep the caps at all prices, but cells are drawn with the action \
                 that they take without caps. In the landscape, circles have the action with caps and regions that without.";
    format!("<p class=\"limit\">{} {drawn}</p>", escaped(&lines.join(" ")))
}

/// The warning that the rows are not held out, as HTML; empty if they are.
fn not_held_out(report: &Report) -> String {
    let warning = report.warnings.first().filter(|_| report.calibration_rows > 0);
    warning.map_or(String::new(), |text| format!("<p class=\"limit\">Warning: {}.</p>", escaped(text)))
}

/// The core crate's names for rules, rankings, actions and losses, by key.
fn display_names(report: &Report) -> Value {
    let named = |keys: Vec<String>, name: fn(&str) -> String| -> Value {
        keys.into_iter().map(|key| (key.clone(), name(&key).into())).collect::<Map<_, _>>().into()
    };
    let evaluation = &report.evaluation;
    let mut actions = vec!["predict".to_owned(), "route".to_owned(), "abstain".to_owned()];
    actions.extend(evaluation.task.routes.iter().map(|route| format!("route:{}", route.name)));
    let mut rules = vec!["router".to_owned(), "best-threshold".to_owned(), "cell-optimal".to_owned()];
    rules.extend(actions.iter().map(|action| format!("always-{action}")));
    let losses = report.detail.iter().flat_map(|detail| &detail.losses);
    json!({
        "rules": named(rules, rule_label),
        "rankings": named(evaluation.curves.iter().map(|(key, _)| key.to_owned()).collect(), ranking_label),
        "actions": named(actions, |key| label(&action_name(key), MAX_ACTION_CHARS)),
        "losses": losses.map(|loss| loss_name(&loss.loss)).collect::<Vec<_>>(),
    })
}

/// Fills the placeholders of a template once, so that inserted text that looks like a placeholder stays as it is.
pub(crate) fn fill(template: &str, text_of: impl Fn(&str) -> String) -> String {
    let mut page = String::with_capacity(1 << 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        page.push_str(&text_of(name));
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Warnings and the next step as HTML; empty if there are none.
pub(crate) fn advice(warnings: &[String], next: Option<&NextStep>) -> String {
    if warnings.is_empty() && next.is_none() {
        return String::new();
    }
    let warnings: String = warnings.iter().map(|text| format!("<li>{}</li>", escaped(&capitalised(text)))).collect();
    let warnings = if warnings.is_empty() { warnings } else { format!("<ul class=\"warnings\">{warnings}</ul>") };
    let next = next.map_or(String::new(), |next| {
        let commands: String =
            next.commands.iter().map(|command| format!("<pre>{}</pre>", words_of_command(command))).collect();
        format!("<p id=\"next-remark\">{}</p>{commands}", escaped(&next.remark))
    });
    format!("<section class=\"card advice\"><h2>What to do next</h2>{next}{warnings}</section>\n")
}

/// A command with each of its words in a box of its own, so that a line does not break at a hyphen.
fn words_of_command(command: &str) -> String {
    let word = |text: &str| if text.contains('-') { format!("<span>{}</span>", escaped(text)) } else { escaped(text) };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The cost matrix of the task's loss with the names of acts and classes, one row per act as in task files; empty if it has none.
fn cost_matrix(report: &Report) -> String {
    let Some(matrix) = &report.evaluation.task.cost_matrix else { return String::new() };
    let classes: String =
        matrix.classes.iter().map(|class| format!("<th scope=\"col\">if {}</th>", escaped(class))).collect();
    let row = |(act, costs): (&String, &Vec<f64>)| {
        let costs: String = costs.iter().map(|cost| format!("<td>{}</td>", exact(*cost))).collect();
        format!("<tr><th scope=\"row\">{}</th>{costs}</tr>", escaped(act))
    };
    let rows: String = matrix.acts.iter().zip(&matrix.cost).map(row).collect();
    let order = match matrix.classes_named {
        true => "",
        false => ". The matrix names no classes: its columns were taken in this order",
    };
    format!(
        "<details class=\"cost-matrix\" open><summary>What each act costs under each true class{order}</summary>\
         <div class=\"scroll\"><table class=\"plain\"><tr><th scope=\"col\">act</th>{classes}</tr>{rows}</table></div></details>"
    )
}

/// Escapes JSON so that it contains no HTML tag and no JavaScript line terminator.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Text with its first letter capitalised.
pub(crate) fn capitalised(text: &str) -> String {
    // The name of a file stays as it is.
    if text.split(' ').next().is_some_and(|word| word.trim_end_matches(['.', ':']).contains(['.', '/'])) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Text escaped for HTML.
pub(crate) fn escaped(text: &str) -> String {
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

/// A number with fewer digits that the page rounds further as it would round the number itself: if it ends in five, more digits say whether
/// the number was above or below.
fn rounded(x: f64) -> f64 {
    /// How many more digits.
    const MORE_DIGITS: usize = 4;
    let text = |digits: usize| format!("{x:.*e}", digits - 1);
    let short = text(SIGNIFICANT_DIGITS);
    let is_tie = short.split('e').next().is_some_and(|digits| digits.trim_end_matches('0').ends_with('5'));
    if is_tie { text(SIGNIFICANT_DIGITS + MORE_DIGITS) } else { short }.parse().unwrap_or(x)
}

/// Rounds every number for the page; `report.json` has full precision.
fn round_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let x = number.as_f64().unwrap_or(0.0);
            let short = rounded(x);
            let whole = short.fract() == 0.0 && short.abs() < 1e15;
            *number = if whole { (short as i64).into() } else { Number::from_f64(short).unwrap_or(number.clone()) };
        }
        Value::Array(items) => items.iter_mut().for_each(round_numbers),
        Value::Object(map) => map.values_mut().for_each(round_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn numbers_are_not_rounded_twice() {
        for (x, digits, shown) in
            [(0.365_749_585_9, 4, "0.3657"), (0.365_750_414_1, 4, "0.3658"), (0.123_455_49, 5, "0.12346")]
        {
            let short = rounded(x);
            assert_eq!(format!("{short:.digits$}"), shown);
            assert!((short - x).abs() < 1e-6, "{short}");
        }
        assert_eq!([0.45, 1_234.0, 0.123_456_789, -2.5e-7].map(rounded), [0.45, 1_234.0, 0.123_457, -2.5e-7]);
    }
}
