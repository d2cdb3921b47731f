"""Options of the command line that say how a CSV file is written."""

import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import one_line

LENGTHS = ("--context-length", "6", "--horizon", "4", "--start", "none")
# As a logger writes it: a preamble, comments, two columns of time, marks, groups of digits.
LOGGER = (
    *("--separator", ";", "--decimal", ",", "--thousands", ".", "--missing", "?"),
    *("--missing", "-999,99", "--comment", "#", "--encoding", "cp1252", "--skip-rows", "2"),
    *("--quote", "'", "--strip"),
)
COLUMNS = ("--time", "Date", "--time", "Time", "--day-first", "--target", "Température")


def write_logger(path, rows=80):
    lines = ["Station; written by nobody", "", "Date ;Time; Température ;unique_id"]
    stamps = pd.date_range("2006-12-16 17:24", periods=rows, freq="min")
    for row, stamp in enumerate(stamps):
        cell = {3: "?", 9: "-999,990"}.get(row, f"1.{500 + row},25")
        comment = "  # flagged" if row == 5 else ""
        lines.append(f"{stamp:%d/%m/%Y};{stamp:%H:%M:%S};'{cell}';001{comment}")
    path.write_bytes("\r\n".join([*lines, "# the end"]).encode("cp1252"))
    return path


@pytest.mark.slow
def test_a_file_of_a_logger_is_trained_on_and_forecast(run, tmp_path):
    table, model, output = (
        write_logger(tmp_path / "a table.txt"),
        tmp_path / "m",
        tmp_path / "f.csv",
    )
    options = (*LOGGER, *COLUMNS, "--preset", "tiny", "--max-steps", "1")
    code, out, error = run("fit", table, "--model", model, *LENGTHS, *options)
    assert code == 0 and not error.count("Warning"), error
    assert "Read 80 rows; 2 of them lack a value" in out
    # The commands that follow are printed as they have to be typed.
    lines = [line for line in out.splitlines() if line.startswith("  taylorformer")]
    assert len(lines) == 2 and all(set(LOGGER) <= set(shlex.split(line)) for line in lines)
    words = shlex.split(lines[0])[1:-1]
    code, _, error = run(*words, output, "--samples", "2")
    assert code == 0, error
    forecast = pd.read_csv(output)
    assert forecast["Date Time"].tolist()[0] == "2006-12-16 18:44:00" and len(forecast) == 4
    # The future: in the form of the table, in two columns or in the joined one.
    future = tmp_path / "future.txt"
    text = "x\r\n\r\nDate;Time;unique_id\r\n16/12/2006;18:46:30;001 # late\r\n"
    future.write_bytes(text.encode("cp1252"))
    again = tmp_path / "again.csv"
    code, _, error = run(*words, again, "--samples", "2", "--future", future)
    assert code == 0, error
    assert pd.read_csv(again)["Date Time"].tolist() == ["2006-12-16 18:46:30"]
    joined = forecast[["Date Time"]].assign(unique_id="001").to_csv(index=False, sep=";")
    future.write_text(f"\n\n{joined}")
    code, _, error = run(*words, again, "--samples", "2", "--future", future, "--overwrite")
    assert code == 0, error
    assert pd.read_csv(again)["Date Time"].tolist() == forecast["Date Time"].tolist()
    words = shlex.split(lines[1])[1:-1]
    code, _, error = run(*words, tmp_path / "scores", "--samples", "1")
    assert code == 0, error


@pytest.mark.slow
@pytest.mark.filterwarnings("always:marks for missing values:UserWarning")
def test_fit_warns_once_of_values_that_look_like_marks(run, tmp_path):
    table = pd.DataFrame({"ds": range(80), "y": 380 + np.sin(np.arange(80))})
    shops = [table.assign(unique_id=name) for name in "ab"]
    shops[0].loc[4, "y"] = shops[1].loc[7, "y"] = -999.99
    path = tmp_path / "table.csv"
    pd.concat(shops).to_csv(path, index=False)
    options = (*LENGTHS, "--preset", "tiny", "--max-steps", "1", "--model")
    code, _, error = run("fit", path, *options, tmp_path / "m")
    warning = "Warning: marks for missing values? -999.99 (2 times in y) is far from all other"
    assert code == 0 and error.count("Warning") == 1 and warning in error
    code, _, error = run("fit", path, *options, tmp_path / "n", "--missing", "-999.99")
    assert code == 0 and "Warning" not in error


