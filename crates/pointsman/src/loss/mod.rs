//! Proper losses ℓ(y, q) of a prediction q under a label y.
//!
//! Every loss here is *proper*: the true distribution is a prediction of least expected loss. Decisions with costs become
//! proper by taking the cheapest act under the prediction, so a [cost matrix](Loss::matrix) covers classification error,
//! asymmetric errors, hedging, and any business decision with named acts.

mod entropy;
mod log;
mod matrix;
mod never_chosen;
mod parse;
mod votes;

use std::fmt;
use std::sync::Arc;

use crate::error::{Result, TaskError};
use crate::table::simplex::{dot, top_class};
pub(crate) use entropy::Shape;
pub use matrix::CostMatrix;
use matrix::Matrix;
pub use never_chosen::NeverChosen;
pub(crate) use votes::SelfEstimate;

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
            _ => top_class(q),
        }
    }

    /// The predicted class: that of the best act, or the top class if acts are not classes.
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
                _ => top_class(q),
            },
            Kind::Matrix(_, None) => top_class(q),
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
