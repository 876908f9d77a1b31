"""Spark: two executors give what one machine gives, also if one of them is killed. One session serves all tests."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from conftest import REPOSITORY, make_world, skip
from serving import TASK, Service, deploy
from test_docs import blocks

from pointsman import Client, Partial, Policy, PointsmanError, Router

CLASSES = ["cat", "dog", "owl"]
PROBS, VOTES = ([f"{prefix}_{name}" for name in CLASSES] for prefix in ("prob", "votes"))
ROWS = 3_000


def make_table(rows: int, seed: int) -> pa.Table:
    world = make_world(rows, seed=seed)
    columns: dict[str, Any] = {"id": [f"item-{seed}-{i}" for i in range(rows)]}
    columns |= {name: world.probs[:, i] for i, name in enumerate(PROBS)}
    columns |= {name: world.votes[:, i] for i, name in enumerate(VOTES)}
    return pa.table(columns | {"x_a": world.features[:, 0], "x_b": world.features[:, 1]})


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        skip("pyspark is missing; install python/requirements-test.txt")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        skip("Java is missing, which Spark needs: install a JRE of version 17 or newer, as default-jre-headless")
    # Executors are started with the installation of pip and run this interpreter, which has the package.
    os.environ |= {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("pointsman")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return make_table(ROWS, seed=1)


@pytest.fixture(scope="module")
def frame(spark: Any, rows: pa.Table) -> Any:
    return spark.createDataFrame(rows).repartition(5)


@pytest.fixture(scope="module")
def like(rows: pa.Table) -> Router:
    sample = rows.slice(0, 400)
    return Router("top-class:10", classes=CLASSES).fit(sample.select(PROBS), sample.select(VOTES))


def on_one_machine(rows: pa.Table, like: Router, cap: int | None = None, seed: int = 0) -> bytes:
    return Partial(like, cap=cap, random_state=seed).add_batch(rows).finish().to_bytes()


@pytest.mark.parametrize("cap", [None, 20])
def test_parts_of_executors_give_the_router_of_one_machine(frame: Any, rows: pa.Table, like: Router, cap: int | None) -> None:
    from pointsman.spark import calibrate

    found = calibrate(frame, like, cap=cap, random_state=3)
    assert found.to_bytes() == on_one_machine(rows, like, cap, seed=3)
    assert found.n_rows_ == ROWS if cap is None else found.n_rows_ <= 20 * found.n_cells_


@pytest.mark.parametrize("partition", ["forest:12", "honest-forest:12", "confidence:8"])
def test_partition_fitted_on_a_sample_does_not_depend_on_partitioning(frame: Any, rows: pa.Table, partition: str) -> None:
    from pointsman.spark import calibrate, split_sample

    sample, rest = split_sample(frame, 500, random_state=7)
    chosen = set(sample.select("id").toArrow()["id"].to_pylist())
    assert abs(len(chosen) - 500) < 5 * 500**0.5 and rest.count() == ROWS - len(chosen)
    is_chosen = pa.array([name in chosen for name in rows["id"].to_pylist()])
    of_sample = rows.filter(is_chosen)
    like = Router(partition, random_state=7, classes=CLASSES)
    like.fit(of_sample.select(PROBS), of_sample.select(VOTES), features=of_sample.select(["x_a", "x_b"]))
    # The sample is left out of partitions that are learned from labels.
    judged = rows if partition.startswith("confidence") else rows.filter(pa.compute.invert(is_chosen))
    wanted = on_one_machine(judged, like, cap=150, seed=7)
    assert calibrate(frame.repartition(3), partition, sample=500, cap=150, random_state=7).to_bytes() == wanted


@pytest.mark.parametrize("partition", ["top-class:10", "forest:12"])
def test_decisions_are_those_of_one_machine(spark: Any, rows: pa.Table, partition: str) -> None:
    from pointsman.spark import decide

    features = rows.select(["x_a", "x_b"]) if partition.startswith("forest") else None
    router = Router(partition, classes=CLASSES).fit(rows.select(PROBS), rows.select(VOTES), features=features)
    policy = router.policy(routes={"expert": 0.05}, abstain=0.45, budget=0.3)
    queries = make_table(1_000, seed=2)
    there = decide(spark.createDataFrame(queries).repartition(3), policy).toArrow().sort_by("id")
    own = None if features is None else queries.select(["x_a", "x_b"])
    here = pa.table(policy.decide(queries.select(PROBS), features=own, ids=queries["id"].to_pylist()))
    here = here.set_column(1, "cell", here["cell"].cast(pa.int64())).sort_by("id")
    assert there.column_names == here.column_names
    for name in here.column_names:
        assert there[name].to_pylist() == here[name].to_pylist(), name


def test_columns_are_passed_on(spark: Any, rows: pa.Table, like: Router) -> None:
    from pointsman.spark import decide

    policy = Policy.from_bytes(like.policy(abstain=0.4).to_bytes())
    numbered = rows.slice(0, 50).set_column(0, "id", pa.array(range(50))).append_column("note", pa.array(["é"] * 50))
    frame = spark.createDataFrame(numbered)
    decided = decide(frame, policy, keep=["note", "id"])
    assert decided.columns[:4] == ["note", "id", "cell", "support"]
    assert sorted(decided.toArrow()["id"].to_pylist()) == list(range(50))
    lists = spark.createDataFrame(pa.table({"probs": pa.array(rows.select(PROBS).to_pandas().to_numpy()[:50].tolist())}))
    assert decide(lists, policy).columns[0] == "cell" and decide(lists, policy).count() == 50
    for keep, words in [(["action"], "no column action"), (["absent"], "no column absent")]:
        with pytest.raises(PointsmanError, match=words):
            decide(frame, policy, keep=keep)
    with pytest.raises(PointsmanError, match="cell is a column of decisions"):
        decide(frame.withColumnRenamed("note", "cell"), policy, keep=["cell"])


def test_bad_tables_are_refused_by_name(spark: Any, frame: Any, rows: pa.Table, like: Router) -> None:
    from pointsman.spark import calibrate, decide, split_sample

    policy = like.policy(abstain=0.4)
    with pytest.raises(PointsmanError, match="no column prob_owl"):
        decide(frame.drop("prob_owl"), policy)
    with pytest.raises(PointsmanError, match="no column votes_owl"):
        calibrate(frame.drop("votes_owl"), like)
    with pytest.raises(PointsmanError, match="no column id.*add a column id"):
        calibrate(frame.drop("id"), like, cap=5)
    with pytest.raises(PointsmanError, match="no column id"):
        split_sample(frame.drop("id"), 5)
    with pytest.raises(PointsmanError, match="column id are not distinct"):
        calibrate(frame.withColumn("id", frame["prob_cat"] * 0), "forest:3", sample=100)
    with pytest.raises(PointsmanError, match="neither a Router nor a partition"):
        calibrate(frame, 3)  # type: ignore[arg-type]
    with pytest.raises(PointsmanError, match="is not a Policy"):
        decide(frame, like)  # type: ignore[arg-type]
    with pytest.raises(PointsmanError, match="not a table of a classic Spark session"):
        decide(rows, policy)
    # What an executor refuses names the row by its id.
    wrong = rows.slice(0, 20).set_column(1, "prob_cat", pa.array([0.1] * 19 + [7.0]))
    with pytest.raises(Exception, match="PointsmanError: id item-1-.*prob_"):
        decide(spark.createDataFrame(wrong), policy).count()


def test_a_killed_executor_changes_nothing(frame: Any, rows: pa.Table, like: Router, tmp_path: Path) -> None:
    from pointsman.spark import calibrate, decide

    policy = like.policy(routes={"expert": 0.05}, abstain=0.4)
    quiet = {row["id"]: row["action"] for row in decide(frame, policy).select("id", "action").collect()}
    for job in ["calibrate", "decide"]:
        mark = tmp_path / job
        deadly = frame.mapInArrow(kill_once(str(mark)), frame.schema)
        if job == "calibrate":
            assert calibrate(deadly, like, cap=20).to_bytes() == on_one_machine(rows, like, cap=20)
        else:
            found = {row["id"]: row["action"] for row in decide(deadly, policy).select("id", "action").collect()}
            assert found == quiet
        assert mark.exists(), "no executor was killed"


def test_the_exported_log_is_decided_alike(
    spark: Any, rows: pa.Table, like: Router, service: Service, client: Client, binary: Path, tmp_path: Path
) -> None:
    from pointsman.spark import decide

    name = deploy(client, "spark", like, TASK)
    few = rows.slice(0, 500)
    client.decide_batch(name, few.select(PROBS), ids=few["id"].to_pylist())
    log = tmp_path / "log.parquet"
    subprocess.run([binary, "-q", "decisions", "export", name, "--url", service.url, "-o", log], check=True)
    frame = spark.read.parquet(str(log))
    logged = {row["id"]: row for row in frame.collect()}
    decided = decide(frame, like.policy(task=TASK)).collect()
    assert {row["id"] for row in decided} == set(logged) == set(few["id"].to_pylist())
    for row in decided:
        assert all(row[column] == logged[row["id"]][column] for column in ("action", "label", "irreducible", "cost_predict", "reason"))


def kill_once(mark: str) -> Any:
    """A function that passes batches on; the first to come to a third batch kills its executor."""

    def executor() -> int:
        """The process of the executor to which this Python process belongs."""
        process = os.getpid()
        while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{process}/cmdline").read_bytes():
            process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return process

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            if number == 2:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os.kill(executor(), signal.SIGKILL)
            yield batch

    return pass_on


def test_the_page_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(REPOSITORY / "docs/src/spark.md")
    assert found
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(found), "spark.md", "exec"), {"__name__": "page"})
