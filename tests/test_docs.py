"""The Python blocks of the README and the examples of docstrings run."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
from forecasting import TINY

from taylorformer.training_and_evaluation.forecasting import presets

README = Path(__file__).parents[1] / "README.md"
FOLDERS = ("data_wrangler", "model", "comparison_models", "training_and_evaluation")


@pytest.fixture(autouse=True)
def small_preset(monkeypatch):
    """Examples train with the default preset; here it is one that takes no minutes."""
    monkeypatch.setattr(presets, "PRESETS", {**presets.PRESETS, "compact": TINY})


def modules_with_examples():
    for folder in FOLDERS:
        for path in sorted((README.parent / folder).rglob("*.py")):
            if ">>> " in path.read_text():
                name = path.relative_to(README.parent).with_suffix("").as_posix()
                yield f"taylorformer.{name.replace('/', '.')}"


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_of_docstrings_run(name):
    results = doctest.testmod(importlib.import_module(name), raise_on_error=True)
    assert results.attempted and not results.failed


def test_python_blocks_of_the_readme_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    namespace = {"__name__": "readme"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"README.md, Python block {number + 1}", "exec"), namespace)
    assert (tmp_path / "forecast.png").exists()
    nll, mse = (float(word) for word in capsys.readouterr().out.splitlines()[-1].split())
    assert nll < 1.5
    assert mse < 0.5


@pytest.mark.parametrize("name", ["docs/design.md", "CHANGELOG.md", "README.md"])
def test_files_that_the_docs_name_exist(name):
    """Every path in backticks that looks like one of our files is one."""
    root = README.parent
    text = (root / name).read_text()
    folders = ("model", "data_wrangler", "training_and_evaluation", "tests", "docs", "taylorformer")
    paths = re.findall(rf"`((?:{'|'.join(folders)})/[\w./]*)`", text)
    missing = [path for path in paths if not (root / path).exists()]
    assert not missing
