//! Two-sided bounds on the mean Shannon entropy of p* from few labels per item.
//!
//! No function of k labels has the expectation −x ln x, but a polynomial of degree d ≤ k is within e_d of it everywhere on [0, 1], and k
//! labels estimate it without bias. With Bernstein coefficients T, the expectation of Q = Σ_c T_{N_c} is within C·e_d of the entropy of
//! any p*:
//!
//! E Q − C·e_d ≤ E H(p*) ≤ E Q + C·e_d.
//!
//! The cross-entropy projects predictions onto {q_c ≥ ε}, which adds between 0 and −ln(1 − (C − 1)ε) to its entropy.

use crate::table::votes::Votes;

/// The best polynomials of degrees 2 to 5: Bernstein coefficients and the largest error on [0, 1].
const POLYNOMIALS: [(&[f64], f64); 4] = [
    (&[0.052_819, 0.766_306, -0.052_819], 0.052_821),
    (&[0.024_351, 0.770_346, 0.175_925, 0.024_351], 0.024_353),
    (&[0.013_896, 0.716_922, 0.171_915, 0.363_099, -0.013_896], 0.013_898),
    (&[0.008_956, 0.660_458, 0.117_999, 0.591_495, 0.111_065, 0.008_956], 0.008_958),
];

/// Items with more labels use the range of the statistic for this many; averaging over subsets of labels only narrows the range.
const MAX_LABELS_FOR_RANGE: u64 = 32;

/// The polynomial enclosure of the entropy for items with a given number of labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Enclosure {
    labels: u64,
    coefficients: &'static [f64],
    error: f64,
}

impl Enclosure {
    /// The enclosure for items with this many labels; `None` below two.
    pub(crate) fn for_labels(labels: u64) -> Option<Self> {
        let degree = labels.min(5) as usize;
        let &(coefficients, error) = POLYNOMIALS.get(degree.checked_sub(2)?)?;
        Some(Self { labels, coefficients, error })
    }

    /// The statistic Q of an item, whose expectation is within [`Self::errors`] of the item's entropy.
    ///
    /// The item must have the number of labels that the enclosure is for.
    pub(crate) fn statistic(&self, votes: Votes<'_>) -> f64 {
        votes.counts().iter().map(|&count| self.term(u64::from(count))).sum()
    }

    /// How far the entropy can be below and above the expectation of Q, if predictions are at least `floor`.
    pub(crate) fn errors(&self, classes: usize, floor: f64) -> [f64; 2] {
        let polynomial = classes as f64 * self.error;
        [polynomial, polynomial - (1.0 - (classes as f64 - 1.0) * floor).ln()]
    }

    /// The range of Q over all votes.
    pub(crate) fn range(&self, classes: usize) -> [f64; 2] {
        let most = self.labels.min(MAX_LABELS_FOR_RANGE);
        let few = Self { labels: most, ..*self };
        let terms: Vec<f64> = (0..=most).map(|count| few.term(count)).collect();
        [f64::min as fn(f64, f64) -> f64, f64::max].map(|better| extreme_sum(&terms, classes, better))
    }

    /// The minimum over all votes of the entropy of the votes' shares minus Q. For items with more than [`MAX_LABELS_FOR_RANGE`] labels it
    /// is a lower bound, because the entropy is above its mean over subsets of labels, and Q equals its mean over them.
    pub(crate) fn least_entropy_above(&self, classes: usize) -> f64 {
        let most = self.labels.min(MAX_LABELS_FOR_RANGE);
        let few = Self { labels: most, ..*self };
        let term = |count: u64| {
            let share = count as f64 / most as f64;
            (if count > 0 { -share * share.ln() } else { 0.0 }) - few.term(count)
        };
        let terms: Vec<f64> = (0..=most).map(term).collect();
        extreme_sum(&terms, classes, f64::min)
    }

    fn term(&self, count: u64) -> f64 {
        mean_over_subsets(self.coefficients, self.labels, count)
    }
}

/// T^{(k)}_s = Σ_j T_j·binom(s, j)·binom(k − s, d − j)/binom(k, d): the mean of the coefficients T over all subsets of d of k labels, if s
/// of the k labels are of the class.
pub(super) fn mean_over_subsets(coefficients: &[f64], labels: u64, count: u64) -> f64 {
    let degree = coefficients.len() - 1;
    let others = labels - count.min(labels);
    let subsets = |j: usize| binomial(count, j) * binomial(others, degree - j);
    let sum: f64 = coefficients.iter().enumerate().map(|(j, t)| t * subsets(j)).sum();
    sum / binomial(labels, degree)
}

