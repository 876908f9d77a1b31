//! Cells: rows are assigned by the edges, quantile bins are not empty, and queries of empty cells fall back.

use pointsman::partition::{Axis, Edges, SPARSE_BELOW_ROWS};
use pointsman::policy::Level;
use pointsman::table::top_class;
use pointsman::{CellId, Cells, Loss, Partition, Router, Support, Table, Task};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{CLASS_NAMES, Rng, dist, table};

fn calibrated(table: &Table, partition: &str) -> Router {
    Router::calibrate(table, &partition.parse().unwrap()).unwrap()
}

/// The bin of a confidence by definition: the number of edges at or below it, compared in single precision.
fn bin(edges: &Edges, confidence: f64) -> usize {
    edges.values().iter().filter(|edge| **edge as f32 <= confidence as f32).count()
}

/// The largest entry of a row, as a share of its sum.
fn confidence(p: &[f64]) -> f64 {
    p[top_class(p)]
}

/// The documented edges: `sorted[floor(i·n/bins)]`, distinct and above the smallest value.
fn documented(mut values: Vec<f64>, bins: usize) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    let mut edges: Vec<f64> = Vec::new();
    for i in 1..bins {
        let Some(edge) = values.get(i * values.len() / bins) else { continue };
        if *edge as f32 > edges.last().copied().unwrap_or(values[0]) as f32 {
            edges.push(*edge);
        }
    }
    edges
}

