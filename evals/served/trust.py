"""May a server speak for a model? Asked before a baseline is built from it (docs/methods.md, "Baselines")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.served.consistency import Subject, check_consistency
from evals.served.prompts import check_prompts
from evals.served.sample import NEEDED, Sample, judge_divergences, judge_pairs
from evals.served.scores import ServedScores
from logprob_drift.truncated import truncated_kl
from probes.prompt_logprobs import PromptLogprobs
from probes.self_test import SelfTest, self_test
from probes.self_test_checks import Check
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from reference_engine.recomputation import Recomputed, recompute
from ringtrue.errors import MeasureError, UsageError
from ringtrue.records import State

SAMPLE = 8
"""Sequences recomputed unless another number is asked for."""

_SELF_TEST_K = 20


@dataclass(frozen=True, slots=True)
class TrustPlan:
    """How a server is examined: ``sample`` sequences drawn by ``seed``, its floor in ``floor_dtype``."""

    k: int
    sample: int = SAMPLE
    floor_dtype: str = "bf16"
    seed: int = 0


async def require_trust(
    source: ServedScores,
    engine: Engine,
    model: LoadedModel,
    corpus: Sequence[Sequence[int]],
    plan: TrustPlan,
    *,
    say: Callable[[str], None],
) -> Mapping[str, Any]:
    """Examine a server against ``model``, which is in float32; return the figures, for the manifest.

    In this order: the self-test of its logprobs; token IDs of texts and chats;
    ``plan.sample`` sequences of ``corpus`` recomputed exactly, beside the
    noise floor; and whether its prompt logprobs agree with themselves.
    ``say`` gets a line for each part. What could not be measured is refused
    like what is wrong.

    Raises:
        UsageError: the sample is too small for any answer.
        MeasureError: the server is not to be trusted, or that could not be told; the reasons are named.
    """
    _require_enough(len(corpus), plan.sample)
    tested = await _self_test(source, model, plan)
    prompts = await check_prompts(source.endpoint, model.codec)
    say(f"token IDs are the model's own in {prompts} prompts")
    rng = np.random.default_rng(plan.seed)
    chosen = sorted(rng.permutation(len(corpus))[: plan.sample].tolist())
    sequences = [tuple(map(int, corpus[index])) for index in chosen]
    say(f"recomputing {len(sequences)} sequences of {sum(map(len, sequences)):,} tokens exactly")
    served = await _fetch_all(source, sequences, plan.k)
    wanted = [_columns(scores, ids) for scores, ids in zip(served, sequences, strict=True)]
    exact = await recompute(
        engine, model, sequences, wanted, k=plan.k, dtype=plan.floor_dtype, seed=plan.seed
    )
    measured = [_measure(scores, truth) for scores, truth in zip(served, exact, strict=True)]
    divergence = judge_divergences(_column(measured, "divergence"), _column(measured, "floor"), rng)
    own = judge_pairs(_column(measured, "own"), _column(measured, "own_floor"))
    longest = max(range(len(sequences)), key=lambda at: len(sequences[at]))
    subject = Subject(sequences[longest], served[longest], measured[longest].noise)
    checks = await check_consistency(source, subject, k=plan.k)
    _refuse(source, checks, divergence, own)
    say(f"trusted: {divergence}")
    return {
        "self_test": None if tested is None else {"scaling": tested.scaling, "requests": tested.requests},
        "prompts": prompts,
        "checks": {check.name: check.detail for check in checks},
        "sample": {"sequences": chosen, "floor_dtype": plan.floor_dtype, "seed": plan.seed}
        | {"divergence": _figures(divergence), "own_logprob": _figures(own)},
    }


@dataclass(frozen=True, slots=True)
class _Measured:
    """One sequence: means over its positions, in nats, of what was served and of an honest server."""

    divergence: float
    floor: float
    own: float  # difference in the logprob of the token that stands there
    own_floor: float
    noise: float  # difference of an honest server in any listed logprob


def _measure(served: PromptLogprobs, truth: Recomputed) -> _Measured:
    exact_top, exact_own = truth.exact[:, :-1], truth.exact[:, -1]
    honest = truth.honest
    listed = np.column_stack([truth.exact_honest - honest.top_logprobs, exact_own - honest.logprobs])
    return _Measured(
        divergence=float(truncated_kl(exact_top, served.top_logprobs).mean()),
        floor=float(truncated_kl(truth.exact_honest, honest.top_logprobs).mean()),
        own=float(np.abs(served.logprobs - exact_own).mean()),
        own_floor=float(np.abs(honest.logprobs - exact_own).mean()),
        noise=float(np.abs(listed).mean()),
    )


def _columns(served: PromptLogprobs, ids: Sequence[int]) -> NDArray[np.int32]:
    """The IDs whose exact logprobs are wanted: those listed, and last the token that stands there."""
    return np.column_stack([served.top_ids, np.array(ids[1:], dtype=np.int32)])


def _column(measured: Sequence[_Measured], name: str) -> NDArray[np.float64]:
    return np.array([getattr(one, name) for one in measured])


async def _self_test(source: ServedScores, model: LoadedModel, plan: TrustPlan) -> SelfTest | None:
    """The self-test of any endpoint; ``None`` for a model without a template, whose chats have no answer."""
    if model.template_hash is None:
        return None
    tested = await self_test(source.endpoint, k=min(_SELF_TEST_K, plan.k))
    if tested.trusted is not True:
        raise _refusal(source, tested.reasons, "Run `ringtrue inspect` on it")
    return tested


async def _fetch_all(
    source: ServedScores, sequences: Sequence[Sequence[int]], k: int
) -> list[PromptLogprobs]:
    places = asyncio.Semaphore(max(1, source.endpoint.spec.limits.max_in_flight))

    async def fetch(number: int, ids: Sequence[int]) -> PromptLogprobs:
        async with places:
            return await source.fetch(ids, k=k, name=f"sample {number}")

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch(number, ids)) for number, ids in enumerate(sequences)]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _require_enough(sequences: int, sample: int) -> None:
    if sample < NEEDED:
        raise UsageError(
            f"a sample of {sample} sequences can't vouch for a server",
            remedy=f"Give --sample {NEEDED} or more",
        )
    if sequences < NEEDED:
        raise MeasureError(
            f"the corpus has {sequences} sequences, and it takes {NEEDED} to tell whether a server is right",
            remedy="Give more text, cut it shorter (--length), or let the reference engine build it",
        )


def _refuse(source: ServedScores, checks: Sequence[Check], divergence: Sample, own: Sample) -> None:
    reasons = [f"{check.name}: {check.detail}" for check in checks if check.passed is not True]
    for name, sample in (("distributions", divergence), ("logprobs of the tokens there", own)):
        if sample.state is not State.OK:
            reasons.append(f"{name}: {sample}")
    if not reasons:
        return
    unknown = [sample for sample in (divergence, own) if sample.state is State.UNKNOWN]
    if len(unknown) == len(reasons):
        needed = max(sample.needed or 0 for sample in unknown)
        raise _refusal(source, reasons, f"Recompute more sequences: --sample {needed}" if needed else _WRONG)
    raise _refusal(source, reasons, _WRONG)


_WRONG = "Check which weights it serves, their dtype and that of its cache: `ringtrue probe` names the cause"


def _refusal(source: ServedScores, reasons: Sequence[str], remedy: str) -> MeasureError:
    return MeasureError(
        f"no baseline is built from this server: {'; '.join(reasons)}",
        where=source.endpoint.spec.name,
        remedy=remedy,
    )


def _figures(sample: Sample) -> dict[str, Any]:
    kept = ("n", "mean", "floor", "largest", "within")
    return {name: value for name, value in asdict(sample).items() if name in kept}
