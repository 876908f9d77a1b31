//! The command line as checked: tasks, tables to read, places to write to.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::bail;
use pointsman::certify::Together;
use pointsman::diagnose::{Mismatch, Stopping, Unanimity};
use pointsman::evaluate::action_name;
use pointsman::monitor::{Traffic, TrafficShift};
use pointsman::policy::{Caps, Promise};
use pointsman::task::Named;
use pointsman::{CellId, Certificate, Limit, Loss, Oracle, Policy, Replay, Router, Table, Task, Votes};
use pointsman_table::{Existing, Format, Frame, Need, ReadOptions};

use crate::args::{CapArg, RouteArg, TableArgs, TaskArgs, VotesArgs};
use crate::failure::Hint;
use crate::progress::Progress;
use crate::render;
use crate::render::number::{count, counted, decimals, fixed, percent, plain, short};
use crate::render::paragraph;
use crate::render::style::DIM;

/// The task that the flags or the task file describe; where both say something, the flags do.
pub(crate) fn task(args: &TaskArgs) -> anyhow::Result<Task> {
    match args.task.as_slice() {
        [] => overridden(&Task::new(Loss::brier()), args),
        [path] => task_of_file(path, args),
        several => bail!(
            "--task is given {} times: one task is decided at a time; compare takes several, and so does show --confidence, to certify them all at once",
            several.len()
        ),
    }
}

/// The task of a file, with everything that flags say in place of its own.
pub(crate) fn task_of_file(path: &Path, args: &TaskArgs) -> anyhow::Result<Task> {
    overridden(&pointsman_table::read_task(path)?, args)
}

/// A task with everything that flags say in place of its own. A route of the same name gets the flag's price and, if the flag says one,
/// its kind of oracle.
fn overridden(given: &Task, args: &TaskArgs) -> anyhow::Result<Task> {
    let mut task = Task::new(args.loss.clone().unwrap_or_else(|| given.loss().clone()))
        .estimator(args.estimator.unwrap_or_else(|| given.chosen_estimator()))
        .ties(args.ties.unwrap_or_else(|| given.chosen_ties()));
    for (place, flag) in args.route.iter().enumerate() {
        if args.route[..place].iter().any(|other| other.name == flag.name) {
            bail!("two --route flags are called {:?}: give each a name of its own", flag.name);
        }
    }
    for route in given.routes() {
        let flag = args.route.iter().find(|flag| flag.name == route.name());
        let oracle = flag.and_then(|flag| flag.oracle.as_ref()).unwrap_or(route.oracle());
        task = task.route(route.name(), oracle.clone(), flag.map_or(route.price(), |flag| flag.cost))?;
    }
    let is_new = |flag: &&RouteArg| !given.routes().iter().any(|route| route.name() == flag.name);
    for flag in args.route.iter().filter(is_new) {
        task = task.route(flag.name.as_str(), flag.oracle.clone().unwrap_or_else(Oracle::bayes), flag.cost)?;
    }
    if let Some(price) = args.abstain.or(given.abstain_price()) {
        task = task.abstain(price)?;
    }
    let own = given.limit();
    let limit = args.budget.map(Limit::Budget).or(args.target_loss.map(Limit::TargetLoss)).or(own);
    Ok(match limit {
        Some(Limit::Budget(share)) => task.budget(share)?,
        Some(Limit::TargetLoss(loss)) => task.target_loss(loss)?,
        None => task,
    })
}

/// The caps on a task's routes, if there are any.
pub(crate) fn caps(args: &[CapArg], task: &Task) -> anyhow::Result<Option<Caps>> {
    if args.is_empty() {
        return Ok(None);
    }
    Ok(Some(Caps::new(task, args.iter().map(|cap| (&cap.name, cap.size)))?))
}

/// Caps as one would type them.
pub(crate) fn cap_flags(args: &[CapArg]) -> String {
    let flag = |cap: &CapArg| format!(" --cap {}", shell_quoted_text(&format!("{}={}", cap.name, cap.size)));
    args.iter().map(flag).collect()
}

