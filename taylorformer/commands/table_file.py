"""FILE of the commands that forecast: a table, or the name of a data set, and how to read it."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from taylorformer.commands import options

if TYPE_CHECKING:
    import pandas as pd

# The options of `read_table` that have the same names here, with their defaults.
_CSV_DEFAULTS: dict[str, Any] = {
    "separator": ",",
    "decimal": ".",
    "missing": (),
    "thousands": None,
    "comment": None,
    "quote": '"',
    "encoding": "utf-8",
    "skip_rows": 0,
    "strip": False,
}


@dataclasses.dataclass(frozen=True)
class TableFile:
    """FILE, with the options of all commands that read one.

    Attributes:
        file: The path of a table, or the name of a data set.
        separator: Of a CSV file, as the next ones; see `read_table`.
        decimal: The decimal mark.
        missing: Other marks of missing values.
        thousands: The mark between groups of digits, or None.
        comment: What begins a comment, or None.
        quote: What stands around cells that hold a separator.
        encoding: The text encoding.
        skip_rows: How many lines come before the header.
        strip: Whether blanks around cells are left out.
        sort: Whether rows in disorder are sorted by time.
        duplicates: Which of the rows of one time to keep, or "error".
        data_dir: The folder with the files of data sets, or None.
        download: Whether to fetch the file of a data set that is absent.
    """

    file: str
    separator: str
    decimal: str
    missing: tuple[str, ...]
    thousands: str | None
    comment: str | None
    quote: str
    encoding: str
    skip_rows: int
    strip: bool
    sort: bool
    duplicates: str
    data_dir: Path | None
    download: bool

    def read_path(
        self, path: Path, id_column: Any, time_columns: Sequence[Any] = ()
    ) -> "pd.DataFrame":
        """Reads any table in the same form as FILE; ids are read as they are spelled.

        Args:
            path: Of the table.
            id_column: Its column of ids, or None.
            time_columns: Its column of time, or several that make it; none where it is to be
                guessed.
        """
        from taylorformer.data_wrangler.tables.files import read_table
        from taylorformer.data_wrangler.tables.time_parts import joined_name

        ids = "unique_id" if id_column is None else id_column
        # A part of a time keeps its zeros.
        parts = time_columns if len(time_columns) > 1 else ()
        return read_table(
            path,
            text_columns=tuple(dict.fromkeys((ids, *parts))),
            time_columns=(joined_name(time_columns),) if time_columns else None,
            **{name: getattr(self, name) for name in _CSV_DEFAULTS},
        )

    def read(
        self, targets: Sequence[Any], id_column: Any, time_columns: Sequence[Any] = ()
    ) -> "pd.DataFrame":
        """Reads FILE: all columns of a table, or the target columns of a data set.

        Args:
            targets: The names of the target columns.
            id_column: See `read_path`.
            time_columns: See `read_path`.

        Raises:
            click.BadParameter: It is neither a file nor the name of a data set.
        """
        from taylorformer.data_wrangler.tables import datasets

        path = Path(self.file)
        if path.is_file():
            return self.read_path(path, id_column, time_columns)
        names = datasets.dataset_names()
        if self.file.lower() not in {name.lower() for name in names}:
            raise click.BadParameter(
                f"must be a file that is there, or one of {', '.join(names)}. "
                f"Received: {self.file}",
                param_hint="FILE",
            )
        columns = [
            datasets.load_dataset(self.file, self.data_dir, target, self.download).to_frame()
            for target in targets or [None]
        ]
        return columns[0].assign(**{str(one.columns[-1]): one.iloc[:, -1] for one in columns[1:]})

    @property
    def disorder(self) -> dict[str, Any]:
        """The arguments that say what to do with rows that are not in order."""
        return {"unsorted": "sort" if self.sort else "error", "duplicates": self.duplicates}

    @property
    def words(self) -> list[str]:
        """FILE's options as words of a command line, for a next command on the same file."""
        words = []
        for name, default in _CSV_DEFAULTS.items():
            value, option = getattr(self, name), f"--{name.replace('_', '-')}"
            if isinstance(value, tuple):
                words += [word for one in value for word in (option, one)]
            elif value != default:
                words += [option] if isinstance(value, bool) else [option, str(value)]
        if self.sort:
            words.append("--sort")
        if self.duplicates != "error":
            words += ["--duplicates", self.duplicates]
        if self.data_dir is not None:
            words += ["--data-dir", str(self.data_dir)]
        return words


_options = options.joined(
    click.argument("file"),
    click.option("--separator", default=",", help="What stands between columns."),
    click.option("--decimal", default=".", help="The decimal mark."),
    click.option(
        "--missing",
        multiple=True,
        help="What stands for a missing value, such as . or -999.99, more than once for several. "
        "Empty cells and NA need no mark.",
    ),
    click.option("--thousands", help="The mark between groups of digits, such as a comma."),
    click.option("--comment", help="What begins a comment, such as #."),
    click.option("--quote", default='"', help="What stands around cells that hold a separator."),
    click.option(
        "--encoding", default="utf-8", help="The text encoding, such as cp1252 or utf-16."
    ),
    click.option(
        "--skip-rows", type=click.IntRange(min=0), default=0, help="Lines before the header."
    ),
    click.option("--strip", is_flag=True, help="Leave out blanks around cells."),
    click.option("--sort", is_flag=True, help="Sort rows by time instead of refusing disorder."),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "last", "mean"]),
        default="error",
        help="Which of the rows of one time to keep.",
    ),
    options.data_dir_option("Folder with the files of named data sets."),
    click.option("--download", is_flag=True, help="Fetch a named data set that is not there."),
)


def with_table_file(command: options.Command) -> options.Command:
    """Adds FILE and its options to a command, which gets them as its argument `table`."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        names = [field.name for field in dataclasses.fields(TableFile)]
        table = TableFile(**{name: arguments.pop(name) for name in names})
        return command(table=table, **arguments)

    return cast(options.Command, _options(wrapped))
