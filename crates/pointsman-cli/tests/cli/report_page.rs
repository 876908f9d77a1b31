//! The report's page shows the terminal's numbers: with one route and three, under budgets and target losses.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::browser::{browser, text_after, text_in_window};
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

/// Writes a report with its page, and gives what `--json` prints.
fn evaluate(folder: &Path, task: &str) -> Value {
    evaluate_to_json(folder, &format!("{task} -o report"))
}

/// The numbers alone, without figures.
fn evaluate_to_json(folder: &Path, task: &str) -> Value {
    let flags = "--no-calibration-error --json";
    line(folder, &format!("evaluate router.safetensors heldout.csv {task} {flags}")).ok().json()
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

/// A budget that does not bind is called so, and caps are on the page.
#[test]
fn page_states_budgets_that_do_not_bind_and_caps() {
    let folder = workshop();
    let page = |task: &str| {
        evaluate(folder.path(), task);
        fs::read_to_string(folder.path().join("report/report.html")).unwrap()
    };
    let header = |page: &str| page.split("</header>").next().unwrap().to_owned();
    let loose = header(&page(&format!("{ONE} --budget 1")));
    assert!(
        loose.contains("is routed; the prices need not change.") && !loose.contains("acts like a surcharge"),
        "{loose}"
    );
    let tight = header(&page(&format!("{ONE} --budget 0.05")));
    assert!(tight.contains("acts like a surcharge of 0.") && !tight.contains("need not change"), "{tight}");
    let capped = header(&page(&format!("{ONE} --cap expert=5")));
    assert!(capped.contains("Cap on expert: at most 5 of these rows;"), "{capped}");
    assert!(capped.contains("keep the caps at all prices"), "{capped}");
}

/// The number that follows some words.
fn number_after(text: &str, words: &str) -> f64 {
    let after = text.split(words).nth(1).unwrap_or_else(|| panic!("{words:?} is not in {text:?}"));
    first_number(after)
}

/// The number that a text begins with.
fn first_number(text: &str) -> f64 {
    let number: String = text.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.trim_end_matches('.').parse().unwrap_or_else(|_| panic!("{text:?} does not begin with a number"))
}

/// What a reader finds on the page once it has drawn itself, and after moving the price of each route to its last stop and back.
const READER: &str = r##"<script>
addEventListener("load", () => {
  const $ = (id) => document.getElementById(id), text = (id) => $(id).textContent.trim(), complaints = [];
  addEventListener("error", (event) => complaints.push(event.message));
  const look = () => ({ headline: text("headline"), shares: text("shares-line"), savings: text("savings"), money: text("money"), task: text("task"),
    limit: text("limit"), chips: [...document.querySelectorAll("#shares .tag")].map((chip) => chip.textContent) });
  const move = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("input", { bubbles: true })); };
  const start = look(), never = [], sliders = [...document.querySelectorAll("#routes input")];
  for (const slider of sliders) { move(slider.id, slider.max); never.push(look()); }
  $("reset").click();
  const legend = (id) => [...$(id).children].map((entry) => entry.textContent), bars = [...document.querySelectorAll("#costs th")].map((th) => th.textContent);
  const labelled = [...document.querySelectorAll("input, select")].every((node) => node.labels.length === 1 && node.labels[0].textContent.trim());
  const headers = [...document.querySelectorAll("table th")].every((th) => th.scope);
  const shown = document.querySelectorAll("#cells tbody tr").length;
  const action = document.querySelector("#cells td.action").getBoundingClientRect();
  const lines = (selector, start) => [...document.querySelectorAll(selector)].filter((node) => node.textContent.startsWith(start)).map((node) => Math.round(node.clientHeight / parseFloat(getComputedStyle(node).lineHeight)));
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ start, never, reset: look(), complaints, labelled, headers, shown, advice: document.querySelector(".advice").textContent,
    curves: legend("curves-key"), gains: legend("gains-key"), bars, allCells: { text: text("cells-all"), hidden: $("cells-all").hidden },
    actionLines: lines("#cells .tag", ""), flagLines: lines(".advice pre span", "--"), actionEnds: action.right, width: innerWidth, tooWide: document.documentElement.scrollWidth > innerWidth });
  document.body.append(result);
});
</script></body>"##;

