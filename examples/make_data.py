"""Writes the tables of the three examples: `python3 examples/make_data.py`. The same bytes every time.

The data are synthetic, and made to have what real data have: messages that are clear, messages whose wording misleads the classifier,
and messages on which careful people disagree.
"""

import csv
import json
import math
import random
from pathlib import Path

HERE = Path(__file__).parent


def draw(rng, weights):
    """An index, drawn with these weights."""
    return rng.choices(range(len(weights)), weights)[0]


def peaked(rng, classes, top, mass):
    """A distribution with this much on one class and the rest spread unevenly."""
    rest = [rng.random() + 0.05 for _ in range(classes)]
    rest[top] = 0.0
    scale = (1.0 - mass) / sum(rest)
    return [mass if c == top else r * scale for c, r in enumerate(rest)]


def rounded(values, digits=4):
    """Probabilities as a model server prints them; the largest absorbs the rounding, so that they sum to one."""
    out = [round(v, digits) for v in values]
    top = max(range(len(out)), key=out.__getitem__)
    out[top] = round(out[top] + 1.0 - sum(out), digits)
    return out


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def support_intents():
    rng = random.Random(20_01)
    classes = ["billing", "delivery", "cancel order", "technical problem"]
    openings = ["Hi,", "Hello there,", "Good morning,", "Hey,", "Dear team,"]
    about = [
        ["I was charged twice this month", "the invoice shows the wrong VAT", "my refund has not arrived", "why did the price change"],
        ["my parcel is stuck in Lyon", "the courier left it at the wrong door", "tracking has not moved since Monday", "half of the order is missing"],
        ["please stop the order from yesterday", "I want to return it before it ships", "cancel my subscription", "I ordered the wrong size, undo it"],
        ["the app crashes when I log in", "the reset link does not work", "the page stays white on my phone", "error 502 at checkout"],
    ]
    vague = ["it still does not work", "what is going on with my order?", "please help", "this is the third time", "I want my money back now"]
    annotators = [f"ann{n:02}" for n in range(1, 13)]
    items, labels = [], []
    for n in range(1, 1001):
        kind = draw(rng, [0.55, 0.22, 0.23])  # clear, misleading, vague
        truth = draw(rng, [0.3, 0.3, 0.15, 0.25])
        if kind == 0:
            text = f"{rng.choice(openings)} {rng.choice(about[truth])}."
            p = peaked(rng, 4, truth, rng.uniform(0.94, 0.99))
            model = peaked(rng, 4, truth if rng.random() < 0.96 else draw(rng, [1] * 4), rng.uniform(0.72, 0.98))
            topics = 1
        elif kind == 1:
            # The message names another topic first; people read on, the classifier does not.
            other = (truth + rng.randint(1, 3)) % 4
            text = f"{rng.choice(openings)} I know {rng.choice(about[other])}, but that was solved. My question now: {rng.choice(about[truth])}."
            p = peaked(rng, 4, truth, rng.uniform(0.9, 0.98))
            model = peaked(rng, 4, other if rng.random() < 0.6 else truth, rng.uniform(0.42, 0.72))
            topics = 2
        else:
            text = rng.choice(vague)
            p = peaked(rng, 4, truth, rng.uniform(0.35, 0.55))
            model = peaked(rng, 4, truth if rng.random() < 0.5 else draw(rng, [1] * 4), rng.uniform(0.4, 0.68))
            topics = 0
        words = len(text.split())
        items.append([f"m{n:04}", "calibration" if n <= 600 else "heldout", text, *rounded(model), words, topics])
        for annotator in rng.sample(annotators, 3):
            labels.append([f"m{n:04}", classes[draw(rng, p)], annotator])
    header = ["id", "split", "text", *(f"prob_{c}" for c in classes), "x_words", "x_topics"]
    write_csv(HERE / "support-intents/messages.csv", header, items)
    write_csv(HERE / "support-intents/labels.csv", ["id", "label", "annotator"], labels)


