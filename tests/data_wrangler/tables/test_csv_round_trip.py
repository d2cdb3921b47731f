"""Random tables, written in random dialects, are read back as they were."""

import dataclasses
import gzip
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.files import read_table
from taylorformer.data_wrangler.tables.long_table import split_table

IDS = ["001", "NA", "None", "1,5", "x;y", 'a "b"', "it's", "#1", "a b", "-999.99", "50%", "é", "."]
NAMES = ["load", "heat factor", "größe", "a,b", 'in "kW"', "100%", "#", "x|y", "2", "1.5", "it's"]
MARKS = [".", "?", "n.d.", "-", -999.99, "-9999", "1e9", "x y"]
LINE_ENDS = ["\n", "\r\n", "\r"]


@dataclasses.dataclass
class Written:
    """A table, the bytes of its file, and the options that read it."""

    times: list
    ids: list
    values: dict
    content: bytes
    packed: bool
    csv: dict
    columns: dict


@st.composite
def written(draw):
    choose = lambda *choices: draw(st.sampled_from(choices))  # noqa: E731
    csv = {"separator": choose(",", ";", "\t", "|"), "quote": choose('"', '"', "'")}
    csv["decimal"] = choose(*{".", ","} - {csv["separator"]})
    csv["thousands"] = choose(None, *{",", ".", "'", " "} - {csv["decimal"], csv["quote"]})
    csv["comment"] = choose(None, "#", "%")
    csv["encoding"] = choose("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-16-le")
    csv["missing"] = draw(st.lists(st.sampled_from(MARKS), max_size=3, unique=True))
    csv["skip_rows"] = draw(st.integers(0, 2))
    csv["strip"] = draw(st.booleans())
    day_first, split, mark = draw(st.booleans()), draw(st.booleans()), choose("/", ".", "-")
    line_end, packed, many_quotes = choose(*LINE_ENDS), draw(st.booleans()), draw(st.booleans())
    special = {csv["separator"], csv["quote"], csv["comment"] or csv["quote"]}

    def quoted(cell):
        if many_quotes or special & set(cell):
            return csv["quote"] + cell.replace(csv["quote"], 2 * csv["quote"]) + csv["quote"]
        return cell

    def padded(cell, always=False):
        blanks = st.sampled_from(["", "", " ", "  "])
        # Blanks before a quote would make it a part of the cell, but for `strip`.
        if csv["strip"] or (always and not many_quotes and not special & set(cell)):
            return draw(blanks) + quoted(cell) + draw(blanks)
        return quoted(cell)

    def number(value):
        if np.isnan(value):
            cells = ["", "NA", "nan", *map(str, csv["missing"])]
            if -999.99 in csv["missing"]:
                cells += ["-999.9900".replace(".", csv["decimal"])]
            return choose(*cells)
        text = f"{value:.3f}".rstrip("0").rstrip(".")
        whole, _, fraction = text.partition(".")
        if csv["thousands"] is not None and draw(st.booleans()):
            whole = f"{int(whole):,}".replace(",", csv["thousands"])
            whole = f"-{whole}" if value < 0 and not whole.startswith("-") else whole
        return whole + (csv["decimal"] + fraction if fraction else "")

    num_rows = draw(st.integers(1, 6))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    step = timedelta(minutes=draw(st.sampled_from([1, 30, 1440, 50_000])))
    first = draw(st.datetimes(datetime(1970, 1, 1), datetime(2068, 1, 1)))
    times = [first.replace(second=0, microsecond=0) + row * step for row in range(num_rows)]
    ids = draw(st.lists(st.sampled_from(IDS), min_size=num_rows, max_size=num_rows))
    some = st.one_of(st.just(np.nan), st.integers(-50_000_000, 50_000_000).map(lambda n: n / 1000))
    column = st.lists(some, min_size=num_rows, max_size=num_rows)
    values = {name: np.array(draw(column)) for name in names}
    for marked in values.values():
        marked[np.isin(marked, [-999.99, -9999])] = 0

    date = mark.join(["%d", "%m", "%Y"]) if day_first else "%Y-%m-%d"
    forms = [date, "%H:%M"] if split else [f"{date} %H:%M"]
    time_names = ["Date", "Time"] if split else [choose("ds", "day of year")]
    lines = ["of nobody" + "," * row for row in range(csv["skip_rows"])]
    lines += [[padded(name, always=True) for name in [*time_names, "shop", *names]]]
    for row, time in enumerate(times):
        cells = [padded(time.strftime(form)) for form in forms] + [padded(ids[row])]
        lines += [cells + [padded(number(values[name][row])) for name in names]]
        extra = draw(st.integers(0, 4))
        if csv["comment"] is not None and extra == 1:
            lines += [f"{csv['comment']} a, b; c"]
        if csv["comment"] is not None and extra == 2:
            lines[-1][-1] += f" {csv['comment']} and why"
        if extra == 3:
            lines += [""]
    lines = [one if isinstance(one, str) else csv["separator"].join(one) for one in lines]
    content = line_end.join(lines).encode(csv["encoding"])
    content = gzip.compress(content) if packed else content
    time_column = time_names if split else time_names[0]
    columns = {"time_column": time_column, "target_columns": names, "day_first": day_first}
    return Written(times, ids, values, content, packed, csv, columns)


# One folder for all examples: each replaces the file of the one before.
@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(table=written())
def test_a_table_in_any_dialect_is_read_back(tmp_path, table):
    path = tmp_path / ("table.csv.gz" if table.packed else "table.csv")
    path.write_bytes(table.content)
    text = ["shop", *(["Date", "Time"] if isinstance(table.columns["time_column"], list) else [])]
    time = table.columns["time_column"]
    times = ["Date Time"] if isinstance(time, list) else [time]
    frame = read_table(path, text_columns=text, time_columns=times, **table.csv)
    columns = Columns.resolve(frame, id_column="shop", **table.columns)
    series = {one.name: one for one in split_table(frame, columns)}
    assert list(series) == list(dict.fromkeys(table.ids))
    for name, one in series.items():
        rows = [row for row, other in enumerate(table.ids) if other == name]
        assert list(one.stamps) == [pd.Timestamp(table.times[row]) for row in rows]
        for column, values in zip(table.values.values(), one.values.T, strict=True):
            np.testing.assert_array_equal(values, column[rows])
