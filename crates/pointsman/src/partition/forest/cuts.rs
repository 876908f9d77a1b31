//! The thresholds of trees, input by input. Between them a query's inputs are small numbers, which trees compare instead.

use super::trees::Node;
use crate::error::{Error, Result};

/// A code that no query has: leaves ask for it.
pub(super) const NEVER: u16 = u16::MAX;

/// The code of a missing value in the column where it goes right; where it goes left it is zero.
const MISSING: u16 = NEVER - 1;

/// Queries whose codes are looked for in step.
pub(super) const IN_STEP: usize = 8;

/// The distinct thresholds of each input, in order.
///
/// Each input has two columns of codes, alike but for missing values: they go left in the first and right in the second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cuts {
    values: Vec<f64>,
    /// Those of input `i`: `starts[i]..starts[i + 1]`.
    starts: Vec<u32>,
}

impl Cuts {
    /// The thresholds of all nodes.
    ///
    /// # Errors
    /// If a node asks for an input that does not exist or a threshold is not finite, or if there are too many to number.
    pub(super) fn of(inputs: usize, nodes: &[Node]) -> Result<Self> {
        let fault = |what: &str| Error::Router(format!("the partition's trees {what}"));
        if 2 * inputs > usize::from(u16::MAX) {
            return Err(fault(&format!("have {inputs} inputs: at most {} are possible", u16::MAX / 2)));
        }
        let mut found = vec![Vec::new(); inputs];
        for node in nodes {
            if let Node::Split { input, threshold, .. } = *node {
                let of_input = found.get_mut(input as usize);
                of_input.ok_or_else(|| fault("ask for an input that does not exist"))?.push(threshold);
                if !threshold.is_finite() {
                    return Err(fault("have a threshold that is not finite"));
                }
            }
        }
        let (mut values, mut starts) = (Vec::new(), vec![0]);
        for mut cuts in found {
            cuts.sort_unstable_by(f64::total_cmp);
            cuts.dedup_by_key(|cut| cut.to_bits());
            if cuts.len() >= usize::from(MISSING) {
                return Err(fault("have too many thresholds of one input"));
            }
            values.extend(cuts);
            starts.push(values.len() as u32);
        }
        Ok(Self { values, starts })
    }

