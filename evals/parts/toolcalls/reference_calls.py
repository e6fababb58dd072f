"""Whether the reference itself answers a request by a call: what no request says under ``auto``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.parts.toolcalls.tools_in_prompt import Expected
from probes.toolcall_suite.prompt import ToolPrompt
from ringtrue.endpoint import Reference
from toolcall_validator.families import parse


@dataclass(frozen=True, slots=True)
class Called:
    """Whether an exact answer of the reference begins a call, and one in the dtype of servers."""

    exact: bool
    again: bool


@dataclass(frozen=True, slots=True)
class Granted:
    """How long answers of the reference may be (0 tokens: none), and the dtype of its second one."""

    tokens: int = 0
    dtype: str = "bf16"


NOT_ASKED = Granted()


class ReferenceCalls:
    """Greedy answers of the reference to the requests that leave it the choice, computed once a cycle.

    The first tokens of an answer tell whether it calls. The second answer, in
    the dtype of servers, is what an honest one could have given: how well those
    two agree is the most that can be expected of an endpoint. Where the model's own
    template writes no tools the reference never calls.
    """

    def __init__(self, reference: Reference, tool_format: str | None, granted: Granted) -> None:
        self._reference, self._format, self._granted = reference, tool_format, granted
        self._running: asyncio.Task[Mapping[str, Called]] | None = None

    async def of(
        self, prompts: Sequence[ToolPrompt], expected: Mapping[str, Expected | None]
    ) -> Mapping[str, Called]:
        """Return by request what the reference does, of those that it can be asked.

        Nothing where nobody knows the model's raw format, or no tokens are granted.
        """
        if self._format is None or not self._granted.tokens:
            return {}
        if self._running is None:
            asked = {prompt.id: one for prompt in prompts if prompt.free and (one := expected[prompt.id])}
            self._running = asyncio.create_task(self._ask(asked))
        return await asyncio.shield(self._running)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _ask(self, asked: Mapping[str, Expected]) -> Mapping[str, Called]:
        return {
            name: Called(await self._calls(one, "fp32"), await self._calls(one, self._granted.dtype))
            for name, one in asked.items()
        }

    async def _calls(self, one: Expected, dtype: str) -> bool:
        if self._format is None or not one.shows_tools:
            return False
        ids = await self._reference.greedy(one.with_tools, max_tokens=self._granted.tokens, dtype=dtype)
        return bool(parse(self._format, self._reference.decode(ids), {}).calls)
