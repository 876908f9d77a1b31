//! A fast lookup of the cells of many predictions, for one confidence axis.

use wide::f32x4;

use super::{Axis, CellId, Edges};
use crate::table::peaks::{MAX_CLASSES, in_fours};
use crate::table::simplex::Peak;

/// Marks rows that need the general lookup.
pub(crate) const UNUSUAL: u32 = u32::MAX;

/// The edges of each class, padded to a fixed number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Grid {
    /// At most 12 edges per class.
    Narrow(Vec<Bins<3>>),
    /// At most 28 edges per class.
    Wide(Vec<Bins<7>>),
}

/// The edges of one class, padded with infinity, and its first cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bins<const W: usize> {
    keys: [[f32; 4]; W],
    first: u32,
}

impl Grid {
    /// The grid of a partition with a single confidence axis and few enough classes and edges.
    pub(super) fn new(axes: &[Axis], classes: usize) -> Option<Self> {
        // Checked before allocating: a file may claim very many classes and edges.
        let (edges, first): (Vec<&Edges>, Vec<u32>) = match axes {
            _ if classes > MAX_CLASSES => return None,
            [Axis::TopClass { edges, first }] => (edges.iter().collect(), first.clone()),
            [Axis::Confidence { edges }] => (vec![edges; classes], vec![0; classes]),
            [Axis::Pooled { groups, edges, first }] => {
                groups.iter().map(|&group| (&edges[group as usize], first[group as usize])).unzip()
            }
            _ => return None,
        };
        match edges.iter().map(|edges| edges.keys().len()).max() {
            Some(0..=12) => Some(Self::Narrow(bins(&edges, &first))),
            Some(13..=28) => Some(Self::Wide(bins(&edges, &first))),
            _ => None,
        }
    }

    /// Writes each row's cell, or [`UNUSUAL`], converted by `wrap`, into `out`.
    pub(crate) fn find<V: Copy>(&self, rows: &[f32], out: &mut [V], wrap: impl Fn(u32) -> V) {
        match self {
            Self::Narrow(bins) => find(bins, rows, out, wrap),
            Self::Wide(bins) => find(bins, rows, out, wrap),
        }
    }

    /// The cell of an input with this peak.
    #[inline]
    pub(crate) fn cell(&self, peak: Peak) -> CellId {
        let class = peak.class as usize % MAX_CLASSES;
        CellId(match self {
            Self::Narrow(bins) => bins[class].cell(peak.key()),
            Self::Wide(bins) => bins[class].cell(peak.key()),
        })
    }
}

impl<const W: usize> Bins<W> {
    #[inline(always)]
    fn cell(&self, confidence: f32) -> u32 {
        let mut above = 0;
        for (i, keys) in self.keys.iter().enumerate() {
            above |= f32x4::from(*keys).simd_gt(f32x4::splat(confidence)).to_bitmask() << (4 * i);
        }
        // Edges increase, so the number of edges at or below the confidence is the number of trailing zeros.
        self.first + (above | 1 << (4 * W)).trailing_zeros()
    }
}

fn bins<const W: usize>(edges: &[&Edges], first: &[u32]) -> Vec<Bins<W>> {
    let one = |(edges, &first): (&&Edges, &u32)| {
        let mut keys = [[f32::INFINITY; 4]; W];
        keys.as_flattened_mut().iter_mut().zip(edges.keys()).for_each(|(slot, &key)| *slot = key as f32);
        Bins { keys, first }
    };
    let mut bins: Vec<Bins<W>> = edges.iter().zip(first).map(one).collect();
    // Sixteen entries, so that a class modulo 16 is always in range.
    bins.resize(MAX_CLASSES, Bins { keys: [[f32::INFINITY; 4]; W], first: 0 });
    bins
}

fn find<const W: usize, V: Copy>(bins: &[Bins<W>], rows: &[f32], out: &mut [V], wrap: impl Fn(u32) -> V) {
    let Some(bins) = bins.first_chunk::<MAX_CLASSES>() else { return out.fill(wrap(UNUSUAL)) };
    let classes = rows.len() / out.len().max(1);
    let shown = in_fours(rows, classes, |group, four| {
        let slots = &mut out[4 * group..4 * group + 4];
        let Some((top, class)) = four else { return slots.fill(wrap(UNUSUAL)) };
        for (slot, (top, class)) in slots.iter_mut().zip(top.into_iter().zip(class)) {
            *slot = wrap(bins[class as usize % MAX_CLASSES].cell(top));
        }
    });
    out[shown..].fill(wrap(UNUSUAL));
}