def content_moderation():
    rng = random.Random(20_02)
    classes = ["fine", "spam", "abuse"]
    rows = []
    for n in range(1, 1201):
        kind = draw(rng, [0.6, 0.2, 0.2])  # plain, disguised, a matter of opinion
        truth = draw(rng, [0.7, 0.18, 0.12])
        if kind == 0:
            p = peaked(rng, 3, truth, rng.uniform(0.95, 0.995))
            model = peaked(rng, 3, truth if rng.random() < 0.95 else draw(rng, [1] * 3), rng.uniform(0.75, 0.99))
            links, reports, age = int(truth == 1) * rng.randint(1, 4), int(truth == 2) * rng.randint(0, 5), rng.uniform(200, 2000)
        elif kind == 1:
            # Bad posts of new accounts in words that the model has not learnt.
            truth = rng.choice([1, 2])
            p = peaked(rng, 3, truth, rng.uniform(0.92, 0.99))
            model = peaked(rng, 3, 0 if rng.random() < 0.7 else truth, rng.uniform(0.5, 0.8))
            links, reports, age = rng.randint(0, 2), rng.randint(1, 6), rng.uniform(0, 40)
        else:
            # Sarcasm and heated debate: moderators disagree.
            p = [q := rng.uniform(0.35, 0.65), 0.03, 0.97 - q]
            model = peaked(rng, 3, rng.choice([0, 2]), rng.uniform(0.5, 0.8))
            links, reports, age = 0, rng.randint(2, 9), rng.uniform(100, 2500)
        votes = [0, 0, 0]
        for _ in range(5):
            votes[draw(rng, p)] += 1
        split = "calibration" if n <= 700 else "heldout"
        rows.append([f"p{n:05}", split, *rounded(model), *votes, links, reports, round(age)])
    header = ["id", "split", *(f"prob_{c}" for c in classes), *(f"votes_{c}" for c in classes), "x_links", "x_reports", "x_account_days"]
    write_csv(HERE / "content-moderation/posts.csv", header, rows)


def llm_judge():
    rng = random.Random(20_03)
    classes = ["supported", "unsupported"]
    lines = []
    for n in range(1, 1001):
        kind = draw(rng, [0.55, 0.25, 0.2])  # short and plain, long and numeric, open to interpretation
        truth = draw(rng, [0.65, 0.35])
        words = rng.randint(12, 60) if kind == 0 else rng.randint(70, 240)
        numbers = rng.randint(0, 2) if kind != 1 else rng.randint(3, 12)
        if kind == 0:
            p, small = rng.uniform(0.94, 0.99), rng.gauss(2.2, 0.9)
        elif kind == 1:
            p, small = rng.uniform(0.9, 0.98), rng.gauss(0.3, 0.9)
        else:
            p, small = rng.uniform(0.5, 0.7), rng.gauss(0.6, 0.9)
        # The large model reads long answers well, is no better than people where people disagree, and is surer than it should be.
        large = rng.gauss(3.2, 1.2) if kind != 2 else rng.gauss(0.6, 2.0)
        sign = 1 if truth == 0 else -1
        logistic = lambda z: 1 / (1 + math.exp(-sign * z))
        share = p if truth == 0 else 1 - p
        votes = [0, 0]
        for _ in range(3):
            votes[draw(rng, [share, 1 - share])] += 1
        lines.append(
            {
                "id": f"a{n:04}",
                "split": "calibration" if n <= 600 else "heldout",
                "probs": dict(zip(classes, rounded([logistic(small), 1 - logistic(small)]))),
                "votes": dict(zip(classes, votes)),
                "oracles": {"judge": dict(zip(classes, rounded([logistic(large), 1 - logistic(large)])))},
                "features": {"words": words, "numbers": numbers},
            }
        )
    path = HERE / "llm-judge/answers.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    support_intents()
    content_moderation()
    llm_judge()
