//! The fast walks against the reference, on random forests.

use proptest::prelude::*;

use crate::hash::{draw, unit};
use crate::{Node, Trees, add_leaf_values};

/// A random forest: each tree repeatedly divides one of its leaves, so that leaves are at all depths.
fn forest(inputs: usize, trees: usize, splits: usize, seed: u64) -> Trees {
    let (mut nodes, mut roots, mut place) = (Vec::new(), Vec::new(), 0);
    let mut random = |below: usize| {
        place += 1;
        (draw(seed, place) % below as u64) as usize
    };
    for _ in 0..trees {
        roots.push(nodes.len() as u32);
        let mut leaves = vec![nodes.len()];
        nodes.push(Node::Leaf);
        for _ in 0..random(splits + 1) {
            // Children come after their parents, in any order of division.
            let leaf = leaves.swap_remove(random(leaves.len()));
            let left = nodes.len();
            nodes[leaf] = Node::Split {
                input: random(inputs) as u32,
                threshold: random(9) as f64 / 8.0,
                left: left as u32,
                missing_right: random(2) == 1,
            };
            nodes.extend([Node::Leaf; 2]);
            leaves.extend([left, left + 1]);
        }
    }
    Trees::new(inputs, roots, &nodes).unwrap()
}

/// Values on thresholds, between them, outside, infinite and missing.
fn rows(inputs: usize, rows: usize, seed: u64) -> Vec<f64> {
    let value = |i: usize| match draw(seed, i as u64) % 12 {
        0 | 1 => f64::NAN,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4..8 => (draw(seed, i as u64) / 16 % 9) as f64 / 8.0,
        _ => 1.4 * unit(draw(seed ^ 1, i as u64)) - 0.2,
    };
    (0..inputs * rows).map(value).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Inputs around the widths at which codes are padded or kept on the stack, rows around the number that walks in lockstep.
    #[test]
    fn fast_walks_agree_with_the_reference(
        inputs in prop_oneof![1..5_usize, 30..35_usize, 62..67_usize, Just(300)],
        trees in prop_oneof![1..4_usize, 15..18_usize, Just(40)],
        splits in prop_oneof![0..4_usize, Just(30), Just(200)],
        count in prop_oneof![0..4_usize, 15..18_usize, 30..34_usize, Just(300)],
        seed in any::<u64>(),
    ) {
        let (trees, rows) = (forest(inputs, trees, splits, seed), rows(inputs, count, !seed));
        let encoded = trees.encode_rows(&rows);
        prop_assert_eq!(encoded.rows(), count);
        let mut found = vec![0; count];
        for tree in 0..trees.count() {
            trees.leaves_of_rows(tree, &encoded, &mut found);
            let expected: Vec<u32> = rows.chunks_exact(inputs).map(|row| trees.leaf_of_row(tree, row)).collect();
            prop_assert_eq!(&found, &expected);
            prop_assert!(expected.iter().all(|&leaf| trees.leaves_of_tree(tree).contains(&(leaf as usize))));
        }
        for row in rows.chunks_exact(inputs) {
            let mut tree = 0;
            trees.leaves_of_row(row, |leaf| {
                assert_eq!(leaf, trees.leaf_of_row(tree, row));
                tree += 1;
            });
            prop_assert_eq!(tree, trees.count());
        }
    }
}

/// More rows than one block, and every number of values per leaf.
#[test]
fn sums_of_many_rows_equal_sums_of_one_row_bit_for_bit() {
    for (count, width, inputs) in [(0, 1, 3), (1, 2, 3), (2047, 1, 3), (2049, 4, 5), (5000, 3, 40)] {
        let (trees, rows) = (forest(inputs, 21, 60, 7), rows(inputs, count, 8));
        let values: Vec<f64> = (0..trees.leaves() * width).map(|i| unit(draw(9, i as u64)) - 0.3).collect();
        let inputs_of_rows = |range: std::ops::Range<usize>| rows[range.start * inputs..range.end * inputs].to_vec();
        let blocks = trees.sum_leaf_values(&values, count, inputs_of_rows, |range, sums| (range, sums.to_vec()));
        assert_eq!(
            blocks.iter().flat_map(|(range, _)| range.clone()).collect::<Vec<_>>(),
            (0..count).collect::<Vec<_>>()
        );
        let found: Vec<f64> = blocks.into_iter().flat_map(|(_, sums)| sums).collect();
        assert_eq!(found.len(), count * width);
        for (found, inputs) in found.chunks_exact(width).zip(rows.chunks_exact(inputs)) {
            let mut sums = vec![0.0; width];
            trees.leaves_of_row(inputs, |leaf| add_leaf_values(&values, leaf, &mut sums));
            assert_eq!(
                found.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
                sums.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            );
        }
    }
}
