//! Values of arguments as people write them: shares, prices, numbers of queries, routes, caps.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{anyhow, bail};
use pointsman::Oracle;
use pointsman::loss::MAX_COST;
use pointsman::policy::CapSize;

use crate::render::number::{level, plain};

/// A share as a number or in per cent.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let refuse = |number: &str| not_a_number(number, "write a share, as in 0.2 or 20%");
    if let Some(number) = text.strip_suffix('%').map(str::trim) {
        // The decimal point is shifted in the text, so that 95% is the same number as 0.95.
        return format!("{number}e-2").parse().map_err(|_| refuse(number));
    }
    let share = text.trim().parse::<f64>().map_err(|_| refuse(text))?;
    match share > 1.0 && share <= 100.0 {
        true => Err(format!("a share is from 0 to 1: for {text} % write {} or {text}%", plain(share / 100.0))),
        false => Ok(share),
    }
}

/// The share of a budget.
pub(super) fn budget(text: &str) -> Result<f64, String> {
    let Some((name, size)) = text.rsplit_once('=') else { return share(text) };
    let size = match share(size) {
        // A cap is a percentage or a number of queries.
        Ok(share) if (0.0..=1.0).contains(&share) => level(share).replace(' ', ""),
        _ if size.parse::<CapSize>().is_ok() => size.to_owned(),
        _ => "5%".to_owned(),
    };
    Err(format!("a budget counts all routes together: for one route, give decide a cap, as in --cap {name}={size}"))
}

/// A confidence as a number or in per cent.
pub(super) fn confidence(text: &str) -> Result<f64, String> {
    share(text).map_err(|why| why.replace("a share is from 0 to 1", "a confidence is between 0 and 1"))
}

/// A price, in the unit of the loss.
pub(super) fn price(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| not_a_number(text, "write a number, as in 0.3"))
}

/// The price of abstaining, or that there is no abstaining.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AbstainArg {
    Price(f64),
    Never,
}

impl FromStr for AbstainArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim() == "none" {
            return Ok(Self::Never);
        }
        price(text).map(Self::Price).map_err(|why| anyhow!("{why}"))
    }
}

impl fmt::Display for AbstainArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Price(price) => f.write_str(&plain(*price)),
            Self::Never => f.write_str("none"),
        }
    }
}

/// A number of at least zero.
fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=f64::MAX).contains(&x) => Ok(x),
        _ => Err(not_a_number(text, &format!("{text} is not a number of at least zero"))),
    }
}

/// The price of a label, or what may be spent on labels.
pub(super) fn label_price(text: &str) -> Result<f64, String> {
    not_negative(text).map_err(|why| {
        match text.trim_start_matches(|c: char| !c.is_ascii_digit() && !".-+".contains(c)) {
            rest if rest.parse::<f64>().is_ok_and(|price| price >= 0.0) && rest != text => {
                format!("write {rest}, without a currency: the unit is that of the loss")
            }
            _ => why,
        }
    })
}

/// A number of queries: 1000000, 1,000,000, 1_000_000, 250k or 1M.
pub(super) fn query_count(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.trim().strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.trim().strip_suffix(['m', 'M']).map_or((text.trim(), 1.0), |number| (number, 1e6)),
    };
    let mut groups = number.split([',', '_']);
    let is_grouped = groups.next().is_some_and(|first| (1..=3).contains(&first.len()))
        && groups.all(|group| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit()));
    let plain = if is_grouped { number.replace([',', '_'], "") } else { number.to_owned() };
    // A point may be meant to separate thousands.
    if unit == 1.0 && plain.contains('.') {
        return Err(format!("{text} is not a whole number of queries: write 1000000, 1,000,000, 250k or 1M"));
    }
    match plain.parse::<f64>() {
        Ok(n) if (0.0..=f64::MAX).contains(&(n * unit)) => Ok(n * unit),
        _ => Err(format!("{text} is not a number of queries of at least zero: write 1000000, 1,000,000, 250k or 1M")),
    }
}

/// A number of labels: 5000, 5,000, 5_000 or 5k.
pub(super) fn label_count(text: &str) -> Result<usize, String> {
    let count = query_count(text).ok().filter(|count| count.fract() == 0.0 && *count < 1e15);
    match count.filter(|_| !text.contains(['e', 'E'])) {
        Some(0.0) => Err("0 labels change nothing: give 1 or more, or leave the limit out".to_owned()),
        Some(count) => Ok(count as usize),
        None => Err(format!("{text} is not a whole number of labels: write 5000, 5,000 or 5k")),
    }
}

