//! Calibration in parts: the router does not depend on the division of rows, and a cap gives an unbiased sample.

use pointsman::router::{Cap, Partial};
use pointsman::{CellId, Loss, Oracle, Partition, Router, Support, Table, Task};
use proptest::prelude::*;

use crate::world::{CLASS_NAMES, Rng, close};

/// Rows of coarse predictions, so that many are equal.
fn rows(n: usize, weighted: bool, seed: u64) -> Vec<Row> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let truth = rng.dist(3);
            let probs = rng.votes(&truth, 6).iter().map(|&n| f64::from(n) / 6.0).collect();
            let votes = rng.votes(&truth, 2);
            let weight = if weighted { [0.1, 0.7, 3.0][rng.below(3)] } else { 1.0 };
            Row { probs, votes, weight, feature: (rng.uniform() * 3.0).floor() }
        })
        .collect()
}

#[derive(Clone)]
struct Row {
    probs: Vec<f64>,
    votes: Vec<u32>,
    weight: f64,
    feature: f64,
}

fn table<'a>(rows: impl IntoIterator<Item = &'a Row>, weighted: bool) -> Table {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let table = Table::new(CLASS_NAMES[..3].to_vec(), rows.iter().flat_map(|row| row.probs.clone()).collect())
        .unwrap()
        .with_votes(rows.iter().flat_map(|row| row.votes.clone()).collect())
        .unwrap()
        .with_features(["a", "unused"], rows.iter().flat_map(|row| [row.feature, 0.5]).collect())
        .unwrap();
    if weighted { table.with_weights(rows.iter().map(|row| row.weight).collect()).unwrap() } else { table }
}

/// Rows with their numbers as ids, divided among parts by `owner`, each part's rows in the order of `order`.
fn deal(rows: &[Row], order: &[usize], owner: &[usize], parts: usize, weighted: bool) -> Vec<(Table, Vec<u64>)> {
    (0..parts)
        .map(|part| {
            let mine: Vec<usize> = order.iter().copied().filter(|&i| owner[i] == part).collect();
            (table(mine.iter().map(|&i| &rows[i]), weighted), mine.iter().map(|&i| i as u64).collect())
        })
        .collect()
}

fn part(like: &Router, cap: Option<Cap>, shard: &(Table, Vec<u64>)) -> Partial {
    let empty = Partial::like(like).unwrap();
    let mut part = if let Some(cap) = cap { empty.capped(cap).unwrap() } else { empty };
    part.add_with_ids(&shard.0, &shard.1).unwrap();
    part
}

