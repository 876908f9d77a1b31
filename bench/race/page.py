"""The page of the book about the race, and its figures, from the results: no number in them is typed.

    page.py [RESULTS] [--check]

With --check nothing is written; it fails if page or figures are not what the results say. Needs Python alone.
"""

import argparse
import json
import math
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs" / "src"
FOREST, CELLS = "forest:200", "top-class:10"
NAMES = {"pointsman": "Pointsman", "total uncertainty": "confidence threshold", "numpy_in_blocks": "numpy in blocks", "crowd_kit": "crowd-kit"}
INTRODUCTION = """# The race

`make bench` runs Pointsman's Python package and the libraries people would use instead on the same arrays, in one process, one core each unless said, taking turns; figures are
medians. Peers are at the versions listed at the end. This page and its figures are written from `bench/results/race.json` by `bench/race/page.py`; bars that
are not met, and places where a peer is better, are shown like the others. The library's own table comes from `bench/results/core.json`.
"""


def name(key):
    return NAMES.get(key, key)


def seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def times(value):
    return f"{value:,.0f} ×" if value >= 10 else f"{value:.2g} ×"


def ratios(line):
    own = line["seconds"][line["subject"]]
    return {peer: time / own for peer, time in line["seconds"].items() if peer != line["subject"]}


def bar(line):
    """The bar, what it was measured by, and whether it is met."""
    if "bar" not in line:
        return None
    worst = min(ratios(line)[peer] for peer in line["bar"]["against"])
    return line["bar"]["at_least"], worst, worst >= line["bar"]["at_least"]


def speed(lines):
    text = ["## Speed", "", "| what | Pointsman | peers | times faster | bar |", "|---|---|---|---|---|"]
    for line in lines:
        own = seconds(line["seconds"][line["subject"]])
        peers = "<br>".join(f"{name(peer)} {seconds(line['seconds'][peer])}" for peer in ratios(line))
        faster = "<br>".join(times(ratio) for ratio in ratios(line).values())
        found = bar(line)
        said = "" if found is None else f"{found[0]} ×: {'met' if found[2] else '**not met**'}"
        text.append(f"| {line['what']} | {own} | {peers} | {faster} | {said} |")
    agreement = [line["agreement"] for line in lines if "agreement" in line]
    text += ["", "![Times faster than each peer](figures/race-speed.svg)", ""]
    text += [
        "Decisions: numpy looks up the action of each row's cell and checks nothing; Pointsman also checks every row, and keeps what its costs can be read from. "
        + "".join(f"The two agree on {share:.4%} of the rows. " for share in agreement)
        + "Calibration: pandas and numpy end with the losses of the cells under one loss; the router keeps the rows, so that any loss can be asked for later. The line that names cores is of a process in which everybody may use all of them; pandas and numpy use one. "
        "Another loss: the boosters' time is that of `fit` alone. Crowd labels: both read both files.",
        "",
    ]
    return text


def leads(rows, ours, peers):
    return sum(all(row["gain"][ours] >= row["gain"][peer] for peer in peers) for row in rows)


def gain(rows, resamples):
    methods = list(rows[0]["gain"])
    peers = [method for method in methods if method not in (FOREST, CELLS)]
    defaults = [peer for peer in peers if "regularised" not in peer]
    text = ["## Quality", "", "Routing gain on held-out rows of four data sets: 0 is a random order, 1 the best possible one."]
    text += ["Boosters are regressions of the reducible loss, trained anew for each loss; the router is calibrated once per data set. The confidence threshold ranks by the "
        "expected loss of the prediction itself.", ""]
    text += ["| data | loss | " + " | ".join(map(name, methods)) + " |", "|---|---|" + "---|" * len(methods)]
    for row in rows:
        best = max(row["gain"].values())
        cells = [f"**{value:.3f}**" if value == best else f"{value:.3f}" for value in row["gain"].values()]
        text.append(f"| {row['data']} | {row['loss']} | " + " | ".join(cells) + " |")
    text += ["", "![Gains of all methods](figures/race-gain.svg)", ""]
    for ours in (FOREST, CELLS):
        text.append(
            f"- `{ours}` is at least as good as every peer on {leads(rows, ours, peers)} of {len(rows)} pairs of data set and loss; "
            f"as every peer with default settings on {leads(rows, ours, defaults)}."
        )
    behind = [
        f"{row['data']}, {row['loss']}: {name(peer)} by {row['gain'][peer] - row['gain'][FOREST]:.3f}"
        for row in rows
        for peer, error in row["standard_error_of_lead"].items()
        if row["gain"][peer] - row["gain"][FOREST] > 2 * error
    ]
    behind_peers = [place for place in behind if CELLS not in place]
    text.append(
        f"- Where a peer is ahead of `{FOREST}` by more than two standard errors of the difference (test rows drawn anew, {resamples} times): "
        + ("; ".join(behind_peers) if behind_peers else "nowhere")
        + "."
    )
    met = leads(rows, FOREST, peers) >= 0.9 * len(rows)
    text += [f"- The bar, at least every peer's gain on 90 % of the pairs, is {'met' if met else '**not met**'} by `{FOREST}`.", ""]
    return text


