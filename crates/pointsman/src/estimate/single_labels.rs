//! The irreducible loss of rows with one label, from rows with several that are like them.
//!
//! One label says nothing about noise, so such a row has the mean of rows of similar confidence. That is right for all of them together, and
//! wrong for those that a router chooses by features: where noise depends on a feature, a router that routes the items without noise would
//! be charged with the noise of the others. The estimates of rows with several labels, less the mean of their confidence group, are therefore
//! regressed on the features and the top class, and rows with one label are moved by the fit.
//!
//! Shifts have mean zero among the rows with several labels of each confidence group, which keeps its mean.
//!
//! The fit is a sum of step functions, one column at a time, chosen by the signal that it explains: the sum over bins of squared sums of
//! residuals, without the products of a residual with itself, which are noise. Steps are multiplied by the share of the signal in what they
//! explain. Nothing is fitted where that is no more than chance, and rows with several labels keep their own estimates.

use crate::numeric::weighted::WeightedSums;
use crate::router::label_free;
use crate::table::Table;
use crate::table::votes::Votes;

/// The largest number of bins of a feature, without the one of missing values.
const BINS: usize = 8;

/// The largest number of steps.
const MAX_STEPS: usize = 20;

/// The smallest number of rows that are fitted.
const MIN_ROWS: usize = 100;

/// The largest number of rows that are fitted.
const MAX_ROWS: usize = 20_000;

/// The signal of a column must exceed what chance explains by this many standard deviations.
const MIN_STANDARD_DEVIATIONS: f64 = 3.0;

const ORDER_SEED: u64 = 0x51_4E61;

/// What divides the rows into bins.
enum Column {
    /// A feature, by its place, with the lower edges of all bins but the first. Missing values are in the last bin.
    Feature(usize, Vec<f64>),
    TopClass(usize),
}

impl Column {
    fn feature(table: &Table, place: usize, rows: &[u32]) -> Self {
        let mut values: Vec<f64> = rows.iter().map(|&row| table.features(row as usize)[place]).collect();
        values.retain(|value| !value.is_nan());
        values.sort_unstable_by(f64::total_cmp);
        let mut edges: Vec<f64> = (1..BINS).filter_map(|bin| values.get(bin * values.len() / BINS).copied()).collect();
        edges.dedup();
        edges.retain(|edge| values.first().is_some_and(|least| edge > least));
        Self::Feature(place, edges)
    }

    fn bins(&self) -> usize {
        match self {
            Self::Feature(_, edges) => edges.len() + 2,
            Self::TopClass(classes) => *classes,
        }
    }

    fn bin(&self, table: &Table, row: usize) -> usize {
        match self {
            Self::Feature(place, edges) => match table.features(row)[*place] {
                missing if missing.is_nan() => edges.len() + 1,
                value => edges.partition_point(|&edge| edge <= value),
            },
            Self::TopClass(_) => table.peak(row).class as usize,
        }
    }
}

/// A row that is fitted: its weight and its estimate less the mean of its group and what is fitted so far.
struct Residual {
    row: usize,
    weight: f64,
    value: f64,
}

/// A column with the step of each bin.
struct Step {
    column: usize,
    heights: Vec<f64>,
}

/// By how much the irreducible loss of each row is expected to differ from the mean of its confidence group, by its features. `estimates` are
/// the rows' estimated irreducible losses. Empty if no row has one label, or too few have several.
pub(super) fn shifts_by_features(table: &Table, group_of_row: &[u32], estimates: &[f64]) -> Vec<f64> {
    let labels = |row: usize| table.votes(row).map_or(0, Votes::k);
    if (0..table.rows()).all(|row| labels(row) != 1) {
        return Vec::new();
    }
    shifts_of_rows(table, group_of_row, estimates, |row| labels(row) >= 2)
}

