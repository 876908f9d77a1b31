//! Medians of repeated runs.

use std::time::Instant;

/// Median seconds of `subject` and of `peer`, which alternate.
pub(crate) fn race<E>(
    repeats: usize,
    mut subject: impl FnMut() -> Result<(), E>,
    mut peer: impl FnMut() -> Result<(), E>,
) -> Result<(f64, f64), E> {
    let (mut subjects, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        subjects.push(seconds(&mut subject)?);
        peers.push(seconds(&mut peer)?);
    }
    Ok((median_value(subjects), median_value(peers)))
}

/// Median seconds of `subject`.
pub(crate) fn median<E>(repeats: usize, mut subject: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    Ok(median_value((0..repeats).map(|_| seconds(&mut subject)).collect::<Result<_, E>>()?))
}

fn seconds<E>(run: &mut impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The median.
pub(crate) fn median_value(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
