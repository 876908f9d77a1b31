//! Closed intervals.

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(into = "[f64; 2]"))]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.low, interval.high]
    }
}

impl Interval {
    pub(super) fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// Whether a value lies in it.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The distance between its ends.
    #[must_use]
    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// The midpoint.
    #[must_use]
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// The intersection of both. If it is empty, one of them does not cover, which happens with small probability; the first is kept.
    pub(super) fn and(self, other: Self) -> Self {
        let both = Self::new(self.low.max(other.low), self.high.min(other.high));
        if both.low <= both.high { both } else { self }
    }

    pub(super) fn shifted(self, by: f64) -> Self {
        Self::new(self.low + by, self.high + by)
    }

    /// The interval of differences between values of this interval and of the other.
    pub(super) fn minus(self, other: Self) -> Self {
        Self::new(self.low - other.high, self.high - other.low)
    }
}