/// As a reader sees it, once the page has drawn itself.
#[test]
fn page_shows_the_terminals_numbers_and_names_the_limit() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    for task in tasks(folder.path()) {
        let printed = evaluate(folder.path(), &task);
        let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
        let seen = text_after(&browser, folder.path(), &page.replace("</body>", READER));
        assert_eq!(seen["complaints"], Value::Array(Vec::new()), "{task}");
        let displayed = |what: &str| seen["start"][what].as_str().unwrap().to_owned();
        let (money, prices) = (displayed("money"), displayed("task"));
        let close = |shown: f64, value: &Value, what: &str| {
            let value = value.as_f64().unwrap();
            assert!((shown - value).abs() <= (1e-3 * value).max(5.1e-4), "{task}: {what} is {value}, in {money:?}");
        };
        let costs = &printed["corrected_cost"];
        close(number_after(&money, "cost per query"), &costs["router"], "router");
        for (name, value) in costs.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("always-")) {
            let spoken = name.replace("always-route:", "always route to ").replace("always-", "always ");
            close(number_after(&money, &format!("{spoken} ")), value, name);
        }
        // The headline is the saving against the best confidence threshold, with its interval.
        let saving = &printed["savings"]["best-threshold"];
        let (share, error) = (&saving["share"], &saving["share_standard_error"]);
        let (share, half) = (100.0 * share.as_f64().unwrap().abs(), 196.0 * error.as_f64().unwrap());
        let percent = |value: f64| format!("{value:.1} %").replace('-', "−");
        let interval = format!("{} ({} to {})", percent(share), percent(share - half), percent(share + half));
        assert!(
            displayed("headline").starts_with("Pointsman ") && displayed("headline").contains(&interval),
            "{task}: {interval} in {seen}"
        );
        assert!(displayed("savings").contains("against always predicting"), "{task}: {seen}");
        let several = task.contains("jury");
        for (place, route) in printed["task"]["routes"].as_array().unwrap().iter().enumerate() {
            let name = route["name"].as_str().unwrap();
            close(number_after(&prices, &format!("routing to {name}:")), &route["cost"], name);
            let share = printed["shares"][format!("route:{name}")].as_f64().unwrap();
            let chip = seen["start"]["chips"][place + 1].as_str().unwrap();
            let routed = if several { format!("% routed to {name}, price ") } else { "% routed, price ".to_owned() };
            close(number_after(chip, &routed), &route["cost"], chip);
            // A tenth of a per cent is shown.
            let shown = first_number(chip) / 100.0;
            assert!((shown - share).abs() < 6e-4, "{task}: {share} are routed to {name}, in {chip:?}");
        }
        let limit = match () {
            () if task.contains("--budget") => "at most 20.0 %",
            () if task.contains("--target") => "keeps the expected loss at",
            () => "",
        };
        assert!(
            displayed("limit").contains(limit) && displayed("limit").is_empty() == limit.is_empty(),
            "{task}: {seen}"
        );
        for displayed in [&printed["next_step"]["remark"], &printed["next_step"]["commands"][0]] {
            assert!(
                seen["advice"].as_str().unwrap().contains(displayed.as_str().unwrap()),
                "{task}: {displayed} in {seen}"
            );
        }
        assert_eq!((&seen["labelled"], &seen["headers"]), (&true.into(), &true.into()), "{task}");
        assert_eq!(seen["start"], seen["reset"], "{task}");
    }
}

