use proptest::prelude::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::network_simplex::{self, Flow, MAX_MASS};
use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-10
}

fn exact(a: &Cloud, b: &Cloud) -> f64 {
    w1(a, b).unwrap()
}

/// Binary points.
fn pairs(p: &[f64]) -> Cloud {
    Cloud::uniform(2, &p.iter().flat_map(|&p| [p, 1.0 - p]).collect::<Vec<_>>()).unwrap()
}

/// Points of a coarse grid with k = 6, so that duplicates are common, or of a fine grid.
fn points(n: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<f64>> {
    let point = |k: u32| {
        (0..=k, 0..=k).prop_map(move |(a, b)| {
            let (low, high) = (a.min(b), a.max(b));
            [low, high - low, k - high].map(|count| f64::from(count) / f64::from(k))
        })
    };
    prop_oneof![prop::collection::vec(point(6), n.clone()), prop::collection::vec(point(9973), n)]
        .prop_map(|points| points.concat())
}

fn weighted(n: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Cloud> {
    (points(n), prop::collection::vec(1e-3..1e3, 64), any::<bool>()).prop_map(|(points, weights, equal)| {
        let n = points.len() / 3;
        if equal { Cloud::uniform(3, &points) } else { Cloud::new(3, &points, &weights[..n]) }.unwrap()
    })
}

/// The smallest total cost over all matchings of the points of `a` with the unused points of `b`.
fn best_matching(a: &[f64], b: &[f64], used: &mut [bool]) -> f64 {
    let Some((point, rest)) = a.split_at_checked(3) else { return 0.0 };
    let mut best = f64::INFINITY;
    for j in 0..used.len() {
        if !used[j] {
            used[j] = true;
            let cost: f64 = point.iter().zip(&b[3 * j..]).map(|(x, y)| (x - y).abs()).sum();
            best = best.min(cost + best_matching(rest, b, used));
            used[j] = false;
        }
    }
    best
}

#[test]
fn distances_match_cases_by_hand() {
    assert_eq!(exact(&pairs(&[0.0]), &pairs(&[1.0])), 2.0);
    assert_eq!(exact(&pairs(&[0.25, 0.75]), &pairs(&[0.5])), 0.5);
    assert_eq!(exact(&pairs(&[0.0, 0.5]), &pairs(&[0.5, 0.5, 1.0, 1.0])), 1.0);
    let corners = |weights: &[f64]| Cloud::new(3, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], weights).unwrap();
    // Between corners W1 is total variation times two.
    assert!(near(exact(&corners(&[1.0, 1.0, 2.0]), &corners(&[5.0, 4.0, 1.0])), 0.8));
    // Each corner is 4/3 away from the centre.
    let centre = Cloud::uniform(3, &[1.0 / 3.0; 3]).unwrap();
    assert!(near(exact(&corners(&[1.0; 3]), &centre), 4.0 / 3.0));
    // Moving each point one step along a chain costs the same as moving the end points.
    let chain = Cloud::uniform(3, &[0.5, 0.5, 0.0, 0.25, 0.5, 0.25]).unwrap();
    let ahead = Cloud::uniform(3, &[0.25, 0.5, 0.25, 0.0, 0.5, 0.5]).unwrap();
    assert!(near(exact(&chain, &ahead), 0.5));
}

/// Values from a general linear-programming solver (HiGHS).
#[test]
fn distances_match_golden_cases() {
    let scaled = |counts: Vec<[usize; 4]>| -> Vec<f64> {
        let point = |c: [usize; 4]| c.map(|x| x as f64 / c.iter().sum::<usize>() as f64);
        counts.into_iter().flat_map(point).collect()
    };
    let p = scaled((0..12).map(|i| [i * 7 % 11, i * 3 % 5, i * i % 7, 1]).collect());
    let q = scaled((0..9).map(|i| [i * 5 % 9, i * 2 % 7, 1, i * i % 5]).collect());
    let v: Vec<f64> = (0..12).map(|i| f64::from(1 + i % 4)).collect();
    let w: Vec<f64> = (0..9).map(|i| 1.0 / f64::from(1 + i)).collect();
    assert!(near(exact(&Cloud::new(4, &p, &v).unwrap(), &Cloud::new(4, &q, &w).unwrap()), 0.7079548144721051));
    assert!(near(exact(&Cloud::uniform(4, &p).unwrap(), &Cloud::uniform(4, &q).unwrap()), 0.5265779246171404));
}

#[test]
fn invalid_input_is_refused() {
    let shape =
        |dim, points: &[f64], weights: &[f64]| matches!(Cloud::new(dim, points, weights), Err(Error::Shape { .. }));
    assert!(shape(0, &[], &[]) && shape(3, &[], &[]) && shape(2, &[0.5, 0.5], &[1.0, 1.0]));
    assert!(shape(usize::MAX, &[0.5, 0.5], &[1.0, 1.0]));
    assert!(Cloud::uniform(0, &[1.0]).is_err() && Cloud::uniform(2, &[0.5, 0.5, 1.0]).is_err());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e101] {
        let refused = Cloud::uniform(2, &[0.5, 0.5, 0.5, bad]);
        assert!(matches!(refused, Err(Error::Coordinate { row: 1, coordinate: 1, .. })), "{refused:?}");
    }
    for bad in [f64::NAN, f64::INFINITY, -0.5, 0.0] {
        assert!(matches!(Cloud::new(1, &[0.5, 0.5], &[1.0, bad]), Err(Error::Weight { row: 1, .. })));
    }
    let (a, b) = (pairs(&[0.5]), Cloud::uniform(3, &[0.0, 0.0, 1.0]).unwrap());
    assert_eq!(w1(&a, &b), Err(Error::Dimensions { first: 2, second: 3 }));
}