fn world() -> impl Strategy<Value = (Table, usize)> {
    (2_usize..5).prop_flat_map(|c| (Just(c), vec((dist(c), -5.0..5.0, 0_u32..3), 1..60), 1_usize..12)).prop_map(
        |(c, rows, bins)| {
            let probs: Vec<Vec<f64>> = rows.iter().map(|row| row.0.clone()).collect();
            let votes = vec![vec![1_u32; c]; rows.len()];
            let features = rows.iter().flat_map(|row| [row.1, f64::from(row.2)]).collect();
            (table(c, &probs, &votes).with_features(["u", "v"], features).unwrap(), bins)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn top_class_cells_are_quantiles_of_each_class((table, bins) in world()) {
        let router = Router::calibrate(&table, &Partition::top_class(bins)).unwrap();
        let [Axis::TopClass { edges, first }] = router.cells().axes() else { panic!("one axis") };
        let classes = table.classes().len();
        for (class, edges) in edges.iter().enumerate() {
            let of_class = (0..table.rows()).map(|row| table.prediction(row)).filter(|p| top_class(p) == class);
            let values: Vec<f64> = of_class.map(|p| confidence(&p)).collect();
            prop_assert_eq!(edges.values(), documented(values, bins));
        }
        let found = router.find_cells(&table).unwrap();
        for (row, cell) in found.iter().enumerate() {
            let p = table.prediction(row);
            prop_assert_eq!(cell.index(), first[top_class(&p)] as usize + bin(&edges[top_class(&p)], confidence(&p)));
        }
        // A class has one cell more than edges, and each has rows unless the class has none.
        for class in 0..classes {
            let of_class = (0..table.rows()).filter(|&row| top_class(&table.prediction(row)) == class).count();
            let last = first.get(class + 1).map_or(router.cells().count(), |&next| next as usize);
            for cell in first[class] as usize..last {
                prop_assert_eq!(router.mixture(CellId(cell as u32)).is_empty(), of_class == 0);
            }
            prop_assert!(of_class > 0 || last == first[class] as usize + 1);
        }
        prop_assert_eq!((0..router.cells().count()).map(|c| router.mixture(CellId(c as u32)).len()).sum::<usize>(), table.rows());
    }

    #[test]
    fn confidence_feature_and_product_cells_follow_their_edges((table, bins) in world()) {
        let text = format!("confidence:{bins}*features:x_v=3,x_u={bins}");
        let router = calibrated(&table, &text);
        prop_assert_eq!(router.cells().features(), ["v", "u"]);
        let [Axis::Confidence { edges: c }, Axis::Feature { edges: v, .. }, Axis::Feature { edges: u, .. }] = router.cells().axes()
        else { panic!("three axes") };
        let column = |i: usize| (0..table.rows()).map(|row| table.features(row)[i]).collect::<Vec<_>>();
        let reals = |edges: &Edges, x: f64| edges.values().iter().filter(|edge| **edge <= x).count();
        for (row, cell) in router.find_cells(&table).unwrap().into_iter().enumerate() {
            let features = table.features(row);
            let wanted = (bin(c, confidence(&table.prediction(row))) * v.bins() + reals(v, features[1])) * u.bins() + reals(u, features[0]);
            prop_assert_eq!(cell.index(), wanted);
        }
        let mut values = column(1);
        values.sort_by(f64::total_cmp);
        values.dedup();
        prop_assert_eq!(v.bins(), values.len(), "three bins are enough for each value of v to have its own");
        // Every bin of every axis has rows, although some cells of the product have none.
        for (edges, values) in [(v, column(1)), (u, column(0))] {
            for bin in 0..edges.bins() {
                prop_assert!(values.iter().any(|&x| reals(edges, x) == bin));
            }
        }
    }

    #[test]
    fn level_sets_contain_equal_predictions((table, _) in world()) {
        let router = Router::calibrate(&table, &Partition::level_sets()).unwrap();
        let found = router.find_cells(&table).unwrap();
        let single = |row: usize| table.prediction(row).iter().map(|&x| x as f32).collect::<Vec<_>>();
        for a in 0..table.rows() {
            for b in 0..a {
                prop_assert_eq!(found[a] == found[b], single(a) == single(b));
            }
        }
        let distinct = found.iter().collect::<std::collections::HashSet<_>>().len();
        prop_assert_eq!(router.cells().count(), distinct + 1);
        prop_assert!(router.mixture(CellId(distinct as u32)).is_empty(), "the cell of predictions never seen");
    }

    /// Saturated models have many equal confidences; still no quantile bin is empty.
    #[test]
    fn ties_never_create_empty_quantile_bins(values in vec((0_u32..4, 0.5..1.0), 1..80), bins in 1_usize..40) {
        let probs: Vec<Vec<f64>> = values.into_iter().map(|(kind, x)| match kind {
            0 => vec![1.0, 0.0],
            1 => vec![0.9999, 0.0001],
            // Equal only in single precision.
            2 => vec![0.9999 + 1e-10 * x, 0.0001 - 1e-10 * x],
            _ => vec![x, 1.0 - x],
        }).collect();
        let votes = vec![vec![1, 1]; probs.len()];
        let table = table(2, &probs, &votes);
        for partition in [Partition::confidence(bins), Partition::top_class(bins)] {
            let router = Router::calibrate(&table, &partition).unwrap();
            let empty = (0..router.cells().count() as u32).filter(|&c| router.mixture(CellId(c)).is_empty()).count();
            // Only a class that is never on top has an empty cell.
            prop_assert_eq!(empty, usize::from(partition == Partition::top_class(bins)));
        }
    }

    /// The same predictions in f32, in f64 and as decimal text, with sums within floating-point noise of one.
    #[test]
    fn cells_do_not_depend_on_precision((probs, partition) in ((2_usize..5).prop_flat_map(|c| vec(dist(c), 1..40)),
        proptest::sample::select(vec!["top-class:7", "confidence:9", "level-sets"]))) {
        let classes = probs[0].len();
        let single: Vec<f32> = probs.concat().iter().map(|&x| x as f32).collect();
        let exact: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
        let text: Vec<f64> = single.iter().map(|x| x.to_string().parse().unwrap()).collect();
        let rows = |probs: Vec<f64>| Table::new(CLASS_NAMES[..classes].to_vec(), probs).unwrap()
            .with_votes(vec![1; single.len()]).unwrap();
        let (exact, text) = (rows(exact), rows(text));
        let (a, b) = (calibrated(&exact, partition), calibrated(&text, partition));
        let cells = a.find_cells(&exact).unwrap();
        prop_assert_eq!(&cells, &a.find_cells(&text).unwrap());
        prop_assert_eq!(&cells, &b.find_cells(&exact).unwrap());
        prop_assert_eq!(&cells, &b.find_cells(&text).unwrap());
        for router in [a, b] {
            let policy = router.policy(&Task::new(Loss::brier())).unwrap();
            for (row, p) in single.chunks_exact(classes).enumerate() {
                prop_assert_eq!(policy.decide(p).unwrap().cell(), cells[row]);
            }
        }
    }
}

fn places(router: &Router, queries: &[[f64; 3]]) -> Vec<(u32, Level, Support, usize)> {
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    let place = |p: &[f64; 3]| {
        let decision = policy.decide(p).unwrap();
        (decision.cell().0, decision.level(), decision.support(), decision.rows())
    };
    queries.iter().map(place).collect()
}

/// Calibration rows predict only the first two classes; the third has one empty cell.
fn two_of_three() -> Table {
    let probs: Vec<Vec<f64>> = (0..80)
        .map(|i| match (i % 2, 0.5 + f64::from(i) / 200.0) {
            (0, top) => vec![top, 1.0 - top, 0.0],
            (_, top) => vec![1.0 - top, top, 0.0],
        })
        .collect();
    table(3, &probs, &vec![vec![1, 1, 0]; 80])
}

#[test]
fn unseen_top_classes_fall_back_to_confidence() {
    let router = calibrated(&two_of_three(), "top-class:2");
    assert_eq!(router.cells().count(), 5, "two cells for each class seen, one for the class without rows");
    assert_eq!(router.backoff().count(), 2);
    assert!(router.mixture(CellId(4)).is_empty());
    let found = places(&router, &[[0.55, 0.45, 0.0], [0.0, 0.2, 0.8], [0.05, 0.05, 0.9], [0.3, 0.3, 0.4]]);
    assert_eq!(found[0], (0, Level::Cell, Support::Sparse, 20));
    assert_eq!(found[1..], [(4, Level::Confidence, Support::Empty, 40); 3]);
    // Low and high confidence fall back to different rows.
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    let total = |p: &[f64; 3]| policy.decide(p).unwrap().total();
    assert_ne!(total(&[0.05, 0.05, 0.9]), total(&[0.3, 0.3, 0.4]));
    let confident: Vec<usize> = (0..80).filter(|&i| 0.5 + i as f64 / 200.0 >= 0.7).collect();
    let loss: f64 = confident
        .iter()
        .map(|&i| {
            let t = 0.5 + i as f64 / 200.0;
            0.5 + 2.0 * (t - 0.5).powi(2)
        })
        .sum();
    assert!((total(&[0.05, 0.05, 0.9]) - loss / confident.len() as f64).abs() < 1e-12);
    // The empty cell itself has no decision.
    assert!(policy.cell(CellId(4)).is_none());
    assert_eq!(router.cells().name(CellId(4), router.classes()), "cat");
}

#[test]
fn unseen_predictions_fall_back_to_confidence() {
    let router = calibrated(&two_of_three(), "level-sets");
    assert_eq!(router.cells().count(), 81);
    let found = places(&router, &[[0.5, 0.5, 0.0], [0.6, 0.3, 0.1]]);
    assert_eq!((found[0].1, found[0].2, found[0].3), (Level::Cell, Support::Sparse, 1));
    assert_eq!((found[1].0, found[1].1, found[1].2), (80, Level::Confidence, Support::Empty));
    assert_eq!(router.cells().name(CellId(80), router.classes()), "predictions never seen");
}

#[test]
fn empty_cells_of_products_fall_back_to_confidence() {
    // The feature is 0 if the first class is on top and 1 otherwise, so half of the product is empty.
    let table = two_of_three();
    let feature = (0..80).map(|row| f64::from(table.peak(row).class)).collect();
    let table = table.with_features(["kind"], feature).unwrap();
    let router = calibrated(&table, "top-class:1*features:x_kind=2");
    assert_eq!(router.cells().count(), 6);
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    let place = |p: [f64; 3], kind: f64| {
        let decision = policy.decide_with(&p, &[kind]).unwrap();
        (decision.cell().0, decision.level(), decision.support(), decision.rows())
    };
    assert_eq!(place([0.8, 0.2, 0.0], 0.0), (0, Level::Cell, Support::Enough, 40));
    assert_eq!(place([0.8, 0.2, 0.0], 1.0), (1, Level::Confidence, Support::Empty, 80));
    assert_eq!(place([0.2, 0.8, 0.0], 0.0), (2, Level::Confidence, Support::Empty, 80));
    assert_eq!(place([0.2, 0.8, 0.0], 1.0), (3, Level::Cell, Support::Enough, 40));
    assert_eq!(place([0.2, 0.0, 0.8], -1e9), (4, Level::Confidence, Support::Empty, 80));
    assert_eq!(place([0.2, 0.0, 0.8], 1e9), (5, Level::Confidence, Support::Empty, 80));
}

/// Confidence bins read from a file may have no rows either; then all rows are used.
#[test]
fn empty_confidence_bins_fall_back_to_all_rows() {
    let table = two_of_three();
    let fitted = calibrated(&table, "top-class:2");
    let edges = Edges::of_confidence(vec![0.45, 0.95]).unwrap();
    let backoff = Cells::new(3, vec![Axis::Confidence { edges }], Vec::new()).unwrap();
    let router =
        Router::from_parts(fitted.partition().clone(), (**fitted.cells()).clone(), backoff, false, &table).unwrap();
    let found = places(&router, &[[0.0, 0.2, 0.8], [0.3, 0.3, 0.4], [0.0, 0.02, 0.98], [0.99, 0.01, 0.0]]);
    assert_eq!(found[0], (4, Level::Confidence, Support::Empty, 80));
    assert_eq!(found[1..3], [(4, Level::All, Support::Empty, 80); 2]);
    assert_eq!((found[3].1, found[3].3), (Level::Cell, 20), "a cell with rows never falls back");
    assert_eq!([Level::Cell, Level::Confidence, Level::All].map(Level::name), ["cell", "confidence", "all"]);
}

#[test]
fn support_depends_on_the_number_of_rows() {
    let supports = [0, 1, SPARSE_BELOW_ROWS - 1, SPARSE_BELOW_ROWS, 1_000_000]
        .map(|rows| Support::from_effective_rows(rows as f64).name());
    assert_eq!(supports, ["empty", "sparse", "sparse", "enough", "enough"]);
}

#[test]
fn values_outside_the_range_fall_into_the_outer_cells() {
    let mut rng = Rng::new(1);
    let probs: Vec<Vec<f64>> = (0..100)
        .map(|_| {
            let p = 0.6 + 0.2 * rng.uniform();
            vec![p, 1.0 - p]
        })
        .collect();
    let router = calibrated(&table(2, &probs, &vec![vec![1, 1]; 100]), "confidence:10");
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    let cell = |p: f64| policy.decide(&[p, 1.0 - p]).unwrap().cell().0;
    assert_eq!((cell(0.5), cell(0.55), cell(0.85), cell(1.0)), (0, 0, 9, 9));
}

#[test]
fn ties_on_top_go_to_the_first_class_in_every_precision() {
    let router = calibrated(&two_of_three(), "top-class:1");
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    let third = 1.0_f32 / 3.0;
    assert_eq!(policy.decide(&[0.4, 0.4, 0.2]).unwrap().cell().0, 0);
    assert_eq!(policy.decide(&[0.2, 0.4, 0.4]).unwrap().cell().0, 1);
    assert_eq!(policy.decide(&[third; 3]).unwrap().cell().0, 0);
    assert_eq!(policy.decide(&[0.333, 0.333, 0.333]).unwrap().cell().0, 0);
}

#[test]
fn partitions_that_do_not_fit_are_refused() {
    let table = two_of_three();
    for text in ["features:x_size=3", "top-class:2*features:x_size=3"] {
        let error = Router::calibrate(&table, &text.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("x_size is needed"), "{error}");
    }
    for partition in [Partition::top_class(0), Partition::confidence(0), Partition::features([("a", 1); 0])] {
        assert!(Router::calibrate(&table, &partition).is_err(), "{partition}");
    }
    let no_votes = Table::new(["a", "b"], vec![0.5, 0.5]).unwrap();
    assert!(Router::calibrate(&no_votes, &Partition::top_class(1)).is_err());
    let no_rows = Table::new(["a", "b"], vec![]).unwrap().with_votes(vec![]).unwrap();
    assert!(Router::calibrate(&no_rows, &Partition::top_class(1)).is_err());
    // A table with other classes, or with the same classes in another order, does not fit the router.
    let router = calibrated(&table, "top-class:2");
    let other = Table::new(["bee", "ant", "cat"], vec![0.5, 0.5, 0.0]).unwrap();
    assert!(router.find_cells(&other).unwrap_err().to_string().contains("order"));
    for edges in [vec![0.5, 0.5], vec![0.6, 0.5], vec![f64::NAN], vec![f64::INFINITY], vec![0.5, 0.5 + 1e-12]] {
        assert!(Edges::of_confidence(edges.clone()).is_err(), "{edges:?}");
    }
    assert!(Edges::of_feature(vec![0.5, 0.5 + 1e-12]).is_ok(), "features are compared in double precision");
    // Inconsistent cells from a file.
    let edges = |values: &[f64]| Edges::of_confidence(values.to_vec()).unwrap();
    let level = |levels: &[f32], classes| Axis::LevelSets { levels: levels.to_vec(), classes };
    for axis in [
        Axis::TopClass { edges: vec![edges(&[0.5])], first: vec![0] },
        Axis::TopClass { edges: vec![edges(&[0.5]), edges(&[])], first: vec![0, 1] },
        level(&[0.5, 0.5, 0.5], 2),
        level(&[0.5, 0.5], 3),
        level(&[0.5, 0.5, 0.5, 0.5], 2),
        level(&[0.6, 0.4, 0.5, 0.5], 2),
        level(&[f32::NAN, 0.5], 2),
        Axis::Feature { name: "a".into(), slot: 1, edges: edges(&[]) },
        Axis::Feature { name: "b".into(), slot: 0, edges: edges(&[]) },
    ] {
        assert!(Cells::new(2, vec![axis.clone()], vec!["a".into()]).is_err(), "{axis:?}");
    }
    assert!(Cells::new(2, Vec::new(), Vec::new()).is_err());
}
