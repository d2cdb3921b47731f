"""Synthetic series: every family draws what it says, batches are functions of their number."""

import numpy as np
import pytest

from taylorformer import synthetic_series_tasks
from taylorformer.data_wrangler import SeriesPrior, draw_family
from taylorformer.data_wrangler.seeds import numbered_generator
from taylorformer.data_wrangler.tasks.series_families import FAMILIES, SeriesGrid, seasonal_pattern

_SMALL = SeriesPrior(max_context=60, max_targets=12)


def _batches(prior, count, seed=0, batch_size=16):
    return [prior.draw(numbered_generator(seed, 0, number), batch_size) for number in range(count)]


def _arrays(dataset):
    return [{**inputs, "y": y} for inputs, y in dataset.as_numpy_iterator()]


def _assert_equal(first, second):
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("period", [0.0, 7.0, 12.5])
@pytest.mark.parametrize("fineness", [1, 4])
def test_families_draw_finite_series_that_differ(name, period, fineness):
    family, _ = FAMILIES[name]
    grid = SeriesGrid(50, fineness)
    periods = np.tile([period, 0.0], (9, 1))
    series = family(np.random.default_rng(3), grid, periods)
    assert series.shape == (9, 50 * fineness)
    assert np.isfinite(series).all()
    # No two are the same, and none is constant.
    assert len(np.unique(series.round(12), axis=0)) == 9
    assert (series.std(axis=1) > 0).all()


@pytest.mark.parametrize("period", [4.0, 7.0, 12.5, 30.4])
def test_patterns_repeat_with_their_period(period):
    grid = SeriesGrid(200, 10)
    pattern = seasonal_pattern(np.random.default_rng(0), grid, np.full(30, period))
    later = round(period * 10)
    if later == period * 10:
        np.testing.assert_allclose(pattern[:, later:], pattern[:, :-later], atol=1e-6)
    # Of about unit size.
    np.testing.assert_allclose(pattern.std(axis=1), 1.0, atol=0.35)


def test_without_a_period_there_is_no_pattern():
    pattern = seasonal_pattern(np.random.default_rng(0), SeriesGrid(20), np.zeros(3))
    assert not pattern.any()


def test_the_shares_of_the_families_add_up_to_one():
    assert sum(share for _, share in FAMILIES.values()) == pytest.approx(1)


def test_a_batch_is_a_function_of_its_number():
    settings = {"batch_size": 8, "seed": 3, "prior": _SMALL}
    whole = _arrays(synthetic_series_tasks(**settings, num_batches=6))
    again = _arrays(synthetic_series_tasks(**settings, first_batch=3, num_batches=3))
    for first, second in zip(whole[3:], again, strict=True):
        _assert_equal(first, second)


@pytest.mark.parametrize("change", [{"seed": 4}, {"part": "validation"}, {"part": "test"}])
def test_other_seeds_and_parts_have_other_series(change):
    settings = {"batch_size": 8, "seed": 3, "prior": _SMALL, "num_batches": 1}
    (one,) = _arrays(synthetic_series_tasks(**settings))
    (other,) = _arrays(synthetic_series_tasks(**{**settings, **change}))
    assert one["y"].shape != other["y"].shape or not np.array_equal(one["y"], other["y"])


def test_batches_keep_the_data_contract():
    lengths, shared = set(), 0
    for batch in _batches(_SMALL, 60):
        size, num_targets, _ = batch["y_target"].shape
        num_context = batch["y_context"].shape[1]
        rows = batch["x_context"].shape[0]
        assert rows in (1, size)
        shared += rows == 1
        assert batch["x_context"].shape == (rows, num_context, 7)
        assert batch["x_target"].shape == (rows, num_targets, 7)
        assert batch["context_mask"].shape == (rows, num_context)
        assert batch["target_mask"].shape == (rows, num_targets)
        assert batch["context_mask"].dtype == batch["target_mask"].dtype == bool
        for array in batch.values():
            assert np.isfinite(array).all() and array.dtype in (np.float32, bool)
        assert np.abs(batch["y_target"]).max() < 30
        lengths.add((num_context, num_targets))
    assert 15 < shared < 45
    assert min(lengths)[0] < 6 and max(lengths)[0] > 40 and len(lengths) > 30


def test_horizons_are_short_or_of_every_length():
    lengths = {}
    for even in (0.0, 1.0):
        prior = SeriesPrior(max_context=60, target_share=1.0, even_targets=even)
        shapes = [(b["y_context"].shape[1], b["y_target"].shape[1]) for b in _batches(prior, 200)]
        assert all(4 <= horizon <= max(8, context + 4) for context, horizon in shapes)
        lengths[even] = [horizon for context, horizon in shapes if context > 40]
        assert max(lengths[even]) > 40
    assert np.mean(lengths[1.0]) > 1.4 * np.mean(lengths[0.0])
    short = SeriesPrior(max_context=60, target_share=0.1, even_targets=1.0)
    assert max(batch["y_target"].shape[1] for batch in _batches(short, 60)) <= 10


def test_targets_follow_the_context_unless_they_fill_gaps():
    forecast = SeriesPrior(max_context=60, gaps=0.0)
    for batch in _batches(forecast, 20):
        assert (batch["x_target"][..., 0] > 0).all()
        assert (batch["x_context"][..., 0][batch["context_mask"]] <= 0).all()
    gaps = SeriesPrior(max_context=60, gaps=1.0)
    inside = [(batch["x_target"][..., 0] < 0).any() for batch in _batches(gaps, 20)]
    assert sum(inside) > 10


def test_where_points_are_not_shared_rows_are_missing_in_each_sequence():
    prior = SeriesPrior(max_context=60, shared=0.0)
    masks = [batch["context_mask"] for batch in _batches(prior, 20)]
    assert any(not mask.all() for mask in masks)
    assert all(mask.shape[0] > 1 for mask in masks)


def test_long_sequences_come_in_smaller_batches():
    points = []
    for batch in _batches(SeriesPrior(max_context=700), 40, batch_size=32):
        size, num_targets, _ = batch["y_target"].shape
        points.append(size * (num_targets + batch["y_context"].shape[1]))
    assert max(points) <= 32 * 128


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"shares": {"clean": 1.0, "walks": 1.0}}, "`shares`"),
        ({"shares": {"clean": 0.0}}, "`shares`"),
        ({"shares": {"clean": 2.0, "counts": -1.0}}, "`shares`"),
        ({"max_context": 2}, "`max_context`"),
        ({"target_share": 0}, "`target_share`"),
        ({"even_targets": -0.1}, "`even_targets`"),
        ({"shared": 1.5}, "`shared`"),
        ({"gaps": float("nan")}, "`gaps`"),
    ],
)
def test_bad_priors_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SeriesPrior(**settings)


def test_one_family_alone_can_be_drawn():
    prior = SeriesPrior(shares={"clean": 1.0}, max_context=30)
    assert all(np.isfinite(batch["y_target"]).all() for batch in _batches(prior, 5))
    assert draw_family("clean", 3, 40, period=8, seed=1).shape == (3, 40)
    with pytest.raises(ValueError, match="`name`"):
        draw_family("walks", 3, 40)
