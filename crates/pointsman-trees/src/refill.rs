//! Trees for rows that they were not grown on.

use crate::error::Result;
use crate::training::MIN_ROWS_PER_LEAF;
use crate::trees::{Node, Trees};

impl Trees {
    /// The same trees for other rows, with as many rows per leaf as a grown forest has. `rows_of_leaf` is the number of rows that come to each
    /// leaf. A split with too few rows on one side is replaced by its other side, with too few rows on both sides by a leaf.
    ///
    /// ```
    /// use pointsman_trees::{Node, Trees};
    /// let nodes = [Node::Split { input: 0, threshold: 0.5, left: 1, missing_right: true }, Node::Leaf, Node::Leaf];
    /// let trees = Trees::new(1, vec![0], &nodes)?;
    /// assert_eq!(trees.with_enough_rows(&[20, 20])?, trees);
    /// assert_eq!(trees.with_enough_rows(&[20, 0])?.leaves(), 1);
    /// # Ok::<(), pointsman_trees::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Trees::new`], which finds none in parts of checked trees.
    ///
    /// # Panics
    /// If there is not one number per leaf.
    pub fn with_enough_rows(&self, rows_of_leaf: &[u32]) -> Result<Self> {
        let mut rows: Vec<u64> = self
            .leaf_numbers
            .iter()
            .map(|&leaf| rows_of_leaf.get(leaf as usize).map_or(0, |&rows| rows.into()))
            .collect();
        assert_eq!(rows_of_leaf.len(), self.leaves(), "one number of rows per leaf");
        // Children follow their parents.
        for node in (0..rows.len()).rev() {
            if let Node::Split { left, .. } = self.node(node) {
                rows[node] = rows[left as usize] + rows[left as usize + 1];
            }
        }
        let (mut roots, mut nodes) = (Vec::with_capacity(self.count()), Vec::with_capacity(rows.len()));
        for &root in self.roots() {
            roots.push(nodes.len() as u32);
            self.copy_tree(root as usize, &rows, &mut nodes);
        }
        Self::new(self.inputs(), roots, &nodes)
    }

    /// Appends a tree without splits that have too few rows on a side; `rows` is the number of rows of each node.
    fn copy_tree(&self, root: usize, rows: &[u64], nodes: &mut Vec<Node>) {
        let is_enough = |node: usize| rows[node] >= MIN_ROWS_PER_LEAF as u64;
        let mut open = vec![(root, nodes.len())];
        nodes.push(Node::Leaf);
        while let Some((mut from, to)) = open.pop() {
            while let Node::Split { input, threshold, left, missing_right } = self.node(from) {
                let (left, right) = (left as usize, left as usize + 1);
                match (is_enough(left), is_enough(right)) {
                    (true, false) => from = left,
                    (false, true) => from = right,
                    (false, false) => break,
                    (true, true) => {
                        let new = nodes.len();
                        nodes[to] = Node::Split { input, threshold, left: new as u32, missing_right };
                        nodes.extend([Node::Leaf; 2]);
                        open.extend([(right, new + 1), (left, new)]);
                        break;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{draw, unit};

    /// A complete tree of depth three over one input, with leaves at eighths, then a tree of one leaf.
    fn trees() -> Trees {
        let split =
            |place: u32, threshold: f64| Node::Split { input: 0, threshold, left: 2 * place + 1, missing_right: false };
        let thresholds = [0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875];
        let splits = thresholds.iter().enumerate().map(|(place, &threshold)| split(place as u32, threshold));
        let nodes: Vec<Node> = splits.chain([Node::Leaf; 9]).collect();
        Trees::new(1, vec![0, 15], &nodes).unwrap()
    }

    #[test]
    fn every_leaf_has_enough_rows() {
        let trees = trees();
        for seed in 0..200 {
            // From none to many rows, unevenly spread.
            let rows: Vec<f64> = (0..seed).map(|i| unit(draw(seed, i)).powi(1 + seed as i32 % 5)).collect();
            let count = |trees: &Trees, tree: usize| {
                let mut counts = vec![0; trees.leaves()];
                rows.iter().for_each(|&x| counts[trees.leaf_of_row(tree, &[x]) as usize] += 1);
                counts
            };
            let both = |trees: &Trees| -> Vec<u32> {
                count(trees, 0).into_iter().zip(count(trees, 1)).map(|(a, b)| a + b).collect()
            };
            let fewer = trees.with_enough_rows(&both(&trees)).unwrap();
            assert_eq!(fewer.count(), 2);
            let counts = both(&fewer);
            let is_alone = |leaf: usize| (0..2).any(|tree| fewer.leaves_of_tree(tree) == (leaf..leaf + 1));
            assert!(counts.iter().enumerate().all(|(leaf, &n)| n >= 4 || is_alone(leaf)), "{counts:?}");
            // Where no leaf lacks rows, nothing changes.
            assert_eq!(fewer.with_enough_rows(&counts).unwrap(), fewer);
            if both(&trees)[..8].iter().all(|&n| n >= 4) {
                assert_eq!(fewer.leaves(), trees.leaves());
            }
        }
    }

    #[test]
    fn rows_move_to_the_other_side_of_their_split() {
        let fewer = trees().with_enough_rows(&[9, 0, 2, 2, 9, 9, 9, 1, 0]).unwrap();
        // The second leaf joins the first, the third and fourth become one, the eighth joins the seventh.
        assert_eq!(fewer.leaves(), 6);
        let leaves = [0.0, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9].map(|x| fewer.leaf_of_row(0, &[x]));
        let same = |a: usize, b: usize| leaves[a] == leaves[b];
        assert!(same(0, 1) && same(2, 3) && same(6, 7) && !same(1, 2) && !same(3, 4) && !same(4, 5) && !same(5, 6));
    }
}
