//! The paper's claims on a quick run: one for synthetic worlds, which needs nothing, one for data sets, if they are there.
//!
//! The thresholds are those of `docs/paper.md`; where a claim holds only partly there, what does hold is tested here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pointsman_lab::{
    DATA_VARIABLE, DataFolder, Dataset, Experiment, Settings, Silent, Verdict, beyond_page, claims, draw, load_numbers,
    load_results, missing_numbers, numbers_page, paper_page, reproduce, shown_figures,
};
use serde_json::Value;

/// The data folder, if all data sets are in it.
fn data() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os(DATA_VARIABLE).map(PathBuf::from);
    let folder = named.unwrap_or_else(|| repository.join("../shared/data"));
    DataFolder::find(Some(&folder)).missing(&Dataset::ALL).is_empty().then_some(folder)
}

/// The results of one quick run, shared by all tests.
fn results() -> &'static BTreeMap<String, Value> {
    static RESULTS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    RESULTS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            seeds: 1,
            test_rows: 20_000,
            data: Some(data().unwrap_or_else(|| folder.path().join("none"))),
            ..Settings::quick(folder.path().join("out"))
        };
        if data().is_some() {
            reproduce(&Experiment::ALL, &settings, &Silent).unwrap();
        } else {
            eprintln!("\n*** SKIPPED: claims on real data. Name the folder of the data sets in {DATA_VARIABLE}. ***\n");
            // Nobody named a folder: what needs no data is run.
            reproduce(&Experiment::ALL, &Settings { data: None, ..settings.clone() }, &Silent).unwrap();
        }
        load_results(&settings.output).unwrap()
    })
}

fn mean(experiment: &str, path: &[&str]) -> f64 {
    let start = &results()[experiment]["problems"];
    let found = path.iter().fold(start, |value, key| &value[key]);
    found["mean"].as_f64().unwrap_or_else(|| panic!("{experiment} {path:?}: {found}"))
}

fn gain(problem: &str, variant: &str, strategy: &str) -> f64 {
    mean("routing", &[problem, variant, "gain", strategy])
}

fn gap(problem: &str, variant: &str) -> f64 {
    gain(problem, variant, "higher-order") - gain(problem, variant, "total-uncertainty")
}

fn sources() -> Vec<&'static str> {
    let real = ["cifar10h", "cifar10h-overconfident", "snli", "chaosnli"];
    ["johnson"].into_iter().chain(real.into_iter().filter(|_| data().is_some())).collect()
}

#[test]
fn claim_1_johnson_needs_the_decomposition() {
    assert!(gap("johnson", "recalibrated") > 0.1, "{}", gap("johnson", "recalibrated"));
    let short = gain("johnson", "recalibrated", "cell-optimal") - gain("johnson", "recalibrated", "higher-order");
    assert!((0.0..0.03).contains(&short), "{short}");
}

/// Nearly equal is too much to say: total uncertainty gets most of what there is to get, and little of it in Johnson's world.
#[test]
fn claim_2_three_steps_hardly_do() {
    let part = |problem: &str| {
        gain(problem, "recalibrated", "total-uncertainty") / gain(problem, "recalibrated", "higher-order")
    };
    assert!(part("three-steps") > 0.8, "{}", part("three-steps"));
    assert!(part("johnson") < 0.6, "{}", part("johnson"));
    assert!(gap("three-steps", "recalibrated").abs() < 0.1, "{}", gap("three-steps", "recalibrated"));
}

#[test]
fn claim_3_ten_cells_on_x_beat_thirty_on_predictions() {
    for strategy in ["cell-optimal", "higher-order"] {
        let (x, predictions) = (gain("piecewise", "raw-x", strategy), gain("piecewise", "raw", strategy));
        assert!(x > predictions, "{strategy}: {x} and {predictions}");
    }
    let height = |variant: &str| mean("routing", &["piecewise", variant, "mean_over_shares", "cell-optimal"]);
    assert!(height("recalibrated-x") < height("recalibrated"));
}

#[test]
fn claim_4_gaps_on_real_data_are_gaps_of_calibration() {
    if data().is_none() {
        eprintln!("*** SKIPPED: no data sets ***");
        return;
    }
    for dataset in Dataset::ALL {
        let (raw, served) = (gap(dataset.name(), "raw"), gap(dataset.name(), "recalibrated"));
        assert!(served.abs() <= raw.abs().max(0.01), "{}: {raw} before, {served} after", dataset.name());
    }
    let (over, plain) = (gap("cifar10h-overconfident", "raw"), gap("cifar10h", "raw"));
    assert!(over > 0.05 && over > plain + 0.03, "{over} and {plain}");
}

#[test]
fn claim_5_one_router_serves_every_loss() {
    for problem in sources() {
        let file = &results()["losses"]["problems"][problem];
        let own = file["static"].as_str().unwrap();
        let foreign: Vec<&String> = file["raw"].as_object().unwrap().keys().filter(|loss| *loss != own).collect();
        let at = |loss: &str, strategy: &str| mean("losses", &[problem, "raw", loss, "gain", strategy]);
        let ahead = |loss: &str| at(loss, "higher-order") - at(loss, "supervised-static");
        let abroad = foreign.iter().map(|loss| ahead(loss)).sum::<f64>() / foreign.len() as f64;
        assert!(abroad > ahead(own), "{problem}: {} at home, {abroad} abroad", ahead(own));
        // In Johnson's world it sees the input, and the cells see predictions only.
        assert!(abroad > 0.0 || problem == "johnson", "{problem}: {abroad} abroad");
        for loss in foreign {
            let short = at(loss, "cell-optimal") - at(loss, "higher-order");
            assert!(short < 0.1, "{problem}, {loss}: {short} below cell-optimal");
        }
    }
}

