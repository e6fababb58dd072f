"""Servers whose prompt logprobs contradict themselves; each fault is a change of what one request brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evals.served.consistency import Subject, check_consistency, difference
from evals.served.prompts import check_prompts
from probes.prompt_logprobs import PromptLogprobs
from ringtrue.endpoint import Reply
from ringtrue.errors import MeasureError
from ringtrue.records import EndpointSpec, Exchange, Position, Request, Timings, TokenLogprob

IDS = tuple(range(20))
K = 4
NOISE = 0.03
ACME = EndpointSpec("acme", "http://127.0.0.1:9", "tiny", dialect="vllm")


def _scores(ids: Sequence[int], k: int, shift: float = 0.0) -> PromptLogprobs:
    """Scores that depend on the token alone, so that a longer prompt agrees with a shorter one."""
    own = np.array([-1.0 - 0.1 * (token % 7) for token in ids[1:]], np.float32) + np.float32(shift)
    top = np.tile(np.array([-1.5 - 0.5 * rank for rank in range(k)], np.float32), (len(own), 1))
    top_ids = np.tile(np.arange(k, dtype=np.int32), (len(own), 1))
    return PromptLogprobs(own, np.ones(len(own), np.int64), top_ids, top + np.float32(shift))


@dataclass
class Source:
    """Stands in for ``ServedScores``; ``moved`` are nats by which a request is off, by its name."""

    moved: Mapping[str, float] = field(default_factory=dict)
    shows_ids: bool = True
    context_length: int = 64

    @property
    def endpoint(self) -> Any:
        return SimpleNamespace(spec=ACME, send=self.send)

    async def fetch(
        self, ids: Sequence[int], *, k: int, name: str, temperature: float = 0.0
    ) -> PromptLogprobs:
        return _scores(ids, k, self.moved.get(name, 0.0))

    async def send(self, request: Request) -> Exchange:
        generated = tuple(range(30, 30 + (request.sampling.max_tokens or 0)))
        own = _scores((0, *generated), 1).logprobs.tolist()
        tokens = [TokenLogprob("", value, token) for token, value in zip(generated, own, strict=True)]
        return Exchange(
            request.id,
            "acme",
            request,
            datetime(2026, 3, 1, tzinfo=UTC),
            Timings(0.0),
            top_logprobs=tuple(Position(token, (token,)) for token in tokens),
            token_ids=generated if self.shows_ids else None,
        )


async def _outcomes(source: Any) -> dict[str, bool | None]:
    subject = Subject(IDS, _scores(IDS, K), NOISE)
    return {check.name: check.passed for check in await check_consistency(source, subject, k=K)}


async def test_a_consistent_server_passes_every_check() -> None:
    assert await _outcomes(Source()) == {
        "replay": True,
        "k": True,
        "temperature": True,
        "prefill and decode": True,
    }


@pytest.mark.parametrize(
    ("request_name", "check"),
    [
        ("replay", "replay"),
        ("fewer alternatives", "k"),
        ("another temperature", "temperature"),
        ("prefill and decode", "prefill and decode"),
    ],
)
async def test_each_contradiction_fails_its_check_alone(request_name: str, check: str) -> None:
    outcomes = await _outcomes(Source({request_name: -0.5}))
    assert [name for name, passed in outcomes.items() if not passed] == [check]


async def test_as_much_noise_as_two_honest_answers_have_is_forgiven() -> None:
    assert all((await _outcomes(Source({"replay": -1.9 * NOISE}))).values())
    assert (await _outcomes(Source({"replay": -2.1 * NOISE})))["replay"] is False


async def test_without_the_ids_of_what_was_generated_nothing_is_claimed() -> None:
    assert (await _outcomes(Source(shows_ids=False)))["prefill and decode"] is None


def test_the_difference_is_a_mean_over_positions_and_ranks() -> None:
    one, other = _scores(IDS, K), _scores(IDS, 2, -0.25)
    assert difference(one, other) == pytest.approx(0.25)
    assert difference(one, one) == 0.0


@dataclass
class Tokenizing:
    """An endpoint that says what it made of a prompt, by ``change`` of the right IDs."""

    change: Callable[[tuple[int, ...]], tuple[int, ...] | None]
    spec: EndpointSpec = ACME

    async def send(self, request: Request) -> Exchange:
        expected = (
            _Codec().render(request.messages) if request.messages else _Codec().encode(request.prompt or "")
        )
        moment = datetime(2026, 3, 1, tzinfo=UTC)
        used = self.change(expected)
        return Exchange(request.id, "acme", request, moment, Timings(0.0), prompt_token_ids=used)

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        raise AssertionError(f"{method} {path} is not asked here")

    async def aclose(self) -> None:
        return None


class _Codec:
    """One token a byte; a chat begins with 300."""

    def __init__(self, template: str | None = "hash") -> None:
        self._template = template

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def render(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        return (300, *(byte for message in messages for byte in message["content"].encode()))

    def template_hash(self) -> str | None:
        return self._template


async def test_the_models_own_ids_pass_and_are_counted() -> None:
    honest = Tokenizing(lambda ids: ids)
    with_chats, without = await check_prompts(honest, _Codec()), await check_prompts(honest, _Codec(None))
    assert with_chats > without > 0


async def test_a_wrong_template_and_a_wrong_tokenizer_are_told_apart() -> None:
    template = Tokenizing(lambda ids: ids[1:] if ids[0] == 300 else ids)
    with pytest.raises(MeasureError, match=r"template is not the model's.*first difference at token 0"):
        await check_prompts(template, _Codec())
    assert await check_prompts(template, _Codec(None))  # a model without a template has no chats
    tokenizer = Tokenizing(lambda ids: tuple(token + 1 for token in ids))
    with pytest.raises(MeasureError, match="tokenizer is not the model's"):
        await check_prompts(tokenizer, _Codec())


async def test_a_server_that_shows_no_ids_is_refused_as_unmeasured() -> None:
    with pytest.raises(MeasureError, match="does not say which token IDs") as caught:
        await check_prompts(Tokenizing(lambda _: None), _Codec())
    assert "return_token_ids" in (caught.value.remedy or "")
