"""Files that know their format."""

import json

import numpy as np
import pytest

from taylorformer.data_wrangler.provenance import versions
from taylorformer.data_wrangler.versioned_files import (
    FileKind,
    read_arrays,
    read_json,
    write_arrays,
    write_json,
)

KIND = FileKind(format_number=3, writer="`Thing.save`", argument="folder")


def test_json_comes_back_with_format_and_versions(tmp_path):
    path = tmp_path / "file.json"
    written = write_json(KIND, path, {"numbers": [1, 2.5], "none": None}, indent=1)
    assert written == {"format": 3, "versions": versions(), "numbers": [1, 2.5], "none": None}
    assert read_json(KIND, path, dict) == written == json.loads(path.read_text())
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(KIND, path, {"value": float("nan")}, allow_nan=False)
    assert read_json(KIND, path, dict) == written


def test_arrays_come_back_to_the_last_bit(tmp_path):
    path = tmp_path / "file"
    arrays = {"x": np.arange(3) / 7, "mask": np.array([[True], [False]])}
    write_arrays(KIND, path, arrays, {"about": "a test"})
    loaded, meta = read_arrays(KIND, path, lambda *content: content)
    assert meta == {"format": 3, "versions": versions(), "about": "a test"}
    assert loaded.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(loaded[name], values)
        assert loaded[name].dtype == values.dtype


def _read_value(content):
    return content["value"]


def test_errors_of_json_say_what_is_wrong(tmp_path):
    path = tmp_path / "file.json"
    wish = "`folder` must lead to a file that `Thing.save` wrote"
    with pytest.raises(FileNotFoundError, match=rf"{wish}\. Received: .*json, which is not there"):
        read_json(KIND, path, _read_value)
    for text in ("", "[]", "{}", '{"format": 3}', '{"format": 3, "versions": {}}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"{wish}\. Received: .*file\.json \(.*Error"):
            read_json(KIND, path, _read_value)
    path.write_text('{"format": 4, "versions": {"taylorformer": "8.7"}}')
    message = r"must have the format 3\. Received: .* format 4, made by taylorformer 8\.7; this is"
    with pytest.raises(ValueError, match=message):
        read_json(KIND, path, _read_value)


def test_errors_of_arrays_say_what_is_wrong(tmp_path):
    path = tmp_path / "file.npz"
    wish = "must lead to a file that `Thing.save` wrote"
    with pytest.raises(FileNotFoundError, match=wish):
        read_arrays(KIND, path, dict)
    write_arrays(KIND, path, {"x": np.zeros(100)}, {})
    for content in (b"", b"text", path.read_bytes()[:-50]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=wish):
            read_arrays(KIND, path, dict)
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match=wish):
        read_arrays(KIND, path, dict)
    np.savez(path, meta=np.array(json.dumps({"format": 9, "versions": {}})))
    with pytest.raises(ValueError, match="format 9, made by taylorformer of an unknown version"):
        read_arrays(KIND, path, dict)
