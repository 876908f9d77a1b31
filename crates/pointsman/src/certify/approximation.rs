//! A statistic per item whose expectation is within known errors of its irreducible loss.
//!
//! k labels estimate every polynomial of p* of degree up to k without bias. The entropy G(p*) is approximated by:
//!
//! * two classes: a nearly minimax polynomial ([`EntropyPolynomial`]);
//! * the cross-entropy of more classes: a sum of polynomials of single classes ([`Enclosure`]), or a line in v = 1 − ‖p‖², which Û
//!   estimates, whichever has smaller errors. For a given v, Shannon's entropy is largest if all classes but one are equally likely, and it
//!   is above the polygon through the uniform distributions over 1, 2, … classes (Harremoës and Topsøe, 2001);
//! * the zero-one and the spherical loss of more classes: a line in v. 1 − ‖p‖ is convex in v; so is the least 1 − max p for a given v,
//!   attained if all other classes are equally likely, while v itself is an upper bound of 1 − max p.
//!
//! Other cost matrices of three or more classes have no approximation.

use std::sync::OnceLock;

use crate::estimate::{Enclosure, EntropyPolynomial};
use crate::loss::{Loss, Shape};
use crate::table::votes::Votes;

/// Items with more labels use the ranges for this many; averaging over subsets of labels only narrows a range.
const MAX_LABELS_FOR_RANGE: u64 = 32;

/// Candidate slopes of lines, in steps of 0.05.
const SLOPES: usize = 70;

/// Points at which the error of a line is bounded.
const POINTS: usize = 200;

/// An approximation of the entropy of a loss.
#[derive(Debug)]
pub(super) struct Approximation {
    loss: Loss,
    classes: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// One polynomial per degree, fitted on first use.
    TwoClasses(Vec<OnceLock<EntropyPolynomial>>),
    CrossEntropy {
        floor: f64,
        line: Line,
    },
    Line(Line),
}

/// A line in v through the origin, and how far the entropy can be below and above it.
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f64,
    errors: [f64; 2],
}

/// The approximation for items with a given number of labels.
#[derive(Debug)]
pub(super) struct EnclosingStatistic<'a> {
    of: &'a Approximation,
    labels: u64,
    form: Form<'a>,
}

#[derive(Debug)]
enum Form<'a> {
    Polynomial(&'a EntropyPolynomial),
    CrossEntropy(Enclosure, f64),
    Line(Line),
}

impl Line {
    /// The line with the smallest errors for Shannon's entropy. The floor of predictions adds to that entropy.
    fn near_shannon(classes: usize, floor: f64) -> Self {
        let added = -(1.0 - (classes as f64 - 1.0) * floor).ln();
        let of_slope = |place: usize| {
            let slope = 0.5 + 0.05 * place as f64;
            Self { slope, errors: [-least_shannon_above(slope, classes), most_shannon_above(slope, classes) + added] }
        };
        let width = |line: &Self| line.errors[0] + line.errors[1];
        let lines = (1..=SLOPES).map(of_slope);
        lines.fold(of_slope(0), |best, line| if width(&line) < width(&best) { line } else { best })
    }
}

/// The minimum of Shannon's entropy minus slope·v, which is attained at a uniform distribution over some classes.
fn least_shannon_above(slope: f64, classes: usize) -> f64 {
    let above = |m: usize| (m as f64).ln() - slope * (1.0 - 1.0 / m as f64);
    (1..=classes).map(above).fold(0.0, f64::min)
}