#[test]
fn claim_6_three_ways_are_no_worse_than_two() {
    for problem in sources() {
        for loss in ["brier", "cross-entropy"] {
            let list = |key: &str| {
                let list = &results()["three-way"]["problems"][problem]["raw-plugin"][loss][key]["mean"];
                list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<f64>>()
            };
            let (above, error) = (list("above_better_two_way"), list("standard_error"));
            for (above, error) in above.iter().zip(&error) {
                assert!(*above <= error + 1e-9, "{problem}, {loss}: {above} above, standard error {error}");
            }
            let paired = list("above_standard_error");
            assert!(above.iter().zip(&paired).any(|(above, error)| above < &-error), "{problem}, {loss}: {above:?}");
        }
    }
}

#[test]
fn claim_7_few_labels_need_shrinking() {
    for problem in sources().into_iter().filter(|name| ["johnson", "chaosnli"].contains(name)) {
        for loss in ["brier", "cross-entropy"] {
            let at = |estimator: &str, what: &str| mean("labels", &[problem, "labels", "3", loss, estimator, what]);
            let net = |estimator: &str| at(estimator, "over_routed") - at(estimator, "under_routed");
            assert!(net("plugin") > 0.02, "{problem}, {loss}: plugin {}", net("plugin"));
            assert!(net("shrink").abs() < net("plugin"), "{problem}, {loss}: shrink {}", net("shrink"));
            assert!(at("shrink", "error") < at("plugin", "error"), "{problem}, {loss}");
        }
    }
}

#[test]
fn the_pages_in_docs_are_what_the_results_say() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let published = load_results(&docs.join("results")).unwrap();
    assert_eq!(published.len(), Experiment::ALL.len());
    let page = std::fs::read_to_string(docs.join("paper.md")).unwrap();
    assert!(page == paper_page(&published), "docs/paper.md is not what docs/results give: publish them again");
    let page = std::fs::read_to_string(docs.join("beyond.md")).unwrap();
    assert!(page == beyond_page(&published), "docs/beyond.md is not what docs/results give: publish them again");
    let numbers = load_numbers(&docs.join("results")).unwrap();
    assert!(missing_numbers(&numbers).is_empty(), "no published results of {:?}", missing_numbers(&numbers));
    let page = std::fs::read_to_string(docs.join("numbers.md")).unwrap();
    assert!(
        page == numbers_page(&numbers),
        "docs/numbers.md is not what docs/results/numbers give: publish them again"
    );
    for name in shown_figures(&published) {
        assert!(docs.join("figures").join(format!("{name}.svg")).is_file(), "docs/figures/{name}.svg is not there");
    }
    assert!(claims(&published).iter().all(|claim| claim.verdict != Verdict::Unknown));
}

/// A forest that can be certified: with half of the rows and 25 cells for all losses it is between a tree and a forest. The bars are
/// what cells of a score for each loss reach, less what one set of cells for all losses costs.
#[test]
fn an_honest_forest_is_between_a_tree_and_a_forest() {
    for problem in ["johnson", "piecewise"] {
        for (loss, bar) in [
            ("brier", 0.91 - 0.08),
            ("cross-entropy", 0.91 - 0.08),
            ("zero-one", 0.97 - 0.17),
            ("fn-fp:fp=1,fn=4", 0.97 - 0.06),
            ("three-part", 0.96 - 0.2),
        ] {
            let gain = |name: &str| mean("forest", &[problem, "losses", loss, "gain", name]);
            let [tree, honest, forest] = ["tree", "honest-forest", "forest"].map(gain);
            println!("{problem}, {loss}: tree {tree:.3}, honest-forest {honest:.3} (bar {bar:.2}), forest {forest:.3}");
            assert!(honest >= bar && honest > tree && honest < forest, "{problem}, {loss}: {tree}, {honest}, {forest}");
        }
    }
}

/// Three labels an item, as published: the error of `shrink` beside the plug-in's.
#[test]
fn published_errors_of_few_labels_are_within_their_bars() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let published = load_results(&docs.join("results")).unwrap();
    for (problem, loss, bar) in [
        ("chaosnli", "brier", 0.35),
        ("chaosnli", "cross-entropy", 0.35),
        ("chaosnli", "zero-one", 0.35),
        ("cifar10h", "cross-entropy", 0.5),
    ] {
        let errors = &published["labels"]["problems"][problem]["labels"]["3"][loss];
        let error = |estimator: &str| errors[estimator]["error"]["mean"].as_f64().unwrap();
        let ratio = error("shrink") / error("plugin");
        println!("{problem}, {loss}: shrink / plugin {ratio:.3} (bar {bar})");
        assert!(ratio <= bar, "{problem}, {loss}: {ratio}");
    }
}

#[test]
fn every_experiment_is_drawn_for_every_problem() {
    let folder = tempfile::tempdir().unwrap();
    let files = draw(results(), folder.path()).unwrap();
    let problems = results().values().map(|file| file["problems"].as_object().unwrap().len());
    assert_eq!(files.len(), 2 * problems.sum::<usize>());
    for file in &files {
        let bytes = std::fs::read(file).unwrap();
        match file.extension().and_then(|name| name.to_str()) {
            // Every figure has a blue series: once in the legend and, if its data were found, once more.
            Some("svg") => {
                let svg = String::from_utf8(bytes).unwrap().to_lowercase();
                assert!(svg.starts_with("<svg") && svg.matches("#0072b2").count() >= 2, "{}", file.display());
            }
            _ => assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000, "{}", file.display()),
        }
    }
}
