"""The error of a column: it can be sent to another process, and worded for a part of a table."""

import pickle

import numpy as np
import pytest
from tables import series_of

from taylorformer.data_wrangler.tables.column_error import ColumnError


def test_an_error_of_a_column_can_be_sent_and_reworded():
    with pytest.raises(ColumnError) as caught:
        series_of([1, 2], [1.0, np.inf])
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value) and error.row == 1
    wanted = "Received: inf in row 9 (shop 3)"
    assert error.describe("future", np.array([4, 9]), " (shop 3)").endswith(wanted)
    assert error.describe("future").startswith("Column `y` of `future` must hold finite numbers")
