//! Small tables and their reports.

use pointsman::diagnose::Annotations;
use pointsman::oracle::Aggregate;
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
use pointsman_report::{Inputs, Report};
use pointsman_testing::Lcg;

/// Rows with `k` labels each; the weak prediction is a blurred truth.
pub(crate) fn table(classes: &[&str], rows: usize, k: u32, seed: u64) -> Table {
    let mut random = Lcg::new(seed);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let mut point = || {
            let raw: Vec<f64> = classes.iter().map(|_| -random.uniform().max(1e-12).ln()).collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter().map(|x| x / sum).collect::<Vec<f64>>()
        };
        let (truth, noise) = (point(), point());
        probs.extend(truth.iter().zip(&noise).map(|(t, n)| 0.6 * t + 0.4 * n));
        let mut counts = vec![0; classes.len()];
        for _ in 0..k {
            let mut u = random.uniform();
            let class = truth.iter().position(|p| {
                u -= p;
                u < 0.0
            });
            counts[class.unwrap_or(classes.len() - 1)] += 1;
        }
        votes.extend(counts);
    }
    let table = Table::new(classes.iter().copied(), probs.clone()).unwrap().with_votes(votes).unwrap();
    table.with_oracle("gpt", probs).unwrap()
}

/// A task with oracles of every kind.
pub(crate) fn oracles_of_every_kind() -> Task {
    let panel = |m| Oracle::panel(m, Aggregate::Mean).unwrap();
    let task = Task::new(Loss::brier()).route("one", panel(1), 0.02).unwrap().route("nine", panel(9), 0.1).unwrap();
    let task = task.route("gpt", Oracle::measured(), 0.01).unwrap().route("expert", Oracle::bayes(), 0.2).unwrap();
    task.abstain(0.4).unwrap()
}

pub(crate) fn brier() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.4).unwrap()
}

/// A report with all its detail.
pub(crate) fn report_of(classes: &[&str], k: u32, task: &Task) -> Report {
    let router = Router::calibrate(&table(classes, 400, k, 1), &Partition::top_class(4)).unwrap();
    let table = table(classes, 300, k, 2);
    let policy = router.policy(task).unwrap();
    let replay = policy.replay(&table).unwrap();
    let inputs = Inputs { router: &router, policy: &policy, table: &table, replay: &replay };
    let error = router.calibration_error(&table, &policy, 5, 0, || ()).unwrap();
    let sweep = "abstain=0.1:0.5:0.1".parse().unwrap();
    Report::new(&inputs, &[sweep], Some(error)).unwrap().detailed(&inputs, || ()).unwrap()
}

/// Class names that break careless quoting.
pub(crate) const HOSTILE: [&str; 3] =
    ["</script><script>alert(1)//", "\"'&<b>$x^2$\u{2028}{{data}} ünï💥", "an endless name"];

/// The hostile names, one of them very long.
pub(crate) fn hostile() -> Vec<String> {
    HOSTILE.iter().map(|name| if name.starts_with("an") { name.repeat(300) } else { (*name).to_owned() }).collect()
}

/// The rows with one more label each: the existing labels are attributed to four annotators in turn, and a fifth always
/// gives the first class.
pub(crate) fn with_names(drawn: &Table) -> (Table, Annotations) {
    let (mut rows, mut votes) = (Vec::new(), Vec::new());
    for row in 0..drawn.rows() {
        let counts = drawn.votes(row).unwrap().counts();
        let given = (0..2_u32).flat_map(|class| vec![class; counts[class as usize] as usize]);
        let mut labels: Vec<(u32, u32)> = given.enumerate().map(|(i, class)| ((i + row) as u32 % 4, class)).collect();
        labels.push((4, 0));
        rows.push(labels);
        votes.extend([counts[0] + 1, counts[1]]);
    }
    let probs = (0..drawn.rows()).flat_map(|row| drawn.prediction(row).to_vec()).collect();
    let table = Table::new(drawn.classes().to_vec(), probs).unwrap().with_votes(votes).unwrap();
    (table, Annotations::new(["a", "b", "c", "d", "e"], rows).unwrap())
}
