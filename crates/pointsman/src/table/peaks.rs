//! The peaks of many single-precision predictions, four rows per SIMD instruction.
//!
//! Four rows are transposed, so that each instruction works on the same class of four rows. If any of the four is not clearly
//! a prediction (a negative or NaN entry, or a sum off by more than half the floating-point noise), the group is left to the
//! scalar code in [`Peak`]. Both give the same results.

use wide::{f32x4, u32x4};

use crate::table::simplex::{Fault, Peak};

/// How far a sum may be from one: half of what [`Peak`] tolerates, which leaves the other half for the rounding of `f32` sums.
const SUM_NOISE: f32 = 5e-6;

/// The largest number of classes with unrolled code.
pub(crate) const MAX_CLASSES: usize = 16;

/// The largest entries of four rows and their classes; `None` if the rows need the scalar code.
pub(crate) type Four = Option<([f32; 4], [u32; 4])>;

/// Calls `visit` with the peaks of four rows at a time and returns the number of rows visited. The rest, fewer than four rows or all
/// rows if there are too many classes, is left to the caller.
#[inline]
pub(crate) fn in_fours(rows: &[f32], classes: usize, visit: impl FnMut(usize, Four)) -> usize {
    macro_rules! unrolled {
        ($($n:literal)*) => {
            match classes {
                $($n => fours::<$n>(rows, visit),)*
                _ => 0,
            }
        };
    }
    unrolled!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
}

#[inline(always)]
fn fours<const C: usize>(rows: &[f32], mut visit: impl FnMut(usize, Four)) -> usize {
    let groups = rows.as_chunks::<C>().0.as_chunks::<4>().0;
    for (group, rows) in groups.iter().enumerate() {
        let columns = columns(rows);
        let (mut top, mut class) = (columns[0], u32x4::ZERO);
        let (mut sum, mut least) = (columns[0], columns[0]);
        for (c, &column) in columns.iter().enumerate().skip(1) {
            // Strictly greater, so that the first of equal entries wins.
            let greater: u32x4 = bytemuck::cast(column.simd_gt(top));
            class = (greater & u32x4::splat(c as u32)) | (!greater & class);
            top = top.fast_max(column);
            sum += column;
            least = least.fast_min(column);
        }
        let usual = (sum - f32x4::ONE).abs().simd_le(f32x4::splat(SUM_NOISE)) & least.simd_ge(f32x4::ZERO);
        visit(group, (usual.to_bitmask() == 0b1111).then(|| (top.to_array(), class.to_array())));
    }
    4 * groups.len()
}

/// Writes the peak of each row.
pub(crate) fn find(rows: &[f32], classes: usize, out: &mut [Peak]) -> Result<(), Fault> {
    let mut unusual = Vec::new();
    let shown = in_fours(rows, classes, |group, four| match four {
        Some((top, class)) => {
            let peaks = top.into_iter().zip(class);
            let slots = &mut out[4 * group..4 * group + 4];
            slots.iter_mut().zip(peaks).for_each(|(slot, (top, class))| *slot = Peak { class, confidence: top.into() });
        }
        None => unusual.push(4 * group),
    });
    let left = unusual.into_iter().flat_map(|start| start..start + 4).chain(shown..out.len());
    left.into_iter().try_for_each(|row| Peak::find(&rows[row * classes..][..classes]).map(|peak| out[row] = peak))
}

/// Transposes four rows, four classes at a time.
#[inline(always)]
fn columns<const C: usize>(rows: &[[f32; C]; 4]) -> [f32x4; C] {
    let mut columns = [f32x4::ZERO; C];
    if C < 4 {
        for (c, column) in columns.iter_mut().enumerate() {
            *column = f32x4::from(rows.map(|row| row[c]));
        }
        return columns;
    }
    for start in (0..C).step_by(4) {
        // The last four classes may overlap the four before.
        let from = start.min(C - 4);
        let four = |row: &[f32; C]| f32x4::from([row[from], row[from + 1], row[from + 2], row[from + 3]]);
        let transposed = f32x4::transpose([four(&rows[0]), four(&rows[1]), four(&rows[2]), four(&rows[3])]);
        columns[from..from + 4].copy_from_slice(&transposed);
    }
    columns
}

#[cfg(test)]
mod tests {
    use pointsman_testing::scattered as share;

    use super::*;

    #[test]
    fn simd_and_scalar_peaks_agree() {
        // Every third row has few distinct values, so that largest entries repeat.
        let coarse = |row: u32, x: f64| if row.is_multiple_of(3) { (4.0 * x).floor() / 4.0 } else { x };
        for classes in [2, 3, 4, 5, 7, 10, 16, 17] {
            let rows: Vec<f32> = (0..203_u32)
                .flat_map(|row| {
                    let raw: Vec<f64> = (0..classes).map(|c| 0.1 + coarse(row, share(row * 64 + c))).collect();
                    // Some rows have sums away from one, as if rounded to three digits.
                    let sum: f64 = raw.iter().sum::<f64>() * if row % 50 == 7 { 1.0005 } else { 1.0 };
                    raw.into_iter().map(move |x| (x / sum) as f32)
                })
                .collect();
            let width = classes as usize;
            let mut found = vec![Peak::default(); rows.len() / width];
            find(&rows, width, &mut found).unwrap();
            let wanted: Vec<Peak> = rows.chunks_exact(width).map(|row| Peak::find(row).unwrap()).collect();
            assert_eq!(found, wanted, "{classes} classes");
            for (place, value) in [(5 * width, -0.1), (31 * width + 1, f32::NAN), (202 * width, 2.0)] {
                let mut bad = rows.clone();
                bad[place] = value;
                assert!(find(&bad, width, &mut found).is_err(), "{classes} classes, {value}");
            }
        }
    }
}
