//! `pointsman compare`: several routers or tasks on one held-out table.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use pointsman::evaluate::{Comparison, Difference, MIN_DIFFERING_ROWS, PolicyCost};
use pointsman::number::is_wide_beside;
use pointsman::task::TaskSummary;
use pointsman::{Replay, Router, Table, Task};
use pointsman_table::{Format, Frame, Need, ReadOptions};

use crate::args::{CapArg, CompareArgs, OwnTable};
use crate::evaluate::human::truth_in_words;
use crate::failure::Hint;
use crate::flags::shell_quoted_text;
use crate::progress::Progress;
use crate::render::number::{count, counted, decimals, exact, fixed, maybe, percent};
use crate::render::style::{BAD, BOLD, DIM, GOOD, PLAIN, WARN};
use crate::render::table::Grid;
use crate::render::{self, paragraph, warn_all};
use crate::{errors, input, json, task, words};

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let Files { routers, table, tasks } = Files::from_args(args)?;
    let annotations = args.votes.annotations.as_ref();
    let own = args.table.iter().map(|own| &own.path);
    input::check_streams(routers.iter().chain([&table]).chain(own).chain(&tasks).map(Some).chain([annotations]))?;
    if annotations.is_some_and(|path| input::is_stream(path)) && !args.table.is_empty() {
        bail!(
            "--annotations -: the labels are read once per table, and --table gives a further one: give them as a file"
        );
    }
    let tasks = read_tasks(args, &tasks)?;
    if routers.len() * tasks.len() < 2 {
        bail!(anyhow::anyhow!("one router under one task leaves nothing to compare").context(Hint(
            "give a second router or a second task: pointsman compare OLD NEW TABLE --route 0.05, or pointsman compare ROUTER TABLE A.toml B.toml"
                .into()
        )));
    }
    check_caps(args, &tasks)?;
    let loaded = routers.iter().map(|path| input::load_router(path)).collect::<anyhow::Result<Vec<Router>>>()?;
    let mut options = input::read_options(&args.reading, Some(&args.votes), Need::VotesOrTruth)?;
    options.classes = loaded.first().map(|router| router.classes().to_vec());
    let frame = input::read_frame(&table, &options)?;
    let own = own_tables(args, &routers, &frame, &table, &options)?;
    let (mut replays, mut moved) = (Vec::new(), Vec::new());
    {
        let progress = Progress::bar("comparing", (routers.len() * tasks.len()) as u64);
        for ((path, router), own) in routers.iter().zip(&loaded).zip(&own) {
            let (table, frame) = own.as_ref().map_or((&table, &frame), |(table, frame)| (table, frame));
            let held_out = in_order(&frame.table, router, path, table)?;
            for (task, file) in &tasks {
                let name = name(path, file.as_deref(), routers.len(), tasks.len());
                let mut replay = replay(router, path, task, file.as_ref(), &held_out, frame)?;
                if let Some(caps) = task::caps(&caps_on(args, task), task)? {
                    replay = replay.with_caps(caps, &held_out, frame.ids.as_deref())?;
                }
                if replays.len().is_multiple_of(tasks.len()) {
                    moved.extend(moved_traffic(&replay, router, path, &held_out)?);
                }
                replays.push((name, replay));
                progress.step();
            }
        }
    }
    let baseline = args.baseline.as_deref().map(|wanted| baseline(wanted, &replays)).transpose()?;
    let found =
        pointsman::evaluate::compare_policies(replays.iter().map(|(name, replay)| (name.as_str(), replay)), baseline)?;
    if tasks.iter().all(|(task, _)| task.action_names().len() < 2) {
        warn_all(tasks.first().and_then(|(task, _)| words::policy::no_choice(task)));
    }
    warn_all(words::table::reading(&frame));
    warn_all(words::table::mismatch(&frame.table)?);
    own.iter().flatten().for_each(|(_, own)| warn_all(words::table::reading(own)));
    warn_all(words::table::labels(&frame, &args.votes, None)?);
    let tables = own.iter().map(|own| own.as_ref().map_or(&frame.table, |(_, own)| &own.table));
    let seen = loaded.iter().zip(tables).map(|(router, table)| router.calibration_rows_in(table)).max().unwrap_or(0);
    warn_all(pointsman_report::calibration_rows_in_words(seen, frame.table.rows()));
    warn_all(moved);
    if args.json { json::print_with_warnings(&found) } else { Ok(print(&found, seen)?) }
}