/// One thing has one name: on the terminal, on the page and in the figures.
#[test]
fn terminal_page_and_figures_use_the_same_names() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    let displayed =
        line(folder.path(), &format!("evaluate router.safetensors heldout.csv {ONE} -o report")).ok().stdout;
    let report = folder.path().join("report");
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    let seen = text_after(&browser, folder.path(), &page.replace("</body>", READER));
    let figure = |name: &str| fs::read_to_string(report.join(format!("figures/{name}.svg"))).unwrap();
    let listed = |what: &str| -> Vec<String> { serde_json::from_value(seen[what].clone()).unwrap() };
    let ranked =
        |keys: &[&str]| -> Vec<String> { keys.iter().map(|key| pointsman::evaluate::ranking_name(key)).collect() };
    let compared = ["higher-order", "total-uncertainty", "cell-optimal"];
    assert_eq!(listed("gains"), ranked(&compared));
    for name in ranked(&[&compared[..], &["pointwise-optimal", "random"]].concat()) {
        assert!(listed("curves").contains(&name), "{name}: {seen}");
        assert!(figure("curves").contains(&name) && displayed.contains(&name), "{name} in {displayed}");
    }
    for name in ranked(&compared) {
        assert!(figure("losses").contains(&name), "{name}");
    }
    let rules = ["router", "best-threshold", "cell-optimal", "always-predict", "always-route:expert", "always-abstain"];
    for key in rules {
        let name = pointsman::evaluate::rule_name(key);
        assert!(listed("bars").contains(&name) && displayed.contains(&name), "{name}: {seen} and {displayed}");
    }
}

/// Sliders move the prices of the next command; what belongs to the report's own prices is not shown at others.
const SHOPPER: &str = r##"<script>
addEventListener("load", () => {
  const $ = (id) => document.getElementById(id), complaints = [], seen = {};
  addEventListener("error", (event) => complaints.push(event.message));
  const command = document.querySelector(".advice pre");
  const look = (name) => { seen[name] = { command: command.parentNode.hidden ? null : command.textContent, remark: $("next-remark").textContent,
    facts: $("facts").textContent, oracles: $("oracles").textContent, route: $("route-out").textContent, abstain: $("abstain-out").textContent }; };
  const move = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("input", { bubbles: true })); };
  look("start");
  move("route", 3); move("abstain", 2); look("moved");
  move("abstain", $("abstain").max); look("never");
  $("loss").selectedIndex = 1; $("loss").dispatchEvent(new Event("change", { bubbles: true })); look("loss");
  $("loss").selectedIndex = 0; $("loss").dispatchEvent(new Event("change", { bubbles: true })); look("back");
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ seen, complaints, buttons: document.querySelectorAll(".advice button").length });
  document.body.append(result);
});
</script></body>"##;

#[test]
fn next_command_has_the_prices_of_the_sliders() {
    let Some(browser) = browser() else { return };
    // A world in which Pointsman ranks better than the confidence threshold: otherwise the next command is another.
    let folder = TempDir::new().unwrap();
    line(folder.path(), "demo -o . --rows 2000").ok();
    fs::write(folder.path().join("task.toml"), "abstain = 0.5\n[[route]]\nname = \"expert\"\ncost = 0.05\n").unwrap();
    let price = |text: &Value| text.as_str().unwrap().split(' ').next().unwrap().to_owned();
    for (task, flag) in [
        (ONE, "expert=PRICE"),
        ("--task task.toml", "expert=PRICE"),
        ("--route it's=0.05,panel:m=3 --abstain 0.5", r"'it'\''s=PRICE,panel:m=3,aggregate=mean'"),
    ] {
        let route_in_file = task.contains("task.toml");
        let own = evaluate(folder.path(), task)["next_step"]["commands"][0].clone();
        assert!(own.as_str().unwrap().starts_with("pointsman decide "), "{own}");
        let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
        let found = text_after(&browser, folder.path(), &page.replace("</body>", SHOPPER));
        assert_eq!((&found["complaints"], &found["buttons"]), (&Value::Array(Vec::new()), &1.into()), "{found}");
        let seen = &found["seen"];
        assert_eq!((&seen["start"]["command"], &seen["start"]), (&own, &seen["back"]), "{found}");
        let (route, abstain) = (price(&seen["moved"]["route"]), price(&seen["moved"]["abstain"]));
        let moved = seen["moved"]["command"].as_str().unwrap();
        let flag = flag.replace("PRICE", &route);
        assert!(moved.contains(&format!(" --route {flag} --abstain {abstain} -o decisions.csv")), "{moved}");
        assert_eq!(moved.contains("--task task.toml"), route_in_file, "{moved}");
        // The remark on a perfect oracle has the price, too; under another loss it has none.
        if !task.contains("panel") {
            let remark = |step: &str| seen[step]["oracles"].as_str().unwrap();
            let flag = |price: &str| format!("--route expert={price},panel:m=1.");
            assert!(remark("start").ends_with(&flag("0.05")) && remark("moved").ends_with(&flag(&route)), "{found}");
            assert!(remark("loss").ends_with("know the label distribution."), "{found}");
        }
        // A flag can be left out; what a task file allows cannot.
        match route_in_file {
            true => assert_eq!(seen["never"]["command"], Value::Null, "{found}"),
            false => assert!(!seen["never"]["command"].as_str().unwrap().contains("--abstain"), "{found}"),
        }
        assert_eq!(seen["loss"]["command"], Value::Null, "{found}");
        for step in ["moved", "never", "loss"] {
            let facts = seen[step]["facts"].as_str().unwrap();
            assert!(
                facts.contains("at the prices of the report only") && !facts.contains("Pointsman’s cost:"),
                "{facts}"
            );
        }
    }
}

