"""The forest once more, by scikit-learn's trees and thirty lines of numpy: what gain does the recipe have in other hands?

    by_hand.py [SHARE [SEEDS]]

A hundred trees on 0.6 of the rows each, SHARE of the inputs tried at a split (0.8), grown on the unbiased Brier decomposition; the
leaf size with the least out-of-bag error; leaves valued by the labels as they are. Prints gains on held-out rows as Markdown. Not
part of the race.
"""

import sys

import numpy as np
from sklearn.tree import DecisionTreeRegressor

import arrays
import boosters
import losses

TREES, BAG, LEAVES = 100, 0.6, [120, 60, 30, 15, 8, 4]
LOSSES = ["brier", "cross-entropy", "zero-one", "asymmetric:2"]


def targets(shares, labels, probs):
    """Irreducible and reducible Brier loss, unbiased, each by its standard deviation."""
    irreducible = (1.0 - (shares**2).sum(1)) * labels / (labels - 1)
    reducible = losses.expected("brier", shares, probs) - irreducible
    return np.column_stack([irreducible / irreducible.std(), reducible / reducible.std()])


def grow(inputs, wanted, leaf, share, seed):
    """Trees, the squared error of the rows they have not seen, and the rows' leaves."""
    rng = np.random.default_rng(seed)
    trees, leaves, unseen = [], [], np.zeros((len(inputs), 3))
    for _ in range(TREES):
        order = rng.permutation(len(inputs))
        bag, out = np.split(order, [int(BAG * len(order))])
        tree = DecisionTreeRegressor(max_features=share, min_samples_leaf=leaf, random_state=int(rng.integers(1 << 31)))
        trees.append(tree.fit(inputs[bag], wanted[bag]))
        leaves.append(tree.apply(inputs))
        unseen[out] += np.column_stack([np.ones(len(out)), tree.predict(inputs[out])])
    error = ((wanted - unseen[:, 1:] / unseen[:, :1]) ** 2).sum(1).mean()
    return error, trees, leaves


def main():
    share, seeds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.8, int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"| data | leaf sizes | {' | '.join(LOSSES)} |", "|---" * (len(LOSSES) + 2) + "|", sep="\n")
    for name in arrays.DATA:
        (probs, votes, features, _), (test, judges, test_features, _) = arrays.load(name)
        labels = votes.sum(1)
        shares, truth = votes / labels[:, None], judges / judges.sum(1, keepdims=True)
        inputs, asked = boosters.inputs(probs, features), boosters.inputs(test, test_features)
        wanted = targets(shares, labels, probs)
        sizes, gains = [], []
        for seed in range(seeds):
            found = [(leaf, *grow(inputs, wanted, leaf, share, seed)) for leaf in LEAVES]
            leaf, _, trees, leaves = min(found, key=lambda one: one[1])
            sizes.append(leaf)
            scores = {loss: np.zeros(len(asked)) for loss in LOSSES}
            for tree, own in zip(trees, leaves):
                count, at = np.bincount(own), tree.apply(asked)
                for loss, score in scores.items():
                    score += (np.bincount(own, losses.reducible(loss, shares, probs)) / np.maximum(count, 1))[at]
            gains.append([losses.gain(score, losses.reducible(loss, truth, test)) for loss, score in scores.items()])
        spread = lambda all: f"{np.mean(all):.3f} ({min(all):.3f} to {max(all):.3f})"
        print(f"| {name} | {', '.join(map(str, sizes))} | {' | '.join(map(spread, zip(*gains)))} |", flush=True)


if __name__ == "__main__":
    main()
