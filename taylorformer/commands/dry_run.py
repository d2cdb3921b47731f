"""What `fit --dry-run` shows: the columns, the state of each series, and the parts of the table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

    from taylorformer.data_wrangler.tables.columns import Columns
    from taylorformer.data_wrangler.tables.panel import Panel
    from taylorformer.data_wrangler.tables.series import Series
    from taylorformer.data_wrangler.tables.split import WindowSpec

# More series than these would push the lines on the parts out of sight.
_MAX_SHOWN_SERIES = 20
# As wide as the longest label, "validation", and a space.
_LABEL_WIDTH = 11


def show_table(
    frame: "pd.DataFrame", columns: "Columns", disorder: Mapping[str, Any], seasons: Any
) -> None:
    """Says what a pretrained model would read, and which seasons the rows show.

    Args:
        frame: the table.
        columns: of the table.
        disorder: the arguments of `split_table` on rows that are not in order.
        seasons: those that were named, see `choose_seasons`.

    Raises:
        ValueError: rows in disorder, or seasons that cannot be read.
    """
    _show_read(frame, columns, disorder, seasons)
    click.echo("\nNothing was forecast.")


def _show_read(
    frame: "pd.DataFrame", columns: "Columns", disorder: Mapping[str, Any], seasons: Any
) -> "Panel":
    """Says what would be read; returns it."""
    from taylorformer.data_wrangler.tables.long_table import split_table
    from taylorformer.data_wrangler.tables.panel import Panel

    _show_columns(columns)
    click.echo()
    _show_series(frame, columns)
    click.echo()
    panel = Panel(split_table(frame, columns, **disorder))
    _show_seasons(panel.series, seasons)
    return panel


def _show_seasons(series: "Sequence[Series]", seasons: Any) -> None:
    """Says which seasons the rows of each column show."""
    from taylorformer.data_wrangler.tables.seasons import choose_seasons

    shown = series[:_MAX_SHOWN_SERIES]
    for one in shown:
        for column, target in enumerate(one.target_columns):
            chosen = choose_seasons(one, seasons, column)
            owner = one.name if len(series) > 1 else ""
            owner += f" {target}" if one.num_columns > 1 else ""
            label = f"season{' of ' if owner else ''}{owner.strip()}"
            click.echo(f"{label:<{_LABEL_WIDTH}} {chosen.describe()}")
    if len(series) > len(shown):
        click.echo(f"... and {len(series) - len(shown)} more series")


def show_plan(
    frame: "pd.DataFrame",
    columns: "Columns",
    disorder: Mapping[str, Any],
    spec: "WindowSpec | None",
    fractions: Sequence[float],
    seasons: Any = "auto",
) -> None:
    """Says what a training would read.

    Args:
        frame: the table.
        columns: of the table.
        disorder: the arguments of `split_table` on rows that are not in order.
        spec: the windows, which must fit into the parts. None: of any length, as pretrained weights
            are trained on.
        fractions: the shares of the training, validation and test part.
        seasons: those that were named, see `choose_seasons`.

    Raises:
        ValueError: rows in disorder, or too few rows for `spec` or for any window.
    """
    from taylorformer.data_wrangler.tables.split import PARTS, Split, panel_window_starts
    from taylorformer.training_and_evaluation.forecasting.training_parts import refuse_short_parts

    panel = _show_read(frame, columns, disorder, seasons)
    splits = [Split.chronological(series.num_rows, fractions) for series in panel.series]
    if spec is None:
        refuse_short_parts(
            [
                int(series.column(column).observed[: split.train_end].sum())
                for series, split in zip(panel.series, splits, strict=True)
                for column in range(series.num_columns)
            ]
        )
    for part in PARTS:
        sizes = [len(split.rows(part)) for split in splits]
        label = f"{part:<{_LABEL_WIDTH}}"
        if not any(sizes):
            click.echo(f"{label} no rows")
            continue
        windows = ""
        if spec is not None:
            try:
                count = len(panel_window_starts(panel, splits, spec, part))
            except ValueError as error:
                # Training does not need the test part.
                if part != PARTS[-1]:
                    raise
                click.echo(f"{label} {sum(sizes)} rows: {error}")
                continue
            windows = f", {count} windows of {spec.length} rows"
        span = ""
        if panel.num_series == 1:
            rows, stamps = splits[0].rows(part), panel.series[0].stamps
            span = f", {stamps[rows[0]]} to {stamps[rows[-1]]}"
        click.echo(f"{label} {sum(sizes)} rows{windows}{span}")
    click.echo("\nNothing was trained.")


def _show_columns(columns: "Columns") -> None:
    facts: dict[str, Sequence[Any]] = {
        "time": columns.time_parts or [columns.time_column],
        "targets": columns.target_columns,
    }
    if columns.id_column is not None:
        facts["ids"] = [columns.id_column]
    if columns.covariate_columns:
        facts["covariates"] = columns.covariate_columns
    for label, names in facts.items():
        click.echo(f"{label:<{_LABEL_WIDTH}} {', '.join(map(str, names))}")


def _show_series(frame: "pd.DataFrame", columns: "Columns") -> None:
    import pandas as pd

    from taylorformer.data_wrangler.tables.missing_marks import describe_marks
    from taylorformer.data_wrangler.tables.report import inspect_table
    from taylorformer.data_wrangler.tables.stamp_form import likely_time_unit

    table = inspect_table(frame, columns)
    series, report = table.series, table.to_frame()
    shown = report.head(_MAX_SHOWN_SERIES)
    # One series reads best as a column of facts, several as a table.
    with pd.option_context("display.max_colwidth", None):
        click.echo(shown.iloc[0].to_string() if len(shown) == 1 else shown.to_string(index=False))
    if len(report) > len(shown):
        click.echo(f"... and {len(report) - len(shown)} more series")
    marks = describe_marks(table.likely_marks)
    if marks:
        click.echo(f"\n{marks[0].upper()}{marks[1:]}.")
    ends = pd.Index([end for one in series for end in (one.first, one.last)])
    time_unit = likely_time_unit(ends)
    if columns.time_unit is None and time_unit is not None:
        click.echo(
            f"\n{columns.time_column} holds integers that look like {time_unit} since 1970: "
            f"--time-unit {time_unit} reads them as dates."
        )
