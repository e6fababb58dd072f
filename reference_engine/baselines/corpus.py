"""The sequences a baseline is about: token IDs, and nothing else of the text they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import UsageError

SHORTEST = 2
"""Tokens in the shortest sequence: a single one has nothing before it, and so no score."""

_DOMAIN = b"ringtrue corpus 1\n"


@dataclass(frozen=True, slots=True, eq=False)
class TokenSequence:
    """Token IDs [tokens], and where they came from (``file:line``), for messages."""

    token_ids: NDArray[np.int32]
    where: str

    def __len__(self) -> int:
        """Return its length in tokens."""
        return int(self.token_ids.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Sequences in a fixed order, each of at least two tokens."""

    sequences: tuple[TokenSequence, ...]

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.sequences)

    def __iter__(self) -> Iterator[TokenSequence]:
        return iter(self.sequences)

    @property
    def tokens(self) -> int:
        """Tokens in all sequences together."""
        return sum(len(sequence) for sequence in self.sequences)

    @property
    def positions(self) -> int:
        """Positions that have a score: all but the first of each sequence."""
        return self.tokens - len(self.sequences)

    def digest(self) -> str:
        """Return the sha256 over the token IDs, as 64 hex digits.

        Each sequence counts as its length and its IDs, little-endian and 4
        bytes each, so that no other division into sequences hashes alike.
        """
        digest = hashlib.sha256(_DOMAIN)
        for sequence in self.sequences:
            digest.update(len(sequence).to_bytes(4, "little"))
            digest.update(sequence.token_ids.astype("<i4", copy=False).tobytes())
        return digest.hexdigest()


def checked_sequence(
    ids: Sequence[int] | NDArray[np.int32], where: str, *, context_length: int, vocabulary_size: int
) -> TokenSequence:
    """Return a sequence that a model with this context and vocabulary can score.

    Raises:
        UsageError: it is too short or too long, or holds an ID outside the vocabulary.
    """
    if len(ids) < SHORTEST:
        raise UsageError(
            f"the sequence has {len(ids)} token{'' if len(ids) == 1 else 's'}, and the first has no score",
            where=where,
            remedy=f"Give at least {SHORTEST} tokens, or leave it out",
        )
    if len(ids) > context_length:
        raise UsageError(
            f"the sequence has {len(ids):,} tokens, the model takes {context_length:,}",
            where=where,
            remedy="Shorten it, or take a model with a longer context",
        )
    low, high = (int(ids.min()), int(ids.max())) if isinstance(ids, np.ndarray) else (min(ids), max(ids))
    if low < 0 or high >= vocabulary_size:
        raise UsageError(
            f"there is no token {low if low < 0 else high} in the model's vocabulary",
            where=where,
            remedy=f"Its IDs go from 0 to {vocabulary_size - 1}; was the file made for another model?",
        )
    return TokenSequence(np.asarray(ids, dtype=np.int32), where)
