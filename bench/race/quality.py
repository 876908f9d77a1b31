"""How well every method ranks rows for routing, and how conformal abstention compares, on the shared data sets."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import arrays
import boosters
import losses
import subject

PARTITIONS = ["top-class:10", "forest:200"]
LEVELS = [0.8, 0.85, 0.9, 0.95]
RESAMPLES = 200


def gains():
    """The normalised gain of each method for every data set and loss, on rows that nobody was trained on."""
    out = []
    for name in arrays.DATA:
        (probs, votes, features, _), (test, judges, test_features, _) = arrays.load(name)
        shares, truth = votes / votes.sum(1, keepdims=True), judges / judges.sum(1, keepdims=True)
        routers = {partition: subject.fit(probs, votes, features, partition) for partition in PARTITIONS}
        for loss in losses.LOSSES:
            scores = {"total uncertainty": losses.expected(loss, test, test)}
            for partition, router in routers.items():
                policy = subject.policy(router, loss)
                scores[partition] = subject.split(policy, test, test_features)[1]
            target = losses.reducible(loss, shares, probs)
            for booster, make in boosters.BOOSTERS.items():
                fitted = make().fit(boosters.inputs(probs, features), target)
                scores[booster] = fitted.predict(boosters.inputs(test, test_features))
            saved = losses.reducible(loss, truth, test)
            out.append({"data": name, "loss": loss, **_gains(scores, saved)})
            print(name, loss, {method: round(gain, 3) for method, gain in out[-1]["gain"].items()}, flush=True)
    return out


def _gains(scores, saved):
    """Gains, and the standard error of the forest's lead over each method: test rows drawn anew, the same for both."""
    rng = np.random.default_rng(0)
    drawn = {method: [] for method in scores}
    for _ in range(RESAMPLES):
        rows = rng.integers(len(saved), size=len(saved))
        for method, score in scores.items():
            drawn[method].append(losses.gain(score[rows], saved[rows]))
    ours = np.array(drawn["forest:200"])
    return {
        "gain": {method: losses.gain(score, saved) for method, score in scores.items()},
        "standard_error_of_lead": {
            method: float(np.std(ours - np.array(each), ddof=1)) for method, each in drawn.items() if method != "forest:200"
        },
    }


class Weak(ClassifierMixin, BaseEstimator):
    """The weak model as scikit-learn sees it: its input is its prediction."""

    def __init__(self, classes=2):
        self.classes = classes

    def fit(self, X=None, y=None):
        self.classes_ = np.arange(self.classes)
        self.is_fitted_ = True
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return np.asarray(X).argmax(1)


def conformal():
    """The loss of answered rows where MAPIE abstains (its set is not one label), and where we do from as many rows."""
    from mapie.classification import SplitConformalClassifier

    out = []
    for name in arrays.DATA:
        (probs, votes, features, labels), (test, judges, test_features, _) = arrays.load(name)
        truth = judges / judges.sum(1, keepdims=True)
        known = labels >= 0
        routers = {partition: subject.fit(probs, votes, features, partition) for partition in PARTITIONS}
        for score in ("lac", "aps"):
            sets = SplitConformalClassifier(
                Weak(probs.shape[1]).fit(), confidence_level=LEVELS, conformity_score=score, prefit=True, random_state=0
            )
            sets.conformalize(probs[known], labels[known])
            single = sets.predict_set(test)[1].sum(1) == 1
            for loss in ("zero-one", "brier"):
                own = losses.expected(loss, truth, test)
                policies = {partition: subject.policy(router, loss) for partition, router in routers.items()}
                expected = {p: sum(subject.split(policy, test, test_features)) for p, policy in policies.items()}
                for i, level in enumerate(LEVELS):
                    answered = single[:, i]
                    if not 0.02 <= answered.mean() <= 0.98:
                        continue  # Hardly anything to compare.
                    cost = {f"MAPIE {score}": float(own[answered].mean())}
                    cost |= {p: _lowest(each, own, int(answered.sum())) for p, each in expected.items()}
                    cost["total uncertainty"] = _lowest(losses.expected(loss, test, test), own, int(answered.sum()))
                    found = {"data": name, "loss": loss, "score": score, "level": level, "abstained": float(1 - answered.mean())}
                    out.append(found | {"cost_of_answers": cost})
    return out


def _lowest(scores, values, count):
    """The mean value of the rows with the lowest scores; rows tied at the end count in part."""
    last = np.partition(scores, count - 1)[count - 1]
    below, tied = scores < last, scores == last
    return float((values[below].sum() + (count - below.sum()) * values[tied].mean()) / count)
