"""Handwritten digits: a small classifier, five simulated annotators an image, and an expert who has to be paid.

Run it as a script, or cell by cell in an editor that knows ``# %%``.
"""

# %% A weak classifier, and labels that really disagree on some images
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import pointsman

rng = np.random.default_rng(0)
images, digits = load_digits(return_X_y=True)
# Annotators see a blurred image: they name each digit as often as its blurred neighbours say.
blurred = images + rng.normal(scale=6.0, size=images.shape)
opinion = cross_val_predict(SVC(gamma=0.001), blurred, digits, cv=5, method="decision_function")
opinion = np.exp(2 * (opinion - opinion.max(axis=1, keepdims=True)))
opinion /= opinion.sum(axis=1, keepdims=True)
votes = rng.multinomial(5, opinion)
label = np.array([rng.choice(10, p=p) for p in opinion])

weak = make_pipeline(PCA(12), LogisticRegression(max_iter=2000))
probs = cross_val_predict(weak, images, label, cv=5, method="predict_proba")
fit, test = train_test_split(np.arange(len(images)), test_size=0.5, random_state=0)

# %% Does decomposition help on this data?
diagnosis = pointsman.diagnose(probs, votes, partition="confidence:10", routes={"expert": 0.2}, abstain=0.45)
print(diagnosis.advice, "-", diagnosis.sentence)

# %% Learn once; ask at any prices later
router = pointsman.Router("confidence:10").fit(probs[fit], votes[fit])
policy = router.policy(loss="brier", routes={"expert": 0.2}, abstain=0.45)
decisions = policy.decide(probs[test])
print(decisions)

# %% What is it worth on images it has not seen?
report = policy.evaluate(probs[test], votes[test])
print(report)
for name, cost in report.mean_cost.items():
    print(f"  {name:20} {cost:.4f} ± {report.standard_error[name]:.4f}")
assert report.mean_cost["router"] <= min(report.mean_cost["always-predict"], report.mean_cost["always-route:expert"]) + 0.01
report.save_html("digits.html")

# %% Another loss, without retraining
for loss, price, declining in [("zero-one", 0.1, 0.4), ("cross-entropy", 0.3, 1.2)]:
    other = router.policy(loss=loss, routes={"expert": price}, abstain=declining).evaluate(probs[test], votes[test])
    print(loss, {action: round(share, 3) for action, share in other.shares.items()})

# %% The same as a scikit-learn classifier that asks by itself
truth = dict(zip(map(bytes, images), opinion.argmax(axis=1), strict=True))
routed = pointsman.RoutedClassifier(
    make_pipeline(PCA(12), LogisticRegression(max_iter=2000)),
    oracle=lambda rows: [truth[bytes(row)] for row in rows],
    price=0.2,
    abstain=0.45,
    partition="confidence:10",
)
routed.fit(images[fit], label[fit], votes=votes[fit])
answers = routed.predict(images[test])
print(routed.decide(images[test]), "mean cost", -pointsman.cost_scorer(routed, images[test], label[test]))
