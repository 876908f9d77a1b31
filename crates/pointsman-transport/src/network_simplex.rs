//! The transportation problem, solved exactly by the network simplex method.
//!
//! minimise Σ_ij f_ij·c_ij over f ≥ 0 with Σ_j f_ij = s_i and Σ_i f_ij = d_j, for integer masses s, d > 0 of equal
//! sums.
//!
//! Written here because no crate found fits: `wass` regularises (Sinkhorn, `f32`), `emd`, `mcmf` and
//! `rust-optimal-transport` bind C or C++ solvers, the network simplex in Rust of `rs-graph` is under the GPL and that
//! of `fnx-algorithms` under terms narrower than ours, and a general linear-programming crate would see 250,000
//! variables where there are 1,000 nodes.
//!
//! # Method
//! A basis is a spanning tree of the m sources and n sinks; its potentials satisfy u_i + v_j = c_ij on tree arcs. An
//! arc with c_ij < u_i + v_j enters, flow runs round the cycle it closes until a tree arc is empty, and that arc
//! leaves. Arcs are priced row by row, rows in turn, and the best arc of the first row that has one enters: block pricing
//! with blocks of about the square root of the number of arcs.
//!
//! # Termination and exactness
//! The loop does not round, so the textbook argument holds without tolerances.
//!
//! * *Masses* are integers, perturbed as Orden did: every supply becomes K·s_i + 1, the first demand K·d_0 + m, the
//!   other demands K·d_j, with K = 2m + 1. A tree arc without flow would need sources I and sinks J, not none and not
//!   all, of equal mass: K·(s(I) − d(J)) + |I| − m·\[0 ∈ J\] = 0. The last two terms are less than K in size, so
//!   s(I) = d(J) and |I| = m·\[0 ∈ J\], which leaves only none or all. Every tree therefore has positive flow on all its
//!   arcs, every pivot lowers the cost strictly, no tree returns, and there are finitely many trees.
//! * *Costs* are at most [`MAX_COST`] and rounded to multiples of 2⁻⁴⁰. Potentials are alternating sums along tree paths, less than 2¹² in
//!   size for the at most [`MAX_NODES`] nodes, so all of them are exact in `f64`.
//!
//! The optimal tree of the perturbed masses is optimal for the true ones, whose flows are the perturbed ones over K,
//! rounded to nearest (the perturbation moves an arc's flow by at most m < K/2). Under the unrounded costs the plan is
//! within 2⁻⁴⁰ of the optimum per unit of mass.

/// Sources and sinks together; see the module's notes on exactness.
pub(crate) const MAX_NODES: usize = 1000;

/// Masses must sum to at most this, which leaves room for the perturbation in `i64`.
pub(crate) const MAX_MASS: i64 = 1 << 50;

/// The largest cost.
pub(crate) const MAX_COST: f64 = 4.0;

/// Costs are rounded to multiples of one over this.
const COST_STEPS_PER_UNIT: f64 = (1_u64 << 40) as f64;

/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// The flow from a source to a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) source: usize,
    pub(crate) sink: usize,
    pub(crate) mass: i64,
}

/// Solves the problem. `costs` has one row per source and one column per sink, entries in \[0, [`MAX_COST`]\].
///
/// Masses must be positive, of equal sums up to [`MAX_MASS`], with at most [`MAX_NODES`] nodes; there is no plan for
/// an empty side.
pub(crate) fn solve(supply: &[i64], demand: &[i64], mut costs: Vec<f64>) -> Vec<Flow> {
    debug_assert!(supply.iter().chain(demand).all(|&mass| mass > 0));
    debug_assert_eq!(supply.iter().sum::<i64>(), demand.iter().sum::<i64>());
    debug_assert!(costs.iter().all(|cost| (0.0..=MAX_COST).contains(cost)));
    debug_assert!(supply.iter().sum::<i64>() <= MAX_MASS && supply.len() + demand.len() <= MAX_NODES);
    if supply.is_empty() || demand.is_empty() {
        return Vec::new();
    }
    for cost in &mut costs {
        *cost = (*cost * COST_STEPS_PER_UNIT).round() / COST_STEPS_PER_UNIT;
    }
    let scale = 2 * supply.len() as i64 + 1;
    let mut left: Vec<i64> = supply.iter().map(|s| s * scale + 1).collect();
    let mut open: Vec<i64> = demand.iter().map(|d| d * scale).collect();
    open[0] += supply.len() as i64;

    let start = cheapest_open_sinks(&mut left, &mut open, &costs);
    let mut tree = Tree::new(supply.len(), demand.len(), &start, &costs);
    tree.optimise(&costs);
    tree.routes(scale)
}

