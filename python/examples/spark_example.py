"""A router calibrated and used by Spark: every executor sorts its rows into given cells, the driver merges, executors decide.

    python spark_example.py [ROWS]

Needs pyspark 4, pyarrow and Java; runs a cluster of two executors on this machine.
"""

import os
import shutil
import sys

import numpy as np
import pointsman
import pyarrow as pa

CLASSES = ["cat", "dog", "owl"]
PROBS, VOTES = ([f"{prefix}_{name}" for name in CLASSES] for prefix in ("prob", "votes"))


def world(rows, seed):
    """Predictions of a classifier, and five people's labels of each item."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.4] * len(CLASSES), rows)
    probs = 0.7 * truth + 0.3 * rng.dirichlet([1.0] * len(CLASSES), rows)
    votes = rng.multinomial(5, truth)
    columns = {"id": [f"item-{i}" for i in range(rows)]}
    columns |= {name: probs[:, i] for i, name in enumerate(PROBS)}
    columns |= {name: votes[:, i] for i, name in enumerate(VOTES)}
    return pa.table(columns)


def sorted_by(like, cap):
    """What an executor does with its shard: one part of the calibration, as bytes."""

    def shard(batches):
        part = pointsman.Partial(pointsman.Router.from_bytes(like), cap=cap)
        for batch in batches:
            part.add_batch(batch)
        yield pa.record_batch({"part": pa.array([part.to_bytes()], pa.binary())})

    return shard


def decided_by(policy):
    """What an executor does with queries."""

    def decide(batches):
        for batch in policy.decide_batches(batches):
            yield batch.select(["id", "action"])

    return decide


def main(rows=20_000):
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return print("SKIPPED: this example needs pyspark 4: pip install pyspark")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return print("SKIPPED: this example needs Java 17 or newer")

    # Executors run this interpreter, which has the package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("pointsman")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    table = world(rows, seed=1)
    calibration = spark.createDataFrame(table).repartition(4)

    # Cells come from a sample; no estimate rests on it later.
    sample = table.take(np.random.default_rng(0).choice(rows, rows // 10, replace=False))
    like = pointsman.Router("top-class:10", classes=CLASSES).fit(sample.select(PROBS), sample.select(VOTES))

    for cap in (None, 50):
        gathered = calibration.mapInArrow(sorted_by(like.to_bytes(), cap), "part binary").collect()
        parts = [pointsman.Partial.from_bytes(bytes(row.part)) for row in gathered]
        router = parts[0].merge(*parts[1:]).finish()
        # The same as in one place, byte by byte.
        here = pointsman.Partial(like, cap=cap)
        here.add(table.select(PROBS), table.select(VOTES), ids=table["id"].to_pylist())
        assert router.to_bytes() == here.finish().to_bytes()
        print(f"{len(parts)} parts, {router.n_rows_} of {rows} rows kept: the same router as in one place")

    policy = router.policy(routes={"expert": 0.05}, abstain=0.3)
    queries = world(rows, seed=2)
    decided = spark.createDataFrame(queries).mapInArrow(decided_by(policy), "id string, action string").toArrow()
    there = dict(zip(decided["id"].to_pylist(), decided["action"].to_pylist(), strict=True))
    here = policy.decide(queries.select(PROBS), ids=queries["id"].to_pylist()).action
    assert [there[name] for name in queries["id"].to_pylist()] == list(here)
    print({action: list(there.values()).count(action) for action in policy.actions})
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
