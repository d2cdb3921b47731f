"""Maps the folders at the top of the repository into the package `taylorformer`.

All other metadata is in `pyproject.toml`. The folders keep their names at the top level, and are
installed inside `taylorformer`, since a top-level package called `model` would collide with the
names of many users' own files.
"""

from setuptools import find_packages, setup

FOLDERS = ("data_wrangler", "model", "comparison_models", "training_and_evaluation")

_INCLUDED = [pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")]

setup(
    packages=[
        "taylorformer",
        *(f"taylorformer.{name}" for name in find_packages("taylorformer")),
        *(f"taylorformer.{name}" for name in find_packages(include=_INCLUDED)),
    ],
    package_dir={
        "taylorformer": "taylorformer",
        **{f"taylorformer.{folder}": folder for folder in FOLDERS},
    },
    include_package_data=False,
    package_data={
        "": ["*.pyi", "py.typed"],
        "taylorformer.data_wrangler": ["data/*.csv", "data/*.txt"],
        "taylorformer.training_and_evaluation.forecasting": ["weights/*.keras", "weights/*.json"],
    },
)
