"""The parts of a night beside the context curve, as the settings ask for them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from evals.parts.answers.part import AnswersPart
from evals.parts.border.part import BorderPart
from evals.parts.border.truth import BorderPlan
from evals.parts.greedy.part import GreedyPart
from evals.parts.part import Part
from evals.parts.prefix_cache import PrefixCachePart
from evals.parts.prompts.part import PromptsPart
from evals.parts.sampled.part import SampledPart
from evals.parts.sessions.part import SessionsPart
from evals.parts.toolcalls.part import ToolCallsPart
from evals.parts.toolcalls.reference_calls import Granted
from evals.truth import FloorCache
from probes.toolcall_suite.loading import load_suite, read_suite, together
from probes.toolcall_suite.prompt import ToolPrompt
from ringtrue.config import Settings
from ringtrue.endpoint import Reference


def parts_for(
    settings: Settings, reference: Reference, cache: FloorCache, *, alarm: float, at: datetime
) -> tuple[Part, ...]:
    """Return the parts in the order in which they are asked; one that is set to 0 is left out.

    ``alarm`` is the evidence at which one night alone is an alarm, ``at`` when
    the night began: answers are drawn anew each night, and requests with tools go
    round the suite.

    Raises:
        ConfigError: a part does not fit the model's context, its number is too small,
            or the caller's suite can't be read.
    """
    asked, seed, dtype = settings.parts, settings.probe.seed, settings.reference.floor_dtype
    k = settings.probe.top_k
    night = at.date().toordinal()
    parts: list[Part] = []
    if asked.prompts:
        parts.append(PromptsPart(reference, count=asked.prompts, at=at))
    if asked.sampled:
        parts.append(
            SampledPart(
                reference, seed=seed, floor_dtype=dtype, draws=asked.sampled, alarm=alarm, cache=cache
            )
        )
    if asked.sessions:
        parts.append(
            SessionsPart(reference, seed=seed, floor_dtype=dtype, k=k, sessions=asked.sessions, cache=cache)
        )
    if asked.prefix_cache:
        parts.append(
            PrefixCachePart(
                reference, seed=seed, floor_dtype=dtype, k=k, prompts=asked.prefix_cache, cache=cache
            )
        )
    if asked.greedy:
        parts.append(
            GreedyPart(
                reference, seed=seed, floor_dtype=dtype, prompts=asked.greedy, tokens=asked.greedy_tokens
            )
        )
    if asked.border:
        plan = BorderPlan(inputs=asked.border, level=alarm)
        parts.append(BorderPart(reference, plan, seed=seed, floor_dtype=dtype, cache=cache))
    if asked.answers:
        parts.append(
            AnswersPart(reference, seed=seed, night=night, count=asked.answers, cap=asked.answer_tokens)
        )
    if asked.toolcalls:
        parts.append(
            ToolCallsPart(
                reference,
                seed=seed,
                night=night,
                count=asked.toolcalls,
                cap=asked.toolcall_tokens,
                suite=_suite(asked.toolcall_suite),
                tool_format=settings.reference.tool_format,
                granted=Granted(asked.toolcall_reference_tokens, dtype),
            )
        )
    return tuple(parts)


def _suite(path: Path | None) -> tuple[ToolPrompt, ...]:
    own = load_suite()
    return own if path is None else together(own, read_suite(path))
