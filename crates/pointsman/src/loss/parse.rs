//! Parsing losses from text.

use std::str::FromStr;

use super::Loss;
use crate::error::{Error, Result, TaskError};

/// The accepted forms, for error messages.
const KNOWN: &str = "brier, cross-entropy, spherical, zero-one, fn-fp:fp=1,fn=3, three-part, asymmetric:2, or a cost \
                     matrix in a task file";

impl FromStr for Loss {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |reason: String| TaskError::Syntax { what: "loss", text: text.to_owned(), reason };
        let number =
            |value: &str| value.trim().parse::<f64>().map_err(|_| refuse(format!("{value:?} is not a number")));
        let (name, argument) = text.split_once(':').map_or((text, None), |(n, a)| (n, Some(a)));
        match (name, argument) {
            ("brier", None) => Ok(Self::brier()),
            ("cross-entropy", None) => Ok(Self::cross_entropy()),
            ("spherical", None) => Ok(Self::spherical()),
            ("zero-one", None) => Ok(Self::zero_one()),
            ("three-part", None) => Ok(Self::three_part()),
            ("asymmetric", Some(penalty)) => Self::asymmetric(number(penalty)?),
            ("fn-fp", argument) => {
                let (mut positive, mut negative) = (None, None);
                for part in argument.into_iter().flat_map(|argument| argument.split(',')) {
                    let (slot, price) = match part.split_once('=') {
                        Some(("fp", price)) => (&mut positive, price),
                        Some(("fn", price)) => (&mut negative, price),
                        _ => return Err(refuse(format!("{part:?} is neither fp=… nor fn=…")).into()),
                    };
                    if slot.replace(number(price)?).is_some() {
                        return Err(refuse("one price is given twice".into()).into());
                    }
                }
                Self::fn_fp(positive.unwrap_or(1.0), negative.unwrap_or(1.0))
            }
            _ => Err(TaskError::Unknown { what: "loss", text: text.to_owned(), known: KNOWN }.into()),
        }
    }
}
