//! Proper losses ℓ(y, q) of a prediction q under a label y.
//!
//! Every loss here is *proper*: the true distribution is a prediction of least expected loss. Decisions with costs become
//! proper by taking the cheapest act under the prediction, so a [cost matrix](Loss::matrix) covers classification error,
//! asymmetric errors, hedging, and any business decision with named acts.

mod log;
mod matrix;
mod never_chosen;
mod parse;

use std::fmt;
use std::sync::Arc;

use crate::error::{Result, TaskError};
use crate::table::predictions::{RawPredictions, match_precision};
use crate::table::simplex::{self, Real, dot};
use crate::table::votes::Votes;
pub use matrix::CostMatrix;
use matrix::Matrix;
pub use never_chosen::NeverChosen;

/// The smallest probability of a class under the cross-entropy.
pub const LOG_FLOOR: f64 = 1e-6;

/// The floor of the cross-entropy in certificates, with up to 100 classes.
const CERTIFIED_LOG_FLOOR: f64 = 1e-3;

/// The largest cost and the largest price; sums of such numbers stay finite.
pub const MAX_COST: f64 = 1e100;

/// A proper loss ℓ(y, q), bounded by `bound()`.
///
/// | text | ℓ(y, q) | bound |
/// |---|---|---|
/// | `brier` | 1 − 2q_y + ‖q‖² | 2 |
/// | `cross-entropy` | −ln a_y, a the projection of q onto {a_c ≥ 10⁻⁶} | ln 10⁶ |
/// | `spherical` | 1 − q_y/‖q‖ | 1 |
/// | `zero-one` | 1 if the top class is wrong | 1 |
/// | `fn-fp:fp=1,fn=3` | binary, a price for each kind of error; the second class is the positive one | the larger price |
/// | `three-part` | binary: positive (4 if wrong), hedge (¼ always), negative (1 if wrong) | 4 |
/// | `asymmetric:γ` | zero-one, but γ for wrongly acting on the first class | max(1, γ) |
/// | a matrix | `cost[act][y]` of the cheapest act for q | the largest entry |
///
/// ```
/// use pointsman::Loss;
/// let loss = Loss::brier();
/// assert!((loss.expected(&[0.5, 0.5], &[1.0, 0.0]) - 1.0).abs() < 1e-15);
/// assert!((loss.entropy(&[0.5, 0.5]) - 0.5).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Loss(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Brier,
    /// With the smallest probability of a class.
    CrossEntropy(f64),
    Spherical,
    ZeroOne,
    Asymmetric(f64),
    /// A matrix, and its text form if it has one.
    Matrix(Arc<Matrix>, Option<Arc<str>>),
}

impl Loss {
    /// The square loss ‖y − q‖².
    #[must_use]
    pub fn brier() -> Self {
        Self(Kind::Brier)
    }

    /// The negative log-likelihood in nats, with predictions projected onto {q_c ≥ [`LOG_FLOOR`]}.
    #[must_use]
    pub fn cross_entropy() -> Self {
        Self(Kind::CrossEntropy(LOG_FLOOR))
    }

    /// The spherical loss 1 − q_y/‖q‖.
    #[must_use]
    pub fn spherical() -> Self {
        Self(Kind::Spherical)
    }

    /// The classification error of the top class.
    #[must_use]
    pub fn zero_one() -> Self {
        Self(Kind::ZeroOne)
    }

    /// Prices of a false positive and of a false negative; the second class is the positive one.
    ///
    /// # Errors
    /// If a price is negative or not finite.
    pub fn fn_fp(false_positive: f64, false_negative: f64) -> Result<Self> {
        let cost = vec![vec![false_positive, 0.0], vec![0.0, false_negative]];
        let name = format!("fn-fp:fp={false_positive},fn={false_negative}");
        let matrix = Matrix::new(vec!["positive".into(), "negative".into()], cost)?;
        Ok(Self(Kind::Matrix(Arc::new(matrix), Some(name.into()))))
    }