const PARTITIONS: [&str; 8] = [
    "top-class:4",
    "confidence:7",
    "level-sets",
    "top-class:2*features:x_a=3",
    "pooled",
    "tree",
    "honest-forest:4",
    "forest:4",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn router_does_not_depend_on_the_division(
        seed in any::<u64>(), parts in 1_usize..6, partition in 0..PARTITIONS.len(), weighted: bool, cap in prop::option::of(1_usize..40),
    ) {
        let rows = rows(300, weighted, seed);
        // Cells are fitted to a sample that lacks some levels and classes of the rest.
        let sample = table(&rows[..100], weighted);
        let like = Router::calibrate(&sample, &PARTITIONS[partition].parse::<Partition>().unwrap()).unwrap();
        // Leaves are not filled with fewer than thirty rows.
        let least = if like.partition() == &Partition::forest(4) { 30 } else { 0 };
        let cap = cap.map(|rows| Cap { rows: rows + least, seed });
        let mut rng = Rng::new(seed ^ 1);
        let straight: Vec<usize> = (0..rows.len()).collect();
        let one = deal(&rows, &straight, &vec![0; rows.len()], 1, weighted);
        let whole = part(&like, cap, &one[0]).finish().unwrap();
        if cap.is_none() {
            prop_assert_eq!(&whole, &Router::calibrate_like(&one[0].0, &like).unwrap());
        }
        for _ in 0..2 {
            let mut order = straight.clone();
            rng.shuffle(&mut order);
            let owner: Vec<usize> = rows.iter().map(|_| rng.below(parts)).collect();
            let mut made: Vec<Partial> =
                deal(&rows, &order, &owner, parts, weighted).iter().map(|shard| part(&like, cap, shard)).collect();
            rng.shuffle(&mut made);
            // A tree of merges: pairs first, then the rest in turn.
            let mut merged = Partial::like(&like).unwrap();
            if let Some(cap) = cap {
                merged = merged.capped(cap).unwrap();
            }
            for pair in made.chunks_mut(2) {
                let (first, second) = pair.split_at_mut(1);
                if let [second] = second {
                    second.merge(&first[0]).unwrap();
                    merged.merge(second).unwrap();
                } else {
                    merged.merge(&first[0]).unwrap();
                }
            }
            prop_assert_eq!(&whole, &merged.finish().unwrap());
            let (kept, keys, seen) = (merged.kept().clone(), merged.keys().to_vec(), merged.seen());
            let (partition, cells, backoff) =
                (merged.partition().clone(), (**merged.cells()).clone(), (**merged.backoff()).clone());
            let again = Partial::from_parts(partition, cells, backoff, false, cap, (kept, keys, &seen)).unwrap();
            prop_assert_eq!(&whole, &again.finish().unwrap());
        }
    }

    #[test]
    fn caps_bound_rows_and_keep_weight(seed in any::<u64>(), weighted: bool, cap in 1_usize..30) {
        let rows = rows(400, weighted, seed);
        let all = table(&rows, weighted);
        let ids: Vec<u64> = (0..rows.len() as u64).collect();
        let like = Router::calibrate(&all, &Partition::top_class(4)).unwrap();
        let sampled = part(&like, Some(Cap { rows: cap, seed }), &(all.clone(), ids)).finish().unwrap();
        for cell in (0..like.cells().count()).map(|cell| CellId(cell as u32)) {
            let (full, kept) = (like.mixture(cell), sampled.mixture(cell));
            prop_assert_eq!(kept.len(), full.len().min(cap));
            let weight = |mixture: pointsman::Mixture<'_>| mixture.rows().map(|row| mixture.table().weight(row)).sum::<f64>();
            close(weight(kept), weight(full), 1e-9 * weight(full).max(1.0), "the cell's weight");
            if !weighted {
                // Scaled weights do not count as more rows: the support is that of the kept rows.
                prop_assert_eq!(kept.support(), Support::from_effective_rows(full.len().min(cap) as f64));
            }
        }
    }
}

#[test]
fn caps_that_are_not_reached_change_nothing() {
    for weighted in [false, true] {
        let rows = rows(500, weighted, 5);
        let all = table(&rows, weighted);
        let router = Router::calibrate(&all, &Partition::top_class(5)).unwrap();
        let ids: Vec<u64> = (0..500).collect();
        let part = part(&router, Some(Cap { rows: 500, seed: 1 }), &(all, ids));
        assert_eq!(part.finish().unwrap(), router);
        assert_eq!(part.table().unwrap().has_weights(), weighted);
    }
}

