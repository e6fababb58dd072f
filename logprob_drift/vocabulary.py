"""Which token an entry of a top-k list means: by ID, before bytes, before strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from ringtrue.records import TokenLogprob

Ids = tuple[int, ...]


class Vocabulary:
    """Finds the reference's token IDs for what a server sent.

    An entry may stand for several IDs (two tokens with the same bytes); it is
    then one cell whose probability is their sum. An entry that can't be told
    for certain has no cell, and its probability counts as unseen: comparing on
    a coarser partition keeps every bound a bound.
    """

    def __init__(self, size: int, by_bytes: dict[bytes, Ids]) -> None:
        self._size = size
        self._by_bytes = by_bytes

    @classmethod
    def build(cls, size: int, token_bytes: Callable[[int], bytes]) -> Self:
        """Index a vocabulary of ``size`` tokens by the bytes that each one stands for."""
        by_bytes: dict[bytes, list[int]] = {}
        for token_id in range(size):
            by_bytes.setdefault(token_bytes(token_id), []).append(token_id)
        by_bytes.pop(b"", None)
        return cls(size, {raw: tuple(ids) for raw, ids in by_bytes.items()})

    def find(self, entry: TokenLogprob) -> Ids | None:
        """Return the IDs an entry stands for, or ``None`` where that is not certain.

        An ID outside the vocabulary is not certain. A string is taken only
        when it decoded cleanly: U+FFFD marks bytes that were lost.
        """
        if entry.token_id is not None:
            return (entry.token_id,) if 0 <= entry.token_id < self._size else None
        if entry.raw:
            return self._by_bytes.get(entry.raw)
        if not entry.token or "�" in entry.token:
            return None
        return self._by_bytes.get(entry.token.encode("utf-8", "surrogatepass"))
