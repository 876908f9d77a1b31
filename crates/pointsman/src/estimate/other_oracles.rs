//! The oracles of a task beside the Bayes-optimal one, each listed once.

use crate::oracle::Oracle;
use crate::task::{Route, Task};

/// The distinct oracles of a task that are not Bayes-optimal, in the task's order, with the name of their first route.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct OtherOracles(pub(super) Vec<(Oracle, String)>);

/// Which loss a route's oracle has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OracleLoss {
    /// The irreducible loss.
    Irreducible,
    /// The loss of the oracle at this place in [`OtherOracles`].
    Other(usize),
}

impl OracleLoss {
    /// Picks this loss from the irreducible loss and those of the other oracles.
    pub(crate) fn pick(self, irreducible: f64, other: impl Fn(usize) -> f64) -> f64 {
        match self {
            Self::Irreducible => irreducible,
            Self::Other(place) => other(place),
        }
    }
}

impl OtherOracles {
    pub(crate) fn from_task(task: &Task) -> Self {
        let mut others = Self::default();
        for route in task.routes() {
            if others.loss_of(route).is_none() {
                others.0.push((route.oracle().clone(), route.name().to_owned()));
            }
        }
        others
    }

    /// These oracles with the names of their routes; `None` if one is Bayes-optimal or listed twice.
    pub(crate) fn from_list(list: Vec<(Oracle, String)>) -> Option<Self> {
        // Measured oracles are identified by their names, panels by their definition.
        let same = |(one, name): &(Oracle, String), (two, other): &(Oracle, String)| {
            one == two && (*one != Oracle::Measured || name == other)
        };
        let is_new = |place: usize| !list[..place].iter().any(|earlier| same(earlier, &list[place]));
        let is_valid = (0..list.len()).all(|place| list[place].0 != Oracle::Bayes && is_new(place));
        is_valid.then_some(Self(list))
    }

    /// The number of oracles.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn oracles(&self) -> impl Iterator<Item = &Oracle> {
        self.0.iter().map(|(oracle, _)| oracle)
    }

    /// The oracles and the names of their routes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Oracle, &str)> {
        self.0.iter().map(|(oracle, name)| (oracle, name.as_str()))
    }

    /// The loss of a route's oracle; `None` if the oracle is not among these.
    pub(crate) fn loss_of(&self, route: &Route) -> Option<OracleLoss> {
        if *route.oracle() == Oracle::Bayes {
            return Some(OracleLoss::Irreducible);
        }
        // Measured oracles are identified by their names, panels by their definition.
        let same = |(oracle, name): &(Oracle, String)| {
            oracle == route.oracle() && (*oracle != Oracle::Measured || name == route.name())
        };
        self.0.iter().position(same).map(OracleLoss::Other)
    }
}
