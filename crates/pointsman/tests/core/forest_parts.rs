//! What a forest derives from rows and trees: taken from a file it gives the same router, and wrong parts are refused.

use std::borrow::Cow;
use std::sync::Arc;

use pointsman::partition::Edges;
use pointsman::partition::forest::{Forest, ForestParts, LeafNumbers, Scorer, VoteCounts};
use pointsman::{Cells, Loss, Oracle, Partition, Router, Table, Task};

use crate::forest::{message, world};

const ROWS: usize = 600;

/// Equally many labels; unequal numbers of labels, some of them one; weights.
fn tables() -> [Table; 3] {
    let even = world(ROWS, 3, 11);
    let votes = |row: usize| even.votes(row).unwrap().counts().to_vec();
    let uneven = |row: usize| match row % 3 {
        0 => votes(row),
        1 => votes(row).iter().map(|n| n * 2).collect(),
        _ => vec![u32::from(row.is_multiple_of(2)), u32::from(!row.is_multiple_of(2))],
    };
    let uneven = even.clone().with_votes((0..ROWS).flat_map(uneven).collect()).unwrap();
    let weights = (0..ROWS).map(|row| 0.1 * (1 + row % 7) as f64).collect();
    let weighted = even.clone().with_weights(weights).unwrap();
    [even, uneven, weighted]
}

fn forest_of(table: &Table) -> Router {
    Router::calibrate(table, &Partition::forest(12)).unwrap()
}

/// The parts of a router, on their own.
fn owned(parts: &ForestParts<'_>) -> ForestParts<'static> {
    ForestParts {
        forest: parts.forest.clone(),
        edges: parts.edges.clone(),
        rows_per_cell: parts.rows_per_cell.clone(),
        ranks: parts.ranks.to_vec().into(),
        leaf_of_row: Cow::Owned(LeafNumbers::clone(&parts.leaf_of_row)),
        leaf_weights: parts.leaf_weights.to_vec().into(),
        leaf_error_shares: parts.leaf_error_shares.to_vec().into(),
        vote_counts: parts.vote_counts.as_deref().cloned().map(Cow::Owned),
    }
}

fn from_parts(router: &Router, parts: ForestParts<'static>) -> pointsman::Result<Router> {
    Router::from_forest_parts(router.partition().clone(), Cells::clone(router.backoff()), router.rows().clone(), parts)
}

#[test]
fn stored_parts_give_the_router_that_rows_and_trees_give() {
    for table in tables() {
        let router = forest_of(&table);
        let parts = router.forest_parts().unwrap();
        assert_eq!(parts.vote_counts.is_some(), !table.has_weights());
        let stored = from_parts(&router, owned(&parts)).unwrap();
        let trees = parts.forest.trees().clone();
        let backoff = Cells::clone(router.backoff());
        let bootstrap = parts.forest.bootstrap();
        let rebuilt =
            Router::from_forest(router.partition().clone(), trees, bootstrap, backoff, router.rows()).unwrap();
        assert!(stored == router && rebuilt == router);
        stored.verify_leaves().unwrap();
        for loss in [Loss::brier(), Loss::cross_entropy(), Loss::zero_one()] {
            let task = Task::new(loss).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.4).unwrap();
            let [stored, rebuilt] = [&stored, &rebuilt].map(|router| router.policy(&task).unwrap());
            for row in 0..50 {
                let [a, b] = [&stored, &rebuilt]
                    .map(|policy| policy.decide_with(&table.prediction(row), table.features(row)).unwrap());
                let bits = |costs: &[f64]| costs.iter().map(|cost| cost.to_bits()).collect::<Vec<_>>();
                assert_eq!((bits(a.costs()), a.cell(), a.action()), (bits(b.costs()), b.cell(), b.action()));
            }
            assert_eq!(stored.promise().unwrap().cost.to_bits(), rebuilt.promise().unwrap().cost.to_bits());
        }
    }
}