/// One task, or each of the task files: with the flags that name it.
pub(crate) fn tasks(args: &TaskArgs) -> anyhow::Result<Vec<(Task, String)>> {
    if args.task.len() < 2 {
        return Ok(if args.is_given() { vec![(task(args)?, task_flags(args))] } else { Vec::new() });
    }
    let read =
        |path: &PathBuf| Ok((task_of_file(path, args)?, format!(" --task {}{}", shell_quoted(path), own_flags(args))));
    args.task.iter().map(read).collect()
}

/// What new queries are expected to cost, in a sentence; nothing if labels give only bounds.
pub(crate) fn promise_in_words(policy: &Policy) -> Option<String> {
    policy.promise().map(|promise| expected_cost_in_words(&promise, policy.task().loss().unit()))
}

/// The expected cost of a policy and of each action taken always, in a sentence.
pub(crate) fn expected_cost_in_words(promise: &Promise, unit: &str) -> String {
    let always: Vec<String> =
        promise.always.iter().map(|(name, &cost)| format!("always {} {}", action_name(name), short(cost))).collect();
    format!(
        "Expected cost per query, estimated on rows left out: {} {unit}{}; {}",
        with_error(promise.cost, promise.standard_error),
        open_in_words(promise.cost, promise.identified),
        always.join(", ")
    )
}

/// What labels leave open around an estimate, in brackets; nothing if that does not show in its digits.
pub(crate) fn open_in_words(value: f64, identified: Option<[f64; 2]>) -> String {
    let digits = decimals([value]);
    let ends = identified.map(|ends| ends.map(|end| fixed(end, digits))).filter(|[low, high]| low != high);
    ends.map_or(String::new(), |[low, high]| format!(" (so few labels per item leave {low} to {high} open)"))
}

/// Which routes are taken to know the truth, and how to say that one is an annotator; nothing if none is.
pub(crate) fn perfect_oracles_in_words(task: &Task) -> Option<String> {
    let perfect: Vec<_> = task.routes().iter().filter(|route| *route.oracle() == Oracle::Bayes).collect();
    let first = perfect.first()?;
    let names: Vec<&str> = perfect.iter().map(|route| route.name()).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let price = if first.price() < 1e9 { first.price().to_string() } else { format!("{:e}", first.price()) };
    let flag = shell_quoted_text(&format!("{}={price},panel:m=1", first.name()));
    Some(format!(
        "{} {are} taken to know the label distribution; for one annotator write --route {flag}",
        names.join(", ")
    ))
}

/// Says which routes are taken to know the truth, if any are.
pub(crate) fn print_perfect_oracles(out: impl io::Write, task: &Task) -> io::Result<()> {
    perfect_oracles_in_words(task).map_or(Ok(()), |text| paragraph(out, 2, &format!("{DIM}{text}{DIM:#}")))
}

/// A number and its standard error, if it has one.
pub(crate) fn with_error(value: f64, standard_error: f64) -> String {
    if !standard_error.is_finite() {
        return short(value);
    }
    let digits = decimals([value]);
    format!("{} ± {}", fixed(value, digits), fixed(standard_error, digits))
}

