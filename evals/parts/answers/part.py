"""How long answers are, how many are cut, empty, or say the same for ever: a set of questions a night."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from evals.availability import asked, unmeasured, unmeasured_because
from evals.parts.answers.columns import columns_of
from evals.parts.answers.findings import Context, state_night
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.sieve import WITHHELD, Sieve
from logprob_drift.token_only.answers import AnswerNight, Answers, judge_answers
from logprob_drift.token_only.rates import Count
from probes.answers import load_questions, to_requests
from probes.dialects import dialect_named
from ringtrue.endpoint import Reference
from ringtrue.errors import ConfigError
from ringtrue.records import Check, EndpointSpec, Exchange, Finding, Party, Request


class AnswersPart:
    """Asks ``count`` questions, each for at most ``cap`` tokens, and counts the answers.

    ``night`` is the number of the night (a UTC day): it alone changes the
    seeds between nights, and the basis does not depend on it. The reference
    answers nothing; its template and tokenizer say which prompt is the right
    one, and how long a reasoning is that the server shows but does not count.

    Raises:
        ConfigError: there are not so many questions, or they don't fit the model's context.
    """

    name = "answers"
    check = Check.OUTPUT

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        night: int,
        count: int = 60,
        cap: int = 256,
        temperature: float | None = 0.7,
    ) -> None:
        self._reference = reference
        self._questions = load_questions(count)
        self._index = {question.id: at for at, question in enumerate(self._questions)}
        self._expected = {q.id: reference.render(q.messages) for q in self._questions}
        self._usual = np.array([question.usual for question in self._questions])
        self._seed, self._night, self._cap, self._temperature = seed, night, cap, temperature
        room = reference.context_length - self._longest_prompt
        if not 1 <= cap <= room:
            raise ConfigError(
                f"answers of {cap} tokens do not fit: {reference.model} takes {reference.context_length} "
                f"tokens, of which the longest question needs {self._longest_prompt}",
                where="parts.answers",
                remedy=f"Cap the answers at 1 to {room} tokens" if room > 0 else "Use another reference",
            )

    @property
    def basis(self) -> str:
        """What the numbers depend on: reference, prompts, cap, and temperature."""
        identity = (self._reference.fingerprint, self._expected, self._usual.tolist())
        settings = (self._cap, self._temperature)
        return hashlib.sha256(repr((identity, settings)).encode()).hexdigest()[:16]

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return a request a question, with its prompt's tokens; none where the answers don't fit."""
        if spec.context_length is not None and spec.context_length < self._needed_context:
            return ()
        return [(request, len(self._expected[request.id])) for request in self._requests(spec)]

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask every question once, hand on the night's numbers, and state what can be told of one night."""
        name = asker.spec.name
        planned = [request for request, _ in self.planned(asker.spec)]
        if not planned:
            reason = (
                f"the endpoint takes {asker.spec.context_length:,} tokens, and a question with its answer "
                f"needs {self._needed_context:,}"
            )
            return (unmeasured(name, Check.OUTPUT, reason, Party.CALLER),)
        order = asker.rng().permutation(len(planned))
        async for _ in asker.ask([planned[at] for at in order]):
            pass
        sieve = Sieve()
        kept = [one for one in asker.exchanges if sieve.lets_through(one, self._expected[one.request.id])]
        if not sieve.answered:
            return (_nothing(name, asker),)
        if sieve.mostly_withheld:
            return (unmeasured(name, Check.OUTPUT, WITHHELD, Party.UNKNOWN, n=sieve.answered),)
        night = judge_answers(self._columns(kept), self._usual, asker.rng())
        await _emit(asker, night)
        context = Context(
            endpoint=name,
            asked=len(planned),
            withheld=sieve.withheld,
            counted=sieve.counted,
            cap=self._cap,
            logprobs=known.logprobs,
            stopped=asker.stopped.message if asker.stopped is not None else None,
        )
        return (state_night(night, context),)

    async def aclose(self) -> None:
        """Nothing is computed in the background."""

    @property
    def _longest_prompt(self) -> int:
        return max(len(ids) for ids in self._expected.values())

    @property
    def _needed_context(self) -> int:
        return self._longest_prompt + self._cap

    def _requests(self, spec: EndpointSpec) -> tuple[Request, ...]:
        return to_requests(
            self._questions,
            cap=self._cap,
            temperature=self._temperature,
            seed=self._seed,
            night=self._night,
            dialect=dialect_named(spec.dialect),
        )

    def _columns(self, exchanges: Sequence[Exchange]) -> Answers:
        return columns_of(exchanges, self._index, self._reference, cap=self._cap)


def _nothing(endpoint: str, asker: Asker) -> Finding:
    sent = asked(asker.exchanges)
    failure = next((exchange.error for exchange in sent or asker.exchanges if exchange.error), None)
    if failure is None:
        return unmeasured(endpoint, Check.OUTPUT, "no question was sent", Party.CALLER)
    return unmeasured_because(endpoint, Check.OUTPUT, failure, n=len(sent))


async def _emit(asker: Asker, night: AnswerNight) -> None:
    if night.log_length is not None:
        await asker.number("answer_log_length", night.log_length, "log tokens", night.lengths)
    if night.reasoning_share is not None:
        await asker.number("reasoning_share", night.reasoning_share, "share of tokens", night.reasoned)
    shares: dict[str, Count] = {
        "capped_answers": night.capped,
        "empty_answers": night.empty,
        "looping_answers": night.looping,
        "flooded_answers": night.flooded,
        "foreign_answers": night.foreign,
    }
    for metric, count in shares.items():
        if count.n:
            await asker.number(metric, count.events / count.n, "share", count.n)