#[test]
fn parts_must_fit_the_pool() {
    let (pool, parts) = Pool::new(&pairs(&[0.5]), &pairs(&[0.25])).unwrap();
    assert_eq!(pool.distinct(), 2);
    assert_eq!(parts, [Part::Second, Part::First]);
    for parts in [&[][..], &[Part::First], &[Part::First; 2], &[Part::First, Part::Neither]] {
        assert_eq!(pool.w1(parts), Err(Error::Parts { items: 2, parts: parts.len() }));
        assert!(pool.w1_of_first_coordinate(parts).is_err());
    }
}

#[test]
fn too_many_points_are_refused() {
    let line = |n: u32, y: f64| {
        Cloud::uniform(2, &(0..n).flat_map(|i| [f64::from(i) / f64::from(n), y]).collect::<Vec<_>>()).unwrap()
    };
    let half = MAX_POINTS as u32 / 2;
    assert!(near(exact(&line(half, 0.0), &line(half, 1.0)), 1.0));
    assert_eq!(w1(&line(half, 0.0), &line(half + 1, 1.0)), Err(Error::TooManyPoints { points: MAX_POINTS + 1 }));
    // Points with no mass to move do not count.
    assert_eq!(exact(&line(3 * half, 0.0), &line(3 * half, 0.0)), 0.0);
}

#[test]
fn stored_distances_change_no_bit() {
    let mut rng = Pcg64::seed_from_u64(5);
    let mut random = |n: usize| (0..n).map(|_| (rng.next_u64() % 1000) as f64 / 7.0).collect::<Vec<_>>();
    let (a, b) = (Cloud::uniform(3, &random(90)).unwrap(), Cloud::uniform(3, &random(60)).unwrap());
    let (pool, parts) = Pool::new(&a, &b).unwrap();
    assert_eq!(pool.w1(&parts), pool.clone().with_distances().w1(&parts));
}

/// Minus zero, the scale of the weights and the order of the items have no effect.
#[test]
fn equal_distributions_are_equal_clouds() {
    let b = Cloud::new(2, &[1.0, -0.0, 0.5, 0.5], &[6.0, 2.0]).unwrap();
    assert_eq!(b, Cloud::new(2, &[0.5, 0.5, 1.0, 0.0], &[1.0, 3.0]).unwrap());
    let same = Cloud::uniform(4, &[0.25; 40]).unwrap();
    assert_eq!((same.distinct(), exact(&same, &same)), (1, 0.0));
}

/// Whether a plan ships all masses and its residual graph has no cycle of negative cost.
fn is_optimal(supply: &[i64], demand: &[i64], costs: &[f64], plan: &[Flow]) -> bool {
    let (mut out, mut into) = (vec![0; supply.len()], vec![0; demand.len()]);
    for route in plan {
        out[route.source] += route.mass;
        into[route.sink] += route.mass;
    }
    // Bellman–Ford: without such a cycle, distances converge within as many rounds as there are nodes.
    let (mut u, mut v) = (vec![0.0_f64; supply.len()], vec![0.0_f64; demand.len()]);
    for _ in 0..=supply.len() + demand.len() {
        let mut converged = true;
        for (i, row) in costs.chunks_exact(demand.len()).enumerate() {
            for (j, cost) in row.iter().enumerate() {
                if u[i] + cost < v[j] - 1e-9 {
                    (v[j], converged) = (u[i] + cost, false);
                }
            }
        }
        for route in plan {
            let back = v[route.sink] - costs[route.source * demand.len() + route.sink];
            if back < u[route.source] - 1e-9 {
                (u[route.source], converged) = (back, false);
            }
        }
        if converged {
            return out == supply && into == demand;
        }
    }
    false
}

