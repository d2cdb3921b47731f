"""The authors' trained weights on the paper's test windows: a row of the tables beside ours."""

import os
import time
from pathlib import Path
from typing import Any

from taylorformer.model.released_weights import load_released_weights
from taylorformer.training_and_evaluation.experiments.data import TaskData
from taylorformer.training_and_evaluation.experiments.record import write_record
from taylorformer.training_and_evaluation.experiments.run import make_record, score_model
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings
from taylorformer.training_and_evaluation.training.resumable_fit import TrainingProgress


def score_released(
    settings: ExperimentSettings,
    prefix: str | os.PathLike[str],
    output: str | os.PathLike[str],
    data: TaskData,
    *,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Scores one checkpoint of the authors' code and writes the record of a run.

    Args:
        settings: of the preset "released"; the seed numbers the runs.
        prefix: the path of the checkpoint without its `.index` ending.
        output: the folder of all runs; a record that is there is replaced.
        data: the windows of the task.
        show_progress: show bars on standard error.

    Returns:
        The record.

    Raises:
        FileNotFoundError, ValueError: as `load_released_weights`.
    """
    model = load_released_weights(Path(prefix))
    started = time.perf_counter()
    _, tables = score_model(settings, model, data, show_progress)
    record = make_record(settings, model, data, TrainingProgress(), tables)
    # The last two parts of the path say which run it is, and nothing about this machine.
    record["weights"] = Path(*Path(prefix).parts[-2:]).as_posix()
    record["command"] = f"{record['command']} --weights {record['weights']}"
    record["seconds"]["scoring"] = round(time.perf_counter() - started, 1)
    return write_record(settings.record_path(output), record)
