"""What the documentation shows runs: docstrings, the README, the book's page and the examples."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, skip

import pointsman

EXAMPLES = sorted((REPOSITORY / "python" / "examples").glob("*.py"))


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(pointsman.__path__)] + [""])
def test_docstrings(name: str) -> None:
    module = importlib.import_module(f"pointsman.{name}".rstrip("."))
    assert doctest.testmod(module).failed == 0


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", ["README.md", "python/README.md", "docs/src/python.md", "docs/src/parts.md", "docs/src/compare.md", "docs/src/shipping.md"])
def test_pages(page: str, tmp_path: Path) -> None:
    found = blocks(REPOSITORY / page)
    assert found, page
    # One page, one story: later blocks use what earlier ones made.
    script = tmp_path / "page.py"
    script.write_text("import matplotlib\nmatplotlib.use('Agg')\n" + "\n".join(found), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_has_an_example_of_everything() -> None:
    page = "\n".join(blocks(REPOSITORY / "docs/src/python.md"))
    values = {"Aggregate", "Estimator", "Support", "Ties", "NotFitted", "__version__"}
    for name in set(pointsman.__all__) - values:
        made = {"Policy": ".policy(", "Decisions": ".decide(", "Report": ".evaluate(", "Diagnosis": "diagnose("}
        made |= {"Decomposition": "decompose(", "Judgement": ".judgement(", "Arrays": "pointsman.read("}
        assert made.get(name, name) in page, name


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_examples(script: Path, tmp_path: Path) -> None:
    settings = {**os.environ, "MPLBACKEND": "Agg"}
    line = [sys.executable, str(script)]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False, env=settings)
    assert done.returncode == 0, done.stderr
    if "SKIPPED" in done.stdout:
        skip(done.stdout.strip(), is_data="POINTSMAN_DATA" in done.stdout)
    assert done.stdout.strip()
