"""Greedy continuations of endpoints without logprobs, held against the reference's own choice."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evals import availability
from evals.parts.answered_ids import generated_ids
from evals.parts.asker import Asker
from evals.parts.greedy.teacher import Forcing, Teacher
from evals.parts.part import Known
from evals.parts.sieve import WITHHELD, Sieve
from logprob_drift.night import POOL_NEEDS
from logprob_drift.token_only.greedy_finding import GreedyAnswers, greedy_finding
from logprob_drift.token_only.greedy_margins import MarginNight, compare_with_replay
from probes.context_curve import CurvePrompt
from probes.dialects import dialect_named
from probes.dialects.dialect import Dialect
from probes.greedy import greedy_prompts, greedy_request
from ringtrue.endpoint import Reference
from ringtrue.records import Check, EndpointSpec, Finding, Party, Request, State

OPENING = 72  # prompts of the first look: 64 decide, a few may be lost
OPENING_TOKENS = 4
LOOKS = 2
LEVEL = 1 - 0.02 / LOOKS  # of the interval: each look has its share of 1 % false alarms


@dataclass(frozen=True, slots=True)
class _Look:
    """One round of questions and what came back."""

    asked: int
    sieve: Sieve
    forced: tuple[Forcing, ...]
    night: MarginNight


class GreedyPart:
    """Asks at temperature 0 and holds each answer against the reference, token by token.

    Two looks: `OPENING` prompts of `OPENING_TOKENS` tokens each, which show
    gross faults, and, unless they did, all ``prompts`` of ``tokens`` tokens.
    Only endpoints without trusted logprobs are asked, unless ``always``.
    """

    name = "greedy"
    check = Check.SAMPLING

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        floor_dtype: str,
        prompts: int = 200,
        tokens: int = 50,
        sessions: int = 8,
        always: bool = False,
    ) -> None:
        """Cut the prompts.

        Raises:
            ConfigError: a prompt and its answer do not fit the model's context.
        """
        self._reference = reference
        cut = greedy_prompts(reference, prompts, tokens=tokens, seed=seed)
        # One order for all endpoints: they share openings, and what is computed for equal answers.
        self._prompts = tuple(cut[i] for i in np.random.default_rng(seed).permutation(len(cut)))
        self._expected = {prompt.id: reference.render(prompt.messages) for prompt in self._prompts}
        self._tokens = tokens
        self._sessions = sessions
        self._always = always
        self._teacher = Teacher(reference, floor_dtype)
        self._settings = (seed, floor_dtype, tokens)

    @property
    def basis(self) -> str:
        """A hash of the reference, the prompts, the length of the answers and the replay's dtype."""
        depends = (self._reference.fingerprint, self._settings, sorted(self._expected.items()))
        return hashlib.sha256(repr(depends).encode()).hexdigest()[:16]

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return both looks, with the tokens of each prompt."""
        dialect = dialect_named(spec.dialect)
        opening, every = self._prompts[:OPENING], self._prompts
        requests = [
            *self._requests("opening", opening, OPENING_TOKENS, dialect),
            *self._requests("greedy", every, self._tokens, dialect),
        ]
        tokens = [len(self._expected[prompt.id]) for prompt in (*opening, *every)]
        return list(zip(requests, tokens, strict=True))

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask and judge; no finding for an endpoint whose logprobs are trusted."""
        if not self._always and known.k is not None and known.trusted:
            return ()
        rng = asker.rng()
        look = await self._look(asker, "opening", self._prompts[:OPENING], OPENING_TOKENS, rng)
        if look.night.state is not State.CHANGED and _worth_more(asker, look):
            look = await self._look(asker, "greedy", self._prompts, self._tokens, rng)
        await self._hand_on(asker, look)
        return (_finding(asker, look),)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        await self._teacher.aclose()

    async def _look(
        self, asker: Asker, name: str, prompts: Sequence[CurvePrompt], tokens: int, rng: np.random.Generator
    ) -> _Look:
        requests = self._requests(name, prompts, tokens, asker.dialect)
        expected = {
            request.id: self._expected[prompt.id] for prompt, request in zip(prompts, requests, strict=True)
        }
        sieve = Sieve()
        tasks: list[asyncio.Task[Forcing]] = []
        try:
            async for exchange in asker.ask(requests):
                ids = expected[exchange.request.id]
                if sieve.lets_through(exchange, ids):
                    answer = generated_ids(exchange, self._reference)
                    if answer:
                        tasks.append(asyncio.create_task(self._teacher.hold(ids, answer[:tokens])))
                    else:
                        sieve.unreadable += 1
            forced = tuple(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
        margins = np.array([one.margins.mean() for one in forced], dtype=np.float64)
        replay = np.array([one.replay_margins.mean() for one in forced], dtype=np.float64)
        night = compare_with_replay(margins, replay, rng, level=LEVEL)
        return _Look(len(prompts), sieve, forced, night)

    def _requests(
        self, name: str, prompts: Sequence[CurvePrompt], tokens: int, dialect: Dialect
    ) -> list[Request]:
        return [
            greedy_request(
                prompt,
                name=name,
                tokens=min(tokens, self._tokens),
                dialect=dialect,
                session=f"{name}-{i % self._sessions}",
            )
            for i, prompt in enumerate(prompts)
        ]

    async def _hand_on(self, asker: Asker, look: _Look) -> None:
        night = look.night
        if look.sieve.mostly_withheld or night.mean is None or night.replay is None:
            return
        await asker.number("greedy_margin", night.mean, "nats", night.n)
        await asker.number("greedy_margin_floor", night.replay, "nats", night.n)
        answers = _answers(look)
        if answers.match is not None:
            await asker.number("greedy_match", answers.match, "share", night.n)


def _worth_more(asker: Asker, look: _Look) -> bool:
    """Return whether more answers could say more than the opening did."""
    return asker.stopped is None and bool(look.forced) and not look.sieve.mostly_withheld


def _answers(look: _Look) -> GreedyAnswers:
    tokens = sum(one.tokens for one in look.forced)
    return GreedyAnswers(
        prompts=look.asked,
        tokens=tokens,
        match=sum(int(one.matches.sum()) for one in look.forced) / tokens if tokens else None,
        replay_match=sum(int(one.replay_matches.sum()) for one in look.forced) / tokens if tokens else None,
    )


def _finding(asker: Asker, look: _Look) -> Finding:
    name = asker.spec.name
    if look.sieve.mostly_withheld:
        return availability.unmeasured(name, Check.SAMPLING, WITHHELD, Party.UNKNOWN)
    if asker.stopped is not None and look.night.n < POOL_NEEDS:
        return availability.unmeasured_because(name, Check.SAMPLING, asker.stopped, n=look.night.n)
    return greedy_finding(name, look.night, _answers(look), look.sieve.basis)
