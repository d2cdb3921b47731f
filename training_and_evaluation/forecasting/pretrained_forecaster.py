"""Forecasts without training: a model that was trained on synthetic series reads any table.

`fit` trains it further, on a table of the user's.
"""

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_choice,
    check_integer,
    check_optional_integer,
    listed,
)
from taylorformer.data_wrangler.seeds import LARGEST_SEED, SMALLEST_SEED
from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.context_batches import (
    ContextBatches,
    first_targets_by_series,
)
from taylorformer.data_wrangler.tables.context_scaler import NUM_X, input_shapes
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.covariate_scaling import NO_COVARIATES, CovariateScaling
from taylorformer.data_wrangler.tables.frames import ForeignTable, as_frame, check_frame
from taylorformer.data_wrangler.tables.frequencies import (
    Frequency,
    read_frequency,
    saved_frequency,
)
from taylorformer.data_wrangler.tables.long_table import ids_of
from taylorformer.data_wrangler.tables.missing_marks import describe_marks, marks_of
from taylorformer.data_wrangler.tables.odd_series import OddSeries
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.seasons import Seasons, choose_seasons, plain_seasons
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import (
    DEFAULT_FRACTIONS,
    PARTS,
    Split,
    WindowSpec,
    check_fractions,
    evenly_spaced,
    spaced_starts,
)
from taylorformer.data_wrangler.tables.value_support import (
    ValueSupport,
    check_bounds,
    check_integers,
)
from taylorformer.data_wrangler.user_warnings import warn_user
from taylorformer.data_wrangler.whole_files import find_file, replaced_together
from taylorformer.model.saved_model_folder import check_export_folder
from taylorformer.training_and_evaluation.forecasting.backtest import Backtest, backtest
from taylorformer.training_and_evaluation.forecasting.forecast import Forecast
from taylorformer.training_and_evaluation.forecasting.left_out import extend_each
from taylorformer.training_and_evaluation.forecasting.pretrained_checks import (
    describe_not_shown,
    describe_suspects,
    note_stopped,
    odd_in_pretrained,
    suspect_series,
)
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import (
    PretrainedPreset,
    find_pretrained,
)
from taylorformer.training_and_evaluation.forecasting.saved_forecaster import (
    FILE,
    MODEL_FILE,
    SavedPretrained,
    SavedTraining,
    history_rows,
)
from taylorformer.training_and_evaluation.forecasting.table_reading import (
    ID_COLUMN,
    Table,
    check_values,
    read_panel,
    without_left_out,
)
from taylorformer.training_and_evaluation.forecasting.training_parts import (
    FEWEST_BEFORE,
    TrainingPart,
    ValidationWindows,
    refuse_short_parts,
    training_parts,
)
from taylorformer.training_and_evaluation.forecasting.training_seen import Borders
from taylorformer.training_and_evaluation.training.plan import LARGEST_TRAINING_SEED

if TYPE_CHECKING:
    import keras

    from taylorformer.model.probabilistic_model import ProbabilisticModel
    from taylorformer.model.taylorformer import Taylorformer
    from taylorformer.training_and_evaluation.forecasting.fine_tuning import FineTuning

# Without a season a tenth of the rows is forecast, and no less than this.
_LEAST_HORIZON = 6
_SHARE_OF_ROWS = 10
# Share of the rows of a series, the last ones, that a back-test scores.
_TEST_SHARE = 0.2
# Context lengths are rounded up to multiples of these, so that series of many lengths come in few
# shapes: of 8 up to 64 rows, of 16 up to 128.
_MULTIPLES = ((64, 8), (128, 16))
_LARGEST_MULTIPLE = 32
# At most so many windows measure the scale of naive lines.
_MOST_NAIVE_WINDOWS = 1024


