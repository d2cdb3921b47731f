"""The Python blocks of the README run, one after the other."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_of_the_readme_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    namespace = {"__name__": "readme"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"README.md, Python block {number + 1}", "exec"), namespace)
    nll, mse = (float(word) for word in capsys.readouterr().out.split())
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
