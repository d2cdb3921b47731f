"""Files and folders that are replaced whole, whatever goes wrong while they are written."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from killed_writer import KINDS

from taylorformer.data_wrangler import whole_files
from taylorformer.data_wrangler.whole_files import (
    find_file,
    open_replaced,
    refuse_existing,
    replaced_together,
    replaced_whole,
)

# The calls of a write that the system can refuse.
STEPS = (
    (tempfile, "mkdtemp"),
    (os, "fsync"),
    (os, "replace"),
    (os, "rename"),
    (shutil, "copymode"),
    (whole_files, "_exchanged_at_once"),
)


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "folder" / "file"
    with open_replaced(path) as file:
        file.write(b"complete")
    with pytest.raises(KeyboardInterrupt), open_replaced(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"complete"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_at_any_step_leaves_the_old_or_the_new(kind, at_once, tmp_path, monkeypatch):
    path, (write, read) = tmp_path / kind, KINDS[kind]
    path.mkdir()
    if not at_once:
        # As on systems that cannot exchange two folders in one step.
        monkeypatch.setattr(whole_files, "_exchanged_at_once", lambda first, second: False)
    write(path, 1)
    calls, fails_at = 0, 0

    def failing(function):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == fails_at:
                raise OSError(errno.ENOSPC, "no space left")
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for module, name in STEPS:
            patch.setattr(module, name, failing(getattr(module, name)))
        number, outcomes = 2, []
        while True:
            calls, fails_at = 0, fails_at + 1
            before = read(path)
            try:
                write(path, number)
            except OSError as error:
                assert "no space left" in str(error)
                outcomes.append(read(path) == number)
                assert read(path) in (before, number)
                number += 1
            else:
                break
    assert len(outcomes) >= 4 and not all(outcomes), "failures must hit several steps"
    assert read(path) == number
    assert not [one for one in path.rglob("*") if one.name.endswith(".unfinished")]


@pytest.mark.slow
def test_a_thousand_kills_leave_the_old_or_the_new(tmp_path):
    script = Path(__file__).parents[1] / "killed_writer.py"
    command = [sys.executable, str(script), str(tmp_path), "1000"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert run.returncode == 0, run.stderr
    *kinds, kills, caught = run.stdout.split()
    assert set(kinds) == set(KINDS) and int(kills) == 1000
    assert int(caught) > 100, "kills must hit writes that are not complete"


def test_folders_are_replaced_with_all_that_is_in_them(tmp_path):
    path = tmp_path / "folder"
    for names in (["a", "b"], ["c"]):
        with replaced_whole(path) as unfinished:
            (unfinished / "deep").mkdir(parents=True)
            for name in names:
                (unfinished / "deep" / name).write_text(name)
        assert sorted(file.name for file in path.rglob("?")) == names
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_does_not_replace_a_folder_nor_a_folder_a_file(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with (
        pytest.raises(IsADirectoryError, match="must be a file"),
        replaced_whole(tmp_path / "folder") as unfinished,
    ):
        unfinished.write_text("new")
    with (
        pytest.raises(NotADirectoryError, match="must be a folder"),
        replaced_whole(tmp_path / "file") as unfinished,
    ):
        unfinished.mkdir()
    assert (tmp_path / "file").read_text() == "old" and len(list(tmp_path.iterdir())) == 2


def test_links_are_followed_and_permissions_kept(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o604)
    link.symlink_to(real)
    with replaced_whole(link) as unfinished:
        unfinished.write_text("new")
    assert link.is_symlink() and real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o604


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="the system has no /dev/null")
def test_a_device_is_written_to(tmp_path):
    with replaced_whole("/dev/null") as unfinished:
        unfinished.write_text("gone")
    assert not Path("/dev/null").is_file()


def test_long_names_fit(tmp_path):
    path = tmp_path / ("ü" * 120)
    with replaced_whole(path) as unfinished:
        unfinished.write_text("x")
    assert path.read_text() == "x"


def test_what_killed_processes_left_is_swept_a_day_later(tmp_path):
    old, new = (tmp_path / f".file.{name}.unfinished" for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir()
    day_ago = time.time() - 90_000
    os.utime(old, (day_ago, day_ago))
    with replaced_whole(tmp_path / "file") as unfinished:
        unfinished.write_text("x")
    assert new.exists() and not old.exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the user may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError) as error, replaced_whole(tmp_path / "file"):
        pass
    assert error.value.filename == str(tmp_path)


def test_a_move_that_was_cut_short_is_completed(tmp_path, monkeypatch):
    write, read = KINDS["together"]
    write(tmp_path, 1)
    replace = os.replace

    def stop(*paths):
        monkeypatch.setattr(os, "replace", replace)
        replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, 2)
    assert (tmp_path / ".complete").is_dir() and read(tmp_path) == 2
    assert find_file(tmp_path, "second").parent.name == ".complete"
    with replaced_together(tmp_path) as unfinished:
        (unfinished / "other").write_text("x")
    assert read(tmp_path) == 2 and not (tmp_path / ".complete").exists()
    assert (tmp_path / "other").read_text() == "x"


def test_existing_paths_are_refused_unless_they_are_empty_folders(tmp_path):
    refuse_existing(tmp_path, overwrite=False)
    refuse_existing(tmp_path / "new", overwrite=False)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path, tmp_path / "file", tmp_path / "link"):
        refuse_existing(path, overwrite=True)
        with pytest.raises(FileExistsError, match="must not be there yet, unless"):
            refuse_existing(path, overwrite=False, name="folder")
