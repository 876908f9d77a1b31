//! What is certain about a policy: intervals cell by cell and the regret they allow.

use std::io::{self, Write};
use std::path::Path;

use pointsman::certify::{AllLosses, CoarserCells, CoarserPartition, Interval, Judgement, Together};
use pointsman::task::Named;
use pointsman::{CellId, Certificate, Policy, Router, Task};
use serde::Serialize;

use crate::args::ShowArgs;
use crate::plan::{self, shell_quoted};
use crate::render::number::{count, counted, decimals, fixed, level, percent, plain, short};
use crate::render::style::{self, BOLD, DIM, GOOD, PLAIN, WARN};
use crate::render::table::Grid;
use crate::render::{next_step, paragraph};
use crate::show;

/// A certificate and what it says of a policy.
#[derive(Debug)]
pub(crate) struct Certified {
    pub(crate) certificate: Certificate,
    pub(crate) judgement: Judgement,
    /// How many tasks it holds for at once.
    tasks: usize,
    /// For every proper loss at once, in the cells where that says something.
    all_losses: Vec<Option<AllLosses>>,
    /// What coarser cells would settle, where these settle little.
    coarser: Option<CoarserCells>,
}

/// Where less of the traffic than this is certain, coarser cells are tried.
const MOST_CERTAIN_TO_TRY_COARSER: f64 = 0.5;

/// What holds for the policy as a whole, as scripts read it.
#[derive(Debug, Serialize)]
pub(crate) struct Promise {
    confidence: f64,
    regret_bound: f64,
    /// The share of the calibration rows whose action is certain.
    certain_share: f64,
    /// The least probability that the certified cross-entropy gives to a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    certified_floor: Option<f64>,
    /// Coarser partitions that would settle more: a forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    coarser: Option<Coarser>,
}

#[derive(Debug, Serialize)]
struct Coarser {
    /// The confidence to certify the one chosen with.
    confidence: f64,
    partitions: Vec<CoarserOne>,
}

#[derive(Debug, Serialize)]
struct CoarserOne {
    partition: String,
    cells: usize,
    certain_share: f64,
    regret_bound: f64,
    /// What new queries are expected to cost with it; null if labels give only bounds.
    promise: Option<pointsman::policy::Promise>,
}

/// What holds for a cell.
#[derive(Debug, Serialize)]
pub(crate) struct CellPromise {
    interval: Intervals,
    certain: bool,
    /// What the action may cost more than the best one.
    regret: f64,
    /// Which one that would be.
    rival: Option<String>,
    rows_left_out: usize,
    /// How far the means of its rows can be off for every proper loss at once, in units of the loss's bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_losses: Option<Sweeping>,
}

#[derive(Debug, Serialize)]
struct Sweeping {
    total: Option<f64>,
    irreducible_below: f64,
    irreducible_above: f64,
}

#[derive(Debug, Serialize)]
struct Intervals {
    irreducible: Interval,
    reducible: Interval,
    total: Interval,
    costs: Named<Interval>,
}

impl Certified {
    pub(crate) fn new(router: &Router, policy: &Policy, confidence: f64, path: &Path) -> anyhow::Result<Self> {
        let certificate = plan::certificate(router, policy.task(), confidence, path)?;
        let judgement = certificate.judge(policy)?;
        Ok(Self { certificate, judgement, tasks: 1, all_losses: Vec::new(), coarser: None })
    }

    /// Several policies whose certificates hold all at once, and with them what holds for every loss.
    pub(crate) fn together(
        router: &Router,
        policies: &[Policy],
        confidence: f64,
        path: &Path,
    ) -> anyhow::Result<Vec<Self>> {
        let tasks: Vec<Task> = policies.iter().map(|policy| policy.task().clone()).collect();
        let Together { certificates, all_losses, .. } = plan::certify_together(router, &tasks, confidence, path)?;
        let judge = |(certificate, policy): (Certificate, &Policy)| {
            let judgement = certificate.judge(policy)?;
            let coarser = match judgement.certain < MOST_CERTAIN_TO_TRY_COARSER {
                true => {
                    Some(router.coarser_cells(policy.task(), confidence)?).filter(|found| !found.partitions.is_empty())
                }
                false => None,
            };
            Ok(Self { certificate, judgement, tasks: tasks.len(), all_losses: all_losses.clone(), coarser })
        };
        certificates.into_iter().zip(policies).map(judge).collect()
    }