    pub(super) fn inputs(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many codes a query has.
    pub(super) fn columns(&self) -> usize {
        2 * self.inputs()
    }

    fn of_input(&self, input: usize) -> &[f64] {
        &self.values[self.starts[input] as usize..self.starts[input + 1] as usize]
    }

    /// The column to look at for a question, and the code from which the answer is to the right.
    pub(super) fn code(&self, input: u32, threshold: f64, missing_right: bool) -> (u16, u16) {
        let below = self.of_input(input as usize).partition_point(|cut| cut.total_cmp(&threshold).is_lt());
        (2 * input as u16 + u16::from(missing_right), below as u16 + 1)
    }

    /// The input, threshold and side of missing values that [`Cuts::code`] was asked for.
    #[inline]
    pub(super) fn question(&self, column: u16, code: u16) -> (u32, f64, bool) {
        let input = column / 2;
        (input.into(), self.of_input(input.into())[usize::from(code) - 1], column % 2 == 1)
    }

    /// Writes the codes of a query.
    #[inline]
    pub(super) fn encode(&self, inputs: &[f64], out: &mut [u16]) {
        for ((input, &x), out) in inputs.iter().enumerate().zip(out.chunks_exact_mut(2)) {
            out.copy_from_slice(&codes_of(x, self.of_input(input).partition_point(|&cut| cut <= x)));
        }
    }

    /// Writes the codes of many queries, so many to each: input by input, some queries in step, so that one's wait is another's work.
    pub(super) fn encode_all(&self, inputs: &[f64], stride: usize, out: &mut [u16]) {
        let width = self.inputs();
        for input in 0..width {
            let cuts = self.of_input(input);
            for (rows, out) in inputs.chunks(IN_STEP * width).zip(out.chunks_mut(IN_STEP * stride)) {
                let mut values = [f64::NAN; IN_STEP];
                values.iter_mut().zip(rows.chunks_exact(width)).for_each(|(x, row)| *x = row[input]);
                let found = count_up_to(cuts, values);
                for ((out, x), found) in out.chunks_exact_mut(stride).zip(values).zip(found) {
                    out[2 * input..][..2].copy_from_slice(&codes_of(x, found));
                }
            }
        }
    }
}

/// Both codes of a value with so many cuts up to it.
#[inline(always)]
fn codes_of(x: f64, cuts: usize) -> [u16; 2] {
    if x.is_nan() { [0, MISSING] } else { [cuts as u16; 2] }
}

/// How many cuts, in order, are no greater than each of some values.
#[inline(always)]
fn count_up_to<const N: usize>(cuts: &[f64], values: [f64; N]) -> [usize; N] {
    // Of each value it is known that so many cuts are, and it is not known of so many others.
    let (mut known, mut open) = ([0; N], cuts.len());
    while open > 0 {
        let half = open.div_ceil(2);
        for (known, x) in known.iter_mut().zip(values) {
            let next = *known + half;
            *known = std::hint::select_unpredictable(cuts[next - 1] <= x, next, *known);
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
    fn codes_compare_as_the_inputs_do() {
        let thresholds = [f64::MIN, -1.0, -0.0, 0.0, 0.5, 2.0, f64::MAX];
        let nodes: Vec<Node> = thresholds.iter().rev().map(|&threshold| split(1, threshold)).collect();
        let cuts = Cuts::of(2, &nodes).unwrap();
        for x in [f64::MIN, -3.0, -1.0, -0.5, -0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 9.0, f64::MAX, f64::NAN] {
            let mut codes = [0; 4];
            cuts.encode(&[7.0, x], &mut codes);
            assert_eq!(codes[..2], [0; 2], "nothing is asked about the first input");
            assert!(codes.iter().all(|&code| code < NEVER));
            for threshold in thresholds {
                for missing_right in [false, true] {
                    let (column, code) = cuts.code(1, threshold, missing_right);
                    let right = x >= threshold || x.is_nan() && missing_right;
                    assert_eq!(codes[usize::from(column)] >= code, right, "{x} at {threshold}");
                    let (input, same, side) = cuts.question(column, code);
                    assert_eq!((input, same.to_bits(), side), (1, threshold.to_bits(), missing_right));
                }
            }
        }
    }

    #[test]
    fn many_queries_have_the_codes_that_one_has() {
        for thresholds in 0..70_u32 {
            let nodes: Vec<Node> = (0..thresholds).map(|i| split(1, f64::from(i * i))).collect();
            let cuts = Cuts::of(3, &nodes).unwrap();
            let value = |i: u32| if i % 11 == 4 { f64::NAN } else { f64::from(i * 37 % 5000) - 2.0 };
            let (rows, stride) = (3 * IN_STEP as u32 + 5, 7);
            let inputs: Vec<f64> = (0..3 * rows).map(value).collect();
            let mut codes = vec![0; rows as usize * stride];
            cuts.encode_all(&inputs, stride, &mut codes);
            for (inputs, codes) in inputs.chunks_exact(3).zip(codes.chunks_exact(stride)) {
                let mut own = vec![0; stride];
                cuts.encode(inputs, &mut own);
                assert_eq!(codes, own, "{inputs:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_numbered_is_refused() {
        assert!(Cuts::of(1 << 15, &[]).is_err());
        assert!(Cuts::of((1 << 15) - 1, &[]).is_ok());
        let many = |n: u32| (0..n).map(|i| split(0, i.into())).collect::<Vec<_>>();
        assert!(Cuts::of(1, &many(65_533)).is_ok());
        assert!(Cuts::of(1, &many(65_534)).is_err());
    }
}
