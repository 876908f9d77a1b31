"""Any classifier, and an oracle for the rows that are worth it."""

import pickle
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from pointsman import Oracle, PointsmanError, RoutedClassifier, cost_scorer


def pattern(X: Any) -> npt.NDArray[np.bool_]:
    """What a shallow tree cannot find."""
    found: npt.NDArray[np.bool_] = np.sin(9 * X[:, 1]) > -0.6
    return found


class Expert:
    """Knows the pattern. Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, X: Any) -> npt.NDArray[Any]:
        self.asked.append(len(X))
        return np.where((X[:, 0] > 1) & pattern(X), "yes", "no")


@pytest.fixture(scope="module")
def data() -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(1500, 2))
    # On the left it is no, in the middle annotators guess, on the right it is what the pattern says.
    chance = np.select([X[:, 0] < -1, X[:, 0] < 1], [0.02, 0.5], 0.02 + 0.96 * pattern(X))
    ones = rng.binomial(5, chance)
    y = np.where(rng.random(1500) < chance, "yes", "no")
    return X, y, np.column_stack([5 - ones, ones])


def model(**settings: Any) -> RoutedClassifier:
    given = {"price": 0.05, "abstain": 0.45, "cv": 3, **settings}
    return RoutedClassifier(DecisionTreeClassifier(max_depth=2, random_state=0), Expert(), **given)


def test_the_oracle_is_asked_once_and_only_about_routed_rows(data: Any) -> None:
    X, y, votes = data
    routed = model().fit(X, y, votes=votes)
    expert = routed.oracle
    assert expert.asked == []
    decisions = routed.decide(X)
    labels = routed.predict(X)
    assert expert.asked == [decisions.counts["route:oracle"]] and expert.asked[0] > 0
    asked = decisions.mask("route:oracle")
    assert (labels[asked] == expert(X[asked])).all()
    kept = decisions.mask("predict")
    assert (labels[kept] == routed.estimator_.predict(X[kept])).all()
    assert (labels[decisions.mask("abstain")] == "abstain").all() and decisions.counts["abstain"] > 0
    assert routed.predict_proba(X).shape == (len(X), 2)


def test_abstentions_are_marked_as_labels_are(data: Any) -> None:
    X, y, votes = data
    whole = (y == "yes").astype(int)
    for labels, mark in [(whole, -1), (whole.astype(float), -1), (y.astype(object), "abstain")]:
        fitted = model(abstain=0.2).set_params(oracle=None).fit(X, labels, votes=votes)
        found = fitted.predict(X)
        declined = fitted.decide(X).mask("abstain")
        assert declined.any() and not declined.all()
        assert found.dtype.kind == np.asarray(labels).dtype.kind
        assert all(one == mark for one in found[declined])
        # A declined row is not right, whatever its label; scikit-learn's own scores can say so.
        assert 0 < fitted.score(X, labels) < 1
    # Whatever the width of the labels, the mark fits; it is never one of them.
    for labels, given, mark in [(whole.astype(np.uint8), None, -1), (whole.astype(np.int8), 999, 999), (whole > 0, None, -1)]:
        fitted = model(abstain=0.2, abstention=given).set_params(oracle=None).fit(X, labels, votes=votes)
        found = fitted.predict(X)
        assert mark in found and set(found.tolist()) <= {0, 1, mark} and (found == mark).sum() == fitted.decide(X).counts["abstain"]
    for labels, given in [(2 * whole - 1, None), (2.0 * whole - 1, None), (whole, 1)]:
        with pytest.raises(PointsmanError, match="is a class too"):
            model(abstention=given).fit(X, labels, votes=votes)
    own = model(abstain=0.2, abstention="ask me").set_params(oracle=None).fit(X, y, votes=votes).predict(X)
    assert "ask me" in own


def test_oracles_may_be_estimators_or_give_probabilities(data: Any) -> None:
    X, y, votes = data
    big = DecisionTreeClassifier(random_state=0).fit(X, y)
    for oracle in [big, big.predict, big.predict_proba, lambda X: big.predict(X).tolist()]:
        routed = model().set_params(oracle=oracle).fit(X, y, votes=votes)
        asked = routed.decide(X).mask("route:oracle")
        assert (routed.predict(X)[asked] == big.predict(X[asked])).all()
    measured = model(kind=Oracle.measured()).fit(X, y, votes=votes)
    assert measured.oracle.asked == [len(X)] and "route:oracle" in measured.policy_.actions
    for wrong, words in [
        (lambda X: ["maybe"] * len(X), "no class"),
        (lambda X: ["yes"], "1 answers"),
        (lambda X: np.ones((len(X), 3)), "3 probabilities for 2"),
        (lambda X: np.full((len(X), 2), 0.9), "the oracle's answers: row 0.*sum to 1.8"),
        (lambda X: np.full((len(X), 2), np.nan), "the oracle's answers: row 0.*NaN"),
        (lambda X: None, "neither a label nor probabilities"),
    ]:
        with pytest.raises(PointsmanError, match=words):
            model().set_params(oracle=wrong).fit(X, y, votes=votes).predict(X)


def test_clones_have_the_oracle_as_it_is(data: Any) -> None:
    X, y, votes = data
    big = DecisionTreeClassifier(random_state=0).fit(X, y)
    routed = model().set_params(oracle=big)
    assert clone(routed).oracle is big and clone(routed).estimator is not routed.estimator
    scores = cross_val_score(routed, X, y, scoring=cost_scorer, cv=3, params={"votes": votes}, error_score="raise")
    assert np.isfinite(scores).all()
    with pytest.raises(NotFittedError):
        model().set_params(oracle=clone(big)).fit(X, y, votes=votes)


def test_rows_may_be_sparse_or_text(data: Any) -> None:
    X, y, votes = data
    sparse = csr_array(X)
    routed = model().set_params(oracle=lambda rows: np.where(rows[:, [0]].toarray()[:, 0] > 1, "yes", "no"))
    routed.fit(sparse, y, votes=votes)
    assert routed.decide(sparse).counts["route:oracle"] > 0 and len(routed.predict(sparse)) == len(y)
    texts = [f"word{int(a)} word{int(b)}" for a, b in X]
    words = RoutedClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), lambda rows: ["yes"] * len(rows), price=0.0)
    words.fit(texts, y, votes=votes)
    assert not hasattr(words, "n_features_in_")
    assert words.decide(texts).counts["route:oracle"] > 0 and len(words.predict(texts)) == len(y)


def test_costs_are_what_was_lost_and_paid(data: Any) -> None:
    X, y, votes = data
    routed = model(loss="zero-one").fit(X, y, votes=votes)
    costs, decisions, labels = routed.costs(X, y), routed.decide(X), routed.predict(X)
    wrong = (labels != y).astype(float)
    prices = np.select([decisions.mask("route:oracle"), decisions.mask("abstain")], [0.05, 0.45], 0)
    assert np.allclose(costs, np.where(decisions.mask("abstain"), 0.45, wrong + prices))
    assert cost_scorer(routed, X, y) == pytest.approx(-costs.mean())
    always = RoutedClassifier(routed.estimator, loss="zero-one", cv=3).fit(X, y, votes=votes)
    assert cost_scorer(routed, X, y) > cost_scorer(always, X, y)
    with pytest.raises(PointsmanError, match="5 labels for 1500 rows"):
        routed.costs(X, y[:5])
    with pytest.raises(PointsmanError, match="no class of the classifier"):
        routed.costs(X, np.where(y == "yes", "maybe", y))


def test_it_works_inside_scikit_learn(data: Any) -> None:
    X, y, votes = data
    routed = model()
    pipeline = make_pipeline(StandardScaler(with_mean=False), clone(routed))
    pipeline.fit(X, y, routedclassifier__votes=votes)
    assert pipeline.predict(X).shape == y.shape and cost_scorer(pipeline, X, y) < 0
    scores = cross_val_score(routed, X, y, scoring=cost_scorer, cv=3, params={"votes": votes})
    assert scores.shape == (3,) and np.isfinite(scores).all()
    search = GridSearchCV(routed, {"partition": ["top-class:2", "top-class:8"]}, scoring=cost_scorer, cv=2)
    search.fit(X, y, votes=votes)
    assert cost_scorer(search, X, y) < 0
    search = GridSearchCV(pipeline, {"routedclassifier__price": [0.1]}, scoring=cost_scorer, cv=2)
    search.fit(X, y, routedclassifier__votes=votes)
    assert cost_scorer(search, X, y) == search.score(X, y)
    with pytest.raises(PointsmanError, match="not DecisionTreeClassifier"):
        cost_scorer(routed.estimator, X, y)
    nested = clone(routed).set_params(estimator__max_depth=3, price=0.1)
    assert nested.estimator.max_depth == 3 and nested.get_params()["price"] == 0.1


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks() -> None:
    # Without an oracle and without abstaining it is a classifier like any other.
    check_estimator(RoutedClassifier(LogisticRegression(), cv=2))


def test_rows_of_no_weight_are_left_out(data: Any) -> None:
    X, y, votes = data
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    routed = model(kind="measured").fit(X, y, votes=votes, sample_weight=weight)
    assert routed.router_.n_rows_ == weight.sum()


def test_fitting_is_as_scikit_learn_expects(data: Any) -> None:
    X, y, votes = data
    routed = RoutedClassifier(LogisticRegression(), abstain=0.3)
    for use in [routed.predict, routed.decide, routed.predict_proba]:
        with pytest.raises(NotFittedError):
            use(X)
    with pytest.raises(PointsmanError, match="two at least"):
        routed.fit(X, np.zeros(len(X)))
    with pytest.warns(UserWarning, match="one label per row"):
        model().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        routed.fit(X, y)
    assert routed.classes_.tolist() == ["no", "yes"] and routed.n_features_in_ == 2
    again = pickle.loads(pickle.dumps(routed))
    assert (again.predict(X) == routed.predict(X)).all()