/// Over seeds, the mean and the irreducible loss of a cell are those of all rows, including equal rows.
#[test]
fn capped_samples_are_unbiased() {
    // Half of the rows are equal.
    let mut rows = rows(200, false, 8);
    let saturated = Row { probs: vec![1.0, 0.0, 0.0], votes: vec![2, 0, 0], weight: 1.0, feature: 0.0 };
    rows.extend(vec![saturated; 200]);
    let all = table(&rows, false);
    let ids: Vec<u64> = (0..rows.len() as u64).collect();
    let like = Router::calibrate(&all, &Partition::confidence(1)).unwrap();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.0).unwrap();
    let losses = |router: &Router| {
        let policy = router.policy(&task).unwrap();
        let cell = policy.cell(CellId(0)).unwrap();
        [cell.irreducible().unwrap(), cell.total(), router.mixture(CellId(0)).centroid().unwrap()[0]]
    };
    let truth = losses(&like);
    let (seeds, cap) = (400, 40);
    let mut draws = vec![Vec::new(); truth.len()];
    for seed in 0..seeds {
        let sampled = part(&like, Some(Cap { rows: cap, seed }), &(all.clone(), ids.clone())).finish().unwrap();
        losses(&sampled).into_iter().zip(&mut draws).for_each(|(loss, draws)| draws.push(loss));
    }
    for (draws, truth) in draws.iter().zip(truth) {
        let mean = draws.iter().sum::<f64>() / seeds as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (seeds - 1) as f64;
        assert!(variance > 0.0);
        close(mean, truth, 5.0 * (variance / seeds as f64).sqrt(), "the mean over seeds");
    }
}

#[test]
fn capped_rows_can_be_calibrated_as_a_forest() {
    let rows = rows(600, false, 3);
    let all = table(&rows, false);
    let like = Router::calibrate(&all, &Partition::confidence(5)).unwrap();
    let ids: Vec<u64> = (0..600).collect();
    let sampled = part(&like, Some(Cap { rows: 60, seed: 1 }), &(all.clone(), ids)).table().unwrap();
    assert_eq!(sampled.feature_names(), all.feature_names());
    let forest = Router::calibrate(&sampled, &Partition::forest(5)).unwrap();
    assert!(forest.rows().has_weights() && forest.rows().rows() <= 300);
    // Without a cap all rows are kept, and calibrating them gives the same router as in one place.
    let mut gathered = Partial::like(&like).unwrap();
    gathered.add(&table(&rows[300..], false)).unwrap();
    gathered.add(&table(&rows[..300], false)).unwrap();
    let partition = Partition::forest(5);
    let here = Router::calibrate(&gathered.table().unwrap(), &partition).unwrap();
    assert_eq!(here, Router::calibrate(&all, &partition).unwrap());
}

