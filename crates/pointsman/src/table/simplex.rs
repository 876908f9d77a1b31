//! Points of the probability simplex, and the rule by which a row of numbers is accepted as one.
//!
//! A row is a prediction if its entries are finite, none is negative and their sum is within [`SUM_TOLERANCE`] of one.
//! Arithmetic uses the row divided by its sum. Cells use its *confidence*: the largest entry, divided by the sum only if the sum
//! is off by more than floating-point noise, all in single precision. So a table in `f32`, in `f64` and written as decimal text
//! falls into the same cells, although the sums differ in the eighth digit.

use std::ops::Deref;

use crate::error::{Error, Result, ValueError};
use crate::table::predictions::RawPredictions;

/// How far from one a prediction's sum may be before the row is refused.
pub const SUM_TOLERANCE: f64 = 1e-3;

/// The tolerance plus rounding, so that three-digit predictions with a sum of 0.999 are always accepted.
const SUM_LIMIT: f64 = SUM_TOLERANCE + 1e-6;

/// Sums this close to one differ from it only by the rounding of `f32` softmax outputs.
const FLOAT_NOISE: f64 = 1e-5;

/// A number type of predictions: `f32` or `f64`.
pub trait Real: Copy + PartialOrd + Send + Sync + sealed::Sealed + 'static {
    /// The value in double precision, exactly.
    fn to_f64(self) -> f64;
    /// The value in single precision, rounded.
    fn to_f32(self) -> f32;
    /// The values with their precision.
    #[doc(hidden)]
    fn raw(values: &[Self]) -> RawPredictions<'_>
    where
        Self: Sized;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline]
    fn raw(values: &[Self]) -> RawPredictions<'_> {
        RawPredictions::Single(values)
    }
}

impl Real for f64 {
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline]
    fn to_f32(self) -> f32 {
        self as f32
    }
    #[inline]
    fn raw(values: &[Self]) -> RawPredictions<'_> {
        RawPredictions::Double(values)
    }
}

/// The largest entry of a prediction: its class and its value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Peak {
    /// First index of the maximum.
    pub class: u32,
    /// The maximum, as a share of the row's sum.
    pub confidence: f64,
}

impl Peak {
    /// Checks a row and finds its peak in one pass.
    #[inline]
    pub(crate) fn find<T: Real>(row: &[T]) -> std::result::Result<Self, Fault> {
        let (mut sum, mut singles, mut least) = (0.0, 0.0, 0.0);
        let (mut class, mut top) = (0, f64::NEG_INFINITY);
        for (i, x) in row.iter().enumerate() {
            let value = x.to_f64();
            sum += value;
            singles += f64::from(x.to_f32());
            least = if value < least { value } else { least };
            (class, top) = if value > top { (i, value) } else { (class, top) };
        }
        if !is_prediction(sum, least) {
            return Err(fault(row, sum));
        }
        let confidence = match divisor_of(singles) {
            1.0 => top,
            divisor => f64::from(top as f32) / divisor,
        };
        Ok(Self { class: class as u32, confidence })
    }

    /// The confidence in single precision, by which cells are found.
    #[inline]
    #[must_use]
    pub fn key(self) -> f32 {
        self.confidence as f32
    }
}

/// Why a row is not a prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    Entry { class: usize, value: f64 },
    Sum(f64),
}

impl Fault {
    /// The fault as an error about the columns `<prefix><class>`.
    pub(crate) fn at(self, row: usize, prefix: &str, classes: &[String]) -> Error {
        match self {
            Self::Entry { class, value } => {
                let name = classes.get(class).map_or("?", String::as_str);
                Error::value(row, format!("{prefix}{name}"), ValueError::Probability { value })
            }
            Self::Sum(sum) => Error::value(row, format!("{prefix}*"), ValueError::ProbabilitySum { sum }),
        }
    }
}

/// The sum of a row in double precision, left to right, if the row is a prediction.
#[inline]
pub(crate) fn checked_sum<T: Real>(row: &[T]) -> std::result::Result<f64, Fault> {
    let (mut sum, mut least) = (0.0, 0.0);
    for x in row {
        let value = x.to_f64();
        sum += value;
        least = if value < least { value } else { least };
    }
    if is_prediction(sum, least) { Ok(sum) } else { Err(fault(row, sum)) }
}

