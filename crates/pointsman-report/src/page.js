"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data.losses) return;
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const NS = "http://www.w3.org/2000/svg";
  // Names of rules, rankings, actions and losses, as on the terminal.
  const NAMES = data.names;
  const ACTION = { p: [NAMES.actions.predict, "predict", "p"], r: [NAMES.actions.route, "route", "r"], a: [NAMES.actions.abstain, "abstain", "a"],
    "?": ["undetermined", "other", "u"], "-": ["empty: falls back", "other", "u"] };
  // Of several routes each has a digit, its place in the task.
  const several = data.task.routes.length > 1;
  const shade = (i) => "route" + i % 5, style = (i) => "r" + i % 5;
  const routeTo = (route) => NAMES.actions["route:" + route], always = (action) => NAMES.rules["always-" + action];
  const action = (letter) => /[0-9]/.test(letter) ? [routeTo(data.task.routes[Number(letter)].name), shade(Number(letter)), style(Number(letter))] : ACTION[letter];
  const STRATEGY = { "higher-order": "predict", "total-uncertainty": "vermilion", "cell-optimal": "green", "pointwise-optimal": "ink", random: "other" };
  // Costs that one label per item does not identify are dashes.
  const unidentified = data.unidentified, oracleIdentified = !unidentified.some((name) => name.startsWith("always-route"));
  // A forest decides row by row, so the best action per cell is no benchmark.
  const byRow = data.router.partition.startsWith("forest"), isCompared = (name) => !byRow || name !== "cell-optimal";
  const DASH = { "cell-optimal": "8 5", "pointwise-optimal": "8 5", random: "2 5" };
  const cellOf = data.drawn.map((id) => data.cells[id]);
  // `moved` is the index of the route whose price alone was changed, or −1 if all prices change in proportion.
  const state = { loss: 0, moved: -1, route: 0, abstain: 0, cell: -1, sort: "share", down: true, all: false };
  const FIRST_CELLS = 12;

  // Words and numbers.
  const isKnown = (x) => x !== null && x !== undefined;
  // As a command needs it.
  const plain = (x, digits = 4) => String(Math.abs(x) < Math.pow(10, digits) ? Number(x.toPrecision(digits)) : Math.round(x));
  // With thousands separators and a minus sign, but no minus sign before zero.
  const grouped = (text) => (/[1-9]/.test(text) ? text.replace(/^-/, "−") : text.replace(/^-/, "")).replace(/^(−?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  const count = (n) => grouped(String(n));
  const num = (x, digits) => isKnown(x) ? grouped(plain(x, digits)) : "–";
  const fixed = (x, decimals) => isKnown(x) ? grouped(x.toFixed(decimals)) : "–";
  // The decimals with which the largest of the numbers of a column has four significant digits.
  function decimals(values) {
    const largest = Math.max(0, ...values.filter(isKnown).map(Math.abs));
    return largest === 0 ? 4 : Math.min(12, Math.max(0, 3 - Number(largest.toExponential(3).split("e")[1])));
  }
  // The terminal rounds ties to the even digit (35.25 to 35.2); these are the only ties in binary that toFixed rounds up.
  const tenths = (x) => x % 1 === 0.25 ? x - 0.05 : x;
  const pct = (x) => fixed(tenths(100 * x), 1) + " %";
  const price = (x) => x === null ? "never" : num(x);
  const short = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  // Isolates a class name written from right to left from the rest of a cell's name.
  function cellName(name) {
    const own = data.classes.filter((c) => name.startsWith(c)).reduce((a, b) => a.length > b.length ? a : b, "");
    return own ? "\u2068" + short(own, 60) + "\u2069" + name.slice(own.length) : name;
  }
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
  const grid = () => state.moved < 0 ? loss().grid : loss().route_grids[state.moved];
  const at = (route, abstain) => route * grid().abstain_prices.length + abstain;
  const letters = () => grid().actions[at(state.route, state.abstain)];
  const atOwn = () => state.loss === 0 && at(state.route, state.abstain) === at(...grid().own);

  // A frame with axes; x and y map data to pixels.
  function frame(host, name, box, xLabel, yLabel, xText, yText) {
    const W = 620, H = box.height || 400, L = 66, R = 20, T = 34, B = 54;
    const root = svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": name });
    const x = (v) => L + (v - box.x[0]) / (box.x[1] - box.x[0]) * (W - L - R);
    const y = (v) => H - B - (v - box.y[0]) / (box.y[1] - box.y[0]) * (H - T - B);
    for (const v of ticks(box.x).filter((v) => v >= (box.from ?? -Infinity))) {
      root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: T, y2: H - B }),
        svg("text", { class: "tick", x: x(v), y: H - B + 18, "text-anchor": "middle" }, (xText || num)(v)));
    }
    for (const v of ticks(box.y).filter((v) => v >= (box.from ?? -Infinity))) {
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
  // A legend: each entry is drawn as its line, dashes included, or as a dot.
  function key(host, entries) {
    $(host).replaceChildren(...entries.map(([text, colour, dash, width]) => {
      const mark = svg("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" });
      mark.append(dash === "dot" ? svg("circle", { cx: 28, cy: 6, r: 5.5, fill: colour })
        : dash === "area" ? svg("rect", { x: 12, y: 1, width: 22, height: 10, rx: 2, fill: colour, "fill-opacity": width || 0.6 })
        : svg("line", { x1: 0, x2: 34, y1: 6, y2: 6, stroke: colour, "stroke-width": width || 2.4, "stroke-dasharray": dash || "none" }));
      return html("span", {}, mark, text);
    }));
  }

  function landscape() {
    const { cells, unit, rows } = loss(), g = grid(), own = loss().grid;
    // Regions are drawn at the prices of decisions, which include that of a limit.
    const alpha = g.decision_prices[at(state.route, state.abstain)], beta = g.abstain_prices[state.abstain];
    const first = own.own[0] * own.abstain_prices.length + own.own[1], reached = [own.decision_prices[first], own.abstain_prices[own.own[1]]];
    const points = cells.concat(rows), far = reach(points.map((c) => c.irreducible).concat(reached[1]), 1e-6), high = reach(points.map((c) => c.reducible).concat(reached[0]), 1e-6);
    const radius = (i) => Math.min(24, Math.max(3, 58 * Math.sqrt(cellOf[i].share)));
    // Circles at zero stay clear of the axes and their numbers.
    const room = Math.max(...cells.map((_, i) => radius(i)), 3) + 3, left = -far * room / (534 - room), low = -high * room / (312 - room);
    const f = frame("landscape", "Decision landscape", { x: [left, far], y: [low, high], from: 0 }, "irreducible loss (" + unit + ")", "reducible loss (" + unit + ")");
    // The regions join corners from the report and are clipped to the frame.
    const clip = svg("clipPath", { id: "inside" });
    clip.append(svg("rect", { x: f.left, y: f.top, width: f.right - f.left, height: f.bottom - f.top }));
    const group = svg("g", { "clip-path": "url(#inside)", "fill-opacity": 0.16 });
    const polygon = (points, colour) => group.append(svg("polygon", { fill: css(colour), points: points.map((p) => f.x(p[0]) + "," + f.y(p[1])).join(" ") }));
    const top = alpha === null ? (beta === null ? high : beta) : (beta === null || alpha < beta ? alpha : beta);
    // Only an oracle whose loss is the irreducible loss has a region in this plane.
    if (g.bayes && beta === null) {
      polygon([[left, low], [far, low], [far, top], [left, top]], "predict");
      if (alpha !== null && top < high) polygon([[left, top], [far, top], [far, high], [left, high]], "route");
    } else if (g.bayes) {
      const bend = g.corners[at(state.route, state.abstain)] || 0;
      const roof = Math.max(high, top), wall = Math.max(far, beta);
      polygon([[left, low], [left, top], [bend, top], [beta, 0], [beta, low]], "predict");
      if (bend > 0) polygon([[left, top], [bend, top], [bend, roof], [left, roof]], "route");
      polygon([[bend, top], [bend, roof], [wall, roof], [wall, low], [beta, low], [beta, 0]], "abstain");
    }
    f.root.append(clip, group);
    const taken = letters(), ofRows = rows.length ? g.row_actions[at(state.route, state.abstain)] : "";
    rows.forEach((row, i) => {
      if (row.irreducible === null) return;
      const colour = css(action(ofRows[i])[1]);
      f.root.append(svg("circle", { class: "row", cx: f.x(row.irreducible), cy: f.y(row.reducible), r: 3.2, fill: colour }));
    });
    // Large circles first, so that small ones are on top.
    const order = cells.map((_, i) => i).sort((a, b) => cellOf[b].share - cellOf[a].share);
    for (const i of order) {
      const c = cells[i];
      if (c.irreducible === null || c.reducible === null) continue;
      const colour = css(action(taken[i])[1]);
      const dot = svg("circle", { class: "cell" + (rows.length ? " ring" : "") + (i === state.cell ? " on" : ""), cx: f.x(c.irreducible), cy: f.y(c.reducible),
        r: radius(i), fill: colour, ...(rows.length ? {} : { stroke: colour }), "data-cell": i });
      dot.append(svg("title", {}, short(cellName(cellOf[i].name), 120) + (rows.length ? "" : ": " + action(taken[i])[0])));
      f.root.append(dot);
    }
    const drawn = new Set(rows.length ? ofRows : taken);
    const routes = several ? data.task.routes.map((_, i) => String(i)).filter((letter) => drawn.has(letter)) : ["r"];
    key("landscape-key", ["p", ...routes, "a", ...(drawn.has("?") ? ["?"] : [])].map((letter) => [action(letter)[0], css(action(letter)[1]), "dot"]));
    $("landscape-caption").textContent = rows.length
      ? "Each dot is one of " + count(rows.length) + " " + data.kind_of_rows + " rows, its colour the action taken at these prices; each ring is a cell, its area its share of the rows. Cells are ranked by the forest's forecasts, made without a row's own labels; losses estimated with them need not be in that order. "
      : "Each circle is a cell; its area is its share of the " + data.kind_of_rows + " rows, its colour the action taken at these prices. ";
  }

  function cell() {
    const i = state.cell;
    if (i < 0) return;
    const c = cellOf[i], l = loss().cells[i], g = grid();
    const list = html("dl");
    const line = (name, ...value) => list.append(html("dt", {}, name), html("dd", {}, ...value));
    line("cell", short(cellName(c.name), 200));
    line(byRow ? "actions" : "action", taken(i));
    const cost = g.route_costs[state.route][i], abstain = g.abstain_prices[state.abstain];
    const digits = decimals([l.irreducible, l.reducible, l.total, cost, abstain]), est = (x) => fixed(x, digits);
    line("rows", count(c.rows) + " stored (" + c.support + "), " + count(c.held_out.rows) + " evaluated, " + pct(c.share) + " of all");
    line("irreducible", est(l.irreducible));
    line("reducible", est(l.reducible) + (l.reducible === 0 && l.irreducible > l.total ? " (shown as 0: its estimate is negative)" : ""));
    line("cost of predicting", est(l.total));
    line(data.task.routes.length > 1 ? "cheapest route" : "cost of routing", est(cost));
    line("cost of abstaining", abstain === null ? "never" : est(abstain));
    if (state.loss === 0) line("on " + data.kind_of_rows + " rows", "irreducible " + est(c.held_out.irreducible) + ", predicting " + est(c.held_out.total));
    $("cell").replaceChildren(list);
    const m = data.mixtures[i], bars = (m.stored || m.held_out || [0]).length;
    const f = frame("mixture", "Label distribution of stored and evaluated rows", { x: [0, 1], y: [0, reach((m.stored || []).concat(m.held_out || []), 0.05)], height: 260 },
      "share of one item’s labels: " + short(m.class, 30), "share of the items", num, (v) => Math.round(100 * v) + " %");
    (m.stored || []).forEach((v, b) => f.root.append(svg("rect", { x: f.x(b / bars), width: f.x(1 / bars) - f.x(0) - 1, y: f.y(v), height: f.y(0) - f.y(v), fill: css("sky"), "fill-opacity": 0.6 })));
    if (m.held_out) f.path(m.held_out.flatMap((v, b) => [[b / bars, v], [(b + 1) / bars, v]]), css("vermilion"), { "stroke-width": 2 });
    key("mixture-key", [["stored calibration rows", css("sky"), "area"], ["evaluated " + data.kind_of_rows + " rows", css("vermilion"), ""]]);
    $("mixture-caption").textContent = "Mass in the middle is disagreement among people, which no oracle removes; mass at both ends is what an oracle resolves.";
  }

  // The limit on routing at these prices, in a sentence.
  function limit(g, here) {
    const { budget, target_loss: target } = data.task, price = g.surcharge[here];
    if (target !== undefined && state.loss > 0) return "The target loss is in the unit of the task’s loss: it does not apply to this loss.";
    if (budget === undefined && target === undefined) return "";
    if (g.routes.every((route) => route.prices[state.route] === null)) return "No route is allowed at these prices: the limit has no effect.";
    if (price === null) return "The target loss of " + num(target) + " cannot be reached at these prices.";
    if (budget !== undefined && price === 0) return "Budget: at most " + pct(budget) + " of traffic like the calibration rows is routed; the prices need not change.";
    return budget !== undefined ? "Budget: at most " + pct(budget) + " of traffic like the calibration rows is routed; the limit acts like a surcharge of " + num(price) + " per routed query, which is not part of the cost."
      : "Target: the least routing that keeps the expected loss at " + num(target) + ". Queries are routed as if every route cost " + num(price) + "; the costs have each route’s own price.";
  }

  // The next command at the prices of the sliders. Null if flags cannot express them: under another loss, or if a task file has a route or
  // an abstention that the sliders forbid.
  const ownCommands = [...document.querySelectorAll(".advice pre")].map((node) => [node, node.textContent]);
  const quoted = (text) => /^[\p{L}\p{N}_./=:,+%@-]+$/u.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
  const unquoted = (token) => token.replace(/'([^']*)'|\\(.)/g, "$1$2");
  function repriced(command) {
    if (atOwn() || !command.startsWith("pointsman decide ")) return command;
    if (state.loss > 0) return null;
    const g = grid(), task = data.task, asked = g.routes.length ? g.routes : [{ name: "oracle", prices: g.route_prices }];
    const seen = new Set(), added = [];
    let possible = true, out = command.replace(/ --route ((?:'[^']*'|\\.|[^\s'\\])+)/g, (flag, token) => {
      const [, name = "oracle", , kind = ""] = /^(?:([^=,]*)=)?([^,]*)(,.*)?$/.exec(unquoted(token)) || [];
      const route = asked.find((route) => route.name === name);
      if (!route) { possible = false; return flag; }
      seen.add(name);
      const paid = route.prices[state.route];
      return paid === null ? "" : " --route " + quoted((name === "oracle" ? "" : name + "=") + plain(paid) + kind);
    });
    // A flag can change the price of a task file's route, but not remove it.
    for (const { name, prices } of asked.filter((route) => !seen.has(route.name))) {
      const paid = prices[state.route], own = task.routes.find((route) => route.name === name);
      if (paid !== null) added.push(" --route " + quoted((name === "oracle" ? "" : name + "=") + plain(paid)));
      else if (own) possible = false;
    }
    const paid = g.abstain_prices[state.abstain], flag = / --abstain \S+/;
    if (flag.test(out)) out = out.replace(flag, paid === null ? "" : " --abstain " + plain(paid));
    else if (paid !== null) added.push(" --abstain " + plain(paid));
    else if (task.abstain !== null) possible = false;
    const end = out.lastIndexOf(" -o "), place = end < 0 ? out.length : end;
    return possible ? out.slice(0, place) + added.join("") + out.slice(place) : null;
  }
  function commands() {
    let hidden = false;
    for (const [node, own] of ownCommands) {
      const text = repriced(own);
      node.parentNode.hidden = text === null;
      hidden = hidden || text === null;
      if (text !== null) node.replaceChildren(...text.split(/( )/).map((word) => word.includes("-") ? html("span", {}, word) : word));
    }
    if ($("next-remark")) $("next-remark").textContent = hidden ? "The next command is shown for the report’s loss only, at prices that a command can state." : nextRemark;
  }
  const nextRemark = $("next-remark") ? $("next-remark").textContent : "";
  // A copy button per command.
  for (const [node] of ownCommands) {
    const button = html("button", { type: "button" }, "Copy"), box = html("div", { class: "command" });
    node.replaceWith(box);
    box.append(node, button);
    button.addEventListener("click", () => {
      getSelection().selectAllChildren(node);
      const copied = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 2000); };
      if (navigator.clipboard) navigator.clipboard.writeText(node.textContent).then(copied, () => {});
      else if (document.execCommand("copy")) copied();
    });
  }

  // The remark on oracles that are taken to be perfect, with the slider's price in the flag. Under another loss prices have another unit.
  const ownOracles = $("oracles").textContent, flagOfOracle = "; for one annotator write --route ";
  function oracles() {
    const place = ownOracles.lastIndexOf(flagOfOracle), [before, flag] = [ownOracles.slice(0, place), ownOracles.slice(place + flagOfOracle.length, -1)];
    if (place < 0 || atOwn()) { $("oracles").textContent = ownOracles; return; }
    const [, name, kind] = /^(?:([^=]*)=)?[^,]*(,.*)$/.exec(unquoted(flag)) || [], route = grid().routes.find((route) => route.name === (name || "oracle"));
    const paid = state.loss > 0 || !route ? null : route.prices[state.route];
    $("oracles").textContent = before + (paid === null ? "" : flagOfOracle + quoted((name ? name + "=" : "") + plain(paid) + kind)) + ".";
  }

  const ownText = { headline: $("headline").textContent, savings: $("savings").textContent };
  function money() {
    const { unit } = loss(), g = grid(), here = at(state.route, state.abstain), reached = g.router[here] !== null;
    const routed = (route) => several ? "routed to " + short(route.name, 40) : "routed";
    const identified = (value) => oracleIdentified ? value : null, router = oracleIdentified || g.routed[here] === 0 ? g.router[here] : null;
    // The best confidence threshold is known only at the task's own prices and loss.
    const simple = atOwn() && data.best_threshold_cost !== null ? [[NAMES.rules["best-threshold"], data.best_threshold_cost]] : [];
    simple.push([always("predict"), g.always_predict]);
    for (const route of g.routes) if (route.always[state.route] !== null) simple.push([always("route:" + route.name), identified(route.always[state.route])]);
    if (!g.routes.length && g.always_route[state.route] !== null) simple.push([always("route"), identified(g.always_route[state.route])]);
    if (g.always_abstain[state.abstain] !== null) simple.push([always("abstain"), g.always_abstain[state.abstain]]);
    // The same decimals as on the terminal.
    const digits = decimals([router, ...simple.map(([, cost]) => cost)]);
    const shares = [["p", "predicted", g.predicted[here], null]];
    g.routes.forEach((route, i) => shares.push([several && i < 10 ? String(i) : "r", routed(route), route.shares[here], route.prices[state.route]]));
    if (!g.routes.length) shares.push(["r", "routed", g.routed[here], g.route_prices[state.route]]);
    shares.push(["a", "abstained", g.abstained[here], g.abstain_prices[state.abstain]]);
    // Savings and their intervals are known only at the task's own prices and loss.
    $("headline").textContent = atOwn() ? ownText.headline : !reached ? "The target loss cannot be reached at these prices."
      : "At these prices Pointsman costs " + fixed(router, digits) + " " + unit + " per query.";
    $("savings").textContent = atOwn() ? ownText.savings : "Savings with their intervals are shown at the task’s own prices and loss.";
    $("shares-line").textContent = reached ? shares.filter(([letter, , , paid]) => letter === "p" || paid !== null).map(([, verb, share]) => pct(share) + " " + verb).join(", ") : "";
    $("limit").textContent = limit(g, here);
    const cost = (g.corrected ? "Corrected cost" : "Cost") + " per query " + fixed(reached ? router : null, digits) + " " + unit;
    $("money").textContent = cost + ", against " + simple.map(([name, cost]) => name + " " + fixed(cost, digits)).join(", ") + ".";
    const asked = g.routes.length ? g.routes.map((route) => "routing to " + short(route.name, 40) + ": " + price(route.prices[state.route])).join("; ") : "routing: " + price(g.route_prices[state.route]);
    const prices = "Loss " + NAMES.losses[state.loss] + "; " + asked + "; abstaining: " + price(g.abstain_prices[state.abstain]) + " (" + unit + ").";
    $("task").textContent = prices;
    // The interval that labels identify is known only at the task's own prices and loss.
    $("open").hidden = !atOwn();
    $("prices").textContent = prices;
    const bar = html("li", { class: "bar", "aria-hidden": "true" }), chips = html("li", { class: "chips" });
    for (const [letter, verb, share, paid] of reached ? shares : []) {
      const [, , look] = action(letter), part = html("span", { class: look });
      part.style.width = 100 * share + "%";
      if (share > 0) bar.append(part);
      chips.append(html("span", { class: "tag " + look }, pct(share) + " " + verb + (verb === "predicted" ? "" : paid === null ? ", never allowed" : ", price " + num(paid))));
    }
    if (bar.lastChild) bar.lastChild.style.flex = "1";
    $("shares").replaceChildren(bar, chips);
    const hindsight = byRow || !oracleIdentified ? [] : [[NAMES.rules["cell-optimal"] + (data.task.budget !== undefined || data.task.target_loss !== undefined || data.caps ? ", no limit" : ""), g.cell_optimal[here], "green"]];
    const rows = [[NAMES.rules.router, router, "predict"], ...hindsight, ...simple.map(([name, cost], i) => [name, cost, i === 0 && name === NAMES.rules["best-threshold"] ? "vermilion" : "other"])].filter((r) => r[1] !== null);
    bars("costs", "Mean cost per query", rows.map((r) => [r[0], r[1], css(r[2])]));
  }

  // Horizontal bars with their values; `group` is the number of bars per group.
  function bars(host, name, rows, group) {
    const most = Math.max(...rows.map((r) => r[1] === null ? 0 : r[1]), 1e-12), digits = decimals(rows.map((r) => r[1]));
    const row = ([text, value, colour, spoken], i) => {
      const bar = html("i");
      bar.style.background = colour;
      bar.style.width = value === null ? "0" : 100 * Math.max(0, value) / most + "%";
      const head = html("th", spoken ? { scope: "row", "aria-label": spoken } : { scope: "row" }, short(text, 60));
      return html("tr", group && i % group === 0 ? { class: "first" } : {}, head, html("td", {}, bar), html("td", { class: "value" }, fixed(value, digits)));
    };
    $(host).replaceChildren(html("table", { class: "bars", "aria-label": name }, html("tbody", {}, ...rows.map(row))));
  }

  function sweep() {
    const { unit, grid: together } = loss(), g = grid(), n = g.abstain_prices.length - 1, never = together.route_prices.length - 1;
    const xs = g.abstain_prices.slice(0, n);
    const lines = [["predict / route / abstain", (j) => g.router[at(state.route, j)], "predict", ""], ["predict / route", () => g.router[at(state.route, n)], "route", "8 5"],
      ["predict / abstain", (j) => together.router[never * (n + 1) + j], "abstain", "8 5"], ...(byRow ? [] : [[NAMES.rules["cell-optimal"], (j) => g.cell_optimal[at(state.route, j)], "green", "2 5"]])];
    const all = lines.flatMap((l) => xs.map((_, j) => l[1](j))).filter((v) => v !== null);
    const f = frame("sweep", "Cost against the price of abstaining", { x: [0, Math.max(xs[n - 1], 1e-6)], y: [0, reach(all, 1e-6)] }, "price of abstaining (" + unit + ")", "cost per query (" + unit + ")");
    lines.forEach(([, cost, colour, dash]) => f.path(xs.map((x, j) => [x, cost(j)]).filter((p) => p[1] !== null), css(colour), { "stroke-dasharray": dash }));
    if (state.abstain < n && g.router[at(state.route, state.abstain)] !== null) f.root.append(svg("circle", { cx: f.x(xs[state.abstain]), cy: f.y(g.router[at(state.route, state.abstain)]), r: 6, fill: css("ink") }));
    key("sweep-key", lines.map(([text, , colour, dash]) => [text, css(colour), dash]).concat([["these prices", css("ink"), "dot"]]));
  }

  function actions() {
    const { unit } = loss(), g = grid(), n = g.abstain_prices.length - 1, xs = g.abstain_prices.slice(0, n);
    const f = frame("actions", "Shares of the actions against the price of abstaining", { x: [0, Math.max(xs[n - 1], 1e-6)], y: [0, 1], height: 290 },
      "price of abstaining (" + unit + ")", "share of the queries", num, (v) => Math.round(100 * v) + " %");
    const reached = xs.map((_, j) => j).filter((j) => g.router[at(state.route, j)] !== null), below = reached.map(() => 0);
    const routes = g.routes.length ? g.routes.map((route, i) => [several ? shade(i) : "route", route.shares, several ? routeTo(route.name) : NAMES.actions.route]) : [["route", g.routed, NAMES.actions.route]];
    const bands = [["predict", g.predicted, NAMES.actions.predict], ...routes, ["abstain", g.abstained, NAMES.actions.abstain]];
    for (const [name, shares] of bands) {
      const low = reached.map((j, i) => [xs[j], below[i]]);
      reached.forEach((j, i) => { below[i] = Math.min(1, below[i] + shares[at(state.route, j)]); });
      const points = low.concat(reached.map((j, i) => [xs[j], below[i]]).reverse());
      f.root.append(svg("polygon", { fill: css(name), "fill-opacity": 0.75, points: points.map((p) => f.x(p[0]) + "," + f.y(p[1])).join(" ") }));
    }
    if (state.abstain < n) f.path([[xs[state.abstain], 0], [xs[state.abstain], 1]], css("ink"), { "stroke-dasharray": "6 4", "stroke-width": 2 });
    key("actions-key", bands.map(([name, , text]) => [text, css(name), "area", 0.75]).concat([["these prices", css("ink"), "6 4", 2]]));
  }

  function curves() {
    const { unit } = loss(), curves = loss().corrected_curves || loss().curves, names = Object.keys(curves).filter(isCompared), all = names.flatMap((n) => curves[n]);
    const low = Math.min(...all), high = Math.max(...all), room = Math.max(0.06 * (high - low), 1e-6);
    const f = frame("curves", "Routing curves", { x: [0, 1], y: [low - room, high + room] }, "share of the queries routed", "mean loss (" + unit + ")", (v) => Math.round(100 * v) + " %");
    names.forEach((n) => f.path(curves[n].map((y, i) => [i / 100, y]), css(STRATEGY[n] || "other"), { "stroke-dasharray": DASH[n] || "", "stroke-width": n === "higher-order" ? 3.2 : 2 }));
    key("curves-key", names.map((n) => [NAMES.rankings[n], css(STRATEGY[n] || "other"), DASH[n] || "", n === "higher-order" ? 3.2 : 2]));
  }

  function gains() {
    const names = ["higher-order", "total-uncertainty", "cell-optimal"].filter(isCompared);
    bars("gains", "Routing gain under every loss", data.losses.flatMap((l, k) => names.map((n, i) => [i ? "" : NAMES.losses[k], (l.corrected_gain || l.gain)[n] ?? null, css(STRATEGY[n]), NAMES.losses[k] + ", " + NAMES.rankings[n]])), names.length);
    key("gains-key", names.map((n) => [NAMES.rankings[n], css(STRATEGY[n]), "area", 1]));
  }

  // A forest decides the rows of a cell one by one. The shares of their actions are known at the report's own prices.
  function sharesOf(i) {
    const known = atOwn() && cellOf[i].actions;
    return known ? Object.entries(known).filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]).map(([name, share]) => (NAMES.actions[name] || name) + " " + pct(share).replace(" ", "\u00a0")).join(", ") : "–";
  }
  function taken(i) {
    if (byRow) return html("span", { class: "shares" }, sharesOf(i));
    const [name, , look] = action(letters()[i]);
    return html("span", { class: "tag " + look, title: name }, name);
  }

  // Losses and costs of a column have equal decimals.
  const COLUMNS = [["action", (i) => byRow ? sharesOf(i) : letters()[i]], ["name", (i) => cellOf[i].name], ["share", (i) => cellOf[i].share, pct],
    ["rows", (i) => cellOf[i].rows, count], ["irreducible", (i) => loss().cells[i].irreducible, fixed], ["reducible", (i) => loss().cells[i].reducible, fixed],
    ["predict", (i) => loss().cells[i].total, fixed], ["route", (i) => grid().route_costs[state.route][i], fixed], ["support", (i) => cellOf[i].support], ["cell", (i) => cellOf[i].cell]];
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
      return html("th", { scope: "col", class: name, "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none" },
        html("button", { type: "button", "data-sort": name }, (byRow && name === "action" ? "actions" : name) + (sorted ? (state.down ? " ▾" : " ▴") : "")));
    }));
    const shown = state.all ? order : order.slice(0, FIRST_CELLS);
    const digits = COLUMNS.map(([, value, text]) => text === fixed ? decimals(order.map(value)) : 0);
    const body = shown.map((i) => html("tr", { "data-cell": i, class: i === state.cell ? "on" : "" }, ...COLUMNS.map(([name, value, text], column) => {
      const v = value(i);
      if (name === "action") return html("td", { class: "action" }, taken(i));
      return html("td", name === "name" ? { class: "name" } : {}, name === "name" ? short(cellName(v), 120) : text ? text(v, digits[column]) : String(v));
    })));
    $("cells").replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
    $("cells-all").hidden = order.length <= FIRST_CELLS;
    $("cells-all").textContent = state.all ? "Show the first " + FIRST_CELLS + " of " + order.length + " cells" : "Show all " + order.length + " cells";
    hint();
    if (focused) { const again = $("cells").querySelector('[data-sort="' + focused + '"]'); if (again) again.focus(); }
  }

  // Shows a hint if the table is wider than its box.
  function hint() { const box = $("cells-scroll"); $("cells-hint").hidden = box.scrollWidth <= box.clientWidth + 1; }

  function controls() {
    const { grid: together, unit } = loss(), g = grid();
    const say = (slider, out, value) => { const text = value === null ? "never" : num(value) + " " + unit; out.textContent = text; slider.setAttribute("aria-valuetext", text); };
    $("route").max = together.route_prices.length - 1;
    $("abstain").max = g.abstain_prices.length - 1;
    $("route").value = state.moved < 0 ? state.route : together.own[0];
    $("abstain").value = state.abstain;
    if (state.moved < 0) say($("route"), $("route-out"), together.route_prices[$("route").value]);
    else { const text = "one price is changed below"; $("route-out").textContent = text; $("route").setAttribute("aria-valuetext", text); }
    say($("abstain"), $("abstain-out"), g.abstain_prices[state.abstain]);
    $("route-label").textContent = several ? "All prices of routing, in proportion; " + short(together.route, 24) + ":" : "Price of routing" + (data.task.routes.length ? " to " + short(together.route, 24) : "");
    data.task.routes.forEach((_, i) => {
      const slider = document.getElementById("route-" + i);
      if (!slider) return;
      const one = loss().route_grids[i], price = g.routes[i].prices[state.route];
      slider.disabled = !one;
      if (one) {
        slider.max = one.route_prices.length - 1;
        // The slider's stop: the route's own, if it was moved, else the one nearest to its price.
        const far = (p) => p === null || price === null ? (p === price ? 0 : Infinity) : Math.abs(p - price);
        slider.value = state.moved === i ? state.route : one.route_prices.reduce((best, p, j) => far(p) < far(one.route_prices[best]) ? j : best, one.route_prices.length - 1);
      }
      say(slider, document.getElementById("route-" + i + "-out"), price);
      const share = g.routes[i].shares[at(state.route, state.abstain)];
      document.getElementById("route-" + i + "-share").textContent = share === null ? "" : pct(share) + " of the queries";
    });
    if (several) $("routes-caption").textContent = state.loss > 0 ? "Under another loss than the task’s all prices of routing change together."
      : "One price changes at a time, with the task’s prices for the other routes; the slider above changes all of them in proportion.";
  }
  function routes() {
    $("routes-card").hidden = !several;
    if (!several) return;
    $("routes").replaceChildren(...data.task.routes.map((route, i) => {
      const slider = html("input", { id: "route-" + i, type: "range", min: 0, step: 1 });
      slider.addEventListener("input", () => { move(i, Number(slider.value)); });
      const chip = html("span", { class: "tag " + (i < 10 ? style(i) : "r") }, short(route.name, 40));
      return html("div", {}, html("label", { for: "route-" + i }, chip, " " + route.kind + ", price ", html("output", { id: "route-" + i + "-out", for: "route-" + i }), ", ", html("span", { id: "route-" + i + "-share" })), slider);
    }));
  }
  // Standard errors belong to the report's own prices.
  function facts() {
    const errors = loss().grid.corrected ? data.corrected_standard_error : data.standard_error;
    const saving = data.best_threshold_cost === null ? null : data.savings["best-threshold"].standard_error;
    $("facts").textContent = rowsAndCells + (!atOwn() ? " Standard errors are known at the prices of the report only."
      : " Standard error of Pointsman’s cost: " + num(unidentified.includes("router") ? null : errors.router, 2)
        + (saving === null ? "" : "; of what it saves against the " + NAMES.rules["best-threshold"] + ", whose cost is the mean of two: with thresholds chosen on the same rows (too low) and on other rows (too high): " + num(saving, 2)) + ".");
  }
  function move(route, value) { state.moved = route; state.route = value; prices(); }
  function reset() { state.moved = -1; [state.route, state.abstain] = loss().grid.own; }
  function prices() { controls(); money(); facts(); commands(); oracles(); landscape(); cell(); sweep(); actions(); table(); }
  function all() { prices(); curves(); gains(); }
  function pick(i) {
    if (i === state.cell) return;
    state.cell = i;
    for (const on of document.querySelectorAll(".on")) on.classList.remove("on");
    for (const node of document.querySelectorAll('[data-cell="' + i + '"]')) node.classList.add("on");
    cell();
  }
  const picked = (event) => { const node = event.target.closest && event.target.closest("[data-cell]"); if (node) pick(Number(node.dataset.cell)); };

  data.losses.forEach((l, i) => $("loss").append(html("option", { value: i }, NAMES.losses[i] + (i ? "" : " (task)"))));
  $("loss").addEventListener("change", () => { state.loss = Number($("loss").value); reset(); all(); });
  $("route").addEventListener("input", () => { move(-1, Number($("route").value)); });
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
  $("cells-all").addEventListener("click", () => { state.all = !state.all; table(); });
  addEventListener("resize", hint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);

  const rowsAndCells = count(data.rows) + " " + data.kind_of_rows + " rows; truth is " + (data.truth === "true" ? "known" : "the mean of their labels") + (loss().grid.corrected ? ", costs, curves and gains are corrected for few labels" : "") + (unidentified.length ? ": one label per item, which does not identify what routing saves; curves and sweeps take each label for the truth" : "") + ". " + count(data.router.rows) + " calibration rows in " +
    count(data.router.cells) + " cells (" + short(data.router.partition, 80) + ")" + (data.router.recalibrated ? ", re-calibrated" : "") + ".";
  $("cells-caption").textContent = (data.drawn.length < data.cells.length ? "The " + data.drawn.length + " cells with the most traffic, of " + data.cells.length + ". " : "") + "Losses and costs in the loss’s unit, estimated from the calibration rows; predicting costs irreducible + reducible (shown as 0 if its estimate is negative). Click a heading to sort, a row to see the cell."
    + (byRow ? " Actions: of the cell’s calibration rows, at the report’s own prices; losses and costs are those of the cell as a whole, each query is decided by its own." : "");
  const error = data.calibration_error;
  if (error) {
    const list = html("dl");
    // The p-value is of 40 random splits (wasserstein::DEFAULT_SPLITS), so it is 1/41 at least, however rare such distances are.
    // The other values have other units.
    const distances = [error.raw, error.floor, error.debiased], [raw, floor, debiased] = distances.map((x) => fixed(x, decimals(distances)));
    const pValue = error.p_value === null ? null : (error.p_value < 1.001 / 41 ? "at most " : "") + num(error.p_value);
    for (const [name, value] of [["distance (W1)", raw], ["floor: what chance alone gives", floor], ["debiased: what is beyond chance", debiased], ["how often chance alone gives such distances (p-value)", pValue], ["largest error of a cell’s irreducible loss", error.irreducible_gap], ["regret bound: the largest regret on these rows, at any prices", error.regret_bound]])
      if (value !== null) list.append(html("dt", {}, name), html("dd", {}, typeof value === "string" ? value : num(value)));
    list.append(html("dt", {}, "traffic covered"), html("dd", {}, pct(error.covered)));
    $("calibration").replaceChildren(list);
  } else $("calibration-card").hidden = true;
  routes();
  reset();
  const shares = cellOf.map((c) => c.share);
  state.cell = shares.indexOf(Math.max(...shares));
  $("main").hidden = false;
  all();
})();
