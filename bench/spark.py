"""Ten million rows through two executors of Spark: the time of each step, the processor time, and the peak memory of each process.

    spark.py [--rows 10000000] [--remark TEXT]    measures, writes bench/results/spark.json and the table of the book's page
    spark.py --check    fails if the table of the page is not what the results say

Measuring needs the package, pyspark, pyarrow and Java, and Linux, which tells the memory of processes. The check needs Python alone.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "bench" / "results" / "spark.json", ROOT / "docs" / "src" / "spark.md"
BEGIN, END = "<!-- written by bench/spark.py -->", "<!-- end -->"
CLASSES = [f"class{i}" for i in range(10)]
COLUMNS = ["id bigint", *(f"prob_{name} float" for name in CLASSES), *(f"votes_{name} tinyint" for name in CLASSES), "x_a float"]
MEBIBYTE = 1 << 20
SECONDS_BETWEEN_SAMPLES = 0.25


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--remark", help="what else readers must know about the conditions")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        if table(json.loads(RESULTS.read_text())) not in PAGE.read_text():
            sys.exit(f"{PAGE}: its table is not that of {RESULTS}: run bench/spark.py, or bring the table back")
        return
    found = measure(arguments.rows)
    if arguments.remark:
        found["conditions"] += f", {arguments.remark}"
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(found)}{END}{after}")
    print(table(found))


def table(found):
    """The results in Markdown."""
    places = sorted({name.removesuffix(" Python") for step in found["steps"] for name in step["peak_mib"]})
    text = ["| step | time | processor time, executors | " + " | ".join(f"{place}: JVM + Python" for place in places) + " |"]
    text.append("|---|---|---|" + "---|" * len(places))
    for step in found["steps"]:
        memory = [[step["peak_mib"].get(f"{place}{kind}", 0) for kind in ("", " Python")] for place in places]
        cells = " | ".join(f"{jvm:,.0f} + {python:,.0f} MiB" for jvm, python in memory)
        used = " + ".join(f"{step['cpu_seconds'][kind]:.0f}" for kind in ("JVM", "Python"))
        text.append(f"| {step['step']} | {step['seconds']:.0f} s | JVM + Python {used} s | {cells} |")
    sizes = ", ".join(f"{name} {value / MEBIBYTE:.3g} MiB" for name, value in found["bytes"].items())
    text += ["", f"{found['rows']:,} rows × {len(CLASSES)} classes, five labels each; {found['conditions']}. Sizes: {sizes}.", ""]
    return "\n".join(text)


def generate(batches):
    """Predictions, five labels and a feature for each id. The same ids in the same batches give the same rows."""
    import numpy as np
    import pyarrow as pa

    for batch in batches:
        ids = batch.column(0).to_numpy()
        rng = np.random.default_rng(int(ids[0]))
        truth = rng.dirichlet([0.3] * len(CLASSES), len(ids))
        feature = rng.random(len(ids))
        probs = truth * feature[:, None] + rng.dirichlet([1.0] * len(CLASSES), len(ids)) * (1 - feature[:, None])
        votes = rng.multinomial(5, truth / truth.sum(axis=1, keepdims=True))
        columns = [pa.array(ids)]
        columns += [pa.array(probs[:, i].astype(np.float32)) for i in range(len(CLASSES))]
        columns += [pa.array(votes[:, i].astype(np.int8)) for i in range(len(CLASSES))]
        columns.append(pa.array(feature.astype(np.float32)))
        yield pa.record_batch(columns, names=[column.split()[0] for column in COLUMNS])


def measure(rows):
    import pyspark
    from pyspark.sql import SparkSession

    from pointsman.spark import calibrate, decide

    os.environ |= {"SPARK_HOME": str(pathlib.Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    session = SparkSession.builder.master("local-cluster[2,1,1024]").appName("pointsman").config("spark.ui.enabled", "false")
    session = session.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    # Memory that tasks of one step used must not count for the next.
    spark = session.config("spark.python.worker.reuse", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    folder = tempfile.mkdtemp()
    try:
        steps = Steps()
        with steps.measure("make the rows, write Parquet"):
            made = spark.range(0, rows, 1, 16).mapInArrow(generate, ", ".join(COLUMNS))
            made.write.parquet(f"{folder}/rows")
        frame = spark.read.parquet(f"{folder}/rows")
        with steps.measure("calibrate `top-class:10`, cap 1,000"):
            cells = calibrate(frame, "top-class:10", cap=1_000, sample=50_000)
        with steps.measure("calibrate `forest:50` grown on 50,000 rows, cap 4,000"):
            forest = calibrate(frame, "forest:50", cap=4_000, sample=50_000)
        sizes = {"Parquet": sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*.parquet"))}
        for name, router in [("top-class:10", cells), ("forest:50", forest)]:
            policy = router.policy(routes={"expert": 0.05}, abstain=0.45)
            with steps.measure(f"decide by `{name}`"):
                decide(frame, policy).write.format("noop").mode("overwrite").save()
            sizes |= {f"router `{name}`": len(router.to_bytes()), f"policy `{name}`": len(policy.to_bytes())}
    finally:
        spark.stop()
        shutil.rmtree(folder)
    conditions = f"`local-cluster[2,1,1024]` on one machine with {os.cpu_count()} cores"
    versions = {"pyspark": pyspark.__version__, "python": platform.python_version()}
    return {"rows": rows, "conditions": conditions, "versions": versions, "bytes": sizes, "steps": steps.found}


class Steps:
    """Steps with their times and the peak memory of each process."""

    def __init__(self):
        self.found = []

    def measure(self, name):
        return Step(name, self.found)


class Step:
    def __init__(self, name, found):
        self.name, self.found, self.peaks, self.done = name, found, {}, threading.Event()
        self.first_cpu, self.last_cpu = {}, {}

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.first_cpu = processes()[1]
        self.start = time.monotonic()
        self.thread.start()

    def __exit__(self, *error):
        seconds = time.monotonic() - self.start
        self.done.set()
        self.thread.join()
        if error[0] is None:
            spent = {"JVM": 0.0, "Python": 0.0}
            for (place, process), used in self.last_cpu.items():
                if place.startswith("executor"):
                    spent["Python" if place.endswith("Python") else "JVM"] += used - self.first_cpu.get((place, process), 0.0)
            self.found.append({"step": self.name, "seconds": seconds, "cpu_seconds": spent, "peak_mib": self.peaks})
            print(f"{self.name}: {seconds:.1f} s, {spent}, {self.peaks}", flush=True)

    def watch(self):
        while not self.done.wait(SECONDS_BETWEEN_SAMPLES):
            memory, cpu = processes()
            # Processes that end keep the time of their last sample.
            self.last_cpu |= cpu
            for name, used in memory.items():
                self.peaks[name] = max(self.peaks.get(name, 0), used)


def processes():
    """The memory in MiB of the driver and of each executor, its JVM and its Python processes apart, and the processor time of each process.

    Shared pages are divided among the processes that share them.
    """
    parents, texts, seconds = {}, {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rsplit(")", 1)[1].split()
            texts[int(path.name)] = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        parents[int(path.name)] = int(state[1])
        seconds[int(path.name)] = (int(state[11]) + int(state[12])) / os.sysconf("SC_CLK_TCK")
    memory, cpu = {}, {}
    for process in parents:
        name = owner(process, parents, texts)
        if name is not None:
            memory[name] = memory.get(name, 0) + proportional_size(process)
            cpu[name, process] = seconds[process]
    return memory, cpu


def owner(process, parents, texts):
    """To whom a process belongs; none if it is not of this program."""
    kind = "" if "java" in texts.get(process, [""])[0] else " Python"
    place, above = "driver", process
    while above in parents and above != os.getpid():
        text = texts.get(above, [])
        if any("CoarseGrainedExecutorBackend" in word for word in text):
            place = f"executor {text[text.index('--executor-id') + 1]}"
        above = parents[above]
    return place + kind if above == os.getpid() else None


def proportional_size(process):
    try:
        lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
