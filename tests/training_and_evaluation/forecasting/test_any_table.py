"""Random tables: a forecast is finite, or the table is refused with a message of ours."""

import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting import TINY, tiny_forecaster
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st


@st.composite
def times(draw, rows):
    """Dates, integers or floats, even or not, on scales from 1e-8 to 1e8."""
    steps = draw(
        st.one_of(
            st.just(np.ones(rows)),
            st.lists(st.integers(1, 1000), min_size=rows, max_size=rows).map(np.array),
        )
    )
    kind = draw(st.sampled_from(["dates", "integers", "floats"]))
    total = np.cumsum(steps)
    if kind == "dates":
        unit = draw(st.sampled_from(["ms", "s", "min", "h", "D"]))
        return pd.Timestamp("2001-02-03") + pd.to_timedelta(total, unit)
    if kind == "integers":
        return draw(st.integers(-(10**15), 10**15)) + total.astype(np.int64)
    return draw(st.floats(-1e3, 1e3)) + total * 10.0 ** draw(st.integers(-8, 8))


@st.composite
def columns(draw, rows):
    """Waves, noise, spikes and constants around any level, with gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["wave", "noise", "walk", "spike", "constant", "zero"]))
    row = np.arange(rows)
    values = {
        "wave": np.sin(row),
        "noise": rng.normal(size=rows),
        "walk": rng.normal(size=rows).cumsum(),
        "spike": np.where(row == draw(st.integers(0, rows - 1)), 1e4, 0.0),
        "constant": np.ones(rows),
        "zero": np.zeros(rows),
    }[shape]
    level = draw(st.sampled_from([0.0, 0.0, 1.0, -1e4]))
    values = (values + level) * 10.0 ** draw(st.integers(-8, 8))
    missing = draw(st.sampled_from([*[0.0] * 5, *[0.2] * 4, 0.8, 1.0]))
    return np.where(rng.random(rows) < missing, np.nan, values)


@st.composite
def tables(draw):
    rows = draw(st.one_of(st.integers(2, 40), *[st.integers(18, 40)] * 3))
    table = pd.DataFrame({"ds": draw(times(rows))})
    for number in range(draw(st.integers(1, 3))):
        table[f"y{number}"] = draw(columns(rows))
    disorder = draw(st.sampled_from(["none"] * 12 + ["swapped", "twice"]))
    if disorder == "swapped":
        table = table.iloc[::-1]
    elif disorder == "twice":
        table = pd.concat([table, table.tail(1)])
    return table


def check(table, context_length, horizon, scaling, order, seed):
    targets = [name for name in table.columns if name != "ds"]
    forecaster = tiny_forecaster(
        horizon,
        context_length,
        preset=TINY,
        max_steps=2,
        scaling=scaling,
        seed=seed,
        fractions=(0.6, 0.2, 0.2),
    )
    options = {"unsorted": order, "duplicates": "mean" if order == "sort" else "error"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the context and the targets reach over", UserWarning)
        warnings.filterwarnings("ignore", "no target of the validation part", UserWarning)
        warnings.filterwarnings("ignore", "the stamps of `ds` ", UserWarning)
        try:
            forecaster.fit(table, "ds", targets, **options)
            forecast = forecaster.forecast(table, num_samples=2, **options)
        except ValueError as error:
            # Ours: what was expected, then what came.
            assert "Received: " in str(error)
            event("refused")
            return
    event("forecast")
    frame = forecast.to_frame()
    assert np.isfinite(frame.drop(columns=["ds", "target"], errors="ignore")).all(axis=None)
    assert np.isfinite(forecaster.history_.to_numpy()).all()
    assert all(np.isfinite(weight).all() for weight in forecaster.model_.get_weights())
    (stamps,) = forecast.stamps
    assert len(stamps) == horizon and stamps.is_monotonic_increasing and stamps.is_unique
    assert stamps[0] > table["ds"].max()


CASE = given(
    table=tables(),
    context_length=st.integers(1, 6),
    horizon=st.integers(1, 3),
    scaling=st.sampled_from(["window", "standard"]),
    order=st.sampled_from(["error", "sort"]),
    seed=st.integers(0, 100),
)
OPTIONS = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly")
@settings(max_examples=8, **OPTIONS)
@CASE
@pytest.mark.slow
def test_a_few_tables(eagerly, **case):
    check(**case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly")
@settings(max_examples=400, **OPTIONS)
@CASE
def test_many_tables(eagerly, **case):
    check(**case)
