"""Boosted trees as supervised routers: regression of the reducible loss on prediction and features, trained anew for each loss."""

import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor

THREADS = 1

# By default, and with one setting of our choice against the noise of few labels: small trees, slow steps, large leaves.
BOOSTERS = {
    "XGBoost": lambda: xgboost.XGBRegressor(n_jobs=THREADS),
    "XGBoost, regularised": lambda: xgboost.XGBRegressor(
        n_estimators=200, max_depth=3, learning_rate=0.05, min_child_weight=20, subsample=0.8, reg_lambda=5.0, n_jobs=THREADS
    ),
    "LightGBM": lambda: lightgbm.LGBMRegressor(n_jobs=THREADS, verbose=-1),
    "LightGBM, regularised": lambda: lightgbm.LGBMRegressor(
        n_estimators=200,
        num_leaves=8,
        learning_rate=0.05,
        min_child_samples=50,
        subsample=0.8,
        subsample_freq=1,
        reg_lambda=5.0,
        n_jobs=THREADS,
        verbose=-1,
    ),
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(),
    "HistGradientBoosting, regularised": lambda: HistGradientBoostingRegressor(
        max_iter=200, max_leaf_nodes=8, learning_rate=0.05, min_samples_leaf=50, l2_regularization=5.0
    ),
}


def inputs(probs, features):
    """What a supervised router sees: what the forest sees."""
    columns = [probs, probs.max(1, keepdims=True)]
    return np.hstack(columns if features is None else [*columns, features])
