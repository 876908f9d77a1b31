//! `pointsman reproduce`: the paper's experiments, if the build has the feature `lab`.

use crate::args::ReproduceArgs;

#[cfg(not(feature = "lab"))]
pub(crate) fn run(_: &ReproduceArgs) -> anyhow::Result<()> {
    Err(no_lab())
}

#[cfg(any(test, not(feature = "lab")))]
fn no_lab() -> anyhow::Error {
    let how = "build it in: cargo install --path crates/pointsman-cli --features lab";
    anyhow::anyhow!("this build has no lab: experiments need the build feature `lab`")
        .context(crate::failure::Hint(how.into()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn without_the_lab_the_error_tells_how_to_build_it() {
        let message = format!("{:#}", super::no_lab());
        assert!(message.contains("cargo install --path crates/pointsman-cli --features lab"), "{message}");
    }
}

#[cfg(feature = "lab")]
pub(crate) use with_lab::run;

#[cfg(feature = "lab")]
mod with_lab {
    use std::sync::Mutex;

    use pointsman_lab::{
        Error, Experiment, Monitor, NUMBERS, Settings, draw, load_results, measure_numbers, numbers_topics, publish,
        reproduce,
    };

    use super::ReproduceArgs;
    use crate::failure::Hint;
    use crate::interrupt::Writing;
    use crate::progress::Progress;
    use crate::render;

    /// Draws a bar, and stops at an interrupt.
    struct Bars {
        bar: Mutex<Option<Progress>>,
        writing: Writing,
    }

    impl Monitor for Bars {
        fn begin(&self, what: &str, steps: u64) {
            if let Ok(mut bar) = self.bar.lock() {
                *bar = None;
                *bar = Some(Progress::bar(what, steps));
            }
        }

        fn step(&self) {
            if let Ok(bar) = self.bar.lock()
                && let Some(bar) = bar.as_ref()
            {
                bar.step();
            }
        }

        fn keep_going(&self) -> bool {
            self.writing.check().is_ok()
        }
    }

    pub(crate) fn run(args: &ReproduceArgs) -> anyhow::Result<()> {
        let topics = numbers_topics(if args.experiment == "all" { NUMBERS } else { &args.experiment })?;
        let about_numbers_only = topics.is_some() && args.experiment != "all";
        let experiments = if about_numbers_only { Vec::new() } else { Experiment::named(&args.experiment)? };
        let mut settings = if args.quick { Settings::quick(&args.output) } else { Settings::full(&args.output) };
        settings.seeds = args.seeds.unwrap_or(settings.seeds);
        settings.data.clone_from(&args.data);
        let bars = Bars { bar: Mutex::new(None), writing: Writing::start() };
        let outcome = reproduce(&experiments, &settings, &bars).and_then(|mut outcome| {
            if let Some(topics) = &topics {
                outcome.files.extend(measure_numbers(topics, &settings, &bars)?.files);
            }
            Ok(outcome)
        });
        drop(bars);
        let outcome = match outcome {
            Err(Error::MissingData(message)) => {
                let mut lines = message.lines();
                let first = lines.next().unwrap_or_default().to_owned();
                return Err(anyhow::anyhow!(first).context(Hint(lines.collect::<Vec<_>>().join("\n"))));
            }
            other => other?,
        };
        let figures = draw(&load_results(&args.output)?, &args.output.join("figures"))?;
        if !render::is_quiet() {
            let mut out = anstream::stdout().lock();
            for file in outcome.files.iter().chain(&figures) {
                std::io::Write::write_fmt(&mut out, format_args!("{}\n", file.display()))?;
            }
        }
        if let Some(folder) = &args.publish {
            publish(&args.output, folder)?;
        }
        match outcome.missing {
            None => Ok(()),
            Some(message) => {
                let mut lines = message.lines();
                let first = format!("the data sets were left out: {}", lines.next().unwrap_or_default());
                Err(anyhow::anyhow!(first).context(Hint(lines.collect::<Vec<_>>().join("\n"))))
            }
        }
    }
}
