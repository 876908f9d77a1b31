//! Grids of actions and costs over all pairs of prices, for report pages with sliders.

use super::{Basis, Replay, sum};
use crate::error::{Error, Result, TaskError};
use crate::estimate::OracleLoss;
use crate::loss::MAX_COST;
use crate::oracle::Oracle;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::task::{Limit, Route, Task};

/// Actions and held-out costs for a grid of route prices × abstention prices; `None` is "never".
///
/// [`Replay::price_grid`] varies the price of the main route, the one with the least cost (loss plus price) on the held-out rows, and the
/// prices of all others in proportion; [`Replay::route_price_grid`] varies the price of one route, and all others keep theirs. At the
/// task's own prices both equal the task. Lists over the grid run through the abstention prices first: entry
/// `r · abstain_prices.len() + a`. A limit of the task applies wherever there is a route: its surcharge is found again at each price and
/// affects decisions, but is not part of the costs.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PriceGrid {
    /// The name of the varied route.
    pub route: String,
    /// Whether every route's oracle is Bayes-optimal, so that actions are regions of the plane of irreducible and reducible loss.
    pub bayes: bool,
    /// Whether costs are corrected for the bias of few labels, which is done where possible.
    pub corrected: bool,
    /// Prices of the route, ascending, "never" last.
    pub route_prices: Vec<Option<f64>>,
    /// Prices of abstaining, ascending, "never" last.
    pub abstain_prices: Vec<Option<f64>>,
    /// The places of the task's own prices in the two lists.
    pub own: [usize; 2],
    /// The prices and shares of each route of the task.
    pub routes: Vec<GridRoute>,
    /// The amount that the task's limit adds to every route's price or, with a target loss, the price that replaces it; none without a
    /// limit, and where a target loss cannot be reached.
    pub surcharge: Vec<Option<f64>>,
    /// The price of the varied route in decisions, with the limit's surcharge. If `bayes`, that of the cheapest route.
    pub decision_prices: Vec<Option<f64>>,
    /// One character per cell: `p`, `r` or, of several routes, the place of the route (`0` to `9`), `a`, `?` undetermined, `-` empty or
    /// out of reach.
    pub actions: Vec<String>,
    /// The actions on the rows of [`Replay::sample_rows`], one character per row; empty unless every row has its own costs.
    pub row_actions: Vec<String>,
    /// Estimated cost of the cheapest route of each cell, for each route price; unknown where costs are only bounded.
    pub route_costs: Vec<Vec<Option<f64>>>,
    /// The irreducible loss beyond which routing costs more than abstaining; none if one of the two is never taken, or if not `bayes`.
    pub corners: Vec<Option<f64>>,
    /// Mean held-out cost of the router; none where the task's target loss cannot be reached.
    pub router: Vec<Option<f64>>,
    /// Mean held-out cost of the best action per cell in hindsight.
    pub cell_optimal: Vec<f64>,
    /// Share of the held-out rows predicted; undetermined rows count as the cheapest action of known cost. None, like the other shares,
    /// where the task's target loss cannot be reached.
    pub predicted: Vec<Option<f64>>,
    /// Share routed.
    pub routed: Vec<Option<f64>>,
    /// Share abstained.
    pub abstained: Vec<Option<f64>>,
    /// Mean held-out cost of always predicting.
    pub always_predict: f64,
    /// Mean held-out cost of always using the varied route, for each of its prices.
    pub always_route: Vec<Option<f64>>,
    /// Cost of always abstaining, for each abstention price.
    pub always_abstain: Vec<Option<f64>>,
}

/// One route in a [`PriceGrid`].
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GridRoute {
    /// Its name.
    pub name: String,
    /// Its price at each price of the varied route.
    pub prices: Vec<Option<f64>>,
    /// Mean held-out cost of always using it, at each of these prices.
    pub always: Vec<Option<f64>>,
    /// Its share of the held-out rows, over the grid; none where the task's target loss cannot be reached.
    pub shares: Vec<Option<f64>>,
}

/// The largest number of rows in [`Replay::sample_rows`].
const MAX_SAMPLED_ROWS: usize = 400;

