//! Judgements of policies by certificates.

use pointsman::{CellId, Loss, Partition, Router};

use crate::certificates::{World, judged, regret, task};
use crate::world::Rng;

/// The regret bounds of a router with 20 cells, by betting and by Hoeffding's inequality; ten times the rows determine more.
#[test]
fn betting_bounds_are_far_below_hoeffding_bounds() {
    let mut rng = Rng::new(3);
    println!("K = 20, n = 5000, confidence 0.95, route 0.10");
    for (loss, k, most) in [("brier", 2, 0.08), ("brier", 5, 0.035), ("brier", 20, 0.025), ("zero-one", 20, 0.1)] {
        let loss: Loss = loss.parse().unwrap();
        let router = Router::calibrate(&World::draw(&mut rng, 5000, k), &Partition::confidence(20)).unwrap();
        let task = task(&loss, 0.1, None);
        let (certificate, policy) = (router.certificate(&task, 0.95).unwrap(), router.policy(&task).unwrap());
        let judgement = certificate.judge(&policy).unwrap();
        // Hoeffding's intervals of the difference: 20 cells, three intervals each, both ends.
        let range = loss.bound() + if loss == Loss::brier() { 0.5 } else { loss.bound() };
        let half = range * ((2.0 * 60.0 / 0.05_f64).ln() / (2.0 * 250.0)).sqrt();
        let margin = |cell: u32| (policy.cell(CellId(cell)).unwrap().reducible().unwrap() - 0.1).abs();
        let hoeffding = (0..20).map(|cell| (half - margin(cell)).max(0.0) / 20.0).sum::<f64>();
        println!(
            "{loss}, k = {k}: bound {:.4} (Hoeffding {hoeffding:.3}), certain {:.2}, actual regret {:.4}",
            judgement.regret_bound,
            judgement.certain,
            regret(&router.policy(&task).unwrap(), &World::cells(&router, &loss))
        );
        assert!(
            judgement.regret_bound < f64::min(most, 0.5 * hoeffding),
            "{loss}, k = {k}: {}",
            judgement.regret_bound
        );
    }
}

/// With one label per item the bounds of the irreducible loss are Jensen's, and predicting against abstaining is determined.
#[test]
fn one_label_per_item_certifies_abstaining() {
    let mut rng = Rng::new(61);
    let router = Router::calibrate(&World::draw(&mut rng, 2000, 1), &Partition::confidence(2)).unwrap();
    let task = task(&Loss::brier(), 0.9, Some(0.05));
    let certificate = router.certificate(&task, 0.95).unwrap();
    for cell in certificate.cells() {
        assert_eq!(cell.irreducible().low, 0.0);
        assert!(cell.irreducible().high < 0.6);
    }
    let judgement = judged(&router, &certificate, &task);
    assert!(judgement.cells.iter().all(|cell| cell.certain), "abstaining at 0.05 beats predicting");
}

/// A budget is judged at its equivalent price, except in the cell with a random draw.
#[test]
fn budgets_are_judged_at_equivalent_prices() {
    let mut rng = Rng::new(81);
    let router = Router::calibrate(&World::draw(&mut rng, 2000, 5), &Partition::confidence(8)).unwrap();
    let task = task(&Loss::brier(), 0.02, None).budget(0.3).unwrap();
    let (policy, certificate) = (router.policy(&task).unwrap(), router.certificate(&task, 0.9).unwrap());
    let judgement = certificate.judge(&policy).unwrap();
    let priced = certificate.judge(&policy.reprice(&policy.priced_task()).unwrap()).unwrap();
    let mut random_cells = 0;
    for (i, (limited, priced)) in judgement.cells.iter().zip(&priced.cells).enumerate() {
        if policy.cell(CellId(i as u32)).unwrap().marginal_share().is_some() {
            // Both actions are taken there, and their estimated costs are equal.
            assert!(!limited.certain && limited.regret > 0.0);
            random_cells += 1;
        } else {
            assert_eq!(limited, priced);
        }
    }
    assert_eq!(random_cells, 1);
    let plan = router.plan(&task, 0.9).unwrap();
    assert!(
        plan.cells.iter().any(|cell| cell.margin.unwrap().abs() < 1e-9),
        "the cell with a random draw is in the plan"
    );
}
