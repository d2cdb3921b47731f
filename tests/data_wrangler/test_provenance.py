"""Descriptions of versions and of the machine."""

import os

import pytest

import taylorformer
from taylorformer.data_wrangler.provenance import devices, machine, processor_name, versions


def test_versions_name_this_package_and_what_it_computes_with():
    assert versions()["taylorformer"] == taylorformer.__version__
    assert {"python", "tensorflow", "keras", "numpy", "pandas"} <= versions().keys()
    assert "not installed" not in " ".join(versions().values())


def test_the_machine_is_described():
    assert machine()["cpus"] == os.cpu_count()
    assert machine()["system"]
    assert devices().startswith(f"{processor_name()}, {os.cpu_count()} cores")


@pytest.mark.parametrize("content", [None, "a system that names no processor\n"])
def test_a_processor_without_a_name_is_named_by_its_kind(monkeypatch, content):
    def read_text(path, **options):
        if content is None:
            raise FileNotFoundError(path)
        return content

    monkeypatch.setattr("pathlib.Path.read_text", read_text)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert processor_name() == "abacus"