/// The prices that vary along the grid's first axis.
#[derive(Debug, Clone, Copy)]
enum Varied<'a> {
    /// Those of all routes, in proportion to this one's. A task without routes gets a Bayes-optimal oracle.
    All(Option<&'a Route>),
    /// That of one route.
    One(&'a Route),
}

impl Replay {
    /// A grid of about `steps` × `steps` prices from zero to where no query pays off, including the task's own and "never". Actions are
    /// listed for `cells`.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn price_grid(&self, policy: &Policy, cells: &[CellId], steps: usize) -> Result<PriceGrid> {
        self.check(policy)?;
        let (task, by) = (policy.task(), self.best_basis());
        let cost = |place: usize| self.mean_loss(policy.oracle_loss(place), by) + task.routes()[place].price();
        let main = (0..task.routes().len()).min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        let oracle = main.map_or(OracleLoss::Irreducible, |place| policy.oracle_loss(place));
        self.grid_over(policy, cells, Varied::All(main.map(|place| &task.routes()[place])), oracle, [steps; 2])
    }

    /// A grid over the price of one route, by its place in the task, in about `route_steps` prices; the other routes keep theirs.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it, or the task has no such route.
    pub fn route_price_grid(
        &self,
        policy: &Policy,
        cells: &[CellId],
        place: usize,
        [route_steps, abstain_steps]: [usize; 2],
    ) -> Result<PriceGrid> {
        self.check(policy)?;
        let routes = policy.task().routes();
        let Some(route) = routes.get(place) else {
            return Err(TaskError::NoSuchRoute { route: place, routes: routes.len() }.into());
        };
        self.grid_over(policy, cells, Varied::One(route), policy.oracle_loss(place), [route_steps, abstain_steps])
    }

    fn mean_loss(&self, oracle: OracleLoss, by: Basis) -> f64 {
        sum(self.groups.iter().map(|group| group.share * group.at(oracle, by)))
    }

    fn grid_over(
        &self,
        policy: &Policy,
        cells: &[CellId],
        varied: Varied<'_>,
        oracle: OracleLoss,
        [route_steps, abstain_steps]: [usize; 2],
    ) -> Result<PriceGrid> {
        let (task, by) = (policy.task(), self.best_basis());
        let (main, lost) = (varied.route(), self.mean_loss(oracle, by));
        let estimates = || self.groups.iter().map(|group| policy.estimate(group.source));
        let most_saved = estimates().map(|e| e.total - e.losses().of_oracle(oracle)[0]).fold(0.0, f64::max);
        let dearest = estimates().map(|e| e.total).fold(0.0, f64::max);
        let (route_prices, own_route) = axis(most_saved, main.map(Route::price), route_steps);
        let (abstain_prices, own_abstain) = axis(dearest, task.abstain_price(), abstain_steps);

        let mut grid = PriceGrid::new(task, varied, route_prices, abstain_prices);
        grid.always_route = grid.route_prices.iter().map(|price| price.map(|price| lost + price)).collect();
        grid.always_predict = sum(self.groups.iter().map(|group| group.share * group.total));
        grid.own = [own_route, own_abstain];
        grid.bayes = policy.other_oracles().is_empty();
        grid.corrected = by == Basis::Corrected;
        for (place, route) in grid.routes.iter_mut().enumerate() {
            let lost = self.mean_loss(policy.oracle_loss(place), by);
            route.always = route.prices.iter().map(|price| price.map(|price| lost + price)).collect();
        }
        let rows = self.sample_rows();
        for route in grid.route_prices.clone() {
            let priced = policy.reprice(&varied.at(task, route)?)?;
            grid.route_costs.push(cells.iter().map(|&cell| least_route(&priced, cell)).collect());
            for abstain in grid.abstain_prices.clone() {
                let task = priced.task().clone();
                let task = abstain.map_or(Ok(task.clone()), |price| task.abstain(price))?;
                let unlimited = priced.reprice(&task)?;
                let limited = match policy.task().limit().filter(|_| !task.routes().is_empty()) {
                    None => Some(unlimited.clone()),
                    Some(limit) => match unlimited.reprice(&limited_by(task, limit)?) {
                        Err(Error::OutOfReach { .. }) => None,
                        found => Some(found?),
                    },
                };
                grid.cell_optimal.push(self.cell_optimal(&unlimited, by));
                grid.add(self, limited.as_ref(), cells, &rows);
                let counted = grid.decision_prices.last().copied().flatten();
                let bend = counted.zip(abstain).filter(|_| grid.bayes);
                grid.corners.push(bend.map(|(route, abstain)| (abstain - route).max(0.0)));
            }
        }
        Ok(grid)
    }

    /// A sample of rows for a router that gives every row its own costs: evenly spaced in the order of their expected losses, so that the
    /// shares of actions are those of all rows. Empty for any other router.
    #[must_use]
    pub fn sample_rows(&self) -> Vec<usize> {
        if !self.policy.has_forest() {
            return Vec::new();
        }
        let expected = |row: usize| {
            let losses = self.policy.losses_of(&self.decisions, row);
            (losses.total, losses.irreducible[0])
        };
        let mut rows: Vec<(usize, (f64, f64))> = (0..self.places.len()).map(|row| (row, expected(row))).collect();
        rows.sort_by(|(_, a), (_, b)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let taken = rows.len().min(MAX_SAMPLED_ROWS);
        (0..taken).map(|i| rows[(2 * i + 1) * rows.len() / (2 * taken)].0).collect()
    }

    /// The expected irreducible and reducible loss of these rows; unknown if it is only bounded, or if rows do not have their own losses.
    #[must_use]
    pub fn expected_losses(&self, rows: &[usize]) -> Vec<Option<[f64; 2]>> {
        let expected = |&row: &usize| {
            let losses = self.policy.losses_of(&self.decisions, row);
            let [low, high] = losses.irreducible;
            (self.policy.has_forest() && low == high).then(|| [low, (losses.total - low).max(0.0)])
        };
        rows.iter().map(expected).collect()
    }
}

impl<'a> Varied<'a> {
    /// The varied route.
    fn route(self) -> Option<&'a Route> {
        match self {
            Self::All(route) => route,
            Self::One(route) => Some(route),
        }
    }

    /// The price of a route at a price of the varied route; none if it is never used.
    fn price_of(self, route: &Route, price: Option<f64>) -> Option<f64> {
        match self {
            Self::All(main) => Some(price_beside(main?, price?, route)),
            Self::One(main) if route.name() == main.name() => price,
            Self::One(_) => Some(route.price()),
        }
    }

    /// The task without abstention at a price of the varied route.
    fn at(self, task: &Task, price: Option<f64>) -> Result<Task> {
        let bare = task.clone().without_routes().without_abstaining();
        match (self, price) {
            (Self::All(None), Some(price)) => bare.route("oracle", Oracle::bayes(), price),
            _ => task.routes().iter().try_fold(bare, |bare, route| match self.price_of(route, price) {
                Some(price) => bare.route(route.name(), route.oracle().clone(), price),
                None => Ok(bare),
            }),
        }
    }
}