/// What a limit on routing comes to, in a sentence or two; nothing if there is none.
pub(crate) fn limit_in_words(policy: &Policy) -> Option<String> {
    let (limit, found) = policy.task().limit().zip(policy.surcharge())?;
    let asked = match limit {
        Limit::Budget(share) => format!("Budget: {} of traffic like the calibration rows", percent(share)),
        Limit::TargetLoss(loss) => format!("The loss is to be at most {}", short(loss)),
    };
    let price = match limit {
        Limit::Budget(_) if found.price == 0.0 => "the prices need not change".to_owned(),
        Limit::Budget(_) => format!("that is as if routing cost {} more", short(found.price)),
        Limit::TargetLoss(_) if found.share == 0.0 => "that needs no routing".to_owned(),
        Limit::TargetLoss(_) => {
            let own = if policy.task().routes().len() > 1 {
                "by any route, instead of their own prices"
            } else {
                "instead of its own price"
            };
            format!("that is as if routing cost {} {own}", short(found.price))
        }
    };
    let lots = if (0.0..1.0).contains(&found.marginal) && found.marginal > 0.0 {
        format!(" Where routing is then worth exactly its price, {} are routed, by lot.", percent(found.marginal))
    } else {
        String::new()
    };
    let error = Some(found.share_standard_error).filter(|error| error.is_finite() && *error > 0.0);
    let share = percent(found.share) + &error.map_or(String::new(), |error| format!(" ± {}", percent(error)));
    let loss = with_error(found.loss, found.loss_standard_error) + &open_in_words(found.loss, found.loss_identified);
    // Where one label per item only bounds the losses, their upper ends were counted.
    let mut cells = (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
    let loss = match cells.all(|decision| decision.is_known()) {
        true => loss,
        false => format!("at most {loss} if undetermined queries are predicted"),
    };
    Some(format!(
        "{asked}: {price}; {share} of such traffic are routed, and the expected loss is {loss}, prices of routing left out.{lots}"
    ))
}

/// Which share has moved most against the calibration rows, in a sentence; nothing if none has.
pub(crate) fn traffic_in_words(traffic: &TrafficShift) -> Option<String> {
    let share = traffic.shares.first()?;
    let (now, before, cell) = (percent(share.share), percent(share.calibration), share.cell);
    let what = match share.confidence {
        None if share.feature.is_some() => {
            format!("{now} of these rows have {}, {before} of the calibration rows had", share.name)
        }
        None => {
            format!("{now} of these rows are in cell {cell} ({}), {before} of the calibration rows were", share.name)
        }
        Some([low, high]) => format!(
            "{now} of these rows in cell {cell} ({}) have a confidence from {} to {}, {before} of the calibration rows there had",
            share.name,
            short(low),
            short(high)
        ),
    };
    let others = match traffic.moved_shares - 1 {
        0 => String::new(),
        n => format!("; so have {}", counted(n, "other share", "other shares")),
    };
    Some(format!("traffic has moved: {what}{others}"))
}

/// Says so if a limit on routing routes another share than it promised by more than chance explains.
pub(crate) fn warn_if_limit_is_missed(policy: &Policy, traffic: &Traffic, shares: &Named<f64>) {
    limit_missed_in_words(policy, traffic, shares).iter().for_each(render::warn);
}

/// The same in a sentence; nothing if the limit is kept.
pub(crate) fn limit_missed_in_words(policy: &Policy, traffic: &Traffic, shares: &Named<f64>) -> Option<String> {
    let (limit, found) = policy.task().limit().zip(policy.surcharge())?;
    let routed = shares.iter().filter(|(name, _)| name.starts_with("route:")).map(|(_, share)| share).sum();
    if !traffic.departs_from(found.share, routed) {
        return None;
    }
    let what = if matches!(limit, Limit::Budget(_)) { "budget" } else { "target loss" };
    Some(format!(
        "{} of these rows are routed, not the {} that the {what} comes to on traffic like the calibration rows: it is a price found on \
         those, and these differ; decide --cap NAME=N is a hard limit",
        percent(routed),
        percent(found.share)
    ))
}

/// Says so if the task leaves no choice.
pub(crate) fn warn_if_no_choice(task: &Task) {
    no_choice_in_words(task).iter().for_each(render::warn);
}

/// The same in a sentence; nothing if there is a choice.
pub(crate) fn no_choice_in_words(task: &Task) -> Option<String> {
    let none = task.routes().is_empty() && task.abstain_price().is_none();
    none.then(|| "no --route and no --abstain: the only action is to predict".to_owned())
}

/// Which prices are so high that their action is never taken, a sentence each: often they are in another unit than the loss.
pub(crate) fn prices_in_words(task: &Task) -> Vec<String> {
    let sentence = |(action, price): (String, f64)| {
        format!(
            "{action} costs {}, but a wrong answer costs at most {} {}: it is never worth that; prices are in the unit of the loss",
            plain(price),
            short(task.loss().bound()),
            task.loss().unit()
        )
    };
    task.overpriced().into_iter().map(sentence).collect()
}

/// How many rows' probabilities were divided by a sum that is not one, beyond rounding.
pub(crate) fn divided_rows(table: &Table) -> usize {
    const ROUNDING: f64 = 1e-5;
    let off = |&row: &usize| {
        let prediction = table.prediction(row);
        let off = (prediction.iter().sum::<f64>() - 1.0).abs();
        off > ROUNDING && off > rounding_of(&prediction)
    };
    (0..table.rows()).filter(off).count()
}

/// How far from one probabilities may sum because they were written with few decimals; zero if they were not.
fn rounding_of(probabilities: &[f64]) -> f64 {
    /// A number of so many decimals is as near to them as single precision allows.
    const NEAR: f64 = 2e-2;
    let is_written_with = |unit: f64| probabilities.iter().all(|p| (p / unit - (p / unit).round()).abs() < NEAR);
    let unit = [1e-2, 1e-3, 1e-4, 1e-5].into_iter().find(|&unit| is_written_with(unit));
    // Half a unit per number, and what binary fractions add.
    unit.map_or(0.0, |unit| 0.5 * unit * probabilities.len() as f64 + 1e-9)
}

/// Says so if there are any.
pub(crate) fn warn_if_divided(rows: usize) {
    divided_in_words(rows).iter().for_each(render::warn);
}

/// The same in a sentence; nothing if there are none.
pub(crate) fn divided_in_words(rows: usize) -> Option<String> {
    let many = counted(rows, "row", "rows");
    (rows > 0).then(|| format!("the probabilities of {many} do not sum to one and were divided by their sum"))
}

/// The task's flags as one would type them, for the next step's command line.
pub(crate) fn task_flags(args: &TaskArgs) -> String {
    let file = args.task.first().map_or(String::new(), |path| format!(" --task {}", shell_quoted(path)));
    file + &own_flags(args)
}

/// The flags of a task but those that name files.
fn own_flags(args: &TaskArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: String| flags.push_str(&format!(" --{flag} {value}"));
    if let Some(loss) = &args.loss {
        push("loss", loss.to_string());
    }
    for route in &args.route {
        let name = if route.name == "oracle" { String::new() } else { format!("{}=", route.name) };
        let kind = route.oracle.as_ref().map_or(String::new(), |oracle| format!(",{oracle}"));
        push("route", shell_quoted_text(&format!("{name}{}{kind}", plain(route.cost))));
    }
    if let Some(price) = args.abstain {
        push("abstain", plain(price));
    }
    if let Some(share) = args.budget {
        push("budget", share.to_string());
    }
    if let Some(loss) = args.target_loss {
        push("target-loss", loss.to_string());
    }
    if let Some(estimator) = args.estimator {
        push("estimator", estimator.to_string());
    }
    if let Some(ties) = args.ties {
        push("ties", ties.to_string());
    }
    flags
}

/// The flags that say how a table is read, as one would type them.
pub(crate) fn reading_flags(args: &TableArgs, votes: Option<&VotesArgs>) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: &str| flags.push_str(&format!(" --{flag} {}", shell_quoted_text(value)));
    args.filters.iter().for_each(|filter| push("where", &filter.to_string()));
    if let Some(format) = args.format {
        push("format", &format.to_string());
    }
    if let Some(delimiter) = args.delimiter {
        push("delimiter", &delimiter.to_string());
    }
    if let Some(path) = votes.and_then(|votes| votes.annotations.as_ref()) {
        push("annotations", &path.display().to_string());
    }
    if let Some(first) = votes.and_then(|votes| votes.first_labels) {
        push("first-labels", &first.to_string());
    }
    votes.iter().flat_map(|votes| &votes.without).for_each(|name| push("without", name));
    flags.push_str(if votes.is_some_and(|votes| votes.strict) { " --strict" } else { "" });
    flags + &column_flags(args)
}

