//! Sentences about a report.

use pointsman::evaluate::{CostOfCaps, EvaluatedCap, MIN_DIFFERING_ROWS, Saving, ranking_name, rule_name};
use pointsman::number::{count, counted, decimals, fixed, percent};
use pointsman::task::{Route, TaskSummary};
use pointsman::{Oracle, Task};

use crate::chart::{label, number};
use crate::report::Report;

/// Largest length of a route name in a sentence, in characters.
const MAX_NAME_CHARS: usize = 40;

/// Standard errors on either side of a 95 % interval.
const Z_95_PERCENT: f64 = 1.96;

/// Smaller shares are shown as zero.
const MIN_SHOWN_SHARE: f64 = 0.0005;

/// The name of a rule, shortened for a sentence.
pub(crate) fn rule_label(key: &str) -> String {
    label(&rule_name(key), MAX_NAME_CHARS + "always route to ".len())
}

/// The name of a ranking.
pub(crate) fn ranking_label(key: &str) -> String {
    label(&ranking_name(key), MAX_NAME_CHARS)
}

/// The name of a loss; a cost matrix is shown separately, so its acts are not listed.
pub(crate) fn loss_name(loss: &str) -> String {
    if loss.starts_with("matrix(") { "cost matrix".to_owned() } else { label(loss, MAX_NAME_CHARS) }
}

/// The use of caps on held-out rows and what they cost, one sentence each; without the cost if labels do not identify it.
#[must_use]
pub fn caps_in_words(caps: &[EvaluatedCap], capped: Option<&CostOfCaps>, is_identified: bool) -> Vec<String> {
    let of_cap = |cap: &EvaluatedCap| {
        let [most, wanted, granted] = [cap.most, cap.wanted, cap.granted].map(|n| count(n as usize));
        let name = label(&cap.route, MAX_NAME_CHARS);
        format!(
            "Cap on {name}: at most {most} of these rows; routed there: {wanted} without the cap, {granted} with it."
        )
    };
    let cost = |capped: &CostOfCaps| {
        let rows = counted(capped.moved, "row takes", "rows take");
        if !is_identified {
            return format!("{rows} the next-best action instead.");
        }
        // Two digits of the standard error.
        let digits =
            capped.standard_error.map_or_else(|| decimals([capped.cost]), |error| decimals([error]).saturating_sub(2));
        let error = capped.standard_error.map_or(String::new(), |error| format!(" ± {}", fixed(error, digits)));
        let open = capped.identified.map(|ends| ends.map(|end| fixed(end, digits))).filter(|[low, high]| low != high);
        let open = open.map_or(String::new(), |[low, high]| format!(" (so few labels leave {low} to {high} open)"));
        let cost = fixed(capped.cost, digits) + &error + &open;
        // Held-out rows may say that it costs less than nothing.
        let difference =
            if capped.cost < 0.0 { format!("changes the cost by {cost}") } else { format!("costs {cost} more") };
        format!("{rows} the next-best action instead, which {difference} per query over all rows.")
    };
    caps.iter().map(of_cap).chain(capped.map(cost)).collect()
}

/// The routes whose oracle is assumed to be perfect, and how to write an annotator instead; `None` if there are none.
#[must_use]
pub fn perfect_oracles_in_words(task: &Task) -> Option<String> {
    let perfect: Vec<_> = task.routes().iter().filter(|route| *route.oracle() == Oracle::Bayes).collect();
    let first = perfect.first()?;
    let names: Vec<&str> = perfect.iter().map(|route| route.name()).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let flag = route_flag(first, "panel:m=1");
    let names = names.join(", ");
    Some(format!("{names} {are} taken to know the label distribution; for one annotator write --route {flag}"))
}

/// A route as one would type it, with another kind of oracle.
#[must_use]
pub fn route_flag(route: &Route, kind: &str) -> String {
    let price = if route.price() < 1e9 { route.price().to_string() } else { format!("{:e}", route.price()) };
    shell_quoted(&format!("{}={price},{kind}", route.name()))
}

/// Text as a shell needs it typed.
#[must_use]
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+%@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

