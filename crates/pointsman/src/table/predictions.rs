//! The predictions of a table, in the precision the model gave them in: half of the memory if that is single.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::table::peaks;
use crate::table::simplex::{Fault, Peak, Real};

/// Rows that a core looks at in one go.
const BLOCK: usize = 1 << 12;

/// Predictions row by row.
#[derive(Debug, Clone)]
pub(crate) enum Predictions {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// Some predictions, where they lie.
#[derive(Debug, Clone, Copy)]
pub enum Given<'a> {
    Single(&'a [f32]),
    Double(&'a [f64]),
}

/// The same expression for either precision.
macro_rules! in_its_precision {
    ($given:expr, $row:pat => $body:expr) => {
        match $given {
            $crate::table::predictions::Given::Single($row) => $body,
            $crate::table::predictions::Given::Double($row) => $body,
        }
    };
}
pub(crate) use in_its_precision;

impl<'a> Given<'a> {
    /// In double precision.
    pub(crate) fn doubles(self) -> Cow<'a, [f64]> {
        match self {
            Self::Single(values) => values.iter().map(|x| x.to_f64()).collect(),
            Self::Double(values) => Cow::Borrowed(values),
        }
    }
}

/// Each row's peak, or the first row that is no prediction.
pub(crate) fn peaks_of<T: Real>(probs: &[T], width: usize) -> Result<Vec<Peak>, (usize, Fault)> {
    let mut peaks = vec![Peak::default(); probs.len() / width];
    let blocks = probs.par_chunks(BLOCK * width).zip(peaks.par_chunks_mut(BLOCK));
    // Any fault will do here: the first one is looked for only if there is one.
    let found = blocks.try_for_each(|(probs, peaks)| write_peaks(probs, width, peaks));
    found.map_err(|fault| first_fault(probs, width).unwrap_or((0, fault))).map(|()| peaks)
}

/// As [`peaks_of`], and a copy made on the way.
fn copied<T: Real + Default>(probs: &[T], width: usize) -> Result<(Vec<T>, Vec<Peak>), (usize, Fault)> {
    let (mut copy, mut peaks) = (vec![T::default(); probs.len()], vec![Peak::default(); probs.len() / width]);
    let blocks = probs.par_chunks(BLOCK * width).zip(peaks.par_chunks_mut(BLOCK));
    let found = blocks.zip(copy.par_chunks_mut(BLOCK * width)).try_for_each(|((probs, peaks), copy)| {
        copy.copy_from_slice(probs);
        // What is kept is what is checked, whatever another thread does to where it came from.
        write_peaks(copy, width, peaks)
    });
    found.map_err(|fault| first_fault(&copy, width).unwrap_or((0, fault))).map(|()| (copy, peaks))
}

fn write_peaks<T: Real>(probs: &[T], width: usize, out: &mut [Peak]) -> Result<(), Fault> {
    match T::given(probs) {
        Given::Single(probs) => peaks::find(probs, width, out),
        Given::Double(probs) => {
            let mut rows = probs.chunks_exact(width).zip(out);
            rows.try_for_each(|(row, slot)| Peak::of(row).map(|peak| *slot = peak))
        }
    }
}

#[cold]
fn first_fault<T: Real>(probs: &[T], width: usize) -> Option<(usize, Fault)> {
    let mut rows = probs.chunks_exact(width).enumerate();
    rows.find_map(|(row, p)| Peak::of(p).err().map(|fault| (row, fault)))
}

/// The given rows of `values`, one after the other.
pub(crate) fn gather<T: Copy + Default + Send + Sync>(rows: &[u32], width: usize, values: &[T]) -> Vec<T> {
    let mut out = vec![T::default(); rows.len() * width];
    out.par_chunks_exact_mut(width)
        .with_min_len(BLOCK)
        .zip(rows)
        .for_each(|(slot, &row)| slot.copy_from_slice(&values[row as usize * width..][..width]));
    out
}

impl Predictions {
    /// A copy of predictions, and the peak of each row; otherwise the first row that is none.
    pub(crate) fn copied(probs: Given<'_>, width: usize) -> Result<(Self, Vec<Peak>), (usize, Fault)> {
        Ok(match probs {
            Given::Single(probs) => copied(probs, width).map(|(copy, peaks)| (Self::Single(copy), peaks))?,
            Given::Double(probs) => copied(probs, width).map(|(copy, peaks)| (Self::Double(copy), peaks))?,
        })
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        in_its_precision!(self.all(), values => values.len())
    }

    pub(crate) fn all(&self) -> Given<'_> {
        match self {
            Self::Single(values) => Given::Single(values),
            Self::Double(values) => Given::Double(values),
        }
    }

    #[inline]
    pub(crate) fn range(&self, range: Range<usize>) -> Given<'_> {
        match self {
            Self::Single(values) => Given::Single(&values[range]),
            Self::Double(values) => Given::Double(&values[range]),
        }
    }

    /// The peaks of rows that have been checked before, on this core alone: a lock is held meanwhile, and a core that waits for
    /// others takes on work that may wait for the lock.
    pub(crate) fn peaks(&self, width: usize) -> Vec<Peak> {
        let mut peaks = vec![Peak::default(); self.len() / width];
        let found = in_its_precision!(self.all(), values => write_peaks(values, width, &mut peaks));
        debug_assert_eq!(found, Ok(()), "rows were checked when the table was made");
        peaks
    }

    pub(crate) fn select(&self, rows: &[u32], width: usize) -> Self {
        match self {
            Self::Single(values) => Self::Single(gather(rows, width, values)),
            Self::Double(values) => Self::Double(gather(rows, width, values)),
        }
    }

    /// Adds others at the end, in double precision unless both are in single.
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

/// Equal if the numbers are, in whatever precision.
impl PartialEq for Predictions {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Single(a), Self::Single(b)) => a == b,
            _ => self.all().doubles() == other.all().doubles(),
        }
    }
}