/// The flags that another table of the same kind needs too.
pub(crate) fn column_flags(args: &TableArgs) -> String {
    let columns =
        args.columns.as_ref().map(|columns| format!(" --columns {}", shell_quoted_text(&columns.to_string())));
    columns.unwrap_or_default() + if args.normalize { " --normalize" } else { "" }
}

/// How to read a table.
pub(crate) fn read_options(args: &TableArgs, votes: Option<&VotesArgs>, need: Need) -> ReadOptions {
    ReadOptions {
        format: args.format,
        delimiter: args.delimiter,
        filters: args.filters.clone(),
        columns: args.columns.clone().unwrap_or_default(),
        annotations: votes.and_then(|votes| votes.annotations.clone()),
        first_labels: votes.and_then(|votes| votes.first_labels),
        without: votes.map(|votes| votes.without.clone()).unwrap_or_default(),
        strict: votes.is_some_and(|votes| votes.strict),
        normalize: args.normalize,
        need,
        ..ReadOptions::default()
    }
}

/// Reads a whole table with the rows' ids and places in the file, with a spinner if it takes long.
pub(crate) fn read_frame(path: &Path, options: &ReadOptions) -> anyhow::Result<Frame> {
    let _spinner = Progress::spinner(format!("reading {}", path.display()));
    Ok(pointsman_table::read_frame(path, options)?)
}

