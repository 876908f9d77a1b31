//! The labels one item received.

/// A view of one item's label counts; the number of labels and their mean are derived.
///
/// ```
/// let votes = pointsman::Votes::new(&[3, 1, 0]);
/// assert_eq!(votes.k(), 4);
/// assert_eq!(votes.mean(0), 0.75);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Votes<'a>(&'a [u32]);

impl<'a> Votes<'a> {
    /// Looks at a row of counts.
    #[must_use]
    pub fn new(counts: &'a [u32]) -> Self {
        Self(counts)
    }

    /// The counts, one a class.
    #[must_use]
    pub fn counts(self) -> &'a [u32] {
        self.0
    }

    /// How many labels there are.
    #[must_use]
    pub fn k(self) -> u64 {
        self.0.iter().map(|&n| u64::from(n)).sum()
    }

    /// The share of labels that named `class`.
    #[must_use]
    pub fn mean(self, class: usize) -> f64 {
        f64::from(self.0[class]) / self.k() as f64
    }

    /// Writes the snapshot mean ȳ into `out`.
    pub fn mean_into(self, out: &mut [f64]) {
        let k = self.k() as f64;
        for (o, &n) in out.iter_mut().zip(self.0) {
            *o = f64::from(n) / k;
        }
    }
}