def conformal(rows):
    text = ["## Abstaining", ""]
    text.append(
        "MAPIE makes sets of labels that hold the label with a chosen confidence, and abstains where the set is not a single label. Beside it: the mean loss of "
        "the rows answered if as many rows are left out by what Pointsman expects them to cost. Less is better."
    )
    text += ["", "| data | loss | sets, confidence | abstained | MAPIE | " + f"{CELLS} | {FOREST} | {name('total uncertainty')} |", "|---" * 8 + "|"]
    for row in rows:
        cost = row["cost_of_answers"]
        theirs = cost[f"MAPIE {row['score']}"]
        values = [theirs, cost[CELLS], cost[FOREST], cost["total uncertainty"]]
        cells = [f"**{value:.4f}**" if value == min(values) else f"{value:.4f}" for value in values]
        text.append(
            f"| {row['data']} | {row['loss']} | {row['score']}, {row['level']} | {row['abstained']:.1%} | " + " | ".join(cells) + " |"
        )
    text.append("")
    for ours in (FOREST, CELLS):
        better = sum(row["cost_of_answers"][ours] <= row["cost_of_answers"][f"MAPIE {row['score']}"] for row in rows)
        text.append(f"- `{ours}` costs no more than MAPIE in {better} of {len(rows)} places.")
    return [*text, ""]


def quantity(text):
    """A number with a unit or without, in seconds or bytes, and its unit."""
    number, unit = re.match(r"([\d,.]+)\s*(\S*)", text).groups()
    return float(number.replace(",", "")) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "GB": 1e9}.get(unit, 1), unit


def judged(line):
    """The verdict of a line of the library, with whether its bar is met."""
    found = re.search(r"bar: ([^);]+)", line["verdict"])
    if not found:
        return line["verdict"]
    bars = [quantity(part) for part in found[1].split(", ")]
    if bars[0][1]:
        met = all(quantity(own)[0] <= most for own, (most, _) in zip(line["subject"].split(", "), bars))
    else:
        ratio, limit = quantity(line["verdict"])[0], bars[0][0]
        met = ratio >= limit if re.search("speed|faster", line["verdict"]) else ratio <= limit
    return line["verdict"].replace(found[0], f"{found[0]}: {'met' if met else '**not met**'}")


def with_commas(text):
    return re.sub(r"\b\d{5,}\b", lambda number: f"{int(number[0]):,}", text)


def core():
    """The Rust library's own table, if it was measured."""
    path = ROOT / "bench" / "results" / "core.json"
    if not path.is_file():
        return []
    text = ["## The library alone", "", "In Rust, on two cores unless said; each line against a peer in the same run, or a bare pass over the same memory.", ""]
    text += ["| what / peer | Pointsman | peer | bar |", "|---|---|---|---|"]
    lines = json.loads(path.read_text())
    return [*text, *(f"| {with_commas(line['what'])} | {line['subject']} | {line['peer']} | {judged(line)} |" for line in lines), ""]


def page(results):
    text = [INTRODUCTION, *speed(results["speed"]), *core()]
    if "gain" in results:
        text += [*gain(results["gain"], results["resamples"]), *conformal(results["conformal"])]
    versions = ", ".join(f"{package} {version}" for package, version in results["versions"].items())
    machine = results["machine"]
    text += ["## Versions", "", f"{versions}; {machine['processor']}, {machine['threads']} thread each."]
    return "\n".join(text) + "\n"


class Drawing:
    """An SVG of lines, circles and words."""

    def __init__(self, width, height):
        self.parts, self.size = [], (width, height)

    def line(self, x1, y1, x2, y2, colour="#cccccc", width=1.0):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}" fill-opacity="0.85"/>')

    def word(self, x, y, text, anchor="start", size=12):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>')

    def svg(self):
        width, height = self.size
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
        return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *self.parts, "</svg>"]) + "\n"


