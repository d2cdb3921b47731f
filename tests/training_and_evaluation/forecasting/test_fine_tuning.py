"""Pretrained weights that are trained on a table: never worse by the score, stopped and resumed."""

import numpy as np
import pandas as pd
import pytest
from forecasting import StopAfterFirstEpoch, tiny_prior

from taylorformer import Forecaster
from taylorformer.training_and_evaluation.forecasting import fine_tuning
from taylorformer.training_and_evaluation.forecasting.fine_tuning import (
    SCORE,
    FineTuning,
    usual_tuning,
)

# A tiny model understands nothing, and a forecaster says so.
pytestmark = pytest.mark.filterwarnings("ignore:(the rows do not show|one-step forecasts)")

_TUNING = {
    "max_steps": 4,
    "steps_per_epoch": 2,
    "batch_size": 4,
    "validation_windows": 3,
    "validation_samples": 4,
    "warm_up": 1,
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_prior(tmp_path_factory.mktemp("weights") / "tiny.keras")


def _table(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    values = 50 + 10 * np.sin(2 * np.pi * np.arange(rows) / 12) + rng.normal(size=rows)
    return pd.DataFrame(
        {"month": pd.date_range("2015-01-01", periods=rows, freq="MS"), "y": values}
    )


# Two steps cost less than tracing one.
_EAGERLY = {"run_eagerly": True}


def _forecaster(weights, **settings):
    return Forecaster.from_preset(str(weights), **{"horizon": 3, "seasons": 12, **settings})


@pytest.fixture(scope="module")
def fitted(weights):
    return _forecaster(weights).fit(
        _table(), tuning=FineTuning(**_TUNING, learning_rate=1e-2), **_EAGERLY
    )


def test_the_weights_that_are_kept_are_not_worse_than_those_of_the_start(fitted, weights):
    report = fitted.report_
    assert report["best"][SCORE] == min([report["start"][SCORE], *fitted.history_[SCORE]])
    assert list(fitted.history_["step"]) == [2, 4]
    assert report["num_validation_windows"] == 3
    # What spoils a model is not kept, and the weights of the preset are never changed.
    with pytest.warns(UserWarning, match="no score of the validation part is finite"):
        spoiled = _forecaster(weights).fit(
            _table(), tuning=FineTuning(**_TUNING, learning_rate=1e3), **_EAGERLY
        )
    assert spoiled.report_["best_step"] == 0
    before = _forecaster(weights).model_.get_weights()
    assert spoiled.report_["share"] == 0
    for kept, expected in zip(spoiled.model_.get_weights(), before, strict=True):
        np.testing.assert_array_equal(kept, expected)


def test_a_table_is_read_with_the_columns_of_fit(fitted):
    forecast = fitted.forecast(_table(), num_samples=2)
    assert forecast.time_column == "month" and forecast.samples.shape == (2, 1, 3, 1)
    backtest = fitted.backtest(_table(), num_samples=2)
    # The rows after the validation part, three at a time.
    first = backtest.by_window.query("line == 'taylorformer'")["first_target"]
    assert first.min() >= _table()["month"].iloc[48]


def test_it_is_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = Forecaster.load(tmp_path / "model")
    expected = fitted.forecast(_table(), num_samples=3).samples
    np.testing.assert_array_equal(again.forecast(_table(), num_samples=3).samples, expected)
    assert again.report_ == fitted.report_ and again.columns_ == fitted.columns_
    pd.testing.assert_frame_equal(again.history_, fitted.history_)
    scores = [one.backtest(_table(), num_samples=2).scores for one in (fitted, again)]
    pd.testing.assert_frame_equal(*scores)


def test_another_fit_reads_another_table(fitted, weights, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{fine_tuning.__name__}.resumable_fit", stop)
    again = _forecaster(weights)
    again.columns_ = fitted.columns_
    # Training begins, so the table was read.
    with pytest.raises(KeyboardInterrupt):
        again.fit(_table().rename(columns={"month": "ds", "y": "sales"}))


class _OneWeight:
    """A model of one weight."""

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = weights


class _Scores:
    """Scores of windows by the one weight of a model."""

    def __init__(self, model, by_weight, num_disjoint):
        self._model, self._by_weight, self.num_disjoint = model, by_weight, num_disjoint

    def by_window(self):
        return np.array(self._by_weight[float(self._model.get_weights()[0])])


@pytest.mark.parametrize(
    ("num_disjoint", "by_weight", "share"),
    [
        # Clearly better all the way; better by less than is sure; by more of a longer part.
        (4, {0.0: [5, 6, 5, 6], 0.5: [3, 4, 3, 4], 1.0: [1, 2, 1, 2.0]}, 1.0),
        (4, {0.0: [5, 1, 5, 1], 0.5: [3, 4, 3, 4], 1.0: [2, 3, 2, 3.0]}, 0.0),
        (4, {0.0: [5, 6, 5, 6], 0.5: [1, 3, 1, 3], 1.0: [2, 2, 1, 2.0]}, 0.5),
        # One window says nothing; what is not finite is never kept.
        (1, {0.0: [5, 6, 5, 6], 0.5: [3, 4, 3, 4], 1.0: [1, 2, 1, 2.0]}, 0.0),
        (4, {0.0: [5, 6, 5, 6], 0.5: [3, 4, 3, 4], 1.0: [np.nan] * 4}, 0.5),
    ],
)
def test_weights_are_drawn_back_as_far_as_scores_cannot_tell(num_disjoint, by_weight, share):
    model = _OneWeight()
    model.set_weights([np.float32(1.0)])
    scores = _Scores(model, by_weight, num_disjoint)
    kept = fine_tuning.drawn_back(model, [np.float32(0.0)], scores, [0.5])
    assert (kept.share, kept.crps) == (share, np.mean(by_weight[share]))
    assert model.get_weights() == [share]


def test_who_stops_while_weights_are_drawn_back_has_the_best_ones():
    class Stopped(_Scores):
        def by_window(self):
            if self._model.get_weights()[0] == 0.5:
                raise KeyboardInterrupt
            return super().by_window()

    model = _OneWeight()
    model.set_weights([np.float32(1.0)])
    scores = Stopped(model, {0.0: [1.0, 2.0]}, 2)
    with pytest.raises(KeyboardInterrupt):
        fine_tuning.drawn_back(model, [np.float32(0.0)], scores, [0.5])
    assert model.get_weights() == [1.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"choose": "crps", "average": 0.5},
        pytest.param({"choose": "nll"}, marks=pytest.mark.slow),
        pytest.param({"optimizer": "muon"}, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_training_resumes_to_the_last_bit(weights, tmp_path, changes):
    tuning = FineTuning(**_TUNING, learning_rate=1e-2, **changes)
    straight = _forecaster(weights).fit(_table(), tuning=tuning, **_EAGERLY)
    stopped, checkpoint = _forecaster(weights), tmp_path / "training.npz"
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(
            _table(),
            tuning=tuning,
            checkpoint=checkpoint,
            callbacks=[StopAfterFirstEpoch()],
            **_EAGERLY,
        )
    assert stopped.report_["training_steps"] == 2
    other = _table()
    other.loc[40, "y"] += 1
    with pytest.raises(ValueError, match="training can only resume with the data and settings"):
        stopped.fit(other, tuning=tuning, checkpoint=checkpoint, resume=True, **_EAGERLY)
    stopped.fit(_table(), tuning=tuning, checkpoint=checkpoint, resume=True, **_EAGERLY)
    assert stopped.report_ == straight.report_
    for one, two in zip(stopped.model_.weights, straight.model_.weights, strict=True):
        np.testing.assert_array_equal(one, two)


def test_what_follows_the_parts_is_not_read(weights, monkeypatch):
    """The digest of the training, with all arrays that it reads, does not depend on the rest."""
    seen = []

    def stop(*_, fingerprint, **__):
        seen.append(fingerprint)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{fine_tuning.__name__}.resumable_fit", stop)
    for row in (59, 48, 47, 40):
        table = _table()
        table.loc[row:, "y"] = -1e6
        with pytest.raises(KeyboardInterrupt):
            _forecaster(weights).fit(table, tuning=FineTuning(**_TUNING))
    # The first 48 of 60 rows are for training and validation.
    assert seen[0] == seen[1] and len(set(seen[1:])) == 3


@pytest.mark.slow
def test_counts_and_several_series(weights):
    table = pd.concat([_table(seed=seed).assign(unique_id=seed) for seed in (0, 1)])
    table = pd.concat([table, _table(3).assign(unique_id=2)])
    table["y"] = table["y"].round()
    forecaster = _forecaster(weights, lower=0, integers=True, mirrored=True)
    with pytest.warns(UserWarning, match="fewer than 5 values in the training part"):
        forecaster.fit(table, id_column="unique_id", tuning=FineTuning(**_TUNING), **_EAGERLY)
    assert set(forecaster.report_["left_out"]) == {"2"}
    samples = forecaster.forecast(table, num_samples=2).samples
    assert (samples == samples.round()).all() and samples.min() >= 0


@pytest.fixture
def validated(monkeypatch):
    """Stops trainings before their first step; gives the validation windows of each."""
    seen = []

    def stop(model, sampled, batches, validation, *_, **__):
        seen.append(validation)
        raise KeyboardInterrupt

    monkeypatch.setattr(fine_tuning, "fine_tune", stop)
    return seen


@pytest.mark.parametrize("rows", [36, 48, 60, 100])
def test_a_short_validation_part_has_two_windows_that_do_not_overlap(weights, validated, rows):
    """Of one alone nothing would be known, and the training would be for nothing."""
    with pytest.raises(KeyboardInterrupt):
        _forecaster(weights, horizon=24).fit(_table(rows))
    score = fine_tuning.FreeRunningScore(None, validated[0], 2)
    assert score.num_disjoint >= 2


def test_a_series_without_values_in_the_training_part_is_left_out(weights, validated):
    late = _table(seed=1)
    late.loc[:49, "y"] = np.nan
    tables = {"a": _table(), "late": late, "new": _table(1)}
    table = pd.concat([one.assign(unique_id=name) for name, one in tables.items()])
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning) as warned:
        _forecaster(weights).fit(table, id_column="unique_id")
    text = " ".join(str(one.message) for one in warned)
    assert "late" in text and "new" in text and "fewer than 5 values in the training part" in text
    assert validated[0].windows.panel.names == ("a",)


def test_a_target_without_values_in_the_training_part_is_noted(weights, validated):
    table = _table().assign(z=np.where(np.arange(60) < 50, np.nan, 1.0 * np.arange(60)))
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="not trained on all"):
        _forecaster(weights).fit(table, target_columns=["y", "z"])
    assert validated[0].windows.panel.num_series == 1


def test_a_validation_part_without_values_is_told_of(weights, validated):
    table = _table()
    table.loc[41:47, "y"] = np.nan
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="no window with a"):
        _forecaster(weights).fit(table)
    assert not len(validated[0])


def test_the_horizon_of_a_training_is_that_of_its_forecasts(weights, tmp_path):
    table = _table(40)
    trained = Forecaster.from_preset(str(weights))
    trained.fit(table, tuning=FineTuning(**_TUNING), **_EAGERLY)
    assert trained.report_["horizon"] == 12
    trained.save(tmp_path)
    for one in (trained, Forecaster.load(tmp_path)):
        # Of so few rows alone it would be 6.
        assert one.forecast(table[:20], num_samples=2).samples.shape[2] == 12
        assert one.forecast(table, horizon=2, num_samples=2).samples.shape[2] == 2
    # The test part has eight rows.
    assert trained.backtest(table, num_samples=2).num_scored_points == 8


@pytest.mark.parametrize("context_length", [10, 70])
def test_rows_before_the_context_are_not_read(weights, context_length):
    """Not where N_C is rounded up, either."""
    forecaster = _forecaster(weights, context_length=context_length, seasons=None)
    table, other = _table(120), _table(120)
    other.loc[: 119 - context_length, "y"] += 30
    one, two = (forecaster.forecast(each, num_samples=2).samples for each in (table, other))
    np.testing.assert_array_equal(one, two)
    # The window of the back-test ends with the table.
    table, other = _table(120), _table(120)
    other.loc[: 116 - context_length, "y"] += 30
    scores = [forecaster.backtest(each, num_windows=1, num_samples=2) for each in (table, other)]
    one, two = (each.scores["free_running_crps"].iloc[0] for each in scores)
    assert one == two


def test_the_length_of_the_table_says_how_it_is_trained(weights, monkeypatch):
    seen = []

    def stop(model, sampled, batches, validation, tuning, **more):
        seen.append((len(batches.first_targets), batches.batch_size, tuning))
        raise KeyboardInterrupt

    monkeypatch.setattr(fine_tuning, "fine_tune", stop)
    for rows, changes in ((60, None), (3200, {"batch_size": 8}), (60, FineTuning(max_steps=1))):
        with pytest.raises(KeyboardInterrupt):
            _forecaster(weights).fit(_table(rows), tuning=changes)
    assert [number > 2000 for number, _, _ in seen] == [False, True, False]
    assert [tuning.max_steps for _, _, tuning in seen] == [300, 1500, 1]
    assert [size for _, size, _ in seen] == [32, 8, 32]
    assert [usual_tuning(number).max_steps for number in (1999, 2000)] == [300, 1500]


def test_a_shorter_training_has_shorter_epochs_and_a_shorter_warm_up():
    def lengths(**changes):
        tuning = usual_tuning(9999, changes)
        return tuning.steps_per_epoch, tuning.warm_up

    assert lengths() == (75, 75) and lengths(max_steps=800) == (40, 40)
    assert lengths(max_steps=60) == (25, 25) and lengths(max_steps=60, warm_up=9) == (25, 9)
    assert usual_tuning(0, {"max_steps": 60}).steps_per_epoch == 25


def test_bad_arguments(weights):
    forecaster = _forecaster(weights)
    with pytest.raises(ValueError, match=r"series of at least 3 values.*Received: 2 values"):
        forecaster.fit(_table(3))
    with pytest.raises(ValueError, match="`fractions` must be three shares"):
        forecaster.fit(_table(), fractions=(0.5, 0.2))
    with pytest.raises(ValueError, match="`choose` must be one of"):
        FineTuning(choose="mse")
    with pytest.raises(ValueError, match="`synthetic` must be"):
        FineTuning(synthetic=1.0)
    with pytest.raises(ValueError, match="`balance` must be"):
        FineTuning(balance=-1)
    for tuning, message in (
        ({"choose": "mse"}, "`choose` must be one of"),
        ({"steps": 3}, "`tuning` must be one of 'max_steps', .*Received: tuning='steps'"),
        (5, "`tuning` must be a FineTuning, a mapping .*Received: 5"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            forecaster.fit(None, tuning=tuning)
    assert not hasattr(forecaster, "columns_")