/// The number of labels to keep per row.
pub(super) fn first_labels(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "keep a whole number of labels, at least 1 and better 2 or more".into())
}

/// The largest number of labels of one item.
pub(super) fn labels_per_item(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("items without labels show nothing; give 2 or more".into()),
        Ok(labels) => Ok(labels),
        Err(_) => Err("give a whole number of labels, 2 or more".into()),
    }
}

/// The message on text that is not a number: it corrects a decimal comma, else it is `advice`.
fn not_a_number(text: &str, advice: &str) -> String {
    match with_decimal_point(text) {
        Some(point) => format!("use a decimal point: {point}"),
        None => advice.to_owned(),
    }
}

/// A percentage as a number: 0.08 of 8%.
fn without_percent(text: &str) -> Option<String> {
    let number = text.trim().strip_suffix('%')?.trim();
    format!("{number}e-2").parse::<f64>().ok().filter(|price| (0.0..=MAX_COST).contains(price)).map(plain)
}

/// A number with a decimal comma, written with a point.
fn with_decimal_point(text: &str) -> Option<String> {
    let point = text.trim().replacen(',', ".", 1);
    (text.contains(',') && point.parse::<f64>().is_ok()).then_some(point)
}

/// The name of a route that was given none.
pub(crate) const UNNAMED_ROUTE: &str = "oracle";

/// `[NAME=]COST[,KIND]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RouteArg {
    pub(crate) name: String,
    /// Whether the name was given; otherwise it is [`UNNAMED_ROUTE`], or that of the only route of the task file or policy.
    pub(crate) is_named: bool,
    pub(crate) cost: f64,
    /// The kind of oracle, if it was given.
    pub(crate) oracle: Option<Oracle>,
}

impl FromStr for RouteArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim().parse::<Oracle>().is_ok() {
            bail!("{text:?} has no price: write NAME=PRICE,{}", text.trim());
        }
        let (priced, kind) = text.split_once(',').map_or((text, None), |(priced, kind)| (priced, Some(kind)));
        let is_named = priced.contains('=');
        let (name, cost) = priced.split_once('=').unwrap_or((UNNAMED_ROUTE, priced));
        if let Some(point) = kind.and_then(|kind| with_decimal_point(&format!("{cost},{kind}"))) {
            let name = if is_named { format!("{name}=") } else { String::new() };
            bail!("{text:?} is not a price: use a decimal point, {name}{point}");
        }
        let Ok(cost) = cost.trim().parse() else {
            let name = if is_named { format!("{name}=") } else { String::new() };
            match without_percent(cost) {
                Some(price) => bail!("{:?} is not a price: write {name}{price}", cost.trim()),
                None => bail!("{:?} is not a price: write [NAME=]COST[,KIND], as in expert=0.05", cost.trim()),
            }
        };
        if !(0.0..=MAX_COST).contains(&cost) {
            bail!("{cost:?} is not a price; give a number from 0 to {MAX_COST:e}");
        }
        let oracle = kind.map(|kind| parse_kind(kind.trim())).transpose()?;
        Ok(Self { name: name.trim().to_owned(), is_named, cost, oracle })
    }
}

/// A kind of oracle; the error of a misspelt one has the name that was perhaps meant.
fn parse_kind(text: &str) -> anyhow::Result<Oracle> {
    const KINDS: [&str; 3] = ["bayes", "panel", "measured"];
    text.parse::<Oracle>().map_err(|error| {
        let given = text.split(':').next().unwrap_or(text);
        anyhow!("{error}{}", pointsman_table::did_you_mean(given, KINDS))
    })
}

/// `NAME=N` or `NAME=P%`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CapArg {
    pub(crate) name: String,
    pub(crate) size: CapSize,
}

impl FromStr for CapArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((name, size)) = text.rsplit_once('=') else {
            bail!("{text:?} is not a cap: write NAME=N or NAME=P%, as in expert=500 or expert=5%");
        };
        Ok(Self { name: name.trim().to_owned(), size: size.parse()? })
    }
}

/// The held-out table of one router, as in `new=heldout-new-model.csv`.
#[derive(Debug, Clone)]
pub(crate) struct OwnTable {
    pub(crate) router: String,
    pub(crate) path: PathBuf,
}

impl FromStr for OwnTable {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once('=') {
            Some((router, path)) if !router.is_empty() && !path.is_empty() => {
                Ok(Self { router: router.to_owned(), path: path.into() })
            }
            _ => bail!("{text:?} names no router: write ROUTER=FILE, as in new=heldout-new-model.csv"),
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman::oracle::Aggregate;