#[test]
fn impossible_parts_are_refused() {
    let [even, _, weighted] = tables();
    let router = forest_of(&even);
    let good = || owned(&router.forest_parts().unwrap());
    let refused = |parts: ForestParts<'static>, reason: &str| {
        let message = message(from_parts(&router, parts));
        assert!(message.contains(reason), "{message} lacks {reason}");
    };
    let numbers = |change: &dyn Fn(&mut Vec<u16>)| {
        let LeafNumbers::Short(mut numbers) = good().leaf_of_row.into_owned() else { panic!("few leaves") };
        change(&mut numbers);
        ForestParts { leaf_of_row: Cow::Owned(LeafNumbers::Short(numbers)), ..good() }
    };
    refused(numbers(&|numbers| numbers[5] = u16::MAX), "leaves of tree 0: one has no rows, or a row is in another");
    refused(numbers(&|numbers| numbers[ROWS..2 * ROWS].fill(0)), "leaves of tree 1: one has no rows");
    refused(numbers(&|numbers| numbers.truncate(ROWS)), "do not fit its trees");
    let long = LeafNumbers::Long(vec![0; 12 * ROWS]);
    refused(ForestParts { leaf_of_row: Cow::Owned(long), ..good() }, "do not fit its trees");

    let ranks = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut ranks = good().ranks.into_owned();
        change(&mut ranks);
        ForestParts { ranks: ranks.into(), ..good() }
    };
    refused(ranks(&|ranks| ranks[0] = ranks[1]), "the ranks of the router's rows");
    refused(ranks(&|ranks| ranks[0] = u32::MAX), "the ranks of the router's rows");
    refused(ranks(&|ranks| ranks.push(ROWS as u32)), "the ranks of the router's rows");

    let cells = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut parts = good();
        change(&mut parts.rows_per_cell);
        parts
    };
    refused(cells(&|rows| rows[0] += 1), "not divided among");
    refused(cells(&|rows| rows.push(0)), "not divided among");
    refused(cells(&|rows| (rows[0], rows[1]) = (0, rows[0] + rows[1])), "not divided among");
    let edges = Edges::of_feature((0..40).map(f64::from).collect()).unwrap();
    refused(ForestParts { edges, rows_per_cell: vec![15; 41], ..good() }, "at most 25");

    let weights = |leaf: usize, weight: f64| {
        let mut weights = good().leaf_weights.into_owned();
        weights[leaf] = weight;
        ForestParts { leaf_weights: weights.into(), ..good() }
    };
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        refused(weights(0, weight), "leaves of tree 0 of the router weigh");
    }
    for share in [-0.1, 1.1, f64::NAN] {
        let mut shares = good().leaf_error_shares.into_owned();
        shares[3] = share;
        refused(ForestParts { leaf_error_shares: shares.into(), ..good() }, "of leaf 3");
    }
    refused(ForestParts { leaf_error_shares: vec![0.5].into(), ..good() }, "another number of weights");

    let votes = |change: &dyn Fn(&mut Vec<u32>, &mut Vec<u32>)| {
        let counts = good().vote_counts.unwrap();
        let (mut pairs, mut of_leaf) = (counts.pairs().as_flattened().to_vec(), counts.pairs_of_leaf().collect());
        change(&mut pairs, &mut of_leaf);
        ForestParts { vote_counts: VoteCounts::from_parts(pairs, &of_leaf).map(Cow::Owned), ..good() }
    };
    refused(votes(&|pairs, _| pairs[0] = 1_000_000), "do not add up");
    refused(votes(&|pairs, _| pairs[1] += 1), "do not add up");
    refused(votes(&|pairs, _| pairs[1] = 0), "do not add up");
    refused(votes(&|_, of_leaf| (of_leaf[0], of_leaf[1]) = (0, of_leaf[0] + of_leaf[1])), "do not add up");
    refused(votes(&|pairs, of_leaf| (*pairs, *of_leaf) = (vec![0, 1], vec![1])), "do not fit their number");
    assert_eq!(VoteCounts::from_parts(vec![0, 1, 2], &[1]), None);
    assert_eq!(VoteCounts::from_parts(vec![0, 1], &[u32::MAX, u32::MAX]), None);
    // Rows with weights are not counted.
    let other = forest_of(&weighted);
    let mut parts = owned(&other.forest_parts().unwrap());
    parts.vote_counts = VoteCounts::from_parts(vec![0, 1], &[1]).map(Cow::Owned);
    assert!(message(from_parts(&other, parts)).contains("the weights of rows"));
}

