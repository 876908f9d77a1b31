//! Parsing losses from text.

use std::str::FromStr;

use super::Loss;
use crate::error::{Error, Result};

/// The accepted forms, for error messages.
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
                let (mut positive, mut negative) = (None, None);
                for part in argument.into_iter().flat_map(|argument| argument.split(',')) {
                    let (slot, price) = match part.split_once('=') {
                        Some(("fp", price)) => (&mut positive, price),
                        Some(("fn", price)) => (&mut negative, price),
                        _ => return Err(Error::Task(format!("loss {text:?}: {part:?} is neither fp=… nor fn=…"))),
                    };
                    if slot.replace(number(text, price)?).is_some() {
                        return Err(Error::Task(format!("loss {text:?}: one price is given twice")));
                    }
                }
                Self::fn_fp(positive.unwrap_or(1.0), negative.unwrap_or(1.0))
            }
            _ => Err(Error::Task(format!("unknown loss {text:?}: use {KNOWN}"))),
        }
    }
}

fn number(text: &str, value: &str) -> Result<f64> {
    value.trim().parse().map_err(|_| Error::Task(format!("loss {text:?}: {value:?} is not a number")))
}