/// A warning that a router gets other predictions than those it was calibrated on; `None` if they are alike.
fn moved_traffic(replay: &Replay, router: &Router, path: &Path, table: &Table) -> anyhow::Result<Option<String>> {
    let shift = replay.traffic(router, table)?.compare();
    let router =
        path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned());
    Ok(words::policy::traffic(&shift).map(|moved| {
        format!(
            "{}: {moved}; if this router is for another version of the model, give that version's predictions of the same items, \
             --table {}=FILE",
            path.display(),
            shell_quoted_text(&router)
        )
    }))
}

/// The files by kind: task files have the extension `.toml`; of the others the last is the table, and those before it are routers.
struct Files {
    routers: Vec<PathBuf>,
    table: PathBuf,
    tasks: Vec<PathBuf>,
}

impl Files {
    fn from_args(args: &CompareArgs) -> anyhow::Result<Self> {
        let is_task = |path: &PathBuf| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let (mut tasks, mut others): (Vec<PathBuf>, Vec<PathBuf>) = args.files.iter().cloned().partition(is_task);
        tasks.extend(args.task.task.iter().cloned());
        let table = others.pop().filter(|_| !others.is_empty());
        let Some(table) = table else {
            bail!(
                "compare needs routers and, after them, one held-out table: pointsman compare OLD NEW TABLE --route 0.05"
            );
        };
        if let Some(early) = others.iter().find(|path| Format::from_path(path).is_some()) {
            bail!(
                "{}: looks like a table but is given among the routers; give one table, after the routers, as in \
                 pointsman compare OLD NEW TABLE",
                early.display()
            );
        }
        if input::has_router_extension(&table) {
            bail!(
                "the table is missing: the last file, {}, is a router; pointsman compare OLD NEW TABLE --route 0.05, and \
                 --table NEW=FILE for a router with a table of its own",
                table.display()
            );
        }
        Ok(Self { routers: others, table, tasks })
    }
}

/// The tasks of the files, overridden by flags; without files the task of the flags.
fn read_tasks(args: &CompareArgs, files: &[PathBuf]) -> anyhow::Result<Vec<(Task, Option<PathBuf>)>> {
    if files.is_empty() {
        return Ok(vec![(task::from_args(&args.task)?, None)]);
    }
    files.iter().map(|file| Ok((task::from_file(file, &args.task)?, Some(file.clone())))).collect()
}

/// The caps on routes of a task.
fn caps_on(args: &CompareArgs, task: &Task) -> Vec<CapArg> {
    let has = |cap: &&CapArg| task.routes().iter().any(|route| route.name() == cap.name);
    args.cap.iter().filter(has).cloned().collect()
}

/// Refuses a cap on a route that no task has.
fn check_caps(args: &CompareArgs, tasks: &[(Task, Option<PathBuf>)]) -> anyhow::Result<()> {
    let used = |cap: &CapArg| tasks.iter().any(|(task, _)| task.routes().iter().any(|route| route.name() == cap.name));
    if let Some(cap) = args.cap.iter().find(|cap| !used(cap)) {
        bail!("--cap {}={}: no task has a route of this name", cap.name, cap.size);
    }
    Ok(())
}

/// The table with its classes in the order of a router's.
fn in_order<'a>(
    table: &'a Table,
    router: &Router,
    path: &Path,
    file: &Path,
) -> anyhow::Result<std::borrow::Cow<'a, Table>> {
    if table.classes() == router.classes() {
        return Ok(std::borrow::Cow::Borrowed(table));
    }
    match table.in_order_of(router.classes()) {
        Ok(table) => Ok(std::borrow::Cow::Owned(table)),
        Err(error) => bail!(
            "{}: has other classes than the router {}: {}; compare routers of the same classes",
            file.display(),
            path.display(),
            input::differing_classes(["table", "router"], [table.classes(), router.classes()])
                .unwrap_or_else(|| error.to_string())
        ),
    }
}

/// The table of each router that was given one of its own, with its rows in the order of `common`.
fn own_tables(
    args: &CompareArgs,
    routers: &[PathBuf],
    common: &Frame,
    file: &Path,
    options: &ReadOptions,
) -> anyhow::Result<Vec<Option<(PathBuf, Frame)>>> {
    let mut own: Vec<Option<(PathBuf, Frame)>> = routers.iter().map(|_| None).collect();
    let names: Vec<String> = routers.iter().map(|path| path.display().to_string()).collect();
    for OwnTable { router, path } in &args.table {
        let Some(place) = place_of(router, &names) else {
            bail!("--table {router}={}: write one of the routers {} before =", path.display(), names.join(", "));
        };
        if own[place].is_some() {
            bail!("--table {router}={}: this router has a table already", path.display());
        }
        // The items are the same, so that their labels need not be given again.
        let options = ReadOptions { need: Need::VotesIfAny, ..options.clone() };
        let frame = in_row_order(input::read_frame(path, &options)?, path, common, file)?;
        own[place] = Some((path.clone(), frame));
    }
    Ok(own)
}

