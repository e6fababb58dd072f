"""Asking one endpoint for sampled tokens, round after round, until they decide."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from evals.parts.asker import Asker
from evals.parts.sampled.answer import Name, ReadDraw, one_token, read_by_own_list, read_by_reference
from evals.parts.sampled.truth import Sampled, SampledPrompt
from evals.parts.sieve import Sieve
from evals.parts.token_names import token_id_of
from logprob_drift.token_only.drawn_tokens import Draw, DrawnNight, SeedPairs, draw, judge, seed_pairs
from probes.cache_key import new_keys
from probes.sampled_tokens import draw_request
from ringtrue.records import Exchange, Request, State

PAIRS = 8  # answers asked again with the same seed
_SEEDS = 2**31  # what every server takes
_NEARLY_ONE = 0.99


@dataclass(slots=True)
class SampledAsking:
    """What one endpoint is asked and has answered so far.

    ``own_k`` is the length of the lists that serve as the null, ``None``
    where the reference's distribution does. ``longer`` answers had more than
    the one token that was asked for.
    """

    asker: Asker
    sampled: Sampled
    own_k: int | None
    sieve: Sieve = field(default_factory=Sieve)
    longer: int = 0
    draws: list[Draw] = field(default_factory=list)
    _newest: dict[str, tuple[Exchange, SampledPrompt, Name]] = field(default_factory=dict)

    async def until_decided(self, most: int, alarm: float) -> DrawnNight:
        """Ask rounds of one request a prompt, at most ``most`` requests in all, and return what they show.

        Order, seeds and sessions are another run's never.
        """
        run = (self.asker.run, self.asker.spec.name, "sampled")
        origin = hashlib.sha256("\0".join(run).encode()).digest()
        rng = np.random.default_rng(int.from_bytes(origin[:8]))
        seeds = rng.choice(_SEEDS, size=most, replace=False)
        sessions = new_keys(*run, count=most)
        prompts = self.sampled.prompts
        night = judge((), alarm=alarm)
        for start in range(0, most, len(prompts)):
            requests = {}
            for i, at in enumerate(rng.permutation(len(prompts))[: most - start], start):
                request = draw_request(
                    prompts[at].prompt,
                    name=f"sampled-{i}",
                    seed=int(seeds[i]),
                    session=sessions[i],
                    k=self.own_k,
                    dialect=self.asker.dialect,
                )
                requests[request.id] = (request, prompts[at])
            await self._round(requests)
            night = judge(self.draws, alarm=alarm)
            nothing = not self.draws or self.sieve.mostly_withheld
            if night.state is not State.UNKNOWN or nothing or self.asker.stopped is not None:
                break
        return night

    async def again(self) -> SeedPairs | None:
        """Ask `PAIRS` questions again with their seeds, where equal draws are least likely by chance."""
        chosen = sorted(self._newest.values(), key=lambda one: one[1].collision)[:PAIRS]
        run = (self.asker.run, self.asker.spec.name, "sampled again")
        requests, first = [], {}
        for i, (one, session) in enumerate(zip(chosen, new_keys(*run, count=len(chosen)), strict=True)):
            requests.append(replace(one[0].request, id=f"again-{i}", session=session))
            first[f"again-{i}"] = one
        equal, chances = [], []
        async for exchange in self.asker.ask(requests):
            before, prompt, _ = first[exchange.request.id]
            if exchange.error is None:
                equal.append(_same_token(before, exchange))
                chances.append(min(prompt.collision, _NEARLY_ONE))
        return seed_pairs(equal, chances) if equal else None

    async def _round(self, requests: Mapping[str, tuple[Request, SampledPrompt]]) -> None:
        """Ask one round, and read it in the order in which it was asked."""
        answers = {}
        async for exchange in self.asker.ask([request for request, _ in requests.values()]):
            answers[exchange.request.id] = exchange
        for name, (_, prompt) in requests.items():
            answer = answers.get(name)
            if answer is not None and self.sieve.lets_through(answer, prompt.ids):
                self._take(answer, prompt)

    def _take(self, exchange: Exchange, prompt: SampledPrompt) -> None:
        single = one_token(exchange)
        read = self._read(exchange, prompt) if single else None
        if read is None:
            self.sieve.unreadable += 1
            self.longer += not single
            return
        last = self._newest.get(prompt.prompt.id)
        before = None if last is None else read.cell_of(last[2])
        self.draws.append(draw(read.null, read.cell, before))
        self._newest[prompt.prompt.id] = (exchange, prompt, read.name)

    def _read(self, exchange: Exchange, prompt: SampledPrompt) -> ReadDraw | None:
        if self.own_k is None:
            return read_by_reference(exchange, prompt, self.sampled)
        return read_by_own_list(exchange, prompt, self.sampled.vocabulary, self.own_k)


def _same_token(one: Exchange, other: Exchange) -> bool:
    ids = token_id_of(one), token_id_of(other)
    return ids[0] == ids[1] if None not in ids else one.text == other.text
