//! `pointsman demo`: the whole tour in a world where the truth is known.
//!
//! The commands printed are the commands run: each line is parsed and carried out as if it had been typed.

mod world;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::bail;
use clap::Parser;
use pointsman::{Action, Decision, Policy};
use pointsman_table::{Need, ReadOptions};

use crate::args::{Cli, Command, DemoArgs};
use crate::evaluate::named;
use crate::interrupt::Writing;
use crate::plan::{self, shell_quoted};
use crate::render::number::{count, short};
use crate::render::style::{self, BOLD, DIM};
use crate::render::{self, next_step, paragraph, wrap};
use world::{LABELS, World};

const CALIBRATION_ROWS: u32 = 5_000;
/// What the demo writes.
const FILES: [&str; 5] = ["calibration.csv", "heldout.csv", "router.safetensors", "decisions.csv", "report.json"];
/// Says that a folder's files are the demo's.
const MARK: &str = ".pointsman-demo";
/// Prices at which every action has its place in this world, in Brier points.
const TASK: [&str; 4] = ["--route", "expert=0.08", "--abstain", "0.47"];

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let folder = &args.output;
    plan::refuse_stdout(folder)?;
    render::set_guided(true);
    claim(folder, args.force)?;
    let file = |name: &str| shell_quoted(&folder.join(name));
    let path = |name: &str| folder.join(name).display().to_string();
    let (calibration, heldout) = (path("calibration.csv"), path("heldout.csv"));
    let (router, decisions) = (path("router.safetensors"), path("decisions.csv"));
    {
        let writing = Writing::start();
        let mut world = World::new(args.seed);
        world.write(Path::new(&calibration), CALIBRATION_ROWS, false, &writing)?;
        world.write(Path::new(&heldout), args.rows, true, &writing)?;
    }
    say(
        "1. A world",
        &format!(
            "Questions x have the answer yes with a probability that oscillates fast where |x| < 1, slowly outside. The cheap \
         model is smooth: it sees the slow part only. {LABELS} people answered each of {} calibration questions; their \
         disagreement is noise that no model can remove.\n{} and {} (with the known truth, {} rows) are written.",
            count(CALIBRATION_ROWS as usize),
            file("calibration.csv"),
            file("heldout.csv"),
            count(args.rows as usize),
        ),
    )?;

    say(
        "2. Learn, once",
        "No loss and no price is involved: cells group questions of like confidence, and keep their labels.",
    )?;
    step(&["calibrate", &calibration, "--partition", "top-class:10", "-o", &router])?;

    say(
        "3. Any loss, any price",
        "An expert costs 0.08 per question, abstaining 0.47, a wrong answer its Brier loss.",
    )?;
    step(&[&["show", &router][..], &TASK].concat())?;

    say("4. Decide", "Each held-out question gets an action, its costs, and the rows they rest on.")?;
    step(&[&["decide", &router, &heldout][..], &TASK, &["-o", &decisions]].concat())?;
    explain(Path::new(&router), Path::new(&heldout))?;

    say("5. Prove it", "On questions the router has not seen, against what is known to be true.")?;
    step(
        &[
            &["evaluate", &router, &heldout][..],
            &TASK,
            &["--sweep", "abstain=0.35:0.55:0.05", "-o", &folder.display().to_string()],
        ]
        .concat(),
    )?;

    say(
        "6. On",
        &format!(
            "The files are yours to play with: move the prices in {}. Cells of the question itself see more than cells \
             of the confidence do.",
            file("report.html")
        ),
    )?;
    render::set_guided(false);
    let (fine, flags) = (file("fine.safetensors"), TASK.join(" "));
    let calibrate =
        format!("pointsman calibrate {} --partition features:x_position=150 -o {fine}", file("calibration.csv"));
    let evaluate = format!("pointsman evaluate {fine} {} {flags}", file("heldout.csv"));
    next_step(render::stdout(), "Next, see what finer cells are worth:", &[calibrate, evaluate])?;
    Ok(())
}

