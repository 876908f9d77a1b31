//! Probabilities that do not sum to one.

use pointsman_table::{Frame, ReadOptions, Result, Sums, read_frame, read_frames};

use crate::support::Folder;

fn read(name: &str, text: &str, normalize: bool) -> Result<Frame> {
    let folder = Folder::new();
    read_frame(folder.file(name, text), &ReadOptions { normalize, ..ReadOptions::default() })
}

#[test]
fn percentages_and_rounded_numbers_are_divided_by_their_sum() {
    let frame = read("a.csv", "prob_a,prob_b,votes_a,votes_b\n93,7,1,0\n0.66,0.33,0,1\n0.5,0.5,1,1\n", true).unwrap();
    let sums = frame.sums.unwrap();
    assert_eq!((sums.rows, sums.least, sums.largest), (2, 0.99, 100.0));
    assert_eq!(*frame.table.prediction(0), [0.93, 0.07]);
    assert_eq!(*frame.table.prediction(1), [0.66 / 0.99, 0.33 / 0.99]);
    assert_eq!(*frame.table.prediction(2), [0.5, 0.5]);
    let nested = "{\"probs\":[60,40],\"truth\":[30,70],\"oracles\":{\"gpt\":[1,3]}}\n";
    let frame = read("a.jsonl", nested, true).unwrap();
    assert_eq!((frame.table.truth(0).unwrap(), frame.sums.unwrap().rows), (&[0.3, 0.7][..], 1));
    let others: Vec<(&str, f64)> = frame.other_sums.iter().map(|(name, sums)| (name.as_str(), sums.largest)).collect();
    assert_eq!(others, [("truth", 100.0), ("oracles.gpt", 4.0)]);
    assert_eq!(frame.table.oracles().next(), Some(("gpt", &[0.25, 0.75][..])));
}

/// Predictions in per cent and rounded answers of another model are both probabilities.
#[test]
fn sums_of_predictions_and_of_other_models_are_separate() {
    let folder = Folder::new();
    let header = "prob_a,prob_b,votes_a,votes_b,oracle_gpt_a,oracle_gpt_b\n";
    let paths = ["60,40,1,0,0.498,0.5", "61,38,1,0,0.5,0.48"]
        .map(|row| folder.file(&format!("{}.csv", &row[..2]), format!("{header}{row}\n")));
    let options = ReadOptions { normalize: true, ..ReadOptions::default() };
    let frame = read_frames(&paths, &options).unwrap();
    let range = |sums: &Sums| (sums.rows, sums.least, sums.largest);
    assert_eq!(frame.sums.as_ref().map(range), Some((2, 99.0, 100.0)));
    let [(name, sums)] = frame.other_sums.as_slice() else { panic!("{:?}", frame.other_sums) };
    assert_eq!((name.as_str(), range(sums)), ("oracle_gpt_*", (2, 0.98, 0.998)));
}

/// Rows that can be read without the option do not change in any bit.
#[test]
fn rows_that_sum_to_one_stay_as_they_are() {
    let text = "prob_a,prob_b,votes_a,votes_b\n0.4999,0.5,1,0\n0.1,0.9,1,0\n";
    let [plain, divided] = [false, true].map(|normalize| read("a.csv", text, normalize).unwrap());
    assert_eq!((plain.table, divided.sums), (divided.table, None));
}

#[test]
fn refusal_of_percentages_names_the_option() {
    for (text, sum) in [("93,7", "100.0"), ("0.66,0.33", "0.99")] {
        let error = read("a.csv", &format!("prob_a,prob_b\n1,0\n{text}\n"), false).unwrap_err().to_string();
        for part in ["row 2 (line 3), column prob_*", sum, "--normalize", "normalize=True"] {
            assert!(error.contains(part), "{error}");
        }
    }
    let error = read("a.csv", "prob_a,prob_b,oracle_x_a,oracle_x_b\n1,0,50,50\n", false).unwrap_err().to_string();
    assert!(error.contains("oracle_x_*") && error.contains("--normalize"), "{error}");
}

/// Dividing scores does not make them probabilities.
#[test]
fn refusal_of_scores_does_not_name_the_option() {
    for text in ["3,4", "0.2,0.1", "0,0", "1000,3"] {
        let error = read("a.csv", &format!("prob_a,prob_b\n{text}\n"), false).unwrap_err().to_string();
        assert!(error.contains("sum to") && !error.contains("--normalize"), "{text}: {error}");
    }
}

/// The option does not help, and the message does not suggest it.
#[test]
fn rows_that_cannot_become_a_distribution_are_refused() {
    for (text, reason) in [
        ("101,-1", "-1 is not a probability"),
        ("0,0", "sum to 0.0"),
        ("1e-9,1e-9", "sum to 0.0"),
        ("nan,1", "NaN is not a probability"),
        ("inf,1", "inf is not a probability"),
        ("1e308,1.7e308", "sum to inf"),
    ] {
        let error = read("a.csv", &format!("prob_a,prob_b\n{text}\n"), true).unwrap_err().to_string();
        assert!(error.contains("row 1") && error.contains(reason), "{text}: {error}");
        assert!(!error.contains("--normalize"), "{text}: {error}");
    }
}
