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
from serving import Service

import pointsman

EXAMPLES = sorted((REPOSITORY / "python" / "examples").glob("*.py"))


@pytest.mark.parametrize("name", ["pointsman", *(module.name for module in pkgutil.walk_packages(pointsman.__path__, "pointsman."))])
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", ["README.md", "python/README.md", "docs/src/python.md", "docs/src/parts.md", "docs/src/compare.md", "docs/src/shipping.md"])
def test_pages(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def run_page(page: str, folder: Path, replacements: tuple[tuple[str, str], ...] = ()) -> str:
    """Runs the examples of a page and gives what they print."""
    found = blocks(REPOSITORY / page)
    assert found, page
    # One page, one story: later blocks use what earlier ones made.
    text = "import matplotlib\nmatplotlib.use('Agg')\n" + "\n".join(found)
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    script = folder / "page.py"
    script.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_of_the_client(service: Service, tmp_path: Path) -> None:
    printed = run_page("docs/src/client.md", tmp_path, (("http://127.0.0.1:7070", service.url),))
    assert "422 /probs the probabilities sum to 1.1" in printed, "as the page says"


def test_the_pages_have_an_example_of_everything() -> None:
    page = "\n".join(example for name in ("python", "client") for example in blocks(REPOSITORY / f"docs/src/{name}.md"))
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
        skip(done.stdout.strip(), is_data="POINTSMAN_TEST_DATA" in done.stdout)
    assert done.stdout.strip()