    pub(crate) fn promise(&self) -> Promise {
        Promise {
            confidence: self.certificate.confidence(),
            regret_bound: self.judgement.regret_bound,
            certain_share: self.judgement.certain,
            certified_floor: self.certificate.loss().floor(),
            coarser: self.coarser.as_ref().map(|found| Coarser {
                confidence: found.confidence,
                partitions: found
                    .partitions
                    .iter()
                    .map(|one| CoarserOne {
                        partition: one.partition.to_string(),
                        cells: one.cells,
                        certain_share: one.certain,
                        regret_bound: one.regret_bound,
                        promise: one.promise.clone(),
                    })
                    .collect(),
            }),
        }
    }

    pub(crate) fn cell(&self, cell: CellId, policy: &Policy) -> CellPromise {
        let (found, judged) = (&self.certificate.cells()[cell.index()], &self.judgement.cells[cell.index()]);
        let costs = self.certificate.costs(cell, policy.task()).unwrap_or_default();
        CellPromise {
            interval: Intervals {
                irreducible: found.irreducible(),
                reducible: found.reducible(),
                total: found.total(),
                costs: policy.task().action_names().into_iter().zip(costs).collect(),
            },
            certain: judged.certain,
            regret: judged.regret,
            rival: judged.rival.clone(),
            rows_left_out: found.rows_left_out(),
            all_losses: self.all_losses.get(cell.index()).copied().flatten().map(|bound| Sweeping {
                total: bound.total,
                irreducible_below: bound.irreducible_below,
                irreducible_above: bound.irreducible_above,
            }),
        }
    }

    /// The cells with their intervals, for humans.
    pub(crate) fn print(
        &self,
        out: &mut impl Write,
        args: &ShowArgs,
        router: &Router,
        policy: &Policy,
        flags: &str,
        order: &[CellId],
    ) -> io::Result<()> {
        let path = shell_quoted(&args.router);
        show::print_title(out, &path, router, policy)?;
        let cells = self.certificate.cells();
        let digits = decimals(cells.iter().map(|cell| cell.total().high)).min(4);
        let mut grid = Grid::new().number("cell").text("name").number("rows");
        grid = grid.numbers(["irreducible", "reducible", "predict"]).text("action").text("certain").number("regret");
        for &cell in order {
            let (found, judged) = (&cells[cell.index()], &self.judgement.cells[cell.index()]);
            let mut row = vec![
                (cell.to_string(), DIM),
                (router.cells().name(cell, router.classes()), PLAIN),
                (count(router.mixture(cell).len()), PLAIN),
            ];
            let intervals = [found.irreducible(), found.reducible(), found.total()];
            row.extend(intervals.map(|interval| (range(interval, digits), PLAIN)));
            match policy.cell(cell) {
                Some(decision) => {
                    row.push((decision.action().to_string(), style::action(&decision.action())));
                    row.push(certain(judged.certain));
                    row.push((up_to(judged.regret, digits), DIM));
                }
                None => row.extend([("falls back".to_owned(), DIM), certain(judged.certain)]),
            }
            grid.row(row);
        }
        grid.write(&mut *out)?;
        writeln!(out)?;
        self.print_promise(out, router, policy)?;
        show::print_shares(out, policy)?;
        let command = format!("pointsman plan {path}{flags} --confidence {}", self.certificate.confidence());
        next_step(out, "Next, see which labels would make the rest certain:", &[command])
    }

