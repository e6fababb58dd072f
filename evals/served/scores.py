"""A server that speaks like vLLM as the source of a baseline's scores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import numpy as np

from probes.prompt_logprobs import PromptLogprobs, prompt_request, read_prompt_logprobs
from reference_engine.position_scores import PositionScores
from ringtrue.endpoint import Endpoint
from ringtrue.errors import MeasureError, UsageError
from ringtrue.records import Exchange, FailureKind

_SALT_BYTES = 16
_CALLERS = frozenset({FailureKind.UNAUTHORIZED, FailureKind.MODEL_NOT_FOUND, FailureKind.NOT_FOUND})


class ServedScores:
    """Implements ``reference_engine.position_scores.ScoreSource`` over an endpoint.

    Sequences may be asked for side by side: each is one request, and which of
    them comes back first changes nothing. Retries are the endpoint's.
    """

    def __init__(
        self, endpoint: Endpoint, *, context_length: int, vocabulary_size: int, rng: np.random.Generator
    ) -> None:
        """Wrap ``endpoint``, which answers for a model with this vocabulary; ``rng`` draws cache salts."""
        self.endpoint = endpoint
        self._context_length = context_length
        self._vocabulary_size = vocabulary_size
        self._rng = rng

    @property
    def context_length(self) -> int:
        """The longest sequence it takes, in tokens."""
        return self._context_length

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens of the model that the server claims to serve."""
        return self._vocabulary_size

    async def score(
        self, ids: Sequence[int], *, k: int, states: bool, rows_per_block: int
    ) -> AsyncGenerator[PositionScores, None]:
        """Yield the scores of one sequence; see ``ScoreSource.score``. ``entropy`` is ``None``.

        Raises:
            UsageError: states are asked for, the sequence cannot be sent, or the server refuses ``k``.
            MeasureError: the request failed for good, or its answer cannot be true; the place is named.
        """
        if states:
            raise UsageError(
                "a server does not give hidden states",
                where=self.endpoint.spec.name,
                remedy="Leave out --states, or let the reference engine build the baseline (no --url)",
            )
        served = await self.fetch(ids, k=k, name=f"{len(ids)} tokens")
        scores = PositionScores(
            logprobs=served.logprobs,
            ranks=served.ranks,
            top_ids=served.top_ids,
            top_logprobs=served.top_logprobs,
            tail_mass=served.tail_mass,
            entropy=None,  # a top-k does not give it
        )
        for block in scores.blocks(rows_per_block):
            yield block

    async def fetch(
        self, ids: Sequence[int], *, k: int, name: str, temperature: float = 0.0
    ) -> PromptLogprobs:
        """Ask for one sequence with ``k`` alternatives; ``name`` stands in errors.

        Raises:
            UsageError, MeasureError: as ``score``.
        """
        require_sendable(len(ids), self._context_length, where=f"{self.endpoint.spec.name}, {name}")
        salt = self._rng.bytes(_SALT_BYTES).hex()
        exchange = await self.endpoint.send(
            prompt_request(name, ids, k=k, salt=salt, temperature=temperature)
        )
        raise_failure(exchange, k)
        return read_prompt_logprobs(exchange, vocabulary_size=self._vocabulary_size)


def require_sendable(tokens: int, limit: int, *, where: str) -> None:
    """Refuse a sequence that has no scores, or that the server would.

    Raises:
        UsageError: it has fewer than two tokens or more than ``limit``.
    """
    if not 2 <= tokens <= limit:
        raise UsageError(
            f"the sequence has {tokens:,} tokens, the server takes 2 to {limit:,}",
            where=where,
            remedy="Cut the corpus shorter (--length), or start the server with a larger --max-model-len",
        )


def raise_failure(exchange: Exchange, k: int) -> None:
    """Raise what went wrong with a request for ``k`` alternatives, if anything did.

    Raises:
        UsageError: the server does not give so many, or key, model or route are wrong.
        MeasureError: every other failure, in the endpoint's own words.
    """
    failure = exchange.error
    if failure is None:
        return
    if failure.kind is FailureKind.CAPABILITY_REFUSED:
        raise UsageError(
            f"the server does not give the {k} likeliest tokens of a prompt. It says: {failure.message}",
            where=exchange.request.id,
            remedy=f"Start it with --max-logprobs {k}, or build the baseline with a smaller --k",
        )
    if failure.kind in _CALLERS:
        raise UsageError(failure.message, where=exchange.request.id)
    too_large = failure.kind is FailureKind.BAD_SHAPE
    raise MeasureError(
        failure.message,
        where=exchange.request.id,
        remedy=("Ask for a smaller --k or shorter sequences (--length). " if too_large else "")
        + "What was stored stays: the same command goes on from there",
    )
