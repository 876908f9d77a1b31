"""Reports, diagnoses and decompositions: data, HTML pages and figures."""

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


#: Colours and line styles of curves, as on the page. Rankings that need the outcomes are dashed.
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
    """An HTML page. The column ``names`` of its tables is aligned left."""
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
    """Writes a file atomically."""
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
    """The evaluation of a policy on held-out rows; returned by :meth:`Policy.evaluate`.

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
        """The report as ``pointsman evaluate --json`` prints it."""
        loaded: dict[str, Any] = json.loads(self._report.json())
        return loaded

    def to_json(self) -> str:
        """The report as JSON text."""
        return self._report.json()

    @property
    def rows(self) -> int:
        """The number of held-out rows."""
        return int(self.data["rows"])

    @property
    def mean_cost(self) -> dict[str, float]:
        """The mean cost per query of the router, of always taking the same action, and of the best possible decisions."""
        return dict(self.data["mean_cost"])

    @property
    def standard_error(self) -> dict[str, float | None]:
        """The standard errors of the mean costs; ``None`` if there is one row."""
        return dict(self.data["standard_error"])

    @property
    def corrected_cost(self) -> dict[str, float] | None:
        """The mean costs corrected for the bias of few labels. If they exist, draw conclusions from them."""
        corrected = self.data["corrected_cost"]
        return None if corrected is None else dict(corrected)

    @property
    def corrected_identified(self) -> dict[str, list[float]]:
        """The intervals in which the labels identify the corrected costs; empty for the Brier loss."""
        return dict(self.data["corrected_identified"])

    @property
    def unidentified(self) -> list[str]:
        """The names of the mean costs that one label per item does not identify."""
        return list(self.data["unidentified"])

    @property
    def regret(self) -> dict[str, float]:
        """The mean cost minus that of the best action per cell, and minus that of the best action per row."""
        return dict(self.data["regret"])

    @property
    def shares(self) -> dict[str, float]:
        """The share of the rows that each action gets."""
        return dict(self.data["shares"])

    @property
    def traffic(self) -> dict[str, Any]:
        """The distribution of the rows over cells and confidences against the calibration rows; ``traffic["moved"]`` if it differs."""
        return dict(self.data["traffic"])

    @property
    def gain(self) -> dict[str, float | None]:
        """The normalised gain of each ranking: 0 for a random order, 1 for the best possible."""
        return dict(self.data["gain"])

    @property
    def curves(self) -> dict[str, list[float]]:
        """The mean loss if the first 0 %, 1 %, … 100 % of each ranking are routed."""
        return dict(self.data["curves"])

    def __repr__(self) -> str:
        return f"<Report: {self.rows} rows. {self._report.money_line}>"

    def _repr_html_(self) -> str:
        costs = [(name, cost, self.standard_error.get(name)) for name, cost in self.mean_cost.items()]
        lines = f"<p>{escape(self._report.task_line)}</p><p><b>{escape(self._report.money_line)}</b></p>"
        return lines + _table(["", "mean cost per query", "standard error"], costs)

    def html(self) -> str:
        """The report as a self-contained HTML page, with sliders for prices and details for each cell."""
        return self._report.html()

    def save_html(self, path: str | PathLike[str]) -> None:
        """Writes the page to a file."""
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
    """Whether decomposition reduces costs on a table, and whether its rows and labels suffice; returned by :func:`diagnose`.

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
        """The diagnosis as ``pointsman diagnose --json`` prints it, with rows counted from zero."""
        loaded: dict[str, Any] = json.loads(self._diagnosis.json())
        return loaded

    def to_json(self) -> str:
        """The diagnosis as JSON text."""
        return self._diagnosis.json()

    @property
    def advice(self) -> str:
        """The verdict as a keyword, such as ``use-it`` or ``no-need``."""
        return str(self.data["verdict"]["advice"])

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return str(self.data["verdict"]["sentence"])

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.advice}. {self.sentence}>"

    @property
    def remarks(self) -> list[str]:
        """Further remarks on the table."""
        return list(self.data["verdict"]["remarks"])

    def _repr_html_(self) -> str:
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in self.remarks)
        costs = (self.data["worth"] or {}).get("costs") or {}
        rows = [(name, cost["estimate"], cost["low"], cost["high"]) for name, cost in costs.items()]
        table = _table(["", "cost per query", "at least", "at most"], rows) if rows else ""
        return f"<p><b>{escape(self.advice)}</b>: {escape(self.sentence)}</p><ul>{remarks}</ul>{table}{self.svg()}"

    def svg(self) -> str:
        """The reliability diagram of the classifier, as SVG."""
        return self._diagnosis.svg()

    def html(self) -> str:
        """A page with the verdict and its reasons, and the report of a router calibrated on one half and evaluated on the other."""
        fit = "this.style.height=this.contentDocument.documentElement.scrollHeight+8+'px'"
        style = "width:100%;height:60rem;border:0"
        halves = f'<iframe style="{style}" onload="{fit}" srcdoc="{escape(self._diagnosis.html())}"></iframe>'
        title = "One half of the rows judged by a router of the other"
        return _page(f"Diagnosis of {self.data['rows']} rows", f"{self._repr_html_()}<h2>{title}</h2>{halves}")

    def save_html(self, path: str | PathLike[str]) -> None:
        """Writes the page to a file."""
        _write(path, self.html())

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the reliability diagram of the classifier with matplotlib."""
        axes = _axes(ax)
        bins = self.data["weak_model"]["bins"]
        axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
        axes.plot([one["confidence"] for one in bins], [one["accuracy"] for one in bins], marker="o")
        axes.set_xlabel("confidence")
        axes.set_ylabel("share of labels that agree")
        return axes


class Decomposition:
    """The irreducible and reducible loss of each cell; returned by :meth:`Router.decompose` and :func:`decompose`.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> found = pointsman.decompose(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]), loss="brier")
    >>> found.rows.tolist(), found.irreducible.shape
    ([2], (1,))
    """

    def __init__(self, cells: list[dict[str, Any]], loss: str, unit: str) -> None:
        #: Each cell as a dictionary.
        self.cells = cells
        #: The name of the loss.
        self.loss = loss
        #: The unit of the loss.
        self.unit = unit

    def __len__(self) -> int:
        return len(self.cells)

    def _column(self, name: str) -> npt.NDArray[np.float64]:
        return np.array([np.nan if cell[name] is None else cell[name] for cell in self.cells], dtype=np.float64)

    @property
    def name(self) -> list[str]:
        """The name of each cell, which describes its inputs."""
        return [cell["name"] for cell in self.cells]

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The number of calibration rows in each cell."""
        return np.array([cell["rows"] for cell in self.cells], dtype=np.int64)

    @property
    def irreducible(self) -> npt.NDArray[np.float64]:
        """The irreducible loss of each cell; NaN if the cell is empty or labels only bound it."""
        return self._column("irreducible")

    @property
    def reducible(self) -> npt.NDArray[np.float64]:
        """The reducible loss of each cell; NaN if the cell is empty or labels only bound it."""
        return self._column("reducible")

    @property
    def total(self) -> npt.NDArray[np.float64]:
        """The expected loss of predicting in each cell; NaN if the cell is empty."""
        return self._column("total")

    def to_pandas(self) -> Any:
        """The cells as a ``pandas.DataFrame``, one row per cell."""
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
        """The cells as an HTML page."""
        return _page(f"Decomposition under {self.loss}, in {self.unit}", self._repr_html_(), names=2)

    def save_html(self, path: str | PathLike[str]) -> None:
        """Writes the page to a file."""
        _write(path, self.html())

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the cells by irreducible and reducible loss with matplotlib."""
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
    """Diagnoses a table: whether decomposition reduces costs, and whether labels, rows and cells suffice.

    With a budget or a target loss, rules are compared at that limit. The default partition is ``"auto"``, as for :class:`Router`; it is
    chosen separately on each half of the rows. Forests have fewer trees here, and of more than 20,000 rows a sample is used.

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
    with bar("diagnosis", _native.DIAGNOSIS_STEPS, progress) as report:
        return Diagnosis(_native.diagnose(table, task, partition, progress=report))


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
    """The irreducible and reducible loss of each cell of a router fitted on a table."""
    from ._router import Router

    router = Router(partition, classes=classes).fit(probs, votes, features=features, sample_weight=sample_weight)
    return router.decompose(loss, estimator=estimator)
