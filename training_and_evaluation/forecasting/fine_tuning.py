"""Training pretrained weights on a table: windows of every length, synthetic series among them.

What is kept are the weights whose forecasts of the validation part are best. Those before the first
step are among them, so by that measure `fit` never loses to what it starts from. A short validation
part says little, so the weights are then drawn back towards the start: as far as its forecasts
cannot tell them from the best ones.
"""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from scipy import stats

from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.data_wrangler.seeds import numbered_generator
from taylorformer.data_wrangler.tables.context_batches import ContextBatches, with_shared_points
from taylorformer.data_wrangler.tables.context_scaler import NUM_X
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.scaled_support import NUM_PARTS
from taylorformer.data_wrangler.tasks.drawn_batches import (
    batch_numbers,
    masked_specs,
    numbered_batches,
)
from taylorformer.data_wrangler.tasks.series_prior import SeriesPrior
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.sampling.base import support_spec
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.forecasting.training_parts import ValidationWindows
from taylorformer.training_and_evaluation.metrics import free_running_point_scores
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.resumable_fit import (
    TrainingProgress,
    WeightChoice,
    resumable_fit,
)

if TYPE_CHECKING:
    import tensorflow as tf

SCORE = "validation_free_running_crps"
"""The name, in the history, of the score that chooses the weights by forecasts."""

_NLL = "validation_teacher_forced_nll"
_CHOICES = {"crps": SCORE, "nll": _NLL}
# The share of a normal distribution below one standard deviation.
_ONE_DEVIATION = float(stats.norm.cdf(1.0))
# A stream of random numbers that no part of the table's batches reads.
_SYNTHETIC = 2
# The samples of the validation part are the same at every look at it.
_SCORE_SEED = 0


@dataclasses.dataclass(frozen=True)
class FineTuning:
    """How pretrained weights are trained on a table.

    Example:
        >>> tuning = FineTuning(max_steps=100, steps_per_epoch=20)
        >>> tuning.plan.num_epochs, [tuning.is_synthetic(number) for number in range(4)]
        (5, [False, True, False, True])

    Attributes:
        max_steps: training steps, unless training stops early.
        steps_per_epoch: training steps from one look at the validation part to the next.
        batch_size: B of batches of the table.
        learning_rate: the peak, from which it falls to 0 as a cosine.
        warm_up: first steps, in which the learning rate rises.
        synthetic: the share of the steps on synthetic series, against forgetting.
        patience: training stops after so many epochs without a better score. None: never.
        choose: "crps" keeps the weights with the best samples of the whole horizon, "nll" those
            with the best likelihood, given the true values before each target.
        validation_windows: at most so many are forecast, of each series about as many.
        validation_samples: S of each.
        shares: how far from the weights of the start to the best ones those may lie that are kept,
            beside the start itself, see `drawn_back`. Empty: the best ones are kept.
        balance: of several series, see `ContextBatches`.
        optimizer: "adam", or "muon", see `TrainingPlan`, as the next one.
        average: the decay per step of a running average of the weights. None: no average.

    Raises:
        TypeError, ValueError: a value outside its range.
    """

    max_steps: int = 300
    steps_per_epoch: int = 25
    batch_size: int = 32
    learning_rate: float = 2e-4
    warm_up: int = 25
    synthetic: float = 0.5
    patience: int | None = 6
    choose: str = "crps"
    validation_windows: int = 32
    validation_samples: int = 32
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)
    balance: float = 0.5
    optimizer: str = "adam"
    average: float | None = None

    def __post_init__(self) -> None:
        check_number("synthetic", self.synthetic, minimum=0, below=1)
        check_choice("choose", self.choose, tuple(_CHOICES))
        check_integer("validation_windows", self.validation_windows, 1)
        check_integer("validation_samples", self.validation_samples, 2)
        for share in self.shares:
            check_number("shares", share, above=0, below=1)
        check_number("balance", self.balance, minimum=0)
        _ = self.plan  # which checks the rest

    @property
    def plan(self) -> TrainingPlan:
        """How long the model is trained, and with what optimizer."""
        return TrainingPlan(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule="cosine",
            max_steps=self.max_steps,
            steps_per_epoch=self.steps_per_epoch,
            patience=self.patience,
            warm_up_steps=min(self.warm_up, self.max_steps - 1),
            beta_2=0.98,
            clip_norm=1.0,
            average=self.average,
            optimizer=self.optimizer,
        )

    @property
    def score(self) -> str:
        """The name, in the history, of the score that chooses the weights."""
        return _CHOICES[self.choose]

    def is_synthetic(self, number: int) -> bool:
        """Tells whether the batch of this number is one of synthetic series."""
        return int((number + 1) * self.synthetic) > int(number * self.synthetic)


