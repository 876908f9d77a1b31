"""The types are strict, and what they promise is there."""

import ast
import subprocess
import sys
from pathlib import Path

import pointsman
from pointsman import _native

HERE = Path(__file__).resolve().parent
PACKAGE = Path(pointsman.__file__).resolve().parent


def test_the_package_and_its_users_pass_mypy_strict(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(HERE.parent / "pyproject.toml")]
    line += ["--cache-dir", str(tmp_path), str(HERE / "typed_sample.py"), str(HERE.parent / "pointsman")]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (PACKAGE / "py.typed").exists()


def test_the_typed_sample_runs() -> None:
    subprocess.run([sys.executable, str(HERE / "typed_sample.py")], check=True)


def test_the_stub_is_of_the_module() -> None:
    stub = ast.parse((PACKAGE / "_native.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    # What Arrow tables are in the stub is a class of another library.
    classes.pop("ArrowTable")
    for name, node in classes.items():
        promised = {item.name for item in node.body if isinstance(item, ast.FunctionDef)} - {"__init__"}
        there = set(dir(getattr(_native, name)))
        assert promised <= there, f"{name}: {promised - there}"
        hidden = {one for one in vars(getattr(_native, name)) if not one.startswith("_")}
        assert hidden <= promised, f"{name}: {hidden - promised}"
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in dir(_native) if not name.startswith("_")}
    assert functions | set(classes) | {"DIAGNOSIS_STEPS", "VERSION"} == public


def test_everything_public_is_found_and_described() -> None:
    assert set(pointsman.__all__) <= set(dir(pointsman)) and "Any" not in dir(pointsman)
    for name in set(pointsman.__all__) - {"__version__"}:
        one = getattr(pointsman, name)
        assert one.__doc__, name
        for member, value in vars(one).items() if isinstance(one, type) else []:
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{member}"


def test_only_numpy_is_needed_to_import() -> None:
    code = """
import sys
for name in ["sklearn", "pandas", "polars", "pyarrow", "matplotlib", "tqdm", "scipy", "httpx"]:
    sys.modules[name] = None
import numpy as np, pointsman
probs = np.array([[0.9, 0.1], [0.3, 0.7]])
router = pointsman.Router("top-class:10").fit(probs, [["0", "1"], ["1", "1"]])
assert len(router.policy(abstain=0.2).decide(probs).action) == 2
for use, words in [
    (lambda: pointsman.Router().policy(), "call fit first"),
    (lambda: router.decompose().plot(), "matplotlib"),
    (lambda: pointsman.Router("forest:2", progress=True).fit(probs, [["0"], ["1"]]), "tqdm"),
]:
    try:
        use()
    except pointsman.PointsmanError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
try:
    pointsman.RoutedClassifier
except ImportError as error:
    assert "scikit-learn" in str(error)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_workspaces() -> None:
    text = (HERE.parents[1] / "Cargo.toml").read_text()
    wanted = text.split("[workspace.package]")[1].split('version = "')[1].split('"')[0]
    assert pointsman.__version__ == wanted