/// Says so if the classes of votes and probabilities seem to be matched wrongly.
pub(crate) fn warn_if_matched_wrongly(table: &Table) -> anyhow::Result<()> {
    const MOST_CLASSES: usize = 5;
    let Some(found) = Mismatch::detect(table)? else { return Ok(()) };
    render::warn(format!(
        "the classes of votes and probabilities seem to be matched wrongly: labels name the model's top class in {} of cases, where \
         chance would make {}, and in {} if {}; compare the names and order of the columns",
        percent(found.agreement),
        percent(found.chance),
        percent(found.agreement_if_matched),
        found.matches_in_words(MOST_CLASSES)
    ));
    Ok(())
}

/// Says so if rows have fewer labels than were asked for, or if their number depends on what they say.
pub(crate) fn warn_about_labels(table: &Table, votes: &VotesArgs) -> anyhow::Result<()> {
    labels_in_words(table, votes)?.iter().for_each(render::warn);
    Ok(())
}

/// The same, a sentence each.
pub(crate) fn labels_in_words(table: &Table, votes: &VotesArgs) -> anyhow::Result<Vec<String>> {
    let mut sentences = Vec::new();
    let labels = |row: usize| table.votes(row).map_or(0, Votes::k);
    if let Some(first) = votes.first_labels.filter(|_| table.has_votes()) {
        let first = u64::from(first.get());
        let fewer = (0..table.rows()).filter(|&row| labels(row) < first).count();
        if fewer > 0 {
            sentences.push(format!(
                "{} fewer than {first} labels and {} all: only as many labels as every row has are free of a stopping rule",
                counted(fewer, "row has", "rows have"),
                if fewer == 1 { "keeps" } else { "keep" }
            ));
        }
    }
    if let Some(found) = Unanimity::detect(table)? {
        sentences.push(format!(
            "the labels of every row agree, though {} of {} rows contradict the others of like prediction: either nothing is ambiguous \
             here, or each label was copied; copies hide all noise, so count each independent label once",
            count(found.contradicting),
            count(found.rows)
        ));
    }
    let Some(stopping) = Stopping::detect(table)?.filter(Stopping::is_suspicious) else { return Ok(sentences) };
    let Stopping { z, disagreement: [few, many], labels: [fewest, most], .. } = stopping;
    let why = match stopping.stopped_at {
        Some(k) => format!("every row with {k} labels is unanimous: labelling went on until annotators agreed"),
        None => "k depends on the labels, or harder items were given more labels on purpose".to_owned(),
    };
    sentences.push(format!(
        "rows carry {fewest} to {most} labels, and among rows of like confidence more labels go with {} disagreement (two labels \
         of a row differ in {} of cases where labels are few, in {} where they are many): {why}; if they depend on the labels, \
         every estimate is biased: keep the first labels only (--first-labels, with --annotations or lists of labels)",
        if z > 0.0 { "more" } else { "less" },
        percent(few),
        percent(many)
    ));
    Ok(sentences)
}

/// Loads a router.
pub(crate) fn load_router(path: &Path) -> anyhow::Result<Router> {
    pointsman_table::load_router(path).map_err(|error| {
        let is_table = Format::of_path(path).is_some() && matches!(error, pointsman_table::Error::Content { .. });
        let error = anyhow::Error::from(error);
        if is_table {
            error.context(Hint("that is a table; a router is what pointsman calibrate TABLE -o ROUTER writes".into()))
        } else {
            error
        }
    })
}