/// Parts that rows and trees could have, but these do not.
fn wrong_parts(router: &Router) -> Vec<(&'static str, ForestParts<'static>)> {
    let good = || owned(&router.forest_parts().unwrap());
    let mut wrong = Vec::new();
    let LeafNumbers::Short(mut numbers) = good().leaf_of_row.into_owned() else { panic!("few leaves") };
    let other = (1..ROWS).find(|&row| numbers[row] != numbers[0]).unwrap();
    numbers.swap(0, other);
    wrong.push(("is stored in leaf", ForestParts { leaf_of_row: Cow::Owned(LeafNumbers::Short(numbers)), ..good() }));
    let mut ranks = good().ranks.into_owned();
    ranks.swap(0, 1);
    wrong.push(("ranks of its rows", ForestParts { ranks: ranks.into(), ..good() }));
    let scorer = good().forest.scorer().clone();
    let mut scores = scorer.leaf_scores().to_vec();
    scores[4] += 0.25;
    let scorer = Scorer::new(scorer.trees().clone(), 1, scores).unwrap();
    let forest = Arc::new(Forest::new(scorer, good().forest.bootstrap()).unwrap());
    wrong.push(("the score of leaf 4", ForestParts { forest, ..good() }));
    let mut edges = good().edges.values().to_vec();
    *edges.last_mut().unwrap() += 1.0;
    wrong.push(("edges of scores", ForestParts { edges: Edges::of_feature(edges).unwrap(), ..good() }));
    let mut parts = good();
    (parts.rows_per_cell[0], parts.rows_per_cell[1]) = (parts.rows_per_cell[0] - 1, parts.rows_per_cell[1] + 1);
    wrong.push(("rows per cell", parts));
    let mut weights = good().leaf_weights.into_owned();
    weights.swap(0, 1);
    if weights[0] != weights[1] {
        wrong.push(("the weight of leaf 0", ForestParts { leaf_weights: weights.into(), ..good() }));
    }
    let mut shares = good().leaf_error_shares.into_owned();
    shares[2] += if shares[2] < 0.5 { 0.25 } else { -0.25 };
    wrong.push(("the share of errors of leaf 2", ForestParts { leaf_error_shares: shares.into(), ..good() }));
    if let Some(counts) = good().vote_counts {
        let (mut pairs, of_leaf) = (counts.pairs().as_flattened().to_vec(), counts.pairs_of_leaf().collect::<Vec<_>>());
        pairs[0] ^= 1;
        let counts = VoteCounts::from_parts(pairs, &of_leaf).map(Cow::Owned);
        wrong.push(("vote counts", ForestParts { vote_counts: counts, ..good() }));
        wrong.push(("vote counts", ForestParts { vote_counts: None, ..good() }));
    }
    wrong
}

#[test]
fn parts_of_other_rows_are_found_by_verifying_and_harm_nothing_before() {
    for table in tables() {
        let router = forest_of(&table);
        let wrong = wrong_parts(&router);
        assert!(wrong.len() >= 7);
        for (reason, parts) in wrong {
            let router = from_parts(&router, parts).unwrap();
            let found = message(router.verify_leaves());
            assert!(found.contains("contradict its rows") && found.contains(reason), "{found} lacks {reason}");
            let task = Task::new(Loss::zero_one())
                .route("expert", Oracle::bayes(), 0.05)
                .and_then(|task| task.route("crowd", "panel:m=3".parse::<Oracle>()?, 0.02));
            let policy = router.policy(&task.unwrap()).unwrap();
            for row in 0..ROWS {
                let decision = policy.decide_with(&table.prediction(row), table.features(row)).unwrap();
                assert!(decision.costs().iter().all(|cost| cost.is_finite()), "{reason}: {:?}", decision.costs());
            }
            let _ = (policy.promise(), router.heaviest_rows(&table, 0, 5).unwrap(), router.bag(0));
        }
    }
}

#[test]
fn routers_without_a_forest_have_nothing_to_verify() {
    let [table, ..] = tables();
    let router = Router::calibrate(&table, &Partition::top_class(3)).unwrap();
    assert!(router.forest_parts().is_none());
    router.verify_leaves().unwrap();
}
