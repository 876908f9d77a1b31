//! Conditions under which `evaluate` fails, for use in continuous integration.

use std::str::FromStr;

use anyhow::bail;
use pointsman::evaluate::rule_name;
use pointsman_report::Report;

use crate::render::number::{percent, short};
use crate::words;

/// The conditions, as an error lists them.
const CONDITIONS: &str = "saving<X (a share of the cost of the best simple rule, as in saving<0, saving<0.02 or saving<2%), cost>X, regret>X or drift";

/// `saving<0.02`, `cost>X`, `regret>X` or `drift`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    SavingBelow(f64),
    CostAbove(f64),
    RegretAbove(f64),
    Drift,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let unknown = || format!("unknown condition {text:?}: use {CONDITIONS}");
        let bound = |prefix: &str| plain.strip_prefix(prefix).map(str::parse::<f64>);
        let percentage = plain.strip_prefix("saving<").and_then(|bound| bound.strip_suffix('%'));
        let checked = |bound: Result<f64, _>| bound.ok().filter(|bound| bound.is_finite()).ok_or_else(unknown);
        let kind = if plain == "drift" {
            Kind::Drift
        } else if let Some(bound) = percentage {
            Kind::SavingBelow(checked(bound.parse())? / 100.0)
        } else if let Some(bound) = bound("saving<") {
            Kind::SavingBelow(checked(bound)?)
        } else if let Some(bound) = bound("cost>") {
            Kind::CostAbove(checked(bound)?)
        } else if let Some(bound) = bound("regret>") {
            Kind::RegretAbove(checked(bound)?)
        } else {
            return Err(unknown());
        };
        Ok(Self { text: plain, kind })
    }
}

impl Condition {
    /// Why the condition holds; `None` if it does not.
    ///
    /// # Errors
    /// If labels do not identify it.
    fn holds(&self, report: &Report) -> anyhow::Result<Option<String>> {
        let evaluation = &report.evaluation;
        let known = |name: &str| match evaluation.best_costs().get(name) {
            Some(&cost) if evaluation.is_identified(name) => Ok(cost),
            _ => bail!("--fail-if {}: one label per row does not identify the cost of {name}", self.text),
        };
        let (holds, why) = match self.kind {
            Kind::Drift => (report.traffic.moved, words::policy::traffic(&report.traffic).unwrap_or_default()),
            Kind::CostAbove(bound) => {
                let cost = known("router")?;
                (cost > bound, format!("Pointsman costs {} per query", short(cost)))
            }
            Kind::RegretAbove(bound) => {
                // A forest decides query by query, so the best action per cell is no benchmark.
                let by_row = report.router.decides_by_row();
                let best = if by_row { "pointwise-optimal" } else { "cell-optimal" };
                known(best)?;
                let regret = evaluation.best_regret().get(best).copied().unwrap_or(f64::NAN);
                let why = format!("Pointsman costs {} more per query than the {}", short(regret), rule_name(best));
                (regret > bound, why)
            }
            Kind::SavingBelow(bound) => {
                let (saving, rule) = self.saving(report)?;
                let why =
                    format!("Pointsman saves {} against the best simple rule: {}", percent(saving), rule_name(&rule));
                (saving < bound, why)
            }
        };
        Ok(holds.then(|| format!("{} ({why})", self.text)))
    }

    /// The saving against the simple rule that is hardest to beat, among those that keep to limits and caps, as a share of its cost.
    fn saving(&self, report: &Report) -> anyhow::Result<(f64, String)> {
        if report.threshold_left_out() {
            bail!(
                "--fail-if {}: with several routes and an exceeded cap the best confidence threshold is unknown, which may be the rule that \
                 is hardest to beat; use cost>X or regret>X, or leave --cap out",
                self.text
            );
        }
        let savings = report.evaluation.savings.iter().flat_map(|savings| savings.iter());
        match savings.filter(|(rule, _)| report.is_allowed(rule)).min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) {
            // There is nothing to save against a rule that costs nothing.
            Some((name, saving)) => Ok((saving.share.unwrap_or(saving.estimate.min(0.0)), name.to_owned())),
            None => bail!("--fail-if {}: one label per row does not identify what Pointsman saves", self.text),
        }
    }
}

/// The conditions that hold, in one line; `None` if none does.
pub(super) fn judge(conditions: &[Condition], report: &Report) -> anyhow::Result<Option<String>> {
    let held = conditions.iter().filter_map(|condition| condition.holds(report).transpose());
    let held = held.collect::<anyhow::Result<Vec<String>>>()?;
    Ok((!held.is_empty()).then(|| held.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed_or_refused_with_their_list() {
        let kind = |text: &str| text.parse::<Condition>().map(|condition| condition.kind);
        assert_eq!(kind("saving < 0"), Ok(Kind::SavingBelow(0.0)));
        assert_eq!(kind("saving<0.02"), Ok(Kind::SavingBelow(0.02)));
        assert_eq!(kind("saving<50%"), Ok(Kind::SavingBelow(0.5)));
        assert_eq!(kind("cost>0.3"), Ok(Kind::CostAbove(0.3)));
        assert_eq!(kind("regret>1e-3"), Ok(Kind::RegretAbove(0.001)));
        assert_eq!(kind("drift"), Ok(Kind::Drift));
        for text in
            ["", "saving", "saving>0", "saving<", "saving<nan", "cost<1", "cost>5%", "saving<%", "drift>0", "gain<0"]
        {
            assert!(kind(text).unwrap_err().contains("use saving<X"), "{text}");
        }
    }
}
