//! The real data sets, which are read from a local folder and not shipped.

use std::path::{Path, PathBuf};

use pointsman_table::{Filter, Need, ReadOptions, read_frame};

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::random::fnv;

/// The environment variable with the folder of the data sets.
pub const DATA_VARIABLE: &str = "POINTSMAN_TEST_DATA";

/// The folder used if neither the settings nor [`DATA_VARIABLE`] name one.
const DEFAULT_FOLDER: &str = "../shared/data";

/// A data set with several labels per item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dataset {
    /// CIFAR-10 images, about 50 labels each.
    Cifar10h,
    /// CIFAR-10 images, predicted by an over-confident network.
    Cifar10hOverconfident,
    /// Sentence pairs, five labels each.
    Snli,
    /// Sentence pairs, a hundred labels each.
    ChaosNli,
}

impl Dataset {
    /// All data sets.
    pub const ALL: [Self; 4] = [Self::Cifar10h, Self::Cifar10hOverconfident, Self::Snli, Self::ChaosNli];

    /// The name of the data set and of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cifar10h => "cifar10h",
            Self::Cifar10hOverconfident => "cifar10h-overconfident",
            Self::Snli => "snli",
            Self::ChaosNli => "chaosnli",
        }
    }

    fn classes(self) -> usize {
        match self {
            Self::Cifar10h | Self::Cifar10hOverconfident => 10,
            Self::Snli | Self::ChaosNli => 3,
        }
    }

    /// Where the original is published, and its licence.
    fn origin(self) -> &'static str {
        match self {
            Self::Cifar10h | Self::Cifar10hOverconfident => {
                "human labels of the CIFAR-10 test set, Peterson et al. 2019, https://github.com/jcpeterson/cifar-10h \
                 (CC BY-NC-SA 4.0); classes in CIFAR-10's order; probs from any CIFAR-10 classifier"
            }
            Self::Snli => {
                "the SNLI 1.0 test set, Bowman et al. 2015, https://nlp.stanford.edu/projects/snli/ (CC BY-SA 4.0); \
                 classes entailment, neutral, contradiction; probs from any SNLI classifier"
            }
            Self::ChaosNli => {
                "ChaosNLI, Nie et al. 2020, https://github.com/easonnie/ChaosNLI (CC BY-NC 4.0); classes entailment, \
                 neutral, contradiction; probs from any NLI classifier"
            }
        }
    }
}

/// The folder of the data sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolder {
    path: PathBuf,
    /// Whether the user named the folder; then a missing file is an error.
    named: bool,
}

impl DataFolder {
    /// The given folder, else that of `POINTSMAN_TEST_DATA`, else `../shared/data`.
    #[must_use]
    pub fn find(given: Option<&Path>) -> Self {
        let variable =
            std::env::var_os(DATA_VARIABLE).filter(|value| !value.is_empty() && value != "none").map(PathBuf::from);
        match given.map(Path::to_owned).or(variable) {
            Some(path) => Self { path, named: true },
            None => Self { path: DEFAULT_FOLDER.into(), named: false },
        }
    }

    /// Whether the user named the folder.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// The path of a data set's file.
    #[must_use]
    pub fn file(&self, dataset: Dataset) -> PathBuf {
        self.path.join(format!("{}.npz", dataset.name()))
    }

    /// The data sets whose files are missing.
    #[must_use]
    pub fn missing(&self, datasets: &[Dataset]) -> Vec<Dataset> {
        datasets.iter().copied().filter(|&dataset| !self.file(dataset).is_file()).collect()
    }

    /// A message that says how to get the missing data sets.
    #[must_use]
    pub fn advice(&self, missing: &[Dataset]) -> String {
        let names: Vec<&str> = missing.iter().map(|dataset| dataset.name()).collect();
        let mut text = format!("{}: no {}.npz\n", self.path.display(), names.join(".npz, "));
        text += &format!("Give their folder with --data DIR or the variable {DATA_VARIABLE}. The originals:\n");
        for dataset in missing {
            text += &format!("  {}.npz: {}\n", dataset.name(), dataset.origin());
        }
        text += "Each file holds the arrays probs (rows × classes, the weak model's probabilities), votes (rows × classes, how \
                 many annotators chose each class), split (0 calibration, 1 test) and, if there are any, features (rows × columns).";
        text
    }

    /// Reads a data set: split 0 is the calibration half, split 1 the test half.
    ///
    /// # Errors
    /// If the file is missing or malformed.
    pub fn load(&self, dataset: Dataset) -> Result<Problem> {
        if !self.missing(&[dataset]).is_empty() {
            return Err(Error::MissingData(self.advice(&[dataset])));
        }
        let path = self.file(dataset);
        let read = |split: &str| {
            let options =
                ReadOptions { filters: vec![Filter::new("split", split)], need: Need::Votes, ..ReadOptions::default() };
            read_frame(&path, &options).map(|frame| frame.table)
        };
        let (calibration, test) = (read("0")?, read("1")?);
        let classes = calibration.classes().len();
        if classes != dataset.classes() {
            let reason = format!("{classes} classes; {} has {}", dataset.name(), dataset.classes());
            return Err(Error::results(&path, reason));
        }
        Problem::from_data(dataset, calibration, test)
    }

    /// A hash of a data set's file.
    pub(crate) fn fingerprint(&self, dataset: Dataset) -> Result<String> {
        let path = self.file(dataset);
        let bytes = std::fs::read(&path).map_err(|source| Error::folder(&path, source))?;
        Ok(format!("{:016x}", fnv(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_data_sets_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::find(Some(folder.path()));
        assert!(data.is_named());
        assert_eq!(data.missing(&Dataset::ALL), Dataset::ALL);
        for dataset in Dataset::ALL {
            let message = data.load(dataset).unwrap_err().to_string();
            for part in [dataset.name(), "https://", "CC BY", "probs", "votes", "split", "--data"] {
                assert!(message.contains(part), "{part} in {message}");
            }
        }
    }

    #[test]
    fn malformed_data_set_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("snli.npz"), b"PK no archive").unwrap();
        let error = DataFolder::find(Some(folder.path())).load(Dataset::Snli).unwrap_err();
        assert!(error.to_string().contains("snli.npz"), "{error}");
    }
}
