"""Natural-language inference with five annotators a pair: which pairs deserve an expert, and which are ambiguous for everybody.

Needs ``snli.npz`` (arrays ``probs``, ``votes`` and ``split``) in the folder ``POINTSMAN_TEST_DATA``.
"""

# %% The data: a small encoder's probabilities and five labels a pair
import os
import sys
from pathlib import Path

import numpy as np

import pointsman

beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
path = Path(os.environ.get("POINTSMAN_TEST_DATA", beside)) / "snli.npz"
if not path.exists():
    print(f"SKIPPED: {path} is not here; set POINTSMAN_TEST_DATA to the folder with snli.npz")
    sys.exit()
data = np.load(path)
classes = ["entailment", "neutral", "contradiction"]
fit, test = data["split"] == 0, data["split"] == 1

# %% Learn once
router = pointsman.Router("top-class:10", classes=classes).fit(data["probs"][fit], data["votes"][fit])
print(router.decompose("brier").to_pandas().round(3).to_string(index=False))

# %% Ask anything later: an expert at a price, a panel of three, and at most a tenth of the traffic
tasks = {
    "an expert": {"routes": {"expert": 0.05}, "abstain": 0.4},
    "a panel of three": {"routes": {"panel": (pointsman.Oracle.panel(3), 0.02)}, "abstain": 0.4},
    "a tenth of the traffic": {"routes": {"expert": 0.0}, "budget": 0.1},
}
for name, task in tasks.items():
    policy = router.policy(**task)
    report = policy.evaluate(data["probs"][test], data["votes"][test], calibration_error=False)
    print(f"{name}: {report}")

# %% Which pairs are ambiguous for everybody?
decisions = router.policy(routes={"expert": 0.05}, abstain=0.4).decide(data["probs"][test])
hard = np.argsort(-decisions.irreducible)[:5]
print("votes on the most ambiguous pairs:", data["votes"][test][hard].tolist())
assert decisions.irreducible[hard].min() > np.median(decisions.irreducible)