/// The task under a limit.
fn limited_by(task: Task, limit: Limit) -> Result<Task> {
    match limit {
        Limit::Budget(share) => task.budget(share),
        Limit::TargetLoss(loss) => task.target_loss(loss),
    }
}

/// The price of a route if the main route has this price: other prices change in proportion.
fn price_beside(main: &Route, price: f64, route: &Route) -> f64 {
    if route == main {
        return price;
    }
    let own = route.price();
    if main.price() > 0.0 { own * (price / main.price()) } else { own + price }.min(MAX_COST)
}

/// The cost of the cheapest route of a cell, if known.
fn least_route(policy: &Policy, cell: CellId) -> Option<f64> {
    let decision = policy.cell(cell)?;
    let routes = 1..=policy.task().routes().len();
    let (low, high) = (&decision.costs()[routes.clone()], &decision.costs_high()[routes]);
    let least = low.iter().copied().reduce(f64::min)?;
    (low == high).then_some(least)
}

impl PriceGrid {
    /// A grid over prices without results.
    fn new(task: &Task, varied: Varied<'_>, route_prices: Vec<Option<f64>>, abstain_prices: Vec<Option<f64>>) -> Self {
        let of = |route: &Route| GridRoute {
            name: route.name().to_owned(),
            prices: route_prices.iter().map(|&price| varied.price_of(route, price)).collect(),
            always: Vec::new(),
            shares: Vec::new(),
        };
        Self {
            route: varied.route().map_or("oracle", Route::name).to_owned(),
            bayes: false,
            corrected: false,
            routes: task.routes().iter().map(of).collect(),
            always_abstain: abstain_prices.clone(),
            route_prices,
            abstain_prices,
            own: [0; 2],
            surcharge: Vec::new(),
            decision_prices: Vec::new(),
            actions: Vec::new(),
            row_actions: Vec::new(),
            route_costs: Vec::new(),
            corners: Vec::new(),
            router: Vec::new(),
            cell_optimal: Vec::new(),
            predicted: Vec::new(),
            routed: Vec::new(),
            abstained: Vec::new(),
            always_predict: 0.0,
            always_route: Vec::new(),
        }
    }

