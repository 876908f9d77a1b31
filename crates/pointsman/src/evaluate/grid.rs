//! Every pair of prices at once: what a page with sliders looks up.

use serde::Serialize;

use super::{By, Group, Replay, sum};
use crate::error::Result;
use crate::estimate::Column;
use crate::loss::MAX_COST;
use crate::oracle::Oracle;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::task::{Route, Task};

/// Actions and held-out costs for a grid of route prices × abstention prices; `None` is "never".
///
/// The grid is about the route of the task that costs the least on the held-out rows, loss and price together. The prices of all
/// others change in proportion, so that at the task's own price the grid is the task. Lists over the grid run through the
/// abstention prices first: entry `r · abstain_prices.len() + a`.
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
    /// One character a cell: `p`, `r`, `a`, `?` undetermined, `-` empty.
    pub actions: Vec<String>,
    /// Estimated cost of routing each cell to the oracle that is the cheapest there, for each route price; unknown where labels
    /// give only bounds.
    pub route_costs: Vec<Vec<Option<f64>>>,
    /// The irreducible loss beyond which routing costs more than abstaining; none if one of the two is never done, or if not
    /// all is `bayes`.
    pub corners: Vec<Option<f64>>,
    /// Mean held-out cost of the router.
    pub router: Vec<f64>,
    /// Mean held-out cost of the best action a cell, known in hindsight.
    pub cell_optimal: Vec<f64>,
    /// Share of the held-out rows predicted; undetermined ones count as the cheapest action of known cost.
    pub predicted: Vec<f64>,
    /// Share routed.
    pub routed: Vec<f64>,
    /// Share abstained.
    pub abstained: Vec<f64>,
    /// Mean held-out cost of always predicting.
    pub always_predict: f64,
    /// Mean held-out cost of always asking the route that the grid is about, for each of its prices.
    pub always_route: Vec<Option<f64>>,
    /// Cost of always abstaining, for each abstention price.
    pub always_abstain: Vec<Option<f64>>,
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
        let main = main.map(|place| &task.routes()[place]);
        let own = (main.map(Route::price), task.abstain_price());
        let estimates = || groups.iter().map(|group| policy.estimate(group.source));
        let most_saved = estimates().map(|e| e.total - e.at(column)[0]).fold(0.0, f64::max);
        let dearest = estimates().map(|e| e.total).fold(0.0, f64::max);
        let (route_prices, own_route) = axis(most_saved, own.0, steps);
        let (abstain_prices, own_abstain) = axis(dearest, own.1, steps);

        let mut grid = PriceGrid {
            always_route: route_prices.iter().map(|price| price.map(|price| lost + price)).collect(),
            always_abstain: abstain_prices.clone(),
            always_predict: total,
            own: [own_route, own_abstain],
            route: main.map_or("oracle", Route::name).to_owned(),
            bayes: policy.asked().is_empty(),
            corrected: by == By::Corrected,
            route_prices,
            abstain_prices,
            actions: Vec::new(),
            route_costs: Vec::new(),
            corners: Vec::new(),
            router: Vec::new(),
            cell_optimal: Vec::new(),
            predicted: Vec::new(),
            routed: Vec::new(),
            abstained: Vec::new(),
        };
        for route in grid.route_prices.clone() {
            let priced = policy.reprice(&at_price(task, main, route)?)?;
            grid.route_costs.push(cells.iter().map(|&cell| least_route(&priced, cell)).collect());
            for abstain in grid.abstain_prices.clone() {
                let task = priced.task().clone();
                let task = abstain.map_or(Ok(task.clone()), |price| task.abstain(price))?;
                let bend = route.zip(abstain).filter(|_| grid.bayes);
                grid.corners.push(bend.map(|(route, abstain)| (abstain - route).max(0.0)));
                grid.add(self, &priced.reprice(&task)?, cells);
            }
        }
        Ok(grid)
    }
}

/// The task without abstention where its main route has this price and the others change in proportion. Without a price nobody
/// is asked; a task without routes may ask an oracle that knows the truth.
fn at_price(task: &Task, main: Option<&Route>, price: Option<f64>) -> Result<Task> {
    let bare = task.clone().without_routes().without_abstaining();
    let Some(price) = price else { return Ok(bare) };
    let Some(main) = main else { return bare.route("oracle", Oracle::bayes(), price) };
    let other = |own: f64| if main.price() > 0.0 { own * (price / main.price()) } else { own + price };
    task.routes().iter().try_fold(bare, |bare, route| {
        let price = if route == main { price } else { other(route.price()).min(MAX_COST) };
        bare.route(route.name(), route.oracle().clone(), price)
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
    fn add(&mut self, replay: &Replay, policy: &Policy, cells: &[CellId]) {
        const PREDICT: usize = 0;
        const ROUTE: usize = 1;
        const ABSTAIN: usize = 2;
        let routes = policy.task().routes().len();
        let kind = |action: usize| match action {
            0 => PREDICT,
            action if action <= routes => ROUTE,
            _ => ABSTAIN,
        };
        let letter = |cell: &CellId| match policy.cell(*cell) {
            None => '-',
            Some(_) => policy.code(cell.0).map_or('?', |action| ['p', 'r', 'a'][kind(action)]),
        };
        self.actions.push(cells.iter().map(letter).collect());
        let (acts, by) = (replay.acts(policy), replay.best_basis());
        self.router.push(acts.mean_cost(by));
        self.cell_optimal.push(replay.cell_optimal(policy, by));
        for (wanted, shares) in
            [(PREDICT, &mut self.predicted), (ROUTE, &mut self.routed), (ABSTAIN, &mut self.abstained)]
        {
            shares.push(acts.share_of(|action| kind(action) == wanted));
        }
    }
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
