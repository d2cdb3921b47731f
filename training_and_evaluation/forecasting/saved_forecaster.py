"""The JSON file of a fitted forecaster: all of it except its model. It needs no TensorFlow."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.versioned_files import FileKind, read_json, write_json
from taylorformer.data_wrangler.whole_files import find_file
from taylorformer.training_and_evaluation.forecasting.presets import ForecastPreset

FILE, MODEL_FILE = "forecaster.json", "model.keras"
"""The names of the two files of a forecaster: this one, and that of its model."""
_KIND = FileKind(format_number=1, writer="`Forecaster.save`", argument="folder")


_PRETRAINED = "pretrained"


@dataclasses.dataclass(frozen=True)
class SavedPretrained:
    """What a forecaster with pretrained weights consists of, except its model.

    Attributes:
        settings: the arguments of its constructor.
        version: of the weights that it began with.
        training: what `fit` found out and did. None: the weights are those of the version.
        forecaster: the arguments of the `Forecaster` that trained it. None: it was none.
        mirrored: whether its forecasts are mirrored.
    """

    settings: Mapping[str, Any]
    version: str
    training: "SavedTraining | None" = None
    forecaster: Mapping[str, Any] | None = None
    mirrored: bool = False

    def write(self, folder: Path) -> None:
        """Writes the file into a folder; one that is there is replaced whole."""
        content: dict[str, Any] = {
            "settings": dict(self.settings),
            "version": self.version,
            "mirrored": self.mirrored,
        }
        if self.training is not None:
            training = vars(self.training)
            content["training"] = {**training, "columns": self.training.columns.get_config()}
        if self.forecaster is not None:
            content["forecaster"] = dict(self.forecaster)
        write_json(_KIND, folder / FILE, {_PRETRAINED: content})

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> "SavedPretrained":
        """Makes it of the content of the file."""
        training = content.get("training")
        if training is not None:
            columns = Columns.from_config(training["columns"])
            training = SavedTraining(**{**training, "columns": columns})
        forecaster = content.get("forecaster")
        if forecaster is not None:
            forecaster = _with_tuples(forecaster)
        return cls(
            _with_tuples(content["settings"]),
            content["version"],
            training,
            forecaster,
            # Files of before there was a choice say nothing.
            content.get("mirrored", False),
        )


@dataclasses.dataclass(frozen=True)
class SavedTraining:
    """What is left of the training of pretrained weights on a table.

    Attributes:
        columns: of its tables.
        borders: for each series the last times of its training and its validation part.
        time_unit: of these times. None: they are no dates.
        report: what training saw.
        history: one dictionary an epoch.
        covariates: how they are scaled. None: it was written before there were any.
    """

    columns: Columns
    borders: Mapping[str, tuple[Any, Any]]
    time_unit: str | None
    report: Mapping[str, Any]
    history: list[dict[str, Any]]
    covariates: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class SavedForecaster:
    """What a fitted `Forecaster` consists of, except its model.

    Attributes:
        settings: the arguments of its constructor.
        columns: of its tables.
        scaler: measured on the training part.
        borders: for each series the last times of its training and its validation part.
        x_range: the smallest and the largest x of a training window.
        report: what training saw.
        history: one dictionary an epoch.
    """

    settings: Mapping[str, Any]
    columns: Columns
    scaler: WindowScaler
    borders: Mapping[str, tuple[Any, Any]]
    x_range: tuple[float, float]
    report: Mapping[str, Any]
    history: list[dict[str, Any]]

    def write(self, folder: Path) -> None:
        """Writes the file into a folder; one that is there is replaced whole."""
        settings = dict(self.settings)
        settings["preset"] = settings["preset"].get_config()
        settings["fractions"] = list(settings["fractions"])
        content = {
            "settings": settings,
            "columns": self.columns.get_config(),
            "scaler": self.scaler.get_config(),
            "borders": self.borders,
            "x_range": self.x_range,
            "report": self.report,
            "history": self.history,
        }
        write_json(_KIND, folder / FILE, content)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> "SavedForecaster":
        """Makes it of the content of the file."""
        settings = _with_tuples(content["settings"])
        settings["preset"] = ForecastPreset.from_config(settings["preset"])
        low, high = content["x_range"]
        return cls(
            settings,
            Columns.from_config(content["columns"]),
            WindowScaler.from_config(content["scaler"]),
            {name: (train, validation) for name, (train, validation) in content["borders"].items()},
            (low, high),
            content["report"],
            content["history"],
        )


def _with_tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a forecaster with tuples where JSON has lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }


def history_rows(history: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns a table of epochs as JSON holds it: one dictionary an epoch."""
    return [{str(name): value for name, value in row.items()} for row in history.to_dict("records")]


def read_saved(folder: Path) -> SavedForecaster | SavedPretrained:
    """Reads the file of a folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it cannot be read, or is of a format that this version does not know.
    """
    return read_json(_KIND, find_file(folder, FILE), _from_content)


def _from_content(content: Mapping[str, Any]) -> SavedForecaster | SavedPretrained:
    if _PRETRAINED in content:
        return SavedPretrained.from_content(content[_PRETRAINED])
    return SavedForecaster.from_content(content)
