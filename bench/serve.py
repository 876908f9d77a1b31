"""The service under load, against peers in the same run.

    serve.py [--only PART ...] [--seconds 120] [--decisions 10000000] [--remark TEXT]    measures and writes bench/results/serve.json,
                                                                                        from which capacity.py writes a page of the book

| part | what is measured | peer |
|---|---|---|
| start-up | seconds from the start of the process until it is ready, routers of 50,000 rows | none |
| throughput | single decisions over 64 connections | a handler that parses the same body and answers fixed bytes; for forests one that decides first |
| rates | 99th percentile of the latency at 5,000 and 20,000 requests per second | the same handlers at the same rate |
| highest | the highest rate with a 99th percentile below 1 ms | the same handler |
| batches | Arrow streams of 1,000 rows | the library's `decide_many` on the same rows |
| memory | resident memory while 10 million decisions are made | none |
| postgres | throughput and rates with the log in PostgreSQL | the same handler |
| gateway | a language model's proxy in front of a model that answers at once, against asking the service first; one processor each | LiteLLM |

It needs `pointsman`, `pointsman-bench` and `fixed_answer` as release builds, `oha`, and the packages of
`bench/serve-requirements.txt`: `make bench-serve` gets them. Load generator, service and peer share the processors of one machine, so that each
takes time from the other; both are measured in that way, in turns. Latencies at a fixed rate are corrected for coordinated omission: a
request counts from the time it was due.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHIPPED, RESULTS = ROOT / "target" / "dist", ROOT / "bench" / "results" / "serve.json"
OHA = ROOT / "target" / "tools" / "bin" / "oha"
CONNECTIONS = 64
RATES = [5_000, 20_000]
ROUNDS = 3
SECONDS_BETWEEN_SCRAPES = 5
ROWS_PER_BATCH = 1_000
ROWS_AT_START_UP = 50_000
TASK = 'abstain = 0.47\n[[route]]\nname = "expert"\ncost = 0.08\n'
PARTS = ["start-up", "throughput", "rates", "highest", "batches", "memory", "postgres", "gateway"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the parts to measure; others keep their results")
    parser.add_argument("--seconds", type=int, default=120, help="how long each fixed rate is held")
    parser.add_argument("--decisions", type=int, default=10_000_000, help="decisions over which memory is observed")
    parser.add_argument("--remark", help="what else readers must know about the conditions")
    arguments = parser.parse_args()
    for path in (SHIPPED / "pointsman", SHIPPED / "pointsman-bench", SHIPPED / "fixed_answer", OHA):
        if not path.exists():
            sys.exit(f"{path.relative_to(ROOT)} is not there: run make bench-serve")
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    conditions = f"{os.cpu_count()} processors shared with the load generator, {platform.machine()}"
    found["conditions"] = f"{conditions}, {arguments.remark}" if arguments.remark else conditions
    with tempfile.TemporaryDirectory() as folder:
        world = World(pathlib.Path(folder))
        with peer(arguments=world.policy("forest")) as fixed:
            world.peers = {"cells": fixed, "forest": fixed + "-first"}
            for part in PARTS:
                if part in arguments.only:
                    found[part] = globals()[f"measure_{part.replace('-', '_')}"](world, arguments)
                    print(part, json.dumps(found[part], indent=1), flush=True)
                    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


class World:
    """The demo's data, two routers on it, the bodies of requests, and the addresses of the peers."""

    def __init__(self, folder):
        self.folder, self.peers = folder, {}
        run(SHIPPED / "pointsman", "--quiet", "demo", "-o", "demo", cwd=folder)
        for name, partition in (("forest", "forest:200"), ("cells", "top-class:10")):
            calibrate(folder, "demo/calibration.csv", partition, name)
        lines = (folder / "demo" / "heldout.csv").read_text().splitlines()
        rows = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]
        numbers = [name for name in rows[0] if name.startswith(("prob_", "x_"))]
        self.rows = [{name: float(row[name]) for name in numbers} for row in rows]
        probs = [value for name, value in self.rows[0].items() if name.startswith("prob_")]
        features = {name[2:]: value for name, value in self.rows[0].items() if name.startswith("x_")}
        self.bodies = {"cells": json.dumps({"probs": probs}), "forest": json.dumps({"probs": probs, "features": features})}
        (folder / "task.toml").write_text(TASK)

    def policy(self, name):
        """The files of a router and its task."""
        return self.folder / f"{name}.safetensors", self.folder / "task.toml"


