//! The k-th number of a stream that is scanned repeatedly and not held in memory.

/// Bits per digit in radix selection.
const BITS_PER_DIGIT: u32 = 16;

/// Up to this many numbers are collected and sorted instead of counted.
const MAX_SORTED_NUMBERS: u64 = 1 << 18;

/// The `place`-th largest number, from zero, that `scan` visits, each as often as its count says; 0 if there are fewer.
pub(super) fn select_largest<E>(
    place: u64,
    mut scan: impl FnMut(&mut dyn FnMut(u64, u64)) -> Result<(), E>,
) -> Result<u64, E> {
    Ok(!select_smallest(place, |see| scan(&mut |number, count| see(!number, count)))?.0)
}

/// The `place`-th smallest number, from zero, and how many numbers are smaller; `u64::MAX` if there are fewer.
///
/// Radix selection from the highest digit: each scan counts the next digit of the numbers that share the known prefix.
pub(super) fn select_smallest<E>(
    place: u64,
    mut scan: impl FnMut(&mut dyn FnMut(u64, u64)) -> Result<(), E>,
) -> Result<(u64, u64), E> {
    let (mut known_bits, mut prefix, mut below) = (0, 0_u64, 0);
    while known_bits < u64::BITS {
        let rest = u64::BITS - known_bits;
        let agrees = |number: u64| known_bits == 0 || number >> rest == prefix >> rest;
        let mut counts = vec![0_u64; 1 << BITS_PER_DIGIT];
        scan(&mut |number, count| {
            if agrees(number) {
                counts[(number << known_bits >> (u64::BITS - BITS_PER_DIGIT)) as usize] += count;
            }
        })?;
        let digit = counts.iter().position(|&count| {
            let here = below + count > place;
            below += if here { 0 } else { count };
            here
        });
        let Some(digit) = digit else { return Ok((u64::MAX, below)) };
        prefix |= (digit as u64) << (rest - BITS_PER_DIGIT);
        known_bits += BITS_PER_DIGIT;
        if counts[digit] <= MAX_SORTED_NUMBERS && known_bits < u64::BITS {
            let mut few = Vec::with_capacity(counts[digit] as usize);
            scan(&mut |number, count| {
                if number >> (u64::BITS - known_bits) == prefix >> (u64::BITS - known_bits) {
                    few.extend(std::iter::repeat_n(number, count as usize));
                }
            })?;
            few.sort_unstable();
            let found = few.get((place - below) as usize).copied().unwrap_or(u64::MAX);
            return Ok((found, below + few.partition_point(|&number| number < found) as u64));
        }
    }
    Ok((prefix, below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::mix::nth;

    #[test]
    fn selection_is_exact_with_repetitions() {
        for (count, spread) in [(1, 1_u64), (10, 3), (1000, 100), (1000, u64::MAX)] {
            let numbers: Vec<u64> = (0..count).map(|place| nth(7, place) % spread).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            for place in [0, 1, 4, 500, 999].into_iter().filter(|place| *place < count) {
                let scan = |see: &mut dyn FnMut(u64, u64)| {
                    numbers.iter().for_each(|&number| see(number, 1));
                    Ok::<(), ()>(())
                };
                let (found, below) = select_smallest(place, scan).unwrap();
                assert_eq!(found, sorted[place as usize]);
                assert_eq!(below, sorted.partition_point(|&number| number < found) as u64);
            }
        }
    }

    #[test]
    fn selection_beyond_the_last_number_gives_zero() {
        let scan = |see: &mut dyn FnMut(u64, u64)| {
            [3.0_f64, 1.0].iter().for_each(|number| see(number.to_bits(), 1));
            Ok::<(), ()>(())
        };
        assert_eq!(f64::from_bits(select_largest(0, scan).unwrap()), 3.0);
        assert_eq!(f64::from_bits(select_largest(1, scan).unwrap()), 1.0);
        assert_eq!(f64::from_bits(select_largest(2, scan).unwrap()), 0.0);
    }
}