/// An upper bound on Shannon's entropy minus slope·v, whose maximum has all classes but one equally likely, with a total share x.
///
/// Between two grid points of distance h the difference exceeds its chord by at most h²/8 times its second derivative, which is at most
/// 1/x + 1/(1 − x) + 2·slope·C/(C − 1).
fn most_shannon_above(slope: f64, classes: usize) -> f64 {
    let c = classes as f64;
    let rest = |i: usize| (1.0 - 1.0 / c) * (std::f64::consts::FRAC_PI_2 * i as f64 / POINTS as f64).sin().powi(2);
    let term = |x: f64| if x > 0.0 { -x * x.ln() } else { 0.0 };
    let shannon = |rest: f64| term(1.0 - rest) + term(rest) + rest * (c - 1.0).ln();
    let above = |rest: f64| shannon(rest) - slope * (1.0 - (1.0 - rest).powi(2) - rest * rest / (c - 1.0));
    // Next to the vertex: v is not negative, and the entropy increases with the rest.
    let mut most = shannon(rest(1));
    for i in 1..POINTS {
        let (low, high) = (rest(i), rest(i + 1));
        let curvature = 1.0 / (1.0 - high) + 1.0 / low + 2.0 * slope * c / (c - 1.0);
        most = most.max(above(low).max(above(high)) + curvature * (high - low).powi(2) / 8.0);
    }
    most
}

/// The largest Û for a number of labels, attained if they are spread evenly over the classes.
pub(super) fn largest_disagreement(labels: u64, classes: usize) -> f64 {
    if labels < 2 {
        return 0.0;
    }
    let (classes, k) = (classes as u64, labels as f64);
    let (each, more) = ((labels / classes) as f64, (labels % classes) as f64);
    let squares = more * (each + 1.0).powi(2) + (classes as f64 - more) * each * each;
    (1.0 - squares / (k * k)) * k / (k - 1.0)
}

impl Approximation {
    /// The approximation for a loss; `None` for the Brier loss, whose entropy Û estimates without bias, and for cost matrices of more than
    /// two classes.
    pub(super) fn new(loss: &Loss, classes: usize) -> Option<Self> {
        let c = classes as f64;
        let kind = match loss.shape() {
            Shape::Brier => return None,
            _ if classes == 2 => Kind::TwoClasses(EntropyPolynomial::DEGREES.map(|_| OnceLock::new()).collect()),
            Shape::Log => {
                let floor = loss.floor()?;
                Kind::CrossEntropy { floor, line: Line::near_shannon(classes, floor) }
            }
            // v minus the least entropy is t/C − t²/(C(C − 1)) with t² = (C − 1)(C(1 − v) − 1), which is largest at t = (C − 1)/2.
            Shape::ZeroOne => Kind::Line(Line { slope: 1.0, errors: [(c - 1.0) / (4.0 * c), 0.0] }),
            // The chord from v = 0 to the uniform distribution; the error is largest where the slopes are equal.
            Shape::Spherical => {
                let (root, middle) = (c.sqrt().recip(), f64::midpoint(1.0, c.sqrt().recip()));
                let slope = 1.0 / (1.0 + root);
                Kind::Line(Line { slope, errors: [slope * (1.0 - middle * middle) - (1.0 - middle), 0.0] })
            }
            Shape::Lines(_) => return None,
        };
        Some(Self { loss: loss.clone(), classes, kind })
    }

    /// The largest entropy.
    pub(super) fn largest_entropy(&self) -> f64 {
        match self.kind {
            // The projection onto predictions above the floor adds to Shannon's entropy.
            Kind::CrossEntropy { floor, .. } => {
                (self.classes as f64).ln() - (1.0 - (self.classes as f64 - 1.0) * floor).ln()
            }
            _ => self.loss.largest_entropy(self.classes),
        }
    }

    /// The statistic for items with this many labels; `None` below two.
    pub(super) fn for_labels(&self, labels: u64) -> Option<EnclosingStatistic<'_>> {
        let degree = EntropyPolynomial::degree(labels)?;
        let form = match &self.kind {
            Kind::TwoClasses(fitted) => {
                let place = fitted.get(degree - EntropyPolynomial::DEGREES.start())?;
                Form::Polynomial(place.get_or_init(|| EntropyPolynomial::fit(&self.loss, degree)))
            }
            Kind::CrossEntropy { floor, line } => {
                let enclosure = Enclosure::for_labels(labels)?;
                let [down, up] = enclosure.errors(self.classes, *floor);
                let is_tighter = line.errors[0] + line.errors[1] < down + up;
                if is_tighter { Form::Line(*line) } else { Form::CrossEntropy(enclosure, *floor) }
            }
            Kind::Line(line) => Form::Line(*line),
        };
        Some(EnclosingStatistic { of: self, labels, form })
    }
}

