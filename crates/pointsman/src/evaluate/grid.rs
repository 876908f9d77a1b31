//! Every pair of prices at once: what a page with sliders looks up.

use serde::Serialize;

use super::{By, Group, Replay, sum};
use crate::error::{Error, Result};
use crate::estimate::Column;
use crate::loss::MAX_COST;
use crate::oracle::Oracle;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::task::{Limit, Route, Task};

/// Actions and held-out costs for a grid of route prices × abstention prices; `None` is "never".
///
/// The grid is about the route of the task that costs the least on the held-out rows, loss and price together. The prices of all
/// others change in proportion, so that at the task's own price the grid is the task. Lists over the grid run through the
/// abstention prices first: entry `r · abstain_prices.len() + a`. A limit of the task is kept at all prices but "never": its surcharge
/// is found anew at each, decides, and is not paid.
#[derive(Debug, Clone, Serialize)]
pub struct PriceGrid {
    /// The name of the route.
    pub route: String,
    /// Whether every route's oracle loses the irreducible loss, so that the actions are regions of the plane of irreducible
    /// and reducible loss.
    pub bayes: bool,
    /// Whether the bias of few labels is taken out of all costs: it is where it can be.
    pub corrected: bool,
    /// Prices of the route, ascending, "never" last.
    pub route_prices: Vec<Option<f64>>,
    /// Prices of abstaining, ascending, "never" last.
    pub abstain_prices: Vec<Option<f64>>,
    /// Where the task's own prices are: places in the two lists.
    pub own: [usize; 2],
    /// Each route of the task: its prices, and who gets how much.
    pub routes: Vec<GridRoute>,
    /// What the task's limit adds to every route's price or, with a target loss, puts in its place; none without a limit, and where a
    /// target loss cannot be reached.
    pub surcharge: Vec<Option<f64>>,
    /// What the route that the grid is about counts with in decisions: its price with the limit's surcharge.
    pub decision_prices: Vec<Option<f64>>,
    /// One character per cell: `p`, `r` or, of several routes, the place of the route (`0` to `9`), `a`, `?` undetermined, `-` empty or
    /// out of reach.
    pub actions: Vec<String>,
    /// Estimated cost of routing each cell to the oracle that is the cheapest there, for each route price; unknown where labels
    /// give only bounds.
    pub route_costs: Vec<Vec<Option<f64>>>,
    /// The irreducible loss beyond which routing costs more than abstaining; none if one of the two is never done, or if not
    /// all is `bayes`.
    pub corners: Vec<Option<f64>>,
    /// Mean held-out cost of the router; none where the task's target loss cannot be reached.
    pub router: Vec<Option<f64>>,
    /// Mean held-out cost of the best action a cell, known in hindsight.
    pub cell_optimal: Vec<f64>,
    /// Share of the held-out rows predicted; undetermined ones count as the cheapest action of known cost. None, as the other shares,
    /// where the task's target loss cannot be reached.
    pub predicted: Vec<Option<f64>>,
    /// Share routed.
    pub routed: Vec<Option<f64>>,
    /// Share abstained.
    pub abstained: Vec<Option<f64>>,
    /// Mean held-out cost of always predicting.
    pub always_predict: f64,
    /// Mean held-out cost of always asking the route that the grid is about, for each of its prices.
    pub always_route: Vec<Option<f64>>,
    /// Cost of always abstaining, for each abstention price.
    pub always_abstain: Vec<Option<f64>>,
}

/// One route in a [`PriceGrid`].
#[derive(Debug, Clone, Serialize)]
pub struct GridRoute {
    /// Its name.
    pub name: String,
    /// Its price at each price of the route that the grid is about.
    pub prices: Vec<Option<f64>>,
    /// Mean held-out cost of always asking it, at each of these prices.
    pub always: Vec<Option<f64>>,
    /// Share of the held-out rows it gets, over the grid; none where the task's target loss cannot be reached.
    pub shares: Vec<Option<f64>>,
}

impl Replay {
    /// A grid of about `steps` × `steps` prices from nothing to where nobody would pay, the task's own and "never"
    /// included. `cells` are those whose actions are wanted.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn price_grid(&self, policy: &Policy, cells: &[CellId], steps: usize) -> Result<PriceGrid> {
        self.check(policy)?;
        let (groups, by) = (&self.groups, self.best_basis());
        let mean = |value: &dyn Fn(&Group) -> f64| sum(groups.iter().map(|group| group.share * value(group)));
        let total = mean(&|group| group.total);