/// With several routes each has a slider, and where one is never asked the page is what the command line says of the task without it.
#[test]
fn slider_of_a_route_gives_the_task_with_that_price() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    let routes = ["--route expert=0.05", "--route jury=0.02,panel:m=3", "--route guess=0.005,panel:m=1"];
    for limit in ["--abstain 0.5", "--abstain 0.5 --budget 0.2"] {
        evaluate(folder.path(), &format!("{} {limit}", routes.join(" ")));
        let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
        let seen = text_after(&browser, folder.path(), &page.replace("</body>", READER));
        assert_eq!(seen["never"].as_array().unwrap().len(), 3, "{seen}");
        for left_out in 0..3 {
            let others: Vec<&str> = (0..3).filter(|&place| place != left_out).map(|place| routes[place]).collect();
            let printed = evaluate_to_json(folder.path(), &format!("{} {limit}", others.join(" ")));
            let money = seen["never"][left_out]["money"].as_str().unwrap();
            let cost = printed["corrected_cost"]["router"].as_f64().unwrap();
            assert!((number_after(money, "cost per query") - cost).abs() < 5.1e-4, "{limit}: {cost} in {money}");
            for (name, share) in printed["shares"].as_object().unwrap() {
                let chip = match name.strip_prefix("route:") {
                    Some(route) => format!("routed to {route},"),
                    None => format!("{}ed", name.trim_end_matches('e')),
                };
                let chips = seen["never"][left_out]["chips"].as_array().unwrap();
                let found = chips.iter().find(|text| text.as_str().unwrap().contains(&chip)).unwrap();
                let shown = first_number(found.as_str().unwrap()) / 100.0;
                assert!((shown - share.as_f64().unwrap()).abs() < 6e-4, "{limit}: {name} is {share}, in {found}");
            }
        }
    }
}

/// The numbers of each table, column by column, and a price that was moved.
const ACCOUNTANT: &str = r##"<script>
addEventListener("load", () => {
  const $ = (id) => document.getElementById(id), texts = (nodes) => [...nodes].map((node) => node.textContent);
  const columns = ["irreducible", "reducible", "predict", "route"].map((name) => {
    const place = [...$("cells").querySelectorAll("th")].findIndex((th) => th.classList.contains(name));
    return [...$("cells").querySelectorAll("tbody tr")].map((row) => row.children[place].textContent);
  });
  const start = { columns: columns.concat([texts(document.querySelectorAll("#costs td.value")), texts(document.querySelectorAll("#gains td.value"))]),
    abstain: $("abstain-out").textContent, matrix: document.querySelector(".cost-matrix").textContent, task: $("task").textContent, shares: $("shares-line").textContent };
  $("abstain").value = $("abstain").max - 1;
  $("abstain").dispatchEvent(new Event("input", { bubbles: true }));
  const command = document.querySelector(".advice pre");
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ start, moved: $("abstain-out").textContent, command: command && command.textContent });
  document.body.append(result);
});
</script></body>"##;

