"""Whole answers spoiled behind the parser: leaks, identities, finish reasons, and what a client sees.

Each function takes an answer and returns it spoiled, or as it is where it has
nothing to spoil.
"""

from __future__ import annotations

from dataclasses import replace

from reference_engine.server.tool_calls.delivered import Delivered
from reference_engine.server.tool_calls.scene import FOREIGN, Scene
from toolcall_validator.families import RawCall, render
from toolcall_validator.families.rendering import as_json
from toolcall_validator.markers import ENVELOPES

RUNAWAY = 12  # identical calls of an answer that cannot stop
_LOOP = "!" * 96  # what a server prints whose logits are NaN


def leak_content(told: Delivered, scene: Scene) -> Delivered:
    """Show the raw call in the content, beside the delivered one."""
    shown = _marked(scene) if told.calls else f"\n{scene.marker}"
    return replace(told, content=told.content + shown)


def leak_reasoning(told: Delivered, scene: Scene) -> Delivered:
    """Show the raw call in the reasoning, beside the delivered one."""
    return replace(told, reasoning=told.reasoning + _marked(scene)) if told.calls else told


def call_swallowed(told: Delivered, scene: Scene) -> Delivered:
    """Leave the whole call in the reasoning and deliver none."""
    return _without_calls(told, reasoning=scene.raw) if told.calls else told


def unparsed_json(told: Delivered, _: Scene) -> Delivered:
    """Leave the calls as plain JSON in the content and deliver none."""
    if not told.calls:
        return told
    lines = [f'{{"name": {as_json(call.name)}, "arguments": {call.arguments}}}' for call in told.calls]
    return _without_calls(told, content="\n".join(lines))


def unclosed(told: Delivered, scene: Scene) -> Delivered:
    """Leave a call in the content that opens and never closes; where the format has no end, Hermes's."""
    if not told.calls:
        return told
    raw = scene.raw
    if not any(opening in raw for opening, _ in ENVELOPES):
        raw = render("hermes", [RawCall(call.name, call.arguments) for call in told.calls])
    opening, closing = next((a, b) for a, b in ENVELOPES if a in raw)
    start = raw.index(opening)
    end = raw.find(closing, start)
    return _without_calls(told, content=raw[: end if end >= 0 else len(raw)].rstrip())


def missing_id(told: Delivered, _: Scene) -> Delivered:
    """Deliver calls without an identity."""
    return replace(told, calls=tuple(replace(call, id=None) for call in told.calls))


def duplicate_id(told: Delivered, scene: Scene) -> Delivered:
    """Give every call one identity: one of the conversation, where it has any."""
    same = min(scene.asked.past_ids, default="call_0")
    return replace(told, calls=tuple(replace(call, id=same) for call in told.calls))


def family_id(told: Delivered, _: Scene) -> Delivered:
    """Give calls identities of another form than the family's own."""
    calls = enumerate(told.calls)
    return replace(told, calls=tuple(replace(call, id=f"call_{place:08x}") for place, call in calls))


def no_call(told: Delivered, _: Scene) -> Delivered:
    """Announce calls and deliver none."""
    return replace(told, calls=(), finish_reason="tool_calls")


def stop_with_call(told: Delivered, _: Scene) -> Delivered:
    """Finish with ``stop`` although there is a call."""
    return replace(told, finish_reason="stop") if told.calls else told


def length_hidden(told: Delivered, _: Scene) -> Delivered:
    """Say nothing of the cap that cut the answer."""
    hidden = "tool_calls" if told.calls else "stop"
    return replace(told, finish_reason=hidden) if told.finish_reason == "length" else told


def missing_finish(told: Delivered, _: Scene) -> Delivered:
    """End without a finish reason."""
    return replace(told, finish_reason=None)


def empty(told: Delivered, _: Scene) -> Delivered:
    """Deliver nothing."""
    return _without_calls(told)


def reasoning_only(told: Delivered, _: Scene) -> Delivered:
    """Deliver what was said as reasoning, and nothing else."""
    thought = told.reasoning or told.content or "The answer follows from the question."
    return _without_calls(told, reasoning=thought)


def runaway_calls(told: Delivered, _: Scene) -> Delivered:
    """Repeat the first call, each time under an identity of its own."""
    first = told.calls[:1]
    copies = tuple(replace(call, id=f"{call.id}_{n}") for call in first for n in range(RUNAWAY))
    return replace(told, calls=copies)


def degenerate_loop(told: Delivered, _: Scene) -> Delivered:
    """Print one sign for ever."""
    return replace(told, content=_LOOP, calls=(), finish_reason="length")


def foreign_script(told: Delivered, _: Scene) -> Delivered:
    """Add letters of another script to the content."""
    return replace(told, content=f"{told.content} {FOREIGN}")


def structured_invalid(told: Delivered, scene: Scene) -> Delivered:
    """Put a fence around the JSON that was asked for."""
    if scene.asked.structure is None or told.calls:
        return told
    return replace(told, content=f"```json\n{told.content}\n```")


def _without_calls(told: Delivered, *, content: str = "", reasoning: str = "") -> Delivered:
    return replace(told, content=content, reasoning=reasoning, calls=(), finish_reason="stop")


def _marked(scene: Scene) -> str:
    return scene.raw if scene.marker in scene.raw else scene.marker + scene.raw
