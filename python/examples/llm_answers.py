"""A language model asked several times as the source of labels: no annotators, only recorded answers.

A large model is asked k times about each message at its usual temperature; its answers are the votes. A small model answers most
messages; the large one is asked again only where that is worth its price. The answers in ``llm_answers.json`` are simulated,
in the form in which real ones would be recorded.

What is learned then is the loss against the large model's answers: they are the truth of this router, whatever people say.
"""

# %% Recorded answers
import json
from pathlib import Path

import numpy as np

import pointsman

record = json.loads((Path(__file__).parent / "llm_answers.json").read_text(encoding="utf-8"))
print(record["note"])
items = record["items"]
probs = {name: [item["small_model"][name] for item in items] for name in record["classes"]}
answers = [item["answers"] for item in items]

# %% Learn from half of the messages: lists of answers are votes, as many as there are
half = len(items) // 2
first = {name: column[:half] for name, column in probs.items()}
rest = {name: column[half:] for name, column in probs.items()}
router = pointsman.Router("confidence:4").fit(first, answers[:half])

# %% A wrong reply costs 1, a hand-over to a person 0.3, a call of the large model 0.02
policy = router.policy(loss="zero-one", routes={"large-model": 0.02}, abstain=0.3)
decisions = policy.decide(rest, ids=[item["id"] for item in items[half:]])
print(decisions)
print(policy.evaluate(rest, answers[half:]))

# %% What to call the large model about, and what to hand over
frame = decisions.to_pandas()
calls = frame[frame["action"] == "route:large-model"]["id"].tolist()
print(len(calls), "calls instead of", len(frame), "- the first:", items[int(calls[0][1:])]["text"] if calls else "none")
assert 0 < len(calls) < len(frame)
assert np.isclose(sum(policy.shares.values()), 1)
