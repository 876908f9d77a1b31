"""What a user with a type checker writes: checked by mypy --strict, and run."""

import numpy as np
import numpy.typing as npt

import pointsman
from pointsman import Decisions, Decomposition, Diagnosis, Estimator, Loss, Oracle, Policy, Report, Router, Task, Ties


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


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    made = rng.dirichlet([1, 1], 300)
    use(made.astype(np.float32), rng.multinomial(4, made))
