//! Bounds for all proper losses at once.

use pointsman::{CellId, Loss, Partition, Router, Task};

use crate::certificates::{World, judged, task};
use crate::world::{Rng, close, table};

/// The bound for all proper losses holds for named losses and for random matrices.
#[test]
fn bounds_for_all_losses_hold() {
    let mut rng = Rng::new(71);
    let (mut probs, mut votes, mut truths) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..1500 {
        let truth = if rng.uniform() < 0.5 { [0.9, 0.1] } else { [0.3, 0.7] };
        truths.push(truth);
        votes.push(rng.votes(&truth, 10));
        probs.push(vec![0.6, 0.4]);
    }
    let router = Router::calibrate(&table(2, &probs, &votes), &Partition::level_sets()).unwrap();
    let bound = router.all_losses(CellId(0), 0.9).unwrap();
    assert!(bound.total.unwrap() < 0.05 && bound.irreducible_above < 0.25, "{bound:?}");
    let mut losses: Vec<Loss> = ["brier", "zero-one", "spherical", "three-part"].map(|l| l.parse().unwrap()).into();
    for _ in 0..100 {
        let cost = (0..3).map(|_| (0..2).map(|_| rng.uniform()).collect()).collect();
        losses.push(Loss::matrix(["a", "b", "c"], cost).unwrap());
    }
    for loss in losses {
        let policy = router.policy(&Task::new(loss.clone()).estimator(pointsman::Estimator::Plugin)).unwrap();
        let decision = policy.cell(CellId(0)).unwrap();
        let total = [[0.9, 0.1], [0.3, 0.7]].iter().map(|p| loss.expected(p, &[0.6, 0.4]) / 2.0).sum::<f64>();
        let irreducible = [[0.9, 0.1], [0.3, 0.7]].iter().map(|p| loss.entropy(p) / 2.0).sum::<f64>();
        let b = loss.bound();
        assert!((decision.total() - total).abs() <= b * bound.total.unwrap(), "{loss}");
        let off = irreducible - decision.irreducible().unwrap();
        assert!((-b * bound.irreducible_below..=b * bound.irreducible_above).contains(&off), "{loss}: {off}");
    }
}

/// The error probabilities of certificates and bounds that are given together sum to the stated one.
#[test]
fn certificates_and_bounds_for_all_losses_share_the_error_probability() {
    let mut rng = Rng::new(73);
    let router = Router::calibrate(&World::draw(&mut rng, 2000, 3), &Partition::confidence(4)).unwrap();
    let tasks = [task(&Loss::brier(), 0.1, Some(0.4)), task(&Loss::zero_one(), 0.1, None)];
    for confidence in [0.8, 0.95] {
        let together = router.certify_together(&tasks, confidence).unwrap();
        let delta = 1.0 - confidence;
        // Nine tenths of the error probability are for the certificates, including shares, and the stated confidence is the requested one.
        let alone = router.certificates(&tasks, 1.0 - 0.9 * delta).unwrap();
        let whole = router.certificates(&tasks, confidence).unwrap();
        for (((found, wanted), whole), task) in together.certificates.iter().zip(&alone).zip(&whole).zip(&tasks) {
            assert_eq!(found.confidence(), confidence);
            for ((found, wanted), whole) in found.cells().iter().zip(wanted.cells()).zip(whole.cells()) {
                close(found.reducible().high, wanted.reducible().high, 1e-9, "reducible");
                close(found.total().low, wanted.total().low, 1e-9, "total");
                assert!(found.total().low < whole.total().low, "the whole of the failures is not there");
            }
            let bounds = [found, wanted].map(|certificate| judged(&router, certificate, task).regret_bound);
            close(bounds[0], bounds[1], 1e-9, "regret bound");
        }
        // One tenth is for the bounds.
        for cell in (0..4).map(CellId) {
            let wanted = router.all_losses(cell, 1.0 - 0.1 * delta).unwrap();
            let found = together.all_losses[cell.index()].unwrap();
            close(found.irreducible_above, wanted.irreducible_above, 1e-9, "above");
            assert!(found.irreducible_below > router.all_losses(cell, confidence).unwrap().irreducible_below);
        }
    }
    // Weights allow no bound, and then no error probability is reserved for it.
    let weighted = World::draw(&mut rng, 2000, 3).with_weights(vec![1.0; 2000]).unwrap();
    let router = Router::calibrate(&weighted, &Partition::confidence(4)).unwrap();
    let together = router.certify_together(&tasks[..1], 0.9).unwrap();
    assert!(together.all_losses.iter().all(Option::is_none));
    assert_eq!(together.certificates[0].cells(), router.certificate(&tasks[0], 0.9).unwrap().cells());
}

#[test]
fn uninformative_bounds_for_all_losses_are_refused() {
    let mut rng = Rng::new(72);
    let mut rows = |n: usize| {
        let truths: Vec<Vec<f64>> = (0..n).map(|_| rng.dist(3)).collect();
        let votes: Vec<Vec<u32>> = truths.iter().map(|p| rng.votes(p, 3)).collect();
        Router::calibrate(&table(3, &truths, &votes), &Partition::confidence(1)).unwrap()
    };
    let error = rows(900).all_losses(CellId(0), 0.9).unwrap_err().to_string();
    assert!(error.contains("1000 rows") && error.contains("declare"), "{error}");
    let bound = rows(1100).all_losses(CellId(0), 0.9).unwrap();
    assert!(bound.total.is_none() && bound.irreducible_below > 0.0, "predictions vary: {bound:?}");
    assert!(rows(50).all_losses(CellId(1), 0.9).is_err() && rows(50).all_losses(CellId(0), 1.0).is_err());
}