def calibrate(folder, table, partition, name):
    run(SHIPPED / "pointsman", "--quiet", "calibrate", table, "--partition", partition, "-o", f"{name}.safetensors", cwd=folder)


def run(*command, cwd):
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def peer(*before, arguments=()):
    """The address of the handler of fixed answers, given a router and a task or nothing; `before` may pin it to a processor."""
    process = subprocess.Popen([*before, SHIPPED / "fixed_answer", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()


@contextlib.contextmanager
def service(folder, deployments=("cells", "forest"), store=None, before=(), home=None):
    """The address, the process, and the seconds until it was ready. The store is new, unless the folder `home` has one."""
    is_own = home is None
    home = home or pathlib.Path(tempfile.mkdtemp(dir=folder))
    files = "".join(f'[deployments.{name}]\nrouter = "{folder / name}.safetensors"\ntask = "{folder}/task.toml"\n' for name in deployments)
    (home / "service.toml").write_text(f'[server]\nlisten = "127.0.0.1:0"\n[store]\nurl = "{store or "sqlite:pointsman.db"}"\n{files}')
    log = (home / "service.log").open("w+")
    start = time.monotonic()
    process = subprocess.Popen([*before, SHIPPED / "pointsman", "serve", "--config", "service.toml"], cwd=home, stdout=log, stderr=log, text=True)
    try:
        url = None
        while url is None:
            if process.poll() is not None:
                sys.exit((home / "service.log").read_text())
            match = re.search(r"http://127\.0\.0\.1:\d+", (home / "service.log").read_text())
            if match:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{match[0]}/readyz").read()
                    url = match[0]
            else:
                time.sleep(0.002)
        yield url, process, time.monotonic() - start
    finally:
        process.terminate()
        process.wait()
        if is_own:
            shutil.rmtree(home)


def oha(url, body, *flags, before=()):
    """Requests per second and latencies in seconds; every answer must be a 200."""
    command = [*before, OHA, "--no-tui", "--output-format", "json", "-m", "POST", "-T", "application/json", "-d", body, *flags, url]
    found = json.loads(subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout)
    if set(found["statusCodeDistribution"]) != {"200"}:
        sys.exit(f"{url}: {found['statusCodeDistribution']} {found['errorDistribution']}")
    return found


def address(url, deployment):
    return f"{url}/v1/deployments/{deployment}/decide"


def measure_start_up(world, _):
    """Routers of 50,000 rows, each alone in a new store; and again in a store that knows the router."""
    numbers = random.Random(1)
    with (world.folder / "rows.csv").open("w") as table:
        classes, features = range(5), range(20)
        table.write(",".join([f"prob_{c}" for c in classes] + [f"votes_{c}" for c in classes] + [f"x_{f}" for f in features]) + "\n")
        for _ in range(ROWS_AT_START_UP):
            weights = [numbers.random() ** 3 for _ in classes]
            votes = [0] * len(weights)
            for vote in numbers.choices(classes, weights, k=3):
                votes[vote] += 1
            values = [w / sum(weights) for w in weights] + votes + [numbers.random() for _ in features]
            table.write(",".join(map(repr, values)) + "\n")
    found = {}
    for name, partition in (("start_cells", "top-class:10"), ("start_forest", "forest:200")):
        calibrate(world.folder, "rows.csv", partition, name)
        first, later = [], []
        for _ in range(5):
            home = pathlib.Path(tempfile.mkdtemp(dir=world.folder))
            for times in (first, later):
                with service(world.folder, [name], home=home) as (_, _, seconds):
                    times.append(seconds)
            shutil.rmtree(home)
        size = (world.folder / f"{name}.safetensors").stat().st_size
        found[partition] = {"seconds": statistics.median(first), "again_seconds": statistics.median(later), "megabytes": size / 1e6}
    return found


def measure_throughput(world, _, store=None):
    """Medians of several rounds in turns, with as many requests as the connections allow."""
    with service(world.folder, store=store) as (url, _, _):
        targets = {(kind, name): target for name in world.bodies for kind, target in (("own", address(url, name)), ("peer", world.peers[name]))}
        rates = {key: [] for key in targets}
        for _ in range(ROUNDS):
            for (kind, name), target in targets.items():
                rates[kind, name].append(oha(target, world.bodies[name], "-z", "8s", "-c", CONNECTIONS)["summary"]["requestsPerSec"])
    own, peers = ({name: statistics.median(rates[kind, name]) for name in world.bodies} for kind in ("own", "peer"))
    return {"requests_per_second": own, "peers": peers, "of_peer": {name: own[name] / peers[name] for name in own}}


def measure_rates(world, arguments, store=None):
    found = []
    with service(world.folder, store=store) as (url, process, _):
        for rate in RATES:
            own, peers, met = {}, {}, {}
            for name, body in world.bodies.items():
                peers[name] = at_rate(rate, arguments.seconds, world.peers[name], body, url)["latencyPercentiles"]["p99"]
                held = at_rate(rate, arguments.seconds, address(url, name), body, url)
                own[name], met[name] = held["latencyPercentiles"]["p99"], held["summary"]["requestsPerSec"]
            ratio = {name: own[name] / peers[name] for name in own}
            found.append({"rate": rate, "seconds": arguments.seconds, "p99_seconds": own, "peers": peers, "ratio": ratio, "requests_per_second": met, "resident_bytes": resident(process)})
    return found


def at_rate(rate, seconds, target, body, service_url):
    """One fixed rate, with the metrics read every few seconds."""
    stop = threading.Event()

    def scrape():
        while not stop.wait(SECONDS_BETWEEN_SCRAPES):
            urllib.request.urlopen(f"{service_url}/metrics").read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        return oha(target, body, "-z", f"{seconds}s", "-q", rate, "-c", CONNECTIONS, "--latency-correction")
    finally:
        stop.set()
        thread.join()


def measure_highest(world, _):
    """The highest tried rate whose 99th percentile is below a millisecond, by bisection to a thousand requests per second."""

    def highest(url, body):
        low, high = 0, 64_000
        while high - low > 1_000:
            middle = (low + high) // 2
            found = oha(url, body, "-z", "8s", "-q", middle, "-c", CONNECTIONS, "--latency-correction")
            good = found["latencyPercentiles"]["p99"] < 0.001 and found["summary"]["requestsPerSec"] > 0.98 * middle
            low, high = (middle, high) if good else (low, middle)
        return low

    with service(world.folder) as (url, _, _):
        return {"fixed": highest(world.peers["cells"], world.bodies["cells"]), "cells": highest(address(url, "cells"), world.bodies["cells"])}


def measure_batches(world, _):
    """Rows per second in Arrow streams of 1,000 rows, logged and as dry runs, and by the library on the same rows."""
    import pyarrow

    path = world.folder / "batch.arrow"
    table = pyarrow.Table.from_pylist(world.rows[:ROWS_PER_BATCH])
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    found = {}
    for name in world.bodies:
        command = [SHIPPED / "pointsman-bench", "batches", world.folder / f"{name}.safetensors", world.folder / "demo" / "heldout.csv"]
        library = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        with service(world.folder, [name]) as (url, _, _):
            targets = {"logged": address(url, name), "dry": address(url, name) + "?dry_run=true"}
            rounds = {kind: [streams(path, target) for _ in range(ROUNDS)] for kind, target in targets.items()}
        served, dry = (ROWS_PER_BATCH * statistics.median(rate for rate, _ in rounds[kind]) for kind in targets)
        refused = statistics.mean(share for _, share in rounds["logged"])
        found[name] = {"rows_per_second": served, "refused": refused, "dry_rows_per_second": dry, "library_rows_per_second": library, "of_library": served / library}
    return found


def streams(path, target):
    """How many requests with an Arrow stream are decided per second, and the share that is refused because the log has no room."""
    flags = ["-T", "application/vnd.apache.arrow.stream", "-z", "8s", "-c", 4]
    command = [OHA, "--no-tui", "--output-format", "json", "-m", "POST", "-D", path, *flags, target]
    result = json.loads(subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout)
    answers = result["statusCodeDistribution"]
    decided, refused = answers.pop("200", 0), answers.pop("503", 0)
    if answers or not decided:
        sys.exit(f"{target}: {result['statusCodeDistribution']} {result['errorDistribution']}")
    return decided / result["summary"]["total"], refused / (decided + refused)


def measure_memory(world, arguments):
    """The resident memory and the size of the log after each tenth of the decisions."""
    with service(world.folder) as (url, process, _):
        sizes = [resident(process)]
        for _ in range(10):
            oha(address(url, "cells"), world.bodies["cells"], "-n", arguments.decisions // 10, "-c", CONNECTIONS)
            sizes.append(resident(process))
        log = sum(path.stat().st_size for path in world.folder.rglob("*.db*/*") if path.is_file())
    return {"decisions": arguments.decisions, "resident_bytes": sizes, "log_bytes": log}


def resident(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def measure_postgres(world, arguments):
    with postgres() as store:
        return {"throughput": measure_throughput(world, arguments, store), "rates": measure_rates(world, arguments, store)}


@contextlib.contextmanager
def postgres():
    """The address of a PostgreSQL server of its own, with its default settings."""
    tools = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    # PostgreSQL refuses to run as root.
    user = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
    port = free_port()
    subprocess.run([tools / "initdb", "-D", folder / "data", "-U", "points", "-A", "trust"], check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
    server = subprocess.Popen(
        [tools / "postgres", "-D", folder / "data", "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", folder],
        stderr=subprocess.DEVNULL, cwd="/", **user
    )
    try:
        while subprocess.run([tools / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode:
            time.sleep(0.1)
        yield f"postgres://points@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def measure_gateway(world, _):
    """What stands before a model that answers at once, on one processor; model and load generator are on the other.

    The service does not forward requests: its callers ask it first and then the model, so that the latency that it adds is that of its answer.
    LiteLLM forwards them: what it adds is the latency through it less that of asking the model directly.
    """
    on = lambda processor: ("taskset", "-c", str(processor))
    with peer(*on(1)) as model:
        base = model.removesuffix("/decide")
        chat = json.dumps({"model": "big", "messages": [{"role": "user", "content": "which intent?"}]})

        def measure(target, body):
            most = oha(target, body, "-z", "10s", "-c", 16, before=on(1))
            alone = oha(target, body, "-z", "10s", "-c", 1, before=on(1))
            return {"requests_per_second": most["summary"]["requestsPerSec"], "median_seconds": alone["latencyPercentiles"]["p50"]}

        direct = measure(f"{base}/v1/chat/completions", chat)
        with service(world.folder, ["cells"], before=on(0)) as (url, _, _):
            own = measure(address(url, "cells"), world.bodies["cells"])
        with litellm(world.folder, base, on(0)) as url:
            other = measure(f"{url}/v1/chat/completions", chat)
    return {
        "model": direct,
        "pointsman": own | {"added_seconds": own["median_seconds"]},
        "litellm": other | {"added_seconds": other["median_seconds"] - direct["median_seconds"]},
    }


@contextlib.contextmanager
def litellm(folder, model, before):
    port = free_port()
    (folder / "litellm.yaml").write_text(
        "model_list:\n- model_name: big\n  litellm_params:\n    model: openai/big\n"
        f"    api_base: {model}/v1\n    api_key: none\n"
    )
    command = [*before, pathlib.Path(sys.executable).with_name("litellm"), "--config", folder / "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "litellm.log").open("w") as log:
        # It listens on this machine only.
        without_key = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        environment = os.environ | without_key | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        for _ in range(120):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness").read()
                break
            time.sleep(1)
        else:
            sys.exit((folder / "litellm.log").read_text())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
