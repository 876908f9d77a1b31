//! The first questions of a tree, asked of many queries at once.
//!
//! A walk waits for each answer before it knows the next question. Near the root there are few questions, so that all of them can be
//! asked of everybody: comparisons of one column with one code, many in an instruction, and who is asked what is sorted out by bits.

/// Levels of questions, how many these are, and how many places they lead to.
const LEVELS: usize = 4;
const QUESTIONS: usize = (1 << LEVELS) - 1;
const PLACES: usize = 1 << LEVELS;

/// Queries that are asked together, and as many of them as keep their answers in the nearest cache.
pub(super) const GROUP: usize = 512;
const BLOCK: usize = 64;

/// Fewer queries in a group are better off walking all the way.
pub(super) const FEW: usize = 32;

/// Where trees are entered: the questions of the first levels (below a leaf, the leaf again) and the nodes they lead to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Crown {
    columns: [u16; QUESTIONS],
    codes: [u16; QUESTIONS],
    places: [u32; PLACES],
}

impl Crown {
    /// The crown of the tree that begins at a node. `ask` tells column and code of a node and its left child; of a leaf, a code that
    /// no query reaches, and the leaf itself.
    pub(super) fn of(root: u32, ask: impl Fn(u32) -> (u16, u16, u32)) -> Self {
        let (mut columns, mut codes) = ([0; QUESTIONS], [0; QUESTIONS]);
        let (mut nodes, mut at) = ([root; QUESTIONS + PLACES], 0);
        while at < QUESTIONS {
            let left;
            (columns[at], codes[at], left) = ask(nodes[at]);
            // The one right of a leaf is never reached.
            nodes[2 * at + 1] = left;
            nodes[2 * at + 2] = if left == nodes[at] { left } else { left + 1 };
            at += 1;
        }
        let mut places = [root; PLACES];
        places.copy_from_slice(&nodes[QUESTIONS..]);
        Self { columns, codes, places }
    }

    /// Tells which way each query of a group goes, their codes given column by column; nothing of queries beyond so many.
    pub(super) fn enter(&self, columns: &[[u16; GROUP]], queries: usize, ways: &mut [u8; GROUP]) {
        let mut right = [[0_u8; BLOCK]; QUESTIONS];
        let blocks = ways.as_chunks_mut::<BLOCK>().0.iter_mut().take(queries.div_ceil(BLOCK));
        for (block, ways) in blocks.enumerate() {
            for ((right, &column), &code) in right.iter_mut().zip(&self.columns).zip(&self.codes) {
                let queries = &columns[usize::from(column)].as_chunks::<BLOCK>().0[block];
                right
                    .iter_mut()
                    .zip(queries)
                    .for_each(|(right, &own)| *right = 0_u8.wrapping_sub(u8::from(own >= code)));
            }
            // From below: of two ways the one that the question above them leads to, with a bit for its answer.
            right[QUESTIONS / 2..].iter_mut().flatten().for_each(|way| *way &= 1);
            for level in (0..LEVELS - 1).rev() {
                let (first, next) = ((1 << level) - 1, (2 << level) - 1);
                let bit = 1 << (LEVELS - 1 - level);
                let (above, below) = right.split_at_mut(next);
                for (ways, below) in above[first..].iter_mut().zip(below.as_chunks::<2>().0) {
                    for (way, (left, right)) in ways.iter_mut().zip(below[0].iter().zip(&below[1])) {
                        *way = (*way & (right | bit)) | (!*way & left);
                    }
                }
            }
            *ways = right[0];
        }
    }

    /// The node that a way leads to.
    #[inline(always)]
    pub(super) fn place(&self, way: u8) -> u32 {
        self.places[usize::from(way) % PLACES]
    }
}
