"""A comparison of two models over the whole vocabulary, position by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


class SequenceRows(Protocol):
    """What was measured along one sequence, an array with an entry for each token but the first."""

    @property
    def kl(self) -> _Floats:
        """KL(P || Q), nats."""

    @property
    def reverse_kl(self) -> _Floats:
        """KL(Q || P), nats."""

    @property
    def js(self) -> _Floats:
        """Jensen-Shannon divergence, nats."""

    @property
    def top1(self) -> NDArray[np.bool_]:
        """Whether both have the same most likely token."""

    @property
    def logprob_p(self) -> _Floats:
        """P's logprob of the token that stands there, nats."""

    @property
    def logprob_q(self) -> _Floats:
        """Q's logprob of it, nats."""


@dataclass(frozen=True, slots=True)
class PositionDivergences:
    """How far Q lies from the reference P at every scored position of several sequences.

    All arrays have shape [positions], sequence after sequence. ``sequence``
    is the index of the sequence, ``context`` the number of tokens before the
    scored one, from 1. Divergences and logprobs are in nats; the logprobs are
    of the token that stands there.

    Raises:
        ValueError: a value is not finite (sequence and context are named): it
            must be reported where it arose, and never averaged.
    """

    sequence: NDArray[np.int64]
    context: NDArray[np.int64]
    kl: _Floats
    reverse_kl: _Floats
    js: _Floats
    top1: NDArray[np.bool_]
    logprob_p: _Floats
    logprob_q: _Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name)
            if values.shape != self.sequence.shape:
                raise ValueError(f"{field.name} has shape {values.shape}, not {self.sequence.shape}")
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                at = f"sequence {self.sequence[bad[0]]}, after {self.context[bad[0]]} tokens"
                raise ValueError(f"{field.name} is not finite in {at}")

    @classmethod
    def from_sequences(cls, rows: Sequence[SequenceRows]) -> Self:
        """Join what was measured along each sequence, in their order.

        Raises:
            ValueError: there is no position at all, or a value is not finite.
        """
        lengths = [part.kl.shape[0] for part in rows]
        if not sum(lengths):
            raise ValueError("no position was scored")

        def joined(name: str) -> NDArray[np.float64]:
            return np.concatenate([getattr(part, name) for part in rows])

        return cls(
            sequence=np.repeat(np.arange(len(rows)), lengths),
            context=np.concatenate([np.arange(1, length + 1) for length in lengths]),
            kl=joined("kl"),
            reverse_kl=joined("reverse_kl"),
            js=joined("js"),
            top1=joined("top1").astype(np.bool_),
            logprob_p=joined("logprob_p"),
            logprob_q=joined("logprob_q"),
        )

    def __len__(self) -> int:
        """Return the number of positions."""
        return int(self.kl.shape[0])

    @property
    def delta_p(self) -> _Floats:
        """Q's probability of the token that stands there less P's."""
        return np.asarray(np.exp(self.logprob_q) - np.exp(self.logprob_p))

    @property
    def clusters(self) -> tuple[NDArray[np.int64], int]:
        """The sequence of each position, counted from 0 without gaps, and the number of sequences."""
        present, dense = np.unique(self.sequence, return_inverse=True)
        return dense, int(present.size)

    def keep(self, wanted: NDArray[np.bool_]) -> Self:
        """Return the positions where ``wanted`` [positions] is true."""
        return replace(self, **{field.name: getattr(self, field.name)[wanted] for field in fields(self)})

    def skip(self, rows: int) -> Self:
        """Return what is left without the first ``rows`` positions of each sequence.

        llama.cpp's tool scores the second half of each chunk alone: with
        chunks of 512 tokens that is a ``skip`` of 256.

        Raises:
            ValueError: nothing is left.
        """
        if not bool((self.context > rows).any()):
            raise ValueError(f"no sequence has more than {rows} positions")
        return self.keep(self.context > rows)


def require_floor(positions: PositionDivergences, floor: _Floats) -> None:
    """Refuse a floor that is not one finite number for each position.

    Raises:
        ValueError: the shape is another, or a value is not finite.
    """
    if floor.shape != positions.kl.shape:
        raise ValueError(f"the floor has shape {floor.shape}, not {positions.kl.shape}")
    if not bool(np.isfinite(floor).all()):
        raise ValueError("a value of the floor is not finite")
