//! The fast way from many single-precision predictions to cells of one confidence axis.
//!
//! Four rows are taken together and turned into columns, so that each instruction works on the same class of four
//! rows. A group in which any row is not plainly a prediction (an entry is negative or not a number, the sum is off
//! by more than half the floating-point noise) is left to the careful path, row by row: the two always agree.

use wide::{f32x4, u32x4};

use super::{Axis, Edges};

/// What is left to the careful path.
pub(crate) const UNUSUAL: u32 = u32::MAX;

/// Half of the noise that [`Peak`](crate::Peak) forgives: the other half is room for the rounding of `f32` sums.
const NOISE: f32 = 5e-6;

/// The most classes that are unrolled.
const MAX_CLASSES: usize = 16;

/// Edges of every class, padded to a fixed number of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Grid {
    /// At most 12 edges a class.
    Narrow(Vec<Bins<3>>),
    /// At most 28 edges a class.
    Wide(Vec<Bins<7>>),
}

/// The edges of one class, infinity beyond the last, and its first cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bins<const W: usize> {
    keys: [[f32; 4]; W],
    first: u32,
}

impl Grid {
    /// The grid of a partition that consists of one confidence axis with few enough classes and edges.
    pub(super) fn of(axes: &[Axis], classes: usize) -> Option<Self> {
        let all;
        let (edges, first) = match axes {
            [Axis::TopClass { edges, first }] => (edges, first),
            [Axis::Confidence { edges }] => {
                all = (vec![edges.clone(); classes], vec![0; classes]);
                (&all.0, &all.1)
            }
            _ => return None,
        };
        match edges.iter().map(|edges| edges.keys().len()).max() {
            Some(0..=12) if classes <= MAX_CLASSES => Some(Self::Narrow(bins(edges, first))),
            Some(13..=28) if classes <= MAX_CLASSES => Some(Self::Wide(bins(edges, first))),
            _ => None,
        }
    }

    /// Writes each row's cell, or [`UNUSUAL`], into `out`, wrapped as the caller wants it.
    pub(crate) fn find<V: Copy>(&self, rows: &[f32], out: &mut [V], wrap: impl Fn(u32) -> V) {
        match self {
            Self::Narrow(bins) => find(bins, rows, out, wrap),
            Self::Wide(bins) => find(bins, rows, out, wrap),
        }
    }
}

fn bins<const W: usize>(edges: &[Edges], first: &[u32]) -> Vec<Bins<W>> {
    let one = |(edges, &first): (&Edges, &u32)| {
        let mut keys = [[f32::INFINITY; 4]; W];
        keys.as_flattened_mut().iter_mut().zip(edges.keys()).for_each(|(slot, &key)| *slot = key as f32);
        Bins { keys, first }
    };
    let mut bins: Vec<Bins<W>> = edges.iter().zip(first).map(one).collect();
    // Sixteen, so that four bits of a class are always a place.
    bins.resize(MAX_CLASSES, Bins { keys: [[f32::INFINITY; 4]; W], first: 0 });
    bins
}

fn find<const W: usize, V: Copy>(bins: &[Bins<W>], rows: &[f32], out: &mut [V], wrap: impl Fn(u32) -> V) {
    let Some(bins) = bins.first_chunk() else { return out.fill(wrap(UNUSUAL)) };
    macro_rules! dispatch {
        ($($n:literal)*) => {
            match rows.len() / out.len().max(1) {
                $($n => find_unrolled::<$n, W, V>(bins, rows, out, wrap),)*
                _ => out.fill(wrap(UNUSUAL)),
            }
        };
    }
    dispatch!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

fn find_unrolled<const C: usize, const W: usize, V: Copy>(
    bins: &[Bins<W>; MAX_CLASSES],
    rows: &[f32],
    out: &mut [V],
    wrap: impl Fn(u32) -> V,
) {
    let (groups, rest) = out.as_chunks_mut::<4>();
    rest.fill(wrap(UNUSUAL));
    for (out, rows) in groups.iter_mut().zip(rows.as_chunks::<C>().0.as_chunks::<4>().0) {
        let columns = columns(rows);
        let (mut top, mut class) = (columns[0], u32x4::ZERO);
        let (mut sum, mut least) = (columns[0], columns[0]);
        for (c, &column) in columns.iter().enumerate().skip(1) {
            // Strictly greater, so that the first of equals stays.
            let greater: u32x4 = bytemuck::cast(column.simd_gt(top));
            class = (greater & u32x4::splat(c as u32)) | (!greater & class);
            top = top.fast_max(column);
            sum += column;
            least = least.fast_min(column);
        }
        let usual = (sum - f32x4::ONE).abs().simd_le(f32x4::splat(NOISE)) & least.simd_ge(f32x4::ZERO);
        if usual.to_bitmask() != 0b1111 {
            *out = [wrap(UNUSUAL); 4];
            continue;
        }
        let (top, class) = (top.to_array(), class.to_array());
        for (slot, (top, class)) in out.iter_mut().zip(top.into_iter().zip(class)) {
            let bins = &bins[class as usize % MAX_CLASSES];
            let mut above = 0;
            for (i, keys) in bins.keys.iter().enumerate() {
                above |= f32x4::from(*keys).simd_gt(f32x4::splat(top)).to_bitmask() << (4 * i);
            }
            // Edges increase, so those at or below the confidence are the zeros before the first one.
            *slot = wrap(bins.first + (above | 1 << (4 * W)).trailing_zeros());
        }
    }
}

/// Four rows turned into columns, four classes at a time.
#[inline(always)]
fn columns<const C: usize>(rows: &[[f32; C]; 4]) -> [f32x4; C] {
    let mut columns = [f32x4::ZERO; C];
    if C < 4 {
        for (c, column) in columns.iter_mut().enumerate() {
            *column = f32x4::from(rows.map(|row| row[c]));
        }
        return columns;
    }
    for start in (0..C).step_by(4) {
        // The last four may overlap those before.
        let from = start.min(C - 4);
        let four = |row: &[f32; C]| f32x4::from([row[from], row[from + 1], row[from + 2], row[from + 3]]);
        let turned = f32x4::transpose([four(&rows[0]), four(&rows[1]), four(&rows[2]), four(&rows[3])]);
        columns[from..from + 4].copy_from_slice(&turned);
    }
    columns
}
