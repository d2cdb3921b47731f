"""From a table to a forecast: fit, forecast, back-test, save and load."""

import dataclasses
import functools
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from taylorformer.data_wrangler.batch import tiled_arrays
from taylorformer.data_wrangler.checks import (
    check_choice,
    check_integer,
    check_optional_integer,
    listed,
)
from taylorformer.data_wrangler.seeds import LARGEST_SEED, SMALLEST_SEED
from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.common_seasons import common_seasons
from taylorformer.data_wrangler.tables.frames import (
    ForeignTable,
    as_frame,
    check_frame,
)
from taylorformer.data_wrangler.tables.frequencies import (
    Frequency,
    read_frequency,
    saved_frequency,
)
from taylorformer.data_wrangler.tables.long_table import ids_of
from taylorformer.data_wrangler.tables.missing_marks import describe_marks, marks_of
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import (
    DEFAULT_FRACTIONS,
    PARTS,
    Split,
    WindowSpec,
    evenly_spaced,
    panel_window_starts,
)
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.data_wrangler.user_warnings import warn_user
from taylorformer.data_wrangler.whole_files import find_file, replaced_together
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.saved_model_folder import check_export_folder
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.forecasting.backtest import Backtest, backtest
from taylorformer.training_and_evaluation.forecasting.fixed_windows import FixedWindows
from taylorformer.training_and_evaluation.forecasting.forecast import Forecast
from taylorformer.training_and_evaluation.forecasting.left_out import (
    backtest_starts,
    extend_each,
    odd_in_backtest,
    odd_in_forecast,
    odd_in_training,
    with_scales_of,
)
from taylorformer.training_and_evaluation.forecasting.presets import PRESETS, ForecastPreset
from taylorformer.training_and_evaluation.forecasting.pretrained_forecaster import (
    PretrainedForecaster,
)
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import (
    PRETRAINED,
    is_model_file,
)
from taylorformer.training_and_evaluation.forecasting.saved_forecaster import (
    FILE,
    MODEL_FILE,
    SavedForecaster,
    SavedPretrained,
    history_rows,
    read_saved,
)
from taylorformer.training_and_evaluation.forecasting.settings import (
    SEASONS_OF_MODEL,
    START_OF_ARGUMENTS,
    ForecasterSettings,
)
from taylorformer.training_and_evaluation.forecasting.table_reading import (
    ID_COLUMN,
    Table,
    check_values,
    read_panel,
    without_left_out,
)
from taylorformer.training_and_evaluation.forecasting.training_seen import (
    Borders,
    fingerprint,
    x_range,
)
from taylorformer.training_and_evaluation.model_classes import MODELS
from taylorformer.training_and_evaluation.training.resumable_fit import (
    ScoreNames,
    TrainingProgress,
    resumable_fit,
)

# x is float32, whose rounding must not look like a longer window.
_X_TOLERANCE = 1e-4
# Enough windows to know the scale of a naive line to a few percent.
_MOST_NAIVE_WINDOWS = 4096


