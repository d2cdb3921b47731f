"""The Forecaster: from a table to a forecast, its scores, its files and its served form."""
