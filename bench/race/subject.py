"""Pointsman as the race uses it: its Python package and nothing else."""

import numpy as np
import pointsman

PRICES = {"routes": {"expert": 0.05}, "abstain": 0.3}


def fit(probs, votes, features=None, partition="top-class:10"):
    return pointsman.Router(partition=partition).fit(probs, votes, features=features)


def policy(router, loss, routes=None, abstain=None):
    return router.policy(loss=loss, routes=routes or {"expert": 0.05}, abstain=abstain)


def split(policy, probs, features=None):
    """The irreducible and reducible loss expected of each row."""
    decisions = policy.decide(probs, features=features)
    return np.asarray(decisions.irreducible), np.asarray(decisions.reducible)