/// A table with its rows in the order of those of `common`, matched by id, and with its labels if it has none. It must have the same items
/// and weights, and no other labels.
fn in_row_order(mut own: Frame, path: &Path, common: &Frame, file: &Path) -> anyhow::Result<Frame> {
    let [path, file] = [path, file].map(Path::display);
    let (Some(ids), Some(wanted)) = (&own.ids, &common.ids) else {
        let without = if own.ids.is_none() { &path } else { &file };
        bail!(
            "{without}: the rows of {file} and {path} are matched by id, and this one has no column id; --columns id=NAME names it"
        );
    };
    let places: HashMap<&str, u32> = ids.iter().map(String::as_str).zip(0..).collect();
    if let Some(missing) = wanted.iter().find(|id| !places.contains_key(id.as_str())) {
        bail!("{path}: has no row with the id {missing:?}, which {file} has; both need the same items");
    }
    let known: HashSet<&str> = wanted.iter().map(String::as_str).collect();
    if let Some(other) = ids.iter().find(|id| !known.contains(id.as_str())) {
        bail!("{path}: has a row with the id {other:?}, which {file} has not; both need the same items");
    }
    if [ids.len(), wanted.len()] != [places.len(); 2] {
        bail!("{path}: an id of {path} or {file} occurs twice, so that their rows cannot be matched");
    }
    let rows: Vec<u32> = wanted.iter().map(|id| places[id.as_str()]).collect();
    own.table = own.table.in_row_order(&rows);
    own.rows = rows.iter().map(|&row| own.rows[row as usize]).collect();
    own.ids = Some(wanted.clone());
    let mut in_order = own.table.in_order_of(common.table.classes()).map_err(|error| anyhow!("{path}: {error}"))?;
    if !in_order.has_votes() && in_order.truth(0).is_none() {
        in_order = with_labels_of(in_order, &common.table)?;
        own.table = in_order.clone();
    }
    let item = |table: &Table, row: usize| (table.votes(row).map(|votes| votes.counts().to_vec()), table.weight(row));
    if let Some(row) = (0..in_order.rows()).find(|&row| item(&in_order, row) != item(&common.table, row)) {
        bail!(
            "{path}, row {}: the item {:?} has other labels or another weight than in {file}; both need the same labels",
            own.rows[row],
            wanted[row]
        );
    }
    Ok(own)
}

/// The table with the votes and the truth of another one, which has the same rows and classes.
fn with_labels_of(mut table: Table, labelled: &Table) -> anyhow::Result<Table> {
    let rows = || 0..labelled.rows();
    if labelled.has_votes() {
        let votes = rows().filter_map(|row| labelled.votes(row)).flat_map(|votes| votes.counts().to_vec());
        table = table.with_votes(votes.collect())?;
    }
    if labelled.truth(0).is_some() {
        table = table.with_truth(rows().filter_map(|row| labelled.truth(row)).flatten().copied().collect())?;
    }
    Ok(table)
}

fn replay(
    router: &Router,
    path: &Path,
    task: &Task,
    file: Option<&PathBuf>,
    table: &Table,
    frame: &Frame,
) -> anyhow::Result<Replay> {
    let policy = errors::compile(router, task, path, file)?;
    policy.replay(table).map_err(|error| errors::in_rows(error, frame))
}

/// The name of a policy: its router, its task file, or both, as in `old.safetensors+cheap.toml`.
fn name(router: &Path, task: Option<&Path>, routers: usize, tasks: usize) -> String {
    match task {
        Some(task) if tasks > 1 && routers == 1 => task.display().to_string(),
        Some(task) if tasks > 1 => format!("{}+{}", router.display(), task.display()),
        _ => router.display().to_string(),
    }
}

/// The policy meant by a name, which may leave out folders and extensions.
fn baseline<'a>(wanted: &str, replays: &'a [(String, Replay)]) -> anyhow::Result<&'a str> {
    let names: Vec<&str> = replays.iter().map(|(name, _)| name.as_str()).collect();
    match place_of(wanted, &names) {
        Some(place) => Ok(names[place]),
        None => bail!("--baseline {wanted}: write one of {}", names.join(", ")),
    }
}

