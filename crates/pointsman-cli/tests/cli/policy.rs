//! Policy files: `compile` writes them, `decide` takes them in place of a router, and `check` describes them.

use std::fs;
use std::path::Path;

use crate::{parse_csv, workshop};

const TASK: &str = "--route expert=0.05 --abstain 0.3";

/// Runs a command line whose words are separated by any number of spaces.
fn line(folder: &Path, line: &str) -> crate::Run {
    crate::line(folder, &line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What is said of a command that is refused.
fn refused(folder: &Path, text: &str) -> String {
    let run = line(folder, text);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{text}: {run:?}");
    run.stderr
}

#[test]
fn policy_decides_as_its_router() {
    let folder = workshop();
    let path = folder.path();
    line(path, "calibrate calibration.csv --partition forest:10 -o forest.safetensors").ok();
    for router in ["router", "forest"] {
        for task in [TASK, "--loss zero-one --route expert=0.02 --budget 0.15", "--route one=0.02,panel:m=1"] {
            line(path, &format!("compile {router}.safetensors {task} -o policy.safetensors")).ok();
            let decide = |file: &str, task: &str| {
                line(path, &format!("decide {file}.safetensors heldout.csv {task} --keep id -o -")).ok().stdout
            };
            let expected = decide(router, task);
            assert_eq!(decide("policy", ""), expected, "{router} {task}");
            fs::remove_file(path.join("policy.safetensors")).unwrap();
            assert!(expected.contains("route:"), "{router} {task}");
        }
    }
}

#[test]
fn prices_and_routes_of_a_policy_can_be_changed() {
    let folder = workshop();
    let path = folder.path();
    line(path, &format!("compile router.safetensors {TASK} -o policy.safetensors")).ok();
    let decide = |file: &str, task: &str| {
        line(path, &format!("decide {file}.safetensors heldout.csv {task} --keep id -o -")).ok().stdout
    };
    for task in ["--route expert=0.2", "--abstain 0.1", "--route expert=0.01 --route other=0.005", "--ties paper"] {
        let whole = format!("{TASK} {task}");
        let both = if task.contains("expert") { format!("{task} --abstain 0.3") } else { whole.clone() };
        let both = if task.contains("abstain") { "--route expert=0.05 --abstain 0.1".to_owned() } else { both };
        assert_eq!(decide("policy", task), decide("router", &both), "{task}");
    }
    assert_eq!(decide("policy", "--without-route expert"), decide("router", "--abstain 0.3"));
    let few = "--route expert=0.01 --abstain 0.9 --cap expert=7";
    let capped = decide("policy", few);
    assert_eq!(capped, decide("router", few));
    let (_, rows) = parse_csv(&capped);
    assert_eq!(rows.iter().filter(|row| row[3] == "route:expert").count(), 7, "{capped}");
    let cost = |cap: &str| {
        let few = "--route expert=0.01 --abstain 0.9";
        line(path, &format!("decide policy.safetensors heldout.csv {few}{cap} --json")).ok().json()
    };
    let (plain, capped) = (cost(""), cost(" --cap expert=7"));
    let of_cap = capped["capped"]["cost"].as_f64().unwrap();
    assert!(of_cap > 0.0 && capped["capped"]["standard_error"].is_null(), "{capped}");
    let [plain, capped] = [plain, capped].map(|it| it["expected_cost"]["router"].as_f64().unwrap());
    assert!((capped - plain - of_cap).abs() < 1e-9, "{plain} {capped} {of_cap}");
    let run = line(path, &format!("decide policy.safetensors heldout.csv {few} -o few.csv")).ok();
    assert!(
        run.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains("by the estimates that chose the actions"),
        "{run:?}"
    );
    let unknown = refused(path, "decide policy.safetensors heldout.csv --without-route nobody");
    assert!(unknown.contains("no route is called \"nobody\""), "{unknown}");
}

#[test]
fn what_needs_calibration_rows_is_refused_with_the_command_for_it() {
    let folder = workshop();
    let path = folder.path();
    line(path, &format!("compile router.safetensors {TASK} -o policy.safetensors")).ok();
    for (flags, said) in [
        (
            "--loss zero-one",
            "pointsman compile ROUTER --loss zero-one --route expert=PRICE --abstain PRICE -o policy-2.safetensors",
        ),
        ("--estimator plugin", "--route expert=0.05 --abstain 0.3 --estimator plugin -o policy-2.safetensors"),
        ("--route jury=0.1,panel:m=3", "pointsman compile ROUTER --route expert=0.05 --route jury=0.1,panel:m=3"),
        ("--target-loss 0.4", "pointsman compile ROUTER --route expert=0.05 --abstain 0.3 --target-loss 0.4"),
        ("--confidence 0.95", "--confidence needs them"),
        ("--explain 3", "--explain needs them"),
    ] {
        let error = refused(path, &format!("decide policy.safetensors heldout.csv {flags}"));
        assert!(error.contains(said) && error.contains("policy.safetensors"), "{flags}: {error}");
    }
    for command in ["show policy.safetensors", "evaluate policy.safetensors heldout.csv --route 0.05"] {
        let error = refused(path, command);
        assert!(error.contains("is a policy, which has no calibration rows"), "{command}: {error}");
    }
    let other = "id,prob_cat,prob_dog\nq,0.5,0.5\n";
    fs::write(path.join("other.csv"), other).unwrap();
    let error = refused(path, "decide policy.safetensors other.csv");
    assert!(error.contains("other.csv") && error.contains("owl"), "{error}");
}

#[test]
fn check_describes_a_policy() {
    let folder = workshop();
    let path = folder.path();
    let compiled = line(path, &format!("compile router.safetensors {TASK} -o policy.safetensors --json")).ok().json();
    let checked = line(path, "check policy.safetensors --json").ok().json();
    assert_eq!(compiled, checked);
    let hash = checked["router_sha256"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    let shown = line(path, &format!("show router.safetensors {TASK} --json")).ok().json();
    assert_eq!(checked["promise"]["cost"], shown["promise"]["cost"]);
    assert_eq!(checked["task"]["routes"][0]["cost"], 0.05);
    let words = line(path, "check policy.safetensors").ok().stdout;
    for said in ["can be used: a policy without calibration rows", "expert 0.05", "brier", &hash[..20]] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let other = refused(path, "check policy.safetensors --classes cat,dog");
    assert!(other.contains("other classes"), "{other}");
}

#[test]
fn equal_tasks_have_equal_hashes() {
    let folder = workshop();
    let path = folder.path();
    let hash = |flags: &str| {
        line(path, &format!("compile router.safetensors {flags} -o p.safetensors --json")).ok().json()["task_sha256"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let task = "abstain = 0.50\nloss = 'brier'\nroute = [{ cost = 5e-2, name = 'expert' }]\n";
    fs::write(path.join("same.toml"), task).unwrap();
    let own = hash("--route expert=0.05 --abstain 0.5");
    assert_eq!(own.len(), 64);
    assert_eq!(own, hash("--task same.toml"));
    assert_ne!(own, hash("--task same.toml --route expert=0.06"));
    assert_ne!(own, hash("--task same.toml --loss zero-one"));
}

#[test]
fn policies_do_not_replace_other_files() {
    let folder = workshop();
    let path = folder.path();
    let error = refused(path, &format!("compile router.safetensors {TASK} -o heldout.csv"));
    assert!(error.contains("is a table, which would be lost"), "{error}");
    line(path, &format!("compile router.safetensors {TASK} -o policy.safetensors")).ok();
    line(path, "compile router.safetensors --route 0.1 -o policy.safetensors").ok();
    let error = refused(path, "calibrate calibration.csv -o policy.safetensors");
    assert!(error.contains("is a policy, which would be lost"), "{error}");
}

#[test]
fn summary_of_a_policy_file_has_the_corrected_cost() {
    let folder = workshop();
    let path = folder.path();
    line(path, &format!("compile router.safetensors {TASK} -o policy.safetensors")).ok();
    let decide = |flags: &str| line(path, &format!("decide {flags} --json")).ok().json();
    let wanted = line(path, "check policy.safetensors --json").ok().json()["promise"].clone();
    let found = decide("policy.safetensors heldout.csv");
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&found["promise"][key], value, "{key}: {found}");
    }
    let said = line(path, "decide policy.safetensors heldout.csv -o out.csv").ok().stderr;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = said.split_once("corrected on calibration rows left out, for traffic like them: ").unwrap().1;
    let said: f64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!((said - wanted["cost"].as_f64().unwrap()).abs() < 1e-3, "{said} and {wanted}");
    // At other prices, and where caps move queries, nothing is corrected; with a router everything is.
    line(path, "compile router.safetensors --route expert=0.02 --abstain 0.6 -o asking.safetensors").ok();
    for flags in ["policy.safetensors --route expert=0.01", "asking.safetensors --cap expert=3"] {
        let found = decide(&format!("{flags} heldout.csv"));
        assert!(found["promise"].is_null() && crate::keys(&found).contains(&"promise"), "{flags}: {found}");
    }
    let found = decide(&format!("router.safetensors heldout.csv {TASK}"));
    assert!(!crate::keys(&found).contains(&"promise"), "{found}");
}
