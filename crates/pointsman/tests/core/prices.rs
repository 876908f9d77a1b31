//! The data of a report beyond an evaluation: cells, mixtures and the grid of prices, by hand on a small example.

use pointsman::{CellId, Estimator, Loss, Oracle, Table, Task};

use crate::evaluation::{NO, YES, router, task};
use crate::world::table;

const CELLS: [CellId; 2] = [CellId(0), CellId(1)];

/// Three held-out rows of `NO`, whose mean loss of predicting is 0.375, and one of `YES`, of 1.125.
fn held_out() -> Table {
    table(2, &[NO, NO, NO, YES].map(|p| p.to_vec()), &[[4, 0], [2, 2], [3, 1], [4, 0]].map(|v| v.to_vec()))
}

#[test]
fn cells_show_estimates_and_held_out_losses() {
    let policy = router().policy(&task()).unwrap();
    let cells = policy.replay(&held_out()).unwrap().cells(&policy, &held_out()).unwrap();
    let [no, yes] = &cells[..] else { panic!("two cells") };
    assert_eq!((no.rows, no.support, no.share, no.action.as_deref()), (1, "sparse", 0.75, Some("abstain")));
    assert_eq!((no.irreducible, no.reducible, no.total), (Some(0.5), Some(0.125), Some(0.625)));
    let costs: Vec<(&str, Option<f64>)> = no.costs.iter().map(|(name, cost)| (name, *cost)).collect();
    assert_eq!(costs, [("predict", Some(0.625)), ("route:expert", Some(0.75)), ("abstain", Some(0.6))]);
    assert!((no.margin.unwrap() - 0.025).abs() < 1e-15);
    // Entropies 0, ½ and ⅜, times 4/3 since each has four labels; predicting costs 2 · (1 − ȳ_no − ¼)² beyond the entropy: 0.125, 0.125 and 0.
    let (irreducible, total) = (no.held_out.irreducible.unwrap(), no.held_out.total.unwrap());
    assert!((irreducible - 4.0 / 3.0 * 0.875 / 3.0).abs() < 1e-15 && (total - 1.125 / 3.0).abs() < 1e-15, "{no:?}");
    assert_eq!((yes.action.as_deref(), yes.held_out.rows, yes.held_out.total), (Some("route:expert"), 1, Some(1.125)));
}

#[test]
fn histograms_are_of_the_second_of_two_classes() {
    let found = router().mixture_histograms(&held_out(), &CELLS, 4).unwrap();
    assert_eq!((found[0].cell, found[0].class.as_str()), (0, router().classes()[1].as_str()));
    assert_eq!(found[0].stored.as_deref(), Some(&[0.0, 0.0, 1.0, 0.0][..]));
    let third = 1.0 / 3.0;
    assert_eq!(found[0].held_out.as_deref(), Some(&[third, third, third, 0.0][..]));
    assert_eq!(found[1].held_out.as_deref(), Some(&[1.0, 0.0, 0.0, 0.0][..]));
    let nobody = table(2, &[YES.to_vec()], &[vec![4, 0]]);
    assert_eq!(router().mixture_histograms(&nobody, &CELLS[..1], 4).unwrap()[0].held_out, None);
}

#[test]
fn price_grid_equals_repriced_policies() {
    let policy = router().policy(&task()).unwrap();
    let replay = policy.replay(&held_out()).unwrap();
    let grid = replay.price_grid(&policy, &CELLS, 6).unwrap();
    assert_eq!(grid.route, "expert");
    assert_eq!([grid.route_prices[grid.own[0]], grid.abstain_prices[grid.own[1]]], [Some(0.25), Some(0.6)]);
    let n = grid.abstain_prices.len();
    assert_eq!(grid.actions[grid.own[0] * n + grid.own[1]], "ar");
    for (r, &route) in grid.route_prices.iter().enumerate() {
        for (a, &abstain) in grid.abstain_prices.iter().enumerate() {
            let mut wanted = Task::new(Loss::brier()).estimator(Estimator::Plugin);
            if let Some(price) = route {
                wanted = wanted.route("expert", Oracle::bayes(), price).unwrap();
            }
            if let Some(price) = abstain {
                wanted = wanted.abstain(price).unwrap();
            }
            let repriced = policy.reprice(&wanted).unwrap();
            let evaluation = replay.evaluate(&repriced).unwrap();
            let here = r * n + a;
            let close = |found: f64, wanted: Option<&f64>| (found - wanted.copied().unwrap_or(0.0)).abs() < 1e-12;
            assert!(close(grid.router[here].unwrap(), evaluation.best_costs().get("router")), "{route:?} {abstain:?}");
            assert!(
                close(grid.cell_optimal[here], evaluation.best_costs().get("cell-optimal")),
                "{route:?} {abstain:?}"
            );
            assert!(close(grid.predicted[here].unwrap(), evaluation.shares.get("predict")), "{route:?} {abstain:?}");
            assert!(close(grid.routed[here].unwrap(), evaluation.shares.get("route:expert")), "{route:?} {abstain:?}");
            assert!(close(grid.abstained[here].unwrap(), evaluation.shares.get("abstain")), "{route:?} {abstain:?}");
            let letter = |cell| repriced.cell(cell).unwrap().action().to_string().chars().next().unwrap();
            assert_eq!(grid.actions[here], CELLS.map(letter).iter().collect::<String>(), "{route:?} {abstain:?}");
        }
    }
    // The policy of another router is refused.
    assert!(replay.price_grid(&router().policy(&task()).unwrap(), &CELLS, 6).is_err());
}

