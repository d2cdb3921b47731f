"""Writers of numbers in several forms, and a program that kills processes while they write.

    python tests/killed_writer.py FOLDER KILLS

forks children that do nothing but write, kills each after a few milliseconds, and checks what they
left. It shows the kinds of writers, the number of kills, and how many of them hit a write that was
not complete.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pandas as pd

from taylorformer.data_wrangler.tables.files import write_table
from taylorformer.data_wrangler.versioned_files import FileKind, read_json, write_json
from taylorformer.data_wrangler.whole_files import find_file, replaced_together, replaced_whole

# So long that a write takes several steps of the disk.
_LENGTH = 5000
_JSON = FileKind(format_number=1, writer="a test")


def _write_table(folder, number):
    frame = pd.DataFrame({"number": [number] * _LENGTH})
    write_table(frame, folder / "table.csv", overwrite=True)


def _read_table(folder):
    (number,) = set(pd.read_csv(folder / "table.csv")["number"])
    return number


def _write_json(folder, number):
    write_json(_JSON, folder / "file.json", {"numbers": [number] * _LENGTH})


def _read_json(folder):
    (number,) = set(read_json(_JSON, folder / "file.json", lambda content: content["numbers"]))
    return number


def _write_folder(folder, number):
    with replaced_whole(folder / "folder") as unfinished:
        (unfinished / "deep").mkdir(parents=True)
        for path in (unfinished / "first", unfinished / "deep" / "second"):
            path.write_text(json.dumps([number] * _LENGTH))


def _read_folder(folder):
    first, second = folder / "folder" / "first", folder / "folder" / "deep" / "second"
    (number,) = {*json.loads(first.read_text()), *json.loads(second.read_text())}
    return number


def _write_together(folder, number):
    with replaced_together(folder) as unfinished:
        for name in ("first", "second"):
            (unfinished / name).write_text(json.dumps([number] * _LENGTH))


def _read_together(folder):
    files = [find_file(folder, name) for name in ("first", "second")]
    (number,) = {number for file in files for number in json.loads(file.read_text())}
    return number


KINDS = {
    "table": (_write_table, _read_table),
    "json": (_write_json, _read_json),
    "folder": (_write_folder, _read_folder),
    "together": (_write_together, _read_together),
}
"""For each kind a function that writes a number into a folder, and one that reads it."""


def _write_until_killed(write, folder, number):
    while True:
        number += 1
        write(folder, number)


def main(folder, kills):
    """Kills writers, the same number of each kind."""
    rng = random.Random(0)
    caught = 0
    for kind, (write, read) in KINDS.items():
        target_folder = folder / kind
        target_folder.mkdir()
        write(target_folder, 0)
        number = 0
        for _ in range(kills // len(KINDS)):
            child = os.fork()
            if not child:
                _write_until_killed(write, target_folder, number)
            time.sleep(rng.uniform(0.0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            hidden = [path for path in target_folder.iterdir() if path.name.startswith(".")]
            caught += bool(hidden)
            left = read(target_folder)
            if left < number:
                raise AssertionError(f"{kind}: {left} was read after {number}")
            number = left
            for path in hidden:
                if path.name.endswith(".unfinished"):
                    shutil.rmtree(path)
        if not number:
            raise AssertionError(f"{kind}: no write was completed")
        print(kind)
    print(kills // len(KINDS) * len(KINDS), caught)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
