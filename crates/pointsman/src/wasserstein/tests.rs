use proptest::prelude::*;

use super::transport::{self, Flow, MAX_MASS};
use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-10
}

fn exact(a: &Cloud, b: &Cloud) -> f64 {
    let w1 = w1(a, b, 0).unwrap();
    assert!(w1.exact);
    w1.distance
}

/// Binary points.
fn pairs(p: &[f64]) -> Cloud {
    Cloud::uniform(2, &p.iter().flat_map(|&p| [p, 1.0 - p]).collect::<Vec<_>>()).unwrap()
}

/// Snapshot means of items whose label distributions are uniform on the simplex, shrunk towards the first vertex.
fn snapshots(dim: usize, k: usize, n: usize, pull: f64, rng: &mut Pcg64) -> Vec<f64> {
    let mut unit = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut points = vec![0.0; n * dim];
    for point in points.chunks_exact_mut(dim) {
        let mut p: Vec<f64> = (0..dim).map(|_| -(1.0 - unit()).ln()).collect();
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|x| *x *= (1.0 - pull) / sum);
        p[0] += pull;
        for _ in 0..k {
            let mut u = unit();
            let class = p.iter().position(|&x| {
                u -= x;
                u < 0.0
            });
            point[class.unwrap_or(0)] += 1.0 / k as f64;
        }
    }
    points
}

fn cloud(dim: usize, k: usize, n: usize, pull: f64, seed: u64) -> Cloud {
    Cloud::uniform(dim, &snapshots(dim, k, n, pull, &mut Pcg64::seed_from_u64(seed))).unwrap()
}

/// Points of the lattice of k = 6 labels on three classes, so that duplicates are common, or of a fine grid.
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

/// Least mean cost over all matchings of `a`'s points from `row` on with the unused ones of `b`.
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
fn cases_by_hand() {
    assert_eq!(exact(&pairs(&[0.0]), &pairs(&[1.0])), 2.0);
    assert_eq!(exact(&pairs(&[0.25, 0.75]), &pairs(&[0.5])), 0.5);
    assert_eq!(exact(&pairs(&[0.0, 0.5]), &pairs(&[0.5, 0.5, 1.0, 1.0])), 1.0);
    let corners = |weights: &[f64]| Cloud::new(3, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], weights).unwrap();
    // Between corners W1 is total variation times two.
    assert!(near(exact(&corners(&[1.0, 1.0, 2.0]), &corners(&[5.0, 4.0, 1.0])), 0.8));
    // Two to one centre: each corner is 4/3 away from it.
    let centre = Cloud::uniform(3, &[1.0 / 3.0; 3]).unwrap();
    assert!(near(exact(&corners(&[1.0; 3]), &centre), 4.0 / 3.0));
    // A chain: moving everything one step along costs the same as moving the ends.
    let chain = Cloud::uniform(3, &[0.5, 0.5, 0.0, 0.25, 0.5, 0.25]).unwrap();
    let ahead = Cloud::uniform(3, &[0.25, 0.5, 0.25, 0.0, 0.5, 0.5]).unwrap();
    assert!(near(exact(&chain, &ahead), 0.5));
}

/// Values from a general linear-programming solver (HiGHS).
#[test]
fn golden_cases() {
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
fn degenerate_clouds() {
    let same = Cloud::uniform(4, &[0.25; 40]).unwrap();
    assert_eq!(same.distinct(), 1);
    let apart = distance(&same, &same, 5, 1).unwrap();
    assert_eq!((apart.raw, apart.floor, apart.debiased, apart.p_value), (0.0, 0.0, 0.0, 1.0));
    assert_eq!(exact(&Cloud::uniform(1, &[1.0]).unwrap(), &Cloud::uniform(1, &[1.0, 1.0]).unwrap()), 0.0);
    let one = distance(&pairs(&[0.0]), &pairs(&[1.0]), 3, 1).unwrap();
    assert_eq!((one.raw, one.floor, one.p_value), (2.0, 2.0, 1.0));

    // Weights from the smallest to the largest number there is, and their rounding to nothing.
    let extreme = [f64::MAX, f64::MIN_POSITIVE, f64::MAX, 1.0];
    let points = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.5];
    let wild = Cloud::new(3, &points, &extreme).unwrap();
    let tame = Cloud::new(3, &points, &[1.0, 1e-300, 1.0, 1e-300]).unwrap();
    assert!(near(exact(&wild, &tame), 0.0));
    for seed in 0..20 {
        let apart = distance(&wild, &Cloud::uniform(3, &points).unwrap(), 10, seed).unwrap();
        assert!((0.0..=2.0).contains(&apart.floor) && (0.0..=1.0).contains(&apart.p_value), "{apart:?}");
    }
    // Not distinguished: minus zero, the scale of the weights, the order of the items.
    let b = Cloud::new(2, &[1.0, -0.0, 0.5, 0.5], &[6.0, 2.0]).unwrap();
    assert_eq!(b, Cloud::new(2, &[0.5, 0.5, 1.0, 0.0], &[1.0, 3.0]).unwrap());
}

