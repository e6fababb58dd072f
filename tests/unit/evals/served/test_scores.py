from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from evals.served.scores import ServedScores
from ringtrue.endpoint import Reply
from ringtrue.errors import MeasureError, UsageError
from ringtrue.records import EndpointSpec, Exchange, Failure, FailureKind, Party, Request, Timings, WireChunk
from ringtrue.wire import assemble_body

IDS = [4, 2, 7, 1, 5, 3]
ACME = EndpointSpec("acme", "http://127.0.0.1:9", "tiny", dialect="vllm")


@dataclass
class Uniform:
    """Lists the k lowest IDs of a vocabulary of 10 with equal logprobs; a failure stands for a refusal."""

    failure: Failure | None = None
    sent: list[Request] = field(default_factory=list)
    spec: EndpointSpec = ACME

    async def send(self, request: Request) -> Exchange:
        self.sent.append(request)
        assert request.prompt_token_ids is not None
        assert request.prompt_logprobs is not None
        listed = range(request.prompt_logprobs)
        positions = [
            {str(token): {"logprob": -2.302585, "rank": 10} for token in {*listed, own}}
            for own in request.prompt_token_ids[1:]
        ]
        data = json.dumps({"choices": [{"index": 0, "text": "", "prompt_logprobs": [None, *positions]}]})
        answer = assemble_body(data.encode())
        return Exchange(
            request.id,
            self.spec.name,
            request,
            datetime(2026, 3, 1, tzinfo=UTC),
            Timings(0.0),
            wire=(WireChunk(0.0, data.encode()),),
            usage=answer.usage,
            error=self.failure,
        )

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        raise AssertionError(f"{method} {path} is not asked here")

    async def aclose(self) -> None:
        return None


def _source(endpoint: Uniform) -> ServedScores:
    return ServedScores(endpoint, context_length=8, vocabulary_size=10, rng=np.random.default_rng(0))


async def _score(endpoint: Uniform, ids: list[int], *, k: int = 3, states: bool = False):
    blocks = _source(endpoint).score(ids, k=k, states=states, rows_per_block=2)
    return [block async for block in blocks]


async def test_a_sequence_comes_in_blocks_without_entropy_and_states() -> None:
    blocks = await _score(Uniform(), IDS)
    assert [len(block) for block in blocks] == [2, 2, 1]
    assert all(block.entropy is None and block.states is None for block in blocks)
    assert blocks[0].top_ids.tolist() == [[0, 1, 2]] * 2
    assert blocks[0].tail_mass == pytest.approx(0.7)
    assert blocks[2].ranks.tolist() == [1]  # nothing is likelier


async def test_every_request_has_a_cache_salt_of_its_own() -> None:
    endpoint = Uniform()
    source = _source(endpoint)
    for _ in range(3):
        await source.fetch(IDS, k=2, name="again")
    salts = {request.extra["cache_salt"] for request in endpoint.sent}
    assert len(salts) == 3


async def test_states_are_refused_before_anything_is_sent() -> None:
    endpoint = Uniform()
    with pytest.raises(UsageError, match="hidden states") as caught:
        await _score(endpoint, IDS, states=True)
    assert "--states" in (caught.value.remedy or "")
    assert endpoint.sent == []


@pytest.mark.parametrize("tokens", [1, 9])
async def test_a_sequence_of_a_wrong_length_is_not_sent(tokens: int) -> None:
    endpoint = Uniform()
    with pytest.raises(UsageError, match="takes 2 to 8"):
        await _score(endpoint, [1] * tokens)
    assert endpoint.sent == []


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        (FailureKind.CAPABILITY_REFUSED, UsageError, "--max-logprobs 3"),
        (FailureKind.MODEL_NOT_FOUND, UsageError, "what it said"),
        (FailureKind.UNAUTHORIZED, UsageError, "what it said"),
        (FailureKind.SERVER_ERROR, MeasureError, "goes on from there"),
        (FailureKind.BAD_SHAPE, MeasureError, "smaller --k"),
    ],
)
async def test_a_failed_request_ends_it_with_the_endpoints_words(
    kind: FailureKind, error: type[Exception], said: str
) -> None:
    failure = Failure(kind, "what it said", Party.PROVIDER)
    with pytest.raises(error, match="what it said") as caught:
        await _score(Uniform(failure), IDS)
    assert said in str(caught.value)
