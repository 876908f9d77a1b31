//! Parsing oracles from text and printing them.

use std::fmt;
use std::str::FromStr;

use super::{Aggregate, Oracle};
use crate::error::{Error, Result, TaskError};

/// The accepted forms, for error messages.
const KNOWN: &str = "bayes, panel:m=3,aggregate=mean (or plurality, or laplace), or measured";

impl FromStr for Oracle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |reason: String| TaskError::Syntax { what: "oracle", text: text.to_owned(), reason };
        let Some(settings) = text.strip_prefix("panel:") else {
            return match text {
                "bayes" => Ok(Self::Bayes),
                "measured" => Ok(Self::Measured),
                "panel" => Err(refuse("say how many experts: panel:m=3,aggregate=mean".into()).into()),
                _ => Err(TaskError::Unknown { what: "kind of oracle", text: text.to_owned(), known: KNOWN }.into()),
            };
        };
        let (mut experts, mut aggregate, mut smoothing) = (None, None, None);
        for part in settings.split(',') {
            let (slot, value) = match part.split_once('=') {
                Some(("m", value)) => (&mut experts, value),
                Some(("aggregate", value)) => (&mut aggregate, value),
                Some(("smoothing", value)) => (&mut smoothing, value),
                _ => return Err(refuse(format!("{part:?} is none of m=…, aggregate=… and smoothing=…")).into()),
            };
            if slot.replace(value.trim()).is_some() {
                return Err(refuse(format!("{part:?} is given twice")).into());
            }
        }
        let experts = experts.ok_or_else(|| refuse("say how many experts: m=3".into()))?;
        let experts =
            experts.parse().map_err(|_| refuse(format!("m={experts}: give the number of experts, such as 3")))?;
        let smoothing = match smoothing {
            None => None,
            Some(value) => Some(value.parse().map_err(|_| refuse(format!("smoothing={value} is not a number")))?),
        };
        Self::panel(experts, Aggregate::new(aggregate.unwrap_or("mean"), smoothing)?)
    }
}

impl Aggregate {
    /// An aggregate by name. `laplace` takes a smoothing, 1 by default.
    ///
    /// # Errors
    /// If the name is unknown, or another aggregate is given a smoothing.
    pub fn new(name: &str, smoothing: Option<f64>) -> Result<Self> {
        match (name, smoothing) {
            ("mean", None) => Ok(Self::Mean),
            ("plurality", None) => Ok(Self::Plurality),
            ("laplace", smoothing) => Ok(Self::Laplace(smoothing.unwrap_or(1.0))),
            ("mean" | "plurality", Some(_)) => {
                let reason = "it has no smoothing; use laplace, or leave it out".to_owned();
                Err(TaskError::Syntax { what: "aggregate", text: name.to_owned(), reason }.into())
            }
            _ => {
                let known = "mean, plurality or laplace";
                Err(TaskError::Unknown { what: "aggregate", text: name.to_owned(), known }.into())
            }
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bayes => f.write_str("bayes"),
            Self::Panel { experts, aggregate } => write!(f, "panel:m={experts},aggregate={aggregate}"),
            Self::Measured => f.write_str("measured"),
        }
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("mean"),
            Self::Plurality => f.write_str("plurality"),
            Self::Laplace(smoothing) => write!(f, "laplace,smoothing={smoothing}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_oracles_parse_back() {
        let panel = |m, aggregate| Oracle::panel(m, aggregate).unwrap();
        for oracle in [
            Oracle::Bayes,
            Oracle::Measured,
            panel(1, Aggregate::Mean),
            panel(25, Aggregate::Plurality),
            panel(3, Aggregate::Laplace(0.1)),
        ] {
            assert_eq!(oracle.to_string().parse::<Oracle>().unwrap(), oracle);
        }
        assert_eq!("panel:m=3".parse::<Oracle>().unwrap(), panel(3, Aggregate::Mean));
        assert_eq!("panel:aggregate=laplace,m=3".parse::<Oracle>().unwrap(), panel(3, Aggregate::Laplace(1.0)));
    }

    #[test]
    fn invalid_oracles_are_refused_with_advice() {
        for (text, advice) in [
            ("seer", "bayes, panel"),
            ("panel", "m=3"),
            ("panel:", "m=…"),
            ("panel:aggregate=mean", "m=3"),
            ("panel:m=0", "from 1 to 1000"),
            ("panel:m=1001", "from 1 to 1000"),
            ("panel:m=-3", "number of experts"),
            ("panel:m=3.5", "number of experts"),
            ("panel:m=99999999999", "number of experts"),
            ("panel:m=3,m=3", "twice"),
            ("panel:m=3,aggregate=median", "mean, plurality or laplace"),
            ("panel:m=3,aggregate=mean,smoothing=1", "no smoothing"),
            ("panel:m=3,aggregate=laplace,smoothing=0", "1e-6 to 1e6"),
            ("panel:m=3,aggregate=laplace,smoothing=NaN", "1e-6 to 1e6"),
            ("panel:m=3,aggregate=laplace,smoothing=much", "not a number"),
        ] {
            let error = text.parse::<Oracle>().unwrap_err().to_string();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
