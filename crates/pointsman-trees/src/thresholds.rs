//! The distinct thresholds of trees, input by input, and the codes of inputs between them.
//!
//! A batch of rows is compared with the same thresholds again and again. Between two neighbouring thresholds all values of an input are
//! alike, so the place of a value among them is found once and the trees compare 16-bit codes.

use crate::error::{Error, Result};
use crate::trees::{MAX_INPUTS, Node};

/// The code that no row has; leaves compare with it, so that no row leaves them.
pub(crate) const NEVER: u16 = u16::MAX;

/// The code of a missing value in the column where it goes right; where it goes left its code is zero.
const MISSING_RIGHT: u16 = NEVER - 1;

/// Rows whose codes are searched for in lockstep: one by one, encoding takes 2.4 times as long.
const ROWS_PER_SEARCH: usize = 8;

/// The distinct thresholds of each input in order.
///
/// Each input has two columns of codes that differ in missing values only: they go left in the first and right in the second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Thresholds {
    values: Vec<f64>,
    /// Those of input `i` are `starts[i]..starts[i + 1]`.
    starts: Vec<u32>,
}

impl Thresholds {
    /// Collects the thresholds of all nodes.
    ///
    /// # Errors
    /// If a node asks for an input that does not exist, a threshold is not finite, or there are too many to number.
    pub(crate) fn new(inputs: usize, nodes: &[Node]) -> Result<Self> {
        if inputs > MAX_INPUTS {
            return Err(Error::TooManyInputs { inputs });
        }
        let mut found = vec![Vec::new(); inputs];
        for node in nodes {
            if let Node::Split { input, threshold, .. } = *node {
                found.get_mut(input as usize).ok_or(Error::NoSuchInput { input })?.push(threshold);
                if !threshold.is_finite() {
                    return Err(Error::Threshold { threshold });
                }
            }
        }
        let (mut values, mut starts) = (Vec::new(), vec![0]);
        for (input, mut thresholds) in found.into_iter().enumerate() {
            thresholds.sort_unstable_by(f64::total_cmp);
            thresholds.dedup_by_key(|threshold| threshold.to_bits());
            if thresholds.len() >= usize::from(MISSING_RIGHT) {
                return Err(Error::TooManyThresholds { input });
            }
            values.extend(thresholds);
            starts.push(values.len() as u32);
        }
        Ok(Self { values, starts })
    }

