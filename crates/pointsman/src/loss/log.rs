//! The bounded cross-entropy, which is still proper.
//!
//! Clipping small probabilities is not proper; the Bayes act within {a : a_c ≥ ε} is. It is a projection: classes below ε are
//! raised to ε and the others are scaled down, until no class is below ε.

/// Writes argmin over {a on the simplex, a_c ≥ floor} of −Σ q_c ln a_c into `out`.
///
/// Classes with q_c < floor/scale are clipped. Clipping lowers the scale, which can clip more classes. The clipped set only
/// grows, so there are at most as many rounds as classes.
pub(crate) fn project_into(q: &[f64], floor: f64, out: &mut [f64]) {
    let (mut scale, mut clipped) = (1.0, 0);
    loop {
        let threshold = floor / scale;
        let (mut below, mut free) = (0, 0.0);
        for &x in q {
            if x < threshold {
                below += 1;
            } else {
                free += x;
            }
        }
        // In exact arithmetic the set only grows; with rounding the count could alternate forever.
        if below <= clipped {
            out.iter_mut().zip(q).for_each(|(o, &x)| *o = if x < threshold { floor } else { x * scale });
            return;
        }
        clipped = below;
        scale = (1.0 - f64::from(clipped) * floor) / free;
    }
}

/// −Σ p_c ln a_c with a the projection of p.
pub(crate) fn entropy(p: &[f64], floor: f64) -> f64 {
    // If only zeros are clipped, a = p·(1 − zeros·floor), and zeros contribute nothing.
    let (mut zeros, mut smallest) = (0_usize, f64::INFINITY);
    for &x in p {
        if x == 0.0 {
            zeros += 1;
        } else {
            smallest = smallest.min(x);
        }
    }
    let scale = 1.0 - zeros as f64 * floor;
    if smallest * scale >= floor {
        let sum: f64 = p.iter().filter(|x| **x > 0.0).map(|x| x * x.ln()).sum();
        return if zeros == 0 { -sum } else { -sum - scale.ln() };
    }
    let mut a = vec![0.0; p.len()];
    project_into(p, floor, &mut a);
    -p.iter().zip(&a).map(|(x, a)| x * a.ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projection_keeps_the_floor_and_the_sum() {
        for q in
            [vec![1.0, 0.0, 0.0], vec![0.999_999_5, 5e-7, 0.0], vec![0.2, 0.3, 0.5], vec![0.1, 0.1 + 1e-9, 0.8 - 1e-9]]
        {
            for floor in [1e-6, 1e-3, 0.1] {
                let mut a = vec![0.0; 3];
                project_into(&q, floor, &mut a);
                assert!((a.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{q:?} {floor} {a:?}");
                assert!(a.iter().all(|&x| x >= floor * (1.0 - 1e-15)), "{q:?} {floor} {a:?}");
            }
        }
    }

    #[test]
    fn entropy_shortcut_agrees_with_the_projection() {
        for p in [vec![1.0, 0.0, 0.0], vec![0.5, 0.5, 0.0], vec![0.2, 0.3, 0.5], vec![1.0 - 1e-7, 1e-7, 0.0]] {
            let mut a = vec![0.0; 3];
            project_into(&p, 1e-6, &mut a);
            let long: f64 = -p.iter().zip(&a).map(|(x, a)| x * a.ln()).sum::<f64>();
            assert!((entropy(&p, 1e-6) - long).abs() < 1e-14);
        }
    }
}
