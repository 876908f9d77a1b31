"""Pointsman against what people use instead: the same arrays, one core each, medians of repeated runs.

    race.py [--rows 10000000] [-o bench/results/race.json]

Writes the results; page.py makes a page of the book from them. Needs the package `pointsman` and requirements.txt.
"""

import argparse
import json
import os
import pathlib

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "ARROW_NUM_THREADS"):
    os.environ[variable] = "1"  # Before anything that starts threads is imported.

import importlib.metadata  # noqa: E402
import platform  # noqa: E402

import arrays  # noqa: E402
import quality  # noqa: E402
import speed  # noqa: E402

PACKAGES = ["pointsman", "numpy", "pandas", "scikit-learn", "xgboost", "lightgbm", "crowd-kit", "MAPIE"]


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows to decide")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=arrays.ROOT / "bench" / "results" / "race.json")
    arguments = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    print("python", platform.python_version(), *(f"{name} {version}" for name, version in versions.items()), sep="\n  ")
    results = {
        "versions": {"python": platform.python_version(), **versions},
        "machine": {"processor": processor(), "threads": 1},
        "speed": speed.everything(arguments.rows),
    }
    if arrays.folder() is None:
        print("SKIPPED: quality, since the shared data sets are not there; set POINTSMAN_TEST_DATA to their folder")
    else:
        results |= {"gain": quality.gains(), "resamples": quality.RESAMPLES, "conformal": quality.conformal()}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    print("wrote", arguments.output)


if __name__ == "__main__":
    main()
