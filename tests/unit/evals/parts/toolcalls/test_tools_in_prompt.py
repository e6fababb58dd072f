"""Did the tools reach the prompt: by IDs, by counts, and where neither tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evals.parts.toolcalls.tools_in_prompt import (
    Expected,
    ToolsInPrompt,
    compare_prompts,
    expected_of,
    same_length,
)
from ringtrue.errors import ModelError
from ringtrue.interchange import from_record
from ringtrue.records import Exchange, Usage
from tests.unit.evals.parts.toolcalls.talking import SUITE, Dropping, ToolReference

WRITTEN = Expected((1, 2, 3, 4), (1, 4))
UNWRITTEN = Expected((1, 4), (1, 4))


def answered(ids: tuple[int, ...] | None = None, count: int | None = None) -> Exchange:
    exchange = from_record({"id": "x", "request": {"messages": []}, "response": {"choices": []}})
    usage = None if count is None else Usage(prompt_tokens=count)
    return replace(exchange, prompt_token_ids=ids, usage=usage)


@pytest.mark.parametrize(
    ("exchange", "expected", "dropped", "differ"),
    [
        (answered((1, 2, 3, 4)), WRITTEN, False, False),
        (answered((1, 4)), WRITTEN, True, True),
        (answered((1, 9, 4)), WRITTEN, False, True),
        (answered(count=4), WRITTEN, False, False),
        (answered(count=2), WRITTEN, True, True),
        (answered(count=7), WRITTEN, False, True),
        (answered(), WRITTEN, None, None),
        (answered((1, 4)), UNWRITTEN, None, False),
        (answered(count=9), UNWRITTEN, None, True),
        (answered((1, 4)), None, None, None),
    ],
)
def test_prompts_are_held_against_those_with_and_without_tools(
    exchange: Exchange, expected: Expected | None, dropped: bool | None, differ: bool | None
) -> None:
    found = compare_prompts([(exchange, expected)])

    assert (found.dropped, found.differ) == (dropped, differ)
    assert found.own_template == (expected is UNWRITTEN)


def test_most_of_the_prompts_decide() -> None:
    honest, dropping = (answered((1, 2, 3, 4)), WRITTEN), (answered((1, 4)), WRITTEN)

    assert compare_prompts([honest, honest, dropping]) == ToolsInPrompt(False, False, False, 3)
    assert compare_prompts([honest, dropping, dropping]) == ToolsInPrompt(True, False, True, 3)
    assert compare_prompts([]) == ToolsInPrompt(None, False, None)


def test_lengths_with_and_without_tools_are_compared_where_both_are_counted() -> None:
    assert same_length(answered(count=38), answered(count=38)) is True
    assert same_length(answered(count=138), answered(count=38)) is False
    assert same_length(answered(count=38), answered()) is None


def test_a_template_that_refuses_a_conversation_has_no_expected_ids() -> None:
    class Refusing(ToolReference):
        def render(self, messages: Any, tools: Any = None) -> tuple[int, ...]:
            if any(message["role"] == "tool" for message in messages):
                raise ModelError("the chat template refused the messages")
            return super().render(messages, tools)

    refused = expected_of(SUITE["tools-turns-answer"], Refusing())
    taken = expected_of(SUITE["tools-auto-weather"], Refusing())

    assert refused is None
    assert taken is not None
    assert taken.shows_tools
    assert (plain := expected_of(SUITE["tools-bare-fact"], Dropping())) is not None
    assert not plain.shows_tools