/// Where decisions go.
#[derive(Debug)]
pub(crate) enum Output {
    /// The first rows, to a terminal.
    Preview,
    /// A table, to a file or standard output (`-`).
    Table(PathBuf, Format),
    /// Nowhere: only a summary is wanted.
    None,
}

impl Output {
    pub(crate) fn new(path: Option<&PathBuf>, format: Option<Format>, inputs: &[&Path]) -> anyhow::Result<Self> {
        let path = match path {
            None if format.is_none() && io::stdout().is_terminal() => return Ok(Self::Preview),
            None => PathBuf::from("-"),
            Some(path) => path.clone(),
        };
        if !is_stream(&path) {
            refuse_to_overwrite(&path, inputs)?;
            refuse_to_destroy(&path, Written::Decisions)?;
        }
        let format = Format::to_write(&path, format)
            .map_err(|error| anyhow::Error::from(error).context(Hint("or name it: --output-format csv".into())))?;
        Ok(Self::Table(path, format))
    }
}

/// Refuses an output that is also an input.
pub(crate) fn refuse_to_overwrite(output: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    let Ok(target) = output.canonicalize() else { return Ok(()) };
    match inputs.iter().find(|input| input.canonicalize().is_ok_and(|input| input == target)) {
        Some(input) => bail!("{}: would be overwritten; choose another output", input.display()),
        None => Ok(()),
    }
}

/// What a command writes, which may replace an earlier output of its kind and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// A router, or a part of a calibration.
    Router,
    Decisions,
    /// Items to label.
    Items,
}

/// Refuses to replace a file that is no earlier output of the same kind.
pub(crate) fn refuse_to_destroy(output: &Path, written: Written) -> anyhow::Result<()> {
    /// Columns that every table of decisions has, and every list of items to label.
    const DECISIONS: [&str; 3] = ["cell", "support", "action"];
    const ITEMS: [&str; 4] = ["id", "cell", "labels", "worth"];
    if is_stream(output) {
        return Ok(());
    }
    let existing = pointsman_table::existing(output);
    let (is_alike, own, example) = match written {
        Written::Router => {
            (matches!(existing, Existing::Router | Existing::Part), "a router is written", "router.safetensors")
        }
        Written::Decisions => (existing.has_columns(&DECISIONS), "decisions are written", "decisions.csv"),
        Written::Items => (existing.has_columns(&ITEMS), "items to label are written", "to-label.csv"),
    };
    let what = match existing {
        Existing::Nothing => return Ok(()),
        _ if is_alike => return Ok(()),
        Existing::Router => "a router",
        Existing::Part => "a part of a calibration",
        existing if existing.has_columns(&DECISIONS) => "a table of decisions",
        Existing::Table(columns) if columns.len() > 1 => "a table",
        _ => "another kind of file",
    };
    bail!(
        "{}: is {what}, which would be lost: {own} here; choose another output, such as -o {example}, or remove the file first",
        output.display()
    )
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to read two things from standard input.
pub(crate) fn one_from_stdin<'a>(inputs: impl IntoIterator<Item = Option<&'a PathBuf>>) -> anyhow::Result<()> {
    if inputs.into_iter().flatten().filter(|path| is_stream(path)).count() > 1 {
        bail!("- is given for more than one input: standard input can be one of them only");
    }
    Ok(())
}

/// Refuses standard output, or a file, where a folder of files is written.
pub(crate) fn refuse_stdout(folder: &Path) -> anyhow::Result<()> {
    if is_stream(folder) {
        bail!("-o - is not possible: a folder of files is written; give its path");
    }
    if folder.is_file() {
        bail!("{}: is a file, and -o takes a folder to write the report into; give another name", folder.display());
    }
    Ok(())
}

/// A path as a shell would need it typed.
pub(crate) fn shell_quoted(path: &Path) -> String {
    shell_quoted_text(&path.display().to_string())
}