/// By how much a value of each row is expected to differ from the mean of its confidence group, by its features. It is fitted to the rows for
/// which `is_fitted` is true. Empty if they are too few.
pub(super) fn shifts_of_rows(
    table: &Table,
    group_of_row: &[u32],
    estimates: &[f64],
    is_fitted: impl Fn(usize) -> bool,
) -> Vec<f64> {
    if (0..table.rows()).filter(|&row| is_fitted(row)).count() < MIN_ROWS {
        return Vec::new();
    }
    let mut order = label_free::order_of_table(table, ORDER_SEED);
    order.retain(|&row| is_fitted(row as usize) && table.weight(row as usize) > 0.0);
    order.truncate(MAX_ROWS);
    let mut residuals = residuals(table, &order, group_of_row, estimates);
    if residuals.len() < MIN_ROWS {
        return Vec::new();
    }
    let features = (0..table.feature_names().len()).map(|place| Column::feature(table, place, &order));
    let columns: Vec<Column> = features.chain([Column::TopClass(table.classes().len())]).collect();
    let bins: Vec<Vec<usize>> = columns
        .iter()
        .map(|column| residuals.iter().map(|residual| column.bin(table, residual.row)).collect())
        .collect();
    let steps: Vec<Step> = std::iter::from_fn(|| next_step(&columns, &bins, &mut residuals)).take(MAX_STEPS).collect();
    let height = |row: usize, step: &Step| step.heights[columns[step.column].bin(table, row)];
    let shifts: Vec<f64> = (0..table.rows()).map(|row| steps.iter().map(|step| height(row, step)).sum()).collect();
    centred(table, group_of_row, shifts, is_fitted)
}

/// The shifts less their mean among the fitted rows of each group: features that depend on confidence would otherwise move whole groups away
/// from their means.
fn centred(table: &Table, group_of_row: &[u32], mut shifts: Vec<f64>, is_fitted: impl Fn(usize) -> bool) -> Vec<f64> {
    let groups = group_of_row.iter().max().map_or(0, |&last| last as usize + 1);
    let mut sums = vec![WeightedSums::default(); groups];
    for row in (0..table.rows()).filter(|&row| is_fitted(row)) {
        sums[group_of_row[row] as usize].add(table.weight(row), shifts[row]);
    }
    for (shift, &group) in shifts.iter_mut().zip(group_of_row) {
        let sums = &sums[group as usize];
        *shift -= if sums.weight > 0.0 { sums.mean() } else { 0.0 };
    }
    shifts
}

/// The estimates of some rows, less the mean of these rows in their group.
fn residuals(table: &Table, rows: &[u32], group_of_row: &[u32], estimates: &[f64]) -> Vec<Residual> {
    let groups = group_of_row.iter().max().map_or(0, |&last| last as usize + 1);
    let mut sums = vec![[0.0; 2]; groups];
    for row in rows.iter().map(|&row| row as usize) {
        let [weight, sum] = &mut sums[group_of_row[row] as usize];
        *weight += table.weight(row);
        *sum += table.weight(row) * estimates[row];
    }
    let residual = |row: usize| {
        let [weight, sum] = sums[group_of_row[row] as usize];
        Residual { row, weight: table.weight(row), value: estimates[row] - sum / weight }
    };
    rows.iter().map(|&row| residual(row as usize)).collect()
}

