"""Reports: data first, then drawn."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _inputs, _native
from ._errors import PointsmanError
from ._inputs import MatrixLike
from ._progress import bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._policy import Routes


#: Colours and strokes of the page: what is only known afterwards is dashed.
_CURVES: dict[str, dict[str, Any]] = {
    "higher-order": {"color": "#0072b2", "linewidth": 2},
    "total-uncertainty": {"color": "#d55e00"},
    "cell-optimal": {"color": "#009e73", "linestyle": "--"},
    "pointwise-optimal": {"color": "black", "linestyle": "--"},
    "random": {"color": "grey", "linestyle": ":"},
}


def _axes(axes: "Axes | None") -> "Axes":
    try:
        from matplotlib import pyplot
    except ImportError:
        raise PointsmanError("plot needs matplotlib: pip install matplotlib") from None
    return pyplot.subplots()[1] if axes is None else axes


def _number(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{_number(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _page(title: str, body: str, names: int = 1) -> str:
    """A page; which column of its tables has names."""
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}"
        "td,th{padding:.2rem .8rem;text-align:right}"
        f"td:nth-child({names}),th:nth-child({names}){{text-align:left}}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style><h1>{escape(title)}</h1>{body}</html>\n"
    )


def _write(path: str | PathLike[str], text: str) -> None:
    """The file appears whole or not at all."""
    target = Path(path)
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)


class Report:
    """What a policy costs on held-out rows; made by :meth:`Policy.evaluate`.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], 400)
    >>> votes = rng.multinomial(5, probs)
    >>> policy = pointsman.Router("top-class:10").fit(probs[:200], votes[:200]).policy(routes={"expert": 0.05}, abstain=0.4)
    >>> report = policy.evaluate(probs[200:], votes[200:])
    >>> sorted(report.mean_cost)[:2]
    ['always-abstain', 'always-predict']
    >>> report.mean_cost["router"] >= report.mean_cost["pointwise-optimal"]
    True
    """

    def __init__(self, report: _native.Report) -> None:
        self._report = report

    @cached_property
    def data(self) -> dict[str, Any]:
        """All of it, as ``pointsman evaluate --json`` prints it."""
        loaded: dict[str, Any] = json.loads(self._report.json())
        return loaded

    def to_json(self) -> str:
        """The same as text."""
        return self._report.json()

    @property
    def rows(self) -> int:
        """Held-out rows."""
        return int(self.data["rows"])

    @property
    def mean_cost(self) -> dict[str, float]:
        """Mean cost per query of the router, of always the same action, and of the best possible per query."""
        return dict(self.data["mean_cost"])

    @property
    def standard_error(self) -> dict[str, float | None]:
        """Standard errors of the mean costs; one row has none."""
        return dict(self.data["standard_error"])

    @property
    def corrected_cost(self) -> dict[str, float] | None:
        """The mean costs with the bias of few labels taken out: conclude from these if there are any."""
        corrected = self.data["corrected_cost"]
        return None if corrected is None else dict(corrected)

    @property
    def corrected_identified(self) -> dict[str, list[float]]:
        """Between what the corrected costs lie as far as the labels identify them; empty for the Brier loss."""
        return dict(self.data["corrected_identified"])

    @property
    def unidentified(self) -> list[str]:
        """The mean costs that one label per item does not identify; empty otherwise."""
        return list(self.data["unidentified"])

    @property
    def regret(self) -> dict[str, float]:
        """Cost above the best action per cell, and above the best per row."""
        return dict(self.data["regret"])

    @property
    def shares(self) -> dict[str, float]:
        """Which share of the rows each action gets."""
        return dict(self.data["shares"])

    @property
    def traffic(self) -> dict[str, Any]:
        """How the rows spread over cells and confidences beside the calibration rows; ``traffic["moved"]`` if they differ."""
        return dict(self.data["traffic"])

    @property
    def gain(self) -> dict[str, float | None]:
        """Normalised gain of each ranking: 0 random, 1 the best possible."""
        return dict(self.data["gain"])

    @property
    def curves(self) -> dict[str, list[float]]:
        """Mean loss when the first 0 %, 1 %, … 100 % of each ranking are routed."""
        return dict(self.data["curves"])

    def __repr__(self) -> str:
        return f"<Report: {self.rows} rows. {self._report.money_line}>"

    def _repr_html_(self) -> str:
        costs = [(name, cost, self.standard_error.get(name)) for name, cost in self.mean_cost.items()]
        lines = f"<p>{escape(self._report.task_line)}</p><p><b>{escape(self._report.money_line)}</b></p>"
        return lines + _table(["", "mean cost per query", "standard error"], costs)

    def html(self) -> str:
        """One page that needs nothing else: prices have sliders, cells can be pointed at."""
        return self._report.html()

    def save_html(self, path: str | PathLike[str]) -> None:
        """Writes the page."""
        _write(path, self.html())

    def svg(self, figure: str = "summary") -> str | None:
        """A figure of the report: ``summary``, ``landscape``, ``curves``, …"""
        return self._report.svg(figure)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the routing curves with matplotlib."""
        axes = _axes(ax)
        for name, curve in self.curves.items():
            axes.plot(np.linspace(0, 100, len(curve)), curve, label=name, **_CURVES.get(name, {}))
        axes.set_xlabel("routed, %")
        axes.set_ylabel(f"mean loss ({self.data['unit']})")
        axes.legend()
        return axes