    /// Adds the actions and costs of a policy; `None` if the task's target loss is out of reach.
    fn add(&mut self, replay: &Replay, policy: Option<&Policy>, cells: &[CellId], rows: &[usize]) {
        let routes: &[Route] = policy.map_or(&[], |policy| policy.task().routes());
        // The place of an action's route in the whole task.
        let place = |action: usize| {
            let name = routes.get(action.wrapping_sub(1))?.name();
            Some(self.routes.iter().position(|route| route.name == name).unwrap_or(0))
        };
        let letter = |action: usize| match (action, place(action)) {
            (0, _) => 'p',
            (_, Some(place)) => route_letter(place, self.routes.len()),
            (_, None) => 'a',
        };
        let of_cell = |cell: &CellId| match policy.filter(|policy| policy.cell(*cell).is_some()) {
            None => '-',
            Some(policy) => policy.code(cell.0).map_or('?', letter),
        };
        let taken = policy.map(|policy| replay.taken_actions(policy));
        let of_row = |&row: &usize| match taken.as_ref().map(|taken| taken.determined_action(row)) {
            None => '-',
            Some(Some(action)) => letter(action.actions()[0]),
            Some(None) => '?',
        };
        let (of_cells, of_rows) = (cells.iter().map(of_cell).collect(), rows.iter().map(of_row).collect());
        let share = |wanted: &dyn Fn(usize) -> bool| taken.as_ref().map(|taken| taken.share_of(wanted));
        let shares: Vec<Option<f64>> =
            (0..self.routes.len()).map(|route| share(&|action| place(action) == Some(route))).collect();
        let routes = routes.len();
        self.router.push(taken.as_ref().map(|taken| taken.mean_cost(replay.best_basis())));
        self.predicted.push(share(&|action| action == 0));
        self.routed.push(share(&|action| (1..=routes).contains(&action)));
        self.abstained.push(share(&|action| action > routes));
        self.surcharge.push(policy.and_then(Policy::surcharge_price));
        let counted = policy.and_then(|policy| {
            let is_meant = |route: &&Route| self.bayes || route.name() == self.route;
            policy.priced_task().routes().iter().filter(is_meant).map(Route::price).reduce(f64::min)
        });
        self.decision_prices.push(counted);
        self.actions.push(of_cells);
        if !rows.is_empty() {
            self.row_actions.push(of_rows);
        }
        self.routes.iter_mut().zip(shares).for_each(|(route, share)| route.shares.push(share));
    }
}

/// The character of a route in [`PriceGrid::actions`].
fn route_letter(place: usize, routes: usize) -> char {
    let digit = u32::try_from(place).ok().and_then(|place| char::from_digit(place, 10));
    digit.filter(|_| routes > 1).unwrap_or('r')
}

/// Prices from 0 to about `top` in round steps, `own` among them and "never" last; and the place of `own`.
fn axis(top: f64, own: Option<f64>, steps: usize) -> (Vec<Option<f64>>, usize) {
    let rough = (top / steps.max(2) as f64).max(1e-9);
    let unit = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * unit).into_iter().find(|&s| s >= rough * 0.999).unwrap_or(rough);
    let round = |x: f64| format!("{x:.10e}").parse().unwrap_or(x);
    let mut prices: Vec<f64> = (0..=(top / step).ceil() as usize).map(|i| round(i as f64 * step)).collect();
    if let Some(own) = own
        && !prices.contains(&own)
    {
        prices.push(own);
        prices.sort_by(f64::total_cmp);
    }
    let place = own.and_then(|own| prices.iter().position(|&price| price == own)).unwrap_or(prices.len());
    (prices.into_iter().map(Some).chain([None]).collect(), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_steps_and_include_the_own_price() {
        let (prices, own) = axis(0.47, Some(0.08), 24);
        assert_eq!((prices[0], prices[1], prices[own]), (Some(0.0), Some(0.02), Some(0.08)));
        assert_eq!(prices[prices.len() - 2..], [Some(0.48), None]);
        let (prices, own) = axis(0.47, Some(0.083), 24);
        assert_eq!((prices[own - 1], prices[own], prices[own + 1]), (Some(0.08), Some(0.083), Some(0.1)));
        let (prices, own) = axis(0.47, None, 24);
        assert_eq!(prices[own], None);
        // Nothing to save, and a price far outside.
        assert_eq!(axis(0.0, None, 24).0, [Some(0.0), None]);
        let (prices, own) = axis(0.1, Some(100.0), 4);
        assert_eq!(prices[own..], [Some(100.0), None]);
    }
}
