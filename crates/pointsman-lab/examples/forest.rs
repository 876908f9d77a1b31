//! What a forest gains: `cargo run --release -p pointsman-lab --example forest [-- NAME…]`.
//!
//! One table a world and data set: the routing gain (0 random, 1 point-wise optimal) by total uncertainty, by the paper's cells, by one
//! honest tree, by one forest, and by a supervised router trained once and trained anew for each loss. The forest is grown once.
//! Data sets that are not there are left out and named.

use std::path::Path;

use pointsman::{Oracle, Partition, Router, Task};
use pointsman_lab::{DATA_VARIABLE, DataFolder, Dataset, Problem, Settings, Supervised, World};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|other| other == name);
    let settings = Settings { test_rows: 100_000, ..Settings::quick("target/forest") };
    for world in World::ALL.into_iter().filter(|world| is_wanted(world.name())) {
        print(world.name(), &Problem::of_world(world, 0, &settings)?)?;
    }
    // Beside the repository, wherever the command is run from.
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = DataFolder::find(std::env::var_os(DATA_VARIABLE).is_none().then_some(&*beside));
    for dataset in Dataset::ALL.into_iter().filter(|dataset| is_wanted(dataset.name())) {
        if data.missing(&[dataset]).is_empty() {
            print(dataset.name(), &data.load(dataset)?)?;
        } else {
            eprintln!("SKIPPED: no {}.npz", dataset.name());
        }
    }
    Ok(())
}

fn print(name: &str, problem: &Problem) -> Outcome<()> {
    let (calibration, test) = (&problem.calibration, &problem.test);
    let cells = Router::calibrate(calibration, &problem.partition)?;
    let tree = Router::calibrate(calibration, &Partition::tree())?;
    let forest = Router::calibrate(calibration, &Partition::forest(200))?;
    println!("| {name} | total uncertainty | {} | tree | forest:200 | static | retrained |", problem.partition);
    println!("|---|---|---|---|---|---|---|");
    let mut fixed: Option<Vec<f64>> = None;
    for loss in &problem.losses {
        let task = Task::new(loss.clone()).route("oracle", Oracle::bayes(), 0.05)?;
        let gain = |router: &Router, ranking: &str| -> Outcome<f64> {
            let policy = router.policy(&task)?;
            let evaluation = policy.replay(test)?.evaluate(&policy)?;
            Ok(evaluation.gain.get(ranking).copied().flatten().unwrap_or(f64::NAN))
        };
        print!("| {loss} | {:.3}", gain(&cells, "total-uncertainty")?);
        for router in [&cells, &tree, &forest] {
            print!(" | {:.3}", gain(router, "higher-order")?);
        }
        let policy = cells.policy(&task)?;
        let replay = policy.replay(test)?;
        let retrained = Supervised::fit(calibration, &policy.replay(calibration)?, 100)?.scores(test);
        let anew = replay.routing_curve(&retrained)?.gain.unwrap_or(f64::NAN);
        let once = replay.routing_curve(fixed.get_or_insert(retrained))?.gain.unwrap_or(f64::NAN);
        println!(" | {once:.3} | {anew:.3} |");
    }
    println!();
    Ok(())
}