impl Report {
    /// The kind of the evaluated rows: `held-out`, `calibration` or `partly held-out`.
    #[must_use]
    pub fn kind_of_rows(&self) -> &'static str {
        match self.calibration_rows {
            0 => "held-out",
            seen if seen == self.evaluation.rows => "calibration",
            _ => "partly held-out",
        }
    }

    /// The saving against the simple rule that is hardest to beat, with its interval.
    #[must_use]
    pub fn headline(&self) -> String {
        let task = &self.evaluation.task;
        if task.routes.is_empty() && task.abstain.is_none() {
            return "Predicting is the only action allowed: there is nothing to save.".into();
        }
        let savings = self.savings();
        let Some((rule, saving)) = savings.first() else {
            return "These rows do not show what Pointsman saves.".into();
        };
        let share = saving.share.unwrap_or(0.0);
        let error = saving.share_standard_error.map(|error| Z_95_PERCENT * error);
        let (amount, rule) = (with_interval(share.abs(), error), with_article(rule));
        let range = if error.is_some() { " (95 % interval)" } else { "" };
        if self.is_open(saving) {
            let rows = counted(saving.differing_rows, "row", "rows");
            return format!("Pointsman and {rule} differ on {rows} only: too few to say what Pointsman saves.");
        }
        match error {
            Some(error) if share.abs() < MIN_SHOWN_SHARE => {
                format!("Pointsman costs as much per query as {rule}, give or take {}.", percent(error))
            }
            Some(error) if share.abs() <= error && share >= 0.0 => {
                format!(
                    "Pointsman saves {amount} of the cost per query against {rule}{range}, which chance alone may explain."
                )
            }
            Some(error) if share.abs() <= error => {
                format!("Pointsman costs {amount} more per query than {rule}{range}, which chance alone may explain.")
            }
            _ if share < 0.0 => format!("Pointsman costs {amount} more per query than {rule}{range}."),
            _ => format!("Pointsman saves {amount} of the cost per query against {rule}{range}."),
        }
    }

    /// The share of each action of the task at its prices.
    #[must_use]
    pub fn shares_line(&self) -> String {
        let evaluation = &self.evaluation;
        let several = evaluation.task.routes.len() > 1;
        let verb = |name: &str| match name.split_once(':') {
            Some(("route", oracle)) if several => format!("routed to {}", label(oracle, MAX_NAME_CHARS)),
            Some(("route", _)) => "routed".into(),
            _ if name == "predict" => "predicted".into(),
            _ if name == "abstain" => "abstained".into(),
            _ => "undetermined (counted as the cheapest action of known cost)".to_owned(),
        };
        let share = |(name, &share): (&str, &f64)| format!("{} {}", percent(share), verb(name));
        evaluation.shares.iter().map(share).collect::<Vec<_>>().join(", ")
    }

    /// The shares of the actions and the costs at the task's prices.
    #[must_use]
    pub fn money_line(&self) -> String {
        format!("At these prices: {}; {}", self.shares_line(), self.costs_line())
    }

    /// The cost per query of Pointsman and of each simple rule.
    #[must_use]
    pub fn costs_line(&self) -> String {
        let evaluation = &self.evaluation;
        let costs = evaluation.best_costs();
        let identified_cost = |name: &str, cost: f64| if evaluation.is_identified(name) { cost } else { f64::NAN };
        let digits = decimals(costs.iter().map(|(name, &cost)| identified_cost(name, cost)));
        let always = costs
            .iter()
            .filter(|(name, _)| name.starts_with("always-"))
            .map(|(name, &cost)| format!("{} {}", rule_label(name), fixed(identified_cost(name, cost), digits)));
        let threshold = self.best_threshold();
        let threshold = threshold.map(|it| format!("{} {}", rule_label("best-threshold"), fixed(it.cost, digits)));
        let simple: Vec<String> = threshold.into_iter().chain(always).collect();
        let router = costs.get("router").map_or(f64::NAN, |&cost| identified_cost("router", cost));
        format!(
            "{}cost per query {} {}, against {}.",
            if evaluation.is_corrected() { "corrected " } else { "" },
            fixed(router, digits),
            evaluation.unit,
            simple.join(", ")
        )
    }

    /// The cost per query of the best confidence threshold and the saving against it; `None` if unknown.
    #[must_use]
    pub fn best_threshold(&self) -> Option<Saving> {
        self.savings().into_iter().find(|(name, _)| *name == "best-threshold").map(|(_, saving)| saving)
    }

    /// The bounds on the regret against the best possible per query, as part of a sentence; `None` if they are unknown or round to a point.
    #[must_use]
    pub fn open_regret(&self, digits: usize) -> Option<String> {
        let [low, high] = self.bounds_of_regret(digits)?;
        Some(format!("labels leave {low} to {high} open"))
    }

    /// The regret against the best possible per query where labels leave so much open that its estimate is a model's guess: the range first.
    /// `None` where the estimate has a standard error.
    #[must_use]
    pub fn guessed_regret(&self, digits: usize) -> Option<String> {
        let [low, high] = self.bounds_of_regret(digits).filter(|_| self.evaluation.best_possible_is_guess())?;
        let range = match self.evaluation.identified_regret() {
            Some([least, _]) if least > 0.0 => format!("{low} to {high}"),
            _ => format!("at most {high}"),
        };
        let guess = fixed(*self.evaluation.best_regret().get("pointwise-optimal")?, digits);
        Some(format!(
            "{range} above the best possible per query, which labels do not identify (a model's guess: {guess})"
        ))
    }

    fn bounds_of_regret(&self, digits: usize) -> Option<[String; 2]> {
        let ends =
            self.evaluation.identified_regret().filter(|_| self.evaluation.is_identified("pointwise-optimal"))?;
        let [low, high] = ends.map(|end| fixed(end, digits));
        (low != high).then_some([low, high])
    }

    /// The cost of the best possible per query and the regret against it, each with its bounds; `None` without bounds.
    #[must_use]
    pub fn best_possible_line(&self) -> Option<String> {
        let evaluation = &self.evaluation;
        let cost = *evaluation.best_costs().get("pointwise-optimal")?;
        let digits = decimals([cost]);
        let [low, high] = evaluation.open_interval("pointwise-optimal")?.map(|end| fixed(end, digits));
        if let Some(regret) = self.guessed_regret(digits) {
            return (low != high).then(|| {
                format!(
                    "The best possible per query costs {low} to {high} (a model's guess: {}). Pointsman costs {regret}. Sampling error \
                     comes on top.",
                    fixed(cost, digits)
                )
            });
        }
        let (cost, regret) = (fixed(cost, digits), fixed(*evaluation.best_regret().get("pointwise-optimal")?, digits));
        let open = self.open_regret(digits).map_or(String::new(), |open| format!(" ({open})"));
        (low != high).then(|| {
            format!(
                "The best possible per query costs {cost} (labels leave {low} to {high} open); the regret against it is {regret}{open}. \
                 Sampling error comes on top."
            )
        })
    }

    /// The interval of the policy's cost that the labels identify; `None` if it rounds to a point or is small beside the standard error.
    #[must_use]
    pub fn open_line(&self) -> Option<String> {
        let ends = self.evaluation.open_interval("router")?;
        let [low, high] = ends.map(|end| fixed(end, decimals(ends)));
        (low != high).then(|| {
            format!(
                "So few labels per item leave the cost of Pointsman open between {low} and {high}, however many rows there are; \
                 sampling error comes on top."
            )
        })
    }

    /// The savings against each simple rule of known cost that satisfies the task's limit; the best threshold first, which is the hardest
    /// rule, then the cheapest.
    fn savings(&self) -> Vec<(&str, Saving)> {
        let evaluation = &self.evaluation;
        let known =
            |name: &str| self.is_allowed(name) && evaluation.is_identified("router") && evaluation.is_identified(name);
        let all = evaluation.savings.iter().flat_map(|savings| savings.iter());
        let mut savings: Vec<(&str, Saving)> = all
            .filter(|(name, saving)| known(name) && saving.share.is_some())
            .map(|(name, saving)| (name, *saving))
            .collect();
        let is_always = |name: &str| name.starts_with("always-");
        savings.sort_by(|(a, one), (b, other)| is_always(a).cmp(&is_always(b)).then(one.cost.total_cmp(&other.cost)));
        savings
    }

    /// Whether a simple rule keeps to the task's limit and caps. Always routing violates a limit, and a cap on its route that does not admit
    /// all rows.
    #[must_use]
    pub fn is_allowed(&self, rule: &str) -> bool {
        let evaluation = &self.evaluation;
        let Some(action) = rule.strip_prefix("always-") else { return true };
        let Some(route) = action.strip_prefix("route:") else { return true };
        let is_capped = evaluation.caps.iter().any(|cap| cap.route == route && cap.most < evaluation.rows as u64);
        !evaluation.task.is_limited() && !is_capped
    }

    /// Whether a saving rests on too few rows to be stated. Rules that act alike on many rows have the same cost.
    fn is_open(&self, saving: &Saving) -> bool {
        let acts_alike = saving.differing_rows == 0 && self.evaluation.rows >= MIN_DIFFERING_ROWS;
        saving.rests_on_few_rows() && !acts_alike
    }

    /// A warning that intervals are too narrow because rows are few, or because few rows tell rules apart; `None` if there are enough.
    pub(crate) fn few_rows(&self) -> Option<String> {
        let rows = self.evaluation.rows;
        if rows < MIN_DIFFERING_ROWS {
            return Some(format!(
                "{}: from fewer than {MIN_DIFFERING_ROWS} rows, 95 % intervals are too narrow, and what Pointsman saves cannot be said; \
                 evaluate on more rows",
                counted(rows, "held-out row", "held-out rows")
            ));
        }
        let savings = self.savings();
        let open: Vec<String> = savings
            .iter()
            .filter(|(_, saving)| self.is_open(saving))
            .map(|(name, saving)| {
                format!("{} on {}", with_article(name), counted(saving.differing_rows, "row", "rows"))
            })
            .collect();
        (!open.is_empty()).then(|| {
            format!(
                "Pointsman differs from {} only: from fewer than {MIN_DIFFERING_ROWS} rows, the 95 % interval of a saving is too narrow, and \
                 none is given; evaluate on more rows",
                open.join(", from ")
            )
        })
    }

    /// The savings against each simple rule with 95 % intervals; `None` if unknown.
    #[must_use]
    pub fn savings_line(&self) -> Option<String> {
        let against = |(name, saving): &(&str, Saving)| {
            let rule = match name.strip_prefix("always-") {
                Some("predict") => "always predicting".to_owned(),
                Some("abstain") => "always abstaining".to_owned(),
                Some(action) => {
                    format!("always routing to {}", label(action.trim_start_matches("route:"), MAX_NAME_CHARS))
                }
                None => "the best confidence threshold".to_owned(),
            };
            let error = saving.share_standard_error.map(|error| Z_95_PERCENT * error);
            let open = saving.share_identified.map(|ends| ends.map(percent)).filter(|[low, high]| low != high);
            let open = open.map_or(String::new(), |[low, high]| format!(" (so few labels leave {low} to {high} open)"));
            format!("{} against {rule}{open}", with_interval(saving.share.unwrap_or(0.0), error))
        };
        let phrases: Vec<String> =
            self.savings().iter().filter(|(_, saving)| !self.is_open(saving)).map(against).collect();
        (!phrases.is_empty()).then(|| format!("Saves {} (95 % intervals).", phrases.join(", ")))
    }

    /// The task's prices, and its limit if it has one.
    #[must_use]
    pub fn task_line(&self) -> String {
        let limit = self.limit_line().map_or(String::new(), |limit| format!(" {limit}"));
        prices_of(&self.evaluation.task, self.evaluation.unit) + &limit
    }

    /// The loss that the router reaches on these rows, in a sentence, if the task has a target loss.
    #[must_use]
    pub fn loss_line(&self) -> Option<String> {
        let reached = self.evaluation.loss_reached?;
        if !self.evaluation.is_identified("router") {
            return Some("The loss reached on these rows is not known: they have one label each.".to_owned());
        }
        let (loss, error) = reached.best();
        let error = error.map_or(String::new(), |error| format!(" ± {error:.4}"));
        let how = if reached.corrected.is_some() { ", corrected for few labels" } else { "" };
        Some(format!("The loss reached on these rows is {loss:.4}{error} {}{how}.", self.evaluation.unit))
    }

    /// The use of each cap on these rows and, if a cap is exceeded without it, what the caps cost; one sentence or two each.
    #[must_use]
    pub fn cap_lines(&self) -> Vec<String> {
        let evaluation = &self.evaluation;
        let mut lines = caps_in_words(&evaluation.caps, evaluation.capped.as_ref(), evaluation.is_identified("router"));
        lines.extend(self.threshold_left_out().then(|| {
            "With several routes and an exceeded cap no confidence threshold is comparable: it may send more to one route than its cap. The \
             best confidence threshold, often the rule that is hardest to beat, is left out."
                .to_owned()
        }));
        lines
    }

    /// Whether savings lack the best confidence threshold because caps are exceeded and there are several routes.
    #[must_use]
    pub fn threshold_left_out(&self) -> bool {
        self.evaluation.capped.is_some() && self.evaluation.task.routes.len() > 1
    }

    /// Which rules keep neither the limit nor the caps; `None` if there is no limit and no cap is exceeded without them.
    #[must_use]
    pub fn ignored_limits_line(&self) -> Option<String> {
        let limits = [(self.evaluation.task.is_limited(), "limit"), (self.evaluation.capped.is_some(), "cap")];
        let limits: Vec<&str> = limits.into_iter().filter(|(ignored, _)| *ignored).map(|(_, name)| name).collect();
        let them = if limits.len() == 1 { "it" } else { "them" };
        (!limits.is_empty()).then(|| {
            format!(
                "Always routing and the best in hindsight ignore the {}, so part of the regret is the cost of keeping {them}.",
                limits.join(" and the ")
            )
        })
    }

    /// The task's limit on routing, if it has one.
    #[must_use]
    pub fn limit_line(&self) -> Option<String> {
        let evaluation = &self.evaluation;
        let found = evaluation.surcharge?;
        let surcharge = number(found.price, 4);
        Some(match (evaluation.task.budget, evaluation.task.target_loss) {
            (Some(share), _) if found.price == 0.0 => format!(
                "Budget: at most {} of traffic like the calibration rows is routed; the prices need not change.",
                percent(share)
            ),
            (Some(share), _) => format!(
                "Budget: at most {} of traffic like the calibration rows is routed; the limit acts like a surcharge of {surcharge} per \
                 routed query, which is not part of the cost.",
                percent(share)
            ),
            (_, Some(loss)) => format!(
                "Target: the least routing that keeps the expected loss at {}. Queries are routed as if every route cost {surcharge}; \
                 the costs have each route’s own price. {}",
                number(loss, 4),
                self.loss_line().unwrap_or_default()
            ),
            _ => return None,
        })
    }
}

/// The name of a rule, as the object of a sentence.
fn with_article(key: &str) -> String {
    let rule = rule_label(key);
    if rule.starts_with("always") { rule } else { format!("the {rule}") }
}

/// The task's loss and prices in a sentence.
pub(crate) fn prices_of(task: &TaskSummary, unit: &str) -> String {
    let routes = task
        .routes
        .iter()
        .map(|r| format!("routing to {} costs {}", label(&r.name, MAX_NAME_CHARS), number(r.cost, 4)));
    let abstain =
        task.abstain.map_or("abstaining is not allowed".to_owned(), |p| format!("abstaining costs {}", number(p, 4)));
    let prices: Vec<String> = routes.chain([abstain]).collect();
    format!("Loss {} in {unit}; {}.", loss_name(&task.loss), prices.join(", "))
}

/// A share in per cent, with its interval, whose half-width is given.
fn with_interval(share: f64, half: Option<f64>) -> String {
    let interval = |half: f64| format!(" ({} to {})", percent(share - half), percent(share + half));
    percent(share) + &half.map_or_else(String::new, interval)
}
