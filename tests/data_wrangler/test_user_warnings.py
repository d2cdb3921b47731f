import warnings

import pandas as pd
import pytest

from taylorformer import PretrainedForecaster
from taylorformer.data_wrangler.tables.continued_stamps import continue_stamps
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.user_warnings import warn_user


def test_sentences_are_one_warning_and_none_is_none():
    with pytest.warns(UserWarning) as caught:
        warn_user("first", "", "second")
    assert [str(one.message) for one in caught] == ["first. second"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_user("", "")
        warn_user()


def test_it_points_at_the_line_of_the_user_however_deep_it_is_given():
    stamps = pd.to_datetime(["2024-01-01", "2024-01-03", "2024-01-10", "2024-01-12"])
    table = pd.DataFrame({"ds": stamps, "y": range(4)})
    with pytest.warns(UserWarning) as shallow:
        continue_stamps(Series.from_frame(table, "ds", "y"), 1)
    with pytest.warns(UserWarning) as deep:
        PretrainedForecaster(horizon=1, seasons=None).forecast(table, num_samples=2)
    assert {one.filename for one in (*shallow, *deep)} == {__file__}
