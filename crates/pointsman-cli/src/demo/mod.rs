//! `pointsman demo`: calibrate, decide and evaluate on simulated data whose truth is known.
//!
//! The printed command lines are those that are run: each is parsed as if it had been typed.

mod world;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::bail;
use clap::Parser;
use pointsman::{Action, Decision, Policy, Task};
use pointsman_table::{Need, ReadOptions};

use crate::args::{Cli, Command, DemoArgs};
use crate::errors::in_file;
use crate::failure::Bug;
use crate::flags::{shell_quoted, shell_quoted_text};
use crate::interrupt::Writing;
use crate::output::check_folder;
use crate::render::number::{count, short};
use crate::render::style::{self, BOLD, DIM};
use crate::render::{self, heading, next_step, paragraph, wrap};
use crate::{input, task};
use world::{LABELS, World};

const CALIBRATION_ROWS: u32 = 5_000;
/// Files that the demo writes.
const FILES: [&str; 6] =
    ["calibration.csv", "heldout.csv", "router.safetensors", "task.toml", "decisions.csv", "report.json"];
/// The file that marks a folder as the demo's.
const MARK: &str = ".pointsman-demo";
/// Prices at which every action is taken, in Brier points.
const TASK: [&str; 4] = ["--route", "expert=0.08", "--abstain", "0.47"];

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let folder = &args.output;
    check_folder(folder)?;
    render::set_guided(true);
    create_folder(folder, args.force)?;
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
    explain_step(
        "1. Simulated data",
        &format!(
            "Questions x have the answer yes with a probability that oscillates fast where |x| < 1, slowly outside. The cheap \
         model is smooth and follows the slow part only. {LABELS} people answered each of {} calibration questions; their \
         disagreement is noise that no model can remove.\n{} and {} (with the known truth, {} rows) are written.",
            count(CALIBRATION_ROWS as usize),
            file("calibration.csv"),
            file("heldout.csv"),
            count(args.rows as usize),
        ),
    )?;

    explain_step(
        "2. Calibrate once",
        "No loss or price is needed yet: cells group questions of similar confidence, and keep their labels.",
    )?;
    run_step(&["calibrate", &calibration, "--partition", "top-class:10", "-o", &router])?;

    explain_step(
        "3. Any loss, any price",
        "An expert costs 0.08 per question, abstaining 0.47, a wrong answer its Brier loss.",
    )?;
    let task_file = folder.join("task.toml");
    fs::write(&task_file, pointsman_table::task_text(&demo_task()?)).map_err(|error| in_file(&task_file, error))?;
    run_step(&[&["show", &router][..], &TASK].concat())?;

    explain_step("4. Decide", "Each held-out question gets an action, its costs, and the support of its cell.")?;
    run_step(&[&["decide", &router, &heldout][..], &TASK, &["-o", &decisions]].concat())?;
    explain_decisions(Path::new(&router), Path::new(&heldout))?;

    explain_step("5. Evaluate", "On held-out questions, whose true probabilities are known.")?;
    run_step(
        &[
            &["evaluate", &router, &heldout][..],
            &TASK,
            &["--sweep", "abstain=0.35:0.55:0.05", "-o", &folder.display().to_string()],
        ]
        .concat(),
    )?;

    print_last_step(folder)
}

/// Prints what to do after the demo.
fn print_last_step(folder: &Path) -> anyhow::Result<()> {
    let file = |name: &str| shell_quoted(&folder.join(name));
    let text = "Cells on the question itself find more than cells on the confidence do.";
    explain_step("6. Continue", &format!("Move the prices in {}. {text}", file("report.html")))?;
    render::set_guided(false);
    let (fine, flags) = (file("fine.safetensors"), TASK.join(" "));
    let calibrate =
        format!("pointsman calibrate {} --partition features:x_position=150 -o {fine}", file("calibration.csv"));
    let evaluate = format!("pointsman evaluate {fine} {} {flags}", file("heldout.csv"));
    if cfg!(feature = "serve") {
        let add = format!(
            "pointsman versions add demo {} --task {} --activate",
            file("router.safetensors"),
            file("task.toml")
        );
        let commands = ["pointsman serve", "pointsman deployments put demo --mode shadow", &add].map(str::to_owned);
        next_step(
            render::stdout(),
            "Decide over HTTP by the same router and prices; the last two in another terminal:",
            &commands,
        )?;
    }
    next_step(render::stdout(), "Next, see what finer cells are worth:", &[calibrate, evaluate])?;
    Ok(())
}

/// Creates and marks the folder. Files of the same names in a folder without the mark are not replaced.
fn create_folder(folder: &Path, force: bool) -> anyhow::Result<()> {
    let mark = folder.join(MARK);
    if let Some(own) = FILES.iter().map(|name| folder.join(name)).find(|path| path.exists())
        && !force
        && !mark.exists()
    {
        bail!("{}: would be overwritten; choose another folder, or add --force", own.display());
    }
    fs::create_dir_all(folder).map_err(|error| in_file(folder, error))?;
    fs::write(&mark, "").map_err(|error| in_file(&mark, error))
}

/// Prints a heading and its paragraphs.
fn explain_step(title: &str, text: &str) -> io::Result<()> {
    let mut out = render::stdout();
    heading(&mut out, title)?;
    text.lines().try_for_each(|text| paragraph(&mut out, 2, text))?;
    out.flush()
}

/// Prints a command line and runs it.
fn run_step(words: &[&str]) -> anyhow::Result<()> {
    let typed: Vec<String> = words.iter().map(|word| shell_quoted_text(word)).collect();
    let mut out = render::stdout();
    writeln!(out)?;
    wrap::command(&mut out, 2, &format!("{DIM}${DIM:#} {BOLD}pointsman {}{BOLD:#}", typed.join(" ")))?;
    writeln!(out)?;
    out.flush()?;
    drop(out);
    let Cli { command, .. } = Cli::try_parse_from(std::iter::once(&"pointsman").chain(words))?;
    match command {
        // A demo within the demo would not end.
        Command::Demo(_) => Ok(()),
        command => crate::run(command),
    }
}

/// The task of the demo's flags.
fn demo_task() -> anyhow::Result<Task> {
    match Cli::try_parse_from([&["pointsman", "show", "-"][..], &TASK].concat())?.command {
        Command::Show(show) => task::from_args(&show.task),
        _ => Err(Bug("the demo's task").into()),
    }
}

/// Explains one decision per action.
fn explain_decisions(router: &Path, heldout: &Path) -> anyhow::Result<()> {
    let router = input::load_router(router)?;
    let policy = router.policy(&demo_task()?)?;
    let options = ReadOptions { need: Need::Predictions, ..ReadOptions::default() };
    let frame = pointsman_table::read_frame(heldout, &options)?;
    let mut out = render::stdout();
    writeln!(out, "\n  {BOLD}One decision per action, explained{BOLD:#}")?;
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
        Action::Predict => "the model is about as good as an expert would be, and free",
        Action::Route(_) => "the expert removes more loss than it costs",
        Action::Abstain => "people themselves disagree so much that any answer costs more than none",
        Action::Undetermined => "the labels do not identify the best action",
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
