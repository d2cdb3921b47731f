"""Named data sets: found, checked, read alike from every form, and fetched."""

import dataclasses
import gzip
import hashlib
import shutil

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.datasets import DATASETS, dataset_names, load_dataset


@pytest.mark.parametrize(
    "name, rows, step",
    [
        ("ETTm1", 69_680, "15min"),
        ("ETTm2", 69_680, "15min"),
        ("ETTh1", 17_420, "1h"),
        ("ETTh2", 17_420, "1h"),
        ("exchange", 7_588, "1 day"),
        ("electricity", 26_304, "1h"),
    ],
)
def test_shared_files(name, rows, step, shared_path):
    folder = "ett" if name.startswith("ETT") else name
    shared_path("data", {"exchange": "exchange_rate"}.get(folder, folder))
    series = load_dataset(name.upper(), shared_path("data"))
    assert (series.name, series.num_rows, series.num_columns) == (name, rows, 1)
    assert series.target_columns == ("OT",) and not series.missing["OT"]
    assert set(np.diff(series.time)) == {series.duration(step)}


def test_both_forms_of_exchange_are_one_series(shared_path, tmp_path):
    folder = shared_path("data", "exchange_rate")
    for form in ("csv", "txt"):
        (tmp_path / form).mkdir()
        shutil.copy(folder / f"exchange_rate.{form}.gz", tmp_path / form)
    # Not packed, and one folder down.
    text = gzip.decompress((folder / "exchange_rate.txt.gz").read_bytes())
    (tmp_path / "plain" / "below").mkdir(parents=True)
    (tmp_path / "plain" / "below" / "exchange_rate.txt").write_bytes(text)
    for column in ("OT", "0", "6"):
        csv, *others = (
            load_dataset("exchange", tmp_path / form, column) for form in ("csv", "txt", "plain")
        )
        for other in others:
            np.testing.assert_array_equal(other.values, csv.values)
            np.testing.assert_array_equal(other.time, csv.time)
            assert other.stamps.equals(csv.stamps) and other.time_unit == csv.time_unit
            assert (other.name, other.target_columns) == (csv.name, csv.target_columns)
    assert csv.stamps[0] == pd.Timestamp("1990-01-01") and csv.target_columns == ("6",)
    with pytest.raises(ValueError, match=r"column '9'; it is missing\. Received: 'date', '0'"):
        load_dataset("exchange", tmp_path / "csv", "9")


@pytest.mark.parametrize("date", ["2016/7/1 {}:00", "2016-07-01 0{}:00:00"])
def test_electricity_is_any_file_you_have(date, tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    text = "date,0,OT\n" + "".join(f"{date.format(hour)},{hour},5\n" for hour in range(3))
    (folder / "electricity.csv").write_text(text)
    series = load_dataset("electricity", tmp_path)
    assert series.values[:, 0].tolist() == [5, 5, 5]
    assert set(np.diff(series.time)) == {series.duration("1h")}
    assert load_dataset("electricity", tmp_path, "0").values[:, 0].tolist() == [0, 1, 2]


def test_the_one_that_comes_along():
    series = load_dataset("Mauna_Loa_CO2")
    assert (series.name, series.num_rows) == ("mauna_loa_co2", 2284)
    with pytest.raises(ValueError, match="`target_column` must be 'co2'"):
        load_dataset("mauna_loa_co2", target_column="OT")


def test_names():
    assert set(dataset_names()) == {
        *("ETTm1", "ETTm2", "ETTh1", "ETTh2"),
        *("exchange", "electricity", "mauna_loa_co2"),
    }
    for name in ("ETT", None):
        with pytest.raises(ValueError, match=r"`name` must be one of ETTm1, .*Received: name="):
            load_dataset(name)
    for dataset in DATASETS.values():
        for file in dataset.files:
            assert file.origin is None or (file.sha256 and file.origin.startswith("https://"))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ETTm2\.csv\[\.gz\], .*download=True fetches"):
        load_dataset("ettm2", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"exchange_rate\.txt\[\.gz\].*data_dir=None$"):
        load_dataset("exchange")
    # There is nowhere to fetch it from.
    for download in (False, True):
        with pytest.raises(
            FileNotFoundError, match=r"electricity\.csv\[\.gz\] or .*folders deep\. "
        ):
            load_dataset("electricity", tmp_path, download=download)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_another_content_is_refused(suffix, tmp_path):
    path = tmp_path / f"ETTh1.csv{suffix}"
    content = b"date,OT\n2016-07-01,1\n"
    path.write_bytes(gzip.compress(content) if suffix else content)
    received = hashlib.sha256(content).hexdigest()
    with pytest.raises(ValueError, match=rf"ETTh1\.csv.* f18de3ad\w+\. Received: {received}$"):
        load_dataset("ETTh1", tmp_path)
    # It is yours: it stays.
    assert path.exists()


def test_what_is_not_packed_is_refused(tmp_path):
    (tmp_path / "ETTh1.csv.gz").write_text("date,OT\n")
    with pytest.raises(ValueError, match=r"ETTh1\.csv\.gz` must be packed with gzip"):
        load_dataset("ETTh1", tmp_path)


# Fetching, from a folder instead of the net.


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Returns a public home of ETTh1 and exchange, and a folder to fetch them to."""
    home = tmp_path / "home"
    home.mkdir()
    rows = "".join(f"2016-07-0{day} 00:00:00,{day}\n" for day in range(1, 4))
    contents = {
        "ETTh1.csv": f"date,OT\n{rows}".encode(),
        "exchange_rate.txt": b"0.5,1,2,3,4,5,0.25,7\n0.75,1,2,3,4,5,0.125,7\n",
    }
    (home / "ETTh1.csv").write_bytes(contents["ETTh1.csv"])
    (home / "exchange_rate.txt.gz").write_bytes(gzip.compress(contents["exchange_rate.txt"]))
    for name in ("ETTh1", "exchange"):
        dataset = DATASETS[name]
        *others, file = dataset.files
        file = dataclasses.replace(
            file,
            sha256=hashlib.sha256(contents[file.name]).hexdigest(),
            origin=f"file://{home}/{file.origin.rsplit('/', 1)[-1]}",
        )
        changed = dataclasses.replace(dataset, files=(*others, file))
        monkeypatch.setitem(DATASETS, name, changed)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    return home


def test_fetching_into_a_folder(home, tmp_path):
    folder = tmp_path / "new" / "data"
    series = load_dataset("exchange", folder, download=True)
    assert series.values[:, 0].tolist() == [0.25, 0.125]
    assert [path.name for path in folder.iterdir()] == ["exchange_rate.txt.gz"]
    assert load_dataset("etth1", folder, download=True).num_rows == 3
    # From now on they are there.
    shutil.rmtree(home)
    for download in (False, True):
        assert load_dataset("exchange", folder, "0", download).values[:, 0].tolist() == [0.5, 0.75]


@pytest.mark.parametrize(
    "name, file", [("ETTh1", "ETTh1.csv"), ("exchange", "exchange_rate.txt.gz")]
)
def test_a_bad_file_is_refused_and_removed(name, file, home, tmp_path):
    for content in (b"<html>moved</html>", gzip.compress(b"1,2\n")):
        (home / file).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{file}` must "):
            load_dataset(name, tmp_path / "data", download=True)
        assert not list((tmp_path / "data").iterdir())


def test_no_public_home(home, tmp_path):
    shutil.rmtree(home)
    with pytest.raises(OSError, match=r"file:.*ETTh1\.csv could not be fetched"):
        load_dataset("ETTh1", tmp_path / "data", download=True)
