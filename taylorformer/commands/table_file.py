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


@dataclasses.dataclass(frozen=True)
class TableFile:
    """FILE, with the options of all commands that read one.

    Attributes:
        file: The path of a table, or the name of a data set.
        separator: What stands between columns.
        decimal: The decimal mark.
        sort: Whether rows in disorder are sorted by time.
        duplicates: Which of the rows of one time to keep, or "error".
        data_dir: The folder with the files of data sets, or None.
        download: Whether to fetch the file of a data set that is absent.
    """

    file: str
    separator: str
    decimal: str
    sort: bool
    duplicates: str
    data_dir: Path | None
    download: bool

    def read_path(self, path: Path, id_column: Any) -> "pd.DataFrame":
        """Reads any table in the same form as FILE; ids are read as they are spelled."""
        from taylorformer.data_wrangler.tables.files import read_table

        text = ("unique_id" if id_column is None else id_column,)
        return read_table(path, separator=self.separator, decimal=self.decimal, text_columns=text)

    def read(self, targets: Sequence[Any], id_column: Any) -> "pd.DataFrame":
        """Reads FILE: all columns of a table, or the target columns of a data set.

        Raises:
            click.BadParameter: It is neither a file nor the name of a data set.
        """
        from taylorformer.data_wrangler.tables import datasets

        path = Path(self.file)
        if path.is_file():
            return self.read_path(path, id_column)
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
        if self.separator != ",":
            words += ["--separator", self.separator]
        if self.decimal != ".":
            words += ["--decimal", self.decimal]
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
