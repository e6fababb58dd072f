"""Did the tools reach the prompt? Told by the token IDs, by their count, or by asking without tools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from probes.toolcall_suite.prompt import ToolPrompt
from ringtrue.endpoint import Reference
from ringtrue.errors import ModelError
from ringtrue.records import Exchange


@dataclass(frozen=True, slots=True)
class Expected:
    """The prompt's IDs by the model's own template, with the tools and without them."""

    with_tools: tuple[int, ...]
    without: tuple[int, ...]

    @property
    def shows_tools(self) -> bool:
        """Whether the model's own template writes the tools at all."""
        return self.with_tools != self.without


@dataclass(frozen=True, slots=True)
class ToolsInPrompt:
    """What the prompts of a night show.

    ``dropped``: the tools never reached the model, ``None`` where nothing
    shows it. ``own_template`` says that the model's own template leaves them
    out. ``differ``: the token IDs (or their count) are other ones than
    expected, ``None`` where the server shows neither; ``shown`` counts the
    answers that showed the IDs themselves.
    """

    dropped: bool | None
    own_template: bool
    differ: bool | None
    shown: int = 0


def expected_of(prompt: ToolPrompt, reference: Reference) -> Expected | None:
    """Return the expected IDs, ``None`` where the model's template refuses the conversation."""
    tools = prompt.request.tools
    try:
        without = reference.render(prompt.messages)
        return Expected(reference.render(prompt.messages, tools) if tools else without, without)
    except ModelError:
        return None  # some templates know no role of tools; the endpoint's may, and is asked all the same


def compare_prompts(answered: Iterable[tuple[Exchange, Expected | None]]) -> ToolsInPrompt:
    """Return what the prompts of ``answered`` requests, each with tools, show beside the expected IDs.

    Where the model's own template writes no tools, IDs can't tell a server that
    drops them from one that doesn't: ``dropped`` is then ``None`` (`same_length`).
    Most of the prompts decide.
    """
    dropped = differ = shown = told = own = told_drop = 0
    for exchange, expected in answered:
        if expected is None:
            continue
        own += not expected.shows_tools
        ids, usage = exchange.prompt_token_ids, exchange.usage
        if ids is not None:
            seen: tuple[bool, bool] = ids == expected.with_tools, ids == expected.without
        elif usage is not None and usage.prompt_tokens is not None:
            count = usage.prompt_tokens
            seen = count == len(expected.with_tools), count == len(expected.without)
        else:
            continue
        told += 1
        shown += ids is not None
        differ += not seen[0]
        if expected.shows_tools:
            told_drop += 1
            dropped += seen[1] and not seen[0]
    return ToolsInPrompt(
        dropped=2 * dropped > told_drop if told_drop else None,
        own_template=bool(own),
        differ=2 * differ > told if told else None,
        shown=shown,
    )


def same_length(with_tools: Exchange, without: Exchange) -> bool | None:
    """Tell whether a prompt is as long without its tools; ``None`` where a count is missing."""
    counts = [one.usage.prompt_tokens if one.usage is not None else None for one in (with_tools, without)]
    return None if None in counts else counts[0] == counts[1]
