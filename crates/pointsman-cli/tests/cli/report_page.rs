//! The report's page shows the terminal's numbers: with one route and three, under budgets and target losses.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::browser::{browser, text_after};
use crate::{line, workshop};

const ONE: &str = "--route expert=0.05 --abstain 0.5";
const THREE: &str = "--route expert=0.05 --route jury=0.02,panel:m=3 --route guess=0.005,panel:m=1 --abstain 0.5";

/// Tasks without a limit, with a budget, and with the target loss that this budget reaches.
fn tasks(folder: &Path) -> Vec<String> {
    let limited = |routes: &str| {
        let budget = format!("{routes} --budget 0.2");
        let shown = line(folder, &format!("show router.safetensors {budget} --json")).ok().json();
        let target = format!("{routes} --target-loss {}", shown["surcharge"]["loss"]);
        [routes.to_owned(), budget, target]
    };
    [ONE, THREE].into_iter().flat_map(limited).collect()
}

fn evaluate(folder: &Path, task: &str) -> Value {
    let flags = "--no-calibration-error";
    line(folder, &format!("evaluate router.safetensors heldout.csv {task} {flags} -o report")).ok();
    line(folder, &format!("evaluate router.safetensors heldout.csv {task} {flags} --json")).ok().json()
}

#[test]
fn report_json_has_the_terminals_numbers() {
    let folder = workshop();
    for task in tasks(folder.path()) {
        let printed = evaluate(folder.path(), &task);
        let written: Value =
            serde_json::from_slice(&fs::read(folder.path().join("report/report.json")).unwrap()).unwrap();
        for (key, value) in printed.as_object().unwrap() {
            assert_eq!(&written[key], value, "{task}: {key}");
        }
        let grid = &written["losses"][0]["grid"];
        let place = |axis: usize| grid["own"][axis].as_u64().unwrap() as usize;
        let own = place(0) * grid["abstain_prices"].as_array().unwrap().len() + place(1);
        let cost = |value: &Value| value.as_f64().unwrap();
        let router = cost(&printed["corrected_cost"]["router"]);
        assert!((cost(&grid["router"][own]) - router).abs() < 1e-12, "{task}: {} and {router}", grid["router"][own]);
        assert_eq!(grid["surcharge"][own], printed["surcharge"]["price"], "{task}");
        for route in grid["routes"].as_array().unwrap() {
            let share = &printed["shares"][format!("route:{}", route["name"].as_str().unwrap())];
            assert!((cost(&route["shares"][own]) - cost(share)).abs() < 1e-12, "{task}: {route}");
        }
    }
}

/// The number that follows some words.
fn number_after(text: &str, words: &str) -> f64 {
    let after = text.split(words).nth(1).unwrap_or_else(|| panic!("{words:?} is not in {text:?}"));
    let number: String = after.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.trim_end_matches('.').parse().unwrap_or_else(|_| panic!("no number after {words:?} in {text:?}"))
}

/// As a reader sees it, once the page has drawn itself.
#[test]
fn page_shows_the_terminals_numbers_and_names_the_limit() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    for task in tasks(folder.path()).into_iter().filter(|task| task.contains("--budget") || task.contains("--target")) {
        let printed = evaluate(folder.path(), &task);
        let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
        let script = r#"<script>addEventListener("load", () => { const result = document.createElement("pre"); result.id = "result";
            result.textContent = JSON.stringify(["money", "task", "shares"].map((id) => document.getElementById(id).textContent));
            document.body.append(result); });</script></body>"#;
        let seen = text_after(&browser, folder.path(), &page.replace("</body>", script));
        let (money, prices) = (seen[0].as_str().unwrap(), seen[1].as_str().unwrap());
        let close = |shown: f64, value: &Value, what: &str| {
            let value = value.as_f64().unwrap();
            assert!((shown - value).abs() <= 1e-3 * value.max(0.1), "{task}: {what} is {value}, in {money:?}");
        };
        let costs = &printed["corrected_cost"];
        close(number_after(money, "cost a query"), &costs["router"], "router");
        for (name, value) in costs.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("always-")) {
            close(number_after(money, &format!("{name} ")), value, name);
        }
        for route in printed["task"]["routes"].as_array().unwrap() {
            let name = route["name"].as_str().unwrap();
            close(number_after(prices, &format!("routing to {name}:")), &route["cost"], name);
            let share = &printed["shares"][format!("route:{name}")];
            let before = if task.contains("jury") { format!(" % routed to {name}") } else { " % routed".to_owned() };
            let shown = money.split(&before).next().unwrap().rsplit(' ').next().unwrap();
            // A tenth of a per cent is shown.
            let (shown, share) = (shown.parse::<f64>().unwrap() / 100.0, share.as_f64().unwrap());
            assert!((shown - share).abs() < 6e-4, "{task}: {share} are routed to {name}, in {money:?}");
        }
        let limit = if task.contains("--budget") { "at most 20.0 %" } else { "keeps the expected loss at" };
        assert!(prices.contains(limit), "{prices}");
    }
}