_SHORT = FineTuning()
_LONG = FineTuning(
    max_steps=1500,
    steps_per_epoch=75,
    warm_up=75,
    synthetic=0.25,
    validation_windows=256,
    validation_samples=16,
)
# From so many windows on training is longer: one series of about as many rows, or a panel.
_MANY_WINDOWS = 2000
# Epochs of a long training.
_EPOCHS = 20


def usual_tuning(num_windows: int, changes: Mapping[str, Any] | None = None) -> FineTuning:
    """Returns how pretrained weights are trained on so many windows.

    A few are soon learnt by heart: 300 steps, half of them on synthetic series. From 2,000 windows
    on, of one long series or of many short ones, there are up to 1,500 steps, fewer of them on
    synthetic series, and more windows say which weights to keep. A shorter training has shorter
    epochs and a shorter warm-up, down to the 25 steps of a short table.

    Example:
        >>> usual_tuning(150).max_steps, usual_tuning(20_000, {"batch_size": 8}).max_steps
        (300, 1500)

    Args:
        num_windows: of the training part.
        changes: values of attributes of `FineTuning` to put in. None: none.

    Raises:
        TypeError, ValueError: no mapping, an unknown name, or a value outside its range.
    """
    usual = _SHORT if num_windows < _MANY_WINDOWS else _LONG
    if changes is None:
        return usual
    names = [field.name for field in dataclasses.fields(FineTuning)]
    if not isinstance(changes, Mapping):
        raise TypeError(
            "`tuning` must be a FineTuning, a mapping of some of its attributes, or None. "
            f"Received: {changes!r}"
        )
    for name in changes:
        check_choice("tuning", name, names)
    tuning = dataclasses.replace(usual, **changes)
    epoch = max(tuning.max_steps // _EPOCHS, _SHORT.steps_per_epoch)
    shorter = {
        name: min(getattr(usual, name), epoch)
        for name in ("steps_per_epoch", "warm_up")
        if name not in changes
    }
    return dataclasses.replace(tuning, **shorter)


def fine_tune(
    model: Taylorformer,
    sampled: ProbabilisticModel,
    batches: ContextBatches,
    validation: ValidationWindows,
    tuning: FineTuning,
    *,
    run_eagerly: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    progress: TrainingProgress | None = None,
) -> tuple[TrainingProgress, "KeptWeights"]:
    """Trains a pretrained model on a table, and leaves the best weights in it.

    Args:
        model: pretrained; it is changed.
        sampled: what forecasts: the model itself, or what is made of it.
        batches: of the training part.
        validation: the windows that say which weights are kept. None of them: those of the last
            step.
        tuning: how it is trained.
        run_eagerly: train without graphs.
        checkpoint: see `resumable_fit`, as the next ones.
        resume: continue from `checkpoint`.
        callbacks: more of Keras' callbacks.
        progress: updated after each epoch.

    Returns:
        How far training came, where `start` has the scores before it; and which weights are kept.

    Raises:
        ValueError: a checkpoint of another training.
        KeyboardInterrupt: the user stopped; the model then has the best weights so far.
    """
    plan = tuning.plan
    model.compile(plan.make_optimizer(), run_eagerly=run_eagerly)
    data, choice, score = None, None, None
    if len(validation):
        data = _validation_data(validation, tuning.batch_size)
        score = FreeRunningScore(sampled, validation, tuning.validation_samples)
        choice = WeightChoice(tuning.score, score if tuning.choose == "crps" else None)
    before = model.get_weights()
    progress = resumable_fit(
        model,
        lambda first: _training_data(batches, tuning, first),
        data,
        plan,
        checkpoint=checkpoint,
        resume=resume,
        fingerprint=_fingerprint(
            model, batches, validation, tuning, is_mirrored=sampled is not model
        ),
        callbacks=callbacks,
        progress=progress,
        choice=choice,
    )
    kept = KeptWeights(1.0 if progress.best_epoch else 0.0)
    if score is not None and tuning.shares and progress.best_epoch:
        kept = drawn_back(model, before, score, tuning.shares)
    return progress, kept


@dataclasses.dataclass(frozen=True)
class KeptWeights:
    """Where the weights lie that are kept.

    Attributes:
        share: of the way from the start to the best weights.
        crps: their score, where it was taken.
    """

    share: float
    crps: float | None = None


def drawn_back(
    model: Taylorformer,
    before: Sequence[np.ndarray],
    score: "FreeRunningScore",
    shares: Sequence[float],
) -> KeptWeights:
    """Moves the weights of a model back towards those before training, as far as may be.

    The weights on the line between both are scored on the same windows with the same random
    numbers. Of those that are not worse than the best of them by more than one standard error of
    the paired difference, the ones nearest to the start are taken. The standard error counts as
    many windows as do not overlap, and is as much wider for few of them as Student's distribution
    says; of one window nothing is known, and the start is kept.

    Args:
        model: trained; it is changed.
        before: its weights before training.
        score: of the validation part.
        shares: of the way from the start, between 0 and 1; both ends are scored, too.

    Returns:
        What was taken.
    """
    after = model.get_weights()
    scores = {}
    try:
        for share in (0.0, *sorted(shares), 1.0):
            model.set_weights(_between(before, after, share))
            scores[share] = score.by_window()
    except BaseException:
        # A user who stops here has the best weights, as at any other time.
        model.set_weights(after)
        raise
    best = min(scores, key=lambda share: float(np.nan_to_num(np.mean(scores[share]), nan=np.inf)))
    count = score.num_disjoint
    width = stats.t.ppf(_ONE_DEVIATION, count - 1) / np.sqrt(count) if count > 1 else np.inf
    for share, values in scores.items():
        worse = values - scores[best]
        if share == best or count == 1 or np.mean(worse) <= width * np.std(worse, ddof=1):
            break
    model.set_weights(_between(before, after, share))
    return KeptWeights(share, float(np.mean(scores[share])))


def _between(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray], share: float
) -> list[np.ndarray]:
    if share in (0.0, 1.0):
        return list(after if share else before)
    return [one + np.float32(share) * (two - one) for one, two in zip(before, after, strict=True)]


