"""The file that holds a forecaster but for its network. Reading it needs no TensorFlow."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taylorformer.data_wrangler.provenance import versions
from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.training_and_evaluation.forecasting.presets import ForecastPreset

FILE = "forecaster.json"
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class SavedForecaster:
    """What a `Forecaster` is, but for its network.

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

    def to_json(self) -> str:
        """Gives the text of the file."""
        settings = dict(self.settings)
        settings["preset"] = settings["preset"].get_config()
        settings["fractions"] = list(settings["fractions"])
        content = {
            "format": _FORMAT,
            "versions": versions(),
            "settings": settings,
            "columns": self.columns.get_config(),
            "scaler": self.scaler.get_config(),
            "borders": self.borders,
            "x_range": self.x_range,
            "report": self.report,
            "history": self.history,
        }
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def read(cls, folder: Path) -> "SavedForecaster":
        """Reads the file of a folder.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it cannot be read, or is of a format that this version does not know.
        """
        path = folder / FILE
        if not path.exists():
            raise FileNotFoundError(
                f"`folder` must hold a forecaster, with a file {FILE}. Received: {folder}"
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            known = content["format"] == _FORMAT
            made_by = content["versions"]["taylorformer"]
            if known:
                return cls._from(content)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"`folder` must hold a forecaster that `save` wrote. Received: {path} ({error!r})"
            ) from error
        raise ValueError(
            f"{path} must have the format {_FORMAT}. Received: format {content['format']}, made by "
            f"taylorformer {made_by}; this is {versions()['taylorformer']}"
        )

    @classmethod
    def _from(cls, content: Mapping[str, Any]) -> "SavedForecaster":
        settings = dict(content["settings"])
        settings["preset"] = ForecastPreset.from_config(settings["preset"])
        settings["fractions"] = tuple(settings["fractions"])
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
