"""From a file or a table to series, and from series to scaled windows.

In the order of their imports, which only goes up this list:

- reading a table: `column_error`, `frames` (checks of pandas tables), `time_parts` (a time in
  several columns), `stamps` (of time), `time_text` (days before months), `columns` (which of them
  plays which part), `values`, `table_rows`;
- one series, and where it comes from: `series`, `csv_dialect`, `csv_file`, `files`, `datasets`,
  `long_table` (several series in one table), `missing_marks` (values that look like marks),
  `report` (what is in a table);
- rows to predict: `continued_stamps`, `future`;
- windows for a model: `panel` (several series as one), `split` (where windows lie), `odd_series`
  (which of them are unlike the others),
  `training_statistics` and `scaler` (with `array_ops`, one formula for NumPy and TensorFlow),
  `windows`.
"""
