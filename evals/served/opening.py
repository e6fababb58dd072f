"""The first requests to a server that is to give a baseline: what it is, and what it will not do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import numpy as np

from evals.served.scores import ServedScores, require_sendable
from probes.capabilities import Listing, list_models
from probes.http_endpoint import connect
from ringtrue.endpoint import Endpoint
from ringtrue.errors import MeasureError, UsageError
from ringtrue.records import EndpointSpec, FailureKind

_NO_SUCH_ROUTE = frozenset({FailureKind.NOT_FOUND, FailureKind.REFUSED})  # the others concern every route


@dataclass(frozen=True, slots=True)
class Opened:
    """A server that can be asked. ``model`` is the name it serves under, ``version`` what it says it is."""

    source: ServedScores
    model: str
    version: str | None

    def facts(self, dtype: str | None) -> dict[str, str | None]:
        """Return what a manifest says of the source; no address, which may hold a secret.

        ``dtype`` is ``None`` where nobody said in which one the server computes.
        """
        return {"kind": "served", "model": self.model, "version": self.version, "dtype": dtype}


@asynccontextmanager
async def open_served(
    spec: EndpointSpec,
    env: Mapping[str, str],
    corpus: Sequence[Sequence[int]],
    *,
    k: int,
    context_length: int,
    vocabulary_size: int,
    rng: np.random.Generator,
) -> AsyncIterator[Opened]:
    """Connect to a server, and make sure beforehand that it takes ``k`` and the longest sequence.

    An empty ``spec.model`` stands for the first model it serves. The lengths
    are those of the model that it claims to serve, in tokens. Closes the
    connections at the end.

    Raises:
        ConfigError, SecretError: as ``connect``.
        UsageError: the server refuses ``k``, or its context is too short for a sequence of ``corpus``.
        MeasureError: it does not answer, or gives no prompt logprobs.
    """
    async with aclosing(connect(spec, env)) as endpoint:
        listing = await list_models(endpoint)
    if listing.error is not None and listing.error.kind not in _NO_SUCH_ROUTE:
        raise MeasureError(listing.error.message)
    model = spec.model or next(iter(listing.models), "")
    if not model:
        raise UsageError("the server lists no model", where=spec.name, remedy="Name one with --served-model")
    async with aclosing(connect(replace(spec, model=model), env)) as endpoint:
        source = ServedScores(
            endpoint,
            context_length=_longest(listing, context_length),
            vocabulary_size=vocabulary_size,
            rng=rng,
        )
        await _try(source, corpus, k, limit_known=listing.context_length is not None)
        yield Opened(source, model, await _version(endpoint))


def _longest(listing: Listing, context_length: int) -> int:
    """The server's limit counts the one token that it generates."""
    promised = listing.context_length
    return context_length if promised is None else min(context_length, promised - 1)


async def _try(source: ServedScores, corpus: Sequence[Sequence[int]], k: int, *, limit_known: bool) -> None:
    if not corpus:
        raise UsageError("the corpus holds no sequence")
    index = max(range(len(corpus)), key=lambda at: len(corpus[at]))
    where = f"{source.endpoint.spec.name}, sequence {index}"
    require_sendable(len(corpus[index]), source.context_length, where=where)
    # A server that does not tell its limit shows it on the longest sequence.
    trial = corpus[0][:2] if limit_known else corpus[index]
    await source.fetch(trial, k=k, name="preflight")


async def _version(endpoint: Endpoint) -> str | None:
    reply = await endpoint.call("GET", "/version")
    version = reply.body.get("version") if isinstance(reply.body, dict) else None
    return version if isinstance(version, str) else None
