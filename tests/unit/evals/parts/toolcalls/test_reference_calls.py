"""Whether the reference calls: asked once a night, where the request leaves the choice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from evals.parts.toolcalls.reference_calls import Called, Granted, ReferenceCalls
from evals.parts.toolcalls.tools_in_prompt import Expected
from probes.toolcall_suite.loading import load_suite
from probes.toolcall_suite.prompt import Due
from tests.unit.evals.parts.toolcalls.talking import Talking, ToolReference, examine, part
from tests.unit.evals.tiny import TinyReference

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo'  # cut, and a call all the same
FREE = [prompt for prompt in load_suite() if prompt.free]
SHOWN = Expected((1, 2, 3), (1, 3))


@dataclass
class Deciding(TinyReference):
    """Calls in float32 and, with every other prompt, also as a server would compute it."""

    answers: list[tuple[tuple[int, ...], str]] = field(default_factory=list)

    async def greedy(self, prompt: Sequence[int], *, max_tokens: int, dtype: str) -> tuple[int, ...]:
        await asyncio.sleep(0)
        self.answers.append((tuple(prompt), dtype))
        calls = dtype == "fp32" or prompt[0] % 2 == 0
        return self.encode(CALL if calls else "Rain.")[:max_tokens]


def calls_of(
    reference: TinyReference, tool_format: str | None = "hermes", tokens: int = 200
) -> ReferenceCalls:
    return ReferenceCalls(reference, tool_format, Granted(tokens, "bf16"))


async def test_the_reference_is_asked_twice_for_what_leaves_the_choice_and_once_for_all_endpoints() -> None:
    reference = Deciding()
    asked = calls_of(reference)
    expected = {prompt.id: Expected((at, 2, 3), (at, 3)) for at, prompt in enumerate(load_suite())}

    found, again = await asyncio.gather(*(asked.of(load_suite(), expected) for _ in range(2)))

    assert found == again
    assert found.keys() == {prompt.id for prompt in FREE}
    assert found[FREE[0].id].exact
    assert {called.again for called in found.values()} == {True, False}
    assert len(reference.answers) == 2 * len(FREE)


async def test_a_template_without_tools_never_calls_and_nothing_is_computed() -> None:
    reference = Deciding()
    expected = {FREE[0].id: Expected((1, 3), (1, 3))}

    assert await calls_of(reference).of(FREE[:1], expected) == {FREE[0].id: Called(exact=False, again=False)}
    assert reference.answers == []


async def test_without_a_format_or_tokens_nobody_is_asked() -> None:
    expected = {FREE[0].id: SHOWN}

    assert await calls_of(Deciding(), None).of(FREE[:1], expected) == {}
    assert await calls_of(Deciding(), tokens=0).of(FREE[:1], expected) == {}


class Calling(ToolReference):
    """Calls whatever it is asked, but, as a server would compute it, never for the lamp."""

    async def greedy(self, prompt: Sequence[int], *, max_tokens: int, dtype: str) -> tuple[int, ...]:
        await asyncio.sleep(0)
        lamp = "set_lamp" in self.decode(prompt) and dtype != "fp32"
        return self.encode("Rain." if lamp else CALL)[:max_tokens]


async def test_trigger_f1_stands_beside_the_reference_s_own_rerun_and_in_the_sentence() -> None:
    night = await examine(Talking(), of=part(Calling(), count=67, granted=Granted(200)))
    metrics = night.finding.evidence["metrics"]

    called = sum(prompt.due is Due.CALL for prompt in FREE)
    assert 0 < called < len(FREE)
    assert metrics["trigger_f1"]["value"] == 2 * called / (called + len(FREE))
    assert 0.9 < metrics["reference_rerun_f1"]["value"] < 1
    assert metrics["trigger_f1"]["prompts"] == len(FREE)
    words = "calls where the reference calls at an F1 of {:.2f}, its own rerun at {:.2f}"
    f1, rerun = metrics["trigger_f1"]["value"], metrics["reference_rerun_f1"]["value"]
    assert words.format(f1, rerun) in night.finding.message
