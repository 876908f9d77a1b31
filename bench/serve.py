"""Single decisions and batches over HTTP, against a handler that parses the same body and answers fixed bytes, in the same run.

    serve.py [--seconds 120] [--decisions 10000000] [--store URL] [--remark TEXT]    measures and writes bench/results/serve.json

It needs `pointsman` and the example `fixed_answer` of the server's crate as release builds, and `oha`: `make bench-serve` gets all three.
Load generator, service and peer share the processors of one machine, so each takes time from the other; both are measured in that way,
in turns. Latencies at a fixed rate are corrected for coordinated omission: a request counts from the time it was due.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASE, RESULTS = ROOT / "target" / "release", ROOT / "bench" / "results" / "serve.json"
OHA = ROOT / "target" / "tools" / "bin" / "oha"
CONNECTIONS = 64
RATES = [5_000, 20_000]
ROUNDS = 3
SECONDS_BETWEEN_SCRAPES = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120, help="how long each fixed rate is held")
    parser.add_argument("--decisions", type=int, default=10_000_000, help="decisions over which memory is observed")
    parser.add_argument("--store", help="a store other than SQLite files in a temporary folder")
    parser.add_argument("--remark", help="what else readers must know about the conditions")
    arguments = parser.parse_args()
    for path in (RELEASE / "pointsman", RELEASE / "examples" / "fixed_answer", OHA):
        if not path.exists():
            sys.exit(f"{path.relative_to(ROOT)} is not there: run make bench-serve")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(pathlib.Path(folder), arguments)
    if arguments.store is None:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def measure(folder, arguments):
    conditions = f"{os.cpu_count()} processors shared with the load generator, {platform.machine()}"
    found = {"conditions": f"{conditions}, {arguments.remark}" if arguments.remark else conditions}
    run(RELEASE / "pointsman", "--quiet", "demo", "-o", "demo", cwd=folder)
    run(RELEASE / "pointsman", "--quiet", "calibrate", "demo/calibration.csv", "--partition", "forest:200", "-o", "forest.safetensors", cwd=folder)
    run(RELEASE / "pointsman", "--quiet", "calibrate", "demo/calibration.csv", "--partition", "top-class:10", "-o", "cells.safetensors", cwd=folder)
    header, first = (folder / "demo" / "heldout.csv").read_text().splitlines()[:2]
    row = dict(zip(header.split(","), first.split(",")))
    probs = [float(value) for name, value in row.items() if name.startswith(("prob_", "p_"))]
    features = {name[2:]: float(value) for name, value in row.items() if name.startswith("x_")}
    body = json.dumps({"probs": probs})
    (folder / "task.toml").write_text('abstain = 0.47\n[[route]]\nname = "expert"\ncost = 0.08\n')
    (folder / "service.toml").write_text(
        '[server]\nlisten = "127.0.0.1:0"\n'
        + (f'[store]\nurl = "{arguments.store}"\n' if arguments.store else "")
        + "".join(f'[deployments.{name}]\nrouter = "{name}.safetensors"\ntask = "task.toml"\n' for name in ("cells", "forest"))
    )
    with peer() as fixed:
        with service(folder) as (url, process, seconds):
            found["start_up_seconds"] = seconds
            cells, forest = (f"{url}/v1/deployments/{name}/decide" for name in ("cells", "forest"))
            with_features = json.dumps({"probs": probs, "features": features})
            found["throughput"] = throughput(fixed, [("cells", cells, body), ("forest", forest, with_features)])
            found["rates"] = [at_rate(rate, arguments.seconds, fixed, cells, body, url, process) for rate in RATES]
            found["highest_rate_below_1_ms"] = {name: highest_rate(target, body) for name, target in (("cells", cells), ("fixed", fixed))}
            found["memory"] = memory(cells, body, process, arguments.decisions)
        found["log_bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if ".db" in str(path) and path.is_file())
    return found


def run(*command, cwd):
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def peer():
    process = subprocess.Popen([RELEASE / "examples" / "fixed_answer"], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()


@contextlib.contextmanager
def service(folder):
    """The address, the process, and the seconds until it was ready."""
    log = (folder / "service.log").open("w+")
    before = time.monotonic()
    process = subprocess.Popen([RELEASE / "pointsman", "serve", "--config", "service.toml"], cwd=folder, stdout=log, stderr=log, text=True)
    try:
        url = None
        while url is None:
            if process.poll() is not None:
                sys.exit((folder / "service.log").read_text())
            match = re.search(r"http://127\.0\.0\.1:\d+", (folder / "service.log").read_text())
            url = match and match[0]
            with contextlib.suppress(OSError, TypeError):
                urllib.request.urlopen(f"{url}/readyz").read()
                break
            url = None
            time.sleep(0.002)
        yield url, process, time.monotonic() - before
    finally:
        process.terminate()
        process.wait()


def oha(url, body, *flags):
    """Requests per second and latencies in seconds; every answer must be a 200."""
    command = [OHA, "--no-tui", "--output-format", "json", "-m", "POST", "-T", "application/json", "-d", body, *flags, url]
    found = json.loads(subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout)
    if set(found["statusCodeDistribution"]) != {"200"}:
        sys.exit(f"{url}: {found['statusCodeDistribution']} {found['errorDistribution']}")
    return found


def throughput(fixed, targets):
    """Medians of several rounds in turns, with as many requests as the connections allow."""
    rates = {"fixed": []} | {name: [] for name, *_ in targets}
    for _ in range(ROUNDS):
        for name, url, body in [("fixed", fixed, targets[0][2]), *targets]:
            # The peer of features by name has none.
            rates[name].append(oha(url, body, "-z", "8s", "-c", CONNECTIONS)["summary"]["requestsPerSec"])
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {"requests_per_second": medians, "of_fixed": {name: medians[name] / medians["fixed"] for name, *_ in targets}}


def at_rate(rate, seconds, fixed, cells, body, url, process):
    """The 99th percentile at a fixed rate, with the metrics read every few seconds."""
    stop = threading.Event()

    def scrape():
        while not stop.wait(SECONDS_BETWEEN_SCRAPES):
            urllib.request.urlopen(f"{url}/metrics").read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        flags = ["-q", rate, "-c", CONNECTIONS, "--latency-correction"]
        held = {name: oha(target, body, "-z", f"{seconds}s", *flags) for name, target in (("fixed", fixed), ("cells", cells))}
    finally:
        stop.set()
        thread.join()
    p99 = {name: found["latencyPercentiles"]["p99"] for name, found in held.items()}
    met = {name: found["summary"]["requestsPerSec"] for name, found in held.items()}
    return {"rate": rate, "seconds": seconds, "p99_seconds": p99, "ratio": p99["cells"] / p99["fixed"], "requests_per_second": met, "resident_bytes": resident(process)}


def highest_rate(url, body):
    """The highest tried rate whose 99th percentile is below a millisecond, by bisection to a thousand requests per second."""
    low, high = 0, 64_000
    while high - low > 1_000:
        middle = (low + high) // 2
        found = oha(url, body, "-z", "8s", "-q", middle, "-c", CONNECTIONS, "--latency-correction")
        good = found["latencyPercentiles"]["p99"] < 0.001 and found["summary"]["requestsPerSec"] > 0.98 * middle
        low, high = (middle, high) if good else (low, middle)
    return low


def memory(url, body, process, decisions):
    """The resident memory after each tenth of the decisions."""
    sizes = [resident(process)]
    for _ in range(10):
        oha(url, body, "-n", decisions // 10, "-c", CONNECTIONS)
        sizes.append(resident(process))
    return {"decisions": decisions, "resident_bytes": sizes}


def resident(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])


if __name__ == "__main__":
    main()
