"""Medians of repeated runs, subject and peers taking turns."""

import gc
import statistics
import time


def race(repeats, **runners):
    """Median seconds of each runner. All take turns, so that what slows the machine down slows all of them."""
    times = {name: [] for name in runners}
    for _ in range(repeats):
        for name, run in runners.items():
            gc.collect()
            start = time.perf_counter()
            result = run()
            times[name].append(time.perf_counter() - start)
            del result
    return {name: statistics.median(each) for name, each in times.items()}