    /// The paper's binary loss with three acts: positive (4 if wrong), hedge (always ¼), negative (1 if wrong).
    #[must_use]
    pub fn three_part() -> Self {
        let matrix = Matrix::three_part();
        Self(Kind::Matrix(Arc::new(matrix), Some("three-part".into())))
    }

    /// Classification error, with `penalty` for wrongly predicting the first class.
    ///
    /// # Errors
    /// If the penalty is negative or not finite.
    pub fn asymmetric(penalty: f64) -> Result<Self> {
        if !(0.0..=MAX_COST).contains(&penalty) {
            let wanted = format!("is not a penalty; give a number from 0 to {MAX_COST:e}");
            return Err(TaskError::OutOfRange { what: "asymmetric".to_owned(), value: penalty, wanted }.into());
        }
        Ok(Self(Kind::Asymmetric(penalty.abs())))
    }

    /// `cost[act][class]` of named acts; the cheapest act is taken, the first of several equal ones.
    ///
    /// # Errors
    /// If the matrix is not rectangular or has fewer than two classes, an entry is negative or not finite, or an act's name is
    /// empty or repeated.
    pub fn matrix<S: Into<String>>(acts: impl IntoIterator<Item = S>, cost: Vec<Vec<f64>>) -> Result<Self> {
        let matrix = Matrix::new(acts.into_iter().map(Into::into).collect(), cost)?;
        Ok(Self(Kind::Matrix(Arc::new(matrix), None)))
    }

    /// Names the classes of a matrix's columns. A router then finds columns by class name in any order, and refuses a matrix for
    /// other classes.
    ///
    /// ```
    /// use pointsman::Loss;
    /// let loss = Loss::matrix(["ship", "hold"], vec![vec![0.0, 3.0], vec![1.0, 0.0]])?.with_classes(["fine", "broken"])?;
    /// let bound = loss.for_classes(&["broken".into(), "fine".into()])?;
    /// assert_eq!(bound.costs().unwrap()[0], [3.0, 0.0]);
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the loss is not a cost matrix, or there is not one distinct name per column.
    pub fn with_classes<S: Into<String>>(self, classes: impl IntoIterator<Item = S>) -> Result<Self> {
        match self.0 {
            Kind::Matrix(matrix, None) => {
                let matrix = Arc::unwrap_or_clone(matrix).with_names(classes.into_iter().map(Into::into).collect())?;
                Ok(Self(Kind::Matrix(Arc::new(matrix), None)))
            }
            _ => Err(TaskError::NotAMatrix { loss: self.to_string() }.into()),
        }
    }

    /// The names of a matrix's columns, if they have names.
    #[must_use]
    pub fn class_names(&self) -> Option<&[String]> {
        match &self.0 {
            Kind::Matrix(matrix, _) => matrix.names(),
            _ => None,
        }
    }

    /// The same loss for predictions over these classes: the named columns of a matrix are put in their order.
    ///
    /// # Errors
    /// If it is a matrix for other classes, or for another number of them.
    pub fn for_classes(&self, classes: &[String]) -> Result<Self> {
        match &self.0 {
            Kind::Matrix(matrix, text) if matrix.names().is_some() => {
                Ok(Self(Kind::Matrix(Arc::new(matrix.in_order_of(classes)?), text.clone())))
            }
            _ => self.check_classes(classes.len()).map(|()| self.clone()),
        }
    }

    /// The cost matrix with the names of its acts and classes, if the loss is one; `classes` are those of the predictions, in order.
    #[must_use]
    pub fn cost_matrix(&self, classes: &[String]) -> Option<CostMatrix> {
        match &self.0 {
            Kind::Matrix(matrix, _) => Some(matrix.describe(classes)),
            _ => None,
        }
    }

    /// The class whose wrong prediction costs γ instead of one, and γ; only `asymmetric:γ` has such a class.
    #[must_use]
    pub fn penalised_class(&self) -> Option<(usize, f64)> {
        match &self.0 {
            Kind::Asymmetric(penalty) => Some((0, *penalty)),
            _ => None,
        }
    }

