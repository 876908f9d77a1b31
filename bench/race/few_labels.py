"""Few labels: a forest calibrated on k labels per item against boosters trained on the same labels, judged by all labels.

    few_labels.py [FIRST LAST]

The images or pairs of a data set are halved at random once per draw, FIRST to LAST (8 to 15). Calibration rows keep 3 or 5 labels, drawn
without replacement; test rows keep all. Boosters are trained anew for each loss on the plug-in reducible loss of the k labels; the settings
of one are chosen by cross-validation. Prints gains and the forest's lead with its standard error over draws. A lead above minus one
standard error counts as level. Draws 0 to 7 were used to choose the targets of trees, draws 8 to 15 to judge them. Not part of the race.
"""

import sys

import numpy as np
import xgboost

import arrays
import boosters
import losses
import subject

DATA = ["chaosnli", "cifar10h"]
LABELS = [3, 5]
LOSSES = ["brier", "cross-entropy", "zero-one", "asymmetric:2"]
PEERS = ["XGBoost, regularised", "LightGBM, regularised"]
TUNED = "XGBoost, cross-validated"
DEPTHS, ROUNDS, FOLDS = [1, 2, 3, 4], [25, 50, 100, 150, 200, 300], 4


def draw(name, k, seed):
    """A calibration half with k labels per item and a test half with all: predictions, label shares (or votes), features."""
    with np.load(arrays.folder() / f"{name}.npz") as file:
        probs, votes = file["probs"].astype(np.float64), file["votes"].astype(np.int64)
        features = file["features"].astype(np.float64).reshape(len(probs), -1)
    probs /= probs.sum(1, keepdims=True)
    order = np.random.default_rng([seed, 77]).permutation(len(probs))
    calibration, test = order[: len(order) // 2], order[len(order) // 2 :]
    rng = np.random.default_rng([seed, k, 99])
    kept = np.zeros_like(votes[calibration])
    for own, counts in zip(kept, votes[calibration]):
        labels = rng.choice(np.repeat(np.arange(len(counts)), counts), size=k, replace=False)
        own += np.bincount(labels, minlength=len(counts))
    truth = votes[test] / votes[test].sum(1, keepdims=True)
    return (probs[calibration], kept.astype(np.uint32), features[calibration]), (probs[test], truth, features[test])


def tuned(inputs, target, seed):
    """A booster whose depth and rounds have the least cross-validated squared error."""
    fold = np.random.default_rng(seed).permutation(len(inputs)) % FOLDS
    errors = {}
    for depth in DEPTHS:
        for left_out in range(FOLDS):
            rest, own = fold != left_out, fold == left_out
            fitted = _booster(depth, max(ROUNDS)).fit(inputs[rest], target[rest])
            for rounds in ROUNDS:
                error = (fitted.predict(inputs[own], iteration_range=(0, rounds)) - target[own]) ** 2
                errors[depth, rounds] = errors.get((depth, rounds), 0.0) + error.sum()
    return _booster(*min(errors, key=errors.get)).fit(inputs, target)


def _booster(depth, rounds):
    return xgboost.XGBRegressor(
        n_estimators=rounds,
        max_depth=depth,
        learning_rate=0.05,
        min_child_weight=20,
        subsample=0.8,
        reg_lambda=5.0,
        n_jobs=boosters.THREADS,
    )


def gains(name, k, seed):
    """The gain of each method for each loss."""
    (probs, votes, features), (test, truth, test_features) = draw(name, k, seed)
    inputs, asked = boosters.inputs(probs, features), boosters.inputs(test, test_features)
    router = subject.fit(probs, votes, features, "forest:200")
    found = {}
    for loss in LOSSES:
        saved = losses.reducible(loss, truth, test)
        target = losses.reducible(loss, votes / k, probs)
        scores = {"forest": subject.split(subject.policy(router, loss), test, test_features)[1]}
        scores |= {peer: boosters.BOOSTERS[peer]().fit(inputs, target).predict(asked) for peer in PEERS}
        scores[TUNED] = tuned(inputs, target, seed).predict(asked)
        found |= {(loss, method): losses.gain(score, saved) for method, score in scores.items()}
    return found


def main():
    first, last = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (8, 15)
    methods = ["forest", *PEERS, TUNED]
    print(f"| data, labels, loss | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|", sep="\n")
    for name in DATA:
        for k in LABELS:
            found = [gains(name, k, seed) for seed in range(first, last + 1)]
            for loss in LOSSES:
                of = {method: np.array([one[loss, method] for one in found]) for method in methods}
                cells = [f"{of['forest'].mean():.4f}"]
                for peer in methods[1:]:
                    lead = of["forest"] - of[peer]
                    error = lead.std(ddof=1) / np.sqrt(len(lead)) if len(lead) > 1 else float("nan")
                    cells.append(f"{of[peer].mean():.4f} ({lead.mean():+.4f} ± {error:.4f})")
                print(f"| {name}, {k}, {loss} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
