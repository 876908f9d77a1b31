//! Which annotators' labels should be left out.

use super::class_counts::ClassCounts;
use super::majority_vote::is_majority_vote;
use super::pairs::{AgreeingPair, SuspectedPair, suspected_pairs};
use super::statistics::{AnnotatorStatistics, Suspicion, TOLERANCE};
use super::{Annotations, NamedLabel};
use crate::error::{Error, Result, TableError, ValueError};
use crate::number::count;
use crate::parallel::prelude::*;
use crate::table::Table;

/// The largest probability that an annotator who labels independently is suspected.
const MAX_FALSE_ALARM_PROBABILITY: f64 = 0.05;

/// The largest expected number of suspected annotators if all of them label independently.
const MAX_EXPECTED_FALSE_ALARMS: f64 = 1.0;

/// Classes with a smaller share of the labels have no statistic of their own.
const MIN_CLASS_SHARE: f64 = 0.05;

/// The smallest number of labels of an annotator with a usual class, and the smallest share of them that name it.
const MIN_LABELS_OF_USUAL_CLASS: usize = 10;
const MIN_SHARE_OF_USUAL_CLASS: f64 = 0.95;

/// The start of the flag of an annotator who agrees with one colleague too often.
const AGREES_WITH: &str = "agrees-with-";

/// The flag of a majority vote of the others.
const MAJORITY_VOTE: &str = "majority-vote";

/// One annotator compared with the others on the same items. The three means have expectation zero if all labels of an item are independent
/// draws from one law.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Annotator {
    /// The name.
    pub annotator: String,
    /// The number of labels given.
    pub votes: usize,
    /// The excess of agreement with others over their agreement among themselves; unknown without items of three labels.
    pub agreement: Option<f64>,
    /// The standard error of the excess of agreement; unknown with fewer than two such items.
    pub agreement_standard_error: Option<f64>,
    /// About the smallest excess or lack of agreement that these labels could have shown; unknown if no difference could have.
    pub smallest_shown_difference: Option<f64>,
    /// The excess of agreement with the previous label over the agreement of others among themselves; unknown if always first.
    pub follows: Option<f64>,
    /// The excess of labels that are the model's top class over the labels of others; unknown if always alone.
    pub model: Option<f64>,
    /// The class that 95 % of the labels or more name, if there are at least ten.
    pub usual_class: Option<UsualClass>,
    /// Significant deviations: `majority-vote`, `agrees-with-<name>`, `agreement-low`, `agreement-high`, `follows-high`, `model-high`,
    /// `class-<name>-high`, `class-<name>-low`.
    pub flags: Vec<String>,
}

/// A class that nearly all labels of an annotator name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct UsualClass {
    /// The class.
    pub class: String,
    /// The number of labels that name it.
    pub votes: usize,
}

impl Annotator {
    /// The excess or lack of agreement in standard errors; zero if it is unknown.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let known = self.agreement.zip(self.agreement_standard_error.filter(|error| *error > 0.0));
        known.map_or(0.0, |(agreement, error)| (agreement / error).abs())
    }

    /// Whether the annotator agrees with the others less than expected and nothing shows dependence on a label before or on the model.
    #[must_use]
    pub fn differs_by_noise_only(&self) -> bool {
        let is_dependence = |flag: &String| {
            flag.starts_with(AGREES_WITH) || ["agreement-high", "follows-high", "model-high"].contains(&flag.as_str())
        };
        let flags = || self.flags.iter();
        flags().any(|flag| flag == "agreement-low") && !flags().any(is_dependence) && self.preferred_class().is_none()
    }

    /// Whether the labels seem to be the majority votes of the others.
    pub(in crate::diagnose) fn is_majority_vote(&self) -> bool {
        self.flags.iter().any(|flag| flag == MAJORITY_VOTE)
    }

    /// The usual class, if the others name it less often.
    fn preferred_class(&self) -> Option<&UsualClass> {
        self.usual_class.as_ref().filter(|usual| self.flags.contains(&format!("class-{}-high", usual.class)))
    }

    /// The significant deviations in words: `follows the label before`.
    #[must_use]
    pub fn flags_in_words(&self) -> String {
        // A majority vote differs from single labels in other ways too.
        if self.is_majority_vote() {
            return "looks like a majority vote of the others".to_owned();
        }
        // Whoever always gives the same label differs from the others in every other way too.
        match self.preferred_class() {
            Some(usual) if usual.votes == self.votes => {
                return format!("says {} on all {} labels", usual.class, count(self.votes));
            }
            Some(usual) => {
                return format!("says {} on {} of {} labels", usual.class, count(usual.votes), count(self.votes));
            }
            None => {}
        }
        self.flags.iter().map(|flag| flag_in_words(flag)).collect::<Vec<_>>().join(", ")
    }

    /// The significant deviations in words, without the low agreement that a sentence about noise has said.
    pub(in crate::diagnose) fn flags_beside_noise(&self) -> String {
        let others = self.flags.iter().filter(|flag| *flag != "agreement-low");
        others.map(|flag| flag_in_words(flag)).collect::<Vec<_>>().join(", ")
    }
}

