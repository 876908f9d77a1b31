//! A number per item whose expectation is within known errors of its irreducible loss.
//!
//! k labels estimate every polynomial of p* of degree up to k without bias. What is near the entropy G(p*):
//!
//! * two classes: the polynomial of least largest error ([`EntropyPolynomial`]);
//! * the cross-entropy of more classes: a sum of polynomials of single classes ([`Enclosure`]), or a line in v = 1 − ‖p‖², which Û estimates,
//!   whichever is nearer. For a given v Shannon's entropy is largest if all classes but one are alike, and above the polygon through the
//!   uniform distributions over 1, 2, … classes (Harremoës and Topsøe, 2001);
//! * the zero-one and the spherical loss of more classes: a line in v. 1 − ‖p‖ is a convex function of v; so is
//!   the least 1 − max p for a given v, that of all other classes alike, while v itself is above 1 − max p.
//!
//! Other cost matrices of three classes or more have none.

use std::sync::OnceLock;

use crate::estimate::{Enclosure, EntropyPolynomial};
use crate::loss::{Loss, Shape};
use crate::table::votes::Votes;

/// From so many labels on, ranges are taken from so many: averaging over subsets of labels only narrows them.
const MAX_LABELS_FOR_RANGE: u64 = 32;

/// Slopes of lines that are tried, in steps of a twentieth, and points at which their errors are bounded.
const SLOPES: usize = 70;
const POINTS: usize = 200;

/// What is near the entropy of a loss.
#[derive(Debug)]
pub(super) struct Approximation {
    loss: Loss,
    classes: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// One polynomial per degree, fitted when it is first needed.
    TwoClasses(Vec<OnceLock<EntropyPolynomial>>),
    CrossEntropy {
        floor: f64,
        line: Line,
    },
    Line(Line),
}

/// A line in v through the origin, and how far the entropy may be below and above it.
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f64,
    errors: [f64; 2],
}

/// The same for items with so many labels.
#[derive(Debug)]
pub(super) struct Nearby<'a> {
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
    /// The line nearest to Shannon's entropy over so many classes. Predictions above a floor add to that entropy.
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

/// The least that Shannon's entropy can be above the line through the origin with a slope: at the uniform distribution over some classes.
fn least_shannon_above(slope: f64, classes: usize) -> f64 {
    let above = |m: usize| (m as f64).ln() - slope * (1.0 - 1.0 / m as f64);
    (1..=classes).map(above).fold(0.0, f64::min)
}

/// The most that it can be above it: where all classes but one, of share x, are alike.
///
/// Between two points of a grid the difference is above its chord by h²/8 of its second derivative, 1/x + 1/(1 − x) + 2·slope·C/(C − 1) at most.
fn most_shannon_above(slope: f64, classes: usize) -> f64 {
    let c = classes as f64;
    let rest = |i: usize| (1.0 - 1.0 / c) * (std::f64::consts::FRAC_PI_2 * i as f64 / POINTS as f64).sin().powi(2);
    let term = |x: f64| if x > 0.0 { -x * x.ln() } else { 0.0 };
    let shannon = |rest: f64| term(1.0 - rest) + term(rest) + rest * (c - 1.0).ln();
    let above = |rest: f64| shannon(rest) - slope * (1.0 - (1.0 - rest).powi(2) - rest * rest / (c - 1.0));
    // Next to the vertex v is not negative, and the entropy grows with the rest.
    let mut most = shannon(rest(1));
    for i in 1..POINTS {
        let (low, high) = (rest(i), rest(i + 1));
        let curvature = 1.0 / (1.0 - high) + 1.0 / low + 2.0 * slope * c / (c - 1.0);
        most = most.max(above(low).max(above(high)) + curvature * (high - low).powi(2) / 8.0);
    }
    most
}

/// The largest Û of so many labels: they are spread evenly.
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
    /// `None` for the Brier loss, which Û estimates itself, and for cost matrices of more than two classes.
    pub(super) fn of(loss: &Loss, classes: usize) -> Option<Self> {
        let c = classes as f64;
        let kind = match loss.shape() {
            Shape::Brier => return None,
            _ if classes == 2 => Kind::TwoClasses(EntropyPolynomial::DEGREES.map(|_| OnceLock::new()).collect()),
            Shape::Log => {
                let floor = loss.floor()?;
                Kind::CrossEntropy { floor, line: Line::near_shannon(classes, floor) }
            }
            // v minus the least entropy, t/C − t²/(C(C − 1)) with t² = (C − 1)(C(1 − v) − 1), is largest at t = (C − 1)/2.
            Shape::Largest => Kind::Line(Line { slope: 1.0, errors: [(c - 1.0) / (4.0 * c), 0.0] }),
            // The chord from v = 0 to the uniform distribution; farthest from it is where the slopes are equal.
            Shape::Other => {
                let (root, middle) = (c.sqrt().recip(), f64::midpoint(1.0, c.sqrt().recip()));
                let slope = 1.0 / (1.0 + root);
                Kind::Line(Line { slope, errors: [slope * (1.0 - middle * middle) - (1.0 - middle), 0.0] })
            }
            Shape::Lines(_) => return None,
        };
        Some(Self { loss: loss.clone(), classes, kind })
    }

    /// The largest entropy there is.
    pub(super) fn largest_entropy(&self) -> f64 {
        match self.kind {
            // The projection onto predictions above the floor adds to Shannon's.
            Kind::CrossEntropy { floor, .. } => {
                (self.classes as f64).ln() - (1.0 - (self.classes as f64 - 1.0) * floor).ln()
            }
            _ => self.loss.largest_entropy(self.classes),
        }
    }

    /// `None` below two labels.
    pub(super) fn for_labels(&self, labels: u64) -> Option<Nearby<'_>> {
        let degree = EntropyPolynomial::degree(labels)?;
        let form = match &self.kind {
            Kind::TwoClasses(fitted) => {
                let place = fitted.get(degree - EntropyPolynomial::DEGREES.start())?;
                Form::Polynomial(place.get_or_init(|| EntropyPolynomial::fit(&self.loss, degree)))
            }
            Kind::CrossEntropy { floor, line } => {
                let enclosure = Enclosure::for_labels(labels)?;
                let [down, up] = enclosure.errors(self.classes, *floor);
                let nearer = line.errors[0] + line.errors[1] < down + up;
                if nearer { Form::Line(*line) } else { Form::CrossEntropy(enclosure, *floor) }
            }
            Kind::Line(line) => Form::Line(*line),
        };
        Some(Nearby { of: self, labels, form })
    }
}

