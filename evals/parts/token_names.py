"""Which tokens look the same in an answer, and which can't be named from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringtrue.endpoint import Reference
from ringtrue.records import Exchange

UNNAMED = -1
_SPLIT = 3  # pieces from which on a token's text is no text: special tokens, which answers don't show


@dataclass(frozen=True, slots=True)
class TokenNames:
    """Groups of tokens whose texts are equal but for the white space around them, which some servers strip.

    ``groups`` [vocabulary] is `UNNAMED` for half characters, white space and
    special tokens. A token is in the same group however it is read.
    """

    groups: NDArray[np.int64]
    by_text: Mapping[str, int]

    def group_of(self, exchange: Exchange) -> int:
        """Return the group of an answer's only token: by its ID where the server gives one, or its text."""
        token = token_id_of(exchange)
        if token is None:
            return self.by_text.get((exchange.text or exchange.reasoning).strip(), UNNAMED)
        return int(self.groups[token]) if 0 <= token < self.groups.size else UNNAMED


def token_id_of(exchange: Exchange) -> int | None:
    """Return the ID of an answer's first token, ``None`` where the server does not give it."""
    if exchange.token_ids:
        return exchange.token_ids[0]
    if exchange.top_logprobs:
        return exchange.top_logprobs[0].sampled.token_id
    return None


def name_tokens(reference: Reference, likely: Iterable[int]) -> TokenNames:
    """Return the groups of ``reference``'s tokens.

    ``likely`` are the tokens that may become cells; of these it is made sure
    that they are no special tokens.
    """
    groups = np.full(reference.vocabulary_size, UNNAMED, dtype=np.int64)
    by_text: dict[str, int] = {}
    for token in range(reference.vocabulary_size):
        text = _text(reference, token)
        if text:
            groups[token] = by_text.setdefault(text, len(by_text))
    special = {
        int(groups[token]) for token in likely if groups[token] != UNNAMED and _special(reference, token)
    }
    groups[np.isin(groups, list(special))] = UNNAMED
    return TokenNames(groups, {text: group for text, group in by_text.items() if group not in special})


def _text(reference: Reference, token: int) -> str:
    try:
        return reference.token_bytes(token).decode().strip()
    except UnicodeDecodeError:
        return ""


def _special(reference: Reference, token: int) -> bool:
    """Return whether a token is none of text: plain text is never tokenized to a special one."""
    ids = reference.encode(reference.token_bytes(token).decode())
    return token not in ids and len(ids) >= _SPLIT