def test_a_dry_run_shows_the_least_and_the_largest_value(run, tmp_path):
    table = write_logger(tmp_path / "table.txt")
    arguments = ("fit", table, "--model", tmp_path / "m", *LENGTHS, *COLUMNS, "--dry-run")
    code, out, _ = run(*arguments, *LOGGER)
    facts = dict(line.rsplit(maxsplit=1) for line in out.splitlines() if len(line.split()) > 1)
    assert code == 0 and "time        Date, Time" in out and "Marks" not in out
    assert (facts["least Température"], facts["largest Température"]) == ("1500.25", "1579.25")
    path = tmp_path / "marks.csv"
    values = [380.25, 381.5, 382.75, -9999] * 20
    pd.DataFrame({"ds": range(80), "y": values}).to_csv(path, index=False)
    arguments = ("fit", path, "--model", tmp_path / "m", *LENGTHS, "--dry-run")
    code, out, _ = run(*arguments)
    assert code == 0 and "Marks for missing values? -9999 (20 times in y) is far" in out
    assert "(--missing -9999)" in out
    code, out, _ = run(*arguments, "--missing", "-9999.0")
    assert code == 0 and "Marks" not in out and "missing y" in out and "380.25" in out


# Wrong input: what follows the command, and the words of the message.
WRONG = [
    ("{table} --encoding utf-7777", "`encoding` must be a text encoding"),
    ("{table} --encoding hex", "`encoding` must be a text encoding"),
    ("{table} --encoding utf-16", "must be a CSV file in UTF-16"),
    ("{table} --comment //", "`comment` must be one character"),
    ("{table} --comment -", "`comment` must be one character"),
    ("{table} --comment ;;", "`comment` must be one character"),
    ("{table} --comment ,", "`separator` and `comment` must not be the same"),
    ("{table} --thousands .", "`decimal` and `thousands` must not be the same"),
    ("{table} --thousands ,,", "`thousands` must be one character"),
    ("{table} --thousands 0", "`thousands` must be one character"),
    ("{table} --quote ,", "`separator` and `quote` must not be the same"),
    ("{table} --quote ''", "`quote` must be one character"),
    ("{table} --skip-rows -1", "--skip-rows"),
    ("{table} --skip-rows 1.5", "--skip-rows"),
    ("{table} --skip-rows 99", "must be a CSV file in UTF-8 with a header line"),
    ("{table} --skip-rows 1", "Received: '12/17/2006' in row 1"),
    ("{table} --missing", "--missing"),
    ("{table} --day-first", "12/16/2006"),
    ("{table} --day-first --date-format %m/%d/%Y", "must not both be given"),
    ("{table} --time ds --time ds", "`time_column` must name"),
    ("{table} --time ds --time clock", "'clock'"),
    ("{table} --time ds --time y", "`target_columns` must be given"),
    ("{table} --separator ;", "`separator` (--separator) may have to be ','"),
    ("{table}", "such as '%m/%d/%Y'"),
    ("{tmp}/latin.csv", "`encoding` (--encoding), such as cp1252"),
    ("{tmp}/marks.csv", "`missing` (--missing)"),
    ("{tmp}/groups.csv", "`thousands` (--thousands)"),
    ("{tmp}/comments.csv", "`comment` (--comment '#')"),
    ("{tmp}/blanks.csv --time when", "'when'"),
    ("{tmp}/two.csv", "--time more than once"),
]


@pytest.mark.parametrize("words, message", WRONG, ids=[words for words, _ in WRONG])
def test_wrong_options_give_one_line(run, tmp_path, words, message):
    (tmp_path / "table.csv").write_text("ds,y\n12/16/2006,1\n12/17/2006,2\n")
    (tmp_path / "latin.csv").write_bytes("ds,größe\n1,1\n".encode("latin-1"))
    (tmp_path / "marks.csv").write_text("ds,y\n1,1\n2,n/m\n")
    (tmp_path / "groups.csv").write_text('ds,y\n1,"1,500"\n')
    (tmp_path / "comments.csv").write_text("# a, b, c\n# d\nds,y\n1,1,1,1\n")
    (tmp_path / "blanks.csv").write_text("ds,y\n1,1\n")
    (tmp_path / "two.csv").write_text("Date,Time,y\n1,1,1\n")
    arguments = words.format(table=tmp_path / "table.csv", tmp=tmp_path).split()
    code, _, error = run("fit", "--model", tmp_path / "m", *LENGTHS, "--dry-run", *arguments)
    assert code == 2 and message in one_line(error)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["fit", "forecast", "backtest"])
def test_help_names_the_options_and_imports_nothing(command):
    script = (
        "import sys\n"
        "from taylorformer.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    assert not {'tensorflow', 'keras', 'pandas', 'numpy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, command, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = ("missing", "thousands", "comment", "quote", "encoding", "skip-rows", "strip")
    for name in names:
        assert f"--{name} " in done.stdout
