"""A forecast over a change of the clock, and what its file says when it is read again."""

import numpy as np
import pandas as pd
import pytest
from forecasting import tiny_forecaster

from taylorformer.data_wrangler import read_table
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster


@pytest.mark.parametrize(
    "last", [pytest.param("2024-03-30 22:00", marks=pytest.mark.slow), "2024-10-26 23:00"]
)
def test_a_forecast_is_read_as_future_and_as_past(last, tmp_path):
    end = pd.Timestamp(last, tz="Europe/Berlin")
    hours = pd.date_range(end=end, periods=80, freq="h")
    table = pd.DataFrame({"ds": hours, "y": np.sin(np.arange(80) / 4)})
    forecaster = tiny_forecaster(horizon=8).fit(table)
    forecast = forecaster.forecast(table, num_samples=5)
    stamps = forecast.stamps[0]
    assert (np.diff(stamps.tz_convert("UTC")) == np.timedelta64(1, "h")).all()
    assert len({stamp.utcoffset() for stamp in stamps}) == 2
    forecast.save(tmp_path / "forecast.csv")
    written = read_table(tmp_path / "forecast.csv")

    again = forecaster.forecast(table, written, num_samples=5)
    assert again.stamps[0].equals(stamps)
    np.testing.assert_array_equal(again.samples, forecast.samples)
    # A file of the past has lost the type of its stamps, too.
    table.to_csv(tmp_path / "table.csv", index=False)
    forecaster.save(tmp_path / "model")
    loaded = Forecaster.load(tmp_path / "model")
    from_files = loaded.forecast(read_table(tmp_path / "table.csv"), written, num_samples=5)
    assert from_files.stamps[0].equals(stamps)
    np.testing.assert_allclose(from_files.samples, forecast.samples, rtol=1e-6)

    longer = pd.concat([table.astype({"ds": str}), written.rename(columns={"mean": "y"})])
    later = loaded.forecast(longer[["ds", "y"]], num_samples=5).stamps[0]
    assert later[0] - stamps[-1] == pd.Timedelta("1h") and str(later.tz) == "Europe/Berlin"


def test_a_future_in_disorder_is_sorted_where_the_past_is(tmp_path):
    days = pd.date_range("2024-01-01", periods=66)
    table = pd.DataFrame({"ds": days, "y": np.sin(np.arange(66) / 4), "promo": np.arange(66) % 5})
    past, future = table.iloc[:60], table.iloc[60:64].drop(columns="y")
    forecaster = tiny_forecaster().fit(past, covariate_columns=["promo"])
    wanted = forecaster.forecast(past, future, num_samples=5)
    with pytest.raises(ValueError, match="sort"):
        forecaster.forecast(past, future.iloc[::-1], num_samples=5)
    drawn = forecaster.forecast(past.iloc[::-1], future.iloc[::-1], num_samples=5, unsorted="sort")
    assert drawn.stamps[0].equals(wanted.stamps[0])
    np.testing.assert_array_equal(drawn.samples, wanted.samples)