/// A grid over one route equals the task with that price, the other prices unchanged; without the route it equals the task without it.
#[test]
fn price_of_one_route_leaves_the_others_unchanged() {
    let two = |expert: Option<f64>, clerk: Option<f64>, abstain: Option<f64>| {
        let mut task = Task::new(Loss::brier()).estimator(Estimator::Plugin);
        for (name, price) in [("expert", expert), ("clerk", clerk)] {
            task = price.map_or(Ok(task.clone()), |price| task.clone().route(name, Oracle::bayes(), price)).unwrap();
        }
        abstain.map_or(Ok(task.clone()), |price| task.clone().abstain(price)).unwrap()
    };
    let policy = router().policy(&two(Some(0.25), Some(0.2), Some(0.6))).unwrap();
    let replay = policy.replay(&held_out()).unwrap();
    let grid = replay.route_price_grid(&policy, &CELLS, 1, [5, 6]).unwrap();
    assert_eq!((grid.route.as_str(), grid.route_prices[grid.own[0]]), ("clerk", Some(0.2)));
    let n = grid.abstain_prices.len();
    for (r, &clerk) in grid.route_prices.iter().enumerate() {
        assert_eq!((grid.routes[0].prices[r], grid.routes[1].prices[r]), (Some(0.25), clerk));
        for (a, &abstain) in grid.abstain_prices.iter().enumerate() {
            let (here, repriced) = (r * n + a, policy.reprice(&two(Some(0.25), clerk, abstain)).unwrap());
            let evaluation = replay.evaluate(&repriced).unwrap();
            let close = |found: Option<f64>, wanted: Option<&f64>| {
                let wanted = wanted.copied().unwrap_or(0.0);
                assert!((found.unwrap() - wanted).abs() < 1e-12, "{clerk:?} {abstain:?}: {found:?} and {wanted}");
            };
            close(grid.router[here], evaluation.best_costs().get("router"));
            for route in &grid.routes {
                close(route.shares[here], evaluation.shares.get(&format!("route:{}", route.name)));
            }
            // Both oracles are Bayes-optimal, so the cheaper one bounds the regions.
            assert_eq!(grid.decision_prices[here], Some(clerk.map_or(0.25, |price| price.min(0.25))));
            let letter = |cell| match repriced.cell(cell).unwrap().action().to_string().as_str() {
                "route:expert" => '0',
                "route:clerk" => '1',
                other => other.chars().next().unwrap(),
            };
            assert_eq!(grid.actions[here], CELLS.map(letter).iter().collect::<String>(), "{clerk:?} {abstain:?}");
        }
    }
    assert!(grid.row_actions.is_empty() && replay.sample_rows().is_empty(), "cells decide, not rows");
    assert!(replay.route_price_grid(&policy, &CELLS, 2, [5, 6]).is_err(), "there is no third route");
}

/// A price just beyond the stated flip changes the decision to the stated action; a price just before does not.
#[test]
fn decisions_flip_at_the_stated_price() {
    let policy = router().policy(&task()).unwrap();
    let said = [
        (CellId(0), [("route:expert", 0.1, "route:expert"), ("abstain", 0.625, "predict")]),
        (CellId(1), [("route:expert", 0.6, "abstain"), ("abstain", 0.25, "abstain")]),
    ];
    for (cell, expected) in said {
        let flips = policy.cell(cell).unwrap().flips();
        assert_eq!(flips.len(), 2);
        for (flip, (price_of, at, to)) in flips.iter().zip(expected) {
            assert_eq!((flip.price_of.as_str(), flip.to.as_str()), (price_of, to));
            assert!((flip.at - at).abs() < 1e-12, "{flip:?}");
        }
    }
    let (next, margin) = policy.cell(CellId(1)).unwrap().runner_up().unwrap();
    assert!(next == "abstain" && (margin - 0.35).abs() < 1e-12);
    for cell in CELLS {
        let decision = policy.cell(cell).unwrap();
        for flip in decision.flips() {
            let beyond = if flip.rises() { 1e-9 } else { -1e-9 };
            for (price, expected) in
                [(flip.at + beyond, flip.to.clone()), (flip.at - beyond, decision.action().to_string())]
            {
                let task = match flip.price_of.strip_prefix("route:") {
                    Some(name) => task().reprice_route(name, price).unwrap(),
                    None => task().abstain(price).unwrap(),
                };
                let taken = policy.reprice(&task).unwrap().cell(cell).unwrap().action().to_string();
                assert_eq!(taken, expected, "{flip:?} at {price}");
            }
        }
    }
    // An oracle that is worse even for free flips no decision.
    let task = Task::new(Loss::brier()).estimator(Estimator::Plugin).route("expert", Oracle::bayes(), 0.25).unwrap();
    let policy = router().policy(&task.abstain(0.1).unwrap()).unwrap();
    let flips = policy.cell(CellId(0)).unwrap().flips();
    assert_eq!(flips.iter().map(|flip| flip.price_of.as_str()).collect::<Vec<_>>(), ["abstain"]);
}
