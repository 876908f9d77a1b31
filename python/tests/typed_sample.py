"""What a user with a type checker writes: checked by mypy --strict, and run."""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

import pointsman
from pointsman import AsyncClient, Client, Decisions, Decomposition, Diagnosis, Estimator, Loss, Oracle, Policy, Report, Router, Task, Ties
from pointsman.client import BatchDecisions, Decision


def use(probs: npt.NDArray[np.float32], votes: npt.NDArray[np.int64]) -> tuple[Decisions, Report]:
    router: Router = Router(partition="top-class:4", random_state=1).fit(probs, votes, sample_weight=np.ones(len(probs)))
    loss: Loss = Loss.matrix([[0.0, 2.0], [1.0, 0.0]], acts=["ship", "hold"])
    policy: Policy = router.policy(
        loss=loss,
        routes={"expert": 0.1, "jury": (Oracle.panel(3, pointsman.Aggregate.PLURALITY), 0.05)},
        abstain=0.5,
        estimator=Estimator.SHRINK,
        ties=Ties.FRUGAL,
    )
    cheaper: Policy = policy.reprice(abstain=0.3).reprice(routes={"expert": 0.2}, abstain=None)
    same: Task = Task("brier", {"expert": 0.1, "jury": (Oracle.panel(3), 0.05)}, abstain=0.5)
    assert cheaper.task.abstain is None and router.policy(task=same).actions == policy.actions
    decisions: Decisions = policy.decide(probs)
    codes: npt.NDArray[np.int16] = decisions.action_codes
    costs: npt.NDArray[np.float64] = decisions.costs
    names: tuple[str, ...] = decisions.action_names
    certain: npt.NDArray[np.bool_] = decisions.certain
    assert len(codes) == len(costs) == len(certain) and len(names) == 4
    report: Report = policy.evaluate(probs, votes)
    cost: float = report.mean_cost["router"]
    diagnosis: Diagnosis = pointsman.diagnose(probs, votes, loss="zero-one")
    advice: str = diagnosis.advice
    cells: Decomposition = router.decompose("cross-entropy")
    task: Task = policy.task
    price: float | None = task.abstain
    assert cost >= 0 and advice and len(cells) == router.n_cells_ and price == 0.5
    try:
        policy.decide(probs * 2)
    except pointsman.PointsmanError as error:
        row: int | None = error.row
        assert row == 0
    return decisions, report


def ask(client: Client, router: Router, probs: npt.NDArray[np.float64]) -> list[str | None]:
    """What a user of the service writes."""
    version: int = client.add_version("d", router, task=Task(abstain=0.5), activate=True).version
    answer: Decision = client.decide("d", probs[0], features={"length": 3.0}, id="a", tags={"shop": "oslo"})
    cost: float | None = answer.costs[answer.action]
    batch: BatchDecisions = client.decide_batch("d", probs, ids=range(len(probs)))
    actions: list[str] = batch.action.tolist()
    try:
        shares: Mapping[str, float] = client.what_if("d", version=version, start=datetime.now(UTC)).shares
    except pointsman.ServiceError as error:
        status: int | None = error.status
        assert status is None or status >= 400
    else:
        assert cost is not None and set(shares) >= set(actions)
    return [one.decision_id for one in client.decisions("d", action="predict")]


async def ask_at_once(client: AsyncClient, probs: npt.NDArray[np.float64]) -> list[str]:
    answer: Decision = await client.decide("d", probs[0])
    return [answer.action] + [one.action async for one in client.decisions("d")]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    made = rng.dirichlet([1, 1], 300)
    use(made.astype(np.float32), rng.multinomial(4, made))
