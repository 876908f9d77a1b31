"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data.losses) return;
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const NS = "http://www.w3.org/2000/svg";
  const ACTION = { p: ["predict", "predict", "p"], r: ["route", "route", "r"], a: ["abstain", "abstain", "a"],
    "?": ["undetermined", "other", "u"], "-": ["empty: falls back", "other", "u"] };
  // Of several routes each has a digit, its place in the task.
  const several = data.task.routes.length > 1;
  const action = (letter) => /[0-9]/.test(letter) ? ["route: " + short(data.task.routes[Number(letter)].name, 24), "route", "r"] : ACTION[letter];
  const STRATEGY = { "higher-order": "predict", "total-uncertainty": "red", "cell-optimal": "green", "pointwise-optimal": "ink", random: "other" };
  // Costs that one label an item does not tell are dashes.
  const untold = data.unidentified, oracleTold = !untold.some((name) => name.startsWith("always-route"));
  // A forest decides row by row: the best its cells allow is no measure for it.
  const byRow = data.router.partition.startsWith("forest"), told = (name) => !byRow || name !== "cell-optimal";
  const DASH = { "cell-optimal": "8 5", "pointwise-optimal": "8 5", random: "2 5" };
  const cellOf = data.drawn.map((id) => data.cells[id]);
  const state = { loss: 0, route: 0, abstain: 0, cell: -1, sort: "share", down: true };

  // Words and numbers.
  const num = (x, digits) => x === null || x === undefined ? "–" : String(Number(x.toPrecision(digits || 4)));
  // Estimates: no more decimals than anybody can use.
  const est = (x) => x === null || x === undefined ? "–" : Math.abs(x) < 1 ? String(Number(x.toFixed(4))) : num(x, 5);
  const pct = (x) => (100 * x).toFixed(1) + " %";
  const price = (x) => x === null ? "never" : num(x);
  const short = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  function html(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
    node.append(...children);
    return node;
  }
  function svg(tag, attributes, text) {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  }
  const loss = () => data.losses[state.loss];
  const at = (route, abstain) => route * loss().grid.abstain_prices.length + abstain;
  const letters = () => loss().grid.actions[at(state.route, state.abstain)];

  // A frame with axes; x and y map data to pixels.
  function frame(host, name, box, xLabel, yLabel, xText, yText) {
    const W = 620, H = box.height || 400, L = 66, R = 20, T = 34, B = 54;
    const root = svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": name });
    const x = (v) => L + (v - box.x[0]) / (box.x[1] - box.x[0]) * (W - L - R);
    const y = (v) => H - B - (v - box.y[0]) / (box.y[1] - box.y[0]) * (H - T - B);
    for (const v of ticks(box.x)) {
      root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: T, y2: H - B }),
        svg("text", { class: "tick", x: x(v), y: H - B + 18, "text-anchor": "middle" }, (xText || num)(v)));
    }
    for (const v of ticks(box.y)) {
      root.append(svg("line", { class: "grid", x1: L, x2: W - R, y1: y(v), y2: y(v) }),
        svg("text", { class: "tick", x: L - 7, y: y(v) + 4, "text-anchor": "end" }, (yText || num)(v)));
    }
    root.append(svg("line", { class: "axis", x1: L, x2: W - R, y1: H - B, y2: H - B }), svg("line", { class: "axis", x1: L, x2: L, y1: T, y2: H - B }),
      svg("text", { x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle" }, xLabel), svg("text", { x: 4, y: 15 }, yLabel));
    $(host).replaceChildren(root);
    const path = (points, colour, more) => root.append(svg("path", Object.assign({ fill: "none", stroke: colour, "stroke-width": 2.4,
      "stroke-linejoin": "round", d: points.map((p, i) => (i ? "L" : "M") + x(p[0]).toFixed(1) + " " + y(p[1]).toFixed(1)).join("") }, more || {})));
    return { root, x, y, path, left: L, right: W - R, top: T, bottom: H - B };
  }
  function ticks([from, to]) {
    const rough = (to - from) / 5, unit = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * unit).find((s) => s >= rough) || rough;
    const out = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; i++) out.push(i * step);
    return out;
  }
  const reach = (values, floor) => 1.1 * Math.max(floor, ...values.filter((v) => v !== null));
  function key(host, entries) {
    $(host).replaceChildren(...entries.map(([text, colour, style]) => {
      const mark = html("i", { class: style === "dot" ? "dot" : "" });
      if (style === "dot") mark.style.background = colour; else { mark.style.borderTopColor = colour; mark.style.borderTopStyle = style || "solid"; }
      return html("span", {}, mark, text);
    }));
  }

  function landscape() {
    const { grid, cells, unit } = loss();
    // Regions are those of decisions: a limit counts with the price it comes to.
    const alpha = grid.decision_prices[at(state.route, state.abstain)], beta = grid.abstain_prices[state.abstain];
    const own0 = [grid.decision_prices[at(...grid.own)], grid.abstain_prices[grid.own[1]]];
    const box = { x: [0, reach(cells.map((c) => c.irreducible).concat(own0[1]), 1e-6)], y: [0, reach(cells.map((c) => c.reducible).concat(own0[0]), 1e-6)] };
    const f = frame("landscape", "Decision landscape", box, "irreducible loss (" + unit + ")", "reducible loss (" + unit + ")");
    // The regions: corners are looked up and joined; what leaves the frame is clipped.
    const clip = svg("clipPath", { id: "inside" });
    clip.append(svg("rect", { x: f.left, y: f.top, width: f.right - f.left, height: f.bottom - f.top }));
    const group = svg("g", { "clip-path": "url(#inside)", "fill-opacity": 0.16 });
    const polygon = (points, colour) => group.append(svg("polygon", { fill: css(colour), points: points.map((p) => f.x(p[0]) + "," + f.y(p[1])).join(" ") }));
    const far = box.x[1], high = box.y[1];
    const top = alpha === null ? (beta === null ? high : beta) : (beta === null || alpha < beta ? alpha : beta);
    // An oracle that loses something else than the irreducible loss has no region in this plane.
    if (grid.bayes && beta === null) {
      polygon([[0, 0], [far, 0], [far, top], [0, top]], "predict");
      if (alpha !== null && top < high) polygon([[0, top], [far, top], [far, high], [0, high]], "route");
    } else if (grid.bayes) {
      const bend = grid.corners[at(state.route, state.abstain)] || 0;
      const roof = Math.max(high, top), wall = Math.max(far, beta);
      polygon([[0, 0], [0, top], [bend, top], [beta, 0]], "predict");
      if (bend > 0) polygon([[0, top], [bend, top], [bend, roof], [0, roof]], "route");
      polygon([[bend, top], [bend, roof], [wall, roof], [wall, 0], [beta, 0]], "abstain");
    }
    f.root.append(clip, group);
    const taken = letters();
    // Large circles first, so that small ones stay within reach.
    const order = cells.map((_, i) => i).sort((a, b) => cellOf[b].share - cellOf[a].share);
    for (const i of order) {
      const c = cells[i];
      if (c.irreducible === null || c.reducible === null) continue;
      const colour = css(action(taken[i])[1]);
      const dot = svg("circle", { class: "cell" + (i === state.cell ? " on" : ""), cx: f.x(c.irreducible), cy: f.y(c.reducible),
        r: Math.min(24, Math.max(3, 58 * Math.sqrt(cellOf[i].share))), fill: colour, stroke: colour, "data-cell": i });
      dot.append(svg("title", {}, short(cellOf[i].name, 80) + ": " + action(taken[i])[0]));
      f.root.append(dot);
    }
    key("landscape-key", [["predict", css("predict"), "dot"], ["route", css("route"), "dot"], ["abstain", css("abstain"), "dot"]]);
  }

  function cell() {
    const i = state.cell;
    if (i < 0) return;
    const c = cellOf[i], l = loss().cells[i], letter = letters()[i], grid = loss().grid;
    const list = html("dl");
    const line = (name, ...value) => list.append(html("dt", {}, name), html("dd", {}, ...value));
    line("cell", short(c.name, 200));
    line("action", html("span", { class: "tag " + action(letter)[2] }, action(letter)[0]));
    line("rows", c.rows + " stored (" + c.support + "), " + c.held_out.rows + " held out, " + pct(c.share) + " of the traffic");
    line("irreducible", est(l.irreducible));
    line("reducible", est(l.reducible));
    line("cost of predicting", est(l.total));
    line(data.task.routes.length > 1 ? "cheapest route" : "cost of routing", est(grid.route_costs[state.route][i]));
    line("cost of abstaining", price(grid.abstain_prices[state.abstain]));
    if (state.loss === 0) line("held out", "irreducible " + est(c.held_out.irreducible) + ", predicting " + est(c.held_out.total));
    $("cell").replaceChildren(list);
    const m = data.mixtures[i], bars = (m.stored || m.held_out || [0]).length;
    const f = frame("mixture", "Stored and held-out mixture", { x: [0, 1], y: [0, reach((m.stored || []).concat(m.held_out || []), 0.05)], height: 260 },
      "share of an item’s labels: " + short(m.class, 30), "share of the items", num, (v) => Math.round(100 * v) + " %");
    (m.stored || []).forEach((v, b) => f.root.append(svg("rect", { x: f.x(b / bars), width: f.x(1 / bars) - f.x(0) - 1, y: f.y(v), height: f.y(0) - f.y(v), fill: css("sky"), "fill-opacity": 0.6 })));
    if (m.held_out) f.path(m.held_out.flatMap((v, b) => [[b / bars, v], [(b + 1) / bars, v]]), css("red"), { "stroke-width": 2 });
    $("mixture-caption").textContent = "Shaded: what the cell remembers. Line: what came. Mass in the middle is disagreement among people; mass at both ends is what an oracle resolves.";
  }

  // What a limit on routing does at these prices, in a sentence.
  function limit(grid, here) {
    const { budget, target_loss: target } = data.task, price = grid.surcharge[here];
    if (target !== undefined && state.loss > 0) return " The target loss is in the unit of the task’s loss: here there is none.";
    if (budget === undefined && target === undefined || grid.route_prices[state.route] === null) return "";
    if (price === null) return " The target loss of " + num(target) + " cannot be reached at these prices.";
    return budget !== undefined ? " Budget: at most " + pct(budget) + " of traffic like the calibration rows is routed, as if routing cost " + num(price) + " more; that is not paid."
      : " Target: the least routing that keeps the expected loss at " + num(target) + ", as if every route cost " + num(price) + "; its own price is paid.";
  }

  function money() {
    const { grid, unit, loss: name } = loss(), here = at(state.route, state.abstain), reached = grid.router[here] !== null;
    const routed = (route) => several ? "routed to " + short(route.name, 40) : "routed";
    const told = (value) => oracleTold ? value : null, router = oracleTold || grid.routed[here] === 0 ? grid.router[here] : null;
    const always = [["always-predict", grid.always_predict]];
    for (const route of grid.routes) if (route.always[state.route] !== null) always.push(["always-route:" + short(route.name, 40), told(route.always[state.route])]);
    if (!grid.routes.length && grid.always_route[state.route] !== null) always.push(["always-route", told(grid.always_route[state.route])]);
    if (grid.always_abstain[state.abstain] !== null) always.push(["always-abstain", grid.always_abstain[state.abstain]]);
    const shares = [["p", "predicted", grid.predicted[here]]];
    grid.routes.forEach((route, i) => shares.push([several && i < 10 ? String(i) : "r", routed(route), route.shares[here]]));
    if (!grid.routes.length) shares.push(["r", "routed", grid.routed[here]]);
    shares.push(["a", "abstained", grid.abstained[here]]);
    $("money").textContent = "At these prices: " + (reached ? shares.map(([, verb, share]) => pct(share) + " " + verb).join(", ") + "; " + (grid.corrected ? "corrected " : "") + "cost a query " + num(router) + " " + unit
      : "the target loss cannot be reached") + ", against " + always.map(([name, cost]) => name + " " + num(cost)).join(", ") + ".";
    const asked = grid.routes.length ? grid.routes.map((route) => "routing to " + short(route.name, 40) + ": " + price(route.prices[state.route])).join("; ") : "routing: " + price(grid.route_prices[state.route]);
    const prices = "Loss " + short(name, 60) + "; " + asked + "; abstaining: " + price(grid.abstain_prices[state.abstain]) + " (" + unit + ")." + limit(grid, here);
    $("task").textContent = prices;
    // Savings are known at the task's own prices and loss.
    $("savings").hidden = $("open").hidden = state.loss > 0 || here !== at(...grid.own);
    $("prices").textContent = prices;
    const bar = html("div", { class: "bar", role: "img", "aria-label": "Shares of the actions" });
    for (const [letter, , share] of reached ? shares : []) {
      const [text, , style] = action(letter), part = html("span", { class: style, title: text + " " + pct(share) }, share > 0.12 ? text + " " + pct(share) : "");
      part.style.width = 100 * share + "%";
      if (share > 0) bar.append(part);
    }
    if (bar.lastChild) bar.lastChild.style.flex = "1";
    $("shares").replaceChildren(bar);
    const hindsight = byRow || !oracleTold ? [] : [["best in hindsight" + (data.task.budget !== undefined || data.task.target_loss !== undefined ? ", no limit" : ""), grid.cell_optimal[here], "green"]];
    const rows = [["router", router, "predict"], ...hindsight, ...always.map(([name, cost]) => [name.replace("-", " "), cost, "other"])].filter((r) => r[1] !== null);
    bars("costs", "Costs", rows.map((r) => [r[0], r[1], css(r[2])]));
  }

  // Horizontal bars with their values.
  function bars(host, name, rows, group) {
    const W = 620, step = group ? 22 : 30, gap = group ? 12 : 0, L = 235, most = Math.max(...rows.map((r) => r[1] === null ? 0 : Math.abs(r[1])), 1e-12);
    const top = (i) => i * step + (group ? Math.floor(i / group) * gap : 0);
    const root = svg("svg", { viewBox: "0 0 " + W + " " + (top(rows.length) + 4), role: "img", "aria-label": name });
    rows.forEach(([text, value, colour], i) => {
      root.append(svg("text", { x: L - 8, y: top(i) + step - 8, "text-anchor": "end" }, short(text, 22)));
      const width = value === null ? 0 : Math.max(0, value) / most * (W - L - 80);
      root.append(svg("rect", { x: L, y: top(i) + 4, width, height: step - 7, fill: colour, rx: 2 }), svg("text", { x: L + width + 7, y: top(i) + step - 8 }, est(value)));
    });
    $(host).replaceChildren(root);
  }

  function sweep() {
    const { grid, unit } = loss(), n = grid.abstain_prices.length - 1, never = grid.route_prices.length - 1;
    const xs = grid.abstain_prices.slice(0, n);
    const lines = [["predict / route / abstain", (j) => grid.router[at(state.route, j)], "predict", ""], ["predict / route", () => grid.router[at(state.route, n)], "route", "8 5"],
      ["predict / abstain", (j) => grid.router[at(never, j)], "abstain", "8 5"], ...(byRow ? [] : [["best action a cell", (j) => grid.cell_optimal[at(state.route, j)], "green", "2 5"]])];
    const all = lines.flatMap((l) => xs.map((_, j) => l[1](j))).filter((v) => v !== null);
    const f = frame("sweep", "Cost against the price of abstaining", { x: [0, Math.max(xs[n - 1], 1e-6)], y: [0, reach(all, 1e-6)] }, "price of abstaining (" + unit + ")", "cost a query (" + unit + ")");
    lines.forEach(([, cost, colour, dash]) => f.path(xs.map((x, j) => [x, cost(j)]).filter((p) => p[1] !== null), css(colour), { "stroke-dasharray": dash }));
    if (state.abstain < n && grid.router[at(state.route, state.abstain)] !== null) f.root.append(svg("circle", { cx: f.x(xs[state.abstain]), cy: f.y(grid.router[at(state.route, state.abstain)]), r: 6, fill: css("ink") }));
    key("sweep-key", lines.map(([text, , colour, dash]) => [text, css(colour), dash ? "dashed" : "solid"]).concat([["these prices", css("ink"), "dot"]]));
  }

  function actions() {
    const { grid, unit } = loss(), n = grid.abstain_prices.length - 1, xs = grid.abstain_prices.slice(0, n);
    const f = frame("actions", "Shares of the actions against the price of abstaining", { x: [0, Math.max(xs[n - 1], 1e-6)], y: [0, 1], height: 290 },
      "price of abstaining (" + unit + ")", "share of the queries", num, (v) => Math.round(100 * v) + " %");
    const reached = xs.map((_, j) => j).filter((j) => grid.router[at(state.route, j)] !== null), below = reached.map(() => 0);
    const bands = [["predict", grid.predicted, 0.75], ...(grid.routes.length ? grid.routes.map((route, i) => ["route", route.shares, 0.75 * Math.pow(0.7, i)]) : [["route", grid.routed, 0.75]]), ["abstain", grid.abstained, 0.75]];
    for (const [name, shares, opacity] of bands) {
      const low = reached.map((j, i) => [xs[j], below[i]]);
      reached.forEach((j, i) => { below[i] = Math.min(1, below[i] + shares[at(state.route, j)]); });
      const points = low.concat(reached.map((j, i) => [xs[j], below[i]]).reverse());
      f.root.append(svg("polygon", { fill: css(name), "fill-opacity": opacity, points: points.map((p) => f.x(p[0]) + "," + f.y(p[1])).join(" ") }));
    }
    if (state.abstain < n) f.path([[xs[state.abstain], 0], [xs[state.abstain], 1]], css("ink"), { "stroke-dasharray": "6 4", "stroke-width": 2 });
  }

  function curves() {
    const { unit } = loss(), curves = loss().corrected_curves || loss().curves, names = Object.keys(curves).filter(told), all = names.flatMap((n) => curves[n]);
    const low = Math.min(...all), high = Math.max(...all), room = Math.max(0.06 * (high - low), 1e-6);
    const f = frame("curves", "Routing curves", { x: [0, 1], y: [low - room, high + room] }, "share of the queries routed", "mean loss (" + unit + ")", (v) => Math.round(100 * v) + " %");
    names.forEach((n) => f.path(curves[n].map((y, i) => [i / 100, y]), css(STRATEGY[n] || "other"), { "stroke-dasharray": DASH[n] || "", "stroke-width": n === "higher-order" ? 3.2 : 2 }));
    key("curves-key", names.map((n) => [n, css(STRATEGY[n] || "other"), n === "random" ? "dotted" : DASH[n] ? "dashed" : "solid"]));
  }

  function gains() {
    const names = ["higher-order", "total-uncertainty", "cell-optimal"].filter(told);
    bars("gains", "Routing gain under every loss", data.losses.flatMap((l) => names.map((n, i) => [i ? "" : l.loss, (l.corrected_gain || l.gain)[n] ?? null, css(STRATEGY[n])])), 3);
    key("gains-key", names.map((n) => [n, css(STRATEGY[n]), "dot"]));
  }

  const COLUMNS = [["cell", (i) => cellOf[i].cell], ["name", (i) => cellOf[i].name], ["action", (i) => letters()[i]], ["share", (i) => cellOf[i].share, pct],
    ["rows", (i) => cellOf[i].rows], ["irreducible", (i) => loss().cells[i].irreducible, est], ["reducible", (i) => loss().cells[i].reducible, est],
    ["predict", (i) => loss().cells[i].total, est], ["route", (i) => loss().grid.route_costs[state.route][i], est], ["support", (i) => cellOf[i].support]];
  function table() {
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.sort : null;
    const value = COLUMNS.find((c) => c[0] === state.sort)[1];
    const order = cellOf.map((_, i) => i).sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === y) return a - b;
      if (x === null) return 1;
      if (y === null) return -1;
      return (x < y ? -1 : 1) * (state.down ? -1 : 1);
    });
    const head = html("tr", {}, ...COLUMNS.map(([name]) => {
      const sorted = name === state.sort;
      return html("th", { scope: "col", "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none" },
        html("button", { type: "button", "data-sort": name }, name + (sorted ? (state.down ? " ▾" : " ▴") : "")));
    }));
    const body = order.map((i) => html("tr", { "data-cell": i, class: i === state.cell ? "on" : "" }, ...COLUMNS.map(([name, value, text]) => {
      const v = value(i);
      if (name === "action") return html("td", {}, html("span", { class: "tag " + action(v)[2] }, action(v)[0]));
      return html("td", name === "name" ? { title: v } : {}, text ? text(v) : String(v));
    })));
    $("cells").replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
    if (focused) { const again = $("cells").querySelector('[data-sort="' + focused + '"]'); if (again) again.focus(); }
  }

  function controls() {
    const { grid, unit } = loss();
    $("route").max = grid.route_prices.length - 1;
    $("abstain").max = grid.abstain_prices.length - 1;
    $("route").value = state.route;
    $("abstain").value = state.abstain;
    const say = (id, x) => { const text = x === null ? "never" : num(x) + " " + unit; $(id + "-out").textContent = text; $(id).setAttribute("aria-valuetext", text); };
    say("route", grid.route_prices[state.route]);
    say("abstain", grid.abstain_prices[state.abstain]);
    $("route-label").textContent = "Price of routing (" + short(grid.route, 24) + (data.task.routes.length > 1 ? ", others in proportion" : "") + ")";
  }
  function reset() { [state.route, state.abstain] = loss().grid.own; }
  function prices() { controls(); money(); landscape(); cell(); sweep(); actions(); table(); }
  function all() { prices(); curves(); gains(); }
  function pick(i) {
    if (i === state.cell) return;
    state.cell = i;
    for (const on of document.querySelectorAll(".on")) on.classList.remove("on");
    for (const node of document.querySelectorAll('[data-cell="' + i + '"]')) node.classList.add("on");
    cell();
  }
  const picked = (event) => { const node = event.target.closest && event.target.closest("[data-cell]"); if (node) pick(Number(node.dataset.cell)); };

  data.losses.forEach((l, i) => $("loss").append(html("option", { value: i }, short(l.loss, 60) + (i ? "" : " (the task’s)"))));
  $("loss").addEventListener("change", () => { state.loss = Number($("loss").value); reset(); all(); });
  $("route").addEventListener("input", () => { state.route = Number($("route").value); prices(); });
  $("abstain").addEventListener("input", () => { state.abstain = Number($("abstain").value); prices(); });
  $("reset").addEventListener("click", () => { reset(); prices(); });
  for (const event of ["pointerover", "click"]) $("landscape").addEventListener(event, picked);
  $("landscape").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const cells = loss().cells;
    const order = cells.map((_, i) => i).filter((i) => cells[i].irreducible !== null).sort((a, b) => cells[a].irreducible - cells[b].irreducible);
    if (order.length) pick(order[(order.indexOf(state.cell) + step + order.length) % order.length]);
  });
  $("cells").addEventListener("click", (event) => {
    const name = event.target.dataset.sort;
    if (!name) return picked(event);
    state.down = state.sort === name ? !state.down : name !== "name" && name !== "cell";
    state.sort = name;
    table();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);

  $("facts").textContent = data.rows + " held-out rows; truth is " + (data.truth === "true" ? "known" : "the mean of their labels") + (loss().grid.corrected ? ", costs, curves and gains are corrected for their being few" : "") + (untold.length ? ": one label an item, which does not tell what routing saves; curves and sweeps take each label for the truth" : "") + ". " + data.router.rows + " calibration rows in " +
    data.router.cells + " cells (" + short(data.router.partition, 80) + ")" + (data.router.recalibrated ? ", re-calibrated" : "") + ". Standard error of the router’s cost: " + num(untold.includes("router") ? null : (loss().grid.corrected ? data.corrected_standard_error : data.standard_error).router, 2) + ".";
  $("cells-caption").textContent = (data.drawn.length < data.cells.length ? "The " + data.drawn.length + " cells with the most traffic of " + data.cells.length + ". " : "") + "Losses and costs in the loss’s unit, estimated from the calibration rows. Click a heading to sort, a row to see the cell.";
  const error = data.calibration_error;
  if (error) {
    const list = html("dl");
    for (const [name, value] of [["distance (W1)", error.raw], ["floor: what chance alone gives", error.floor], ["debiased: what is left", error.debiased], ["largest entropy gap of a cell", error.irreducible_gap], ["regret bound: the most these rows can regret, whatever the prices", error.regret_bound]])
      if (value !== null) list.append(html("dt", {}, name), html("dd", {}, num(value)));
    list.append(html("dt", {}, "traffic covered"), html("dd", {}, pct(error.covered)));
    $("calibration").replaceChildren(list);
  } else $("calibration-card").hidden = true;
  reset();
  const shares = cellOf.map((c) => c.share);
  state.cell = shares.indexOf(Math.max(...shares));
  $("main").hidden = false;
  all();
})();
