//! Losses from text.

use std::str::FromStr;

use super::Loss;
use crate::error::{Error, Result};

/// What a user may write.
const KNOWN: &str = "brier, cross-entropy, spherical, zero-one, fn-fp:fp=1,fn=3, three-part, asymmetric:2, or a cost \
                     matrix in a task file";

impl FromStr for Loss {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, argument) = text.split_once(':').map_or((text, None), |(n, a)| (n, Some(a)));
        match (name, argument) {
            ("brier", None) => Ok(Self::brier()),
            ("cross-entropy", None) => Ok(Self::cross_entropy()),
            ("spherical", None) => Ok(Self::spherical()),
            ("zero-one", None) => Ok(Self::zero_one()),
            ("three-part", None) => Ok(Self::three_part()),
            ("asymmetric", Some(penalty)) => Self::asymmetric(number(text, penalty)?),
            ("fn-fp", argument) => {
                let (mut positive, mut negative) = (1.0, 1.0);
                for part in argument.unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
                    match part.split_once('=') {
                        Some(("fp", price)) => positive = number(text, price)?,
                        Some(("fn", price)) => negative = number(text, price)?,
                        _ => return Err(Error::Task(format!("loss {text:?}: {part:?} is neither fp=… nor fn=…"))),
                    }
                }
                Self::fn_fp(positive, negative)
            }
            _ => Err(Error::Task(format!("unknown loss {text:?}: use {KNOWN}"))),
        }
    }
}

fn number(text: &str, value: &str) -> Result<f64> {
    value.trim().parse().map_err(|_| Error::Task(format!("loss {text:?}: {value:?} is not a number")))
}
