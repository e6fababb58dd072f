"""A reference of 300 tokens that needs no model, and endpoints that serve it honestly or not."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from logprob_drift.floor import as_served
from probes.clock import Clock
from probes.context_curve import CurvePrompt
from ringtrue.endpoint import Forced, LogprobRow, Reply
from ringtrue.records import (
    Attempt,
    EndpointSpec,
    Exchange,
    Failure,
    Position,
    Request,
    Timings,
    TokenLogprob,
    Usage,
)
from tests.plain_format import PlainFormat

SIZE = 300
NOISE = 0.03  # of logits, in an honest server's arithmetic
SYSTEM = tuple(range(260, 272))

ACME = EndpointSpec("acme", "http://127.0.0.1:9", "tiny", dialect="vllm")

Change = Callable[[tuple[int, ...]], tuple[int, ...]]
Corrupt = Callable[[tuple[int, ...], np.ndarray], np.ndarray]
Draw = Callable[[np.ndarray, Request, np.random.Generator], int]
"""Chooses a token from logprobs [vocabulary]."""


def logits_of(ids: Sequence[int]) -> np.ndarray:
    return 3.0 * np.random.default_rng(zlib.crc32(repr(tuple(ids)).encode())).standard_normal(SIZE)


def log_softmax(logits: np.ndarray) -> LogprobRow:
    shifted = logits - logits.max()
    return (shifted - np.log(np.exp(shifted).sum())).astype(np.float32)


@dataclass
class TinyReference(PlainFormat):
    """One token a byte; an honest server's noise is normal on the logits."""

    self_noise: float = 0.0
    asked: list[tuple[int, ...]] = field(default_factory=list)
    model: str = "tiny"
    fingerprint: str = "f" * 64
    context_length: int = 4096
    vocabulary_size: int = SIZE

    special_ids = frozenset(range(256, SIZE))
    bos_id = 256
    end_ids = frozenset({257, 258})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(i for i in ids if i < 256).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else f"<{token_id}>".encode()

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[int, ...]:
        assert not tools
        content = "".join(str(message["content"]) for message in messages)
        return (256, *SYSTEM, *self.encode(content), 257, 258)

    async def next_token(self, ids: Sequence[int]) -> LogprobRow:
        self.asked.append(tuple(ids))
        return log_softmax(logits_of(ids))

    async def jittered(self, ids: Sequence[Sequence[int]], *, dtype: str, seed: int) -> list[LogprobRow]:
        noise = self.self_noise if dtype == "fp32" else NOISE
        rng = np.random.default_rng(seed)
        return [log_softmax(logits_of(one) + noise * rng.standard_normal(SIZE)) for one in ids]

    async def forced(
        self, prompt: Sequence[int], continuation: Sequence[int], *, k: int, dtype: str
    ) -> Forced:
        noise = 0.0 if dtype == "fp32" else NOISE
        seed = zlib.crc32(repr((*prompt, *continuation)).encode())
        rng = np.random.default_rng([seed, 7])
        rows = np.array(
            [
                log_softmax(logits_of((*prompt, *continuation[:at])) + noise * rng.standard_normal(SIZE))
                for at in range(len(continuation))
            ]
        )
        best = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        chosen = rows[np.arange(len(continuation)), list(continuation)]
        return Forced(chosen, best, np.take_along_axis(rows, best, axis=1))

    async def greedy(self, prompt: Sequence[int], *, max_tokens: int, dtype: str) -> tuple[int, ...]:
        noise = 0.0 if dtype == "fp32" else NOISE
        tokens: list[int] = []
        while len(tokens) < max_tokens and (not tokens or tokens[-1] != 258):
            ids = (*prompt, *tokens)
            rng = np.random.default_rng([zlib.crc32(repr(ids).encode()), 7])
            tokens.append(int((logits_of(ids) + noise * rng.standard_normal(SIZE)).argmax()))
        return tuple(tokens)


def honest_draw(row: np.ndarray, request: Request, rng: np.random.Generator) -> int:
    """As asked: greedily at temperature 0, else at the temperature and, where there is one, by the seed."""
    temperature = request.sampling.temperature
    if temperature == 0:
        return int(row.argmax())
    if request.sampling.seed is not None:
        rng = np.random.default_rng(request.sampling.seed)
    scaled = row.astype(np.float64) / (1.0 if temperature is None else temperature)
    weights = np.exp(scaled - scaled.max())
    return int(rng.choice(row.size, p=weights / weights.sum()))