class Diagnosis:
    """Whether decomposition helps on a table, and whether the table is good enough to tell; made by :func:`diagnose`.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], 400)
    >>> diagnosis = pointsman.diagnose(probs, rng.multinomial(5, probs), routes={"expert": 0.05})
    >>> diagnosis.advice
    'no-need'
    """

    def __init__(self, diagnosis: _native.Diagnosis) -> None:
        self._diagnosis = diagnosis

    @cached_property
    def data(self) -> dict[str, Any]:
        """All of it, as ``pointsman diagnose --json`` prints it, but that rows count from zero."""
        loaded: dict[str, Any] = json.loads(self._diagnosis.json())
        return loaded

    def to_json(self) -> str:
        """The same as text."""
        return self._diagnosis.json()

    @property
    def advice(self) -> str:
        """The verdict in a word."""
        return str(self.data["verdict"]["advice"])

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        return str(self.data["verdict"]["sentence"])

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.advice}. {self.sentence}>"

    @property
    def remarks(self) -> list[str]:
        """What else is worth knowing about the table."""
        return list(self.data["verdict"]["remarks"])

    def _repr_html_(self) -> str:
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in self.remarks)
        costs = (self.data["worth"] or {}).get("costs") or {}
        rows = [(name, cost["estimate"], cost["low"], cost["high"]) for name, cost in costs.items()]
        table = _table(["", "cost per query", "at least", "at most"], rows) if rows else ""
        return f"<p><b>{escape(self.advice)}</b>: {escape(self.sentence)}</p><ul>{remarks}</ul>{table}{self.svg()}"

    def svg(self) -> str:
        """How far the classifier's confidence can be believed."""
        return self._diagnosis.svg()

    def html(self) -> str:
        """The verdict and what it rests on, and below it the report of a router of one half judged on the other, as a page."""
        fit = "this.style.height=this.contentDocument.documentElement.scrollHeight+8+'px'"
        style = "width:100%;height:60rem;border:0"
        halves = f'<iframe style="{style}" onload="{fit}" srcdoc="{escape(self._diagnosis.html())}"></iframe>'
        title = "One half of the rows judged by a router of the other"
        return _page(f"Diagnosis of {self.data['rows']} rows", f"{self._repr_html_()}<h2>{title}</h2>{halves}")

    def save_html(self, path: str | PathLike[str]) -> None:
        """Writes that page."""
        _write(path, self.html())

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws how far the classifier's confidence can be believed, with matplotlib."""
        axes = _axes(ax)
        bins = self.data["weak_model"]["bins"]
        axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
        axes.plot([one["confidence"] for one in bins], [one["accuracy"] for one in bins], marker="o")
        axes.set_xlabel("confidence")
        axes.set_ylabel("share of labels that agree")
        return axes


