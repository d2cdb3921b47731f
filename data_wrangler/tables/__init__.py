"""From a file or a table to series, and from series to scaled windows."""
