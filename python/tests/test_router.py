"""The router is an estimator as scikit-learn knows them, and a file as the command line knows it."""

import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from conftest import World
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pointsman import NotFitted, PointsmanError, Router


def test_constructing_changes_nothing_and_checks_nothing() -> None:
    classes = ["a", "b"]
    router = Router("no such partition", recalibrate=True, random_state=7, classes=classes, progress=False)
    assert router.get_params() == {
        "partition": "no such partition",
        "recalibrate": True,
        "random_state": 7,
        "classes": classes,
        "progress": False,
    }
    assert router.classes is classes
    assert not [name for name in vars(router) if name.endswith("_")]
    with pytest.raises(PointsmanError, match="no such partition"):
        router.fit([[0.5, 0.5]], [["a"]])


def test_parameters_are_set_and_cloned(world: World) -> None:
    router = Router().set_params(partition="confidence:4", random_state=3)
    assert router.partition == "confidence:4" and router.random_state == 3
    with pytest.raises(ValueError, match="no parameter 'bins'"):
        router.set_params(bins=3)
    fitted = router.fit(world.probs, world.votes)
    assert fitted is router
    again = clone(router)
    assert again.get_params() == router.get_params() and not hasattr(again, "router_")
    assert repr(again) == "Router(partition='confidence:4', random_state=3)"
    assert repr(pickle.loads(pickle.dumps(Router()))) == "Router()"


def test_fitting_again_forgets(world: World) -> None:
    router = Router("top-class:10").fit(world.probs, world.votes)
    before = router.get_params()
    other = router.fit(world.probs[:100, :2] / world.probs[:100, :2].sum(1, keepdims=True), world.votes[:100, :2] + 1)
    assert other.n_rows_ == 100 and other.classes_.tolist() == ["0", "1"] and other.n_features_in_ == 2
    assert router.get_params() == before


def test_unfitted_routers_say_so(tmp_path: Path) -> None:
    for use in [Router().policy, Router().decompose, Router().to_bytes, lambda: Router().save(tmp_path / "x")]:
        with pytest.raises(NotFittedError, match="call fit first"):
            use()
        with pytest.raises(NotFitted):
            use()
    with pytest.raises(NotFittedError):
        check_is_fitted(Router())


def test_fitted_routers_are_recognised(world: World) -> None:
    router = Router("auto", random_state=1).fit(world.probs, world.votes, features=world.features)
    check_is_fitted(router)
    assert router.partition_ != "auto" and router.partition == "auto"
    assert router.n_rows_ == len(world) and router.n_cells_ > 1


def test_the_same_table_gives_the_same_bytes_in_any_order(world: World) -> None:
    order = np.random.default_rng(0).permutation(len(world))
    for partition in ["top-class:10", "forest:5"]:
        one = Router(partition).fit(world.probs, world.votes, features=world.features)
        two = Router(partition).fit(world.probs[order], world.votes[order], features=world.features[order])
        assert one.to_bytes() == two.to_bytes()
        one.policy(loss="cross-entropy", abstain=0.3)
        assert one.to_bytes() == two.to_bytes()


@pytest.mark.parametrize("partition", ["top-class:4", "features:x_0=3*confidence:2", "tree", "honest-forest:5", "forest:5"])
def test_routers_survive_files_pickle_and_joblib(world: World, tmp_path: Path, partition: str) -> None:
    oracles = {"llm": np.roll(world.probs, 1, axis=1)}
    router = Router(partition).fit(
        world.probs, world.votes, features=world.features, oracles=oracles, sample_weight=np.linspace(0.5, 1, len(world))
    )
    router.save(tmp_path / "router.safetensors")
    buffer = BytesIO()
    joblib.dump(router, buffer)
    copies = [
        Router.load(tmp_path / "router.safetensors"),
        Router.load(str(tmp_path / "router.safetensors")),
        Router.from_bytes(router.to_bytes()),
        pickle.loads(pickle.dumps(router)),
        joblib.load(buffer),
    ]
    wanted = router.policy(routes={"llm": ("measured", 0.05)}).decide(world.probs, features=world.features)
    for copy in copies:
        assert copy.to_bytes() == router.to_bytes()
        policy = pickle.loads(pickle.dumps(copy.policy(routes={"llm": ("measured", 0.05)})))
        found = policy.decide(world.probs, features=world.features[:, : len(policy._feature_names)])
        assert (found.costs == wanted.costs).all() and (found.action == wanted.action).all()
    assert pickle.loads(pickle.dumps(router)).get_params() == router.get_params()


def test_damaged_files_are_refused(world: World, tmp_path: Path) -> None:
    path = tmp_path / "router.safetensors"
    Router("top-class:10").fit(world.probs, world.votes).save(path)
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    with pytest.raises(PointsmanError, match=r"router\.safetensors: .*damaged"):
        Router.load(path)
    with pytest.raises(FileNotFoundError):
        Router.load(tmp_path / "none")
    with pytest.raises(OSError):
        Router("top-class:10").fit(world.probs, world.votes).save(tmp_path / "no" / "such" / "folder")
    with pytest.raises(PointsmanError):
        Router.from_bytes(b"")


def test_weights_and_recalibration_count(world: World, queries: World) -> None:
    plain = Router("top-class:10").fit(world.probs, world.votes)
    weighted = Router("top-class:10").fit(world.probs, world.votes, sample_weight=np.linspace(0.1, 2, len(world)))
    served = Router("top-class:10", recalibrate=True).fit(world.probs, world.votes)
    costs = [router.policy().decide(queries.probs).total for router in (plain, weighted, served)]
    assert not np.allclose(costs[0], costs[1]) and not np.allclose(costs[0], costs[2])
    with pytest.raises(PointsmanError, match="forest"):
        Router("forest:3", recalibrate=True).fit(world.probs, world.votes)


def test_random_state_is_as_in_scikit_learn(world: World) -> None:
    def grown(random_state: Any) -> bytes:
        return Router("forest:3", random_state=random_state).fit(world.probs, world.votes).to_bytes()

    assert grown(5) == grown(5) != grown(6)
    for make in (np.random.RandomState, np.random.default_rng):
        one, other = make(1), make(1)
        assert grown(one) == grown(other) != grown(one)
    np.random.seed(2)
    first = grown(None)
    np.random.seed(2)
    assert grown(None) == first
