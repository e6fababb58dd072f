"""What a judge needs of a tokenizer: text of IDs, and which IDs are markers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One tokenizer's IDs.

    ``decode`` gives the text of IDs with markers included; it is only asked for
    IDs in [0, ``size``), where ``size`` is known. ``special`` are the IDs of
    all markers (added tokens, control tokens, also those that answers show).
    ``bos`` begins a prompt, ``ends`` end a turn or an answer.
    """

    decode: Callable[[Sequence[int]], str]
    special: frozenset[int] = frozenset()
    bos: int | None = None
    ends: frozenset[int] = frozenset()
    size: int | None = None

    def knows(self, token_id: int) -> bool:
        """Tell whether an ID can be one of this vocabulary."""
        return token_id >= 0 and (self.size is None or token_id < self.size)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of IDs; one that the vocabulary lacks is written as ``[unknown ID 70000]``."""
        if all(self.knows(i) for i in ids):
            return self.decode(ids) if ids else ""
        parts: list[str] = []
        known: list[int] = []
        for token_id in ids:
            if self.knows(token_id):
                known.append(token_id)
                continue
            parts += [self.decode(known) if known else "", f"[unknown ID {token_id}]"]
            known = []
        return "".join(parts) + (self.decode(known) if known else "")

    def text_of(self, ids: Sequence[int], start: int, stop: int) -> str:
        """Return the text of ``ids[start:stop]`` as it reads behind the token before it.

        SentencePiece decoders drop the space that a text begins with; behind
        another token they keep it.
        """
        if start == 0 or start >= stop:
            return self.text(ids[start:stop])
        before = self.text(ids[start - 1 : start])
        both = self.text(ids[start - 1 : stop])
        return both.removeprefix(before) if both.startswith(before) else self.text(ids[start:stop])