    use super::*;

    #[test]
    fn shares_prices_and_query_counts_are_parsed() {
        for (text, value) in [("0.2", 0.2), ("20%", 0.2), ("95%", 0.95), ("99.9 %", 0.999), ("1", 1.0)] {
            assert_eq!(share(text), Ok(value), "{text}");
        }
        assert_eq!(share("20"), Err("a share is from 0 to 1: for 20 % write 0.2 or 20%".to_owned()));
        assert_eq!(share("0,2"), Err("use a decimal point: 0.2".to_owned()));
        assert_eq!(price("0,4"), Err("use a decimal point: 0.4".to_owned()));
        for (text, cap) in [
            ("human=20%", "human=20%"),
            ("human=0.07", "human=7%"),
            ("human=1", "human=100%"),
            ("human=500", "human=500"),
            ("human=few", "human=5%"),
        ] {
            let why = budget(text).unwrap_err();
            assert!(why.ends_with(&format!("--cap {cap}")) && cap.parse::<CapArg>().is_ok(), "{text}: {why}");
        }
        for (text, value) in
            [("1M", 1e6), ("250k", 2.5e5), ("1,000,000", 1e6), ("1_000", 1e3), ("1.5M", 1.5e6), ("7", 7.0)]
        {
            assert_eq!(query_count(text), Ok(value), "{text}");
        }
        for text in ["", "many", "1,00", "-1", "1,5", "M", "inf"] {
            assert!(query_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_labels_are_whole() {
        for (text, count) in [("5000", 5000), ("5,000", 5000), ("5_000", 5000), ("5k", 5000), ("1.5k", 1500)] {
            assert_eq!(label_count(text), Ok(count), "{text}");
        }
        assert!(label_count("0").unwrap_err().contains("give 1 or more"));
        for text in ["5e2", "5,00", "2.5", "-1", "", "many"] {
            let why = format!("{text} is not a whole number of labels: write 5000, 5,000 or 5k");
            assert_eq!(label_count(text), Err(why), "{text}");
        }
    }

    #[test]
    fn prices_of_labels_have_no_currency() {
        assert_eq!(label_price("0.01"), Ok(0.01));
        for text in ["€0.01", "$0.01", "EUR 0.01"] {
            let expected = "write 0.01, without a currency: the unit is that of the loss";
            assert_eq!(label_price(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(label_price("-1"), Err("-1 is not a number of at least zero".to_owned()));
        assert_eq!(label_price("0,01"), Err("use a decimal point: 0.01".to_owned()));
        assert!(label_price("cheap").is_err());
    }

    #[test]
    fn routes_have_defaults() {
        let route: RouteArg = "0.05".parse().unwrap();
        assert_eq!((route.name.as_str(), route.is_named, route.cost, route.oracle), ("oracle", false, 0.05, None));
        let route: RouteArg = "expert=0.1,bayes".parse().unwrap();
        assert_eq!((route.name.as_str(), route.cost, route.oracle), ("expert", 0.1, Some(Oracle::Bayes)));
        let route: RouteArg = "jury=0.1,panel:m=3,aggregate=laplace,smoothing=0.5".parse().unwrap();
        let oracle = Oracle::panel(3, Aggregate::Laplace(0.5)).unwrap();
        assert_eq!((route.name.as_str(), route.cost, route.oracle), ("jury", 0.1, Some(oracle)));
        let route: RouteArg = "0.1,panel:m=3".parse().unwrap();
        assert_eq!((route.name.as_str(), route.oracle), ("oracle", Oracle::panel(3, Aggregate::Mean).ok()));
        assert_eq!("gpt=1,measured".parse::<RouteArg>().unwrap().oracle, Some(Oracle::Measured));
        for (text, point) in [("llm=0,05", "llm=0.05"), ("0,05", "0.05")] {
            assert!(
                text.parse::<RouteArg>().unwrap_err().to_string().contains(&format!("use a decimal point, {point}"))
            );
        }
        for text in ["panel:m=3", "panel:m=3,aggregate=plurality", "measured"] {
            let why = text.parse::<RouteArg>().unwrap_err().to_string();
            assert!(why.ends_with(&format!("has no price: write NAME=PRICE,{text}")), "{why}");
        }
        for text in ["", "expert=", "a=b=1", "0.1,panel:m=0", "0.1,panel", "0.1,", "0.1,measured,bayes"] {
            assert!(text.parse::<RouteArg>().is_err(), "{text}");
        }
    }
}
