//! Generalised entropies, and bounds on losses and entropies.

use super::{Kind, Loss, asymmetric_costs, log};
use crate::table::simplex::dot;

/// The functional form of an entropy.
pub(crate) enum Shape {
    /// 1 − ‖p‖².
    Brier,
    /// −Σ p ln p, except for the floor of the smallest probabilities.
    Log,
    /// 1 − max p.
    ZeroOne,
    /// 1 − ‖p‖.
    Spherical,
    /// The minimum of functions that are linear in p, one per act. With two classes each is given by its values at the first and at the second
    /// class; with more classes these values are incomplete and only say that the entropy has this form.
    Lines(Vec<[f64; 2]>),
}

impl Loss {
    /// The generalised entropy G(p): the expected loss of predicting the true distribution p.
    #[must_use]
    pub fn entropy(&self, p: &[f64]) -> f64 {
        match &self.0 {
            Kind::Brier => 1.0 - dot(p, p),
            Kind::CrossEntropy(floor) => log::entropy(p, *floor),
            Kind::Spherical => 1.0 - dot(p, p).sqrt(),
            Kind::ZeroOne => 1.0 - p.iter().fold(0.0, |a: f64, &b| a.max(b)),
            Kind::Asymmetric(penalty) => asymmetric_costs(p, *penalty).fold(f64::INFINITY, f64::min),
            Kind::Matrix(matrix, _) => matrix.entropy(p),
        }
    }

    /// The largest loss B; ℓ lies in [0, B].
    #[must_use]
    pub fn bound(&self) -> f64 {
        match &self.0 {
            Kind::Brier => 2.0,
            Kind::CrossEntropy(floor) => -floor.ln(),
            Kind::Spherical | Kind::ZeroOne => 1.0,
            Kind::Asymmetric(penalty) => penalty.max(1.0),
            Kind::Matrix(matrix, _) => matrix.bound(),
        }
    }

    /// An upper bound on the entropy for this number of classes; it is the maximum except for matrices of three or more classes.
    ///
    /// Any random choice of acts loses at least the entropy in expectation, so its largest expected loss over the classes is an upper
    /// bound. Single acts and the uniform choice are tried.
    pub(crate) fn largest_entropy(&self, classes: usize) -> f64 {
        let uniform = || self.entropy(&vec![1.0 / classes as f64; classes]);
        let (rows, own): (Vec<Vec<f64>>, _) = match &self.0 {
            Kind::Asymmetric(penalty) => {
                let cost = |act: usize, class: usize| match (act == class, act) {
                    (true, _) => 0.0,
                    (false, 0) => *penalty,
                    (false, _) => 1.0,
                };
                ((0..classes).map(|act| (0..classes).map(|class| cost(act, class)).collect()).collect(), self.bound())
            }
            Kind::Matrix(matrix, _) => {
                ((0..matrix.acts().len()).map(|act| matrix.row(act).to_vec()).collect(), matrix.bound())
            }
            // The entropy is concave and symmetric in the classes.
            _ => return uniform(),
        };
        if classes == 2 {
            return self.entropy(&top_of_lines(&rows));
        }
        let largest = |losses: &mut dyn Iterator<Item = f64>| losses.fold(0.0, f64::max);
        let single = rows.iter().map(|row| largest(&mut row.iter().copied())).fold(own, f64::min);
        let mean = |class: usize| rows.iter().map(|row| row[class]).sum::<f64>() / rows.len() as f64;
        let mixed = largest(&mut (0..classes).map(mean));
        single.min(mixed)
    }

    /// The magnitude of the numbers that are subtracted when this loss is computed: its values are rounded on this scale. A matrix
    /// only adds non-negative terms, so its costs are rounded relative to themselves.
    pub(crate) fn rounding(&self) -> f64 {
        match &self.0 {
            Kind::Matrix(..) => 0.0,
            _ => self.bound(),
        }
    }

    /// The Lipschitz constant of the expected loss in the true distribution, in the ℓ1 norm: at most B/2, less for matrices whose
    /// acts vary less.
    #[must_use]
    pub fn lipschitz(&self) -> f64 {
        match &self.0 {
            Kind::Matrix(matrix, _) => matrix.lipschitz(),
            _ => self.bound() / 2.0,
        }
    }

    /// Whether this is the Brier loss. Unlike [`Loss::shape`] this does not allocate.
    pub(crate) fn is_brier(&self) -> bool {
        matches!(self.0, Kind::Brier)
    }

    /// The functional form of the entropy, for estimators that use it.
    pub(crate) fn shape(&self) -> Shape {
        match &self.0 {
            Kind::Brier => Shape::Brier,
            Kind::CrossEntropy(_) => Shape::Log,
            Kind::Spherical => Shape::Spherical,
            Kind::ZeroOne => Shape::ZeroOne,
            Kind::Asymmetric(penalty) => Shape::Lines(vec![[0.0, *penalty], [1.0, 0.0]]),
            Kind::Matrix(matrix, _) => {
                let rows = (0..matrix.acts().len()).map(|act| matrix.row(act));
                Shape::Lines(rows.map(|row| [row[0], row[1]]).collect())
            }
        }
    }
}

/// The distribution over two classes at which the minimum of some lines is largest: a vertex, or where two lines cross. Each line is
/// given by its values at the first and at the second class.
fn top_of_lines(lines: &[Vec<f64>]) -> [f64; 2] {
    let slope = |line: usize| lines[line][1] - lines[line][0];
    let value = |line: usize, share: f64| (1.0 - share) * lines[line][0] + share * lines[line][1];
    // The lowest line just beside a share: of several that meet there, the one that decreases fastest on that side.
    let lowest = |share: f64, side: f64| {
        let order = |&a: &usize, &b: &usize| {
            value(a, share).total_cmp(&value(b, share)).then((side * slope(a)).total_cmp(&(side * slope(b))))
        };
        (0..lines.len()).min_by(order).unwrap_or(0)
    };
    let (mut rising, mut falling) = (lowest(0.0, 1.0), lowest(1.0, -1.0));
    if slope(rising) <= 0.0 {
        return [1.0, 0.0];
    }
    if slope(falling) >= 0.0 {
        return [0.0, 1.0];
    }
    // The maximum lies between the two lines; each step replaces one of them by a flatter one.
    loop {
        let share = (lines[falling][0] - lines[rising][0]) / (slope(rising) - slope(falling));
        let next = lowest(share, 1.0);
        let is_steeper = if slope(next) > 0.0 { slope(next) >= slope(rising) } else { slope(next) <= slope(falling) };
        if is_steeper || slope(next) == 0.0 {
            return [1.0 - share, share];
        }
        *(if slope(next) > 0.0 { &mut rising } else { &mut falling }) = next;
    }
}