def speed_figure(lines):
    """How many times faster, on a logarithmic axis; a red stroke is the bar."""
    rows = [(line, peer, ratio) for line in lines for peer, ratio in ratios(line).items()]
    top, left, right, step = 40, 560, 940, 22
    low = min(-1, math.floor(min(math.log10(ratio) for *_, ratio in rows)))
    high = max(1, math.ceil(max(math.log10(ratio) for *_, ratio in rows)))
    drawing = Drawing(1040, top + step * len(rows) + 30)
    at = lambda ratio: left + (math.log10(ratio) - low) / (high - low) * (right - left)  # noqa: E731
    drawing.word(left, 16, "times faster than the peer; red: the bar", size=13)
    for power in range(low, high + 1):
        drawing.line(at(10**power), top - 8, at(10**power), top + step * len(rows), "#444444" if power == 0 else "#dddddd")
        drawing.word(at(10**power), top - 12, f"{10**power:,.10g}", "middle", 11)
    before = None
    for i, (line, peer, ratio) in enumerate(rows):
        y = top + step * (i + 0.5)
        if line is not before:
            drawing.word(8, y + 4, line["what"].split(" / ")[0])
        before = line
        drawing.word(left - 10, y + 4, name(peer), "end")
        drawing.line(at(1), y, at(ratio), y, "#3b6ea8" if ratio >= 1 else "#c9772b", 10)
        barred = "bar" in line and peer in line["bar"]["against"]
        wanted = line["bar"]["at_least"] if barred else 1
        if barred:
            drawing.line(at(wanted), y - 9, at(wanted), y + 9, "#c03030", 2)
        drawing.word(at(max(ratio, wanted)) + 8, y + 4, times(ratio), size=11)
    return drawing.svg()


COLOURS = {FOREST: "#1f5fa8", CELLS: "#58a6d6", "total uncertainty": "#999999", "best default booster": "#e39a3b", "best regularised booster": "#b5542b"}


def gain_figure(rows):
    top, left, right, step = 50, 300, 980, 22
    drawing = Drawing(1000, top + step * len(rows) + 12)
    low = math.floor(10 * min(min(row["gain"].values()) for row in rows)) / 10
    at = lambda value: left + (value - low) / (0.9 - low) * (right - left)  # noqa: E731
    for i, (method, colour) in enumerate(COLOURS.items()):
        drawing.dot(20 + 195 * i, 12, colour)
        drawing.word(30 + 195 * i, 16, name(method))
    for tenth in range(round(low * 10), 10):
        drawing.line(at(tenth / 10), top - 4, at(tenth / 10), top + step * len(rows), "#444444" if tenth == 0 else "#dddddd")
        drawing.word(at(tenth / 10), top - 8, f"{tenth / 10:.1f}", "middle", 11)
    for i, row in enumerate(rows):
        y = top + step * (i + 0.5)
        drawing.word(left - 10, y + 4, f"{row['data']}, {row['loss']}", "end")
        boosters = {peer: value for peer, value in row["gain"].items() if peer not in (FOREST, CELLS, "total uncertainty")}
        shown = {
            "total uncertainty": row["gain"]["total uncertainty"],
            "best default booster": max(value for peer, value in boosters.items() if "regularised" not in peer),
            "best regularised booster": max(value for peer, value in boosters.items() if "regularised" in peer),
            CELLS: row["gain"][CELLS],
            FOREST: row["gain"][FOREST],
        }
        for method, value in shown.items():
            drawing.dot(at(value), y, COLOURS[method])
    return drawing.svg()


def files(results):
    out = {BOOK / "race.md": page(results), BOOK / "figures" / "race-speed.svg": speed_figure(results["speed"])}
    if "gain" in results:
        out[BOOK / "figures" / "race-gain.svg"] = gain_figure(results["gain"])
    contents, link = (BOOK / "SUMMARY.md").read_text(), "- [The race](race.md)\n"
    return out | {BOOK / "SUMMARY.md": contents if link in contents else contents + link}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=pathlib.Path, default=ROOT / "bench" / "results" / "race.json")
    parser.add_argument("--check", action="store_true", help="fail if page or figures are not what the results say")
    arguments = parser.parse_args()
    if arguments.check and not arguments.results.is_file():
        if os.environ.get("CI") == "true":
            sys.exit(f"{arguments.results} is missing: make race")
        return print(f"SKIPPED: {arguments.results} is not there yet: make race")
    wrong = []
    for path, text in files(json.loads(arguments.results.read_text())).items():
        if not arguments.check:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            wrong.append(str(path.relative_to(ROOT)))
    if wrong:
        sys.exit(f"{', '.join(wrong)}: not what {arguments.results} says; run bench/race/page.py")


if __name__ == "__main__":
    main()
