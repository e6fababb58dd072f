"""Prompts asked twice, so that the second answer comes from the server's prefix cache."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

import numpy as np

from evals import answers, availability
from evals.answers import Answered
from evals.parts.asker import Asker
from evals.parts.keyed_asking import ask_keyed
from evals.parts.part import Known
from evals.parts.sieve import WITHHELD, Sieve
from evals.truth import FloorCache, Truth
from logprob_drift.floor import floor_of
from logprob_drift.night import FEW_NEED
from logprob_drift.prefix_cache import cache_finding, judge_cache
from probes.cache_key import CacheKeys, new_keys
from probes.context_curve import CurvePrompt
from probes.dialects import dialect_named
from probes.prefix_cache import LENGTH, Pair, cache_prompts, cache_request, shown_warm
from ringtrue.endpoint import Reference
from ringtrue.errors import ConfigError
from ringtrue.records import Check, EndpointSpec, FailureKind, Finding, Party, Request

_TURNS = ("cold", "warm")


class PrefixCachePart:
    """Asks each prompt cold, under a cache key that was never used, and then warm, under the same one.

    Only endpoints with logprobs that are trusted are asked, and only those
    that promise to take prompts so long; of others, and where the model itself
    takes none so long, the part says nothing.
    """

    name = "prefix_cache"
    check = Check.CACHE

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        floor_dtype: str,
        k: int = 20,
        prompts: int = FEW_NEED,
        tokens: int = LENGTH,
        cache: FloorCache | None = None,
    ) -> None:
        """Cut the prompts.

        Raises:
            ConfigError: they are too few to judge by.
        """
        if prompts < FEW_NEED:
            raise ConfigError(
                f"{prompts} prompts can't be judged",
                where="parts.prefix_cache",
                remedy=f"Ask at least {FEW_NEED}, or 0 to leave this out",
            )
        chosen = cache_prompts(reference, prompts, seed=seed, length=tokens)
        self._truth = Truth(reference, chosen, floor_dtype=floor_dtype, k=k, seed=seed, cache=cache)

    @property
    def basis(self) -> str:
        """A hash of the reference, the prompts and the floor's settings."""
        return hashlib.sha256(f"{self.name} {self._truth.basis}".encode()).hexdigest()[:16]

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return each prompt twice, and the first again as often as its cache key may be refused."""
        prompts = self._fitting(spec)
        dialect = dialect_named(spec.dialect)
        keys = CacheKeys(dialect)
        names = new_keys(spec.name, self.name, count=len(prompts))
        asked = [
            (
                keys.put(cache_request(prompt, turn, name, k=self._truth.k, dialect=dialect)),
                len(self._truth.expected[prompt.id]),
            )
            for turn in _TURNS
            for prompt, name in zip(prompts, names, strict=True)
        ]
        return [*asked, *asked[:1] * len(dialect.cache_fields(""))]

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask and judge; no finding where nothing can be compared, or the prompts are refused as too long."""
        prompts = self._fitting(asker.spec)
        if known.k is None or not known.trusted or not prompts:
            return ()
        k = min(known.k, self._truth.k)
        keys = CacheKeys(asker.dialect)
        pairs = await self._ask(asker, keys, prompts, k)
        errors = [exchange.error for exchange in asker.exchanges]
        if errors and all(error is not None and error.kind is FailureKind.REFUSED for error in errors):
            return ()
        return (await self._judge(asker, pairs, keys, k),)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        await self._truth.aclose()

    def _fitting(self, spec: EndpointSpec) -> tuple[CurvePrompt, ...]:
        """All prompts, or none where the endpoint promises less than the longest needs."""
        longest = max((len(ids) for ids in self._truth.expected.values()), default=0)
        short = spec.context_length is not None and spec.context_length <= longest
        return () if short else self._truth.prompts

    async def _ask(
        self, asker: Asker, keys: CacheKeys, prompts: Sequence[CurvePrompt], k: int
    ) -> dict[str, Pair]:
        """Ask all prompts cold, and when all are answered those again warm."""
        names = new_keys(asker.run, asker.spec.name, self.name, count=len(prompts))
        name_of = {prompt.id: name for prompt, name in zip(prompts, names, strict=True)}
        pairs = {prompt.id: Pair() for prompt in prompts}
        for turn in _TURNS:
            requests = {
                name_of[p.id]: cache_request(p, turn, name_of[p.id], k=k, dialect=asker.dialect)
                for p in prompts
                if turn == "cold" or pairs[p.id].cold is not None
            }
            prompt_of = {name: prompt_id for prompt_id, name in name_of.items()}
            async with aclosing(ask_keyed(asker, keys, [*requests.values()])) as exchanges:
                async for exchange in exchanges:
                    if exchange.error is None:
                        which = prompt_of[exchange.request.session or ""]
                        pair = pairs[which]
                        pairs[which] = (
                            replace(pair, cold=exchange) if turn == "cold" else replace(pair, warm=exchange)
                        )
        return pairs

    async def _judge(self, asker: Asker, pairs: Mapping[str, Pair], keys: CacheKeys, k: int) -> Finding:
        name = asker.spec.name
        sieve = Sieve()
        rows: list[tuple[float, float, float]] = []
        both: list[Pair] = []
        for prompt in self._truth.prompts:
            answered = self._read(prompt, pairs[prompt.id], sieve, k)
            if answered is not None:
                rows.append(await self._compare(prompt, *answered))
                both.append(pairs[prompt.id])
        if sieve.mostly_withheld:
            return availability.unmeasured(name, self.check, WITHHELD, Party.UNKNOWN)
        if len(rows) < FEW_NEED and asker.stopped is not None:
            count = len(rows)
            return availability.unmeasured_because(name, self.check, asker.stopped, n=count)
        cold, warm, floor = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        night = judge_cache(cold, warm, floor, asker.rng())
        for metric, values in (("kl_cold", cold), ("kl_warm", warm)):
            if values.size:
                await asker.number(metric, float(values.mean()), "nats", values.size)
        unusable = {"not comparable": sieve.unreadable} if sieve.unreadable else {}
        basis = replace(sieve.basis, unusable=unusable)
        return cache_finding(name, night, shown_warm=shown_warm(both), key=keys.field, basis=basis)

    def _read(
        self, prompt: CurvePrompt, pair: Pair, sieve: Sieve, k: int
    ) -> tuple[Answered, Answered] | None:
        """Return both answers to a prompt, where both can be compared."""
        expected = self._truth.expected[prompt.id]
        usable = []
        for exchange in (pair.cold, pair.warm):
            if exchange is not None and sieve.lets_through(exchange, expected):
                answer = answers.read(prompt, exchange, expected, self._truth.vocabulary, asked=k)
                if answer.comparable:
                    usable.append(answer)
                else:
                    sieve.unreadable += 1
        return (usable[0], usable[1]) if len(usable) == 2 else None

    async def _compare(
        self, prompt: CurvePrompt, cold: Answered, warm: Answered
    ) -> tuple[float, float, float]:
        """Return the divergence cold and warm, and the floor (nats)."""
        row = await self._truth.row(prompt)
        floors = await self._truth.floors()
        first, second = answers.against(cold, row), answers.against(warm, row)
        return first.kl, second.kl, floor_of(row, floors[prompt.id], min(first.k, second.k))