    /// What holds with the confidence asked for, in words.
    pub(crate) fn print_promise(&self, out: &mut impl Write, router: &Router, policy: &Policy) -> io::Result<()> {
        let cells = self.certificate.cells();
        let unit = policy.task().loss().unit();
        let together = match self.tasks {
            1 => String::new(),
            tasks => format!(" and for all {tasks} tasks"),
        };
        let text = format!(
            "With {} confidence, all at once{together}: every number lies in its interval, {BOLD}{}{BOLD:#} of traffic like the calibration \
             rows gets an action that is certainly the best of its cell, and the policy costs at most {BOLD}{}{BOLD:#} {unit} per query \
             more than the best one on these cells. The intervals hold for all prices at once.",
            level(self.certificate.confidence()),
            percent(self.judgement.certain),
            short(self.judgement.regret_bound),
        );
        paragraph(&mut *out, 2, &text)?;
        let mut remark = |text: String| paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"));
        let left_out: usize = cells.iter().map(|cell| cell.rows_left_out()).sum();
        if left_out > 0 {
            let rows = counted(left_out, "row is", "rows are");
            remark(format!("{rows} left out of the intervals, because edges of cells were taken from them."))?;
        }
        let empty = (0..cells.len() as u32).filter(|&cell| router.mixture(CellId(cell)).is_empty()).count();
        if empty > 0 {
            remark(format!("{} without calibration rows: nothing is certain there.", counted(empty, "cell", "cells")))?;
        }
        // A bound of the most that a loss can be says nothing.
        let tells = |bound: &&AllLosses| bound.irreducible_below.max(bound.irreducible_above) < 1.0;
        let sweeping: Vec<&AllLosses> = self.all_losses.iter().flatten().filter(tells).collect();
        if !sweeping.is_empty() {
            let worst = |side: fn(&AllLosses) -> f64| sweeping.iter().map(|bound| side(bound)).fold(0.0, f64::max);
            remark(format!(
                "For every proper loss: in {} of {} the irreducible loss is at most {} below the plug-in estimate and {} \
                 above it, times the largest possible loss. This holds together with all of the above: of the failures that the \
                 confidence allows, nine tenths are spent on the intervals and a tenth on this.",
                count(sweeping.len()),
                counted(cells.len(), "cell", "cells"),
                short(worst(|bound| bound.irreducible_below)),
                short(worst(|bound| bound.irreducible_above)),
            ))?;
        }
        if let Some((found, best)) = self.coarser.as_ref().and_then(|found| Some((found, found.partitions.first()?))) {
            remark(format!(
                "Most of the traffic is undetermined. Coarser cells would settle more: --partition {} has {} and would make {} \
                 certain{}. That is a forecast from the same labels, not a certificate; to rely on it, calibrate with it and ask for \
                 --confidence {}.",
                best.partition,
                counted(best.cells, "cell", "cells"),
                percent(best.certain),
                price_of_coarser(best, policy).unwrap_or_default(),
                plain(found.confidence)
            ))?;
        }
        if let Some(floor) = self.certificate.loss().floor() {
            remark(format!(
                "What is certified is the cross-entropy of predictions that give every class a probability of at least {floor}: rarer \
                 errors cannot be estimated from so few rows."
            ))?;
        }
        Ok(())
    }
}

/// What coarser cells are expected to cost beside what is expected now, as the end of a sentence.
fn price_of_coarser(coarser: &CoarserPartition, policy: &Policy) -> Option<String> {
    let (then, now) = (coarser.promise.as_ref()?, policy.promise()?);
    let [then, now] =
        [then, &now].map(|promise| format!("{} ± {}", fixed(promise.cost, 4), fixed(promise.standard_error, 4)));
    Some(format!("; queries are expected to cost {then} {} with it, {now} now", policy.task().loss().unit()))
}

/// An interval as text.
pub(crate) fn range(interval: Interval, digits: usize) -> String {
    if interval.low == interval.high {
        return fixed(interval.low, digits);
    }
    format!("{}…{}", fixed(interval.low, digits), fixed(interval.high, digits))
}

/// Certain or not, in a word and its colour.
pub(crate) fn certain(certain: bool) -> (String, anstyle::Style) {
    if certain { ("certain".to_owned(), GOOD) } else { ("undetermined".to_owned(), WARN) }
}

/// A regret as text.
fn up_to(regret: f64, digits: usize) -> String {
    if regret == 0.0 { "0".to_owned() } else { format!("≤ {}", fixed(regret, digits)) }
}