        let task = policy.task();
        let loss = |route: usize| mean(&|group| group.at(policy.column(route), by));
        let costs = task.routes().iter().enumerate().map(|(place, route)| (place, loss(place) + route.price()));
        let main = costs.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place);
        let column = main.map_or(Column::Irreducible, |place| policy.column(place));
        let lost = mean(&|group| group.at(column, by));
        let lost_by_route: Vec<f64> = (0..task.routes().len()).map(loss).collect();
        let main = main.map(|place| &task.routes()[place]);
        let own = (main.map(Route::price), task.abstain_price());
        let estimates = || groups.iter().map(|group| policy.estimate(group.source));
        let most_saved = estimates().map(|e| e.total - e.at(column)[0]).fold(0.0, f64::max);
        let dearest = estimates().map(|e| e.total).fold(0.0, f64::max);
        let (route_prices, own_route) = axis(most_saved, own.0, steps);
        let (abstain_prices, own_abstain) = axis(dearest, own.1, steps);

        let mut grid = PriceGrid::new(task, main, route_prices, abstain_prices);
        grid.always_route = grid.route_prices.iter().map(|price| price.map(|price| lost + price)).collect();
        grid.always_predict = total;
        grid.own = [own_route, own_abstain];
        grid.bayes = policy.asked().is_empty();
        grid.corrected = by == By::Corrected;
        for (route, lost) in grid.routes.iter_mut().zip(lost_by_route) {
            route.always = route.prices.iter().map(|price| price.map(|price| lost + price)).collect();
        }
        for route in grid.route_prices.clone() {
            let priced = policy.reprice(&at_price(task, main, route)?)?;
            grid.route_costs.push(cells.iter().map(|&cell| least_route(&priced, cell)).collect());
            for abstain in grid.abstain_prices.clone() {
                let task = priced.task().clone();
                let task = abstain.map_or(Ok(task.clone()), |price| task.abstain(price))?;
                let unlimited = priced.reprice(&task)?;
                let limited = match policy.task().limit().filter(|_| route.is_some()) {
                    None => Some(unlimited.clone()),
                    Some(limit) => match unlimited.reprice(&limited_by(task, limit)?) {
                        Err(Error::OutOfReach { .. }) => None,
                        found => Some(found?),
                    },
                };
                grid.cell_optimal.push(self.cell_optimal(&unlimited, by));
                grid.add(self, limited.as_ref(), cells);
                let counted = grid.decision_prices.last().copied().flatten();
                let bend = counted.zip(abstain).filter(|_| grid.bayes);
                grid.corners.push(bend.map(|(route, abstain)| (abstain - route).max(0.0)));
            }
        }
        Ok(grid)
    }
}

/// The task under a limit.
fn limited_by(task: Task, limit: Limit) -> Result<Task> {
    match limit {
        Limit::Budget(share) => task.budget(share),
        Limit::TargetLoss(loss) => task.target_loss(loss),
    }
}

/// What a route costs where the main one costs so much: the prices of others change in proportion.
fn price_beside(main: &Route, price: f64, route: &Route) -> f64 {
    if route == main {
        return price;
    }
    let own = route.price();
    if main.price() > 0.0 { own * (price / main.price()) } else { own + price }.min(MAX_COST)
}

/// The task without abstention where its main route has this price and the others change in proportion. Without a price nobody
/// is asked; a task without routes may ask an oracle that knows the truth.
fn at_price(task: &Task, main: Option<&Route>, price: Option<f64>) -> Result<Task> {
    let bare = task.clone().without_routes().without_abstaining();
    let Some(price) = price else { return Ok(bare) };
    let Some(main) = main else { return bare.route("oracle", Oracle::bayes(), price) };
    task.routes().iter().try_fold(bare, |bare, route| {
        bare.route(route.name(), route.oracle().clone(), price_beside(main, price, route))
    })
}

/// What routing a cell costs at the least, if that is known.
fn least_route(policy: &Policy, cell: CellId) -> Option<f64> {
    let decision = policy.cell(cell)?;
    let routes = 1..=policy.task().routes().len();
    let (low, high) = (&decision.costs()[routes.clone()], &decision.costs_high()[routes]);
    let least = low.iter().copied().reduce(f64::min)?;
    (low == high).then_some(least)
}

impl PriceGrid {
    /// A grid over prices, nothing worked out yet.
    fn new(
        task: &Task,
        main: Option<&Route>,
        route_prices: Vec<Option<f64>>,
        abstain_prices: Vec<Option<f64>>,
    ) -> Self {
        let of = |route: &Route| GridRoute {
            name: route.name().to_owned(),
            prices: route_prices.iter().map(|price| Some(price_beside(main?, (*price)?, route))).collect(),
            always: Vec::new(),
            shares: Vec::new(),
        };
        Self {
            route: main.map_or("oracle", Route::name).to_owned(),
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

    /// Adds what a policy does and costs; none if the task's target loss is out of reach.
    fn add(&mut self, replay: &Replay, policy: Option<&Policy>, cells: &[CellId]) {
        let routes = policy.map_or(0, |policy| policy.task().routes().len());
        let letter = |cell: &CellId| match policy.filter(|policy| policy.cell(*cell).is_some()) {
            None => '-',
            Some(policy) => match policy.code(cell.0) {
                None => '?',
                Some(0) => 'p',
                Some(action) if action <= routes => route_letter(action - 1, routes),
                Some(_) => 'a',
            },
        };
        self.actions.push(cells.iter().map(letter).collect());
        let acts = policy.map(|policy| replay.acts(policy));
        let share = |wanted: &dyn Fn(usize) -> bool| acts.as_ref().map(|acts| acts.share_of(wanted));
        self.router.push(acts.as_ref().map(|acts| acts.mean_cost(replay.best_basis())));
        self.predicted.push(share(&|action| action == 0));
        self.routed.push(share(&|action| (1..=routes).contains(&action)));
        self.abstained.push(share(&|action| action > routes));
        self.surcharge.push(policy.and_then(Policy::surcharge).map(|surcharge| surcharge.price));
        let counted = policy.and_then(|policy| {
            let task = policy.priced_task();
            task.routes().iter().find(|route| route.name() == self.route).map(Route::price)
        });
        self.decision_prices.push(counted);
        for (place, route) in self.routes.iter_mut().enumerate() {
            route.shares.push(share(&|action| action == place + 1 && action <= routes));
        }
    }
}

/// How a route is written in [`PriceGrid::actions`].
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
    fn axes_are_round_and_hold_the_task_s_price() {
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
