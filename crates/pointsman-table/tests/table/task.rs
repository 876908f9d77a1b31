//! Task files.

use pointsman::oracle::Aggregate;
use pointsman::task::Ties;
use pointsman::{Estimator, Loss, Oracle, Task};
use pointsman_table::{parse_task, read_task};

use crate::support::Folder;

#[test]
fn all_keys_of_a_task_are_read() {
    let text = r#"
        abstain = 0.35
        estimator = "plugin"
        ties = "paper"
        [loss]
        acts = ["ship", "hold", "ask"]
        cost = [[0, 3, 1], [1, 0, 2], [0.4, 0.4, 0.4]]
        [[route]]
        name = "expert"
        cost = 0.05
        kind = "bayes"
        [[route]]
        cost = 1
        [[route]]
        name = "jury"
        cost = 0.1
        kind = "panel"
        experts = 3
        aggregate = "laplace"
        smoothing = 0.5
        [[route]]
        name = "pair"
        cost = 0.1
        kind = "panel"
        experts = 2
        [[route]]
        name = "crowd"
        cost = 0.2
        kind = "panel:m=25,aggregate=plurality"
        [[route]]
        name = "gpt"
        cost = 0.02
        kind = "measured"
    "#;
    let cost = vec![vec![0.0, 3.0, 1.0], vec![1.0, 0.0, 2.0], vec![0.4; 3]];
    let task = Task::new(Loss::matrix(["ship", "hold", "ask"], cost).unwrap())
        .route("expert", Oracle::bayes(), 0.05)
        .and_then(|task| task.route("oracle", Oracle::bayes(), 1.0))
        .and_then(|task| task.route("jury", Oracle::panel(3, Aggregate::Laplace(0.5))?, 0.1))
        .and_then(|task| task.route("pair", Oracle::panel(2, Aggregate::Mean)?, 0.1))
        .and_then(|task| task.route("crowd", Oracle::panel(25, Aggregate::Plurality)?, 0.2))
        .and_then(|task| task.route("gpt", Oracle::measured(), 0.02))
        .and_then(|task| task.abstain(0.35))
        .unwrap()
        .estimator(Estimator::Plugin)
        .ties(Ties::Paper);
    assert_eq!(parse_task(text).unwrap(), task);
    let folder = Folder::new();
    assert_eq!(read_task(folder.file("task.toml", text)).unwrap(), task);
}

#[test]
fn cost_matrix_may_name_its_classes_in_either_form() {
    let cost = vec![vec![0.0, 3.0], vec![1.0, 0.0]];
    let wanted = Loss::matrix(["ship", "hold"], cost).unwrap().with_classes(["fine", "broken"]).unwrap();
    let order = ["fine".to_owned(), "broken".to_owned()];
    for text in [
        "[loss]\nclasses = [\"fine\", \"broken\"]\nacts = [\"ship\", \"hold\"]\ncost = [[0, 3], [1, 0]]",
        "[loss]\nacts = [\"ship\", \"hold\"]\ncost = [{fine = 0, broken = 3}, {broken = 0, fine = 1}]",
        "[loss]\nclasses = [\"broken\", \"fine\"]\nacts = [\"ship\", \"hold\"]\ncost = [{fine = 0, broken = 3}, {broken = 0, fine = 1}]",
    ] {
        let task = parse_task(text).unwrap();
        assert_eq!(task.for_classes(&order).unwrap().loss(), &wanted, "{text}");
    }
}

#[test]
fn missing_keys_have_defaults() {
    assert_eq!(parse_task("ties = \"frugal\"").unwrap(), Task::new(Loss::brier()));
    assert_eq!(parse_task("loss = \"zero-one\"").unwrap(), Task::new(Loss::zero_one()));
}

#[test]
fn an_empty_task_is_refused() {
    for text in ["", "\n  \n", "# loss = \"brier\"\n\t# nothing yet"] {
        let reason = parse_task(text).unwrap_err().to_string();
        assert!(reason.contains("the task is empty"), "{text:?}: {reason}");
    }
}