impl EnclosingStatistic<'_> {
    /// The value for an item.
    pub(super) fn value(&self, votes: Votes<'_>) -> f64 {
        match &self.form {
            Form::Polynomial(polynomial) => {
                polynomial.statistic(self.labels, votes.counts().get(1).map_or(0, |&n| u64::from(n)))
            }
            Form::CrossEntropy(enclosure, _) => enclosure.statistic(votes),
            Form::Line(line) => line.slope * votes.disagreement().unwrap_or(0.0),
        }
    }

    /// How far the irreducible loss can be below and above the expectation of the statistic.
    pub(super) fn errors(&self) -> [f64; 2] {
        match &self.form {
            Form::Polynomial(polynomial) => polynomial.errors(),
            Form::CrossEntropy(enclosure, floor) => enclosure.errors(self.of.classes, *floor),
            Form::Line(line) => line.errors,
        }
    }

    /// The range of the statistic over all votes.
    pub(super) fn range(&self) -> [f64; 2] {
        match &self.form {
            Form::Polynomial(polynomial) => {
                let terms = self.counts().map(|(k, count)| polynomial.statistic(k, count));
                terms.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)])
            }
            Form::CrossEntropy(enclosure, _) => enclosure.range(self.of.classes),
            Form::Line(line) => [0.0, line.slope * largest_disagreement(self.labels, self.of.classes)],
        }
    }

    /// The minimum over all votes of the entropy of the votes' shares minus the statistic.
    pub(super) fn least_entropy_above(&self) -> f64 {
        let c = self.of.classes as f64;
        match &self.form {
            // With more labels than `MAX_LABELS_FOR_RANGE` the entropy is above its mean over subsets of labels.
            Form::Polynomial(polynomial) => {
                let above = |(k, count): (u64, u64)| {
                    let share = count as f64 / k as f64;
                    self.of.loss.entropy(&[1.0 - share, share]) - polynomial.statistic(k, count)
                };
                self.counts().map(above).fold(f64::INFINITY, f64::min)
            }
            Form::CrossEntropy(enclosure, _) => enclosure.least_entropy_above(self.of.classes),
            Form::Line(line) => {
                // Û = k/(k − 1)·(1 − ‖ȳ‖²).
                let steep = line.slope * self.labels as f64 / (self.labels as f64 - 1.0);
                match self.of.loss.shape() {
                    Shape::Log => least_shannon_above(steep, self.of.classes),
                    Shape::ZeroOne => {
                        let t = ((c - 1.0) / (2.0 * steep)).min(c - 1.0);
                        (c - 1.0 - t) / c - steep * ((c - 1.0) / c - t * t / (c * (c - 1.0)))
                    }
                    // Brier and lines have forms of their own.
                    Shape::Spherical | Shape::Brier | Shape::Lines(_) => {
                        let root = (0.5 / steep).clamp(c.sqrt().recip(), 1.0);
                        1.0 - root - steep * (1.0 - root * root)
                    }
                }
            }
        }
    }

    /// The number of labels with each possible count of the second class.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let most = self.labels.min(MAX_LABELS_FOR_RANGE);
        (0..=most).map(move |count| (most, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By enumeration over the votes of two classes and a grid of p.
    #[test]
    fn expectations_are_within_their_errors_of_the_entropy() {
        for loss in ["cross-entropy", "spherical", "zero-one", "fn-fp:fp=1,fn=4", "three-part", "asymmetric:4"] {
            let loss = loss.parse::<Loss>().unwrap().certified(2);
            let approximation = Approximation::new(&loss, 2).unwrap();
            for k in [2_u64, 3, 5, 9, 40] {
                let enclosing = approximation.for_labels(k).unwrap();
                let ([low, high], [down, up]) = (enclosing.range(), enclosing.errors());
                let number = |count: u64| enclosing.value(Votes::new(&[(k - count) as u32, count as u32]));
                for count in 0..=k {
                    let (share, x) = (count as f64 / k as f64, number(count));
                    let above = loss.entropy(&[1.0 - share, share]) - x;
                    assert!((low - 1e-9..=high + 1e-9).contains(&x), "{loss}, k = {k}, {count}");
                    assert!(above >= enclosing.least_entropy_above() - 1e-9, "{loss}, k = {k}, {count}: {above}");
                }
                for p in (0..=50).map(|i| f64::from(i) / 50.0) {
                    let mut law = vec![1.0];
                    for _ in 0..k {
                        let with = |i: usize| {
                            let of = |j: Option<usize>| j.and_then(|j| law.get(j)).copied().unwrap_or(0.0);
                            of(Some(i)) * (1.0 - p) + of(i.checked_sub(1)) * p
                        };
                        law = (0..=law.len()).map(with).collect();
                    }
                    let mean: f64 = law.iter().enumerate().map(|(count, chance)| chance * number(count as u64)).sum();
                    let truth = loss.entropy(&[1.0 - p, p]);
                    assert!(mean - down <= truth + 1e-9 && truth <= mean + up + 1e-9, "{loss}, k = {k}, p = {p}");
                }
            }
        }
        assert!(Approximation::new(&Loss::brier(), 2).is_none());
    }

    /// At random points of the simplex, some near vertices and edges, and where all classes but one are equally likely, which is farthest
    /// from the line. The errors are also tight.
    #[test]
    fn entropies_of_more_classes_are_within_the_errors_of_their_lines() {
        let mut random = 1_u64;
        let mut uniform = || {
            random = crate::numeric::mix::nth(random, 1);
            crate::numeric::mix::uniform(random)
        };
        for classes in [3, 5, 10, 40] {
            for loss in [Loss::cross_entropy(), Loss::spherical(), Loss::zero_one()] {
                let loss = loss.certified(classes);
                let (Kind::Line(line) | Kind::CrossEntropy { line, .. }) =
                    Approximation::new(&loss, classes).unwrap().kind
                else {
                    panic!("{loss} has a line")
                };
                let mut farthest = [0.0_f64; 2];
                let mut check = |p: &[f64]| {
                    let v = 1.0 - p.iter().map(|x| x * x).sum::<f64>();
                    let above = loss.entropy(p) - line.slope * v;
                    farthest = [farthest[0].max(-above), farthest[1].max(above)];
                    assert!(
                        -line.errors[0] <= above + 1e-12 && above <= line.errors[1] + 1e-12,
                        "{loss} {p:?}: {above}"
                    );
                };
                for place in 0..3000 {
                    let power = [0.3, 1.0, 4.0, 20.0][place % 4];
                    let alike = 1 + place % classes;
                    let weight =
                        |class: usize, x: f64| if place % 3 == 0 { f64::from(u8::from(class < alike)) } else { x };
                    let mut p: Vec<f64> = (0..classes).map(|class| weight(class, uniform().powf(power))).collect();
                    let sum: f64 = p.iter().sum();
                    p.iter_mut().for_each(|x| *x /= sum);
                    check(&p);
                }
                for rest in (0..=2000).map(|i| f64::from(i) / 2000.0) {
                    let mut p = vec![rest / (classes as f64 - 1.0); classes];
                    p[0] = 1.0 - rest;
                    check(&p);
                }
                println!("{loss}, {classes} classes: errors {:.4?}, seen {farthest:.4?}", line.errors);
                // The largest amount that the floor adds to the entropy.
                let slack = 1e-3 + classes as f64 * loss.floor().unwrap_or(0.0);
                for side in 0..2 {
                    assert!(
                        line.errors[side] < farthest[side] + slack,
                        "{loss}, {classes}: {:?} {farthest:?}",
                        line.errors
                    );
                }
            }
        }
    }

    #[test]
    fn largest_disagreement_is_that_of_evenly_spread_labels() {
        for (k, classes, largest) in
            [(2, 2, 1.0), (3, 2, 2.0 / 3.0), (5, 2, 0.6), (3, 3, 1.0), (4, 3, 5.0 / 6.0), (1, 3, 0.0)]
        {
            assert!((largest_disagreement(k, classes) - largest).abs() < 1e-12, "{k} {classes}");
        }
    }
}
