//! What rules and rankings are called in front of people. Programs read the keys, which are a contract.

/// The name of a rule whose cost is compared, by its key: `router` is Pointsman, `always-route:expert` is "always route to expert".
#[must_use]
pub fn rule_name(key: &str) -> String {
    match key {
        "router" => "Pointsman".into(),
        "cell-optimal" => "best action per cell".into(),
        "pointwise-optimal" => "best possible per query".into(),
        "total-uncertainty" | "best-threshold" => "confidence threshold".into(),
        other => match other.strip_prefix("always-") {
            Some(action) => format!("always {}", action_name(action)),
            None => other.to_owned(),
        },
    }
}

/// The name of an action within a sentence, by its key: `route:expert` is "route to expert".
#[must_use]
pub fn action_name(key: &str) -> String {
    key.strip_prefix("route:").map_or_else(|| key.to_owned(), |oracle| format!("route to {oracle}"))
}

/// The name of an order in which queries may be routed, by its key.
#[must_use]
pub fn ranking_name(key: &str) -> String {
    match key {
        "higher-order" => "Pointsman".into(),
        "cell-optimal" => "best order per cell".into(),
        other => rule_name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_name_each() {
        assert_eq!(rule_name("router"), "Pointsman");
        assert_eq!(rule_name("always-route:large model"), "always route to large model");
        assert_eq!([rule_name("always-abstain"), rule_name("predict/abstain")], ["always abstain", "predict/abstain"]);
        assert_eq!(rule_name("best-threshold"), ranking_name("total-uncertainty"));
        assert_eq!([ranking_name("higher-order"), ranking_name("random")], ["Pointsman", "random"]);
    }
}