class Decomposition:
    """Irreducible and reducible loss, cell by cell; made by :meth:`Router.decompose` and :func:`decompose`.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> found = pointsman.decompose(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]), loss="brier")
    >>> found.rows.tolist(), found.irreducible.shape
    ([2], (1,))
    """

    def __init__(self, cells: list[dict[str, Any]], loss: str, unit: str) -> None:
        #: Every cell as a dictionary.
        self.cells = cells
        #: The loss and its unit.
        self.loss = loss
        self.unit = unit

    def __len__(self) -> int:
        return len(self.cells)

    def _column(self, name: str) -> npt.NDArray[np.float64]:
        return np.array([np.nan if cell[name] is None else cell[name] for cell in self.cells], dtype=np.float64)

    @property
    def name(self) -> list[str]:
        """What lies in each cell."""
        return [cell["name"] for cell in self.cells]

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Calibration rows in each cell."""
        return np.array([cell["rows"] for cell in self.cells], dtype=np.int64)

    @property
    def irreducible(self) -> npt.NDArray[np.float64]:
        """The loss nobody can avoid; NaN for an empty cell and where labels only bound it."""
        return self._column("irreducible")

    @property
    def reducible(self) -> npt.NDArray[np.float64]:
        """The loss an oracle would save."""
        return self._column("reducible")

    @property
    def total(self) -> npt.NDArray[np.float64]:
        """The loss of predicting."""
        return self._column("total")

    def to_pandas(self) -> Any:
        """One row per cell."""
        import pandas

        names = ["cell", "name", "rows", "support", "irreducible", "reducible", "total"]
        return pandas.DataFrame([{name: cell[name] for name in names} for cell in self.cells])

    def __repr__(self) -> str:
        return f"<Decomposition: {len(self)} cells under {self.loss}>"

    def _repr_html_(self) -> str:
        heads = ["cell", "name", "rows", "irreducible", "reducible", "total"]
        names = ["cell", "name", "rows", "irreducible", "reducible", "total"]
        return _table(heads, [[cell[name] for name in names] for cell in self.cells])

    def html(self) -> str:
        """The cells as a page."""
        return _page(f"Decomposition under {self.loss}, in {self.unit}", self._repr_html_(), names=2)

    def save_html(self, path: str | PathLike[str]) -> None:
        """Writes that page."""
        _write(path, self.html())

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the cells by irreducible and reducible loss, with matplotlib."""
        axes = _axes(ax)
        axes.scatter(self.irreducible, self.reducible, s=5 + 2000 * self.rows / max(self.rows.sum(), 1), alpha=0.6)
        axes.set_xlabel(f"irreducible ({self.unit})")
        axes.set_ylabel(f"reducible ({self.unit})")
        return axes


def diagnose(
    probs: MatrixLike,
    votes: Any,
    *,
    features: MatrixLike | None = None,
    oracles: Mapping[str, MatrixLike] | None = None,
    sample_weight: Any = None,
    classes: Sequence[str] | None = None,
    partition: str = "auto",
    loss: str | _native.Loss = "brier",
    routes: "Routes | None" = None,
    abstain: float | None = None,
    budget: float | None = None,
    target_loss: float | None = None,
    estimator: str = "auto",
    progress: bool = False,
) -> Diagnosis:
    """Looks at a table before anyone relies on it: does decomposition help here, are labels, rows and cells enough?

    With a budget or a target loss, rules are compared at it. ``partition`` is ``"auto"``, what :class:`Router` takes by default, chosen anew by each half
    of the rows; forests have fewer trees here, and of more than 20,000 rows a sample is used.

    >>> import numpy as np, pointsman
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], 400)
    >>> votes = rng.multinomial(5, probs)
    >>> pointsman.diagnose(probs, votes, routes={"expert": 0.05}).data["rows"]
    400
    """
    task = _native.Task(
        loss, routes, abstain=abstain, budget=budget, target_loss=target_loss, estimator=estimator
    )
    table, _, _ = _inputs.table(
        probs,
        classes=None if classes is None else [str(name) for name in classes],
        votes_given=votes,
        features_given=features,
        oracles_given=oracles,
        sample_weight=sample_weight,
    )
    with bar("diagnosis", _native.DIAGNOSIS_STEPS, progress) as told:
        return Diagnosis(_native.diagnose(table, task, partition, progress=told))


def decompose(
    probs: MatrixLike,
    votes: Any,
    *,
    loss: str | _native.Loss = "brier",
    estimator: str = "auto",
    partition: str = "pooled",
    features: MatrixLike | None = None,
    sample_weight: Any = None,
    classes: Sequence[str] | None = None,
) -> Decomposition:
    """Irreducible and reducible loss of the cells of a table: a router fitted and decomposed."""
    from ._router import Router

    router = Router(partition, classes=classes).fit(probs, votes, features=features, sample_weight=sample_weight)
    return router.decompose(loss, estimator=estimator)
