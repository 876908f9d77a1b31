"""Reports are data first, and can be drawn anywhere."""

from html import escape
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from conftest import World

from pointsman import PointsmanError, Router, compare, decompose, diagnose

matplotlib.use("Agg")


def test_evaluation(world: World, queries: World, tmp_path: Path) -> None:
    policy = Router("top-class:10").fit(world.probs, world.votes).policy(routes={"<b>": 0.07}, abstain=0.62)
    report = policy.evaluate(queries.probs, queries.votes)
    assert report.rows == len(queries)
    costs = report.mean_cost
    assert costs["pointwise-optimal"] <= costs["cell-optimal"] <= costs["router"] + 1e-12
    assert sum(report.shares.values()) == pytest.approx(1)
    assert set(report.gain) and all(len(curve) == 101 for curve in report.curves.values())
    assert report.regret["cell-optimal"] == pytest.approx(costs["router"] - costs["cell-optimal"])
    corrected = report.corrected_cost
    assert corrected is not None and corrected["always-route:<b>"] > costs["always-route:<b>"]
    assert report.unidentified == []
    shown = report._repr_html_()
    assert "mean cost" in shown and "<b>:" not in shown and "&lt;b&gt;" in shown and "always-abstain" in shown
    assert "400 rows" in repr(report)
    axes = report.plot()
    assert len(axes.get_lines()) == len(report.curves) and report.plot(axes) is axes
    report.save_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "<link" not in page and "src=" not in page.split("<script")[0]
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (report.svg("landscape") or "").startswith("<svg")
    with pytest.raises(PointsmanError, match="there are: summary"):
        report.svg("none")
    with pytest.raises(PointsmanError, match="votes or truth"):
        policy.evaluate(queries.probs)
    known = policy.evaluate(queries.probs, truth=queries.probs, calibration_error=False)
    assert known.data["truth"] == "true" and known.mean_cost["router"] > 0


def test_comparison(world: World, queries: World) -> None:
    router = Router("top-class:10").fit(world.probs, world.votes)
    policies = {"<now>": router.policy(routes={"a": 0.05}), "later": router.policy(routes={"a": 0.2})}
    found = compare(policies, queries.probs, queries.votes)
    for name, policy in policies.items():
        report = policy.evaluate(queries.probs, queries.votes, calibration_error=False)
        assert report.corrected_cost is not None
        assert found.costs[name] == report.corrected_cost["router"] and found.shares[name] == report.shares
    difference = found.differences["later"]
    costs = [found.costs[name] for name in policies]
    assert difference["estimate"] == pytest.approx(costs[1] - costs[0]) and difference["standard_error"] > 0
    assert (found.baseline, found.rows, list(found.differences)) == ("<now>", len(queries), ["later"])
    assert "&lt;now&gt;" in found._repr_html_() and "baseline <now>" in repr(found)
    other = compare(policies, queries.probs, queries.votes, baseline="later")
    assert other.differences["<now>"]["estimate"] == pytest.approx(-difference["estimate"])
    mixed = {"now": policies["later"], "errors": router.policy(loss="zero-one", routes={"a": 0.05})}
    assert compare(mixed, queries.probs, queries.votes).differences == {}
    for wrong, reason in [({"a": policies["later"]}, "two or more"), ([policies["later"]], "by name"), ({"a": 1, "b": 2}, "by name")]:
        with pytest.raises(PointsmanError, match=reason):
            compare(wrong, queries.probs, queries.votes)  # type: ignore[arg-type]
    with pytest.raises(PointsmanError, match="there are: <now>, later"):
        compare(policies, queries.probs, queries.votes, baseline="x")
    with pytest.raises(PointsmanError, match="votes or truth"):
        compare(policies, queries.probs)


def test_diagnosis(world: World, tmp_path: Path) -> None:
    diagnosis = diagnose(world.probs, world.votes, features=world.features, routes={"expert": 0.07}, progress=True)
    assert diagnosis.data["rows"] == len(world) and diagnosis.advice in repr(diagnosis)
    assert diagnosis.sentence in diagnosis._repr_html_() or "&" in diagnosis._repr_html_()
    assert diagnosis.svg().startswith("<svg") and len(diagnosis.plot().get_lines()) == 2
    shown = diagnosis._repr_html_()
    assert "always-predict" in shown and all(escape(remark) in shown for remark in diagnosis.remarks)
    diagnosis.save_html(tmp_path / "diagnosis.html")
    page = (tmp_path / "diagnosis.html").read_text()
    # The verdict, and the page of one half judged by the other.
    assert shown.split("<svg")[0] in page and "Decision landscape" in page and page.count("<iframe") == 1
    few = diagnose(world.probs[:20], world.votes[:20])
    assert few.advice == "more-data" and few.sentence.split(":")[0] in few._repr_html_()
    tenth = diagnose(world.probs, world.votes, routes={"expert": 0.0}, budget=0.1)
    assert tenth.data["task"]["budget"] == 0.1 and "router" in tenth._repr_html_() and len(tenth.html()) > 10_000
    one = diagnose(world.probs, world.votes.argmax(1))
    assert one.advice == "one-label" and "<svg" in one._repr_html_()


def test_decomposition(world: World, tmp_path: Path) -> None:
    router = Router("top-class:4").fit(world.probs, world.votes)
    found = router.decompose("brier")
    assert len(found) == router.n_cells_ == len(found.name) and found.rows.sum() == len(world)
    assert np.allclose(np.maximum(found.total - found.irreducible, 0), found.reducible)
    other = decompose(world.probs, world.votes, partition="top-class:4")
    assert (other.total == found.total).all()
    assert found.to_pandas()["rows"].tolist() == found.rows.tolist()
    assert "reducible" in found._repr_html_() and found.plot() is not None
    found.save_html(tmp_path / "cells.html")
    assert "<table>" in (tmp_path / "cells.html").read_text()
    # The Brier loss of one half of five labels is known exactly by pairs of labels.
    votes = np.tile([[5, 0], [0, 5]], (50, 1))
    sure = decompose(np.tile([0.5, 0.5], (100, 1)), votes, partition="confidence:1")
    assert sure.irreducible[0] == pytest.approx(0, abs=1e-12) and sure.total[0] == pytest.approx(0.5)