    /// Checks that the loss is defined for this number of classes.
    ///
    /// # Errors
    /// If it is a matrix for another number of classes.
    pub fn check_classes(&self, classes: usize) -> Result<()> {
        match &self.0 {
            Kind::Matrix(matrix, _) if matrix.classes() != classes => {
                Err(TaskError::LossClasses { loss: self.to_string(), columns: matrix.classes(), classes }.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes ℓ(c, q) for every class c into `out`.
    ///
    /// # Panics
    /// If `out` is not as long as `q`, or the loss is a matrix for another number of classes.
    pub fn losses_into(&self, q: &[f64], out: &mut [f64]) {
        match &self.0 {
            Kind::Brier => {
                let square: f64 = q.iter().map(|x| x * x).sum();
                out.iter_mut().zip(q).for_each(|(o, x)| *o = 1.0 - 2.0 * x + square);
            }
            Kind::CrossEntropy(floor) => {
                log::project_into(q, *floor, out);
                out.iter_mut().for_each(|o| *o = -o.ln());
            }
            Kind::Spherical => {
                let norm = q.iter().map(|x| x * x).sum::<f64>().sqrt();
                out.iter_mut().zip(q).for_each(|(o, x)| *o = 1.0 - x / norm);
            }
            Kind::ZeroOne => {
                out.fill(1.0);
                out[self.act(q)] = 0.0;
            }
            Kind::Asymmetric(penalty) => {
                let act = self.act(q);
                out.fill(if act == 0 { *penalty } else { 1.0 });
                out[act] = 0.0;
            }
            Kind::Matrix(matrix, _) => out.copy_from_slice(matrix.row(matrix.best(q))),
        }
    }

    /// The expected loss E_{y∼truth} ℓ(y, prediction).
    ///
    /// # Panics
    /// If the loss is a matrix for another number of classes.
    #[must_use]
    pub fn expected(&self, truth: &[f64], prediction: &[f64]) -> f64 {
        let mut losses = vec![0.0; prediction.len()];
        self.losses_into(prediction, &mut losses);
        dot(truth, &losses)
    }

    /// The mean of ℓ(y, q) over the labels y of an item. `q` sums to one; `buffer` has the same length.
    pub(crate) fn of_votes(&self, votes: Votes<'_>, q: &[f64], buffer: &mut [f64]) -> f64 {
        let counts = || votes.counts().iter().map(|&n| f64::from(n));
        let k = || counts().sum::<f64>();
        match &self.0 {
            Kind::Brier => brier_of_votes(votes, q),
            Kind::CrossEntropy(floor) => {
                log::project_into(q, *floor, buffer);
                // Classes without labels need no logarithm.
                let labelled = counts().zip(buffer.iter()).filter(|(n, _)| *n > 0.0);
                -labelled.map(|(n, a)| n * a.ln()).sum::<f64>() / k()
            }
            _ => {
                self.losses_into(q, buffer);
                counts().zip(buffer.iter()).map(|(n, loss)| n * loss).sum::<f64>() / k()
            }
        }
    }

    /// As [`Self::of_votes`] for a prediction that need not sum to one. `point` and `buffer` are scratch space of its length.
    pub(crate) fn of_votes_raw(
        &self,
        votes: Votes<'_>,
        prediction: RawPredictions<'_>,
        point: &mut [f64],
        buffer: &mut [f64],
    ) -> f64 {
        match_precision!(prediction, row => match self.0 {
            Kind::Brier => brier_of_votes(votes, row),
            _ => {
                simplex::normalise_into(row, point);
                self.of_votes(votes, point, buffer)
            }
        })
    }

    /// The self-estimate of a prediction; writes the loss under each class into `buffer`.
    pub(crate) fn self_estimate_into(&self, q: &[f64], buffer: &mut [f64]) -> SelfEstimate {
        self.losses_into(q, buffer);
        let top = simplex::top_class(q);
        let (mut mass, mut lost, mut plain) = (0.0, 0.0, 0.0);
        for (_, (x, loss)) in q.iter().zip(buffer.iter()).enumerate().filter(|(class, _)| *class != top) {
            mass += x;
            lost += x * loss;
            plain += loss;
        }
        let (right, others) = (buffer[top], (q.len() - 1) as f64);
        // A prediction with no mass outside its top class gives the other classes equal weight.
        let wrong = if mass > 0.0 { lost / mass } else { plain / others };
        SelfEstimate { entropy: q[top] * right + lost, right, wrong }
    }

    /// The mean of ℓ(y, q) over the labels y of an item, and the self-estimate of q.
    pub(crate) fn of_votes_with_self_estimate(
        &self,
        votes: Votes<'_>,
        q: &[f64],
        buffer: &mut [f64],
    ) -> (f64, SelfEstimate) {
        let self_estimate = self.self_estimate_into(q, buffer);
        let (mut lost, mut k) = (0.0, 0.0);
        for (loss, n) in buffer.iter().zip(votes.counts().iter().map(|&n| f64::from(n))) {
            lost += n * loss;
            k += n;
        }
        (lost / k, self_estimate)
    }

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

    /// The acts of a cost matrix.
    #[must_use]
    pub fn acts(&self) -> Option<&[String]> {
        match &self.0 {
            Kind::Matrix(matrix, _) => Some(matrix.acts()),
            _ => None,
        }
    }

    /// `cost[act][class]` of a cost matrix.
    #[must_use]
    pub fn costs(&self) -> Option<Vec<&[f64]>> {
        match &self.0 {
            Kind::Matrix(matrix, _) => Some((0..matrix.acts().len()).map(|act| matrix.row(act)).collect()),
            _ => None,
        }
    }

    /// The best act under a prediction: the index of a matrix's act, or of a class.
    #[must_use]
    pub fn act(&self, q: &[f64]) -> usize {
        match &self.0 {
            Kind::Matrix(matrix, _) => matrix.best(q),
            Kind::Asymmetric(penalty) => matrix::first_best(asymmetric_costs(q, *penalty), 1.0),
            Kind::ZeroOne => matrix::first_best(q.iter().map(|x| -x), 1.0),
            _ => crate::table::simplex::top_class(q),
        }
    }

    /// The class that is predicted: the one that the best act stands for, or the top class where acts do not stand for classes.
    ///
    /// ```
    /// use pointsman::Loss;
    /// let loss = Loss::fn_fp(1.0, 3.0)?;
    /// assert_eq!(loss.label(&[0.6, 0.4]), 1); // missing the second class is expensive
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    #[must_use]
    pub fn label(&self, q: &[f64]) -> usize {
        match &self.0 {
            // In the built-in matrices `positive` is the second class and `negative` the first.
            Kind::Matrix(matrix, Some(_)) => match matrix.acts()[matrix.best(q)].as_str() {
                "positive" => 1,
                "negative" => 0,
                _ => crate::table::simplex::top_class(q),
            },
            Kind::Matrix(_, None) => crate::table::simplex::top_class(q),
            _ => self.act(q),
        }
    }

    /// The loss that is certified: this one, but the cross-entropy with a higher floor, because its largest values are too rare to
    /// be bounded from a few hundred rows. It is still proper.
    pub(crate) fn certified(&self, classes: usize) -> Self {
        match &self.0 {
            Kind::CrossEntropy(floor) => {
                Self(Kind::CrossEntropy(CERTIFIED_LOG_FLOOR.min(0.1 / classes as f64).max(*floor)))
            }
            _ => self.clone(),
        }
    }

    /// Whether certificates for `other` hold for this loss.
    pub(crate) fn certified_like(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::CrossEntropy(_), Kind::CrossEntropy(_)) => true,
            _ => self == other,
        }
    }

    /// The smallest probability of a class, if the loss has a floor.
    #[must_use]
    pub fn floor(&self) -> Option<f64> {
        match &self.0 {
            Kind::CrossEntropy(floor) => Some(*floor),
            _ => None,
        }
    }

    /// The functional form of the entropy, for estimators that use it.
    pub(crate) fn shape(&self) -> Shape {
        match &self.0 {
            Kind::Brier => Shape::Brier,
            Kind::CrossEntropy(_) => Shape::Log,
            Kind::Spherical => Shape::Other,
            Kind::ZeroOne => Shape::Largest,
            Kind::Asymmetric(penalty) => Shape::Lines(vec![[0.0, *penalty], [1.0, 0.0]]),
            Kind::Matrix(matrix, _) => {
                let rows = (0..matrix.acts().len()).map(|act| matrix.row(act));
                Shape::Lines(rows.map(|row| [row[0], row[1]]).collect())
            }
        }
    }

    /// The unit of losses and prices, in words.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match &self.0 {
            Kind::Brier => "Brier points",
            Kind::CrossEntropy(_) => "nats",
            Kind::Spherical => "spherical points",
            Kind::ZeroOne => "errors",
            Kind::Asymmetric(_) | Kind::Matrix(..) => "cost units",
        }
    }
}

