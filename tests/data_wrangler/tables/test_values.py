"""Values of targets and covariates: what counts as a number, and what is a clear error."""

import numpy as np
import pandas as pd
import pytest
from tables import series_of

from taylorformer.data_wrangler.tables.series import Series


@pytest.mark.parametrize("values", [["1", "2.5"], pd.array([1, None], "Int64")])
def test_numbers_of_other_types(values):
    wanted = [1.0, np.nan if values[1] is pd.NA else float(values[1])]
    np.testing.assert_array_equal(series_of([1, 2], values).values[:, 0], wanted)


@pytest.mark.parametrize(
    "values, message",
    [
        (["1", "-", "x"], r"`y` must hold numbers, .* Received: '-' in row 2$"),
        ([1.0, 2.0, np.inf], r"finite numbers, .*Received: inf in row 3$"),
        ([True, False, True], r"hold numbers\. Received: .*True.* in row 1$"),
        ([1.5, None, True], r"hold numbers, .*Received: True in row 3$"),
        (pd.date_range("2020", periods=3), r"hold numbers\. Received: Timestamp.* in row 1$"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        series_of([1, 2, 3], values)


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True],
        [1, 0, 1],
        ["1", "0", "1"],
        pd.array([True, False, True], "boolean"),
        np.array([True, False, True], object),
    ],
)
def test_covariates_are_numbers_or_true_and_false(values):
    frame = pd.DataFrame({"t": range(3), "y": 0.0, "wind": [0.5, 1.5, 2.5], "open": values})
    series = Series.from_frame(frame, "t", "y", covariate_columns=["open", "wind"])
    np.testing.assert_array_equal(series.covariates, [[1, 0.5], [0, 1.5], [1, 2.5]])
    assert series.covariate_columns == ("open", "wind")
    assert Series.from_frame(frame, "t", "y", covariate_columns="wind").covariates.shape == (3, 1)
    assert Series.from_frame(frame, "t", "y").covariates.shape == (3, 0)


@pytest.mark.parametrize(
    "values, message",
    [
        ([1.0, np.nan, np.inf], r"`k` must hold a finite number in every row.*in row 2$"),
        ([1.0, 2.0, -np.inf], r"`k` must hold a finite number in every row.*-inf in row 3$"),
        ([True, False, None], r"`k` must hold a finite number in every row.*in row 3$"),
        (["1", "2", "high"], r"`k` must hold a number, or .*'high' in row 3$"),
        (pd.date_range("2020", periods=3), r"`k` must hold a number, or .*in row 1$"),
    ],
)
def test_bad_covariates(values, message):
    frame = pd.DataFrame({"t": range(3), "y": 0.0, "k": values})
    with pytest.raises(ValueError, match=message):
        Series.from_frame(frame, "t", "y", covariate_columns="k")