/// Makes and marks the folder. One that holds files of the demo's names without the mark is somebody's own.
fn claim(folder: &Path, force: bool) -> anyhow::Result<()> {
    let mark = folder.join(MARK);
    if let Some(own) = FILES.iter().map(|name| folder.join(name)).find(|path| path.exists())
        && !force
        && !mark.exists()
    {
        bail!("{}: would be overwritten; choose another folder, or add --force", own.display());
    }
    fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
    fs::write(&mark, "").map_err(|error| named(&mark, error))
}

fn say(title: &str, text: &str) -> io::Result<()> {
    let mut out = render::stdout();
    writeln!(out, "\n{BOLD}{title}{BOLD:#}")?;
    text.lines().try_for_each(|text| paragraph(&mut out, 2, text))?;
    out.flush()
}

/// Prints a command line and carries it out.
fn step(words: &[&str]) -> anyhow::Result<()> {
    let typed: Vec<String> = words.iter().map(|word| plan::shell_quoted_text(word)).collect();
    let mut out = render::stdout();
    writeln!(out)?;
    wrap::command(&mut out, 2, &format!("{DIM}${DIM:#} {BOLD}pointsman {}{BOLD:#}", typed.join(" ")))?;
    writeln!(out)?;
    out.flush()?;
    drop(out);
    let Cli { command, .. } = Cli::try_parse_from(std::iter::once(&"pointsman").chain(words))?;
    match command {
        // A demo within the demo would never end.
        Command::Demo(_) => Ok(()),
        command => crate::run(command),
    }
}

/// One decision of each kind, in words.
fn explain(router: &Path, heldout: &Path) -> anyhow::Result<()> {
    let router = plan::load_router(router)?;
    let Command::Show(task) = Cli::try_parse_from([&["pointsman", "show", "-"][..], &TASK].concat())?.command else {
        return Ok(());
    };
    let policy = router.policy(&plan::task(&task.task)?)?;
    let options = ReadOptions { need: Need::Predictions, ..ReadOptions::default() };
    let frame = pointsman_table::read_frame(heldout, &options)?;
    let mut out = render::stdout();
    writeln!(out, "\n  {BOLD}One of each, in words{BOLD:#}")?;
    for wanted in [Action::Predict, Action::Route("expert"), Action::Abstain] {
        for row in 0..frame.table.rows() {
            let prediction = frame.table.prediction(row);
            let decision = policy.decide(&prediction)?;
            if decision.action() == wanted {
                let id = frame.ids.as_ref().map_or("a question", |ids| &ids[row]);
                in_words(&mut out, &policy, &decision, id, &prediction)?;
                break;
            }
        }
    }
    Ok(())
}

fn in_words(
    out: &mut impl Write,
    policy: &Policy,
    decision: &Decision<'_>,
    id: &str,
    prediction: &[f64],
) -> io::Result<()> {
    let top = pointsman::table::top_class(prediction);
    let action = decision.action();
    let style = style::action(&action);
    let number = |x: Option<&f64>| short(x.copied().unwrap_or(f64::NAN));
    let costs = decision.costs();
    let why = match action {
        Action::Predict => "the model is about as good as an expert would be, for free",
        Action::Route(_) => "the expert removes more loss than it costs",
        Action::Abstain => "people themselves disagree so much that any answer costs more than none",
        Action::Undetermined => "the labels do not decide",
    };
    writeln!(out, "\n  {style}{action}{style:#} {}", render::printable(id))?;
    let text = format!(
        "The model says {} with {}. In cell {} ({}; {} rows) the irreducible loss is {} and the reducible loss {}. \
         Predicting costs {}, the expert {}, abstaining {}: {why}.",
        policy.classes()[top],
        short(prediction[top]),
        decision.cell(),
        policy.cells().name(decision.cell(), policy.classes()),
        count(decision.rows()),
        short(decision.irreducible().unwrap_or(f64::NAN)),
        short(decision.reducible().unwrap_or(f64::NAN)),
        number(costs.first()),
        number(costs.get(1)),
        number(costs.get(2)),
    );
    paragraph(out, 4, &text)
}