/// The step of the column with the largest signal, which is then subtracted from the residuals; `None` if no column exceeds chance.
fn next_step(columns: &[Column], bins: &[Vec<usize>], residuals: &mut [Residual]) -> Option<Step> {
    let mut best: Option<(f64, Step)> = None;
    for (column, bins) in bins.iter().enumerate() {
        // The weight of each bin, its sum of residuals, and the sum of their squares.
        let mut sums = vec![[0.0; 3]; columns[column].bins()];
        for (residual, &bin) in residuals.iter().zip(bins) {
            let weighted = residual.weight * residual.value;
            let sums = &mut sums[bin];
            sums[0] += residual.weight;
            sums[1] += weighted;
            sums[2] += weighted * weighted;
        }
        let (mut explained, mut noise, mut variance) = (0.0, 0.0, 0.0);
        for &[weight, sum, squares] in sums.iter().filter(|[weight, ..]| *weight > 0.0) {
            explained += sum * sum / weight;
            noise += squares / weight;
            variance += 2.0 * (squares / weight).powi(2);
        }
        let signal = explained - noise;
        if signal <= MIN_STANDARD_DEVIATIONS * variance.sqrt() || best.as_ref().is_some_and(|(most, _)| signal <= *most)
        {
            continue;
        }
        let factor = signal / explained;
        let height = |&[weight, sum, _]: &[f64; 3]| if weight > 0.0 { factor * sum / weight } else { 0.0 };
        best = Some((signal, Step { column, heights: sums.iter().map(height).collect() }));
    }
    let (_, step) = best?;
    for (residual, &bin) in residuals.iter_mut().zip(&bins[step.column]) {
        residual.value -= step.heights[bin];
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Rng;

    use super::shifts_by_features;
    use crate::table::Table;

    /// Rows of one confidence; noise is 0.1 or 0.5 by the first feature and does not depend on the second. Every third row has one label.
    fn table(rows: usize, is_noisy: impl Fn(usize) -> bool) -> (Table, Vec<f64>) {
        let features = (0..rows).flat_map(|row| [f64::from(u8::from(is_noisy(row))), (row % 7) as f64]).collect();
        let votes = (0..rows).flat_map(|row| if row % 3 == 0 { [1, 0] } else { [1, 1] }).collect();
        let table = Table::new(["a", "b"], [0.7, 0.3].repeat(rows))
            .and_then(|table| table.with_features(["noisy".to_owned(), "other".to_owned()], features))
            .and_then(|table| table.with_votes(votes))
            .unwrap();
        // Estimates vary around the noise of their row.
        let estimates = (0..rows).map(|row| 0.1 + 0.4 * f64::from(u8::from(is_noisy(row))) + 0.05 * (row % 2) as f64);
        (table, estimates.collect())
    }

    #[test]
    fn rows_are_moved_to_rows_with_the_same_features() {
        let is_noisy = |row: usize| row % 4 < 2;
        let (table, estimates) = table(1200, is_noisy);
        let shifts = shifts_by_features(&table, &[0; 1200], &estimates);
        for (row, shift) in shifts.into_iter().enumerate() {
            let wanted = if is_noisy(row) { 0.2 } else { -0.2 };
            assert!((shift - wanted).abs() < 0.01, "row {row}: {shift} instead of {wanted}");
        }
    }

    /// A feature that is common at one confidence and rare at another does not move either group as a whole.
    #[test]
    fn groups_keep_their_means() {
        // Of the first group three quarters are noisy, of the second one quarter.
        let group = |row: usize| u32::from(row >= 600);
        let is_noisy = |row: usize| if group(row) == 0 { row % 4 < 3 } else { row % 4 < 1 };
        let (table, estimates) = table(1200, is_noisy);
        let groups: Vec<u32> = (0..1200).map(group).collect();
        let shifts = shifts_by_features(&table, &groups, &estimates);
        for wanted in [0, 1] {
            let rows = || (0..1200).filter(|&row| group(row) == wanted && row % 3 != 0);
            let mean = rows().map(|row| shifts[row]).sum::<f64>() / rows().count() as f64;
            assert!(mean.abs() < 1e-12, "group {wanted}: {mean}");
        }
        assert!(shifts[0] > 0.05 && shifts[603] < -0.05, "{} {}", shifts[0], shifts[603]);
    }

    #[test]
    fn nothing_is_moved_by_chance_or_from_few_rows() {
        // Noise that no feature explains.
        let (table, _) = table(1200, |row| row % 4 < 2);
        let mut rng = Rng::new(1);
        let random: Vec<f64> = (0..1200).map(|_| rng.uniform()).collect();
        assert!(shifts_by_features(&table, &[0; 1200], &random).iter().all(|&shift| shift == 0.0));
        let (few, estimates) = self::table(120, |row| row % 4 < 2);
        assert!(shifts_by_features(&few, &[0; 120], &estimates).is_empty());
    }
}
