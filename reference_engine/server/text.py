"""Text from tokens as they come, cut at a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from reference_engine.models.codec import TokenCodec


class TextAssembler:
    """Turns tokens into text without ever showing half a character or part of a stop string."""

    def __init__(self, codec: TokenCodec, stops: Sequence[str]) -> None:
        self._codec = codec
        self._stops = [stop for stop in stops if stop]
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self.stopped = False

    def feed(self, token_id: int) -> str:
        """Return the text that this token completes; control tokens have none."""
        raw = b"" if self._codec.is_special(token_id) else self._codec.token_bytes(token_id)
        return self._release(self._decoder.decode(raw))

    def finish(self) -> str:
        """Return what is still held back when no token follows."""
        if self.stopped:
            return ""
        return self._release(self._decoder.decode(b"", final=True)) + self._held

    def _release(self, text: str) -> str:
        self._held += text
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.stopped = True
            ready, self._held = self._held[: min(found)], ""
            return ready
        border = len(self._held) - max((_overlap(self._held, stop) for stop in self._stops), default=0)
        ready, self._held = self._held[:border], self._held[border:]
        return ready


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of ``text`` that begins ``stop``."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