    /// How many inputs a row has.
    pub(crate) fn inputs(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many codes a row has.
    pub(crate) fn columns(&self) -> usize {
        2 * self.inputs()
    }

    fn of_input(&self, input: usize) -> &[f64] {
        &self.values[self.starts[input] as usize..self.starts[input + 1] as usize]
    }

    /// The column that a split looks at, and the least code that goes right.
    pub(crate) fn code_of_split(&self, input: u32, threshold: f64, missing_right: bool) -> (u16, u16) {
        let below = self.of_input(input as usize).partition_point(|other| other.total_cmp(&threshold).is_lt());
        (2 * input as u16 + u16::from(missing_right), below as u16 + 1)
    }

    /// The input, threshold and side of missing values that [`Thresholds::code_of_split`] was given.
    #[inline]
    pub(crate) fn split_of_code(&self, column: u16, code: u16) -> (u32, f64, bool) {
        let input = column / 2;
        (input.into(), self.of_input(input.into())[usize::from(code) - 1], column % 2 == 1)
    }

    /// Writes the codes of a row.
    #[inline]
    pub(crate) fn encode_row(&self, row: &[f64], out: &mut [u16]) {
        for ((input, &x), out) in row.iter().enumerate().zip(out.chunks_exact_mut(2)) {
            out.copy_from_slice(&codes_of(x, self.of_input(input).partition_point(|&threshold| threshold <= x)));
        }
    }

    /// Writes the codes of many rows, `codes_per_row` for each: input by input, with the searches of some rows interleaved.
    pub(crate) fn encode_rows(&self, rows: &[f64], codes_per_row: usize, out: &mut [u16]) {
        let width = self.inputs();
        for input in 0..width {
            let thresholds = self.of_input(input);
            for (rows, out) in rows.chunks(ROWS_PER_SEARCH * width).zip(out.chunks_mut(ROWS_PER_SEARCH * codes_per_row))
            {
                let mut values = [f64::NAN; ROWS_PER_SEARCH];
                values.iter_mut().zip(rows.chunks_exact(width)).for_each(|(x, row)| *x = row[input]);
                let found = count_up_to(thresholds, values);
                for ((out, x), found) in out.chunks_exact_mut(codes_per_row).zip(values).zip(found) {
                    out[2 * input..][..2].copy_from_slice(&codes_of(x, found));
                }
            }
        }
    }
}

/// Both codes of a value that is at or above `thresholds` thresholds.
#[inline(always)]
fn codes_of(x: f64, thresholds: usize) -> [u16; 2] {
    if x.is_nan() { [0, MISSING_RIGHT] } else { [thresholds as u16; 2] }
}

/// The number of sorted thresholds that are at most each value, by interleaved binary searches.
#[inline(always)]
fn count_up_to<const N: usize>(thresholds: &[f64], values: [f64; N]) -> [usize; N] {
    // For each value, the number of thresholds known to be at most it; `open` more are undecided.
    let (mut known, mut open) = ([0; N], thresholds.len());
    while open > 0 {
        let half = open.div_ceil(2);
        for (known, x) in known.iter_mut().zip(values) {
            let next = *known + half;
            *known = std::hint::select_unpredictable(thresholds[next - 1] <= x, next, *known);
        }
        open -= half;
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(input: u32, threshold: f64) -> Node {
        Node::Split { input, threshold, left: 0, missing_right: false }
    }

    #[test]
    fn codes_compare_like_inputs() {
        let thresholds = [f64::MIN, -1.0, -0.0, 0.0, 0.5, 2.0, f64::MAX];
        let nodes: Vec<Node> = thresholds.iter().rev().map(|&threshold| split(1, threshold)).collect();
        let all = Thresholds::new(2, &nodes).unwrap();
        for x in [f64::MIN, -3.0, -1.0, -0.5, -0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 9.0, f64::MAX, f64::NAN] {
            let mut codes = [0; 4];
            all.encode_row(&[7.0, x], &mut codes);
            assert_eq!(codes[..2], [0; 2], "no split asks for the first input");
            assert!(codes.iter().all(|&code| code < NEVER));
            for threshold in thresholds {
                for missing_right in [false, true] {
                    let (column, code) = all.code_of_split(1, threshold, missing_right);
                    let right = x >= threshold || x.is_nan() && missing_right;
                    assert_eq!(codes[usize::from(column)] >= code, right, "{x} at {threshold}");
                    let (input, same, side) = all.split_of_code(column, code);
                    assert_eq!((input, same.to_bits(), side), (1, threshold.to_bits(), missing_right));
                }
            }
        }
    }

    #[test]
    fn codes_of_many_rows_equal_codes_of_one_row() {
        for thresholds in 0..70_u32 {
            let nodes: Vec<Node> = (0..thresholds).map(|i| split(1, f64::from(i * i))).collect();
            let all = Thresholds::new(3, &nodes).unwrap();
            let value = |i: u32| if i % 11 == 4 { f64::NAN } else { f64::from(i * 37 % 5000) - 2.0 };
            let (rows, codes_per_row) = (3 * ROWS_PER_SEARCH as u32 + 5, 7);
            let inputs: Vec<f64> = (0..3 * rows).map(value).collect();
            let mut codes = vec![0; rows as usize * codes_per_row];
            all.encode_rows(&inputs, codes_per_row, &mut codes);
            for (row, codes) in inputs.chunks_exact(3).zip(codes.chunks_exact(codes_per_row)) {
                let mut own = vec![0; codes_per_row];
                all.encode_row(row, &mut own);
                assert_eq!(codes, own, "{row:?}");
            }
        }
    }

    #[test]
    fn too_many_thresholds_are_refused() {
        assert_eq!(Thresholds::new(1 << 15, &[]), Err(Error::TooManyInputs { inputs: 1 << 15 }));
        assert!(Thresholds::new((1 << 15) - 1, &[]).is_ok());
        let many = |n: u32| (0..n).map(|i| split(0, i.into())).collect::<Vec<_>>();
        assert!(Thresholds::new(1, &many(65_533)).is_ok());
        assert_eq!(Thresholds::new(1, &many(65_534)), Err(Error::TooManyThresholds { input: 0 }));
    }
}