/// A starting tree: each source in turn ships to the cheapest sink with room until it is empty.
///
/// Every shipment empties a source or fills a sink, and never both before the last one (see the perturbation), so
/// there are m + n − 1 and they form a tree.
fn cheapest_open_sinks(left: &mut [i64], open: &mut [i64], costs: &[f64]) -> Vec<Flow> {
    let mut sinks: Vec<usize> = (0..open.len()).collect();
    let mut start = Vec::with_capacity(left.len() + open.len());
    for (source, (left, row)) in left.iter_mut().zip(costs.chunks_exact(open.len())).enumerate() {
        while *left > 0 {
            let Some(mut at) = (!sinks.is_empty()).then_some(0) else { return start };
            for (k, &sink) in sinks.iter().enumerate() {
                if row[sink] < row[sinks[at]] {
                    at = k;
                }
            }
            let sink = sinks[at];
            let mass = open[sink].min(*left);
            start.push(Flow { source, sink, mass });
            *left -= mass;
            open[sink] -= mass;
            if open[sink] == 0 {
                sinks.swap_remove(at);
            }
        }
    }
    start
}

/// A spanning tree hung from its first sink. Nodes are the sources, then the sinks.
struct Tree {
    sources: usize,
    parent: Vec<u32>,
    /// Flow between a node and its parent.
    flow: Vec<i64>,
    depth: Vec<u32>,
    potential: Vec<f64>,
    // Each node's children, as a doubly linked list.
    child: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    stack: Vec<u32>,
}

impl Tree {
    fn new(sources: usize, sinks: usize, start: &[Flow], costs: &[f64]) -> Self {
        let nodes = sources + sinks;
        let mut neighbours = vec![Vec::new(); nodes];
        for route in start {
            neighbours[route.source].push((sources + route.sink, route.mass));
            neighbours[sources + route.sink].push((route.source, route.mass));
        }
        let mut tree = Self {
            sources,
            parent: vec![NONE; nodes],
            flow: vec![0; nodes],
            depth: vec![0; nodes],
            potential: vec![0.0; nodes],
            child: vec![NONE; nodes],
            next: vec![NONE; nodes],
            previous: vec![NONE; nodes],
            stack: Vec::with_capacity(nodes),
        };
        let mut pending = vec![sources];
        while let Some(node) = pending.pop() {
            for &(other, mass) in &neighbours[node] {
                if other as u32 == tree.parent[node] {
                    continue;
                }
                let (source, sink) = if other < sources { (other, node - sources) } else { (node, other - sources) };
                tree.flow[other] = mass;
                tree.depth[other] = tree.depth[node] + 1;
                tree.potential[other] = costs[source * sinks + sink] - tree.potential[node];
                tree.attach(other, node);
                pending.push(other);
            }
        }
        tree
    }

    /// Pivots until no arc has a negative reduced cost.
    fn optimise(&mut self, costs: &[f64]) {
        let sinks = self.parent.len() - self.sources;
        let mut idle = 0;
        let mut source = 0;
        while idle < self.sources {
            let row = &costs[source * sinks..(source + 1) * sinks];
            match best_in_row(row, &self.potential[self.sources..], self.potential[source]) {
                Some((sink, reduced)) => {
                    self.pivot(source, self.sources + sink, reduced);
                    idle = 0;
                }
                None => idle += 1,
            }
            source = if source + 1 == self.sources { 0 } else { source + 1 };
        }
    }

