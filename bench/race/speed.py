"""Seconds of Pointsman and of what people use instead, on the same arrays, one core each."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
from crowdkit.aggregation import MajorityVote

import arrays
import boosters
import losses
import pointsman
import rules
import subject
from timing import race

CLASSES = 10


def line(what, seconds, subject, rows=1, **more):
    """One line of the table: all seconds, whose are ours, and how many rows they are for."""
    print(f"{what}: " + ", ".join(f"{name} {each:.4g} s" for name, each in seconds.items()), flush=True)
    return {"what": what, "subject": subject, "seconds": seconds, "rows": rows, **more}


def decisions(rows):
    """Batch decisions, and another price for all of them, against the same rule in numpy."""
    calibration = arrays.predictions(100_000, CLASSES, 1)
    votes = arrays.votes_of(calibration, 5, 2)
    router = subject.fit(calibration, votes)
    prices = subject.PRICES
    policy = subject.policy(router, "brier", **prices)
    rule, total, noise = rules.calibrate_numpy(calibration, votes)
    actions = rules.actions_at(total, noise, prices["routes"]["expert"], prices["abstain"])
    probs = arrays.predictions(rows, CLASSES, 3)
    ours = policy.decide(probs, labels=False).action_codes
    theirs = rule.decide_in_blocks(probs, actions)
    agree = float((ours == theirs).mean())
    first = line(
        f"decide {rows:,} × {CLASSES} float32",
        race(
            5,
            pointsman=lambda: policy.decide(probs, labels=False).action_codes,
            numpy=lambda: rule.decide(probs, actions),
            numpy_in_blocks=lambda: rule.decide_in_blocks(probs, actions),
        ),
        "pointsman",
        rows,
        bar={"at_least": 5, "against": ["numpy", "numpy_in_blocks"]},
        agreement=agree,
    )

    def repriced():
        other = policy.reprice(routes={"expert": 0.07}, abstain=0.25)
        return other.decide(probs, labels=False).action_codes

    second = line(
        f"other prices, and decide {rows:,} × {CLASSES} float32 again",
        race(
            5,
            pointsman=repriced,
            numpy_in_blocks=lambda: rule.decide_in_blocks(probs, rules.actions_at(total, noise, 0.07, 0.25)),
        ),
        "pointsman",
        rows,
    )
    return [first, second]


def calibrated(rows):
    """From arrays to the losses of every cell. Pandas and numpy know one loss in the end, the router every loss."""
    probs = arrays.predictions(rows, CLASSES, 4)
    votes = arrays.votes_of(probs, 5, 5)
    return race(
        7,
        pointsman=lambda: subject.policy(subject.fit(probs, votes), "brier"),
        pandas=lambda: rules.calibrate_pandas(probs, votes),
        numpy=lambda: rules.calibrate_numpy(probs, votes),
    )


def calibration(rows=1_000_000):
    """With one core each, and once more in a process in which everybody may use all cores."""
    what = f"calibrate {rows:,} × {CLASSES}, Brier losses included"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, __file__, str(rows)]
    everywhere = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    bar = {"at_least": 5, "against": ["pandas"]}
    return [
        line(what, calibrated(rows), "pointsman", rows),
        line(f"{what}, {os.cpu_count()} cores each", json.loads(everywhere), "pointsman", rows, bar=bar),
    ]


def another_loss(rows=50_000, queries=100_000, repeats=7):
    """A loss nobody has asked for yet: valuing what was learned against training a booster for it; then deciding."""
    probs, votes, features = arrays.featured(rows, 6)
    test, _, test_features = arrays.featured(queries, 7)
    shares = votes / votes.sum(1, keepdims=True)
    x, test_x = boosters.inputs(probs, features), boosters.inputs(test, test_features)
    target = losses.reducible("cross-entropy", shares, probs)
    makers = {name: make for name, make in boosters.BOOSTERS.items() if "regularised" not in name}
    cells, forest = (subject.fit(probs, votes, features, partition) for partition in ("top-class:10", "forest:200"))
    retrain = {name: lambda make=make: make().fit(x, target) for name, make in makers.items()}
    value = {
        "top-class:10": lambda: subject.policy(cells, "cross-entropy"),
        "forest:200": lambda: subject.policy(forest, "cross-entropy"),
    }
    seconds = race(repeats, **value, **retrain)
    fitted = {name: run() for name, run in retrain.items()}
    policies = {name: run() for name, run in value.items()}
    predict = {name: lambda model=model: model.predict(test_x) for name, model in fitted.items()}
    decide = {
        name: lambda policy=policy: policy.decide(test, features=test_features, labels=False).action_codes
        for name, policy in policies.items()
    }
    predicted = race(repeats, **decide, **predict)
    lines = []
    for ours, at_least in (("top-class:10", 100), ("forest:200", 10)):
        what = f"another loss, {rows:,} rows with 20 features: {ours} / boosters trained anew"
        each = {name: time for name, time in seconds.items() if name == ours or name in makers}
        lines.append(line(what, each, ours, rows, bar={"at_least": at_least, "against": list(makers)}))
    for ours in value:
        what = f"decide {queries:,} rows: {ours} / boosters predict"
        each = {name: time for name, time in predicted.items() if name == ours or name in makers}
        lines.append(line(what, each, ours, queries))
    return lines


def crowd_labels(items=200_000, k=5):
    """A table of predictions and a long table of labels, both CSV, to shares of labels by item."""
    rng = np.random.default_rng(8)
    names = np.array(["entailment", "neutral", "contradiction"])
    probs = arrays.predictions(items, 3, 9, np.float64)
    order = rng.permutation(items * k)
    with tempfile.TemporaryDirectory() as folder:
        predictions, labels = pathlib.Path(folder, "predictions.csv"), pathlib.Path(folder, "labels.csv")
        frame = pd.DataFrame(probs, columns=[f"prob_{name}" for name in names])
        frame.insert(0, "id", [f"item-{i}" for i in range(items)])
        frame.to_csv(predictions, index=False)
        pd.DataFrame(
            {
                "id": [f"item-{i}" for i in order // k],
                "label": names[rng.integers(3, size=len(order))],
                "annotator": [f"w{i}" for i in (order // k * 31 + order % k) % 500],
            }
        ).to_csv(labels, index=False)

        def crowdkit():
            long = pd.read_csv(labels).rename(columns={"id": "task", "annotator": "worker"})
            shares = MajorityVote().fit_predict_proba(long)
            return shares.reindex(pd.read_csv(predictions)["id"])

        return [
            line(
                f"read {items:,} predictions and {len(order):,} labels, count them by item",
                race(3, pointsman=lambda: pointsman.read(predictions, annotations=labels), crowd_kit=crowdkit),
                "pointsman",
                len(order),
            )
        ]


def everything(rows):
    small = rows < 10_000_000
    return [
        *decisions(rows),
        *calibration(min(rows, 1_000_000)),
        *another_loss(*((5_000, 10_000) if small else (50_000, 100_000))),
        *crowd_labels(20_000 if small else 200_000),
    ]


if __name__ == "__main__":
    print(json.dumps(calibrated(int(sys.argv[1]))))
