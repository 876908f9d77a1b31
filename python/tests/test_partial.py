"""Parts of a calibration together are the calibration."""

import pickle

import numpy as np
import pytest
from conftest import World, make_world

from pointsman import Partial, PointsmanError, Router


@pytest.mark.parametrize("partition", ["top-class:5", "features:x_1=3*confidence:3", "tree"])
def test_parts_are_what_one_place_would_be(world: World, partition: str) -> None:
    like = Router(partition).fit(world.probs, world.votes, features=world.features)
    rows = make_world(1000, seed=11)
    whole = Partial(like).add(rows.probs, rows.votes, features=rows.features).finish()
    parts = []
    for i in range(4):
        part = Partial(like)
        for batch in np.array_split(np.arange(i, 1000, 4), 3):
            part.add(rows.probs[batch], rows.votes[batch], features=rows.features[batch])
        parts.append(pickle.loads(pickle.dumps(part)))
    merged = parts[3]
    for i in (1, 0, 2):
        merged.merge(Partial.from_bytes(parts[i].to_bytes()))
    assert len(merged) == 1000 and merged.finish().to_bytes() == whole.to_bytes()
    if partition.startswith("top"):
        again = Partial(like).add(world.probs, world.votes).finish()
        assert again.to_bytes() == like.to_bytes()


def test_caps_keep_the_same_sample_however_rows_are_divided(world: World) -> None:
    like = Router("top-class:2").fit(world.probs, world.votes)
    rows = make_world(3000, seed=12)
    for ids in [np.arange(3000), [f"q{i}" for i in range(3000)]]:
        whole = Partial(like, cap=50, seed=3).add(rows.probs, rows.votes, ids=ids)
        parts = [Partial(like, cap=50, seed=3) for _ in range(3)]
        for i, part in enumerate(parts):
            mine = np.arange(i, 3000, 3)
            part.add(rows.probs[mine], rows.votes[mine], ids=np.asarray(ids)[mine])
        merged = parts[1].merge(parts[2]).merge(parts[0])
        assert merged.to_bytes() == whole.to_bytes() or merged.finish().to_bytes() == whole.finish().to_bytes()
        router = merged.finish()
        assert router.n_rows_ == 50 * router.n_cells_
        full = Partial(like).add(rows.probs, rows.votes).finish().policy().decide(rows.probs).total
        assert np.abs(router.policy().decide(rows.probs).total - full).max() < 0.3


def test_bad_parts_are_refused(world: World) -> None:
    like = Router("top-class:2").fit(world.probs, world.votes)
    part = Partial(like)
    with pytest.raises(PointsmanError, match="itself"):
        part.merge(part)
    with pytest.raises(PointsmanError, match="caps"):
        part.merge(Partial(like, cap=3))
    with pytest.raises(PointsmanError, match="partitions"):
        part.merge(Partial(Router("top-class:3").fit(world.probs, world.votes)))
    with pytest.raises(PointsmanError, match="a cap needs ids"):
        Partial(like, cap=3).add(world.probs, world.votes)
    with pytest.raises(PointsmanError, match="3 for 600"):
        Partial(like, cap=3).add(world.probs, world.votes, ids=[1, 2, 3])
    with pytest.raises(PointsmanError, match="cap of 0"):
        Partial(like, cap=0)
    with pytest.raises(PointsmanError, match="forest"):
        Partial(Router("forest:3").fit(world.probs, world.votes))
    with pytest.raises(PointsmanError):
        part.finish()
    with pytest.raises(PointsmanError):
        Partial.from_bytes(like.to_bytes())
    with pytest.raises(PointsmanError, match="2 columns for 3"):
        part.add(world.probs[:, :2], world.votes)
    assert len(part) == 0 and repr(part) == "<Partial: 0 rows kept>"
