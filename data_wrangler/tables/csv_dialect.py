"""How a CSV file is written: its marks, its encoding, and what in it is no row."""

import codecs
import dataclasses
import itertools
import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any, cast

from taylorformer.data_wrangler.checks import check_boolean, check_integer

# With or without a byte-order mark.
_UTF_8 = "utf-8-sig"


@dataclasses.dataclass(frozen=True)
class CsvDialect:
    r"""How a CSV file is written; the defaults are those of most programs.

    Example:
        >>> dialect = CsvDialect(separator=";", decimal=",", thousands=".", missing=[".", -999.99])
        >>> dialect.missing_numbers, dialect.missing_texts
        ((-999.99,), ('.', '-999.99'))

    Attributes:
        separator: what stands between the columns: one character, or `"\t"` for a tab.
        decimal: the decimal mark, one character.
        missing: what a cell holds where a value is missing, besides nothing and the words that
            pandas knows (`NA`, `NaN`, `null`, ...): text such as `"."`, or numbers. A number, also
            one that comes as text, counts in any spelling: -999.99 is -999.990, too.
        thousands: what stands between groups of digits, one character. It may be the separator
            where such cells are quoted.
        comment: what begins a comment, one character: the rest of the line is left out.
        quote: what stands around cells that hold a separator, one character.
        encoding: the name of a text encoding that Python knows, such as `"cp1252"`.
        skip_rows: how many lines come before the header, comments and blank lines included.
        strip: whether blanks around cells are left out, those of ids too. Numbers, and the names
            of columns, need no stripping.

    Raises:
        TypeError: an argument of another type.
        ValueError: an argument outside its range, or two marks that are the same.
    """

    separator: str = ","
    decimal: str = "."
    missing: str | float | Sequence[str | float] = ()
    thousands: str | None = None
    comment: str | None = None
    quote: str = '"'
    encoding: str = "utf-8"
    skip_rows: int = 0
    strip: bool = False

    def __post_init__(self) -> None:
        if self.separator == r"\t":
            object.__setattr__(self, "separator", "\t")
        for name in ("separator", "decimal"):
            _check_mark(name, getattr(self, name), "digit, quote or line end")
        for name in ("thousands", "comment"):
            mark = getattr(self, name)
            if mark is not None:
                _check_mark(name, mark, "digit, letter, sign, quote or line end")
        if self.quote != '"':
            _check_mark("quote", self.quote, "digit, letter, sign or line end")
        for first, second in itertools.combinations(self._marks, 2):
            if getattr(self, first) == getattr(self, second) and {first, second} != {
                "separator",
                "thousands",
            }:
                raise ValueError(
                    f"`{first}` and `{second}` must not be the same. Received: "
                    f"{first}={getattr(self, first)!r} and {second}={getattr(self, second)!r}"
                )
        object.__setattr__(self, "missing", tuple(_missing_marks(self.missing)))
        object.__setattr__(self, "encoding", _check_encoding(self.encoding))
        object.__setattr__(self, "skip_rows", check_integer("skip_rows", self.skip_rows, 0))
        object.__setattr__(self, "strip", check_boolean("strip", self.strip))

    @property
    def _marks(self) -> list[str]:
        names = ("separator", "decimal", "thousands", "comment", "quote")
        return [name for name in names if getattr(self, name) is not None]

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The marks of missing values that are numbers, as Python or as the file spells them."""
        read = map(self._number, self._missing)
        return tuple(number for number in read if number is not None)

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """The marks of missing values as text."""
        return tuple(map(str, self._missing))

    @property
    def exact(self) -> "CsvDialect":
        """The same without marks in numbers and of missing values: for times, which have none."""
        return dataclasses.replace(self, missing=(), thousands=None)

    @property
    def _missing(self) -> tuple[str | float, ...]:
        # `__post_init__` has made it a tuple.
        return cast(tuple[str | float, ...], self.missing)

    @property
    def left_to_pandas(self) -> bool:
        """Whether nothing is to do for one column and not another, which pandas cannot."""
        special = self.missing or self.thousands or self.comment or self.strip
        return not special and self.decimal == "."

    def _number(self, mark: str | float) -> float | None:
        spelled = str(mark)
        for text in (spelled, spelled.replace(self.thousands or "", "").replace(self.decimal, ".")):
            try:
                number = float(text)
            except ValueError:
                continue
            return number if math.isfinite(number) else None
        return None

    def pandas_options(self) -> dict[str, Any]:
        """Returns the arguments of `pandas.read_csv`; those that are not needed are left out."""
        options: dict[str, Any] = {
            "sep": self.separator,
            "decimal": self.decimal,
            "encoding": _UTF_8 if self.encoding == "utf-8" else self.encoding,
        }
        if self.missing:
            options["na_values"] = list(self.missing_texts)
        if self.thousands is not None:
            options["thousands"] = self.thousands
        if self.comment is not None:
            options["comment"] = self.comment
        if self.quote != '"':
            options["quotechar"] = self.quote
        if self.skip_rows:
            options["skiprows"] = self.skip_rows
        if self.strip:
            options["skipinitialspace"] = True
        return options


def _check_mark(name: str, mark: Any, refused: str) -> None:
    if not isinstance(mark, str):
        raise TypeError(f"`{name}` must be text. Received: {name}={mark!r}")
    legal = mark == "\t" or (mark.isascii() and mark.isprintable())
    letter = mark in "+-" or mark.isalpha()
    if (
        len(mark) != 1
        or not legal
        or mark.isdigit()
        or mark == '"'
        or ("letter" in refused and letter)
    ):
        raise ValueError(
            f"`{name}` must be one character of ASCII, and no {refused}. Received: {name}={mark!r}"
        )


def _missing_marks(missing: Any) -> Iterator[str | float]:
    single = isinstance(missing, str | numbers.Real)
    try:
        marks = (missing,) if single else tuple(missing)
    except TypeError:
        marks = (missing,)
    for mark in marks:
        if isinstance(mark, bool) or not isinstance(mark, str | numbers.Real):
            raise TypeError(f"`missing` must hold text or numbers. Received: {mark!r}")
        if isinstance(mark, str):
            if not mark.strip() or "\n" in mark or "\r" in mark:
                raise ValueError(
                    "`missing` must hold text of one line that is not blank: an empty cell is "
                    f"missing without it. Received: {mark!r}"
                )
            yield mark
        elif math.isfinite(mark):
            plain = mark.item() if hasattr(mark, "item") else mark
            yield plain if isinstance(plain, int) else float(plain)
        else:
            raise ValueError(f"`missing` must hold finite numbers. Received: {mark!r}")


def _check_encoding(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"`encoding` must be text. Received: encoding={name!r}")
    try:
        codec = codecs.lookup(name).name
        # Some codecs are none of text.
        legal = "a,1\n".encode(codec).decode(codec) == "a,1\n"
    except (LookupError, UnicodeError, ValueError):
        legal = False
    if not legal:
        raise ValueError(
            "`encoding` must be a text encoding that Python knows, such as utf-8, utf-16, cp1252 "
            f"or latin-1. Received: encoding={name!r}"
        )
    return "utf-8" if codec in ("utf-8", "utf-8-sig") else codec
