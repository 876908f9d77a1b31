//! The rules that savings are stated against.

use pointsman::policy::{CapSize, Caps};
use pointsman::{Loss, Oracle, Partition, Router, Task};
use pointsman_report::{Inputs, Report};

use crate::world::table;

/// Always routing to one route is a rule that anybody may follow, unless a cap or a limit forbids it.
#[test]
fn savings_are_stated_against_routes_whose_cap_admits_all_rows() {
    let classes = ["a", "b", "c"];
    let task = Task::new(Loss::brier()).route("one", Oracle::bayes(), 0.05).unwrap();
    let task = task.route("two", Oracle::bayes(), 0.06).unwrap();
    let router = Router::calibrate(&table(&classes, 400, 3, 1), &Partition::top_class(4)).unwrap();
    let rows = table(&classes, 300, 3, 2);
    let against = |task: &Task, cap: Option<CapSize>| {
        let policy = router.policy(task).unwrap();
        let mut replay = policy.replay(&rows).unwrap();
        if let Some(size) = cap {
            replay = replay.with_caps(Caps::new(task, [("one", size)]).unwrap(), &rows, None).unwrap();
        }
        let inputs = Inputs { router: &router, policy: &policy, table: &rows, replay: &replay };
        let line = Report::new(&inputs, &[], None).unwrap().savings_line().unwrap();
        ["one", "two"].map(|route| line.contains(&format!("against always routing to {route}")))
    };
    assert_eq!(against(&task, None), [true, true]);
    assert_eq!(against(&task, Some(CapSize::Percent(5.0))), [false, true]);
    assert_eq!(against(&task, Some(CapSize::Queries(299))), [false, true]);
    assert_eq!(against(&task, Some(CapSize::Queries(300))), [true, true]);
    assert_eq!(against(&task.clone().budget(0.5).unwrap(), None), [false, false]);
}

/// Within a cap no threshold is judged, so that the hardest rule is the cheapest action that may always be taken. Here an oracle saves the
/// error of the prediction, 0.16 × 2 × 3 / 18 = 0.053 Brier points on average, and costs 0.02.
#[test]
fn headline_is_about_the_cheapest_rule() {
    let classes = ["a", "b", "c"];
    let task = Task::new(Loss::brier()).route("one", Oracle::bayes(), 0.01).unwrap();
    let task = task.route("two", Oracle::bayes(), 0.02).unwrap().abstain(2.0).unwrap();
    let router = Router::calibrate(&table(&classes, 400, 3, 1), &Partition::top_class(4)).unwrap();
    let rows = table(&classes, 2000, 3, 2);
    let policy = router.policy(&task).unwrap();
    let caps = Caps::new(&task, [("one", CapSize::Percent(5.0))]).unwrap();
    let replay = policy.replay(&rows).unwrap().with_caps(caps, &rows, None).unwrap();
    let report = Report::new(&Inputs { router: &router, policy: &policy, table: &rows, replay: &replay }, &[], None);
    let headline = report.unwrap().headline();
    assert!(headline.contains("always route to two"), "{headline}");
}
