"""Do a server's prompt logprobs agree with themselves, and with what it generates?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evals.served.scores import ServedScores, raise_failure
from probes.prompt_logprobs import PromptLogprobs
from probes.self_test_checks import NOISE, Check
from ringtrue.records import Request, Sampling

GENERATED = 8
"""Tokens that are generated, then given."""

_HONEST_PAIR = 2.0  # two honest answers lie one noise each from the exact one
_HOT = 2.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One sequence, what the server said of it, and an honest server's mean noise in a logprob (nats)."""

    ids: tuple[int, ...]
    served: PromptLogprobs
    noise: float


async def check_consistency(source: ServedScores, subject: Subject, *, k: int) -> tuple[Check, ...]:
    """Ask for one sequence again, and in ways that must not matter: another k, another temperature.

    Then let the server continue its first half and score that: a logprob must
    not depend on whether its token was generated or given.

    Raises:
        UsageError, MeasureError: as ``ServedScores.fetch``.
    """
    ids, checks = subject.ids, []
    checks.append(_same("replay", subject, await source.fetch(ids, k=k, name="replay"), "the same again"))
    if k > 1:
        fewer = await source.fetch(ids, k=k // 2, name="fewer alternatives")
        checks.append(_same("k", subject, fewer, f"k = {k // 2} instead of {k}"))
    hot = await source.fetch(ids, k=k, name="another temperature", temperature=_HOT)
    checks.append(_same("temperature", subject, hot, f"temperature {_HOT:g} instead of 0"))
    checks.append(await _prefill_against_decode(source, ids[: max(1, len(ids) // 2)], k))
    return tuple(checks)


def difference(one: PromptLogprobs, other: PromptLogprobs) -> float:
    """Return the mean difference (nats) in the token's own logprob and in the listed ones, rank by rank."""
    k = min(one.top_logprobs.shape[1], other.top_logprobs.shape[1])
    columns = (
        np.column_stack([scores.logprobs, scores.top_logprobs[:, :k]]).astype(np.float64)
        for scores in (one, other)
    )
    first, second = columns
    return float(np.abs(first - second).mean())


def _same(name: str, subject: Subject, other: PromptLogprobs, change: str) -> Check:
    moved, allowed = difference(subject.served, other), _HONEST_PAIR * subject.noise
    detail = f"{change} moves the logprobs by {moved:.3g} nats (mean, {allowed:.3g} allowed)"
    return Check(name, moved <= allowed, detail)


async def _prefill_against_decode(source: ServedScores, ids: Sequence[int], k: int) -> Check:
    name = "prefill and decode"
    room = min(GENERATED, source.context_length - len(ids))
    # At temperature 1 the logprobs are the same for servers that divide by it and for those that don't.
    exchange = await source.endpoint.send(
        Request(
            id=name,
            prompt_token_ids=tuple(ids),
            sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=room, seed=1),
            logprobs=min(k, 5),
            return_token_ids=True,
            extra={"top_k": -1, "ignore_eos": True},
        )
    )
    raise_failure(exchange, k)
    positions, generated = exchange.top_logprobs or (), exchange.token_ids or ()
    if not generated or len(positions) != len(generated):
        return Check(name, None, "the generated tokens came without IDs or logprobs")
    given = await source.fetch((*ids, *generated), k=k, name=name)
    decoded = np.array([position.sampled.logprob for position in positions])
    moved = float(np.median(np.abs(decoded - given.logprobs[-len(generated) :])))
    return Check(name, moved <= NOISE, f"given tokens lie {moved:.3g} nats from generated ones (median)")