/// A significant deviation in words.
fn flag_in_words(flag: &str) -> String {
    match flag {
        "agreement-low" => "agrees less with the others than they do among themselves".to_owned(),
        "agreement-high" => "agrees more with the others than they do among themselves".to_owned(),
        "follows-high" => "follows the label before".to_owned(),
        "model-high" => "names the model’s top class more often than others".to_owned(),
        other => match other.strip_prefix("class-").and_then(|class| class.rsplit_once('-')) {
            Some((class, "high")) => format!("says {class} more often than others"),
            Some((class, "low")) => format!("says {class} less often than others"),
            _ => match other.strip_prefix(AGREES_WITH) {
                Some(colleague) => format!("gives {colleague}’s label more often than chance explains"),
                None => other.to_owned(),
            },
        },
    }
}

/// All annotators, and those whose labels should be left out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AnnotatorCheck {
    /// In alphabetical order.
    pub annotators: Vec<Annotator>,
    /// The names of those to leave out, strongest evidence first. An annotator who only agrees too much is not left out.
    pub left_out: Vec<String>,
    /// Pairs who agree with each other more often than chance explains; the first of each is left out.
    pub pairs: Vec<AgreeingPair>,
}

/// One annotator's statistics, and each suspicion with the logarithm of its e-value.
struct Examined {
    statistics: AnnotatorStatistics,
    suspicions: Vec<(Suspicion, f64)>,
}

impl AnnotatorCheck {
    /// Examines the annotators of a table's labels. An annotator who does not label independently also distorts the comparison of the
    /// others. So the one with the strongest evidence is left out and the rest are examined again, until nobody is suspected. A majority vote
    /// is left out first. Of a pair who agree too often, one is left out. Each annotator is reported as last examined.
    ///
    /// # Errors
    /// If the annotations are not those of the table's rows and classes.
    pub fn new(table: &Table, annotations: &Annotations) -> Result<Self> {
        if annotations.rows() != table.rows() {
            let (own, rows) = (annotations.rows(), table.rows());
            return Err(TableError::Length { what: "rows of annotations", found: own, rows }.into());
        }
        let classes = table.classes();
        let labels = (0..table.rows()).flat_map(|row| annotations.labels(row).iter().map(move |label| (row, label)));
        let mut labels = labels.map(|(row, label)| (row, label.class as usize));
        if let Some((row, label)) = labels.find(|(_, label)| *label >= classes.len()) {
            return Err(Error::value(row, "label", ValueError::Label { label, classes: classes.len() }));
        }
        let peak = |row: usize| (table.peak(row).class, table.peak(row).confidence);
        Ok(Self::examine(annotations, &(0..table.rows()).map(peak).collect::<Vec<_>>(), classes))
    }

