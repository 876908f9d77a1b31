"""The peers of forests, on the data that the bench has written: what it is asked for on a line, it does, and prints the seconds.

    forest_peer.py FOLDER TREES LEAF LEAVES

`grow`: scikit-learn grows a forest of the same size on the same targets. `boost`: LightGBM trains as many trees, with its other settings as
they come, on one target. `predict`, `predict_as_large`: XGBoost predicts as many trees, small and as large as ours. Needs numpy, scikit-learn,
lightgbm and xgboost.
"""

import pathlib
import sys
import time

import numpy as np


def main():
    folder, (trees, leaf, leaves) = pathlib.Path(sys.argv[1]), map(int, sys.argv[2:5])
    rows, queries, width = (int(x) for x in (folder / "shape").read_text().split())
    read = lambda name, kind, *shape: np.fromfile(folder / name, kind).reshape(shape)
    inputs = read("inputs", "<f4", rows, width)
    targets = read("targets", "<f8", rows, 2)
    asked = read("queries", "<f4", queries, width)

    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        n_estimators=trees, min_samples_leaf=leaf, max_features=1 / 3, max_samples=0.6, n_jobs=2, random_state=0
    )
    import lightgbm
    import xgboost

    light = lightgbm.LGBMRegressor(n_estimators=trees, n_jobs=2, verbose=-1, random_state=0)
    tasks = {"grow": lambda: forest.fit(inputs, targets), "boost": lambda: light.fit(inputs, targets[:, 1])}

    # Trees as XGBoost grows them if nothing is said, at most six questions deep; and trees with as many leaves as ours.
    sizes = {"predict": {}, "predict_as_large": {"max_depth": 0, "max_leaves": leaves, "grow_policy": "lossguide"}}
    for name, size in sizes.items():
        booster = xgboost.XGBRegressor(n_estimators=trees, n_jobs=2, tree_method="hist", **size)
        booster = booster.fit(inputs, targets[:, 1]).get_booster()
        # In place: a matrix of XGBoost's own remembers its predictions.
        tasks[name] = lambda booster=booster: booster.inplace_predict(asked)
    for line in sys.stdin:
        start = time.perf_counter()
        tasks[line.strip()]()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
