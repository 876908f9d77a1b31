//! Router files: a loaded router answers every task and round-trips.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman::{CellId, Estimator, Loss, Oracle, Partition, Router, Task};
use pointsman_fuzz::recipe::served;
use pointsman_fuzz::seal::Parts;
use pointsman_fuzz::{check_message, prepare, scratch, table};
use pointsman_table::{load_router, parse_router, save_router};

/// Valid routers, one per kind of axis.
static BASES: LazyLock<Vec<Parts>> = LazyLock::new(|| {
    let base = |(classes, partition): (usize, &str)| {
        let partition: Partition = partition.parse().expect("a partition");
        let learns = partition.factors().iter().any(|factor| factor.learns());
        let rows = if learns { 100 } else { 12 };
        let table = table(classes, rows);
        let oracle = table.predictions().to_vec();
        let table = table
            .with_oracle("gpt", oracle)
            .and_then(|t| t.with_weights((0..rows).map(|i| (1 + i % 12) as f64).collect()));
        let router = Router::calibrate(&table.expect("a table"), &partition).expect("a router");
        let path = scratch("base.safetensors");
        save_router(&path, &router).expect("a scratch file");
        Parts::of(&std::fs::read(&path).expect("a scratch file")).expect("what was just written")
    };
    [
        (3, "top-class:3"),
        (2, "confidence:4"),
        (3, "level-sets"),
        (3, "features:x_length=3"),
        (2, "top-class:2*features:x_length=2"),
        (3, "level-sets*confidence:2"),
        (2, "honest-forest:2"),
        (2, "forest:2"),
    ]
    .map(base)
    .into()
});

fuzz_target!(|data: &[u8]| {
    prepare();
    let Some(file) = served(data, &BASES) else { return };
    match parse_router(&file) {
        Ok(router) => check(&router, data.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))),
        Err(error) => check_message(&error.to_string()),
    }
});

fn check(router: &Router, choice: u8) {
    let classes = router.classes().len();
    let cells = router.cells().count();
    let path = scratch("router.safetensors");
    save_router(&path, router).expect("a router that was read can be written");
    let again = load_router(&path).expect("what was written can be read");
    assert_eq!(&again, router, "a router changed on its way through a file");
    for cell in (0..cells.min(200) as u32).map(CellId) {
        let _ = router.cells().name(cell, router.classes());
        let _ = router.mixture(cell).centroid();
    }
    let matrix = (0..classes).map(|act| (0..classes).map(|class| f64::from(act != class)).collect()).collect();
    let acts = (0..classes).map(|act| format!("act {act}"));
    let losses = [
        Loss::brier(),
        Loss::cross_entropy(),
        Loss::spherical(),
        Loss::zero_one(),
        Loss::three_part(),
        "asymmetric:2".parse().expect("a loss"),
        "fn-fp:fp=1,fn=3".parse().expect("a loss"),
        Loss::matrix(acts, matrix).expect("a cost matrix"),
    ];
    let estimators = [Estimator::Shrink, Estimator::Plugin, Estimator::Npmle, Estimator::Dirichlet];
    let mut tasks = vec![(&losses[0], Estimator::Shrink)];
    // Checking every pair is slow for many cells or classes, and shows nothing new there.
    if cells * classes <= 2000 {
        tasks.push((&losses[usize::from(choice % 8)], estimators[usize::from(choice / 8 % 4)]));
        tasks.push((&losses[usize::from(choice / 32)], estimators[usize::from(choice % 2)]));
    }
    for (loss, estimator) in tasks {
        let task = Task::new(loss.clone()).route("expert", Oracle::bayes(), 0.05).and_then(|task| task.abstain(0.3));
        match router.policy(&task.expect("a task").estimator(estimator)) {
            Ok(policy) => decide(router, &policy),
            Err(_) => assert!(loss.check_classes(classes).is_err(), "no policy for {loss}"),
        }
    }
}

fn decide(router: &Router, policy: &pointsman::Policy) {
    let table = router.rows();
    let bound = policy.task().loss().bound();
    let judge = |prediction: &[f64], features: &[f64]| {
        let decision = policy.decide_with(prediction, features).expect("a good row is decided");
        assert!(decision.rows() > 0);
        assert!((-1e-6..=bound + 1e-6).contains(&decision.total()), "a total of {}", decision.total());
        for cost in decision.costs().iter().chain(decision.costs_high()) {
            assert!(cost.is_finite(), "a cost of {cost}");
        }
        assert!(decision.margin() >= 0.0);
        let _ = (decision.action().to_string(), decision.level(), decision.support(), decision.served());
    };
    for row in 0..table.rows().min(40) {
        judge(&table.prediction(row), table.features(row));
    }
    let classes = router.classes().len();
    let features = vec![-1e300; router.cells().features().len()];
    judge(&vec![1.0 / classes as f64; classes], &features);
    let mut sure = vec![0.0; classes];
    sure[classes - 1] = 1.0;
    judge(&sure, &features);
    let singles: Vec<f32> = sure.iter().map(|x| *x as f32).collect();
    assert_eq!(
        policy.decide_with(&singles, &features).expect("a good row is decided").cell(),
        policy.decide_with(&sure, &features).expect("a good row is decided").cell()
    );
    assert!(policy.decide_with(&sure[1..], &features).is_err());
}
