"""What a server that speaks like vLLM says of every token of a prompt.

``prompt_logprobs: k`` gives one object a position, keyed by token ID: the k
likeliest tokens, and the token that stands there when it is none of them.
Only IDs are read, never the strings beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import MeasureError
from ringtrue.records import Exchange, Request, Sampling
from ringtrue.wire import parse_json

MOST_PROBABILITY = 1.0 + 1e-3
_SENTINEL = -1000.0  # nats; vLLM writes -9999 for minus infinity, and no softmax comes near either
_ABOVE_ZERO = 1e-6  # nats; the rounding that a float32 log-softmax may show


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """The scores of a prompt of n tokens, one row for each token but the first.

    ``top_ids`` and ``top_logprobs`` [n-1, k] are the listed tokens (nats),
    best first, ties by lower ID; among tokens tied with the k-th the server
    chose. ``logprobs`` and ``ranks`` [n-1] are those of the token that stands
    there, which is in the list only if it is one of the k likeliest. A rank
    within the list counts the likelier tokens; beyond it the server's own
    count stands, in which vLLM puts a token behind those it ties with.
    """

    logprobs: NDArray[np.float32]
    ranks: NDArray[np.int64]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]

    @property
    def tail_mass(self) -> NDArray[np.float64]:
        """The probability [n-1] of all tokens that are not listed, in [0, 1]."""
        seen = np.exp(self.top_logprobs.astype(np.float64)).sum(axis=1)
        tail: NDArray[np.float64] = np.clip(1.0 - seen, 0.0, 1.0)
        return tail


def prompt_request(name: str, ids: Sequence[int], *, k: int, salt: str, temperature: float = 0.0) -> Request:
    """Return the request that asks for the ``k`` likeliest tokens at each position of ``ids``.

    vLLM recomputes a prompt whose logprobs are asked for, whatever its prefix
    cache holds. ``salt``, unlike any other request's, keeps the caches of
    other servers and of other versions out of it as well.
    """
    return Request(
        id=name,
        prompt_token_ids=tuple(ids),
        sampling=Sampling(temperature=temperature, max_tokens=1),
        prompt_logprobs=k,
        return_token_ids=True,
        extra={"cache_salt": salt},
    )


def read_prompt_logprobs(exchange: Exchange, *, vocabulary_size: int) -> PromptLogprobs:
    """Return the scores that an answer without error holds; the request must have asked for them by IDs.

    Raises:
        MeasureError: a position is missing, incomplete or impossible, the
            server used other tokens than were sent, or took some from a cache.
            ``where`` names endpoint, sequence and position.
    """
    request = exchange.request
    if request.prompt_token_ids is None or not request.prompt_logprobs:
        raise ValueError("the request did not ask for prompt logprobs by token IDs")
    reader = _Reader(exchange, request.prompt_token_ids, request.prompt_logprobs)
    reader.require_same_tokens()
    return reader.read(vocabulary_size)


class _Reader:
    """One answer while it is read."""

    def __init__(self, exchange: Exchange, ids: tuple[int, ...], k: int) -> None:
        self._exchange = exchange
        self._ids = ids
        self._k = k

    def require_same_tokens(self) -> None:
        """The server must have used exactly what was sent, and computed all of it."""
        exchange, sent = self._exchange, len(self._ids)
        usage = exchange.usage
        used = len(exchange.prompt_token_ids) if exchange.prompt_token_ids is not None else None
        counted = used if used is not None or usage is None else usage.prompt_tokens
        if counted is not None and counted != sent:
            raise self._error(f"{sent} tokens were sent and the server used {counted}: it cuts or adds some")
        if exchange.prompt_token_ids is not None and exchange.prompt_token_ids != self._ids:
            pairs = zip(self._ids, exchange.prompt_token_ids, strict=True)
            at = next(at for at, (mine, its) in enumerate(pairs) if mine != its)
            raise self._error("the server used another token than was sent", at)
        if usage is not None and usage.cached_tokens:
            raise self._error(
                f"the server took {usage.cached_tokens} tokens from its prefix cache, which moves logprobs",
                remedy="Start it without a prefix cache (vLLM: --no-enable-prefix-caching)",
            )

    def read(self, vocabulary_size: int) -> PromptLogprobs:
        """Read all positions, then judge them together."""
        rows = len(self._ids) - 1
        top_ids = np.empty((rows, self._k), np.int32)
        top = np.empty((rows, self._k), np.float64)
        own = np.empty(rows, np.float64)
        own_ranks = np.empty(rows, np.int64)
        listed = np.empty(rows, np.bool_)
        for row, entries in enumerate(self._positions()):
            here = str(self._ids[row + 1])
            own[row], own_ranks[row] = self._own(entries, here, row)
            listed[row] = len(entries) == self._k
            if not listed[row]:
                entries = {key: value for key, value in entries.items() if key != here}  # noqa: PLW2901
            top_ids[row], top[row] = self._row(entries, row)
        order = np.lexsort((top_ids, -top), axis=-1)
        top_ids, top = np.take_along_axis(top_ids, order, 1), np.take_along_axis(top, order, 1)
        self._require_possible(top, own, top_ids, vocabulary_size)
        self._refuse_first(
            ~listed & (own > top[:, -1]), "a listed token is less likely than the unlisted one"
        )
        likelier = (top > own[:, None]).sum(axis=1) + 1
        beyond = own < top[:, -1]
        self._refuse_first(
            beyond & (own_ranks <= self._k), "the rank of the unlisted token is missing or low"
        )
        return PromptLogprobs(
            logprobs=np.minimum(own, 0.0).astype(np.float32),
            ranks=np.where(beyond, own_ranks, likelier),
            top_ids=top_ids,
            top_logprobs=np.minimum(top, 0.0).astype(np.float32),
        )

    def _positions(self) -> list[dict[str, Any]]:
        body, _ = parse_json(b"".join(chunk.data for chunk in self._exchange.wire))
        choices = body.get("choices") if isinstance(body, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        positions = choice.get("prompt_logprobs") if isinstance(choice, dict) else None
        if not isinstance(positions, list):
            raise self._error(
                "the answer has no prompt_logprobs",
                remedy="Only vLLM, and servers that speak like it, give them",
            )
        if len(positions) != len(self._ids):
            raise self._error(f"{len(self._ids)} tokens were sent and {len(positions)} came back scored")
        for at, position in enumerate(positions[1:], start=1):
            if not isinstance(position, dict) or not position:
                raise self._error("nothing is said about this token", at)
        return positions[1:]

    def _own(self, entries: Mapping[str, Any], here: str, row: int) -> tuple[float, int]:
        if not self._k <= len(entries) <= self._k + 1:
            raise self._error(f"{len(entries)} tokens came where the {self._k} likeliest were asked", row + 1)
        if here not in entries:
            raise self._error("the token that stands here is not among those given", row + 1)
        rank = entries[here].get("rank") if isinstance(entries[here], dict) else None
        return _logprob(entries[here]), rank if type(rank) is int else 0

    def _row(self, entries: Mapping[str, Any], row: int) -> tuple[list[int], list[float]]:
        try:
            return [int(key) for key in entries], [_logprob(value) for value in entries.values()]
        except ValueError:
            raise self._error("a token is named by something else than its ID", row + 1) from None

    def _require_possible(
        self,
        top: NDArray[np.float64],
        own: NDArray[np.float64],
        top_ids: NDArray[np.int32],
        vocabulary_size: int,
    ) -> None:
        values = np.column_stack([top, own])
        self._refuse_first(
            (top_ids < 0) | (top_ids >= vocabulary_size),
            f"a token ID is outside the model's vocabulary of {vocabulary_size}",
        )
        self._refuse_first(np.isnan(values), "a logprob is NaN or no number")
        self._refuse_first(values <= _SENTINEL, "a logprob is minus infinity or a sentinel")
        self._refuse_first(values > _ABOVE_ZERO, "a logprob is above 0")
        self._refuse_first(np.exp(top).sum(axis=1) > MOST_PROBABILITY, "the probabilities sum to more than 1")

    def _refuse_first(self, bad: NDArray[np.bool_], what: str) -> None:
        """Refuse the answer for the first row of ``bad`` [rows, ...] that holds a true value."""
        if bad.any():
            raise self._error(what, int(np.argwhere(bad)[0, 0]) + 1)

    def _error(self, what: str, position: int | None = None, *, remedy: str | None = None) -> MeasureError:
        place = "" if position is None else f", position {position}"
        return MeasureError(
            what, where=f"{self._exchange.endpoint}, {self._exchange.request.id}{place}", remedy=remedy
        )


def _logprob(entry: object) -> float:
    """A logprob as received; what is no number, null included, becomes NaN."""
    value = entry.get("logprob") if isinstance(entry, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
