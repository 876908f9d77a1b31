//! The predictions of a table in the precision of the model, which halves the memory of single-precision predictions.

use std::borrow::Cow;
use std::ops::Range;

use crate::parallel::prelude::*;
use crate::table::peaks;
use crate::table::simplex::{Fault, Peak, Real};

/// Rows per parallel task.
const ROWS_PER_BLOCK: usize = 1 << 12;

/// Predictions, row by row.
#[derive(Debug, Clone)]
pub(crate) enum Predictions {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// Borrowed predictions as the model gave them, in either precision.
#[derive(Debug, Clone, Copy)]
pub enum RawPredictions<'a> {
    Single(&'a [f32]),
    Double(&'a [f64]),
}

/// Evaluates one expression for either precision.
macro_rules! match_precision {
    ($given:expr, $row:pat => $body:expr) => {
        match $given {
            $crate::table::predictions::RawPredictions::Single($row) => $body,
            $crate::table::predictions::RawPredictions::Double($row) => $body,
        }
    };
}
pub(crate) use match_precision;

impl<'a> RawPredictions<'a> {
    /// The values in double precision.
    pub(crate) fn doubles(self) -> Cow<'a, [f64]> {
        match self {
            Self::Single(values) => values.iter().map(|x| x.to_f64()).collect(),
            Self::Double(values) => Cow::Borrowed(values),
        }
    }
}

/// The peak of each row, or the first row that is not a prediction.
pub(crate) fn peaks_of<T: Real>(probs: &[T], width: usize) -> Result<Vec<Peak>, (usize, Fault)> {
    let mut peaks = vec![Peak::default(); probs.len() / width];
    // Threads report any fault; the first one is searched for only if there is one.
    let found = probs
        .par_chunks(ROWS_PER_BLOCK * width)
        .zip(peaks.par_chunks_mut(ROWS_PER_BLOCK))
        .try_for_each(|(probs, peaks)| write_peaks(probs, width, peaks));
    found.map_err(|fault| first_fault(probs, width).unwrap_or((0, fault))).map(|()| peaks)
}

/// As [`peaks_of`], with a copy of the predictions.
fn copied<T: Real + Default>(probs: &[T], width: usize) -> Result<(Vec<T>, Vec<Peak>), (usize, Fault)> {
    let (mut copy, mut peaks) = (vec![T::default(); probs.len()], vec![Peak::default(); probs.len() / width]);
    let blocks = probs.par_chunks(ROWS_PER_BLOCK * width).zip(peaks.par_chunks_mut(ROWS_PER_BLOCK));
    let found = blocks.zip(copy.par_chunks_mut(ROWS_PER_BLOCK * width)).try_for_each(|((probs, peaks), copy)| {
        copy.copy_from_slice(probs);
        // The copy is checked, not the source, which another thread may change.
        write_peaks(copy, width, peaks)
    });
    found.map_err(|fault| first_fault(&copy, width).unwrap_or((0, fault))).map(|()| (copy, peaks))
}

fn write_peaks<T: Real>(probs: &[T], width: usize, out: &mut [Peak]) -> Result<(), Fault> {
    match T::raw(probs) {
        RawPredictions::Single(probs) => peaks::find(probs, width, out),
        RawPredictions::Double(probs) => {
            let mut rows = probs.chunks_exact(width).zip(out);
            rows.try_for_each(|(row, slot)| Peak::find(row).map(|peak| *slot = peak))
        }
    }
}

#[cold]
fn first_fault<T: Real>(probs: &[T], width: usize) -> Option<(usize, Fault)> {
    let mut rows = probs.chunks_exact(width).enumerate();
    rows.find_map(|(row, p)| Peak::find(p).err().map(|fault| (row, fault)))
}

/// Copies the given rows of `values`, `width` numbers per row.
pub(crate) fn gather<T: Copy + Default + Send + Sync>(rows: &[u32], width: usize, values: &[T]) -> Vec<T> {
    let mut out = vec![T::default(); rows.len() * width];
    out.par_chunks_exact_mut(width)
        .with_min_len(ROWS_PER_BLOCK)
        .zip(rows)
        .for_each(|(slot, &row)| slot.copy_from_slice(&values[row as usize * width..][..width]));
    out
}

impl Predictions {
    /// Copies predictions and finds the peak of each row; fails with the first row that is not a prediction.
    pub(crate) fn copied(probs: RawPredictions<'_>, width: usize) -> Result<(Self, Vec<Peak>), (usize, Fault)> {
        Ok(match probs {
            RawPredictions::Single(probs) => copied(probs, width).map(|(copy, peaks)| (Self::Single(copy), peaks))?,
            RawPredictions::Double(probs) => copied(probs, width).map(|(copy, peaks)| (Self::Double(copy), peaks))?,
        })
    }

    /// The number of entries, over all rows and classes.
    pub(crate) fn len(&self) -> usize {
        match_precision!(self.all(), values => values.len())
    }

    pub(crate) fn all(&self) -> RawPredictions<'_> {
        match self {
            Self::Single(values) => RawPredictions::Single(values),
            Self::Double(values) => RawPredictions::Double(values),
        }
    }

    #[inline]
    pub(crate) fn range(&self, range: Range<usize>) -> RawPredictions<'_> {
        match self {
            Self::Single(values) => RawPredictions::Single(&values[range]),
            Self::Double(values) => RawPredictions::Double(&values[range]),
        }
    }

    /// The peaks of rows that were checked before.
    ///
    /// Single-threaded, because the caller holds a lock: a rayon thread that waits may steal a task that waits for the same lock.
    pub(crate) fn peaks(&self, width: usize) -> Vec<Peak> {
        let mut peaks = vec![Peak::default(); self.len() / width];
        let found = match_precision!(self.all(), values => write_peaks(values, width, &mut peaks));
        debug_assert_eq!(found, Ok(()), "rows were checked when the table was made");
        peaks
    }

    pub(crate) fn select(&self, rows: &[u32], width: usize) -> Self {
        match self {
            Self::Single(values) => Self::Single(gather(rows, width, values)),
            Self::Double(values) => Self::Double(gather(rows, width, values)),
        }
    }

    /// Appends other predictions, in double precision unless both are single.
    pub(crate) fn append(&mut self, others: Self) {
        match (&mut *self, others) {
            (Self::Single(values), Self::Single(others)) => values.extend(others),
            (Self::Double(values), others) => values.extend(&*others.all().doubles()),
            (Self::Single(_), others) => {
                let mut values = self.all().doubles().into_owned();
                values.extend(&*others.all().doubles());
                *self = Self::Double(values);
            }
        }
    }
}

/// Predictions are equal if their values are, whatever the precision.
impl PartialEq for Predictions {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Single(a), Self::Single(b)) => a == b,
            _ => self.all().doubles() == other.all().doubles(),
        }
    }
}