#[test]
fn invalid_tasks_are_refused_in_one_line() {
    for (text, wanted) in [
        ("loss = 3", "loss is a name"),
        ("loss = \"hinge\"", "unknown loss \"hinge\""),
        ("abstain = -1", "-1 is not a price"),
        ("abstain = nan", "NaN is not a price"),
        ("abstain = inf", "inf is not a price"),
        ("abstain = \"0.3\"", "line 1"),
        ("budget = 1.5", "budget: 1.5 is not a share"),
        ("bugdet = 0.3", "unknown field `bugdet`"),
        ("estimator = \"best\"", "unknown estimator \"best\""),
        ("ties = \"best\"", "unknown tie rule"),
        ("\n\nabstain = = 3", "line 3"),
        ("[[route]]\nname = \"x\"", "missing field `cost`"),
        ("[[route]]\ncost = 1\n[[route]]\ncost = 2", "two routes are called \"oracle\""),
        ("[[route]]\ncost = 1\nname = \"a,b\"", "route name \"a,b\""),
        ("[[route]]\ncost = 1\nkind = \"psychic\"", "unknown kind of oracle \"psychic\""),
        ("[[route]]\ncost = 1\nkind = \"panel\"", "route \"oracle\": a panel needs experts"),
        ("[[route]]\ncost = 1\nkind = \"panel\"\nexperts = 0", "from 1 to 1000"),
        ("[[route]]\ncost = 1\nkind = \"panel\"\nexperts = 1000000", "from 1 to 1000"),
        ("[[route]]\ncost = 1\nkind = \"panel\"\nexperts = -3", "line 4"),
        ("[[route]]\ncost = 1\nkind = \"panel\"\nexperts = 2.5", "line 4"),
        ("[[route]]\ncost = 1\nkind = \"panel\"\nexperts = 3\naggregate = \"median\"", "unknown aggregate \"median\""),
        ("[[route]]\ncost = 1\nkind = \"panel\"\nexperts = 3\nsmoothing = 1", "has no smoothing"),
        (
            "[[route]]\ncost = 1\nkind = \"panel\"\nexperts = 3\naggregate = \"laplace\"\nsmoothing = nan",
            "smoothing: NaN",
        ),
        ("[[route]]\ncost = 1\nexperts = 3", "are for kind = \"panel\""),
        ("[[route]]\ncost = 1\nkind = \"measured\"\naggregate = \"mean\"", "are for kind = \"panel\""),
        ("loss = \"cross-entropy\"\n[[route]]\ncost = 1\nkind = \"panel:m=3\"", "use aggregate=laplace"),
        ("[loss]\nacts = [\"a\"]\ncost = [[0, 1], [1, 0]]", "1 acts but 2 rows"),
        ("[loss]\nacts = [\"a\", \"b\"]\ncost = [[0, 1], [1]]", "row of \"b\" has 1 costs"),
        ("[loss]\nacts = [\"a\", \"a\"]\ncost = [[0, 1], [1, 0]]", "given twice"),
        ("[loss]\nacts = [\"a\", \"b\"]\ncost = [[0, -1], [1, 0]]", "has -1"),
        ("[loss]\nacts = [\"a\", \"b\"]\ncost = [[0, nan], [1, 0]]", "has NaN"),
        (
            "[loss]\nacts = [\"a\", \"b\"]\ncost = [[0, 1],\n  [\"2\", 0]]",
            "line 4: cost: row 2, column 1 is \"2\", not a number: write 2, without quotes",
        ),
        ("[loss]\nacts = []\ncost = []", "0 acts"),
        ("[loss]\nacts = [\"a\"]\nclasses = [\"x\"]\ncost = [[0, 1]]", "1 classes (x) but 2 columns"),
        ("[loss]\nacts = [\"a\"]\nclasses = [\"x\", \"x\"]\ncost = [[0, 1]]", "class \"x\" is empty or given twice"),
        (
            "[loss]\nacts = [\"a\", \"b\"]\ncost = [{x = 0, y = 1}, {x = 0, z = 1}]",
            "\"b\" are for x, z, those of other acts are for x, y",
        ),
        (
            "[loss]\nacts = [\"a\", \"b\", \"c\"]\ncost = [{x = 0, z = 1}, {x = 0, y = 1}, {x = 0, y = 1}]",
            "line 3: cost matrix: the costs of \"a\" are for x, z, those of other acts are for x, y",
        ),
        ("[loss]\nacts = [\"a\", \"b\"]\ncost = [{x = 0, y = 1}, [0, 1]]", "\"b\" name no classes"),
        ("budget = 20", "for 20 % write 0.2"),
        ("budget = \"20%\"", "expected a number: write 0.2, without quotes"),
        ("abstain = \"0.3\"", "expected a number: write 0.3, without quotes"),
        ("route.expert = 0.1", "a table, expected a list: write [[route]] with name and cost"),
        (
            "[[route]]\ncost = 0,30 # EUR",
            "line 2: unexpected key or value, expected newline, `#`: use a decimal point, cost = 0.30",
        ),
        ("cap = 20", "give it as --cap to decide, evaluate or compare"),
        ("[loss]\nacts = [\"a\"]\ncost = [{x = 0, y = \"z\"}]", "line 3: cost: row 1, class y is \"z\", not a number"),
    ] {
        let reason = parse_task(text).unwrap_err().to_string();
        assert!(reason.contains(wanted) && !reason.contains('\n'), "{text:?}: {reason}");
    }
}
