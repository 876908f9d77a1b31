//! The labels of one item.

/// One item's label counts; the number of labels and their mean are derived from them.
///
/// ```
/// let votes = pointsman::Votes::new(&[3, 1, 0]);
/// assert_eq!(votes.k(), 4);
/// assert_eq!(votes.mean(0), 0.75);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Votes<'a>(&'a [u32]);

impl<'a> Votes<'a> {
    /// Wraps a row of counts, one per class.
    #[must_use]
    pub fn new(counts: &'a [u32]) -> Self {
        Self(counts)
    }

    /// The counts, one per class.
    #[must_use]
    pub fn counts(self) -> &'a [u32] {
        self.0
    }

    /// The number of labels.
    #[must_use]
    pub fn k(self) -> u64 {
        self.0.iter().map(|&n| u64::from(n)).sum()
    }

    /// The share of the labels that are `class`.
    #[must_use]
    pub fn mean(self, class: usize) -> f64 {
        f64::from(self.0[class]) / self.k() as f64
    }

    /// The share of label pairs that differ: Û = k/(k − 1)·(1 − ‖ȳ‖²), unbiased for 1 − ‖p*‖². `None` with fewer than two labels.
    ///
    /// ```
    /// assert_eq!(pointsman::Votes::new(&[2, 1, 1]).disagreement(), Some(5.0 / 6.0));
    /// assert_eq!(pointsman::Votes::new(&[1, 0]).disagreement(), None);
    /// ```
    #[must_use]
    pub fn disagreement(self) -> Option<f64> {
        let k = self.k() as f64;
        let square = |&n: &u32| (f64::from(n) / k) * (f64::from(n) / k);
        (k >= 2.0).then(|| (1.0 - self.0.iter().map(square).sum::<f64>()) * k / (k - 1.0))
    }

    /// Writes the mean ȳ of the labels, the snapshot mean, into `out`.
    pub fn mean_into(self, out: &mut [f64]) {
        let k = self.k() as f64;
        for (o, &n) in out.iter_mut().zip(self.0) {
            *o = f64::from(n) / k;
        }
    }
}