@dataclass(eq=False)  # two endpoints are never the same one
class TinyEndpoint:
    """Serves the tiny model; every fault is a function."""

    spec: EndpointSpec = ACME
    change_ids: Change = lambda ids: ids
    corrupt: Corrupt = lambda _ids, logits: logits
    corrupts: Callable[[str | None], bool] = lambda _session: True
    draw: Draw = honest_draw
    fail: Callable[[Request, int], Failure | None] = lambda _request, _turn: None
    shows_ids: bool = True
    shows_counts: bool = True
    shows_logprobs: bool = True
    largest_k: int = 20
    promised: int | None = None
    answers_as: str = "tiny"
    seed: int = 0
    sent: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Exchange:
        await asyncio.sleep(0)  # as on a wire, others get their turn
        self.sent.append(request)
        turn = len(self.sent)
        times = Timings(0.0, 0.0, 0.1, 0.1, 0.1, 0.1)
        exchange = Exchange(
            request.id,
            self.spec.name,
            request,
            datetime(2026, 3, 1, tzinfo=UTC),
            times,
            model=self.answers_as,
            requested_model="tiny",
        )
        failure = self.fail(request, turn)
        if failure is not None:
            return replace(exchange, error=failure, attempts=(Attempt(1, 0.0, failure),))
        assert request.messages is not None
        ids = self.change_ids(TinyReference().render(request.messages))
        rng = np.random.default_rng([self.seed, turn])
        tokens: list[int] = []
        positions: list[Position] = []
        for _ in range(request.sampling.max_tokens or 1):
            row = self._row((*ids, *tokens), request.session, rng)
            tokens.append(self.draw(row, request, rng))
            positions += self._position(row, tokens[-1], request.logprobs or 0)
        return replace(
            exchange,
            prompt_token_ids=ids if self.shows_ids else None,
            token_ids=tuple(tokens) if self.shows_ids else None,
            text=TinyReference().decode(tokens),
            usage=Usage(prompt_tokens=len(ids), completion_tokens=len(tokens)) if self.shows_counts else None,
            top_logprobs=tuple(positions) or None,
            finish_reason="length",
            attempts=(Attempt(1, 0.0, None),),
        )

    def _row(self, ids: tuple[int, ...], session: str | None, rng: np.random.Generator) -> np.ndarray:
        logits = logits_of(ids)
        if self.corrupts(session):
            logits = self.corrupt(ids, logits)
        return log_softmax(logits + NOISE * rng.standard_normal(SIZE))

    def _position(self, row: np.ndarray, token: int, k: int) -> list[Position]:
        if not self.shows_logprobs or not k:
            return []
        listed = as_served(row, min(k, self.largest_k))
        top = [
            TokenLogprob(f"token_id:{cell[0]}", value, token_id=cell[0])
            for cell, value in zip(listed.cells, listed.logprobs, strict=True)
        ]
        sampled = TokenLogprob(f"token_id:{token}", float(row[token]), token_id=token)
        if all(entry.token_id != token for entry in top):
            top.append(sampled)
        return [Position(sampled, tuple(top))]

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        assert (method, path, body) == ("GET", "/v1/models", None)
        return Reply(200, {"data": [{"id": "tiny", "max_model_len": self.promised}]})

    async def aclose(self) -> None:
        return None


def curve_prompts(counts: Mapping[int, int]) -> tuple[CurvePrompt, ...]:
    prompts = []
    for length, count in counts.items():
        for index in range(count):
            content = f"{index:04d}".ljust(length, "abcdefg"[index % 7])
            message = {"role": "user", "content": content}
            prompts.append(CurvePrompt(f"{length}-{index}", length, "english", (message,), length))
    return tuple(prompts)


async def _no_sleep(_seconds: float) -> None:
    return None


def still_clock() -> Clock:
    return Clock(lambda: 0.0, lambda: datetime(2026, 3, 1, 2, tzinfo=UTC), _no_sleep)