/// The binomial coefficient n over r, for a small r.
fn binomial(n: u64, r: usize) -> f64 {
    (0..r).map(|i| (n as f64 - i as f64).max(0.0) / (i + 1) as f64).product()
}

/// The least or largest Σ_c `terms`[N_c] over all counts N with `terms.len() − 1` labels.
fn extreme_sum(terms: &[f64], classes: usize, better: fn(f64, f64) -> f64) -> f64 {
    let mut best = terms.to_vec();
    for _ in 1..classes {
        let with_one_more = |labels: usize| {
            let split = |own: usize| terms[own] + best[labels - own];
            (1..=labels).map(split).fold(split(0), better)
        };
        best = (0..terms.len()).map(with_one_more).collect();
    }
    best[terms.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0)
    }

    #[test]
    fn enclosure_agrees_with_golden_cases() {
        let text = include_str!("../../tests/golden/production-statistics.json");
        let golden: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut seen = 0;
        for case in golden["cases"].as_array().unwrap() {
            let Some(wanted) = case.get("enclosure") else { continue };
            let number = |key: &str| wanted[key].as_f64().unwrap();
            let votes: Vec<u32> = serde_json::from_value(case["votes"].clone()).unwrap();
            let floor = case["floor"].as_f64().unwrap();
            let enclosure = Enclosure::for_labels(Votes::new(&votes).k()).unwrap();
            for (count, term) in wanted["elevated"].as_array().unwrap().iter().enumerate() {
                assert!(near(enclosure.term(count as u64), term.as_f64().unwrap()), "{}", case["name"]);
            }
            let q = enclosure.statistic(Votes::new(&votes));
            let [below, above] = enclosure.errors(votes.len(), floor);
            assert!(near(q, number("q")), "{}: {q}", case["name"]);
            assert!(near(q - below, number("below")) && near(q + above, number("above")), "{}", case["name"]);
            seen += 1;
        }
        assert_eq!(seen, 4);
    }

    /// On a fine grid, also with more labels than the degree.
    #[test]
    fn polynomials_stay_within_their_error_of_the_entropy() {
        for labels in [2_u64, 3, 4, 5, 9] {
            let enclosure = Enclosure::for_labels(labels).unwrap();
            for x in (0..=10_000).map(|i| f64::from(i) / 10_000.0) {
                let chance =
                    |s: u64| binomial(labels, s as usize) * x.powi(s as i32) * (1.0 - x).powi((labels - s) as i32);
                let value: f64 = (0..=labels).map(|s| enclosure.term(s) * chance(s)).sum();
                let wanted = if x > 0.0 { -x * x.ln() } else { 0.0 };
                assert!((value - wanted).abs() <= enclosure.error, "k = {labels}, x = {x}: {value}, {wanted}");
            }
        }
        assert_eq!(Enclosure::for_labels(1), None);
        assert_eq!(Enclosure::for_labels(0), None);
    }

    /// By enumeration, and for more labels than [`MAX_LABELS_FOR_RANGE`].
    #[test]
    fn statistic_stays_in_its_range() {
        for labels in [2_u32, 3, 5, 8] {
            let enclosure = Enclosure::for_labels(labels.into()).unwrap();
            let votes = (0..=labels).flat_map(|a| (0..=labels - a).map(move |b| [a, b, labels - a - b]));
            let (low, high) = votes
                .map(|votes| enclosure.statistic(Votes::new(&votes)))
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), q| (low.min(q), high.max(q)));
            let [least, most] = enclosure.range(3);
            assert!(near(least, low) && near(most, high), "k = {labels}: {low} to {high}, not {least} to {most}");
            let votes = (0..=labels).flat_map(|a| (0..=labels - a).map(move |b| [a, b, labels - a - b]));
            let above = votes.map(|votes| {
                let shares = votes.iter().filter(|n| **n > 0).map(|&n| f64::from(n) / f64::from(labels));
                shares.map(|share| -share * share.ln()).sum::<f64>() - enclosure.statistic(Votes::new(&votes))
            });
            assert!(near(enclosure.least_entropy_above(3), above.fold(f64::INFINITY, f64::min)), "k = {labels}");
        }
        let many = Enclosure::for_labels(u64::from(u32::MAX)).unwrap();
        let [least, most] = many.range(3);
        for votes in [[u32::MAX, 0, 0], [u32::MAX - 7, 5, 2], [1 << 31, (1 << 31) - 1, 0]] {
            let q = many.statistic(Votes::new(&votes));
            assert!((least..=most).contains(&q), "{votes:?}: {q}");
        }
    }
}
