use super::*;

const LAWS: [&[f64]; 6] = [
    &[0.3, 0.7],
    &[1.0, 0.0],
    &[0.5, 0.25, 0.25],
    &[0.1, 0.0, 0.9],
    &[0.15, 0.2, 0.25, 0.4],
    &[0.01, 0.04, 0.9, 0.02, 0.03],
];
const SNAPSHOTS: [&[u32]; 5] = [&[4, 6], &[10, 0], &[3, 3, 4], &[1, 0, 9], &[2, 3, 1, 4]];

fn losses(classes: usize) -> Vec<Loss> {
    let names = ["brier", "cross-entropy", "spherical", "zero-one", "asymmetric:3", "fn-fp:fp=1,fn=4", "three-part"];
    let losses = names.iter().map(|name| name.parse::<Loss>().unwrap());
    losses.filter(|loss| loss.check_classes(classes).is_ok()).collect()
}

/// Urns of all three kinds.
fn urns() -> Vec<Urn> {
    let laws = LAWS.iter().map(|p| Urn::from_distribution(p));
    let snapshots = SNAPSHOTS.iter().map(|counts| Urn::from_votes(Votes::new(counts)));
    let posteriors = LAWS.iter().map(|p| Urn::from_dirichlet(&p.iter().map(|x| 3.0 * x).collect::<Vec<_>>()));
    laws.chain(snapshots).chain(posteriors).collect()
}

fn panel(experts: u32, aggregate: Aggregate) -> Panel {
    Panel { experts, aggregate }
}

#[test]
fn outcome_probabilities_sum_to_one() {
    for urn in urns() {
        for m in 1..=9 {
            let (mut sum, mut seen) = (0.0, 0.0);
            urn.for_each_outcome(m, &mut |counts, chance| {
                assert_eq!(counts.iter().sum::<u32>(), m);
                (sum, seen) = (sum + chance, seen + 1.0);
            });
            assert!((sum - 1.0).abs() < 1e-12, "{urn:?} {m}: {sum}");
            assert_eq!(urn.outcomes(m, MAX_OUTCOMES), seen, "{urn:?} {m}");
        }
    }
}

#[test]
fn closed_forms_equal_the_enumeration() {
    let aggregates = [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(1.0), Aggregate::Laplace(0.3)];
    for urn in urns() {
        for loss in losses(urn.classes()) {
            for aggregate in aggregates {
                for m in [1, 2, 3, 5, 9] {
                    let panel = panel(m, aggregate);
                    let (found, wanted) = (panel.cost(&loss, &urn), panel.enumerated(&loss, &urn));
                    let rounding = 1e-12 * loss.bound().max(1.0);
                    assert!((found - wanted).abs() < rounding, "{loss} {panel:?} {urn:?}: {found}, {wanted}");
                    let exact = panel.costing_for(&loss, urn.classes(), 1).cost(&loss, &urn);
                    assert!((exact - wanted).abs() < rounding, "{loss} {panel:?} {urn:?}: {exact}, {wanted}");
                    if aggregate == Aggregate::Plurality {
                        let exact = panel.plurality(&loss, &urn);
                        assert!((exact - wanted).abs() < rounding, "{loss} {panel:?} {urn:?}: {exact}, {wanted}");
                    }
                }
            }
        }
    }
}

/// One label more than experts, and the largest counts that a table can hold.
#[test]
fn unbiased_loss_needs_one_label_more_than_experts() {
    let loss = Loss::zero_one();
    for aggregate in [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(1.0)] {
        let least = panel(3, aggregate).unbiased(&loss, Votes::new(&[2, 1, 1])).unwrap();
        assert!((0.0..=1.0).contains(&least));
        assert_eq!(panel(4, aggregate).unbiased(&loss, Votes::new(&[2, 1, 1])), None);
        let many = [u32::MAX, u32::MAX / 2, 7];
        let p = many.map(|n| f64::from(n) / many.iter().map(|&n| f64::from(n)).sum::<f64>());
        for m in [1, 5, 60, 1000] {
            let found = panel(m, aggregate).unbiased(&loss, Votes::new(&many)).unwrap();
            let wanted = panel(m, aggregate).cost(&loss, &Urn::from_distribution(&p));
            assert!((found - wanted).abs() < 0.02, "{aggregate} {m}: {found} {wanted}");
        }
    }
}

/// Hundreds of labels, where the probabilities of single outcomes underflow.
#[test]
fn large_panels_equal_the_enumeration() {
    for urn in [
        Urn::from_distribution(&[0.02, 0.98]),
        Urn::from_distribution(&[0.3, 0.3, 0.4]),
        Urn::from_votes(Votes::new(&[700, 301])),
    ] {
        for loss in [Loss::zero_one(), Loss::brier()] {
            for m in [120, 400, 1000].into_iter().filter(|&m| m < 500 || urn.classes() == 2) {
                let panel = panel(m, Aggregate::Plurality);
                let (found, wanted) =
                    (panel.costing_for(&loss, urn.classes(), 1).cost(&loss, &urn), panel.enumerated(&loss, &urn));
                assert!((found - wanted).abs() < 1e-11, "{loss} {m} {urn:?}: {found}, {wanted}");
            }
        }
    }
}

#[test]
fn sampled_loss_is_reproducible_and_near_the_enumeration() {
    for urn in urns() {
        for loss in losses(urn.classes()) {
            for aggregate in [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(0.5)] {
                let panel = panel(4, aggregate);
                let (found, wanted) = (panel.sampled(&loss, &urn, 4000), panel.enumerated(&loss, &urn));
                // Four standard errors of the mean of losses in [0, B].
                let error = 2.0 * loss.bound() / 4000_f64.sqrt();
                assert!((found - wanted).abs() < error, "{loss} {panel:?} {urn:?}: {found}, {wanted}");
                assert_eq!(found.to_bits(), panel.sampled(&loss, &urn, 4000).to_bits());
            }
        }
    }
}