/// Whether a row with this sum and this least entry (or zero) is a prediction. An infinite or NaN entry makes the sum infinite or
/// NaN; an entry above one makes the sum too large unless another entry is negative.
#[inline]
fn is_prediction(sum: f64, least: f64) -> bool {
    (sum - 1.0).abs() <= SUM_LIMIT && least >= 0.0
}

/// Finds the first entry that is not a probability; if there is none, as with percentages, the sum is at fault.
#[cold]
fn fault<T: Real>(row: &[T], sum: f64) -> Fault {
    let bad = |value: &f64| !(0.0..=f64::MAX).contains(value);
    let mut values = row.iter().map(|x| x.to_f64()).enumerate();
    values.find(|(_, value)| bad(value)).map_or(Fault::Sum(sum), |(class, value)| Fault::Entry { class, value })
}

/// The divisor of a checked row for finding its cell: the sum of its single-precision entries, or one if that is off by noise only.
#[inline]
pub(crate) fn divisor<T: Real>(row: &[T]) -> f64 {
    divisor_of(row.iter().map(|x| f64::from(x.to_f32())).sum())
}

#[inline]
fn divisor_of(sum: f64) -> f64 {
    if (sum - 1.0).abs() <= FLOAT_NOISE { 1.0 } else { sum }
}

/// Writes a checked row, divided by its sum, into `out`.
pub(crate) fn normalise_into<T: Real>(row: &[T], out: &mut [f64]) {
    let sum: f64 = row.iter().map(|x| x.to_f64()).sum();
    for (o, x) in out.iter_mut().zip(row) {
        *o = x.to_f64() / sum;
    }
}

/// The first index of the maximum.
#[must_use]
pub fn top_class(row: &[f64]) -> usize {
    let mut best = 0;
    for (i, x) in row.iter().enumerate() {
        if *x > row[best] {
            best = i;
        }
    }
    best
}

/// A checked point of the simplex: a distribution over classes.
///
/// ```
/// use pointsman::LabelDist;
/// let p = LabelDist::new(vec![0.2, 0.5, 0.3])?;
/// assert_eq!(p.top_class(), 1);
/// assert!(LabelDist::new(vec![0.7, 0.7]).is_err());
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LabelDist(Box<[f64]>);

impl LabelDist {
    /// Checks a row and divides it by its sum.
    ///
    /// # Errors
    /// If an entry is negative or not finite, or the sum is not within [`SUM_TOLERANCE`] of one.
    pub fn new(row: Vec<f64>) -> Result<Self> {
        let names: Vec<String> = (0..row.len()).map(|c| c.to_string()).collect();
        checked_sum(&row).map_err(|fault| fault.at(0, "prob_", &names))?;
        let mut out = vec![0.0; row.len()].into_boxed_slice();
        normalise_into(&row, &mut out);
        Ok(Self(out))
    }

    /// The first index of the maximum.
    #[must_use]
    pub fn top_class(&self) -> usize {
        top_class(&self.0)
    }
}

impl Deref for LabelDist {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.0
    }
}

/// Σ aᵢbᵢ.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_the_same_in_every_precision() {
        let single = [0.9999_f32, 0.0001];
        let exact: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
        let text: Vec<f64> = single.iter().map(|x| x.to_string().parse().unwrap()).collect();
        let keys =
            [Peak::find(&single).unwrap().key(), Peak::find(&exact).unwrap().key(), Peak::find(&text).unwrap().key()];
        assert_eq!(keys, [keys[0]; 3]);
    }

    #[test]
    fn rounded_predictions_are_normalised() {
        let peak = Peak::find(&[0.333, 0.333, 0.333]).unwrap();
        assert_eq!(peak.class, 0);
        assert!((peak.confidence - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(LabelDist::new(vec![0.333; 3]).unwrap()[2], 1.0 / 3.0);
    }

    #[test]
    fn faults_name_the_entry() {
        assert_eq!(Peak::find(&[0.5, -0.5, 1.0]), Err(Fault::Entry { class: 1, value: -0.5 }));
        assert!(matches!(Peak::find(&[f64::NAN, 1.0]), Err(Fault::Entry { class: 0, .. })));
        assert!(matches!(Peak::find(&[f64::INFINITY, 1.0]), Err(Fault::Entry { class: 0, .. })));
        assert_eq!(Peak::find(&[0.5, 0.25]), Err(Fault::Sum(0.75)));
        assert_eq!(Peak::find::<f64>(&[]), Err(Fault::Sum(0.0)));
    }
}