@dataclasses.dataclass(frozen=True, eq=False)
class FreeRunningScore:
    """The CRPS of samples of whole horizons, in spreads of the context of each window.

    Attributes:
        model: what forecasts.
        validation: the windows.
        num_samples: S.
    """

    model: ProbabilisticModel
    validation: ValidationWindows
    num_samples: int

    def __call__(self) -> float:
        """Returns the mean over windows, each counting the same; NaN for samples without end."""
        return float(np.mean(self.by_window()))

    def by_window(self) -> np.ndarray:
        """Returns the score of each window; NaN for all, where any sample is not finite."""
        inputs, keys, y_target, scored = self._held_out
        samples = self.model.sample(inputs, self.num_samples, _SCORE_SEED, keys).numpy()
        if not np.isfinite(samples).all():
            return np.full(len(self.validation), np.nan)
        scores = free_running_point_scores(samples, y_target, scored)
        return np.asarray(np.nanmean(scores["free_running_crps"], axis=1))

    @functools.cached_property
    def _held_out(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """The inputs, the keys of the random numbers, y, and which targets are scored."""
        windows, starts = self.validation.windows, self.validation.starts
        return (
            windows.forecast_inputs(starts),
            windows.sequence_keys(starts),
            self.validation.arrays["y_target"],
            self.validation.scored,
        )

    @property
    def num_disjoint(self) -> int:
        """How many windows there are whose targets do not overlap."""
        windows = self.validation.windows
        horizon = windows.spec.horizon
        first = np.sort(self.validation.starts) + windows.spec.context_length
        numbers = windows.panel.series_of(first)
        count = 0
        for number in np.unique(numbers):
            mine = first[numbers == number]
            count += min(1 + int(mine[-1] - mine[0]) // horizon, len(mine))
        return count


def _training_data(
    batches: ContextBatches, tuning: FineTuning, first_batch: int
) -> "tf.data.Dataset":
    prior = SeriesPrior()
    num_covariates = batches.covariates.num_covariates

    def draw(number: int) -> Mapping[str, np.ndarray]:
        if not tuning.is_synthetic(number):
            return batches.draw(number)
        rng = numbered_generator(batches.seed, _SYNTHETIC, number)
        batch = _with_mean_covariates(prior.draw(rng, tuning.batch_size), num_covariates)
        if batches.support is not None:
            batch["y_support"] = _no_support(len(batch["y_context"]))
        return batch

    return numbered_batches(batch_numbers(first_batch, None), draw, _specs(batches))


def _with_mean_covariates(
    batch: Mapping[str, np.ndarray], num_covariates: int
) -> dict[str, np.ndarray]:
    """Gives all points of synthetic series the mean of each covariate, which is 0."""
    wider = dict(batch)
    for name in ("x_context", "x_target"):
        x = batch[name]
        more = np.zeros((*x.shape[:-1], num_covariates), x.dtype)
        wider[name] = np.concatenate([x, more], axis=-1)
    return wider


def _no_support(count: int) -> np.ndarray:
    """Returns the `y_support` of sequences whose values can be any real number."""
    parts = np.array([0.0, 1.0, 1.0, -np.inf, np.inf, 0.0])
    return np.broadcast_to(parts, (count, 1, NUM_PARTS)).copy()


def _validation_data(validation: ValidationWindows, batch_size: int) -> "tf.data.Dataset":
    arrays = validation.teacher_forced()
    count = -(-len(arrays["y_target"]) // batch_size)

    def batch(number: int) -> Mapping[str, np.ndarray]:
        some = slice(number * batch_size, (number + 1) * batch_size)
        return with_shared_points({name: array[some] for name, array in arrays.items()})

    specs = _specs(validation.windows)
    return numbered_batches(batch_numbers(0, count), batch, specs).cache()


def _specs(windows: ContextWindows | ContextBatches) -> "dict[str, tf.TensorSpec]":
    """Returns what the arrays of batches are."""
    specs = masked_specs(NUM_X + windows.covariates.num_covariates, 1)
    if windows.support is not None:
        specs["y_support"] = support_spec(1)
    return specs


def _fingerprint(
    model: Taylorformer,
    batches: ContextBatches,
    validation: ValidationWindows,
    tuning: FineTuning,
    is_mirrored: bool,
) -> str:
    """Digests everything that the weights after each step depend on, and which are kept."""
    about = {
        "tuning": dataclasses.asdict(tuning),
        "seed": batches.seed,
        "horizon": batches.horizon,
        "longest_context": batches.longest_context,
        "support": None if batches.support is None else batches.support.get_config(),
        "context_length": validation.windows.spec.context_length,
    }
    if is_mirrored:
        about["mirrored"] = True
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for panel in (batches.panel, validation.windows.panel):
        for array in (panel.time, panel.values, panel.offsets, panel.covariates):
            digest.update(np.ascontiguousarray(array).tobytes())
    for number in range(batches.panel.num_series):
        digest.update(batches.periods(number, 0).tobytes())
    digest.update(validation.starts.tobytes())
    for weight in model.get_weights():
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()


def about_training(progress: TrainingProgress, kept: KeptWeights) -> dict[str, Any]:
    """Returns what a report says of a training, ready for JSON."""
    return {
        "share": kept.share,
        "kept": {} if kept.crps is None else {SCORE: kept.crps},
        "training_steps": progress.steps,
        "best_step": progress.best_step,
        "start": dict(progress.start),
        "best": dict(progress.history[progress.best_epoch - 1])
        if progress.best_epoch
        else dict(progress.start),
    }
