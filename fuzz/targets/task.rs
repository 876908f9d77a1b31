//! Task files and all other texts that users write: a parsed value prints as text that parses to the same value.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman::evaluate::Sweep;
use pointsman::task::Ties;
use pointsman::{Estimator, Loss, Oracle, Partition, Router};
use pointsman_fuzz::{check_message, prepare, table};
use pointsman_table::{Columns, Filter, Format, parse_task};

static ROUTERS: LazyLock<[Router; 2]> = LazyLock::new(|| {
    [2, 3].map(|classes| Router::calibrate(&table(classes, 40), &Partition::top_class(2)).expect("a router"))
});

fuzz_target!(|data: &[u8]| {
    prepare();
    let Ok(text) = std::str::from_utf8(data) else { return };
    task(text);
    round_trip::<Loss>(text);
    round_trip::<Partition>(text);
    round_trip::<Estimator>(text);
    round_trip::<Ties>(text);
    round_trip::<Oracle>(text);
    round_trip::<Format>(text);
    round_trip::<Filter>(text);
    if let Err(error) = text.parse::<Columns>() {
        check_message(&error.to_string());
    }
    match text.parse::<Sweep>() {
        Ok(sweep) => {
            assert!((1..=10_000).contains(&sweep.prices.len()), "{} prices", sweep.prices.len());
            assert!(sweep.prices.is_sorted() && sweep.prices.iter().all(|x| *x >= 0.0), "{sweep:?}");
        }
        Err(error) => check_message(&error.to_string()),
    }
});

fn round_trip<T: FromStr<Err: Display> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let said = value.to_string();
            match said.parse::<T>() {
                Ok(again) => assert_eq!(again, value, "{text:?} became {said:?}"),
                Err(error) => panic!("{text:?} became {said:?}, which is not understood: {error}"),
            }
        }
        Err(error) => check_message(&error.to_string()),
    }
}

fn task(text: &str) {
    let task = match parse_task(text) {
        Ok(task) => task,
        Err(error) => return check_message(&error.to_string()),
    };
    let loss = task.loss();
    if loss.acts().is_none() {
        assert_eq!(loss.to_string().parse::<Loss>().as_ref(), Ok(loss));
    }
    let (bound, acts) = (loss.bound(), loss.acts().map_or(0, <[String]>::len));
    // A matrix of the router's number of classes, or any other loss.
    for router in ROUTERS.iter().filter(|router| loss.check_classes(router.classes().len()).is_ok()) {
        // Unmeasured oracles have no cost, and crowds only take time.
        let is = |kind: &dyn Fn(&Oracle) -> bool| task.routes().iter().any(|route| kind(route.oracle()));
        if is(&|oracle| matches!(oracle, Oracle::Panel { experts, .. } if *experts > 30)) {
            continue;
        }
        let policy = match router.policy(&task) {
            Ok(policy) => policy,
            Err(error) => {
                assert!(
                    is(&|oracle| *oracle == Oracle::Measured),
                    "a task for as many classes makes a policy: {error}"
                );
                check_message(&error.to_string());
                continue;
            }
        };
        for row in 0..router.rows().rows() {
            let prediction = &*router.rows().prediction(row);
            let decision = policy.decide(prediction).expect("a good row is decided");
            assert!(decision.costs().iter().chain(decision.costs_high()).all(|cost| !cost.is_nan()), "{text}");
            assert!(decision.total() <= bound * (1.0 + 1e-9), "{} above {bound}: {text}", decision.total());
            assert!(decision.margin() >= 0.0, "{text}");
            let _ = decision.action().to_string();
            assert!(loss.act(prediction) < acts.max(prediction.len()));
        }
    }
}
