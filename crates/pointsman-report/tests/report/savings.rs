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
