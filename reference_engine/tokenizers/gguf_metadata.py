"""The metadata of a GGUF file, without its tensors.

``gguf.GGUFReader`` wraps every string in NumPy arrays: a vocabulary of 262,144
tokens takes it seventeen seconds, and plain slices take half of one.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ringtrue.errors import ModelError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "?", 10: "u8", 11: "i8", 12: "f8",
}  # fmt: skip


def read_metadata(path: Path) -> dict[str, Any]:
    """Return every key of a GGUF file with its value: a number, a truth value, a string, or a list of them.

    Raises:
        ModelError: the file cannot be read, is no GGUF file, is of another
            version, or ends too early.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Cursor(data, path).metadata()
    except (OSError, ValueError) as error:  # an empty file cannot be mapped; text may be no UTF-8
        raise ModelError(f"the GGUF file cannot be read ({error})", where=str(path)) from error
    except (struct.error, IndexError, OverflowError, RecursionError) as error:
        raise ModelError(
            "the GGUF file ends in the middle of its metadata, or is damaged",
            where=str(path),
            remedy="Fetch it again",
        ) from error


class _Cursor:
    """A place in the file, moving forward."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._where = str(path)
        self._at = 0
        self._order = "<"

    def metadata(self) -> dict[str, Any]:
        self._check_head()
        self._number("u8")  # tensors
        return {self._string(): self._value(self._number("u4")) for _ in range(self._number("u8"))}

    def _check_head(self) -> None:
        if self._data[:4] != _MAGIC:
            raise ModelError("this is no GGUF file", where=self._where)
        self._at = 4
        version = self._number("u4")
        if version & 0xFFFF == 0:  # written by a big-endian machine
            self._order = ">"
            self._at = 4
            version = self._number("u4")
        if version not in _VERSIONS:
            raise ModelError(
                f"GGUF version {version} is not known",
                where=self._where,
                remedy=f"Convert the model anew: versions {_VERSIONS[0]} and {_VERSIONS[1]} are read",
            )

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise IndexError
        self._at += size
        return taken

    def _numbers(self, kind: str, count: int) -> list[Any]:
        dtype = np.dtype(self._order + kind)
        numbers: list[Any] = np.frombuffer(self._take(dtype.itemsize * count), dtype).tolist()
        return numbers

    def _number(self, kind: str) -> Any:
        return self._numbers(kind, 1)[0]

    def _string(self) -> str:
        return self._take(self._number("u8")).decode()

    def _strings(self, count: int) -> list[str]:
        data, at, length = self._data, self._at, struct.Struct(self._order + "Q")
        texts = []
        for _ in range(count):
            start = at + length.size
            at = start + length.unpack_from(data, at)[0]
            texts.append(data[start:at].decode())
        if at > len(data):
            raise IndexError
        self._at = at
        return texts

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            inner, count = self._number("u4"), self._number("u8")
            if inner == _STRING:
                return self._strings(count)
            if inner == _ARRAY:
                return [self._value(_ARRAY) for _ in range(count)]
            return self._numbers(self._kind(inner), count)
        return self._number(self._kind(kind))

    def _kind(self, number: int) -> str:
        if number not in _NUMBERS:
            raise ModelError(
                f"the metadata holds a value of the unknown kind {number}",
                where=self._where,
                remedy="Fetch the file again",
            )
        return _NUMBERS[number]
