"""The weights that come with the package: where they are, what made them, and loading them."""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taylorformer.data_wrangler.checks import check_choice
from taylorformer.data_wrangler.tables.context_scaler import NUM_X

if TYPE_CHECKING:
    from taylorformer.model.taylorformer import Taylorformer

_FOLDER = Path(__file__).parent / "weights"


@dataclasses.dataclass(frozen=True)
class PretrainedPreset:
    """A pretrained model, and how many rows it is given.

    Attributes:
        name: under which it is asked for.
        version: of the weights; the name of their files.
        file: of a model that does not come with the package. None: it does.
        context_length: rows that a forecast reads, where no season is long.
        cycles: of the longest season that are read, where these are more rows.
        longest_context: the most rows that are read.
        longest_horizon: the longest horizon that is chosen without being asked for.
        mirrored: whether forecasts are mirrored, where it is not said, see `MirroredModel`.
    """

    name: str
    version: str
    file: Path | None = None
    context_length: int = 160
    cycles: float = 2.5
    longest_context: int = 700
    longest_horizon: int = 96
    mirrored: bool = False

    @property
    def weights_file(self) -> Path:
        """The model, a `.keras` file."""
        return _FOLDER / f"{self.version}.keras" if self.file is None else self.file

    @property
    def record(self) -> Mapping[str, Any]:
        """What made the weights: command, seeds, versions, figures, and the hash of the file."""
        record: dict[str, Any] = json.loads(
            (_FOLDER / f"{self.version}.json").read_text(encoding="utf-8")
        )
        return record

    def load(self) -> "Taylorformer":
        """Loads the model; one that comes with the package is read from its file once.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not the one on record, or holds no such model.
        """
        return _load(self) if self.file is None else _load_model(self.file)


@functools.cache
def _load(preset: PretrainedPreset) -> "Taylorformer":
    digest = hashlib.sha256(preset.weights_file.read_bytes()).hexdigest()
    expected = preset.record["sha256"]
    if digest != expected:
        raise ValueError(
            f"the weights of {preset.version!r} must have the SHA-256 {expected}, as on record. "
            f"Received: {digest}; install the package again"
        )
    return _load_model(preset.weights_file)


def _load_model(path: Path) -> "Taylorformer":
    import keras

    # Importing it registers the classes of its layers with Keras.
    from taylorformer.model.taylorformer import Taylorformer

    model = keras.saving.load_model(path, compile=False)
    if not isinstance(model, Taylorformer) or (model.x_dims, model.y_dims) != (NUM_X, 1):
        raise ValueError(
            f"{path} must hold a Taylorformer of D_x = {NUM_X} and D_y = 1, as `taylorformer "
            f"experiment prior` trains it. Received: {_describe(model)}"
        )
    return model


def _describe(model: Any) -> str:
    dims = [getattr(model, name, None) for name in ("x_dims", "y_dims")]
    return f"{type(model).__name__} of D_x = {dims[0]} and D_y = {dims[1]}"


PRETRAINED: Mapping[str, PretrainedPreset] = {
    "prior": PretrainedPreset("prior", "prior-1"),
    "prior-1": PretrainedPreset("prior-1", "prior-1"),
    "prior-2": PretrainedPreset("prior-2", "prior-2", mirrored=True),
}
"""The pretrained models; a name without a number is the version that `fit` gains most from."""


def find_pretrained(name: Any, argument: str = "preset") -> PretrainedPreset:
    """Looks a pretrained model up by its name, or by the path of its `.keras` file.

    Args:
        name: the name or the path.
        argument: what a message calls it.

    Raises:
        ValueError: an unknown name.
    """
    if is_model_file(name):
        return PretrainedPreset(str(name), Path(name).stem, Path(name))
    check_choice(argument, name, tuple(PRETRAINED))
    return PRETRAINED[name]


def is_model_file(name: Any) -> bool:
    """Tells whether a preset is the path of a model."""
    return isinstance(name, str | os.PathLike) and str(name).endswith(".keras")