    /// Examines the annotators of rows with these top classes and confidences.
    fn examine(annotations: &Annotations, predictions: &[(u32, f64)], classes: &[String]) -> Self {
        let top_classes: Vec<u32> = predictions.iter().map(|(class, _)| *class).collect();
        let names = annotations.names();
        let common = common_classes(&annotations.labels, classes.len());
        // Four tests, and two per class.
        let tests = (4 + 2 * common.len()) as f64;
        let threshold =
            (tests * (1.0 / MAX_FALSE_ALARM_PROBABILITY).max(names.len() as f64 / MAX_EXPECTED_FALSE_ALARMS)).ln();
        let mut is_left_out = vec![false; names.len()];
        let mut found = Self { annotators: Vec::new(), left_out: Vec::new(), pairs: Vec::new() };
        let mut last: Vec<Option<Annotator>> = vec![None; names.len()];
        let mut examined: Vec<Option<Examined>> = names.iter().map(|_| None).collect();
        loop {
            let kept = annotations.without(&is_left_out);
            let (places, counts) = (kept.by_annotator(), ClassCounts::new(&kept));
            let examine = |annotator: usize| {
                let own = places[annotator].iter().copied();
                let statistics = AnnotatorStatistics::from_places(&kept, &counts, own, &top_classes, &common);
                let mut suspicions = statistics.ln_e_values();
                suspicions.retain(|(_, evidence)| *evidence >= threshold);
                Examined { statistics, suspicions }
            };
            let present: Vec<usize> = (0..names.len()).filter(|&annotator| !is_left_out[annotator]).collect();
            // Leaving one annotator out changes the statistics of only those who labelled the same items.
            let changed = present.iter().copied().filter(|&annotator| examined[annotator].is_none());
            let changed: Vec<usize> = changed.collect();
            let results: Vec<Examined> = changed.par_iter().map(|&annotator| examine(annotator)).collect();
            for (annotator, result) in changed.into_iter().zip(results) {
                let usual_class = usual_class(&kept, &places[annotator], classes);
                let report = result.report(&names[annotator], places[annotator].len(), classes, threshold);
                last[annotator] = Some(Annotator { usual_class, ..report });
                examined[annotator] = Some(result);
            }
            let items = (0..kept.rows()).filter(|&row| !kept.labels(row).is_empty()).count();
            let is_vote = |annotator: &usize| is_majority_vote(&kept, &counts, &places[*annotator], items);
            let majority_vote = present.iter().copied().find(is_vote);
            let of = |annotator: usize| examined[annotator].as_ref();
            // Ties go to the first name in alphabetical order, and to single annotators.
            let worst = present.iter().filter_map(|&annotator| Some((annotator, of(annotator)?.evidence()?)));
            let worst = worst.reduce(|a, b| if b.1 > a.1 { b } else { a });
            let excess = worst.map_or(0.0, |(_, evidence)| evidence - threshold);
            // A majority vote agrees with everybody, and pairs are counted anew without it.
            let pairs = match majority_vote {
                Some(_) => Vec::new(),
                None => suspected_pairs(&kept, &counts, &places, predictions),
            };
            let pairs = pairs.into_iter().filter(|pair| pair.excess > excess);
            let pair = pairs.reduce(|a, b| if b.excess > a.excess { b } else { a });
            let explained =
                |pair: &SuspectedPair| pair.pair.into_iter().find(|&one| of(one).is_some_and(|own| own.explains(pair)));
            let (worst, pair) = match (majority_vote, pair, worst) {
                (Some(vote), ..) => (vote, None),
                (None, Some(pair), _) => match explained(&pair) {
                    Some(one) => (one, None),
                    None => {
                        let follows = |annotator: usize| of(annotator).is_some_and(Examined::follows);
                        (pair.left_out(follows, |annotator| places[annotator].len()), Some(pair))
                    }
                },
                (None, None, Some((worst, _))) => (worst, None),
                (None, None, None) => break,
            };
            if majority_vote.is_some() {
                last[worst].iter_mut().for_each(|one| one.flags.insert(0, MAJORITY_VOTE.to_owned()));
            }
            if let Some(pair) = pair {
                let pair = pair.with_names(worst, names);
                let flag = format!("{AGREES_WITH}{}", pair.colleague);
                last[worst].iter_mut().for_each(|one| one.flags.insert(0, flag.clone()));
                found.pairs.push(pair);
            }
            for (row, _) in &places[worst] {
                kept.labels(*row).iter().for_each(|label| examined[label.annotator as usize] = None);
            }
            is_left_out[worst] = true;
            found.left_out.push(names[worst].clone());
        }
        found.annotators = last.into_iter().flatten().collect();
        found
    }
}

impl Examined {
    /// The strongest evidence against the annotator; too much agreement alone is none.
    fn evidence(&self) -> Option<f64> {
        let counts = |(suspicion, _): &&(Suspicion, f64)| *suspicion != Suspicion::AgreementHigh;
        self.suspicions.iter().filter(counts).map(|(_, evidence)| *evidence).reduce(f64::max)
    }

    /// Whether the label before is repeated.
    fn follows(&self) -> bool {
        self.suspicions.iter().any(|(suspicion, _)| *suspicion == Suspicion::FollowsHigh)
    }

    /// Whether a suspicion of this annotator explains why a pair agrees: both name the model's class or a class of their own, or this one
    /// repeats whatever label is before more often than the colleague's.
    fn explains(&self, pair: &SuspectedPair) -> bool {
        let follows =
            self.follows() && mean(&self.statistics.follows).is_some_and(|mean| mean > pair.excess_agreement());
        let is_of_own = |(suspicion, _): &(Suspicion, f64)| {
            matches!(suspicion, Suspicion::ModelHigh | Suspicion::ClassHigh(_) | Suspicion::ClassLow(_))
        };
        follows || self.suspicions.iter().any(is_of_own)
    }