#[test]
fn bad_input_is_refused() {
    assert!(Cloud::new(0, &[], &[]).is_err());
    assert!(Cloud::uniform(0, &[1.0]).is_err());
    assert!(Cloud::uniform(3, &[]).is_err());
    assert!(Cloud::uniform(2, &[0.5, 0.5, 1.0]).is_err());
    assert!(Cloud::new(2, &[0.5, 0.5], &[1.0, 1.0]).is_err());
    assert!(Cloud::new(usize::MAX, &[0.5, 0.5], &[1.0, 1.0]).is_err());
    for bad in [f64::NAN, f64::INFINITY, -0.5, 0.0] {
        assert!(Cloud::new(2, &[0.5, 0.5], &[bad]).is_err());
        let error = Cloud::uniform(2, &[0.5, 0.5, 0.5, bad]).unwrap_err();
        assert!(matches!(error, Error::Value { row: 1, .. }), "{error}");
    }
    let (a, b) = (pairs(&[0.5]), Cloud::uniform(3, &[0.0, 0.0, 1.0]).unwrap());
    assert!(w1(&a, &b, 0).is_err() && distance(&a, &b, 4, 0).is_err());
    assert!(distance(&a, &a, 0, 0).is_err());
}

/// Whether a plan ships all masses and its residual graph has no cycle of negative cost.
fn is_optimal(supply: &[i64], demand: &[i64], costs: &[f64], plan: &[Flow]) -> bool {
    let (mut out, mut into) = (vec![0; supply.len()], vec![0; demand.len()]);
    for route in plan {
        out[route.source] += route.mass;
        into[route.sink] += route.mass;
    }
    // Bellman and Ford: without such a cycle, labels settle within as many rounds as there are nodes.
    let (mut u, mut v) = (vec![0.0_f64; supply.len()], vec![0.0_f64; demand.len()]);
    for _ in 0..=supply.len() + demand.len() {
        let mut settled = true;
        for (i, row) in costs.chunks_exact(demand.len()).enumerate() {
            for (j, cost) in row.iter().enumerate() {
                if u[i] + cost < v[j] - 1e-9 {
                    (v[j], settled) = (u[i] + cost, false);
                }
            }
        }
        for route in plan {
            let back = v[route.sink] - costs[route.source * demand.len() + route.sink];
            if back < u[route.source] - 1e-9 {
                (u[route.source], settled) = (back, false);
            }
        }
        if settled {
            return out == supply && into == demand;
        }
    }
    false
}

#[test]
fn transport_is_optimal_when_ties_and_degeneracy_abound() {
    let mut rng = Pcg64::seed_from_u64(3);
    for case in 0..300_usize {
        let (m, n) = (1 + case % 17, 1 + case % 23);
        let mut random = |range: u64| (rng.next_u64() % range) as i64;
        // Costs of few values; masses equal, small, or of very different sizes.
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
        let plan = transport::solve(&supply, &demand, costs.clone());
        assert!(is_optimal(&supply, &demand, &costs, &plan), "case {case}");
    }
    let plan = transport::solve(&[MAX_MASS - 1, 1], &[1, MAX_MASS - 1], vec![0.0, 2.0, 2.0, 0.0]);
    assert!(is_optimal(&[MAX_MASS - 1, 1], &[1, MAX_MASS - 1], &[0.0, 2.0, 2.0, 0.0], &plan));
    assert!(transport::solve(&[], &[], Vec::new()).is_empty());
}

