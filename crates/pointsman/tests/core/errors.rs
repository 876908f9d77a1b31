//! Refusals that callers tell apart: by the variant and its fields, not by the message.

use pointsman::error::{Error, PartitionError, RouterError, TableError, TaskError, ValueError};
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

fn table(classes: [&str; 2]) -> Table {
    let probs = vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.4, 0.6];
    Table::new(classes, probs).unwrap().with_votes(vec![5, 0, 2, 3, 0, 5, 1, 4]).unwrap()
}

fn router() -> Router {
    Router::calibrate(&table(["no", "yes"]), &Partition::top_class(2)).unwrap()
}

fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap()
}

#[test]
fn bad_values_carry_row_column_and_value() {
    let Err(Error::Value { row: 1, column, reason: ValueError::Probability { value } }) =
        Table::new(["no", "yes"], vec![0.5, 0.5, -0.5, 1.5])
    else {
        panic!("-0.5 is not a probability")
    };
    assert_eq!((column.as_str(), value), ("prob_no", -0.5));
    let refused = Table::new(["no", "yes"], vec![0.5, 0.25]).unwrap_err();
    assert!(matches!(refused, Error::Value { reason: ValueError::ProbabilitySum { sum: 0.75 }, .. }), "{refused:?}");
    let refused = table(["no", "yes"]).with_votes(vec![1, 0, 0, 0, 1, 0, 1, 0]).unwrap_err();
    assert!(matches!(refused, Error::Value { row: 1, reason: ValueError::NoVotes, .. }), "{refused:?}");
}

#[test]
fn tables_that_do_not_fit_carry_the_names_on_both_sides() {
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let refused = router().policy(&task()).unwrap().replay(&table(["yes", "no"])).unwrap_err();
    let wanted = TableError::OtherClasses { table: names(["yes", "no"]), router: names(["no", "yes"]) };
    assert_eq!(refused, wanted.into());
    let asked: Partition = "features:x_length=4".parse().unwrap();
    let refused = Router::calibrate(&table(["no", "yes"]), &asked).unwrap_err();
    let wanted = TableError::NoFeature { feature: "length".to_owned(), features: Vec::new() };
    assert_eq!(refused, wanted.into());
    let measured = Task::new(Loss::brier()).route("model", Oracle::measured(), 0.05).unwrap();
    let Err(Error::Table(TableError::NoAnswers { route, oracles, .. })) = router().policy(&measured) else {
        panic!("a measured oracle without answers")
    };
    assert!(route == "model" && oracles.is_empty());
}

#[test]
fn tasks_that_do_not_fit_say_what_to_make_anew() {
    let policy = router().policy(&task()).unwrap();
    let other_loss = Task::new(Loss::zero_one()).route("expert", Oracle::bayes(), 0.05).unwrap();
    assert_eq!(policy.reprice(&other_loss).unwrap_err(), TaskError::OtherPolicy.into());
    let replay = router().policy(&other_loss).unwrap().replay(&table(["no", "yes"])).unwrap();
    assert_eq!(replay.evaluate(&policy).unwrap_err(), TaskError::OtherReplay.into());
    let limits = task().budget(0.5).unwrap().target_loss(0.1);
    assert_eq!(limits.unwrap_err(), TaskError::MixedLimits.into());
    let refused = task().reprice_route("export", 0.1).unwrap_err();
    let known = vec!["expert".to_owned()];
    assert_eq!(refused, TaskError::UnknownName { what: "route", name: "export".to_owned(), known }.into());
}

#[test]
fn unknown_names_and_bad_numbers_carry_what_was_given() {
    let refused = "hinge".parse::<Loss>().unwrap_err();
    assert!(matches!(refused, Error::Task(TaskError::Unknown { what: "loss", .. })), "{refused:?}");
    let refused = "orchard:3".parse::<Partition>().unwrap_err();
    assert_eq!(refused, PartitionError::Unknown { text: "orchard:3".to_owned() }.into());
    let refused = task().abstain(-1.0).unwrap_err();
    assert!(matches!(refused, Error::Task(TaskError::OutOfRange { value: -1.0, .. })), "{refused:?}");
}

/// Errors of the crates below are kept whole.
#[test]
fn errors_of_trees_and_transport_keep_their_type() {
    let error = pointsman_trees::Error::TooDeep;
    assert_eq!(Error::from(error), RouterError::Trees(error).into());
    assert!(Error::from(error).to_string().starts_with("the partition's trees are deeper"));
}