pub(crate) fn shell_quoted_text(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+%@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Compiles a router for a task; what the router lacks is said of its file, what is wrong with the task of the task's.
pub(crate) fn policy(router: &Router, task: &Task, path: &Path, file: Option<&PathBuf>) -> anyhow::Result<Policy> {
    router.policy(task).map_err(|error| of_task(error, file, |error| of_file(error, path)))
}

/// Intervals for a task; what the router lacks is said of its file.
pub(crate) fn certificate(router: &Router, task: &Task, confidence: f64, path: &Path) -> anyhow::Result<Certificate> {
    router.certificate(task, confidence).map_err(|error| of_file(error, path))
}

/// Intervals for several tasks and bounds for all losses that hold all at once.
pub(crate) fn certify_together(
    router: &Router,
    tasks: &[Task],
    confidence: f64,
    path: &Path,
) -> anyhow::Result<Together> {
    router.certify_together(tasks, confidence).map_err(|error| of_file(error, path))
}

/// Which labels would settle a task; what the router lacks is said of its file.
pub(crate) fn label_plan(
    router: &Router,
    task: &Task,
    confidence: f64,
    path: &Path,
) -> anyhow::Result<pointsman::certify::Plan> {
    router.plan(task, confidence).map_err(|error| of_file(error, path))
}

/// Replays a table's rows; what the table lacks is said of its file.
pub(crate) fn replay(policy: &Policy, frame: &Frame) -> anyhow::Result<Replay> {
    policy.replay(&frame.table).map_err(|error| of_rows(error, frame))
}

/// What is wrong with a table's rows is said of its file and the rows in it.
pub(crate) fn of_rows(error: pointsman::Error, frame: &Frame) -> anyhow::Error {
    match error {
        pointsman::Error::Value { .. } | pointsman::Error::Table(_) => frame.error(error).into(),
        other => other.into(),
    }
}

/// What is wrong with a task is said of its file, if it has one.
pub(crate) fn of_task(
    error: pointsman::Error,
    file: Option<&PathBuf>,
    otherwise: impl Fn(pointsman::Error) -> anyhow::Error,
) -> anyhow::Error {
    match (&error, file) {
        (pointsman::Error::Task(_) | pointsman::Error::OutOfReach { .. }, Some(file)) => {
            pointsman_table::Error::File { file: file.display().to_string(), reason: error.to_string() }.into()
        }
        _ => otherwise(error),
    }
}

fn of_file(error: pointsman::Error, path: &Path) -> anyhow::Error {
    match error {
        pointsman::Error::Table(_) => {
            pointsman_table::Error::File { file: path.display().to_string(), reason: error.to_string() }.into()
        }
        other => other.into(),
    }
}

/// Which classes only one of a router and a table has, each with the one that was perhaps meant; nothing if only their order differs.
fn differing_classes(own: &[String], classes: &[String]) -> Option<String> {
    /// Classes that are named.
    const MOST: usize = 5;
    let only = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| !others.contains(name)).cloned().collect()
    };
    let (table, router) = (only(classes, own), only(own, classes));
    let listed = |names: &[String]| match names.len() {
        0 => "none".to_owned(),
        n if n > MOST => format!("{} and {} more", names[..MOST].join(", "), n - MOST),
        _ => names.join(", "),
    };
    let meant = table.iter().map(|name| pointsman_table::did_you_mean(name, router.iter().map(String::as_str)));
    let meant = meant.into_iter().find(|meant| !meant.is_empty()).unwrap_or_default();
    (!table.is_empty() || !router.is_empty()).then(|| {
        format!(
            "the table's classes are not the router's: only the table has {}, only the router has {}{meant}; calibrate on tables of these \
             classes, or rename the columns",
            listed(&table),
            listed(&router)
        )
    })
}

/// Checks a table's classes against the router's; the message names the table.
pub(crate) fn check_classes(
    router: &pointsman::Router,
    classes: &[String],
    table: &std::path::Path,
) -> anyhow::Result<()> {
    let named = |error: pointsman::Error| pointsman_table::Error::File {
        file: table.display().to_string(),
        reason: differing_classes(router.classes(), classes).unwrap_or_else(|| error.to_string()),
    };
    Ok(router.check_classes(classes).map_err(named)?)
}
