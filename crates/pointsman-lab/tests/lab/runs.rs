//! Runs that are interrupted, continued or refused.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_lab::{Error, Experiment, Monitor, Settings, Silent, Training, load_results, publish, reproduce};

/// The smallest usable settings.
fn tiny(output: &Path) -> Settings {
    Settings {
        seeds: 2,
        training_rows: 200,
        calibration_rows: 300,
        labels: 5,
        test_rows: 500,
        trees: 3,
        training: Training { width: 4, epochs: 1, ..Training::default() },
        ..Settings::quick(output)
    }
}

/// A monitor that stops after a number of steps.
struct StopAfter(AtomicU64);

impl Monitor for StopAfter {
    fn begin(&self, _: &str, _: u64) {}
    fn step(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
    fn keep_going(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// The same settings with a named data folder.
fn with_data(settings: Settings, data: &Path) -> Settings {
    Settings { data: Some(data.to_owned()), ..settings }
}

#[test]
fn interrupted_run_continues_with_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, stopped) = (tiny(&folder.path().join("whole")), tiny(&folder.path().join("stopped")));
    let correlation = [Experiment::Correlation];
    let first = reproduce(&correlation, &whole, &Silent).unwrap();
    assert!(first.kept == 0 && first.measured >= 6 && first.files.len() == 1);

    // Six models are trained, then two parts measured.
    let error = reproduce(&correlation, &stopped, &StopAfter(AtomicU64::new(8))).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(error.to_string().contains("continue"));
    assert!(!stopped.output.join("correlation.json").exists());
    let second = reproduce(&correlation, &stopped, &Silent).unwrap();
    assert_eq!((second.kept, second.measured), (2, first.measured - 2));
    assert_eq!(load_results(&whole.output).unwrap(), load_results(&stopped.output).unwrap());

    // A second run has nothing to do; a run of another size starts again.
    assert_eq!(reproduce(&correlation, &stopped, &Silent).unwrap().measured, 0);
    let other = Settings { calibration_rows: 400, ..stopped };
    assert!(reproduce(&correlation, &other, &Silent).unwrap().measured >= 6);
}

#[test]
fn damaged_part_or_model_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { seeds: 1, ..tiny(folder.path()) };
    reproduce(&[Experiment::ThreeWay], &settings, &Silent).unwrap();
    let before = fs::read(folder.path().join("three-way.json")).unwrap();
    for entry in
        fs::read_dir(folder.path().join("parts")).unwrap().chain(fs::read_dir(folder.path().join("models")).unwrap())
    {
        fs::write(entry.unwrap().path(), b"{").unwrap();
    }
    assert!(reproduce(&[Experiment::ThreeWay], &settings, &Silent).unwrap().kept == 0);
    assert_eq!(fs::read(folder.path().join("three-way.json")).unwrap(), before);
}

#[test]
fn unusable_settings_and_data_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let settings = tiny(&folder.path().join("out"));
    let named = with_data(settings.clone(), folder.path());
    let error = reproduce(&[Experiment::Routing], &named, &Silent).unwrap_err().to_string();
    assert!(error.contains("snli.npz") && error.contains("https://"), "{error}");

    fs::write(folder.path().join("file"), b"").unwrap();
    let blocked = Settings { output: folder.path().join("file"), ..settings.clone() };
    let error = reproduce(&[Experiment::Cells], &blocked, &Silent).unwrap_err();
    assert!(matches!(error, Error::Folder { .. }) && error.to_string().contains("file"), "{error}");

    let error = reproduce(&[Experiment::Cells], &Settings { seeds: 0, ..settings }, &Silent).unwrap_err();
    assert!(error.to_string().contains("seeds"), "{error}");
}

#[test]
fn results_are_loaded_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(load_results(folder.path()).unwrap().is_empty());
    fs::write(folder.path().join("rows.json"), b"{}").unwrap();
    assert!(load_results(folder.path()).unwrap_err().to_string().contains("rows.json"));
    assert!(publish(folder.path(), &folder.path().join("small")).is_err());
}
