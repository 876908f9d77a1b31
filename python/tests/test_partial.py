"""Calibration in parts, and files as arrays."""

import pickle

import numpy as np
import pointsman
import pyarrow as pa
import pytest

CLASSES = ["cat", "dog", "owl"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    truth = rng.dirichlet([0.5] * 3, 600)
    probs = 0.7 * truth + 0.3 * rng.dirichlet([1.0] * 3, 600)
    return probs, rng.multinomial(5, truth), rng.normal(size=(600, 2))


@pytest.fixture
def like(rows):
    probs, votes, _ = rows
    return pointsman.Router("top-class:10", classes=CLASSES).fit(probs[:100], votes[:100])


@pytest.mark.parametrize("cap", [None, 8])
def test_any_division_gives_the_same_router(rows, like, cap):
    probs, votes, features = rows
    ids = np.arange(600)
    whole = pointsman.Partial(like, cap=cap).add(probs, votes, features=features, ids=ids)
    order = np.random.default_rng(2).permutation(600)
    parts = []
    for shard in np.array_split(order, 5):
        part = pointsman.Partial(like, cap=cap)
        for batch in np.array_split(shard, 3):
            part.add(probs[batch], votes[batch], features=features[batch], ids=ids[batch])
        parts.append(pickle.loads(pickle.dumps(part)))
    merged = pointsman.Partial(like, cap=cap).merge(*reversed(parts))
    assert merged.finish().to_bytes() == whole.finish().to_bytes()
    assert len(merged) == len(whole) <= 600
    forest = merged.finish("forest:3")
    assert forest.to_bytes() == whole.finish("forest:3").to_bytes()
    assert forest.feature_names_ == ["0", "1"]
    assert len(forest.policy(routes={"expert": 0.1}).decide(probs, features=features)) == 600


def test_batches_are_added_by_column(rows, like):
    probs, votes, features = rows
    batch = {f"prob_{name}": probs[:, i] for i, name in enumerate(CLASSES)}
    batch |= {f"votes_{name}": votes[:, i] for i, name in enumerate(CLASSES)}
    batch |= {"x_a": features[:, 0], "weight": np.full(600, 2.0), "id": [f"row-{i}" for i in range(600)]}
    given = pointsman.Partial(like, cap=20, random_state=3).add_batch(pa.record_batch(batch))
    same = pointsman.Partial(like, cap=20, random_state=3).add(
        probs, votes, features={"a": features[:, 0]}, sample_weight=np.full(600, 2.0), ids=batch["id"]
    )
    assert given.to_bytes() == same.to_bytes()
    with pytest.raises(pointsman.PointsmanError, match="no column votes_owl"):
        pointsman.Partial(like).add_batch(pa.record_batch({k: v for k, v in batch.items() if k != "votes_owl"}))


def test_what_does_not_fit_is_refused(rows, like):
    probs, votes, _ = rows
    with pytest.raises(pointsman.PointsmanError, match="a cap needs ids"):
        pointsman.Partial(like, cap=5).add(probs, votes)
    with pytest.raises(pointsman.PointsmanError, match="ids: 3 for 600 rows"):
        pointsman.Partial(like, cap=5).add(probs, votes, ids=[1, 2, 3])
    with pytest.raises(pointsman.PointsmanError, match="differ in their caps"):
        pointsman.Partial(like, cap=5).merge(pointsman.Partial(like))
    with pytest.raises(pointsman.PointsmanError, match="at least one row"):
        pointsman.Partial(like).finish()
    with pytest.raises(pointsman.PointsmanError, match="not a part of a calibration"):
        pointsman.Partial.from_bytes(like.to_bytes())
    with pytest.raises(pointsman.PointsmanError, match="not a Router"):
        pointsman.Partial("router")
    with pytest.raises(pointsman.PointsmanError, match="not a Partial"):
        pointsman.Partial(like).merge(like)
    forest = pointsman.Router("forest:3", classes=CLASSES).fit(probs, votes)
    with pytest.raises(pointsman.PointsmanError, match="too few"):
        pointsman.Partial(forest).add(probs[:10], votes[:10]).finish()


@pytest.mark.parametrize("cap", [None, 12])
def test_rows_of_all_parts_fill_the_leaves_of_a_forest(rows, cap):
    probs, votes, features = rows
    sample, rest = slice(0, 200), np.arange(200, 600)
    grown = pointsman.Router("forest:5", classes=CLASSES, random_state=4).fit(probs[sample], votes[sample], features=features[sample])
    parts = []
    for shard in np.array_split(rest, 3):
        part = pointsman.Partial(grown, cap=cap).add(probs[shard], votes[shard], features=features[shard], ids=shard)
        parts.append(pickle.loads(pickle.dumps(part)))
    filled = parts[2].merge(parts[0], parts[1]).finish()
    whole = pointsman.Partial(grown, cap=cap).add(probs[rest], votes[rest], features=features[rest], ids=rest)
    assert filled.to_bytes() == whole.finish().to_bytes() and filled.partition_ == "forest:5"
    assert filled.n_rows_ == 400 if cap is None else filled.n_rows_ <= 12 * grown.n_cells_
    # Filled with the rows it was grown on, it is the same forest.
    same = pointsman.Partial(grown).add(probs[sample], votes[sample], features=features[sample]).finish()
    assert same.to_bytes() == grown.to_bytes()


def test_a_part_is_not_merged_with_itself(rows, like):
    probs, votes, _ = rows
    part = pointsman.Partial(like).add(probs, votes)
    with pytest.raises(pointsman.PointsmanError, match="count twice"):
        part.merge(part)
    assert len(part) == 600


def test_files_that_need_care_are_read_with_a_warning(tmp_path):
    table, more, labels = (tmp_path / name for name in ("a.csv", "b.csv", "labels.csv"))
    table.write_text("id,prob_a,prob_b\nq,90,10\nr,20,80\n")
    more.write_text("id,prob_b,prob_a\nq,0.4,0.6\n")
    labels.write_text("id,label\nq,a\nq,b\nz,b\n")
    with pytest.raises(pointsman.PointsmanError, match="normalize=True"):
        pointsman.read(table)
    with pytest.warns(UserWarning) as warnings:
        rows = pointsman.read([table, str(more)], annotations=labels, normalize=True)
    assert rows.ids == ["q", "q"] and rows.probs.tolist() == [[0.9, 0.1], [0.6, 0.4]]
    assert rows.votes.tolist() == [[1, 1], [1, 1]]
    for note, part in zip(warnings, ["left out: 1 (r)", "left out: 1 (z)", "1 in 2 rows (q)", "100 to 100: 1"], strict=True):
        assert part in str(note.message)
    with pytest.raises(pointsman.PointsmanError, match="no annotation of id"):
        pointsman.read(table, annotations=labels, normalize=True, strict=True)


def test_what_labels_were_taken_for_is_said(tmp_path):
    table, labels = tmp_path / "table.csv", tmp_path / "labels.csv"
    table.write_text("id,prob_no,prob_yes,votes_no,votes_yes\nq,0.9,0.1,1,0\nr,0.2,0.8,0,1\n")
    labels.write_text("id,label,annotator\nq,0,ann\nr,1,ann\nr,0,Ann \nq,unsure,bob\n")
    with pytest.warns(UserWarning) as warnings:
        rows = pointsman.read(table, annotations=labels, ignored_labels="unsure", keep_label="latest")
    assert rows.votes.tolist() == [[1, 0], [1, 0]]
    parts = [
        "replaced the votes or labels of the table",
        "labels 0 to 1 were read as numbers of the classes, from 0: 0 is no, 1 is yes",
        "as ignored_labels asks: 1",
        "as keep_label asks: 1",
        "taken for that annotator's: 1",
    ]
    for note, part in zip(warnings, parts, strict=True):
        assert part in str(note.message)


def test_files_are_read_as_arrays(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("id,prob_a,prob_b,votes_a,votes_b,x_size,weight,split\nq,0.9,0.1,3,0,1.5,2,0\nr,0.2,0.8,1,1,,1,1\n")
    rows = pointsman.read(table)
    assert (rows.classes, rows.ids, rows.oracles) == (["a", "b"], ["q", "r"], {})
    assert rows.votes.tolist() == [[3, 0], [1, 1]] and rows.sample_weight.tolist() == [2.0, 1.0]
    assert rows.features["size"][0] == 1.5 and np.isnan(rows.features["size"][1])
    assert len(pointsman.read(table, where={"split": 1}).probs) == 1
    with pytest.raises(OSError):
        pointsman.read(tmp_path / "missing.csv")
    table.write_text("id,prob_a,prob_b\nq,0.9,0.3\n")
    with pytest.raises(pointsman.PointsmanError, match="table.csv"):
        pointsman.read(table)


def test_files_are_read_under_other_names(tmp_path):
    table, labels = tmp_path / "table.txt", tmp_path / "labels.csv"
    table.write_text("uid;p,no;p,yes\nq;0.9;0.1\nr;0.2;0.8\n")
    labels.write_text("id;label\nr;yes\nq;no\nr;no\nq;yes\n")
    named = {"columns": {"probs": "p,", "id": "uid"}, "delimiter": ";", "format": "csv"}
    rows = pointsman.read(table, **named)
    assert (rows.classes, rows.ids, rows.probs.tolist()) == (["no", "yes"], ["q", "r"], [[0.9, 0.1], [0.2, 0.8]])
    assert pointsman.read(table, annotations=labels, first_labels=1, **named).votes.tolist() == [[1, 0], [0, 1]]
    signed = tmp_path / "signed.csv"
    signed.write_text("id;label;annotator\nr;yes;ann\nq;no;ann\nr;no;bob\n")
    assert pointsman.read(table, annotations=signed, without=["ann"], **named).votes.tolist() == [[1, 0]]
    assert pointsman.read(table, annotations=signed, without="bob", **named).votes.tolist() == [[1, 0], [0, 1]]
    for wrong, message in [
        ({"annotations": signed, "without": ["cy"]}, "no annotator is called .*there are ann, bob"),
        ({"columns": {"prob": "p"}}, "unknown key"),
        ({"columns": {"probs": ""}}, "no name"),
        ({"columns": {"probs": "q_"}}, "no predictions.*in Python columns={'probs': NAME}"),
        ({"delimiter": "x"}, "cannot separate values"),
        ({"format": "xlsx"}, "unknown table format"),
        ({"annotations": labels, "first_labels": 0}, "at least one label"),
        ({"annotations": labels, "first_labels": -1}, "at least one label"),
        ({"columns": {"id": "key"}}, "no column named by id=key"),
    ]:
        with pytest.raises(pointsman.PointsmanError, match=message):
            pointsman.read(table, **(named | wrong | {"columns": named["columns"] | wrong.get("columns", {})}))