impl Nearby<'_> {
    /// The number of an item.
    pub(super) fn statistic(&self, votes: Votes<'_>) -> f64 {
        match &self.form {
            Form::Polynomial(polynomial) => {
                polynomial.statistic(self.labels, votes.counts().get(1).map_or(0, |&n| u64::from(n)))
            }
            Form::CrossEntropy(enclosure, _) => enclosure.statistic(votes),
            Form::Line(line) => line.slope * votes.disagreement().unwrap_or(0.0),
        }
    }

    /// By how much the irreducible loss may lie below and above its expectation.
    pub(super) fn errors(&self) -> [f64; 2] {
        match &self.form {
            Form::Polynomial(polynomial) => polynomial.errors(),
            Form::CrossEntropy(enclosure, floor) => enclosure.errors(self.of.classes, *floor),
            Form::Line(line) => line.errors,
        }
    }

    /// Between what the number lies, whatever the votes.
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

    /// The least that the entropy of the votes' shares can be above the number, whatever the votes.
    pub(super) fn least_entropy_above(&self) -> f64 {
        let c = self.of.classes as f64;
        match &self.form {
            // With more labels than the range is taken from, that entropy is above its mean over subsets of labels.
            Form::Polynomial(polynomial) => {
                let above = |(k, count): (u64, u64)| {
                    let share = count as f64 / k as f64;
                    self.of.loss.entropy(&[1.0 - share, share]) - polynomial.statistic(k, count)
                };
                self.counts().map(above).fold(f64::INFINITY, f64::min)
            }
            Form::CrossEntropy(enclosure, _) => enclosure.least_entropy_above(self.of.classes),
            Form::Line(line) => {
                // Û is so many times 1 − ‖ȳ‖².
                let steep = line.slope * self.labels as f64 / (self.labels as f64 - 1.0);
                match self.of.loss.shape() {
                    Shape::Log => least_shannon_above(steep, self.of.classes),
                    Shape::Largest => {
                        let t = ((c - 1.0) / (2.0 * steep)).min(c - 1.0);
                        (c - 1.0 - t) / c - steep * ((c - 1.0) / c - t * t / (c * (c - 1.0)))
                    }
                    _ => {
                        let root = (0.5 / steep).clamp(c.sqrt().recip(), 1.0);
                        1.0 - root - steep * (1.0 - root * root)
                    }
                }
            }
        }
    }

    /// Numbers of labels and of those of the second class among them.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let most = self.labels.min(MAX_LABELS_FOR_RANGE);
        (0..=most).map(move |count| (most, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By enumeration over two classes and the points of a grid: the expectation is within the errors, and ranges hold.
    #[test]
    fn expectations_are_within_their_errors_of_the_entropy() {
        for loss in ["cross-entropy", "spherical", "zero-one", "fn-fp:fp=1,fn=4", "three-part", "asymmetric:4"] {
            let loss = loss.parse::<Loss>().unwrap().certified(2);
            let approximation = Approximation::of(&loss, 2).unwrap();
            for k in [2_u64, 3, 5, 9, 40] {
                let nearby = approximation.for_labels(k).unwrap();
                let ([low, high], [down, up]) = (nearby.range(), nearby.errors());
                let number = |count: u64| nearby.statistic(Votes::new(&[(k - count) as u32, count as u32]));
                for count in 0..=k {
                    let (share, x) = (count as f64 / k as f64, number(count));
                    let above = loss.entropy(&[1.0 - share, share]) - x;
                    assert!((low - 1e-9..=high + 1e-9).contains(&x), "{loss}, k = {k}, {count}");
                    assert!(above >= nearby.least_entropy_above() - 1e-9, "{loss}, k = {k}, {count}: {above}");
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
        assert!(Approximation::of(&Loss::brier(), 2).is_none());
    }

    /// Random points of the simplex, some near vertices and edges, and those where one class differs and the others are alike, which are farthest
    /// from the line: the errors hold there, and are no looser than they need be.
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
                    Approximation::of(&loss, classes).unwrap().kind
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
                // A floor adds to the entropy, at most so much.
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
    fn disagreement_is_largest_if_labels_are_spread_evenly() {
        for (k, classes, largest) in
            [(2, 2, 1.0), (3, 2, 2.0 / 3.0), (5, 2, 0.6), (3, 3, 1.0), (4, 3, 5.0 / 6.0), (1, 3, 0.0)]
        {
            assert!((largest_disagreement(k, classes) - largest).abs() < 1e-12, "{k} {classes}");
        }
    }
}
