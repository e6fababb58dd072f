import os
import subprocess
import sys

import pytest

from reference_engine.baselines.durable import DurableFile, locked, write_durably
from ringtrue.errors import StoreError

HOLD = """
import sys
from pathlib import Path
from reference_engine.baselines.durable import locked
with locked(Path(sys.argv[1]), held_by="x"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    file = DurableFile(tmp_path / "a.tmp")
    file.write(b"half")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tmp"]
    file.publish(tmp_path / "a")
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("a", b"half")]
    file.remove()
    assert (tmp_path / "a").exists()


def test_a_file_given_up_leaves_nothing(tmp_path):
    file = DurableFile(tmp_path / "a.tmp")
    file.write(b"half")
    file.remove()
    assert not list(tmp_path.iterdir())


def test_the_hash_is_of_the_bytes_written(tmp_path):
    file = DurableFile(tmp_path / "a.tmp")
    file.write(b"ab")
    file.write(b"c")
    file.remove()
    assert file.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_small_file_is_replaced_whole(tmp_path, monkeypatch):
    write_durably(tmp_path / "a", b"old")

    def refused(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="Input/output"):
        write_durably(tmp_path / "a", b"new")
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("a", b"old")]


def test_a_lock_is_held_once_and_leaves_no_file(tmp_path):
    path = tmp_path / "lock"
    with locked(path, held_by="it is taken"):
        with pytest.raises(StoreError, match="it is taken"), locked(path, held_by="it is taken"):
            pass
        assert path.exists()
    assert not path.exists()


def test_a_lock_ends_with_the_process_that_held_it(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="taken"), locked(path, held_by="taken"):
            pass
        holder.kill()
    with locked(path, held_by="taken"):
        assert path.exists()
    assert not path.exists()


def test_a_lock_file_that_its_holder_removed_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    path, opened = tmp_path / "lock", []
    open_file = os.open

    def opening(name, *arguments):
        descriptor = open_file(name, *arguments)
        if not opened:
            path.unlink()  # the holder ends between our open and our lock
        opened.append(descriptor)
        return descriptor

    monkeypatch.setattr(os, "open", opening)
    with locked(path, held_by="taken"):
        assert os.fstat(opened[-1]).st_ino == path.stat().st_ino
    assert len(opened) == 2