proptest! {
    #[test]
    fn transport_finds_the_best_matching((a, b) in (1..=6_usize).prop_flat_map(|n| (points(n..=n), points(n..=n)))) {
        let n = a.len() / 3;
        let best = best_matching(&a, &b, &mut vec![false; n]) / n as f64;
        let found = exact(&Cloud::uniform(3, &a).unwrap(), &Cloud::uniform(3, &b).unwrap());
        prop_assert!(near(found, best), "{found} against {best}");
    }

    #[test]
    fn transport_agrees_with_the_line(
        a in prop::collection::vec((0.0..=1.0, 0.1..9.0), 1..40),
        b in prop::collection::vec((0.0..=1.0, 0.1..9.0), 1..40),
    ) {
        let embed = |items: &[(f64, f64)], dim: usize| {
            let points: Vec<f64> = items.iter().flat_map(|(p, _)| [*p, 1.0 - p, 0.0].into_iter().take(dim)).collect();
            Cloud::new(dim, &points, &items.iter().map(|item| item.1).collect::<Vec<_>>()).unwrap()
        };
        prop_assert!(near(exact(&embed(&a, 2), &embed(&b, 2)), exact(&embed(&a, 3), &embed(&b, 3))));
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

    /// ‖p − q‖₁ ≥ 2|p_c − q_c|, since the differences sum to zero; and a marginal as two classes carries the 2.
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

#[test]
fn the_floor_falls_with_n_and_rises_with_the_classes() {
    let floor = |dim, n| distance(&cloud(dim, 20, n, 0.0, 1), &cloud(dim, 20, n, 0.0, 2), 10, 5).unwrap().floor;
    let floors = [floor(2, 40), floor(2, 160), floor(3, 40), floor(3, 160), floor(10, 40), floor(10, 160)];
    for pair in floors.chunks_exact(2) {
        assert!(pair[1] < pair[0], "{floors:?}");
    }
    assert!(floors[0] < floors[2] && floors[2] < floors[4], "{floors:?}");
}

#[test]
fn p_values_are_uniform_under_the_null() {
    let trials = 150;
    let mut p_values = Vec::new();
    let mut debiased = 0.0;
    for seed in 0..trials {
        let (a, b) = (cloud(3, 5, 30, 0.0, 2 * seed), cloud(3, 5, 40, 0.0, 2 * seed + 1));
        let apart = distance(&a, &b, 19, seed).unwrap();
        assert_eq!((apart.n, apart.n_other), (30, 40));
        p_values.push(apart.p_value);
        debiased += apart.debiased / apart.floor / trials as f64;
    }
    let mean = p_values.iter().sum::<f64>() / trials as f64;
    let rejected = p_values.iter().filter(|&&p| p <= 0.1).count();
    assert!((0.43..0.59).contains(&mean), "{mean}");
    assert!((5..=27).contains(&rejected), "{rejected} of {trials}");
    assert!(debiased < 0.5, "{debiased}");
}

#[test]
fn a_real_difference_is_found_and_debiased() {
    // Pulling a share t towards a vertex moves the law by 2·t·E[1 − p_0] = 2·t·(1 − 1/C).
    let (a, b) = (cloud(3, 20, 150, 0.0, 1), cloud(3, 20, 150, 0.3, 2));
    let apart = distance(&a, &b, DEFAULT_SPLITS, 1).unwrap();
    assert!(apart.p_value < 0.03, "{apart:?}");
    assert!((apart.debiased - 0.4).abs() < 0.08, "{apart:?}");
    assert!(apart.floor < apart.raw && near(apart.raw, exact(&a, &b)));
}

#[test]
fn large_clouds_are_subsampled() {
    let (a, b) = (cloud(3, 400, 900, 0.0, 1), cloud(3, 400, 60, 0.5, 2));
    assert!(w1(&a, &b, 0).unwrap().exact);
    let (a, b) = (cloud(3, 400, 1200, 0.0, 1), cloud(3, 400, 60, 0.5, 2));
    let (one, again, other) = (w1(&a, &b, 1).unwrap(), w1(&a, &b, 1).unwrap(), w1(&a, &b, 2).unwrap());
    assert!(!one.exact && one == again && one != other);
    assert!((one.distance - other.distance).abs() < 0.05 && (one.distance - 2.0 / 3.0).abs() < 0.15, "{one:?}");
    let apart = distance(&a, &b, 3, 1).unwrap();
    assert!(!apart.exact && apart.raw == one.distance && apart.p_value == 0.25, "{apart:?}");
}

#[test]
fn threads_and_row_order_change_no_bit() {
    let (dim, mut rng) = (4, Pcg64::seed_from_u64(8));
    let points = snapshots(dim, 7, 60, 0.0, &mut rng);
    let weights: Vec<f64> = (0..60).map(|_| 0.5 + (rng.next_u64() % 100) as f64 / 7.0).collect();
    let reversed: Vec<f64> = points.chunks_exact(dim).rev().flatten().copied().collect();
    let back: Vec<f64> = weights.iter().rev().copied().collect();
    let (a, turned) = (Cloud::new(dim, &points, &weights).unwrap(), Cloud::new(dim, &reversed, &back).unwrap());
    let b = cloud(dim, 7, 50, 0.1, 9);
    let with = |threads, a: &Cloud| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| distance(a, &b, 20, 4)).unwrap()
    };
    let apart = with(1, &a);
    assert_eq!(apart, with(4, &a));
    assert_eq!(apart, with(3, &turned));
    // Pinned: a change here changes every report ever printed.
    assert!(near(apart.raw, 0.407508345459216) && near(apart.floor, 0.2982170925328703), "{apart:?}");
}
