"""Are an endpoint's logprobs worth comparing? (docs/methods.md, "Hygiene", 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from probes.dialects import dialect_named
from probes.self_test_checks import Check, compare, judge_values, name_scaling
from ringtrue.endpoint import Endpoint
from ringtrue.records import Exchange, Position, Request, Sampling

MOST_REQUESTS = 20

_QUESTIONS = ("Write one short sentence about the sea.", "Continue: red, green, blue,")
_TEXT = "The capital of France is"


class Scaling(StrEnum):
    """What a temperature does to the logprobs of a server."""

    RAW = "raw"  # nothing: they are the model's own
    PROCESSED = "processed"  # it divides them


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What was tested.

    ``trusted`` is ``None`` when no logprobs came back; ``reasons`` say why it
    is not ``True``. ``scaling`` is ``None`` where it could not be told.
    """

    trusted: bool | None
    reasons: tuple[str, ...]
    scaling: Scaling | None
    checks: tuple[Check, ...]
    requests: int


async def self_test(endpoint: Endpoint, *, k: int = 20) -> SelfTest:
    """Test the logprobs of an endpoint in at most ``MOST_REQUESTS`` requests, all of one session.

    A check that could not be made (``passed`` is ``None``) does not count
    against the endpoint; any that failed does.
    """
    tester = _Tester(endpoint, k)
    checks: list[Check] = []
    scalings: set[str] = set()
    for question in _QUESTIONS:
        found = await tester.question(question)
        if found is None:
            return SelfTest(None, (tester.why_none(),), None, tuple(checks), tester.requests)
        checks += found.checks
        scalings.add(found.scaling)
    checks.append(await tester.prefill_against_decode())
    merged = _merge(checks)
    failed = tuple(f"{check.name}: {check.detail}" for check in merged if check.passed is False)
    scaling = Scaling(scalings.pop()) if len(scalings) == 1 and scalings <= set(Scaling) else None
    return SelfTest(not failed, failed, scaling, merged, tester.requests)


@dataclass(frozen=True, slots=True)
class _Found:
    checks: tuple[Check, ...]
    scaling: str


class _Tester:
    """Asks, and remembers what it was told last."""

    def __init__(self, endpoint: Endpoint, k: int) -> None:
        self.requests = 0
        self._endpoint = endpoint
        self._k = k
        self._last: Exchange | None = None
        self._returns_ids = dialect_named(endpoint.spec.dialect).returns_token_ids

    async def question(self, question: str) -> _Found | None:
        """All checks that one chat prompt allows; ``None`` when it brings no logprobs."""
        base = Request(
            id="self-test",
            messages=({"role": "user", "content": question},),
            sampling=Sampling(temperature=0.0, max_tokens=1),
            logprobs=self._k,
            return_token_ids=self._returns_ids,
            session="self-test",
        )
        first = await self._position(base)
        if first is None:
            return None
        replay = await self._position(base)
        fewer = await self._position(replace(base, logprobs=max(1, self._k // 2)))
        at_one = await self._position(replace(base, sampling=replace(base.sampling, temperature=1.0, seed=1)))
        at_two = await self._position(replace(base, sampling=replace(base.sampling, temperature=2.0, seed=1)))
        scaling = name_scaling(at_one, at_two)
        checks = (
            *judge_values(first),
            compare("replay", first, replay, "the same request again"),
            compare("k", first, fewer, f"k = {max(1, self._k // 2)} instead of {self._k}"),
            compare("temperature 0", at_one, first, "temperature 0 instead of 1"),
            Check("temperature", None if scaling == "unclear" else True, scaling),
        )
        return _Found(checks, scaling)

    async def prefill_against_decode(self) -> Check:
        """The distribution after a token must not depend on whether the token was generated or given."""
        name = "prefill and decode"
        decode = Request(
            id="self-test",
            prompt=_TEXT,
            sampling=Sampling(temperature=0.0, max_tokens=2),
            logprobs=self._k,
            return_token_ids=self._returns_ids,
            session="self-test",
        )
        positions = await self._positions(decode)
        generated = self._last
        if len(positions) < 2 or generated is None:
            return Check(name, None, f"no two positions from the completions route: {self.why_none()}")
        if generated.prompt_token_ids and generated.token_ids:
            ids = (*generated.prompt_token_ids, generated.token_ids[0])
            given = replace(decode, prompt=None, prompt_token_ids=ids, sampling=Sampling(max_tokens=1))
        else:
            first = positions[0].sampled
            text = first.token if first.token_id is None else ""
            if not text or not generated.text.startswith(text):
                return Check(name, None, "the text of the first token cannot be told, and no token IDs came")
            given = replace(decode, prompt=_TEXT + text, sampling=Sampling(max_tokens=1))
        prefilled = await self._position(given)
        asked = generated.usage.prompt_tokens if generated.usage else None
        got = self._last.usage.prompt_tokens if self._last and self._last.usage else None
        if asked is not None and got is not None and got != asked + 1:
            return Check(name, None, "the server split the prompt and its own token otherwise")
        return compare(name, positions[1], prefilled, "the first token given instead of generated")

    async def _position(self, request: Request) -> Position | None:
        positions = await self._positions(request)
        return positions[0] if positions else None

    async def _positions(self, request: Request) -> Sequence[Position]:
        self.requests += 1
        self._last = await self._endpoint.send(request)
        return (self._last.top_logprobs or ()) if self._last.error is None else ()

    def why_none(self) -> str:
        """Why the last answer brought no logprobs."""
        if self._last is not None and self._last.error is not None:
            return self._last.error.message
        return "the answer has no logprobs"


def _merge(checks: Sequence[Check]) -> tuple[Check, ...]:
    """One check a name: failed if any failed, else passed if any passed."""
    by_name: dict[str, Check] = {}
    rank = {None: 0, True: 1, False: 2}
    for check in checks:
        known = by_name.get(check.name)
        if known is None or rank[check.passed] > rank[known.passed]:
            by_name[check.name] = check
    return tuple(by_name.values())