#[test]
fn plan_is_optimal_with_ties_and_degeneracy() {
    let mut rng = Pcg64::seed_from_u64(3);
    for case in 0..300_usize {
        let (m, n) = (1 + case % 17, 1 + case % 23);
        let mut random = |range: u64| (rng.next_u64() % range) as i64;
        // Few distinct costs; masses that are equal, small, or of very different sizes.
        let costs: Vec<f64> = (0..m * n).map(|_| random(1 + case as u64 % 9) as f64 / 4.0).collect();
        let mut mass = || match case % 3 {
            0 => 1,
            1 => 1 + random(3),
            _ => 1 + (random(1 << 20) >> random(20)),
        };
        let mut supply: Vec<i64> = (0..m).map(|_| mass()).collect();
        let mut demand: Vec<i64> = (0..n).map(|_| mass()).collect();
        let (s, d): (i64, i64) = (supply.iter().sum(), demand.iter().sum());
        supply.iter_mut().for_each(|x| *x *= d);
        demand.iter_mut().for_each(|x| *x *= s);
        let plan = network_simplex::solve(&supply, &demand, costs.clone());
        assert!(is_optimal(&supply, &demand, &costs, &plan), "case {case}");
    }
    let plan = network_simplex::solve(&[MAX_MASS - 1, 1], &[1, MAX_MASS - 1], vec![0.0, 2.0, 2.0, 0.0]);
    assert!(is_optimal(&[MAX_MASS - 1, 1], &[1, MAX_MASS - 1], &[0.0, 2.0, 2.0, 0.0], &plan));
    assert!(network_simplex::solve(&[], &[], Vec::new()).is_empty());
}

proptest! {
    #[test]
    fn w1_equals_the_best_matching((a, b) in (1..=6_usize).prop_flat_map(|n| (points(n..=n), points(n..=n)))) {
        let n = a.len() / 3;
        let best = best_matching(&a, &b, &mut vec![false; n]) / n as f64;
        let found = exact(&Cloud::uniform(3, &a).unwrap(), &Cloud::uniform(3, &b).unwrap());
        prop_assert!(near(found, best), "{found} against {best}");
    }

    #[test]
    fn w1_in_more_dimensions_agrees_with_one_dimension(
        a in prop::collection::vec((0.0..=1.0, 0.1..9.0), 1..40),
        b in prop::collection::vec((0.0..=1.0, 0.1..9.0), 1..40),
    ) {
        let embed = |items: &[(f64, f64)], dim: usize| {
            let points: Vec<f64> = items.iter().flat_map(|(p, _)| [*p, 1.0 - p, 0.0].into_iter().take(dim)).collect();
            Cloud::new(dim, &points, &items.iter().map(|item| item.1).collect::<Vec<_>>()).unwrap()
        };
        let line = 2.0 * exact(&embed(&a, 1), &embed(&b, 1));
        for dim in [2, 3] {
            let (pool, parts) = Pool::new(&embed(&a, dim), &embed(&b, dim)).unwrap();
            prop_assert!(near(pool.w1(&parts).unwrap(), line));
            prop_assert!(near(2.0 * pool.w1_of_first_coordinate(&parts).unwrap(), line));
        }
    }

    /// W1 of points t·x is |t| times that of points x, and shifting both clouds has no effect.
    #[test]
    fn w1_scales_with_the_points_and_ignores_shifts(a in weighted(1..=12), b in weighted(1..=12), exponent in -20..300, shift in -3.0..3.0) {
        let (scale, apart) = (f64::from(exponent).exp2(), exact(&a, &b));
        let moved = |cloud: &Cloud, f: &dyn Fn(f64) -> f64| {
            let (points, weights): (Vec<Vec<f64>>, Vec<f64>) =
                cloud.iter().map(|(point, weight)| (point.iter().map(|x| f(*x)).collect(), weight)).unzip();
            Cloud::new(3, &points.concat(), &weights).unwrap()
        };
        let scaled = exact(&moved(&a, &|x| scale * x), &moved(&b, &|x| scale * x));
        prop_assert!((scaled / scale - apart).abs() < 1e-10 + 1e-9 / scale, "{scaled} against {apart} times {scale}");
        prop_assert!(near(exact(&moved(&a, &|x| x + shift), &moved(&b, &|x| x + shift)), apart));
    }

    #[test]
    fn w1_is_a_metric(a in weighted(1..=12), b in weighted(1..=12), c in weighted(1..=12)) {
        let (ab, bc, ac) = (exact(&a, &b), exact(&b, &c), exact(&a, &c));
        prop_assert!(near(ab, exact(&b, &a)));
        prop_assert_eq!(exact(&a, &a), 0.0);
        prop_assert!(ac <= ab + bc + 1e-10);
        prop_assert!((0.0..=2.0 + 1e-10).contains(&ab));
        if a != b && a.distinct() == a.items() && b.distinct() == b.items() {
            prop_assert!(ab > 0.0);
        }
    }

    /// ‖p − q‖₁ ≥ 2|p_c − q_c|, because the differences sum to zero.
    #[test]
    fn marginals_bound_w1_from_below(a in weighted(1..=30), b in weighted(1..=30)) {
        let whole = exact(&a, &b);
        for class in 0..3 {
            let marginal = |cloud: &Cloud| {
                let (points, weights): (Vec<_>, Vec<_>) = cloud.iter().map(|(p, w)| ([p[class], 1.0 - p[class]], w)).unzip();
                Cloud::new(2, &points.concat(), &weights).unwrap()
            };
            prop_assert!(exact(&marginal(&a), &marginal(&b)) <= whole + 1e-10);
        }
    }
}
