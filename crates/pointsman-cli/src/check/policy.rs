//! A policy file in words, and as scripts read it.

use std::io::{self, Write};

use anyhow::bail;
use pointsman::Policy;
use pointsman::policy::{Promise, Surcharge};
use pointsman::task::{Named, TaskSummary};
use pointsman_table::task_sha256;
use serde::Serialize;

use crate::args::CheckArgs;
use crate::flags::shell_quoted;
use crate::json::known;
use crate::render::number::{counted, exact, percent};
use crate::render::style::{BOLD, GOOD};
use crate::render::{self, matrix};
use crate::stats::describe_line;
use crate::{input, json, words};

/// The JSON of `compile` and of `check` for a policy.
#[derive(Debug, Serialize)]
pub(crate) struct PolicySummary<'a> {
    classes: &'a [String],
    partition: String,
    cells: usize,
    features: &'a [String],
    /// The calibration rows from which it was compiled; the file has none of them.
    rows: usize,
    /// The SHA-256 of the router's file.
    router_sha256: Option<&'a str>,
    /// The SHA-256 of the task's text; it changes with prices.
    task_sha256: String,
    task: TaskSummary,
    unit: &'static str,
    shares: Named<f64>,
    /// The expected cost that was estimated from held-out rows; null if it could not be, or prices have changed since.
    promise: Option<Promised>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surcharge: Option<Surcharge>,
}

#[derive(Debug, Serialize)]
struct Promised {
    cost: f64,
    standard_error: Option<f64>,
    identified: Option<[f64; 2]>,
    always: Named<f64>,
}

impl From<Promise> for Promised {
    fn from(promise: Promise) -> Self {
        let Promise { cost, standard_error, identified, always, .. } = promise;
        Self { cost, standard_error: known(standard_error), identified, always }
    }
}

impl<'a> PolicySummary<'a> {
    pub(crate) fn new(policy: &'a Policy) -> Self {
        Self {
            classes: policy.classes(),
            partition: policy.partition().to_string(),
            cells: policy.cells().count(),
            features: policy.cells().features(),
            rows: policy.calibration_rows(),
            router_sha256: policy.origin(),
            task_sha256: task_sha256(policy.task()),
            task: policy.task_summary(),
            unit: policy.task().loss().unit(),
            shares: policy.shares(),
            promise: policy.promise().map(Promised::from),
            surcharge: policy.surcharge(),
        }
    }
}

/// Describes a policy that was loaded, so that its checksum and contents are right.
pub(super) fn run(args: &CheckArgs, policy: &Policy) -> anyhow::Result<()> {
    if !args.classes.is_empty() && args.classes != policy.classes() {
        match input::differing_classes(["policy", "list of --classes"], [policy.classes(), &args.classes]) {
            Some(text) => bail!("{}: has other classes: {text}", args.file.display()),
            None => bail!("{}: has another order of classes: {}", args.file.display(), policy.classes().join(", ")),
        }
    }
    if args.json {
        return json::print_with_warnings(&PolicySummary::new(policy));
    }
    let mut out = io::BufWriter::new(render::stdout());
    let path = shell_quoted(&args.file);
    let text = "a policy without calibration rows, checksum and contents verified";
    render::paragraph(&mut out, 0, &format!("{BOLD}{path}{BOLD:#} {GOOD}can be used{GOOD:#}: {text}"))?;
    describe(&mut out, policy)?;
    Ok(out.flush()?)
}

/// What the policy decides, by what, and what it promises.
pub(crate) fn describe(mut out: impl Write, policy: &Policy) -> io::Result<()> {
    describe_line(&mut out, "classes", &policy.classes().join(", "))?;
    let cells = counted(policy.cells().count(), "cell", "cells");
    let rows = counted(policy.calibration_rows(), "calibration row", "calibration rows");
    describe_line(&mut out, "partition", &format!("{}, {cells}, compiled from {rows}", policy.partition()))?;
    let features: Vec<String> = policy.cells().features().iter().map(|name| format!("x_{name}")).collect();
    let needed = if features.is_empty() { "the prediction alone".to_owned() } else { features.join(", ") };
    describe_line(&mut out, "decides by", &needed)?;
    let task = policy.task();
    let mut prices: Vec<String> =
        task.routes().iter().map(|it| format!("{} {}", it.name(), exact(it.price()))).collect();
    prices.extend(task.abstain_price().map(|price| format!("abstain {}", exact(price))));
    let prices = if prices.is_empty() { "none".to_owned() } else { prices.join(", ") };
    describe_line(&mut out, "loss", &format!("{}, estimator {}", task.loss(), task.chosen_estimator()))?;
    describe_line(&mut out, "prices", &prices)?;
    if matrix::write(&mut out, &policy.task_summary(), policy.classes())? {
        writeln!(out)?;
    }
    let shares: Vec<String> =
        policy.shares().iter().map(|(name, share)| format!("{name} {}", percent(*share))).collect();
    describe_line(&mut out, "shares", &shares.join(", "))?;
    let cost = words::policy::expected_cost(policy).unwrap_or_else(|| "no promise: it needs held-out rows".to_owned());
    describe_line(&mut out, "promise", &cost)?;
    if let Some(limit) = words::policy::limit(policy) {
        describe_line(&mut out, "limit", &limit)?;
    }
    describe_line(&mut out, "router", &format!("SHA-256 {}", policy.origin().unwrap_or("not known")))?;
    describe_line(&mut out, "task", &format!("SHA-256 {}", task_sha256(policy.task())))
}
