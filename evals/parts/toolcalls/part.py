"""Requests with tools, plain and streamed: what broke, in which form, and whose fault it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from evals.availability import asked, unmeasured, unmeasured_because
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.toolcalls.findings import Context, beyond_tolerance, state_night
from evals.parts.toolcalls.harness import Harness
from evals.parts.toolcalls.judging import Judge, answers_of
from evals.parts.toolcalls.prompts import JudgedPrompt
from evals.parts.toolcalls.rates import metrics_of, numbers_of, sentence_of
from evals.parts.toolcalls.reference_calls import NOT_ASKED, Granted, ReferenceCalls
from evals.parts.toolcalls.tool_format import detect_format
from evals.parts.toolcalls.tools_in_prompt import (
    Expected,
    ToolsInPrompt,
    compare_prompts,
    expected_of,
    same_length,
)
from probes.dialects import dialect_named
from probes.toolcall_suite.loading import load_suite
from probes.toolcall_suite.prompt import ToolPrompt
from probes.toolcalls import bare, of_the_night, paired, raw
from ringtrue.endpoint import Reference
from ringtrue.errors import ConfigError
from ringtrue.records import Check, EndpointSpec, Exchange, Finding, Party, Request
from toolcall_validator.families.formats import FORMATS
from toolcall_validator.schemas import Schemas


class ToolCallsPart:
    """Asks ``count`` requests of the suite, each plain and streamed, and judges every answer.

    ``night`` is the number of the night (a UTC day): it alone decides which
    requests are asked, by rotation, and the basis does not depend on it.
    ``tool_format`` is the model's raw format, ``None`` to have it told by its
    template. What a raw text can tell is read from the answer's own token IDs
    where the server returns them, else the prompt is asked again as token IDs,
    and only for requests with faults. Under ``auto`` the reference answers as
    well, where ``granted`` lets it: whether it calls.

    Raises:
        ConfigError: ``count`` is below 1, ``tool_format`` is none that is known,
            or a prompt with its answer does not fit the model's context.
    """

    name = "toolcalls"
    check = Check.TOOLCALLS

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        night: int,
        count: int = 16,
        cap: int = 256,
        suite: Sequence[ToolPrompt] | None = None,
        tool_format: str | None = None,
        granted: Granted = NOT_ASKED,
    ) -> None:
        if tool_format is not None and tool_format not in FORMATS:
            raise ConfigError(
                f"no tool-call format is named {tool_format!r}",
                where="reference.tool_format",
                remedy=f"There are: {', '.join(FORMATS)}",
            )
        self._suite = load_suite() if suite is None else tuple(suite)
        self._reference, self._seed, self._night = reference, seed, night
        self._count, self._cap = count, cap
        self._prompts = of_the_night(self._suite, count, night)
        self._format = tool_format or detect_format(reference)
        self._reference_calls = ReferenceCalls(reference, self._format, granted)
        self._expected: Mapping[str, Expected | None] = {
            prompt.id: expected_of(prompt, reference) for prompt in self._prompts
        }
        longest = max((self._tokens(prompt) for prompt in self._prompts), default=0)
        if longest + cap > reference.context_length:
            raise ConfigError(
                f"a request of {longest} tokens and an answer of {cap} do not fit: {reference.model} takes "
                f"{reference.context_length} tokens",
                where="parts.toolcalls",
                remedy="Shorten the requests of parts.toolcall_suite, or set it to 0",
            )

    @property
    def basis(self) -> str:
        """What the numbers depend on: reference, whole suite, how many of it a night asks, cap, format."""
        suite = [(prompt.id, repr(prompt.request), prompt.due, prompt.tools) for prompt in self._suite]
        settings = (self._reference.fingerprint, suite, self._count, self._cap, self._format)
        return hashlib.sha256(repr(settings).encode()).hexdigest()[:16]

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return all that may be sent: each request twice, a raw one where it may be needed, and one bare.

        The tokens are those of the model's own template, or of the tools as
        JSON where that leaves them out: another server may not. Requests that
        don't fit the endpoint's context are left out.
        """
        dialect = dialect_named(spec.dialect)
        planned: list[tuple[Request, int]] = []
        for prompt in self._fitting(spec):
            tokens = self._tokens(prompt)
            pair = paired(prompt, cap=self._cap, night=self._night, dialect=dialect)
            planned += [(request, tokens) for request in pair]
            again = self._raw_request(prompt, spec)
            if again is not None:
                planned.append((again, tokens))
        with_tools = [prompt for prompt in self._fitting(spec) if prompt.request.tools]
        if with_tools:
            longest = max(with_tools, key=self._bare_tokens)
            without = bare(longest, night=self._night, dialect=dialect)
            planned.append((without, self._bare_tokens(longest)))
        return planned

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask every request in both forms, put raw text beside faults, and state what the night shows."""
        name = asker.spec.name
        prompts = self._fitting(asker.spec)
        if not prompts:
            reason = f"the endpoint takes {asker.spec.context_length:,} tokens, and no request fits"
            return (unmeasured(name, self.check, reason, Party.CALLER),)
        pairs = [paired(p, cap=self._cap, night=self._night, dialect=asker.dialect) for p in prompts]
        order = asker.rng().permutation(len(pairs))
        async for _ in asker.ask([request for at in order for request in pairs[at]]):
            pass
        answers = answers_of(asker.exchanges)
        if not answers:
            return (_nothing(name, asker),)
        judge = Judge(Harness(self._reference, Schemas(), self._format))
        judged = [judge.judge(prompt, answers.get(prompt.id, {})) for prompt in prompts]
        judged, why = await self._beside_raw_text(asker, judge, judged)
        metrics = metrics_of(judged, await self._reference_calls.of(self._prompts, self._expected))
        for metric, value, n in numbers_of(metrics):
            await asker.number(metric, value, "share", n)
        context = Context(
            endpoint=name,
            asked=len(prompts),
            suite=len(self._suite),
            tools=await self._tools(asker, judged),
            logprobs=known.logprobs,
            harness=why,
            rates=sentence_of(metrics),
            stopped=asker.stopped.message if asker.stopped is not None else None,
            cap=self._cap,
            numbers=metrics.as_dict(),
        )
        return state_night([one for one in judged if one.answers or one.cut], context)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        await self._reference_calls.aclose()

    async def _beside_raw_text(
        self, asker: Asker, judge: Judge, judged: Sequence[JudgedPrompt]
    ) -> tuple[list[JudgedPrompt], str | None]:
        """Ask again, as token IDs, what the answers' own tokens could not settle, and say what is left."""
        waiting = {one.prompt.id: one for one in judged if judge.unsettled(one)}
        if not waiting:
            return list(judged), None
        asked_again = [
            request
            for one in waiting.values()
            if (request := self._raw_request(one.prompt, asker.spec)) is not None
        ]
        raws: dict[str, Exchange] = {}
        async for exchange in asker.ask(asked_again):
            raws[exchange.request.id.rpartition("/")[0]] = exchange
        settled = [judge.beside(one, raws[one.prompt.id]) if one.prompt.id in raws else one for one in judged]
        left = sum(judge.unsettled(one) for one in settled)
        return settled, self._why_not(asker.spec, left) if left else None

    def _why_not(self, spec: EndpointSpec, left: int) -> str:
        if self._format is None:
            reason = "the model's raw format is not known: set reference.tool_format"
        elif not dialect_named(spec.dialect).returns_token_ids:
            reason = f"the dialect {spec.dialect} gives no token IDs"
        else:
            reason = "the server forces their form or did not show the tokens"
        return f"whose fault it is was not settled for {left} requests, {reason}"

    async def _tools(self, asker: Asker, judged: Sequence[JudgedPrompt]) -> ToolsInPrompt:
        with_tools = [one for one in judged if one.answers and one.prompt.request.tools]
        seen = compare_prompts(
            (next(iter(one.answers.values())), self._expected[one.prompt.id]) for one in with_tools
        )
        scored = [one for one in judged if one.scored]
        faulty = sum(bool(one.failed(check)) for one in scored for check in (Check.TOOLCALLS, Check.OUTPUT))
        if (
            seen.dropped is not None
            or not with_tools
            or not beyond_tolerance(min(faulty, len(scored)), len(scored))
        ):
            return seen
        one = with_tools[0]
        dropped = seen.dropped
        async for exchange in asker.ask([bare(one.prompt, night=self._night, dialect=asker.dialect)]):
            dropped = same_length(next(iter(one.answers.values())), exchange)
        own = (expected := self._expected[one.prompt.id]) is not None and not expected.shows_tools
        return ToolsInPrompt(dropped, own, seen.differ, seen.shown)

    def _raw_request(self, prompt: ToolPrompt, spec: EndpointSpec) -> Request | None:
        """Return the raw question, ``None`` where its answer would not be what the chat was answered with.

        Of calls and JSON that a server forces upon the model the raw
        completion knows nothing.
        """
        dialect, expected = dialect_named(spec.dialect), self._expected[prompt.id]
        if not dialect.returns_token_ids or self._format is None or expected is None or not prompt.free:
            return None
        return raw(prompt, expected.with_tools, cap=self._cap, night=self._night, dialect=dialect)

    def _fitting(self, spec: EndpointSpec) -> tuple[ToolPrompt, ...]:
        if spec.context_length is None:
            return self._prompts
        return tuple(p for p in self._prompts if self._tokens(p) + self._cap <= spec.context_length)

    def _bare_tokens(self, prompt: ToolPrompt) -> int:
        expected = self._expected[prompt.id]
        return self._tokens(prompt) if expected is None else len(expected.without)

    def _tokens(self, prompt: ToolPrompt) -> int:
        expected = self._expected[prompt.id]
        if expected is not None and (expected.shows_tools or not prompt.request.tools):
            return len(expected.with_tools)
        text = repr(prompt.request.tools or "") + ("" if expected is not None else repr(prompt.messages))
        return len(self._reference.encode(text)) + (len(expected.without) if expected is not None else 0)


def _nothing(endpoint: str, asker: Asker) -> Finding:
    sent = asked(asker.exchanges)
    failure = next((exchange.error for exchange in sent or asker.exchanges if exchange.error), None)
    if failure is None:
        return unmeasured(endpoint, Check.TOOLCALLS, "no request was sent", Party.CALLER)
    return unmeasured_because(endpoint, Check.TOOLCALLS, failure, n=len(sent))
