//! Tables with fewer labels per item or fewer rows.

use pointsman::Table;

use crate::error::Result;
use crate::random::Random;

/// Keeps at most `k` labels per row, drawn without replacement.
pub(crate) fn draw_labels(table: &Table, k: u64, random: &mut Random) -> Result<Table> {
    let mut votes = Vec::with_capacity(table.rows() * table.classes().len());
    for row in 0..table.rows() {
        let counts = table.votes(row).map_or(&[][..], |votes| votes.counts());
        votes.extend(draw_counts(counts, k, random));
    }
    Ok(table.clone().with_votes(votes)?)
}

/// Concatenates two tables with the same columns.
pub(crate) fn concatenate(first: &Table, second: &Table) -> Result<Table> {
    let rows = |table: &Table| (0..table.rows()).collect::<Vec<usize>>();
    gather_rows(&[(first, &rows(first)), (second, &rows(second))])
}

/// Selects rows of a table, in the given order, with all their columns.
pub(crate) fn select_rows(table: &Table, rows: &[usize]) -> Result<Table> {
    gather_rows(&[(table, rows)])
}

/// Draws `n` rows of a table without replacement.
pub(crate) fn draw_rows(table: &Table, n: usize, random: &mut Random) -> Result<Table> {
    let mut order: Vec<usize> = (0..table.rows()).collect();
    random.shuffle(&mut order);
    order.truncate(n);
    select_rows(table, &order)
}

/// Selects the first `n` rows. Rows of a world are independent draws, so this is a random sample.
pub(crate) fn first_rows(table: &Table, n: usize) -> Result<Table> {
    if table.rows() <= n { Ok(table.clone()) } else { select_rows(table, &(0..n).collect::<Vec<_>>()) }
}

/// Concatenates selected rows of tables with the same columns: predictions, votes, truth, features and other models'
/// answers.
fn gather_rows(parts: &[(&Table, &[usize])]) -> Result<Table> {
    let of = |values: &dyn Fn(&Table, usize) -> Vec<f64>| -> Vec<f64> {
        parts.iter().flat_map(|(table, rows)| rows.iter().flat_map(|&row| values(table, row))).collect()
    };
    let first = parts[0].0;
    let mut out = Table::new(first.classes().iter().cloned(), of(&|table, row| table.prediction(row).to_vec()))?
        .with_features(first.feature_names().iter().cloned(), of(&|table, row| table.features(row).to_vec()))?;
    if first.has_votes() {
        let counts = |table: &Table, row: usize| table.votes(row).map_or(Vec::new(), |votes| votes.counts().to_vec());
        let votes = parts.iter().flat_map(|(table, rows)| rows.iter().flat_map(|&row| counts(table, row)));
        out = out.with_votes(votes.collect())?;
    }
    if first.rows() > 0 && first.truth(0).is_some() {
        out = out.with_truth(of(&|table, row| table.truth(row).unwrap_or_default().to_vec()))?;
    }
    let classes = first.classes().len();
    for (place, (name, _)) in first.oracles().enumerate() {
        let answer = |table: &Table, row: usize| {
            table.oracles().nth(place).map_or(Vec::new(), |(_, probs)| probs[row * classes..][..classes].to_vec())
        };
        out = out.with_oracle(name, of(&answer))?;
    }
    Ok(out)
}

fn draw_counts(counts: &[u32], k: u64, random: &mut Random) -> Vec<u32> {
    let mut left: Vec<u32> = counts.to_vec();
    let mut total: u64 = left.iter().map(|&n| u64::from(n)).sum();
    if total <= k {
        return left;
    }
    let mut drawn = vec![0; left.len()];
    for _ in 0..k {
        let mut index = random.below(total as usize) as u64;
        for (class, n) in left.iter_mut().enumerate() {
            if index < u64::from(*n) {
                *n -= 1;
                drawn[class] += 1;
                break;
            }
            index -= u64::from(*n);
        }
        total -= 1;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_drawn_without_replacement() {
        let table = Table::new(["a", "b", "c"], vec![0.2, 0.3, 0.5, 0.1, 0.1, 0.8])
            .unwrap()
            .with_votes(vec![1, 4, 5, 1, 1, 0])
            .unwrap();
        let mut random = Random::new(1, "labels");
        let mut sums = [0_u32; 3];
        for _ in 0..4_000 {
            let few = draw_labels(&table, 3, &mut random).unwrap();
            let counts = few.votes(0).unwrap().counts().to_vec();
            assert!(counts.iter().sum::<u32>() == 3 && counts[0] <= 1);
            assert_eq!(few.votes(1).unwrap().counts(), [1, 1, 0]);
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
        for (sum, share) in sums.iter().zip([0.1, 0.4, 0.5]) {
            assert!((f64::from(*sum) / 12_000.0 - share).abs() < 0.02, "{sums:?}");
        }
        assert_eq!(draw_rows(&table, 1, &mut random).unwrap().rows(), 1);
        assert_eq!(draw_rows(&table, 9, &mut random).unwrap().rows(), 2);
    }
}