    /// Brings the arc from `source` to `sink` into the tree.
    fn pivot(&mut self, source: usize, sink: usize, reduced: f64) {
        // The cycle is the two paths up to where they meet. Pushing flow along the new arc takes it from the arcs
        // above `source`'s side that climb from a source, and above `sink`'s side that climb from a sink.
        let (mut a, mut b) = (source, sink);
        let (mut least, mut leaving, mut below_source) = (i64::MAX, source, true);
        while a != b {
            if self.depth[a] >= self.depth[b] {
                if a < self.sources && self.flow[a] < least {
                    (least, leaving, below_source) = (self.flow[a], a, true);
                }
                a = self.parent[a] as usize;
            } else {
                if b >= self.sources && self.flow[b] < least {
                    (least, leaving, below_source) = (self.flow[b], b, false);
                }
                b = self.parent[b] as usize;
            }
        }
        let apex = a;
        let mut node = source;
        while node != apex {
            self.flow[node] += if node < self.sources { -least } else { least };
            node = self.parent[node] as usize;
        }
        node = sink;
        while node != apex {
            self.flow[node] += if node < self.sources { least } else { -least };
            node = self.parent[node] as usize;
        }
        let (low, high) = if below_source { (source, sink) } else { (sink, source) };
        self.hang(low, high, leaving, least);
        self.shift(low, reduced);
    }

    /// Cuts the subtree of `leaving`, which holds `low`, and hangs it by `low` from `high`.
    fn hang(&mut self, low: usize, high: usize, leaving: usize, flow: i64) {
        let (mut node, mut above, mut flow) = (low, high, flow);
        loop {
            let next = self.parent[node] as usize;
            self.detach(node);
            self.attach(node, above);
            flow = std::mem::replace(&mut self.flow[node], flow);
            if node == leaving {
                return;
            }
            (above, node) = (node, next);
        }
    }

    /// Updates the potentials and depths of the subtree of `top`, whose own potential rises by `reduced`.
    fn shift(&mut self, top: usize, reduced: f64) {
        let top_is_source = top < self.sources;
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(top as u32);
        while let Some(node) = stack.pop() {
            let node = node as usize;
            self.potential[node] += if (node < self.sources) == top_is_source { reduced } else { -reduced };
            self.depth[node] = self.depth[self.parent[node] as usize] + 1;
            let mut child = self.child[node];
            while child != NONE {
                stack.push(child);
                child = self.next[child as usize];
            }
        }
        self.stack = stack;
    }

    fn attach(&mut self, node: usize, parent: usize) {
        let first = self.child[parent];
        if first != NONE {
            self.previous[first as usize] = node as u32;
        }
        self.parent[node] = parent as u32;
        self.next[node] = first;
        self.previous[node] = NONE;
        self.child[parent] = node as u32;
    }

    fn detach(&mut self, node: usize) {
        let (previous, next) = (self.previous[node], self.next[node]);
        if previous == NONE {
            self.child[self.parent[node] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    /// The flows of the tree without the perturbation, in the order of the nodes.
    fn routes(&self, scale: i64) -> Vec<Flow> {
        let mut routes = Vec::new();
        for (node, (&parent, &flow)) in self.parent.iter().zip(&self.flow).enumerate() {
            let mass = (flow + scale / 2) / scale;
            if parent != NONE && mass > 0 {
                let other = parent as usize;
                routes.push(Flow { source: node.min(other), sink: node.max(other) - self.sources, mass });
            }
        }
        routes
    }
}

/// The sink of least reduced cost c_j − v_j − u, if that is negative. Ties go to the first.
fn best_in_row(row: &[f64], sinks: &[f64], source: f64) -> Option<(usize, f64)> {
    // Four running minima and no index, so that the compiler can keep them in vector registers; most rows end here.
    let mut least = [source; 4];
    let (rows, potentials) = (row.chunks_exact(4), sinks.chunks_exact(4));
    for (cost, potential) in rows.remainder().iter().zip(potentials.remainder()) {
        least[0] = least[0].min(cost - potential);
    }
    for (cost, potential) in rows.zip(potentials) {
        for lane in 0..4 {
            let value = cost[lane] - potential[lane];
            least[lane] = if value < least[lane] { value } else { least[lane] };
        }
    }
    let least = least[0].min(least[1]).min(least[2].min(least[3]));
    if least >= source {
        return None;
    }
    let sink = row.iter().zip(sinks).position(|(cost, potential)| cost - potential == least)?;
    Some((sink, least - source))
}
