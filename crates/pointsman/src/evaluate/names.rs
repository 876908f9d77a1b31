//! Display names of rules, rankings and actions for terminal, report page and figures. Programs read the keys, which are stable.

/// The display name of a rule by its key: `router` is Pointsman, `always-route:expert` is "always route to expert".
#[must_use]
pub fn rule_name(key: &str) -> String {
    match key {
        "router" => "Pointsman".into(),
        "cell-optimal" => "best action per cell".into(),
        "pointwise-optimal" => "best possible per query".into(),
        // A diagnosis names the rule by the score that the threshold applies to.
        "total-uncertainty" | "best-threshold" => "best confidence threshold".into(),
        other => match other.strip_prefix("always-") {
            Some(action) => format!("always {}", action_name(action)),
            None => other.to_owned(),
        },
    }
}

/// The display name of an action by its key: `route:expert` is "route to expert".
#[must_use]
pub fn action_name(key: &str) -> String {
    key.strip_prefix("route:").map_or_else(|| key.to_owned(), |oracle| format!("route to {oracle}"))
}

/// The display name of a ranking of queries by its key. A ranking has no threshold, so `total-uncertainty` is not called the best one here.
#[must_use]
pub fn ranking_name(key: &str) -> String {
    match key {
        "higher-order" => "Pointsman".into(),
        "total-uncertainty" => "confidence threshold".into(),
        "recalibrated-uncertainty" => "confidence threshold, re-calibrated".into(),
        "random" => "random order".into(),
        other => rule_name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_name() {
        assert_eq!(rule_name("router"), "Pointsman");
        assert_eq!(rule_name("always-route:large model"), "always route to large model");
        assert_eq!([rule_name("always-abstain"), rule_name("predict/abstain")], ["always abstain", "predict/abstain"]);
        assert_eq!([ranking_name("higher-order"), ranking_name("random")], ["Pointsman", "random order"]);
        for key in ["cell-optimal", "pointwise-optimal"] {
            assert_eq!(rule_name(key), ranking_name(key), "{key}");
        }
    }

    #[test]
    fn threshold_rules_and_rankings_have_different_names() {
        assert_eq!(rule_name("best-threshold"), rule_name("total-uncertainty"));
        assert_eq!(rule_name("best-threshold"), "best confidence threshold");
        assert_eq!(ranking_name("total-uncertainty"), "confidence threshold");
        assert_eq!(ranking_name("recalibrated-uncertainty"), "confidence threshold, re-calibrated");
    }
}