#[test]
fn inconsistent_parts_are_refused_with_advice() {
    let all = table(&rows(100, false, 1), false);
    let like = Router::calibrate(&all, &Partition::top_class(3)).unwrap();
    let says = |outcome: pointsman::Result<()>, what: &str| {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    let mut part = Partial::like(&like).unwrap();
    says(part.finish().map(drop), "at least one row");
    says(part.add(&Table::new(CLASS_NAMES[..3].to_vec(), vec![0.2, 0.3, 0.5]).unwrap()), "needs votes");
    says(
        part.add(&Table::new(["x", "y"], vec![0.5, 0.5]).unwrap().with_votes(vec![1, 0]).unwrap()),
        "classes are x, y",
    );
    part.add(&all).unwrap();
    let bare = |votes| Table::new(CLASS_NAMES[..3].to_vec(), vec![0.2, 0.3, 0.5]).unwrap().with_votes(votes).unwrap();
    says(part.add(&bare(vec![1, 0, 0])), "differ in their features, x_a, x_unused and none");
    assert_eq!(part.kept().rows(), 100);
    says(part.clone().capped(Cap { rows: 5, seed: 0 }).map(drop), "give the cap first");

    let empty = || Partial::like(&like).unwrap();
    says(empty().capped(Cap { rows: 0, seed: 0 }).map(drop), "number from 1");
    let mut capped = empty().capped(Cap { rows: 5, seed: 0 }).unwrap();
    says(capped.add(&all), "a cap needs ids");
    says(capped.add_with_ids(&all, &[1, 2]), "2 ids for 100 rows");
    says(capped.merge(&empty()), "caps, 5 rows with seed 0 and none");
    let other = |partition| Partial::like(&Router::calibrate(&all, &partition).unwrap()).unwrap();
    says(empty().merge(&other(Partition::confidence(3))), "partitions, top-class:3 and confidence:3");
    let sample = Router::calibrate(&table(&rows(50, false, 2), false), &Partition::top_class(3)).unwrap();
    says(empty().merge(&Partial::like(&sample).unwrap()), "differ in the cells of top-class:3");
    says(empty().merge(&Partial::like(&like.clone().recalibrated()).unwrap()), "centroids");
    let forest = Router::calibrate(&all, &Partition::forest(3)).unwrap();
    says(forest.with_more_rows(&all).map(drop), "made of its own rows");
    let few = all.keep_rows(|row| row < 19);
    says(Router::calibrate_like(&few, &forest).map(drop), "too few");
    let mut part = Partial::like(&forest).unwrap();
    part.add(&few).unwrap();
    says(part.finish().map(drop), "too few");
    part.add(&all).unwrap();
    assert!(part.finish().is_ok());
    says(Router::calibrate_like(&all, &forest.clone().recalibrated()).map(drop), "forest");
}

#[test]
fn self_contradictory_parts_are_refused() {
    let all = table(&rows(100, true, 1), true);
    let like = Router::calibrate(&all, &Partition::top_class(3)).unwrap();
    let cap = Cap { rows: 5, seed: 0 };
    let ids: Vec<u64> = (0..100).collect();
    let good = part(&like, Some(cap), &(all, ids));
    let again = |cap, keys: Vec<u64>, seen: &[u64]| {
        let (cells, backoff) = ((**good.cells()).clone(), (**good.backoff()).clone());
        Partial::from_parts(good.partition().clone(), cells, backoff, false, cap, (good.kept().clone(), keys, seen))
    };
    let (keys, seen) = (good.keys().to_vec(), good.seen());
    assert!(again(Some(cap), keys.clone(), &seen).is_ok());
    assert!(again(None, keys.clone(), &seen).is_err(), "keys without a cap");
    assert!(again(Some(cap), keys[1..].to_vec(), &seen).is_err(), "a key too few");
    assert!(again(Some(cap), keys.clone(), &seen[1..]).is_err(), "a word too few");
    assert!(again(Some(cap), keys.clone(), &vec![0; seen.len()]).is_err(), "less seen than kept");
    assert!(again(Some(cap), keys.clone(), &vec![u64::MAX; seen.len()]).is_err(), "more than can be");
    assert!(again(Some(Cap { rows: 4, ..cap }), keys.clone(), &seen).is_err(), "more rows than the cap");
    assert!(again(Some(Cap { rows: 6, ..cap }), keys, &seen).is_err(), "rows dropped below the cap");
}

#[test]
fn ids_may_be_text() {
    let ids: std::collections::BTreeSet<u64> = (0..10_000).map(|i| Partial::id_of(&format!("row-{i}"))).collect();
    assert_eq!(ids.len(), 10_000);
    assert_ne!(Partial::id_of(""), Partial::id_of("\0"));
}

/// Rows that could not be read back are refused when they are added, and a cap helps.
#[test]
fn too_many_rows_are_refused_at_once() {
    let mut rng = Rng::new(41);
    let mut draw = |rows: usize| {
        let votes = (0..rows).flat_map(|_| rng.votes(&[0.3, 0.7], 3)).collect();
        Table::new(["no", "yes"], [0.4, 0.6].repeat(rows)).unwrap().with_votes(votes).unwrap()
    };
    let like = Router::calibrate(&draw(80), &Partition::honest_forest(5_000)).unwrap();
    let many = draw(860_000);
    let mut part = Partial::like(&like).unwrap();
    let error = part.add(&many).unwrap_err().to_string();
    assert!(error.contains("5000 trees over 860000 rows") && error.contains("cap"), "{error}");
    assert_eq!(part.kept().rows(), 0);
    assert!(part.add(&draw(100)).is_ok());
}