class Forecaster(BaseEstimator):
    """Probabilistic forecasts of a table: fit, forecast, back-test, save and load.

    `fit` trains the pretrained model further, a `PretrainedForecaster`, which suits short tables
    too; where an argument describes a model, such as a `preset`, it trains that one from nothing.

    Every model reads the same tables, parts and windows, and is scored alike. The rows of each
    series are split in the order of time. From nothing, scaling is measured on the training part
    only, and the weights kept are those with the best likelihood (of Autoformer and Informer, the
    best squared error) on the validation part. The test part is left to `backtest`.

    Example:
        >>> import numpy as np, pandas as pd
        >>> table = pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=300), "y": 0.0})
        >>> table["y"] = np.sin(np.arange(300) / 5)
        >>> forecaster = Forecaster(horizon=7, context_length=14, preset="compact", max_steps=2)
        >>> forecast = forecaster.fit(table).forecast(table, num_samples=10)
        >>> forecast.quantile(0.5).shape, str(forecast.stamps[0][0].date())
        ((1, 7, 1), '2020-10-27')

    Args:
        horizon: N_T, rows to forecast. None: of pretrained weights see `PretrainedForecaster`, of
            new ones 96.
        context_length: N_C, the rows, and of pretrained weights the most rows, that a forecast
            reads. None: likewise.
        start: the weights that training begins with: "prior", another name in `PRETRAINED`, or the
            `.keras` file of a model that `taylorformer experiment prior` trained. None: new ones;
            "auto": "prior", unless `model`, `preset`, `scaling` or `interpolate` are set.
        model: "taylorformer", "tnp", "anp", "np", "autoformer" or "informer". None: that of the
            preset; without a preset, the Taylorformer.
        preset: the arguments of the model and how it is trained: a name in `PRESETS`, or a
            `ForecastPreset`; of the same model, if that is named too. None: the small preset of
            the model ("compact" for the Taylorformer).
        scaling: "window" or "standard", see `WindowScaler`; None: that of the preset.
        max_steps: training steps; None: those of the preset, or of `usual_tuning`.
        batch_size: B in training; None: likewise.
        learning_rate: None: likewise.
        fractions: shares of the training, validation and test part.
        seed: of the first weights, the order of training windows and the dropout.
        run_eagerly: train without graphs, which is slow, to debug.
        lower: the least value that a target can have: a number, one for each target (None for
            none), or None. Samples, quantiles and means lie inside; the density has the Jacobian.
            A value no further from a bound than 1 % of the usual move of its series counts as the
            bound. Several targets of pretrained weights must have the same bounds.
        upper: the largest value, likewise.
        integers: whether targets are whole numbers, such as counts: True, or one for each target.
            Samples are whole then, and densities are probabilities.
        seasons: whose phases the model reads as time features, further dimensions of x: "auto":
            those that at least half of the series show three times or more in the training part,
            see `choose_seasons`; None: none; a number of steps, a length of time such as "7 days",
            or up to three. "model": "auto" for Autoformer and Informer, which read no other times,
            and for pretrained weights, where each series has those that it shows; none for the
            other models.
        interpolate: for Autoformer and Informer, which have fixed lengths and read an even grid:
            interpolate uneven times and missing rows linearly onto one. Otherwise these are an
            error that names the first such row.

    Attributes:
        model_: the trained model, such as a `Taylorformer`; it reads and predicts scaled numbers.
        scaler_: the `WindowScaler`; of a training from nothing, as pretrained weights have each
            context scaled by itself.
        pretrained_: the `PretrainedForecaster`, of a training that began with pretrained weights.
        columns_: the `Columns` of the table.
        history_: a table of the training, one row an epoch, in scaled units.
        report_: what training saw, for people and for JSON. `left_out` maps the names of series
            that were not trained on to the reason, `notes` those of odd ones that were to what is
            odd about them; `seasons` describes those of the time features, if there are any.
        settings_: the `ForecasterSettings` of the training: `set_params` does not change them.

    Raises:
        TypeError, ValueError: an argument outside its range, in `fit`.
    """

    def __init__(
        self,
        horizon: int | None = None,
        context_length: int | None = None,
        *,
        start: str | os.PathLike[str] | None = START_OF_ARGUMENTS,
        model: str | None = None,
        preset: str | ForecastPreset | None = None,
        scaling: str | None = None,
        max_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        fractions: Sequence[float] = DEFAULT_FRACTIONS,
        seed: int = 0,
        run_eagerly: bool = False,
        lower: float | Sequence[float | None] | None = None,
        upper: float | Sequence[float | None] | None = None,
        integers: bool | Sequence[bool] = False,
        seasons: Any = SEASONS_OF_MODEL,
        interpolate: bool = False,
    ) -> None:
        self.horizon = horizon
        self.context_length = context_length
        self.start = start
        self.model = model
        self.preset = preset
        self.scaling = scaling
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.fractions = fractions
        self.seed = seed
        self.run_eagerly = run_eagerly
        self.lower = lower
        self.upper = upper
        self.integers = integers
        self.seasons = seasons
        self.interpolate = interpolate

    @staticmethod
    def from_preset(preset: str = "prior", **settings: Any) -> "Forecaster | PretrainedForecaster":
        """Makes a forecaster by the name of its preset.

        Example:
            >>> forecaster = Forecaster.from_preset("prior", seasons=12)
            >>> type(forecaster).__name__, Forecaster.from_preset("ett").preset
            ('PretrainedForecaster', 'ett')

        Args:
            preset: "prior", whose weights come with the package: it forecasts without `fit`, and so
                does the `.keras` file of a model that `taylorformer experiment prior` trained. Or
                a name in `PRESETS`, for `fit`.
            **settings: arguments of `PretrainedForecaster`, or of this class.

        Raises:
            TypeError: an argument that the class does not have.
            ValueError: an unknown name.
        """
        if not is_model_file(preset):
            check_choice("preset", preset, (*PRETRAINED, *PRESETS))
        if is_model_file(preset) or preset in PRETRAINED:
            return PretrainedForecaster(preset, **settings)
        return Forecaster(preset=preset, **settings)

    # Training.

    def plan(self) -> tuple[WindowSpec, ForecastPreset]:
        """Checks the arguments; returns what a training from nothing would be.

        Returns:
            The window, and the preset with the arguments put in.

        Raises:
            TypeError, ValueError: an argument outside its range.
        """
        settings = ForecasterSettings.of(self.get_params(deep=False))
        return settings.spec, settings.preset

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
        unsorted: str = "error",
        duplicates: str = "error",
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> "Forecaster":
        """Trains on a table.

        Where there are several series, those without a training window or without a value to
        predict are left out, and named in one warning and in `report_["left_out"]`; the weights
        are those of the same table without them. A series that is constant, short or stopped
        early is trained on. A value that looks like a mark for missing ones, such as -999.99, is
        trained on too, and named in a warning.

        Args:
            data: a table, one row for each stamp (and series): a pandas DataFrame, or one of
                another library, see `as_frame`; or `Series`, which name their columns themselves.
            time_column: see `Columns.resolve`, which guesses what is not given: the long format
                `unique_id`, `ds`, `y` needs no argument. A list such as `["Date", "Time"]` joins
                columns.
            target_columns: one name or several.
            id_column: tells several series apart.
            covariate_columns: known ahead of time, for the rows to forecast too; they become
                further dimensions of x.
            date_format: see `Series.from_frame`, as the next one.
            day_first: see `Series.from_frame`.
            time_unit: for numbers that count time since 1970.
            time_zone: for dates with UTC offsets.
            freq: how stamps continue, for `forecast`; see `continue_stamps`. None: by a calendar
                that they keep.
            unsorted: "error", or "sort".
            duplicates: "error", or which of the rows of one stamp to keep: "first", "last", or
                their "mean".
            checkpoint: a file that is written after each epoch, so that training that was stopped
                or killed can resume. None: there is none.
            resume: continue from `checkpoint` if it is there: the weights are the same as without
                a stop.
            callbacks: of Keras, such as a progress bar.

        Returns:
            The forecaster itself.

        Raises:
            TypeError, ValueError: arguments outside their range, a table that cannot be read, or
                one that is too short. Nothing has been trained then.
            KeyboardInterrupt: the user stopped. After the first epoch the forecaster is fitted,
                with the best weights so far.
        """
        settings = ForecasterSettings.of(self.get_params(deep=False))
        data = as_frame(data)
        roles: dict[str, Any] = {
            "time_column": time_column,
            "target_columns": target_columns,
            "id_column": id_column,
            "covariate_columns": covariate_columns,
            "date_format": date_format,
            "day_first": day_first,
            "time_unit": time_unit,
            "time_zone": time_zone,
            "freq": freq,
        }
        if settings.start is not None:
            self._train_further(
                settings,
                data,
                **roles,
                unsorted=unsorted,
                duplicates=duplicates,
                checkpoint=checkpoint,
                resume=resume,
                callbacks=callbacks,
            )
            return self
        spec, preset = settings.spec, settings.preset
        resolve = functools.partial(Columns.resolve, **roles)
        panel, columns = read_panel(data, resolve, unsorted, duplicates)
        columns = dataclasses.replace(columns, freq=saved_frequency(freq))
        columns = columns.with_form_of(panel.series[0].stamps)
        if columns.freq is not None:
            read_frequency(columns.freq, panel.series[0].stamps)
        support = settings.support(panel.num_columns)
        check_values(support, data, panel, columns)
        all_splits = {
            one.name: Split.chronological(one.num_rows, settings.fractions) for one in panel.series
        }
        odd = odd_in_training(panel, all_splits, spec)
        warn_user(odd.describe("the training"), describe_marks(marks_of(panel.series)))
        whole, panel = panel, without_left_out(panel, odd)
        splits = [all_splits[name] for name in panel.names]
        starts = panel_window_starts(panel, splits, spec, "training")
        train_ends = [split.train_end for split in splits]
        seasons = common_seasons(panel, train_ends, settings.seasons)
        scaler = WindowScaler.fit(panel, spec, train_ends, preset.scaling, support, seasons.periods)
        windows = Windows(panel, scaler)
        left_out = [one for one in whole.series if one.name in odd.left_out]
        scaler = with_scales_of(windows.scaler, left_out, all_splits)
        validation = self._validation_starts(windows, splits, preset)
        validation_data = None
        if validation is not None:
            validation_data = windows.evaluation_dataset(validation, preset.batch_size)
        fixed = _fixed_windows(settings)
        if fixed is not None:
            fixed.check(
                panel, starts if validation is None else np.concatenate([starts, validation])
            )
        model = self._new_model(settings, panel.num_covariates + len(seasons.periods))
        progress = TrainingProgress()
        try:
            resumable_fit(
                model,
                lambda first: windows.training_dataset(
                    starts, preset.batch_size, settings.seed, first
                ),
                validation_data,
                preset.plan,
                checkpoint=checkpoint,
                resume=resume,
                fingerprint=fingerprint(settings, model.get_config(), windows, splits),
                callbacks=callbacks,
                progress=progress,
            )
        finally:
            if progress.epoch:
                self.__dict__.pop("pretrained_", None)
                self.model_ = model
                self.settings_ = settings
                self.scaler_ = scaler
                self.columns_ = columns
                self.history_ = pd.DataFrame(progress.history)
                scaled = set(scaler.names)
                self.borders_ = {
                    one.name: Borders.of(one, all_splits[one.name])
                    for one in whole.series
                    if one.name in scaled
                }
                self.x_range_ = x_range(windows, starts)
                self.report_: dict[str, Any] = {
                    "series": {one.name: one.missing_summary() for one in panel.series},
                    "left_out": odd.left_out,
                    "notes": odd.notes,
                    "num_training_windows": len(starts),
                    "num_validation_windows": 0 if validation is None else len(validation),
                    "num_weights": int(model.count_params()),
                    "training_steps": progress.steps,
                    "best_step": progress.best_step,
                }
                if seasons.periods:
                    self.report_["seasons"] = seasons.describe()
        if progress.lacks_finite(ScoreNames.of(model).validation_choice):
            warn_user(
                "no score of the validation part is finite: the weights that are kept were not "
                "chosen by it"
            )
        return self

    def _train_further(self, settings: ForecasterSettings, data: Table, **arguments: Any) -> None:
        """Trains pretrained weights further, see `PretrainedForecaster.fit`."""
        given = settings.arguments
        named = {
            name: given[name]
            for name in ("max_steps", "batch_size", "learning_rate")
            if given.get(name) is not None
        }
        pretrained = _new_pretrained(settings)
        try:
            pretrained.fit(
                data,
                fractions=settings.fractions,
                tuning=named,
                seed=settings.seed,
                run_eagerly=settings.run_eagerly,
                **arguments,
            )
        finally:
            if hasattr(pretrained, "report_"):
                self._take(pretrained, settings)

    def _take(self, pretrained: PretrainedForecaster, settings: ForecasterSettings) -> None:
        """Takes over what a training of pretrained weights made."""
        for name in ("scaler_", "x_range_"):
            self.__dict__.pop(name, None)
        self.pretrained_ = pretrained
        self.settings_ = settings
        for name in ("model_", "columns_", "history_", "borders_", "report_"):
            setattr(self, name, getattr(pretrained, name))

    @staticmethod
    def _validation_starts(
        windows: Windows, splits: Sequence[Split], preset: ForecastPreset
    ) -> np.ndarray | None:
        if not any(len(split.rows("validation")) for split in splits):
            return None
        starts = panel_window_starts(windows.panel, splits, windows.spec, "validation")
        observed = np.concatenate([[0], np.cumsum(windows.panel.observed)])
        first_targets = starts + windows.spec.context_length
        starts = starts[observed[starts + windows.spec.length] > observed[first_targets]]
        if not len(starts):
            warn_user(
                "no target of the validation part has a value: the last weights are kept, and "
                "training does not stop early"
            )
            return None
        return evenly_spaced(starts, preset.max_validation_windows)

    @staticmethod
    def _new_model(settings: ForecasterSettings, num_features: int) -> ProbabilisticModel:
        preset = settings.preset
        model_class = MODELS[preset.kind.class_name]
        arguments = {**preset.model_arguments, "seed": settings.seed}
        if model_class is Taylorformer:
            # Time alone says which points are neighbours: features do not bring stamps together.
            arguments["neighbour_dims"] = 1 if num_features else None
        if preset.kind.reads_even_grid:
            arguments["interpolate"] = settings.interpolate
        model: ProbabilisticModel = model_class(**arguments)
        model.compile(preset.plan.make_optimizer(), run_eagerly=settings.run_eagerly)
        return model

    # Forecasts and scores.

    def forecast(
        self,
        data: Table,
        future: pd.DataFrame | ForeignTable | None = None,
        *,
        horizon: int | None = None,
        num_samples: int = 100,
        seed: int = 0,
        batch_size: int = 32,
        freq: Frequency | None = None,
        unsorted: str = "error",
        duplicates: str = "error",
        progress: Callable[[int, int], None] | None = None,
    ) -> Forecast:
        """Forecasts what comes after the last row of every series.

        With `start` it is `PretrainedForecaster.forecast`: nothing of a series is measured in
        training, so that new ones are forecast as all others.

        Where there are several series, one that cannot be forecast does not stop the others: it is
        left out, and named in one warning and in `Forecast.left_out`. These are series without a
        value of every target, and those whose scale or whose next stamps cannot be known: a series
        that was not there in training and has fewer than two values, or one of a single row
        without a `future`, unless another series has its stamp. `Forecast.notes` says which of the
        others are odd: new, constant, or stopped (its forecast begins after its last row, however
        long ago that is).

        Args:
            data: the past, a table with the columns of training. The last `context_length` rows of
                each series are read, or as many as there are.
            future: the rows to forecast: a table of the time column, the covariates if there are
                any, and the ids if there are several series. Its target columns are not read. None:
                the stamps of `continue_stamps`; one warning names those that are a guess.
            horizon: how many rows; another number than in training is allowed, but not for
                Autoformer and Informer. None: all rows of `future`, or those of training.
            num_samples: S.
            seed: of the samples.
            batch_size: series to draw at once; it does not change the samples.
            freq: how stamps continue without `future`, see `continue_stamps`. None: that of `fit`.
            unsorted: see `fit`; it holds for `future` too.
            duplicates: see `fit`.
            progress: called with the number of series that are done, and of all.

        Returns:
            The forecast, in the units of the table. It does not depend on which other series are
            in the table (but for the stamps after a single row), nor on anything that follows the
            last row.

        Raises:
            NotFittedError: before `fit`.
            TypeError, ValueError: a table that cannot be read, or `future` is missing where the
                covariates need it, or stamps of it that do not follow; or no series that can be
                forecast. For Autoformer and Informer also another horizon, and stamps of `future`
                that are off the grid; a series with too few rows, or with uneven or missing ones,
                counts as one that cannot be forecast.
        """
        self._check_fitted()
        if hasattr(self, "pretrained_"):
            return self.pretrained_.forecast(
                data,
                future,
                horizon=horizon,
                num_samples=num_samples,
                seed=seed,
                batch_size=batch_size,
                freq=freq,
                unsorted=unsorted,
                duplicates=duplicates,
                progress=progress,
            )
        num_samples = check_integer("num_samples", num_samples, 1)
        seed = check_integer("seed", seed, SMALLEST_SEED, LARGEST_SEED)
        batch_size = check_integer("batch_size", batch_size, 1)
        horizon = check_optional_integer("horizon", horizon, 1)
        future_frame = None if future is None else as_frame(future, "future")
        if future is not None:
            check_frame(future_frame, "future")
        whole, ids = self._panel(data, unsorted, duplicates)
        columns_of_output = self._columns_of_output(whole)
        freq = self.columns_.freq if freq is None else freq
        if freq is not None:
            # A frequency that is none is no fault of a series.
            read_frequency(freq, whole.series[0].stamps)
        spec = self.scaler_.spec
        num_rows = spec.horizon if horizon is None and future is None else horizon
        odd = odd_in_forecast(whole, self.scaler_, self._new_names(whole))
        fixed = _fixed_windows(self.settings_)
        if fixed is not None:
            fixed.check_horizon(horizon)
            fixed.leave_out_short(odd, whole)
        longer_series, guesses = extend_each(
            whole,
            odd,
            spec,
            num_rows,
            future_frame,
            self.columns_,
            columns_of_output,
            freq,
            unsorted,
        )
        if fixed is not None:
            fixed.leave_out_uneven(odd, whole, longer_series, future is not None)
        panel = without_left_out(whole, odd)
        extended = [longer_series[name] for name in panel.names]
        scaler = self._scaler_for(panel)
        lengths = [
            (min(spec.context_length, one.num_rows), longer.num_rows - one.num_rows)
            for one, longer in zip(panel.series, extended, strict=True)
        ]
        # Odd series are drawn apart from the others: the last bits of what is drawn depend on the
        # batch, and those of the others are to be the same without them.
        groups = [
            (one.name in odd.notes, length)
            for one, length in zip(panel.series, lengths, strict=True)
        ]
        num_targets = max(length for _, length in lengths)
        samples = np.full((num_samples, panel.num_series, num_targets, panel.num_columns), np.nan)
        outside: list[str] = []
        done = 0
        for group in dict.fromkeys(groups):
            length = group[1]
            alike = [index for index, other in enumerate(groups) if other == group]
            for first in range(0, len(alike), batch_size):
                some = alike[first : first + batch_size]
                windows = Windows([extended[index] for index in some], scaler, WindowSpec(*length))
                starts = windows.panel.offsets[1:] - windows.spec.length
                inputs = windows.forecast_inputs(starts)
                outside += self._outside(windows, inputs, starts)
                drawn = self.model_.sample(
                    inputs, num_samples, seed, sequence_keys=windows.sequence_keys(starts)
                )
                samples[:, some, : length[1]] = windows.inverse(drawn, starts)
                done += len(some)
                if progress is not None:
                    progress(done, panel.num_series)
        warn_user(odd.describe("the forecast"), guesses, self._beyond_training(outside))
        return Forecast(
            samples=samples,
            stamps=tuple(
                longer.stamps[one.num_rows :]
                for one, longer in zip(panel.series, extended, strict=True)
            ),
            names=panel.names,
            time_column=self.columns_.time_column,
            target_columns=self.columns_.target_columns,
            id_column=columns_of_output.id_column,
            ids=tuple(ids[name] for name in panel.names),
            context_stamps=tuple(one.stamps[-spec.context_length :] for one in panel.series),
            context_values=tuple(one.values[-spec.context_length :] for one in panel.series),
            left_out=odd.left_out,
            notes=odd.notes,
        )

    def _columns_of_output(self, panel: Panel) -> Columns:
        """Returns the columns, with one of ids where several series have no such column."""
        if panel.num_series == 1 or self.columns_.id_column is not None:
            return self.columns_
        return dataclasses.replace(self.columns_, id_column=ID_COLUMN)

    def _scaler_for(self, panel: Panel) -> WindowScaler:
        return self.scaler_.with_series(panel) if self._new_names(panel) else self.scaler_

    def _new_names(self, panel: Panel) -> list[str]:
        """Names the series that were not there in training; without ids all count as one."""
        if self.columns_.id_column is None and panel.num_series == len(self.scaler_.names) == 1:
            return []
        trained = set(self.scaler_.names)
        return [name for name in panel.names if name not in trained]

    def _outside(
        self, windows: Windows, inputs: Mapping[str, np.ndarray], starts: np.ndarray
    ) -> list[str]:
        """Says of each series whose x leaves the range of training from where to where it goes."""
        inputs = tiled_arrays(inputs)
        x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)[..., 0]
        low, high = self.x_range_
        ranges = []
        for row, name in zip(x, windows.panel.names, strict=True):
            least, most = float(row.min()), float(row.max())
            if least < low - _X_TOLERANCE or most > high + _X_TOLERANCE:
                of = f" in series {name!r}" if name else ""
                ranges.append(f"{least:.3g} to {most:.3g}{of}")
        return ranges

    def _beyond_training(self, outside: list[str]) -> str:
        if not outside:
            return ""
        low, high = self.x_range_
        return (
            "the context and the targets reach over more time than any window of training: x, "
            f"which is -1 to 1 for a usual window and was {low:.3g} to {high:.3g} in training, "
            f"is {listed(outside)}. Forecasts there are extrapolations of the model"
        )

    def backtest(
        self,
        data: Table,
        *,
        part: str = "test",
        step: int | None = None,
        num_windows: int | None = None,
        horizon: int | None = None,
        num_samples: int = 100,
        seed: int = 0,
        batch_size: int = 32,
        season: Any = None,
        units: str = "user",
        context_inside: bool = False,
        unsorted: str = "error",
        duplicates: str = "error",
        progress: Callable[[int, int], None] | None = None,
    ) -> Backtest:
        """Scores forecasts from many origins in a part of a table, with naive lines beside them.

        The parts are those of training, by time: the test part is whatever follows the validation
        part, in a longer table too.

        Where there are several series, those without a window to score, and those that were not
        there in training, are left out, and named in one warning and in `Backtest.left_out`.
        With `start` it is `PretrainedForecaster.backtest`: of new series the last fifth is scored,
        and the seasonal line is there wherever the rows show a season.

        Args:
            data: the table of training, or a longer one.
            part: "test", "validation" or "training".
            step: rows from one window to the next, counted back from the last one. None: the
                horizon, so that no target is scored twice.
            num_windows: at most this many for each series, the last ones. None: all.
            horizon: N_T, None: that of training, which Autoformer and Informer always have.
            num_samples: S. 0: only the teacher-forced scores.
            seed: of the samples.
            batch_size: windows to draw at once; it does not change the scores.
            season: adds the line that repeats the last season; see `naive.seasonal`. (It is not
                among the arguments of the model.)
            units: "user", or "scaled" for the standardised numbers of papers.
            context_inside: windows have their context in the part too, as in the paper's test sets.
            unsorted: see `fit`.
            duplicates: see `fit`.
            progress: called with the number of windows that are done, and of all.

        Returns:
            The scores, see `Backtest`.

        Raises:
            NotFittedError: before `fit`.
            ValueError: a table that cannot be read, a part that is too short, no series that was
                there in training, or nothing to score; for Autoformer and Informer another
                horizon, and windows with uneven or missing rows; with `start` `context_inside`.
        """
        self._check_fitted()
        if hasattr(self, "pretrained_"):
            if context_inside:
                raise ValueError(
                    "`context_inside` must be False: pretrained weights read as many rows as a "
                    "forecast would. Received: context_inside=True"
                )
            return self.pretrained_.backtest(
                data,
                part=part,
                step=step,
                num_windows=num_windows,
                horizon=horizon,
                num_samples=num_samples,
                seed=seed,
                batch_size=batch_size,
                season=season,
                units=units,
                unsorted=unsorted,
                duplicates=duplicates,
                progress=progress,
            )
        check_choice("part", part, PARTS)
        horizon = check_optional_integer("horizon", horizon, 1) or self.scaler_.spec.horizon
        fixed = _fixed_windows(self.settings_)
        if fixed is not None:
            fixed.check_horizon(horizon)
        step = check_optional_integer("step", step, 1) or horizon
        num_windows = check_optional_integer("num_windows", num_windows, 1)
        whole = self._panel(data, unsorted, duplicates)[0]
        new = self._new_names(whole)
        if len(new) == whole.num_series:
            raise ValueError(
                "`data` must hold series that were there in training. "
                f"Received: {listed(new)}; in training there were {listed(self.scaler_.names)}"
            )
        odd = odd_in_backtest(whole, self.scaler_, new)
        spec = WindowSpec(self.scaler_.spec.context_length, horizon)
        all_splits = {one.name: self._split(one) for one in odd.kept(whole)}
        chosen = backtest_starts(
            whole, all_splits, spec, part, context_inside, step, num_windows, odd
        )
        panel = without_left_out(whole, odd)
        windows = Windows(panel, self.scaler_, spec)
        splits = [all_splits[name] for name in panel.names]
        starts = np.concatenate(
            [chosen[name] + first for name, first in zip(panel.names, panel.offsets, strict=False)]
        )
        if fixed is not None:
            fixed.check(panel, starts)
        warn_user(odd.describe("the back-test"))
        result = backtest(
            self.model_,
            windows,
            starts,
            fit_starts=self._starts_for_naive(windows, splits, part),
            num_samples=num_samples,
            seed=seed,
            batch_size=batch_size,
            season=season,
            units=units,
            name=self.settings_.preset.model,
            progress=progress,
        )
        return dataclasses.replace(result, left_out=odd.left_out, notes=odd.notes)

    @staticmethod
    def _starts_for_naive(
        windows: Windows, splits: Sequence[Split], scored_part: str
    ) -> np.ndarray | None:
        """Returns windows, not to be scored, to measure the scale of naive lines on."""
        for part in ("training", "validation"):
            if part == scored_part:
                continue
            try:
                starts = panel_window_starts(windows.panel, splits, windows.spec, part)
            except ValueError:
                continue
            starts = evenly_spaced(starts, _MOST_NAIVE_WINDOWS)
            if windows.scored(starts).any():
                return starts
        return None

    def _split(self, series: Series) -> Split:
        borders = self.borders_.get(series.name)
        if borders is None:
            (borders,) = self.borders_.values()
        return borders.split(series, self.scaler_.time_unit)

    def _panel(
        self, data: Table, unsorted: str, duplicates: str
    ) -> tuple[Panel, Mapping[str, Any]]:
        """Reads a table with the columns of training; returns also the ids as they stand there."""
        data = as_frame(data)
        panel, columns = read_panel(data, lambda _: self.columns_, unsorted, duplicates)
        for what in ("target_columns", "covariate_columns"):
            need, there = getattr(self.columns_, what), getattr(columns, what)
            if need != there:
                raise ValueError(
                    f"`data` must have the `{what}` of training, {need!r}. Received: {there!r}"
                )
        if self.scaler_.support is not None:
            check_values(self.scaler_.support, data, panel, columns)
        if isinstance(data, pd.DataFrame):
            return panel, ids_of(data, columns)
        return panel, {name: name for name in panel.names}

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError("this Forecaster must be fitted, or loaded, before it is used")

    # Files.

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Writes `forecaster.json` (settings, columns, scaler, history) and `model.keras`.

        Whenever the process ends, the folder holds the forecaster of before or the new one. The
        settings are those of the training; a warning names what `set_params` has changed since.

        Args:
            folder: made if it is not there. Other files in it stay.
            overwrite: replace a forecaster that is there.

        Raises:
            NotFittedError: before `fit`.
            FileExistsError: there is one, and `overwrite` is not set.
        """
        self._check_fitted()
        folder = Path(folder)
        if find_file(folder, FILE).exists() and not overwrite:
            raise FileExistsError(
                f"`folder` must not hold a forecaster yet, unless overwrite=True. "
                f"Received: {folder}"
            )
        changed = self.settings_.changes(self.get_params(deep=False))
        if changed:
            warn_user(
                f"{listed(changed)} changed after the training: what is saved are its settings"
            )
        if hasattr(self, "pretrained_"):
            self.pretrained_.save(folder, overwrite, self.settings_.arguments)
            return
        saved = SavedForecaster(
            self.settings_.saved,
            self.columns_,
            self.scaler_,
            self.borders_,
            self.x_range_,
            self.report_,
            history_rows(self.history_),
        )
        with replaced_together(folder) as unfinished:
            self.model_.save(unfinished / MODEL_FILE)
            saved.write(unfinished)

    def export(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes a SavedModel that reads the numbers of a table and forecasts in their units.

        TensorFlow alone serves it. With `start` it is that of `PretrainedForecaster.export`, whose
        inputs differ. Of Autoformer and Informer N_C and N_T are those of training.
        Endpoints:

        - `serving_default`: `time_context` `[B, N_C]` and `time_target` `[B, N_T]` (float64: for
          dates seconds, since any instant that is the same for one sequence, but since 1970 (UTC)
          where the model reads seasons; else the numbers of the table), `y_context`
          `[B, N_C, D_y]` (float64, NaN = missing), `num_samples` and `seed` (int32 scalars),
          `quantile_levels` `[Q]`; where there are covariates also `covariates_context` and
          `covariates_target` `[B, N, D_c]`, and where there are several series `series` `[B]`
          (int32, their indices in `scaler_.names`). It returns `mean`, `stddev` `[B, N_T, D_y]`
          and `quantiles` `[B, N_T, D_y, Q]`, float64;
        - `sample`: reads the same without `quantile_levels`, returns `samples` `[S, B, N_T, D_y]`;
        - `log_prob`: reads times, `y_context`, and `y_target` `[B, N_T, D_y]` (NaN = not scored),
          with covariates and `series` as above; returns `log_prob` `[B]`, the density in the units
          of the table, or the probability of whole numbers.

        Where there are bounds or whole numbers, other values in a request are an error.

        Every sequence is drawn with key 0, so that an answer does not depend on what else is in the
        request; `forecast` has keys by series and origin, so its samples are other ones, from the
        same distribution.

        Args:
            folder: for the SavedModel, made if it is not there.
            overwrite: replace a SavedModel that is there.

        Raises:
            NotFittedError: before `fit`.
            FileExistsError: `folder` holds a SavedModel and `overwrite` is not set, or it holds
                something else.
        """
        from taylorformer.training_and_evaluation.forecasting.serving import export_forecaster

        self._check_fitted()
        if hasattr(self, "pretrained_"):
            self.pretrained_.export(folder, overwrite=overwrite)
            return
        check_export_folder(folder, overwrite, "folder")
        export_forecaster(self.model_, self.scaler_, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Forecaster | PretrainedForecaster":
        """Reads a forecaster that `save` wrote, whether it was trained or pretrained.

        Raises:
            FileNotFoundError: there is no forecaster in `folder`.
            ValueError: the file cannot be read, or is of a format that this version does not know.
        """
        folder = Path(folder)
        saved = read_saved(folder)
        model = keras.saving.load_model(find_file(folder, MODEL_FILE))
        if isinstance(saved, SavedPretrained):
            pretrained = PretrainedForecaster.from_saved(saved, model)
            if saved.forecaster is None:
                return pretrained
            forecaster = cls(**saved.forecaster)
            forecaster._take(pretrained, ForecasterSettings.of(saved.forecaster))
            return forecaster
        forecaster = cls(**saved.settings)
        forecaster.settings_ = ForecasterSettings.of(saved.settings)
        forecaster.model_ = model
        forecaster.scaler_ = saved.scaler
        forecaster.columns_ = saved.columns
        forecaster.history_ = pd.DataFrame(saved.history)
        forecaster.borders_ = {name: Borders(*times) for name, times in saved.borders.items()}
        forecaster.x_range_ = saved.x_range
        forecaster.report_ = dict(saved.report)
        return forecaster


def _new_pretrained(settings: ForecasterSettings) -> PretrainedForecaster:
    """Makes the forecaster whose weights are trained further."""
    given = settings.arguments
    names = ("horizon", "context_length", "lower", "upper", "integers")
    return PretrainedForecaster(
        str(settings.start), seasons=settings.seasons, **{name: given[name] for name in names}
    )


def _fixed_windows(settings: ForecasterSettings) -> FixedWindows | None:
    """Returns what the model can read, where that is not any window."""
    kind = settings.preset.kind
    if not kind.reads_even_grid:
        return None
    return FixedWindows(kind.class_name, settings.spec, settings.interpolate)