/// Thousands are separated and the numbers of a column have equal decimals; commands have numbers that programs read.
#[test]
fn page_writes_numbers_as_the_terminal_does() {
    let Some(browser) = browser() else { return };
    let folder = TempDir::new().unwrap();
    line(folder.path(), "demo -o . --rows 2000").ok();
    let task = "[loss]\nacts = [\"ship\", \"hold\"]\ncost = [[0, 30000], [10000, 0]]\n[[route]]\nname = \"expert\"\ncost = 1500\n";
    fs::write(folder.path().join("money.toml"), format!("abstain = 2500\n{task}")).unwrap();
    let terminal =
        line(folder.path(), "evaluate router.safetensors heldout.csv --task money.toml -o report").ok().stdout;
    assert!(terminal.contains("30,000") && !terminal.contains("30000"), "{terminal}");
    let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
    let seen = text_after(&browser, folder.path(), &page.replace("</body>", ACCOUNTANT));
    let start = &seen["start"];
    for column in start["columns"].as_array().unwrap() {
        let decimals = |value: &Value| value.as_str().unwrap().split_once('.').map_or(0, |(_, digits)| digits.len());
        let known: Vec<&Value> = column.as_array().unwrap().iter().filter(|value| *value != "–").collect();
        assert!(known.iter().all(|value| decimals(value) == decimals(known[0])), "{column}");
    }
    assert!(start["abstain"].as_str().unwrap().starts_with("2,500 "), "{seen}");
    assert!(start["matrix"].as_str().unwrap().contains("30,000"), "{seen}");
    assert!(start["task"].as_str().unwrap().contains("expert: 1,500; abstaining: 2,500"), "{seen}");
    if let Some(command) = seen["command"].as_str().filter(|command| command.starts_with("pointsman decide ")) {
        let abstain = command.split("--abstain ").nth(1).unwrap().split(' ').next().unwrap();
        assert!(abstain.parse::<f64>().is_ok(), "{command}");
    }
}

/// On a phone nothing is wider than the screen, the action of every cell is in sight, and a long table shows how to see all of it.
#[test]
fn page_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    line(folder.path(), "calibrate calibration.csv -o fine.safetensors --partition top-class:10").ok();
    let task = "--route expert-of-the-second-line=0.05 --abstain 0.5 --no-calibration-error";
    line(folder.path(), &format!("evaluate fine.safetensors heldout.csv {task} -o report")).ok();
    let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
    let seen = text_in_window(&browser, folder.path(), &page.replace("</body>", READER), 375);
    assert_eq!((&seen["width"], &seen["tooWide"]), (&375.into(), &false.into()), "{seen}");
    assert!(seen["actionEnds"].as_f64().unwrap() < 375.0, "{seen}");
    // No line ends within an action or a flag.
    for what in ["actionLines", "flagLines"] {
        let lines = seen[what].as_array().unwrap();
        assert!(!lines.is_empty() && lines.iter().all(|lines| *lines == 1), "{what}: {seen}");
    }
    assert_eq!(seen["shown"], 12, "of thirty cells the first");
    assert_eq!(seen["allCells"], serde_json::json!({ "text": "Show all 30 cells", "hidden": false }), "{seen}");
}

/// A cell's losses add up, or the page says why they do not.
#[test]
fn cell_with_a_negative_reducible_loss_says_so() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    evaluate(folder.path(), ONE);
    let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
    let (before, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, after) = rest.split_once("</script>").unwrap();
    let look = r##"<script>addEventListener("load", () => {
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify([document.getElementById("cell").textContent, document.getElementById("cells-caption").textContent]);
  document.body.append(result);
});</script></body>"##;
    for (total, said) in [(0.1, true), (0.2, false)] {
        let mut data: Value = serde_json::from_str(data).unwrap();
        for cell in data["losses"][0]["cells"].as_array_mut().unwrap() {
            let losses = [("irreducible", 0.2), ("reducible", 0.0), ("total", total)];
            losses.into_iter().for_each(|(name, value)| cell[name] = value.into());
        }
        let data = data.to_string().replace('<', "\\u003c");
        let page = format!("{before}id=\"data\">{data}</script>{after}").replace("</body>", look);
        let seen = text_after(&browser, folder.path(), &page);
        let words = "(shown as 0: its estimate is negative)";
        assert_eq!(seen[0].as_str().unwrap().contains(words), said, "{seen}");
        assert!(seen[1].as_str().unwrap().contains("(shown as 0 if its estimate is negative)"), "{seen}");
    }
}
