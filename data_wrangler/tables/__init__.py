"""From a file or a table to series, and from series to scaled windows.

In the order of their imports, which only goes up this list:

- stamps of time: `column_error`, `stamp_form` (how they are written), `text_stamps`, `stamps`,
  `wall_time` (of time zones), `weeks`, `frequencies`, `time_text` (days before months);
- reading a table: `frames` (checks of pandas tables), `time_parts` (a time in several columns),
  `columns` (which of them plays which part), `values`, `table_rows`;
- one series, and where it comes from: `series`, `csv_dialect`, `csv_file`, `files`, `datasets`,
  `long_table` (several series in one table), `missing_marks` (values that look like marks);
- rows to predict: `calendar_rules` (of days), `clock_rules` (of times of day), `continued_stamps`,
  `future`; and `report` (what is in a table);
- seasons: `array_ops` (one formula for NumPy and TensorFlow), `season_background` (rows one step
  apart), `season_uneven` (other rows), `season_odds`, `season_patterns`, `season_evidence` (the
  best season of each series), `season_search` (one after the other), `season_spans` (as people
  state them), `seasons` (which are used);
- windows for a model: `panel` (several series as one), `split` (where windows lie), `odd_series`
  (which of them are unlike the others), `common_seasons` (of a panel),
  `value_support` and `scaled_support` (bounds and whole numbers), `training_statistics` and
  `scaler`, `panel_windows` and `windows`;
- windows for a model that was trained on other series: `context_scaler`, `context_windows`,
  `context_batches` (to train it further).
"""