class PretrainedForecaster(BaseEstimator):
    """Probabilistic forecasts of a table by a pretrained model, which needs no `fit`.

    The model was trained on synthetic series alone. Everything that scaling needs is measured on
    the last rows of each series, see `ContextScaler`, so a table of one short series will do.
    Several targets are forecast one by one. `Forecaster.from_preset("prior")` makes one.

    `fit` trains the model further on a table, and keeps what it makes of it only where forecasts of
    the validation part get better. Covariates can be read after it alone: they begin without any
    effect.

    Args:
        preset: the name of the weights, see `PRETRAINED`, or the path of a `.keras` file that
            `taylorformer experiment prior` wrote.
        horizon: N_T, rows to forecast. None: one season, where a season is shorter than 97 rows;
            else a tenth of the rows, at least 6 and at most 96; of several series the median. It is
            chosen on the table of a forecast, or, where there was one, on that of `fit`.
        context_length: the most rows that a forecast reads. None: 160, or two and a half of the
            longest season where these are more, up to 700.
        seasons: "auto": those that the rows show, see `choose_seasons`; None: there are none; a
            number of steps, a length of time such as "7 days", or a list of up to three.
        lower: the least value that a target can have, see `Forecaster`.
        upper: the largest value, likewise.
        integers: whether targets are whole numbers, likewise.
        mirrored: draw half of the samples from what the model makes of the negative series, see
            `MirroredModel`: forecasts that were nearer and less sure of themselves on most sets.
            None: as is usual for the preset.

    Attributes:
        columns_: after `fit`, the `Columns` of its table. Tables of forecasts and back-tests are
            read by them, unless they are named again.
        history_: after `fit`, a table of the training, one row an epoch, in scaled units.
        report_: after `fit`, what training saw and what came of it, for people and for JSON.
        borders_: after `fit`, the last times of the training and the validation part of each
            series.

    Raises:
        TypeError, ValueError: an argument outside its range, when it is used.
    """

    def __init__(
        self,
        preset: str = "prior",
        *,
        horizon: int | None = None,
        context_length: int | None = None,
        seasons: Any = "auto",
        lower: float | Sequence[float | None] | None = None,
        upper: float | Sequence[float | None] | None = None,
        integers: bool | Sequence[bool] = False,
        mirrored: bool | None = None,
    ) -> None:
        self.preset = preset
        self.horizon = horizon
        self.context_length = context_length
        self.seasons = seasons
        self.lower = lower
        self.upper = upper
        self.integers = integers
        self.mirrored = mirrored

    @property
    def model_(self) -> "ProbabilisticModel":
        """The model of forecasts and scores; it reads and predicts scaled numbers."""
        if not self._is_mirrored:
            return self._weights
        if not hasattr(self, "_mirrored"):
            self._mirrored = _mirrored(self._weights)
        return self._mirrored

    @property
    def _weights(self) -> "Taylorformer":
        """The pretrained model itself."""
        if not hasattr(self, "_model"):
            self._model = self._preset.load()
        return self._model

    @property
    def _preset(self) -> PretrainedPreset:
        return find_pretrained(self.preset)

    @property
    def _is_mirrored(self) -> bool:
        if self.mirrored is not None:
            return check_boolean("mirrored", self.mirrored)
        # A later version of the preset may have another usual way than weights from a file.
        return getattr(self, "_usually_mirrored", self._preset.mirrored)

    # Training.

    def fit(
        self,
        data: Table,
        time_column: Hashable | Sequence[str] | None = None,
        target_columns: Hashable | Sequence[Hashable] | None = None,
        *,
        id_column: Hashable | None = None,
        covariate_columns: Sequence[Hashable] = (),
        date_format: str | None = None,
        day_first: bool = False,
        time_unit: str | None = None,
        time_zone: str | None = None,
        freq: Frequency | None = None,
        fractions: Sequence[float] = DEFAULT_FRACTIONS,
        tuning: "FineTuning | Mapping[str, Any] | None" = None,
        seed: int = 0,
        run_eagerly: bool = False,
        unsorted: str = "error",
        duplicates: str = "error",
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        callbacks: "Sequence[keras.callbacks.Callback]" = (),
    ) -> "PretrainedForecaster":
        """Trains the pretrained model on a table, from the weights of the preset.

        The rows of each series are split in the order of time. What is kept are the weights whose
        forecasts of the validation part are best, drawn back towards those of the preset as far as
        these forecasts cannot tell them apart; where none are better, the preset's stay. Several
        targets count as series.

        Args:
            data: a table, see `Forecaster.fit`, as for the next ones up to `freq`.
            time_column: the column of time.
            target_columns: one name or several.
            id_column: tells several series apart.
            covariate_columns: known ahead of time, for the rows to forecast too. They become
                further dimensions of x, standardised by the training parts of all series.
            date_format: of dates.
            day_first: of dates.
            time_unit: of numbers that are dates.
            time_zone: of dates.
            freq: how stamps continue.
            fractions: shares of the training, validation and test part. Without a validation part
                the last weights are kept, whatever they are worth.
            tuning: how the model is trained. None: as is usual for so many windows, see
                `usual_tuning`; a mapping has values of `FineTuning` that replace the usual ones.
            seed: of the order of windows and of the synthetic series.
            run_eagerly: train without graphs, which is slow, to debug.
            unsorted: see `Forecaster.fit`, as the next ones.
            duplicates: which of the rows of one stamp to keep.
            checkpoint: a file that is written after each epoch.
            resume: continue from `checkpoint` if it is there.
            callbacks: of Keras, such as a progress bar.

        Returns:
            The forecaster itself.

        Raises:
            TypeError, ValueError: arguments outside their range, a table that cannot be read, or
                one that is too short. Nothing has been trained then.
            KeyboardInterrupt: the user stopped. After the first epoch the forecaster is fitted,
                with the best weights so far.
        """
        from taylorformer.model.wider_x import with_wider_x
        from taylorformer.training_and_evaluation.forecasting.fine_tuning import (
            FineTuning,
            KeptWeights,
            about_training,
            fine_tune,
            usual_tuning,
        )
        from taylorformer.training_and_evaluation.training.resumable_fit import TrainingProgress

        fractions = check_fractions(fractions)
        seed = check_integer("seed", seed, 0, LARGEST_TRAINING_SEED)
        if not isinstance(tuning, FineTuning):
            # Values outside their range are an error before the table is read.
            usual_tuning(0, tuning)
        horizon = check_optional_integer("horizon", self.horizon, 1)
        table = self._read(
            data,
            unsorted,
            duplicates,
            is_new=True,
            time_column=time_column,
            target_columns=target_columns,
            id_column=id_column,
            covariate_columns=covariate_columns,
            date_format=date_format,
            day_first=day_first,
            time_unit=time_unit,
            time_zone=time_zone,
            freq=freq,
        )
        columns = dataclasses.replace(table.columns, freq=saved_frequency(freq))
        if columns.freq is not None:
            read_frequency(columns.freq, table.panel.series[0].stamps)
        if len(set(table.supports)) > 1:
            raise ValueError(
                "`lower`, `upper` and `integers` must be the same for all targets where a training "
                "begins with pretrained weights; new ones (`start=None`, `--start none`) may have "
                f"others for each. Received: {listed([str(one) for one in table.supports])}"
            )
        chosen = self._choose_parts(table.panel, fractions, horizon)
        parts = chosen.parts
        warn_user(chosen.odd.describe("the training"), describe_marks(marks_of(chosen.series)))
        support = None if table.supports[0].is_everything else table.supports[0]
        covariates = CovariateScaling.measure([part.training.covariate_values for part in parts])
        longest = max(self._rows_to_read(part.num_training, part.seasons) for part in parts)
        training = Panel([part.training for part in parts])
        if not isinstance(tuning, FineTuning):
            count = sum(map(len, first_targets_by_series(training, chosen.num_targets)))
            tuning = usual_tuning(count, tuning)
        batches = ContextBatches(
            training,
            chosen.num_targets,
            longest,
            lambda number, _: parts[number].seasons.padded,
            tuning.batch_size,
            seed,
            support,
            covariates,
            tuning.balance,
        )
        # In a short validation part shorter windows, so that there are two that do not overlap.
        num_scored = min(chosen.horizon, max(part.num_validation for part in parts) // 2)
        windows = ContextWindows(
            Panel([part.series for part in parts]),
            WindowSpec(_rounded_up(longest), max(num_scored, 1)),
            lambda number, _: parts[number].seasons.padded,
            support,
            covariates,
            longest,
        )
        validation = ValidationWindows.of(parts, windows, tuning.validation_windows)
        if fractions[1] and not len(validation):
            warn_user(
                "the validation part has no window with a value to predict, so nothing says "
                "whether training helps: the last weights are kept, whatever they are worth"
            )
        model = with_wider_x(self._preset.load(), covariates.num_covariates)
        sampled = _mirrored(model) if self._is_mirrored else model
        progress, kept = TrainingProgress(), KeptWeights(1.0)
        try:
            progress, kept = fine_tune(
                model,
                sampled,
                batches,
                validation,
                tuning,
                run_eagerly=run_eagerly,
                checkpoint=checkpoint,
                resume=resume,
                callbacks=callbacks,
                progress=progress,
            )
        finally:
            if progress.epoch:
                self._model = model
                if hasattr(self, "_mirrored"):
                    del self._mirrored  # It is made anew for the new weights.
                self._time_unit = table.panel.time_unit
                self._covariates = covariates
                self.columns_ = columns
                self.history_ = pd.DataFrame(progress.history)
                self.borders_ = {
                    one.name: Borders.of(one, chosen.splits[one.name]) for one in chosen.series
                }
                self.report_: dict[str, Any] = {
                    "series": {one.name: one.missing_summary() for one in chosen.series},
                    "left_out": chosen.odd.left_out,
                    "notes": chosen.odd.notes,
                    "horizon": chosen.horizon,
                    "num_training_windows": len(batches.first_targets),
                    "num_validation_windows": len(validation),
                    "num_weights": int(model.count_params()),
                    **about_training(progress, kept),
                }
        if progress.lacks_finite(tuning.score):
            warn_user(
                "no score of the validation part is finite: the weights of the preset are kept"
            )
        return self

    def _choose_parts(
        self, panel: Panel, fractions: Sequence[float], horizon: int | None
    ) -> "_ChosenParts":
        """Returns the parts of a table that are trained on, and how many targets at a time.

        Raises:
            ValueError: all series are too short.
        """
        odd = odd_in_pretrained(panel)
        splits = {one.name: Split.chronological(one.num_rows, fractions) for one in panel.series}
        parts = training_parts(odd.kept(panel), splits, self._choose)
        refuse_short_parts([part.num_training for part in parts] or [0])
        if horizon is None:
            kept = odd.kept(panel)
            horizon = self._usual_horizon(kept, {one.name: self._seasons_of(one) for one in kept})
        # Half of a short training part at most, so that something comes before it.
        num_targets = min(horizon, max(max(part.num_training for part in parts) // 2, 1))
        need = num_targets + FEWEST_BEFORE
        parts = [part for part in parts if part.num_training >= need]
        owners = Counter(part.owner for part in parts)
        odd.leave_out(
            [one.name for one in odd.kept(panel) if one.name not in owners],
            f"fewer than {need} values in the training part",
        )
        odd.note(
            [name for name, count in owners.items() if count < panel.num_columns],
            f"not trained on all targets: fewer than {need} values in the training part",
        )
        return _ChosenParts(parts, odd.kept(panel), splits, odd, horizon, num_targets)

    # Forecasts and scores.

    def forecast(
        self,
        data: Table,
        future: pd.DataFrame | ForeignTable | None = None,
        *,
        time_column: Hashable | Sequence[str] | None = None,
        target_columns: Hashable | Sequence[Hashable] | None = None,
        id_column: Hashable | None = None,
        covariate_columns: Sequence[Hashable] = (),
        date_format: str | None = None,
        day_first: bool = False,
        time_unit: str | None = None,
        time_zone: str | None = None,
        horizon: int | None = None,
        num_samples: int = 100,
        seed: int = 0,
        batch_size: int = 64,
        freq: Frequency | None = None,
        unsorted: str = "error",
        duplicates: str = "error",
        progress: Callable[[int, int], None] | None = None,
    ) -> Forecast:
        """Forecasts what comes after the last row of every series.

        A warning names series whose one-step forecasts inside their context are worse than naive
        ones: the model does not understand them, and the naive line may be the better forecast.

        Args:
            data: a table, see `Forecaster.fit`, as for the next ones up to `time_zone`.
            future: the rows to forecast, see `Forecaster.forecast`.
            time_column: the column of time.
            target_columns: one name or several.
            id_column: tells several series apart.
            covariate_columns: those of `fit`, or none.
            date_format: of dates.
            day_first: of dates.
            time_unit: of numbers that are dates.
            time_zone: of dates.
            horizon: how many rows. None: all rows of `future`, or as the class says.
            num_samples: S.
            seed: of the samples.
            batch_size: series to draw at once.
            freq: how stamps continue without `future`, see `continue_stamps`.
            unsorted: see `Forecaster.fit`.
            duplicates: see `Forecaster.fit`.
            progress: called with the number of series that are done, and of all.

        Returns:
            The forecast, in the units of the table, with the seasons that were used.

        Raises:
            TypeError, ValueError: a table that cannot be read, other covariates than those of
                `fit`, or no `future` that has them, stamps of `future` that do not follow, or no
                series that can be forecast.
        """
        num_samples = check_integer("num_samples", num_samples, 1)
        seed = check_integer("seed", seed, SMALLEST_SEED, LARGEST_SEED)
        batch_size = check_integer("batch_size", batch_size, 1)
        horizon = check_optional_integer("horizon", horizon, 1)
        horizon = self._chosen_horizon if horizon is None else horizon
        future_frame = None if future is None else as_frame(future, "future")
        if future_frame is not None:
            check_frame(future_frame, "future")
        table = self._read(
            data,
            unsorted,
            duplicates,
            time_column=time_column,
            target_columns=target_columns,
            id_column=id_column,
            covariate_columns=covariate_columns,
            date_format=date_format,
            day_first=day_first,
            time_unit=time_unit,
            time_zone=time_zone,
            freq=freq,
        )
        whole, columns = table.panel, table.columns
        freq = columns.freq if freq is None else freq
        if freq is not None:
            read_frequency(freq, whole.series[0].stamps)
        odd = odd_in_pretrained(whole)
        chosen = {one.name: self._seasons_of(one) for one in odd.kept(whole)}
        num_rows = horizon
        if horizon is None and future is None:
            num_rows = self._usual_horizon(odd.kept(whole), chosen)
        usual = self._preset.context_length
        spec = WindowSpec(usual, num_rows or self._preset.longest_horizon)
        note_stopped(odd, whole, spec)
        longer, guesses = extend_each(
            whole, odd, spec, num_rows, future_frame, columns, columns, freq, unsorted
        )
        panel = without_left_out(whole, odd)
        jobs = [
            self._job(
                index,
                column,
                longer[one.name],
                one.num_rows,
                chosen[one.name][column],
                one.name in odd.notes,
            )
            for index, one in enumerate(panel.series)
            for column in range(panel.num_columns)
        ]
        num_read = [0] * panel.num_series
        for job in jobs:
            num_read[job.index] = max(num_read[job.index], job.num_covered)
        num_targets = max(job.num_targets for job in jobs)
        samples = np.full((num_samples, panel.num_series, num_targets, panel.num_columns), np.nan)
        suspects: list[str] = []
        done = 0
        groups: dict[Any, list[_Job]] = {}
        for job in jobs:
            groups.setdefault(job.group, []).append(job)
        supports = table.supports
        for alike in groups.values():
            for first in range(0, len(alike), batch_size):
                some = alike[first : first + batch_size]
                suspects += self._draw(some, supports, samples, seed)
                done += len(some)
                if progress is not None:
                    progress(done // panel.num_columns, panel.num_series)
        one_by_one = ""
        if panel.num_columns > 1:
            one_by_one = (
                f"the {panel.num_columns} targets are forecast one by one: their samples are "
                "independent of one another"
            )
        warn_user(
            odd.describe("the forecast"),
            guesses,
            describe_not_shown(chosen),
            one_by_one,
            describe_suspects(suspects, hasattr(self, "columns_")),
        )
        return Forecast(
            samples=samples,
            stamps=tuple(longer[one.name].stamps[one.num_rows :] for one in panel.series),
            names=panel.names,
            time_column=columns.time_column,
            target_columns=columns.target_columns,
            id_column=columns.id_column,
            ids=tuple(table.ids[name] for name in panel.names),
            context_stamps=tuple(
                one.stamps[-count:] for one, count in zip(panel.series, num_read, strict=True)
            ),
            context_values=tuple(
                one.values[-count:] for one, count in zip(panel.series, num_read, strict=True)
            ),
            left_out=odd.left_out,
            notes=odd.notes,
            seasons=tuple(tuple(chosen[one.name]) for one in panel.series),
        )

    def _job(
        self, index: int, column: int, series: Series, num_rows: int, seasons: Seasons, is_odd: bool
    ) -> "_Job":
        """Prepares one column: rows without a value are left out, as if they were not there."""
        one = series.column(column)
        observed = np.flatnonzero(one.observed[:num_rows])
        num_read = self._rows_to_read(len(observed), seasons)
        rows = np.concatenate([observed[-num_read:], np.arange(num_rows, one.num_rows)])
        return _Job(
            index,
            column,
            one.take(rows),
            one.num_rows - num_rows,
            seasons,
            num_read,
            num_rows - int(observed[-num_read]),
            is_odd,
        )

    def _draw(
        self,
        jobs: Sequence["_Job"],
        supports: Sequence[ValueSupport],
        samples: np.ndarray,
        seed: int,
    ) -> list[str]:
        """Draws the samples of jobs of one group; returns the names of suspect series."""
        first = jobs[0]
        spec = WindowSpec(first.context_length, first.num_targets)
        windows = ContextWindows(
            [job.series for job in jobs],
            spec,
            lambda number, _: jobs[number].seasons.padded,
            supports[first.column],
            self._covariate_scaling,
        )
        starts = windows.panel.offsets[1:] - spec.length
        drawn = self.model_.sample(
            windows.forecast_inputs(starts),
            samples.shape[0],
            seed,
            sequence_keys=windows.sequence_keys(starts),
        )
        values = windows.inverse(drawn, starts)[..., 0]
        for number, job in enumerate(jobs):
            samples[:, job.index, : job.num_targets, job.column] = values[:, number]
        return suspect_series(self.model_, windows, [job.seasons for job in jobs])

    def backtest(
        self,
        data: Table,
        *,
        time_column: Hashable | Sequence[str] | None = None,
        target_columns: Hashable | Sequence[Hashable] | None = None,
        id_column: Hashable | None = None,
        covariate_columns: Sequence[Hashable] = (),
        date_format: str | None = None,
        day_first: bool = False,
        time_unit: str | None = None,
        time_zone: str | None = None,
        part: str = "test",
        step: int | None = None,
        num_windows: int | None = None,
        horizon: int | None = None,
        num_samples: int = 100,
        seed: int = 0,
        batch_size: int = 32,
        season: Any = None,
        units: str = "user",
        unsorted: str = "error",
        duplicates: str = "error",
        progress: Callable[[int, int], None] | None = None,
    ) -> Backtest:
        """Scores forecasts from many origins in the last fifth of a table, beside naive lines.

        After `fit` it is the test part instead: whatever follows the validation part, in a longer
        table too. Series that were not there in training have their last fifth.

        Seasons are searched for anew in the rows before each forecast origin. The line that
        repeats the last season has those that the rows before the first origin show; a series
        without one repeats its last value. Several targets count as series.

        Args:
            data: a table, see `forecast`, as for the next ones up to `time_zone`.
            time_column: the column of time.
            target_columns: one name or several.
            id_column: tells several series apart.
            covariate_columns: those of `fit`, or none.
            date_format: of dates.
            day_first: of dates.
            time_unit: of numbers that are dates.
            time_zone: of dates.
            part: "test", or after `fit` also "validation" or "training".
            step: rows from one window to the next, counted back from the last one. None: the
                horizon, so that no target is scored twice.
            num_windows: at most this many for each series, the last ones. None: all.
            horizon: N_T. None: as the class says; after `fit` at most the rows of the part.
            num_samples: S. 0: only the teacher-forced scores.
            seed: of the samples.
            batch_size: windows to draw at once.
            season: of the seasonal line, instead of the seasons of the rows.
            units: "user", or "scaled" for what the model reads.
            unsorted: see `Forecaster.fit`.
            duplicates: see `Forecaster.fit`.
            progress: called with the number of windows that are done, and of all.

        Returns:
            The scores, see `Backtest`.

        Raises:
            TypeError, ValueError: a table that cannot be read, or no series that is long enough.
        """
        check_choice("part", part, PARTS)
        if part != PARTS[-1] and not hasattr(self, "borders_"):
            raise ValueError(f"`part` must be 'test' before `fit`. Received: part={part!r}")
        horizon = check_optional_integer("horizon", horizon, 1)
        is_named = (horizon, self.horizon) != (None, None)
        horizon = self._chosen_horizon if horizon is None else horizon
        step = check_optional_integer("step", step, 1)
        num_windows = check_optional_integer("num_windows", num_windows, 1)
        table = self._read(
            data,
            unsorted,
            duplicates,
            time_column=time_column,
            target_columns=target_columns,
            id_column=id_column,
            covariate_columns=covariate_columns,
            date_format=date_format,
            day_first=day_first,
            time_unit=time_unit,
            time_zone=time_zone,
            freq=None,
        )
        odd = odd_in_pretrained(table.panel)
        scored = {one.name: self._scored(one, part) for one in odd.kept(table.panel)}
        before = [one.take(slice(max(scored[one.name].start, 1))) for one in odd.kept(table.panel)]
        chosen = {one.name: self._seasons_of(one) for one in before}
        if horizon is None:
            horizon = self._usual_horizon(before, chosen)
        elif not is_named:
            # The horizon of the training may not fit into a short part.
            horizon = min(horizon, max(1, *(len(rows) for rows in scored.values())))
        supports = set(table.supports)
        if len(supports) > 1:
            raise ValueError(
                "`lower`, `upper` and `integers` must be the same for all targets of a back-test. "
                f"Received: {listed([str(one) for one in table.supports])}"
            )
        rows = max(
            self._rows_to_read(one.num_rows, seasons)
            for one in odd.kept(table.panel)
            for seasons in chosen[one.name]
        )
        spec = WindowSpec(_rounded_up(rows), horizon)
        targets = {
            one.name: _first_targets(
                one,
                scored[one.name],
                WindowSpec(rows, horizon),
                step,
                num_windows,
                may_begin_earlier=one.name not in getattr(self, "borders_", {}),
            )
            for one in odd.kept(table.panel)
        }
        odd.leave_out(
            [name for name, rows_of in targets.items() if not len(rows_of)],
            f"no window of horizon + 2 = {horizon + 2} rows with a value to read, whose targets "
            f"are in the {part} part",
        )
        kept = odd.kept(table.panel)
        if not kept:
            raise ValueError(
                f"`data` must hold a series of at least horizon + 2 = {horizon + 2} rows, and of "
                f"horizon = {horizon} rows in the {part} part of a training. "
                f"Received: {listed([f'{one.num_rows} rows' for one in table.panel.series])}"
            )
        series = [one.column(column) for one in kept for column in range(one.num_columns)]
        owners = [one for one in kept for _ in range(one.num_columns)]
        windows = ContextWindows(
            Panel(series),
            spec,
            self._periods_at(series),
            table.supports[0],
            self._covariate_scaling,
            rows,
        )
        # A window is identified by its first target less N_C.
        offsets = windows.panel.offsets[:-1] - spec.context_length
        pairs = list(zip(owners, offsets, strict=True))
        starts = np.concatenate([targets[owner.name] + offset for owner, offset in pairs])
        earlier = np.concatenate(
            [
                np.arange(1, max(int(targets[owner.name][0]) - horizon + 1, 1)) + offset
                for owner, offset in pairs
            ]
        )
        if len(earlier):
            earlier = earlier[windows.scored(earlier).any(axis=1)]
        every = [seasons for one in kept for seasons in chosen[one.name]]
        lengths: dict[str, float | None] = {
            one.name: seasons.first_period for one, seasons in zip(series, every, strict=True)
        }
        if season is not None:
            lengths = dict.fromkeys(lengths, series[0].duration(season))
        warn_user(odd.describe("the back-test"), describe_not_shown(chosen))
        result = backtest(
            self.model_,
            windows,
            starts,
            fit_starts=evenly_spaced(earlier, _MOST_NAIVE_WINDOWS) if len(earlier) else None,
            num_samples=num_samples,
            seed=seed,
            batch_size=batch_size,
            season=lengths if any(lengths.values()) else None,
            units=units,
            progress=progress,
        )
        return dataclasses.replace(result, left_out=odd.left_out, notes=odd.notes)

    def _scored(self, series: Series, part: str) -> range:
        """Returns the rows that a back-test scores: a part of `fit`, or the last fifth."""
        borders = getattr(self, "borders_", {}).get(series.name)
        if borders is not None:
            return borders.split(series, self._time_unit).rows(part)
        last = series.num_rows - max(round(series.num_rows * _TEST_SHARE), 1)
        return range(last if part == PARTS[-1] else series.num_rows, series.num_rows)

    def _periods_at(self, series: Sequence[Series]) -> Callable[[int, int], np.ndarray]:
        def periods(number: int, num_rows: int) -> np.ndarray:
            rows = series[number].take(slice(num_rows))
            return self._choose(rows, 0).padded

        return periods

    # What a table shows.

    def _read(
        self, data: Table, unsorted: str, duplicates: str, is_new: bool = False, **roles: Any
    ) -> "_ReadTable":
        """Reads a table.

        Args:
            data: the table.
            unsorted: see `Forecaster.fit`.
            duplicates: likewise.
            is_new: the columns of an earlier `fit` say nothing of it.
            roles: which column plays which part.
        """
        data = as_frame(data)
        panel, columns = read_panel(
            data, lambda frame: self._columns_of(frame, roles, is_new), unsorted, duplicates
        )
        expected = self.columns_.covariate_columns if hasattr(self, "columns_") else ()
        if columns.covariate_columns != expected and not is_new:
            need = f"{expected!r}, as in `fit`"
            if not hasattr(self, "columns_"):
                need = "empty before `fit`, which learns them (`taylorformer fit`)"
            raise ValueError(
                f"`covariate_columns` must be {need}. Received: {columns.covariate_columns!r}"
            )
        columns = columns.with_form_of(panel.series[0].stamps)
        if panel.num_series > 1 and columns.id_column is None:
            columns = dataclasses.replace(columns, id_column=ID_COLUMN)
        support = self._support(panel.num_columns)
        check_values(support, data, panel, columns)
        ids: Mapping[str, Any] = {name: name for name in panel.names}
        if isinstance(data, pd.DataFrame):
            ids = ids_of(data, columns)
        supports = tuple(support.of_column(column) for column in range(panel.num_columns))
        return _ReadTable(panel, columns, ids, supports)

    def _columns_of(self, frame: pd.DataFrame, roles: Mapping[str, Any], is_new: bool) -> Columns:
        """Finds the columns of a table: those of `fit`, unless other ones are named."""
        are_named = any(value for name, value in roles.items() if name != "freq")
        if hasattr(self, "columns_") and not (is_new or are_named):
            return self.columns_
        return Columns.resolve(frame, **roles)

    @property
    def _covariate_scaling(self) -> CovariateScaling:
        """How the covariates of `fit` are scaled."""
        scaling: CovariateScaling = getattr(self, "_covariates", NO_COVARIATES)
        return scaling

    def _support(self, num_columns: int) -> ValueSupport:
        """Returns which values the D_y columns can have."""
        return ValueSupport.of(self.lower, self.upper, self.integers, num_columns)

    def _seasons_of(self, series: Series) -> tuple[Seasons, ...]:
        return tuple(self._choose(series, column) for column in range(series.num_columns))

    def _choose(self, series: Series, column: int) -> Seasons:
        if series.num_rows < 2:
            # Without steps there is nothing to count seasons in.
            return Seasons(time_unit=series.time_unit)
        rows = self.context_length or self._preset.longest_context
        return choose_seasons(series, self.seasons, column, rows)

    @property
    def _chosen_horizon(self) -> int | None:
        """The horizon that the user or the training has chosen, or None."""
        horizon = check_optional_integer("horizon", self.horizon, 1)
        return getattr(self, "report_", {}).get("horizon") if horizon is None else horizon

    def _usual_horizon(
        self, series: Sequence[Series], chosen: Mapping[str, tuple[Seasons, ...]]
    ) -> int:
        """Returns the horizon of the class's description: the lower median over series."""
        longest = self._preset.longest_horizon
        horizons = []
        for one in series:
            rows = [seasons.steps[0] for seasons in chosen[one.name] if seasons.periods]
            season = round(min(rows)) if rows else 0
            if not 2 <= season <= longest:
                season = min(max(one.num_rows // _SHARE_OF_ROWS, _LEAST_HORIZON), longest)
            horizons.append(season)
        return int(sorted(horizons)[(len(horizons) - 1) // 2])

    def _rows_to_read(self, num_rows: int, seasons: Seasons) -> int:
        """Returns how many of the last rows with a value a forecast reads."""
        preset = self._preset
        if self.context_length is not None:
            return min(check_integer("context_length", self.context_length, 1), num_rows)
        cycles = int(preset.cycles * max(seasons.steps, default=0.0))
        rows = min(max(preset.context_length, cycles), preset.longest_context)
        return min(rows, num_rows)

    # Files.

    def save(
        self,
        folder: str | os.PathLike[str],
        overwrite: bool = False,
        forecaster: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes the settings and the weights, for `Forecaster.load`.

        Args:
            folder: made if it is not there. Other files in it stay.
            overwrite: replace a forecaster that is there.
            forecaster: the arguments of the `Forecaster` that this one is a part of, as JSON can
                hold them; it is what `load` returns then.

        Raises:
            FileExistsError: there is one, and `overwrite` is not set.
        """
        folder = Path(folder)
        if find_file(folder, FILE).exists() and not overwrite:
            raise FileExistsError(
                f"`folder` must not hold a forecaster yet, unless overwrite=True. "
                f"Received: {folder}"
            )
        with replaced_together(folder) as unfinished:
            self._weights.save(unfinished / MODEL_FILE)
            saved = SavedPretrained(
                self._checked_params(),
                self._preset.version,
                self._saved_training(),
                forecaster,
                self._is_mirrored,
            )
            saved.write(unfinished)

    def _saved_training(self) -> SavedTraining | None:
        if not hasattr(self, "columns_"):
            return None
        return SavedTraining(
            self.columns_,
            self.borders_,
            self._time_unit,
            self.report_,
            history_rows(self.history_),
            self._covariates.get_config(),
        )

    def _checked_params(self) -> dict[str, Any]:
        """Returns the arguments of the constructor, checked, as JSON can hold them."""
        lower, upper = check_bounds("lower", self.lower), check_bounds("upper", self.upper)
        return {
            # A file of the user may not be there when it is loaded; the model is saved beside.
            "preset": self._preset.name if self._preset.file is None else "prior",
            "horizon": check_optional_integer("horizon", self.horizon, 1),
            "context_length": check_optional_integer("context_length", self.context_length, 1),
            "seasons": plain_seasons(self.seasons),
            "lower": lower,
            "upper": upper,
            "integers": check_integers(self.integers),
            "mirrored": None if self.mirrored is None else self._is_mirrored,
        }

    @classmethod
    def from_saved(cls, saved: SavedPretrained, model: "Taylorformer") -> "PretrainedForecaster":
        """Makes a forecaster of what `save` wrote."""
        forecaster = cls(**saved.settings)
        forecaster._model = model
        forecaster._usually_mirrored = saved.mirrored
        training = saved.training
        if training is not None:
            forecaster.columns_ = training.columns
            forecaster.borders_ = {
                name: Borders(*times) for name, times in training.borders.items()
            }
            forecaster._time_unit = training.time_unit
            forecaster._covariates = NO_COVARIATES
            if training.covariates is not None:
                forecaster._covariates = CovariateScaling.from_config(training.covariates)
            forecaster.report_ = dict(training.report)
            forecaster.history_ = pd.DataFrame(training.history)
        return forecaster

    def export(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes a SavedModel that reads the numbers of a table and forecasts in their units.

        The endpoints are those of `Forecaster.export`, without `series`, and with
        the input `periods` `[B, 3]` (float64, in the unit of the times; 0 = none): seasons are
        searched for in Python, see `Forecast.seasons`, and not in the graph. D_y is 1. Rows that a
        context lacks in front have NaN in `y_context`.

        Args:
            folder: for the SavedModel, made if it is not there.
            overwrite: replace a SavedModel that is there.

        Raises:
            FileExistsError: `folder` holds a SavedModel and `overwrite` is not set, or it holds
                something else.
            ValueError: bounds or whole numbers for several targets.
        """
        from taylorformer.training_and_evaluation.forecasting.serving import export_pretrained

        check_export_folder(folder, overwrite, "folder")
        support = ValueSupport.of(
            _one_of(self.lower), _one_of(self.upper), _one_of(self.integers), num_columns=1
        )
        export_pretrained(
            self.model_,
            None if support.is_everything else support,
            self._covariate_scaling,
            folder,
        )


def _mirrored(model: "Taylorformer") -> "ProbabilisticModel":
    from taylorformer.model.mirrored import MirroredModel

    mirrored = MirroredModel(model)
    mirrored.build(input_shapes(model.x_dims - NUM_X))
    return mirrored


@dataclasses.dataclass(frozen=True, eq=False)
class _ReadTable:
    """What was read of a table.

    Attributes:
        panel: its series.
        columns: which column plays which part.
        ids: of the series, by their names, with the type that they have in the table.
        supports: which values each target can have.
    """

    panel: Panel
    columns: Columns
    ids: Mapping[str, Any]
    supports: tuple[ValueSupport, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class _ChosenParts:
    """What of a table is trained on.

    Attributes:
        parts: the columns of all series, one by one.
        series: those that are not left out.
        splits: of all series, by their names.
        odd: what is odd about some of them.
        horizon: N_T of forecasts.
        num_targets: the largest N_T of training windows.
    """

    parts: Sequence[TrainingPart]
    series: Sequence[Series]
    splits: Mapping[str, Split]
    odd: OddSeries
    horizon: int
    num_targets: int


@dataclasses.dataclass(frozen=True, eq=False)
class _Job:
    """One column of one series that is to be forecast.

    Attributes:
        index: of the series in the panel.
        column: of the target.
        series: the rows to read, which have a value, then the rows to predict.
        num_targets: how many rows to predict.
        seasons: of the column.
        num_read: how many rows to read.
        num_covered: the same in rows of the table, with those that have no value.
        is_odd: whether the series is noted as odd. Odd ones are drawn apart from the others: the
            last bits of what is drawn depend on the batch, and are to be the same without them.
    """

    index: int
    column: int
    series: Series
    num_targets: int
    seasons: Seasons
    num_read: int
    num_covered: int
    is_odd: bool

    @property
    def context_length(self) -> int:
        """N_C, with rows in front that are masked."""
        return _rounded_up(self.num_read)

    @property
    def group(self) -> tuple[Any, ...]:
        """What is the same in all jobs of a batch."""
        return self.is_odd, self.column, self.context_length, self.num_targets


def _first_targets(
    series: Series,
    scored: range,
    spec: WindowSpec,
    step: int | None,
    num_windows: int | None,
    may_begin_earlier: bool,
) -> np.ndarray:
    """Returns the first targets of the windows to score, in rows of the series.

    Args:
        series: the series.
        scored: the rows whose targets are scored.
        spec: how many rows are read, and N_T.
        step: rows from one window to the next; None: the horizon.
        num_windows: at most so many, the last ones.
        may_begin_earlier: score rows before them too, where they are fewer than a horizon.
    """
    last = scored.stop - spec.horizon
    if last < 2 or not scored:
        return np.empty(0, np.int64)
    begin = min(scored.start, last) if may_begin_earlier else scored.start
    rows = np.arange(max(begin, 2), last + 1)
    if not len(rows):
        return np.empty(0, np.int64)
    # A context without a value says nothing.
    oldest = series.last_observed_row[rows - 1].min(axis=1)
    rows = rows[oldest >= np.maximum(rows - spec.context_length, 0)]
    return spaced_starts(rows, step or spec.horizon, num_windows)


def _one_of(values: Any) -> Any:
    """Returns what all targets share, where it is given as a list with one entry for each."""
    is_shared = isinstance(values, list | tuple) and len(set(values)) == 1
    return values[0] if is_shared else values


def _rounded_up(num_rows: int) -> int:
    """Returns the context length for so many rows, see `_MULTIPLES`."""
    fitting = [multiple for most, multiple in _MULTIPLES if num_rows <= most]
    multiple = fitting[0] if fitting else _LARGEST_MULTIPLE
    return -(-num_rows // multiple) * multiple