/// The functional form of an entropy.
pub(crate) enum Shape {
    /// 1 − ‖p‖².
    Brier,
    /// −Σ p ln p, except for the floor of the smallest probabilities.
    Log,
    /// 1 − max p.
    Largest,
    /// With two classes, the minimum of lines, each given by its values at the first and at the second class.
    Lines(Vec<[f64; 2]>),
    /// None of these.
    Other,
}

/// The loss of a prediction q as q itself expects it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SelfEstimate {
    /// G(q), the expected loss if labels follow q.
    pub(crate) entropy: f64,
    /// The loss if the label is the top class.
    pub(crate) right: f64,
    /// The expected loss if the label is another class, drawn in proportion to q.
    pub(crate) wrong: f64,
}

impl SelfEstimate {
    /// The expected loss if the top class is wrong with probability `error`.
    pub(crate) fn at(self, error: f64) -> f64 {
        self.right + error * (self.wrong - self.right)
    }
}

/// The mean Brier loss of a prediction, divided by its sum, over votes. Two accumulators let the processor overlap the additions.
fn brier_of_votes<T: Real>(votes: Votes<'_>, row: &[T]) -> f64 {
    let (mut k, mut sum, mut hit, mut square) = (0, [0.0; 2], [0.0; 2], [0.0; 2]);
    let mut add = |lane: usize, n: u32, x: T| {
        let x = x.to_f64();
        k += u64::from(n);
        sum[lane] += x;
        hit[lane] += f64::from(n) * x;
        square[lane] += x * x;
    };
    let ((counts, last_count), (pairs, last)) = (votes.counts().as_chunks::<2>(), row.as_chunks::<2>());
    for (n, x) in counts.iter().zip(pairs) {
        add(0, n[0], x[0]);
        add(1, n[1], x[1]);
    }
    last_count.iter().zip(last).for_each(|(&n, &x)| add(0, n, x));
    let [sum, hit, square] = [sum, hit, square].map(|[a, b]| a + b);
    1.0 - 2.0 * hit / (k as f64 * sum) + square / (sum * sum)
}

/// The expected cost of predicting each class if wrongly predicting the first one costs `penalty`.
fn asymmetric_costs(q: &[f64], penalty: f64) -> impl Iterator<Item = f64> + Clone {
    q.iter().enumerate().map(move |(class, x)| if class == 0 { penalty * (1.0 - x) } else { 1.0 - x })
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Brier => f.write_str("brier"),
            Kind::CrossEntropy(_) => f.write_str("cross-entropy"),
            Kind::Spherical => f.write_str("spherical"),
            Kind::ZeroOne => f.write_str("zero-one"),
            Kind::Asymmetric(penalty) => write!(f, "asymmetric:{penalty}"),
            Kind::Matrix(_, Some(name)) => f.write_str(name),
            Kind::Matrix(matrix, None) => write!(f, "matrix({})", matrix.acts().join(", ")),
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
