"""Sampled tokens: are temperature and seed honoured, and is nothing cut from the distribution?"""

from __future__ import annotations

from collections.abc import Sequence

from evals import availability
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.sampled.asking import PAIRS, SampledAsking
from evals.parts.sampled.truth import SampledTruth
from evals.parts.sieve import WITHHELD
from evals.truth import FloorCache
from logprob_drift.token_only.drawn_finding import DrawnFrom, drawn_finding
from logprob_drift.token_only.drawn_tokens import ALARM, DrawnNight, SeedPairs
from probes.dialects import dialect_named
from probes.sampled_tokens import draw_request
from probes.self_test import Scaling
from ringtrue.endpoint import Reference
from ringtrue.records import DRIFT, Check, EndpointSpec, Finding, Party, Request, State

_LEAST_K = 5  # entries of a list from which on it serves as the null
_SAME_ANYWAY = frozenset({"greedy", "repeats"})  # faults under which equal seeds prove nothing
_DIVERGES = (
    "withheld: the distribution differs from the reference's (see logprobs); tokens alone tell no more"
)
_LONGER = "the server gives more than the one token that was asked for"


class SampledPart:
    """Asks for single tokens at temperature 1 and holds them against what each may be.

    In rounds of one request a prompt, until the draws decide or ``draws`` were
    asked. The null is the endpoint's own list where its logprobs are trusted
    and raw, else the reference's distribution. ``alarm`` is the e-value at
    which one night is CHANGED.
    """

    name = "sampled"
    check = Check.SAMPLING

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        floor_dtype: str,
        draws: int = 1200,
        prompts: int = 32,
        candidates: int = 128,
        alarm: float = ALARM,
        cache: FloorCache | None = None,
    ) -> None:
        """Cut the candidates.

        Raises:
            ConfigError: they do not fit the model's context.
        """
        self._truth = SampledTruth(
            reference,
            seed=seed,
            floor_dtype=floor_dtype,
            candidates=candidates,
            prompts=prompts,
            cache=cache,
        )
        self._draws = draws
        self._alarm = alarm

    @property
    def basis(self) -> str:
        """A hash of the reference, the candidates, how many are asked, and the honest rows' dtype."""
        return self._truth.key[:16]

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return as many requests as there may be, on the longest candidates.

        Which are asked is known only when the reference has chosen.
        """
        dialect = dialect_named(spec.dialect)
        lengths = self._truth.expected
        longest = sorted(self._truth.candidates, key=lambda one: -len(lengths[one.id]))
        planned = []
        for i in range(self._draws + PAIRS):
            prompt, name = longest[i % len(longest)], f"sampled-{i}"
            request = draw_request(prompt, name=name, seed=i, session=name, k=None, dialect=dialect)
            planned.append((request, len(lengths[prompt.id])))
        return planned

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask and judge.

        An endpoint whose distribution was found to be another one is asked
        only where it gives lists of its own to hold the tokens against.
        """
        own_k = _own_k(known)
        if own_k is None and known.logprobs in DRIFT:
            return (availability.unmeasured(asker.spec.name, Check.SAMPLING, _DIVERGES, Party.UNKNOWN),)
        asking = SampledAsking(asker, await self._truth.sampled(), own_k)
        night = await asking.until_decided(self._draws, self._alarm)
        pairs = None
        if _seeds_tell(asking, night):
            pairs = await asking.again()
        if not asking.sieve.mostly_withheld:
            await _hand_on(asker, night, pairs)
        return (self._finding(asking, night, known, pairs),)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        await self._truth.aclose()

    def _finding(
        self, asking: SampledAsking, night: DrawnNight, known: Known, pairs: SeedPairs | None
    ) -> Finding:
        endpoint, sieve, stopped = asking.asker.spec.name, asking.sieve, asking.asker.stopped
        if sieve.mostly_withheld:
            return availability.unmeasured(endpoint, Check.SAMPLING, WITHHELD, Party.UNKNOWN)
        if stopped is not None and night.state is State.UNKNOWN:
            return availability.unmeasured_because(endpoint, Check.SAMPLING, stopped, n=night.n)
        if not night.n and asking.longer:
            return availability.unmeasured(endpoint, Check.SAMPLING, _LONGER, Party.PROVIDER)
        source = DrawnFrom(asking.own_k is not None, known.logprobs is State.OK)
        return drawn_finding(endpoint, night, source, sieve.basis, pairs=pairs, alarm=self._alarm)


def _own_k(known: Known) -> int | None:
    """Return the length of the endpoint's own lists where they can be the null."""
    believed = known.trusted and known.scaling is Scaling.RAW
    return known.k if believed and known.k is not None and known.k >= _LEAST_K else None


def _seeds_tell(asking: SampledAsking, night: DrawnNight) -> bool:
    same_anyway = night.state is State.CHANGED and night.best.name in _SAME_ANYWAY
    return not (same_anyway or asking.asker.stopped is not None or asking.sieve.mostly_withheld)


async def _hand_on(asker: Asker, night: DrawnNight, pairs: SeedPairs | None) -> None:
    if night.temperature is not None:
        await asker.number("sampling_log_e", night.log_e, "nats", night.n)
        await asker.number("temperature", night.temperature, "ratio", night.n)
    if pairs is not None:
        await asker.number("seed_honoured", pairs.equal / pairs.n, "share", pairs.n)
