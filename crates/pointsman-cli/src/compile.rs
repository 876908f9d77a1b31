//! `pointsman compile`: a router and a task become a policy file, which decides without the calibration rows.

use std::io::{self, Write};

use pointsman::Policy;

use crate::args::CompileArgs;
use crate::check::policy::{PolicySummary, describe};
use crate::flags::shell_quoted;
use crate::interrupt::Writing;
use crate::output::{check_policy, print_beside};
use crate::render::style::{BOLD, GOOD};
use crate::render::{next_step, paragraph, warn_all};
use crate::{errors, input, json, task, words};

pub(crate) fn run(args: &CompileArgs) -> anyhow::Result<()> {
    input::check_streams([Some(&args.router), args.task.task.first()])?;
    check_policy(&args.output, args.json, &[&args.router])?;
    let task = task::from_args(&args.task)?;
    let router = input::load_router(&args.router)?;
    let compiled = errors::compile(&router, &task, &args.router, args.task.task.first())?;
    warn_all(words::policy::few_rows(&router));
    warn_all(words::policy::no_choice(&task));
    warn_all(words::policy::overpriced(compiled.task()));
    warn_all(words::policy::unused_answers(&task, router.rows()));
    let writing = Writing::start();
    let bytes = pointsman_table::policy_bytes(&compiled)?;
    pointsman_table::write_atomically(&args.output, |out| out.write_all(&bytes))?;
    writing.check()?;
    // What is described is what was written.
    let policy = pointsman_table::parse_policy(&bytes)?;
    if args.json {
        return json::print_with_warnings(&PolicySummary::new(&policy));
    }
    print_beside(&args.output, |out| print(out, args, &policy, bytes.len()))
}

fn print(mut out: &mut dyn Write, args: &CompileArgs, policy: &Policy, bytes: usize) -> io::Result<()> {
    let path = shell_quoted(&args.output);
    let size = format!("{:.1} kB", bytes as f64 / 1e3);
    let text = format!("{GOOD}compiled{GOOD:#} {BOLD}{path}{BOLD:#}, {size}, without calibration rows");
    paragraph(&mut out, 0, &text)?;
    describe(&mut out, policy)?;
    let command = format!("pointsman decide {path} queries.csv -o decisions.csv");
    next_step(&mut out, "Next, decide with it where the router is not needed:", &[command])
}