    fn report(&self, name: &str, votes: usize, classes: &[String], threshold: f64) -> Annotator {
        let agreement = &self.statistics.agreement;
        let deviation = standard_deviation(agreement);
        Annotator {
            annotator: name.to_owned(),
            votes,
            agreement: mean(agreement),
            agreement_standard_error: deviation.map(|deviation| deviation / (agreement.len() as f64).sqrt()),
            smallest_shown_difference: deviation
                .and_then(|deviation| smallest_shown_difference(deviation, agreement.len(), threshold)),
            follows: mean(&self.statistics.follows),
            model: mean(&self.statistics.model),
            usual_class: None,
            flags: self.suspicions.iter().map(|(suspicion, _)| suspicion.name(classes)).collect(),
        }
    }
}

/// The class that nearly all of an annotator's labels name; `None` with few labels.
fn usual_class(annotations: &Annotations, places: &[(usize, usize)], classes: &[String]) -> Option<UsualClass> {
    let mut counts = vec![0_usize; classes.len()];
    places.iter().for_each(|&(row, place)| counts[annotations.labels(row)[place].class as usize] += 1);
    let (class, &votes) = counts.iter().enumerate().max_by_key(|(_, votes)| **votes)?;
    let is_usual =
        places.len() >= MIN_LABELS_OF_USUAL_CLASS && votes as f64 >= MIN_SHARE_OF_USUAL_CLASS * places.len() as f64;
    is_usual.then(|| UsualClass { class: classes[class].clone(), votes })
}

/// The classes with at least [`MIN_CLASS_SHARE`] of all labels.
fn common_classes(labels: &[NamedLabel], classes: usize) -> Vec<u32> {
    let mut counts = vec![0_usize; classes];
    labels.iter().for_each(|label| counts[label.class as usize] += 1);
    let is_common = |&class: &u32| counts[class as usize] as f64 >= MIN_CLASS_SHARE * labels.len() as f64;
    (0..classes as u32).filter(is_common).collect()
}

/// The standard deviation; `None` for fewer than two values.
fn standard_deviation(values: &[f64]) -> Option<f64> {
    let center = mean(values).filter(|_| values.len() > 1)?;
    let squares: Vec<f64> = values.iter().map(|value| (value - center).powi(2)).collect();
    mean(&squares).map(|variance| (variance * values.len() as f64 / (values.len() - 1) as f64).sqrt())
}

/// About the smallest mean whose evidence reaches a threshold, from the growth of the best constant bet: n g² / (2 (σ² + g²)) for a mean
/// that exceeds the tolerance by g. `None` if there are too few values for any mean.
fn smallest_shown_difference(deviation: f64, values: usize, threshold: f64) -> Option<f64> {
    let spare = values as f64 - 2.0 * threshold;
    let difference = TOLERANCE + deviation * (2.0 * threshold / spare).sqrt();
    (spare > 0.0 && difference <= 1.0).then_some(difference)
}

/// The mean, summed in ascending order so that it does not depend on the order of items; `None` without values.
fn mean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| sorted.iter().sum::<f64>() / sorted.len() as f64)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Lcg;

    use super::*;

    /// A crowd: 20,000 annotators with six to eight labels each, one of them on an item that everybody labels. The first two annotators
    /// also have 200 common items, on which the second one repeats the label of the first one, and 40 items each without the other.
    #[test]
    fn a_copier_is_found_among_20_000_annotators() {
        const CROWD: u32 = 20_000;
        let mut random = Lcg::new(23);
        let mut label = || u32::from(random.uniform() < 0.5);
        let mut rows: Vec<Vec<(u32, u32)>> = Vec::new();
        for item in 0..CROWD {
            rows.push((0..5).map(|place| ((item + 4001 * place) % CROWD, label())).collect());
        }
        rows.push((0..CROWD).map(|annotator| (annotator, label())).collect());
        for item in 0..200 {
            let copied = label();
            rows.push(vec![(0, copied), (2 + item, label()), (1, copied)]);
        }
        for item in 0..80 {
            rows.push(vec![(1000 + item, label()), (item % 2, label()), (2000 + item, label())]);
        }
        let predictions = vec![(0, 0.5); rows.len()];
        let annotations = Annotations::new((0..CROWD).map(|who| format!("a{who:05}")), rows).unwrap();
        let found = AnnotatorCheck::examine(&annotations, &predictions, &["no".to_owned(), "yes".to_owned()]);
        assert_eq!(found.annotators.len(), CROWD as usize);
        assert_eq!(found.left_out, ["a00001"]);
        let [pair] = found.pairs.as_slice() else { panic!("{:?}", found.pairs) };
        assert_eq!((pair.colleague.as_str(), pair.common, pair.later), ("a00000", 201, 201));
        assert!(pair.agreed >= 200 && pair.has_clear_order(), "{pair:?}");
    }
}
