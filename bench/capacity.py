"""Writes the book's page on the service's capacity from bench/results/serve.json.

    capacity.py [--check]

With --check nothing is written; it fails if the page is not what the results say. Needs Python alone.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "bench" / "results" / "serve.json", ROOT / "docs" / "src" / "capacity.md"
NAMES = {"cells": "`top-class:10`", "forest": "`forest:200`"}
PEERS = {"cells": "fixed answer", "forest": "decision, then fixed answer"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page is not what the results say")
    arguments = parser.parse_args()
    page = written(json.loads(RESULTS.read_text()))
    if not arguments.check:
        PAGE.write_text(page)
    elif PAGE.read_text() != page:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what {RESULTS.relative_to(ROOT)} says: run bench/capacity.py")


def written(found):
    parts = [HEAD.format(conditions=found["conditions"])]
    for part, write in SECTIONS.items():
        if part in found:
            parts.append(write(found[part]))
    return "\n".join(parts)


def table(*rows):
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def thousands(value):
    return f"{value:,.0f}"


def millis(seconds):
    return f"{seconds * 1e3:.2f} ms"


def bar(met, text):
    return f"{text}: {'met' if met else '**not met**'}"


def throughput(found):
    rates, peers, shares = found["requests_per_second"], found["peers"], found["of_peer"]
    rows = [[NAMES[name], thousands(rates[name]), PEERS[name], thousands(peers[name]), f"{share:.2f}", bar(share >= 0.6, "0.6")] for name, share in shares.items()]
    return (
        "## Single decisions, as many as fit\n\n64 connections that are kept open, JSON, every decision committed before it is answered. A forest takes microseconds per "
        "decision, so that its peer makes the same decision before it answers.\n\n"
    ) + table(["policy", "decisions per second", "peer", "the peer's", "share", "bar"], *rows)


def rates(found):
    rows = []
    for one in found:
        for name, ratio in one["ratio"].items():
            own, peer = millis(one["p99_seconds"][name]), millis(one["peers"][name])
            rows.append([thousands(one["rate"]), NAMES[name], own, PEERS[name], peer, f"{ratio:.2f}", bar(ratio <= 1.5, "1.5")])
    seconds = found[0]["seconds"]
    return f"## Latency at a fixed rate\n\n99th percentile over {seconds} seconds each, counted from the time a request was due; decisions are archived and metrics are read meanwhile.\n\n" + table(
        ["requests per second", "policy", "99th percentile", "peer", "the peer's", "ratio", "bar"], *rows
    )


def highest(found):
    return (
        f"The highest rate with a 99th percentile below 1 ms, tried in steps of a thousand for 8 seconds each: {thousands(found['cells'])} "
        f"requests per second; the fixed answer: {thousands(found['fixed'])}.\n"
    )


def batches(found):
    rows = [
        [
            NAMES[name], thousands(one["rows_per_second"]), f"{one['refused']:.1%}", thousands(one["dry_rows_per_second"]), thousands(one["library_rows_per_second"]),
            f"{one['of_library']:.3f}", bar(one["of_library"] >= 0.3, "0.3"),
        ]
        for name, one in found.items()
    ]
    return (
        "## Batches\n\nArrow streams of 1,000 rows, every row committed, against the library's `decide_batch` on the same rows in memory. Dry runs "
        "decide and answer without the log; requests are refused (503) while the log has no room. Cells take the library some nanoseconds per row: reading a stream and writing the answer's columns take longer "
        "than that, and a row of the log takes microseconds, so that the bar is out of reach for them.\n\n"
    ) + table(["policy", "rows per second", "refused", "as dry runs", "the library's", "share", "bar"], *rows)


def memory(found):
    sizes = [size / 1e6 for size in found["resident_bytes"]]
    return (
        f"## Memory\n\n{thousands(found['decisions'])} decisions: {sizes[0]:.0f} MB of resident memory before, {sizes[1]:.0f} MB after the first tenth, "
        f"{sizes[-1]:.0f} MB at the end, at most {max(sizes):.0f} MB. The log takes {found['log_bytes'] / found['decisions']:.0f} bytes per decision of two classes.\n"
    )


def start_up(found):
    bars = {"top-class:10": 0.2, "forest:200": 2.0}
    rows = [
        [f"`{name}`", f"{one['megabytes']:.0f} MB", f"{one['seconds'] * 1e3:.0f} ms", f"{one['again_seconds'] * 1e3:.0f} ms", bar(one["again_seconds"] <= bars[name], f"{bars[name] * 1e3:.0f} ms")]
        for name, one in found.items()
    ]
    return (
        "## Starting\n\nFrom the start of the process until it is ready, router files of 50,000 rows. The first start compiles the router for the task; later ones find "
        "it compiled in the store.\n\n"
    ) + table(["partition", "router file", "first start", "later starts", "bar of later starts"], *rows)


def postgres(found):
    share, p99 = found["throughput"]["of_peer"], found["rates"]
    held = "; ".join(f"{millis(one['p99_seconds']['cells'])} at {thousands(one['rate'])} requests per second ({thousands(one['requests_per_second']['cells'])} reached)" for one in p99)
    return (
        f"## PostgreSQL\n\nThe server on the same two processors, with its default settings: {thousands(found['throughput']['requests_per_second']['cells'])} single decisions per second "
        f"({share['cells']:.2f} of the fixed answer). 99th percentiles over {p99[0]['seconds']} seconds: {held}.\n"
    )


def gateway(found):
    rows = [
        [name, thousands(found[key]["requests_per_second"]), millis(found[key]["added_seconds"])]
        for key, name in (("pointsman", "Pointsman, asked before the model"), ("litellm", "LiteLLM's proxy, before the model"))
    ]
    return (
        "## Beside a proxy of language models\n\nOne processor for the service or the proxy, the other for a model that answers at once and the load generator. The service does "
        "not forward requests: what it adds is the median latency of its own answer. The proxy forwards them: what it adds is the median latency through it, less that of the "
        "model. Only these overheads are compared; the two do different work.\n\n"
    ) + table(["what", "requests per second, 16 connections", "latency added, one connection"], *rows)


HEAD = """# Capacity of the service

`make bench-serve` measures the service against peers in the same run; `bench/capacity.py` writes this page from its results. Conditions:
{conditions}. Service, load generator and peer take time from each other, so that ratios say more than rates. The fixed answer is a handler
of the same framework that parses the same body and answers the same bytes every time, without a store. Bars that are not met are shown
like the others.
"""

SECTIONS = {
    "throughput": throughput,
    "rates": rates,
    "highest": highest,
    "batches": batches,
    "start-up": start_up,
    "memory": memory,
    "postgres": postgres,
    "gateway": gateway,
}

if __name__ == "__main__":
    main()
