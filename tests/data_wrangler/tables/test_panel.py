"""Panels: which series can be put together."""

import pytest

from taylorformer.data_wrangler.tables.panel import Panel


def test_panel_errors(panel, series):
    with pytest.raises(ValueError, match="at least one series"):
        Panel([])
    with pytest.raises(ValueError, match="'s0' twice"):
        Panel([panel.series[0], panel.series[0]])
    with pytest.raises(ValueError, match="the same `target_columns`"):
        Panel([panel.series[0], series])