/// The place of the only name that is meant, which may be given without folders and extensions.
fn place_of(wanted: &str, names: &[impl AsRef<str>]) -> Option<usize> {
    let short = |name: &str, part: fn(&Path) -> Option<&std::ffi::OsStr>| -> String {
        let words =
            name.split('+').map(|word| part(Path::new(word)).map_or(word.into(), |part| part.to_string_lossy()));
        words.collect::<Vec<_>>().join("+")
    };
    let spellings: [&dyn Fn(&str) -> String; 3] =
        [&str::to_owned, &|name| short(name, Path::file_name), &|name| short(name, Path::file_stem)];
    for spelling in spellings {
        let mut meant = (0..names.len()).filter(|&place| spelling(names[place].as_ref()) == wanted);
        if let Some(place) = meant.next() {
            return Some(place).filter(|_| meant.next().is_none());
        }
    }
    None
}

/// Prints a comparison; `seen` of the rows are calibration rows.
fn print(found: &Comparison, seen: usize) -> io::Result<()> {
    let mut out = io::BufWriter::new(render::stdout());
    let policies = counted(found.policies.len(), "policy", "policies");
    let rows = match seen {
        0 => counted(found.rows, "held-out row", "held-out rows"),
        seen => format!("{}, {} of them calibration rows", counted(found.rows, "row", "rows"), count(seen)),
    };
    let truth = truth_in_words(found.truth);
    paragraph(&mut out, 0, &format!("{BOLD}{policies}{BOLD:#} on {rows}; truth is {truth}"))?;
    writeln!(out)?;
    let unit = found.policies.iter().find(|it| it.name == found.baseline).filter(|_| !has_several_losses(found));
    let unit = unit.map_or(String::new(), |it| format!(", in {} ({})", it.unit, render::printable(&it.task.loss)));
    paragraph(&mut out, 0, &format!("{BOLD}Cost per query{unit}{BOLD:#}"))?;
    print_costs(&mut out, found)?;
    writeln!(out)?;
    print_prices(&mut out, found)?;
    if found.policies.iter().any(|it| it.corrected) {
        paragraph(&mut out, 2, &format!("{DIM}Costs are corrected for few labels, as in evaluate.{DIM:#}"))?;
    }
    if found.policies.iter().any(|it| it.cost.is_none()) {
        let text = "Held-out rows have one label each, which does not identify the cost of routing to an oracle that knows the truth (–).";
        paragraph(&mut out, 2, &format!("{WARN}{text}{WARN:#}"))?;
    }
    if has_several_losses(found) {
        let text = format!(
            "Costs under different losses are in different units and have no difference: see the column loss. Shares can be \
             compared. --baseline names the policy, now {}, that others of its loss are compared with.",
            render::printable(&found.baseline)
        );
        paragraph(&mut out, 2, &format!("{WARN}{text}{WARN:#}"))?;
    }
    for it in &found.policies {
        for text in pointsman_report::caps_in_words(&it.caps, it.capped.as_ref(), it.cost.is_some()) {
            paragraph(&mut out, 2, &format!("{}: {text}", render::printable(&it.name)))?;
        }
    }
    for text in found.policies.iter().filter_map(|it| in_words(it, &found.baseline)) {
        paragraph(&mut out, 2, &text)?;
    }
    out.flush()
}

/// Prints the prices and limits: once, if all policies have the same task.
fn print_prices(out: &mut impl Write, found: &Comparison) -> io::Result<()> {
    let tasks: Vec<String> = found.policies.iter().map(|it| prices_in_words(&it.task)).collect();
    match tasks.iter().all(|task| *task == tasks[0]) {
        true => paragraph(&mut *out, 2, &format!("{DIM}{}.{DIM:#}", tasks[0]))?,
        false => {
            for (it, task) in found.policies.iter().zip(&tasks) {
                paragraph(&mut *out, 2, &format!("{DIM}{}: {task}.{DIM:#}", render::printable(&it.name)))?;
            }
        }
    }
    for it in &found.policies {
        let routed: f64 = it.shares.iter().filter(|(name, _)| name.starts_with("route:")).map(|(_, share)| share).sum();
        if let Some(budget) = it.task.budget.filter(|budget| routed > budget + 1e-9) {
            let text = format!(
                "{} routes {} of these rows, more than its budget of {}: a budget is a price found on the calibration rows.",
                render::printable(&it.name),
                percent(routed),
                percent(budget)
            );
            paragraph(&mut *out, 2, &format!("{WARN}{text}{WARN:#}"))?;
        }
    }
    Ok(())
}

/// The prices and the limit of a task.
fn prices_in_words(task: &TaskSummary) -> String {
    let routes =
        task.routes.iter().map(|route| format!("route {} at {}", render::printable(&route.name), exact(route.cost)));
    let abstain = task.abstain.map(|price| format!("abstain at {}", exact(price)));
    let budget = task.budget.map(|share| format!("a budget of {}", percent(share)));
    let target = task.target_loss.map(|loss| format!("a target loss of {}", exact(loss)));
    let all: Vec<String> = routes.chain(abstain).chain(budget).chain(target).collect();
    if all.is_empty() { "No prices: predicting only".to_owned() } else { format!("Prices: {}", all.join(", ")) }
}

fn has_several_losses(found: &Comparison) -> bool {
    found.policies.iter().any(|it| !it.same_loss)
}

/// Prints one row per policy: its cost, the difference to the baseline's, and the shares of its actions.
fn print_costs(out: &mut impl Write, found: &Comparison) -> io::Result<()> {
    let several_losses = has_several_losses(found);
    let digits = decimals(found.policies.iter().filter_map(|it| it.cost));
    let mut actions: Vec<&str> = Vec::new();
    for (name, _) in found.policies.iter().flat_map(|it| it.shares.iter()) {
        if !actions.contains(&name) {
            actions.push(name);
        }
    }
    let mut grid = Grid::new().text("");
    if several_losses {
        grid = grid.text("loss");
    }
    grid = grid.numbers(["cost", "± s.e.", "difference", "± s.e."]);
    grid = grid.numbers(actions.iter().copied());
    for it in &found.policies {
        let is_baseline = it.name == found.baseline;
        let mut row = vec![(it.name.clone(), if is_baseline { BOLD } else { PLAIN })];
        if several_losses {
            row.push((it.task.loss.clone(), DIM));
        }
        row.push((maybe(it.cost, digits), PLAIN));
        row.push((maybe(it.standard_error.filter(|_| it.cost.is_some()), digits), DIM));
        match it.difference {
            Some(difference) => {
                let style = match difference.certain_sign() {
                    Some(Ordering::Less) => GOOD,
                    Some(_) => BAD,
                    None => PLAIN,
                };
                row.push((fixed(difference.estimate, digits), style));
                row.push((maybe(difference.standard_error, digits), DIM));
            }
            None if is_baseline => row.extend([("baseline".to_owned(), DIM), (String::new(), DIM)]),
            None => row.extend([("–".to_owned(), DIM), ("–".to_owned(), DIM)]),
        }
        let share = |name: &&str| (it.shares.get(name).map_or("–".to_owned(), |&share| percent(share)), DIM);
        row.extend(actions.iter().map(share));
        grid.row(row);
    }
    grid.write(out)
}

/// The range by which a difference is judged and, if the labels widen it, its two parts.
fn range_in_words(difference: &Difference, digits: usize) -> String {
    let Some((range, interval)) = difference.range().zip(difference.interval) else { return String::new() };
    let between = |ends: [f64; 2]| ends.map(|end| fixed(end, digits)).join(" to ");
    let error = difference.standard_error.unwrap_or(f64::NAN);
    match difference.identified.filter(|open| is_wide_beside(*open, error)) {
        None => format!(", 95 % interval of the difference {}", between(range)),
        Some(open) => format!(
            ", 95 % range of the difference {}: the sampling interval {}, widened by what so few labels per item leave open, {}",
            between(range),
            between(interval),
            between(open)
        ),
    }
}

/// A policy's difference to the baseline, in a sentence.
fn in_words(it: &PolicyCost, baseline: &str) -> Option<String> {
    let difference = it.difference?;
    let [name, baseline] = [it.name.as_str(), baseline].map(render::printable);
    if difference.estimate == 0.0 && difference.standard_error == Some(0.0) {
        return Some(format!("{name} decides these rows as {baseline} does, at the same cost."));
    }
    let digits = decimals(difference.range().unwrap_or([difference.estimate; 2]));
    let interval = range_in_words(&difference, digits);
    if difference.rests_on_few_rows() {
        let rows = counted(difference.differing_rows, "row", "rows");
        return Some(format!(
            "{name} and {baseline} differ on {rows} only: from fewer than {MIN_DIFFERING_ROWS}, 95 % intervals are too narrow to say which \
             costs less{interval}."
        ));
    }
    let amount = fixed(difference.estimate.abs(), digits);
    Some(match difference.certain_sign() {
        Some(Ordering::Less) => format!("{name} costs {amount} {} per query less than {baseline}{interval}.", it.unit),
        Some(_) => format!("{name} costs {amount} {} per query more than {baseline}{interval}.", it.unit),
        None => format!("{name} and {baseline}: these rows do not show which costs less{interval}."),
    })
}
