"""An endpoint over a tiny model in memory, honest unless a knob says otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ringtrue.endpoint import Reply
from ringtrue.records import (
    EndpointSpec,
    Exchange,
    Failure,
    FailureKind,
    Party,
    Position,
    Request,
    Timings,
    TokenLogprob,
    Usage,
)

VOCABULARY = range(300, 420)  # a token is the character of its ID
AT = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class ModelEndpoint:
    """The knobs are the faults of real servers; ``refuses`` names what it answers 400 to."""

    dialect: str = "vllm"
    processed: bool = False  # logprobs are divided by the temperature
    zero: bool = False  # as seen under speculative decoding
    sentinels: bool = False
    too_likely: float = 0.0  # nats added to every value
    noise: float = 0.0  # nats by which every other request differs
    k_changes_values: bool = False
    decode_shift: float = 0.0  # nats between what is generated and what is prefilled
    gives_logprobs: bool = True
    largest_k: int = 20
    clamps: bool = False
    refuses: frozenset[str] = frozenset()
    template_drops_tools: bool = False
    models: tuple[Mapping[str, Any], ...] = ({"id": "tiny", "max_model_len": 512},)
    sent: list[Request] = field(default_factory=list)
    called: list[str] = field(default_factory=list)

    @property
    def spec(self) -> EndpointSpec:
        return EndpointSpec("tiny", "http://h", "tiny", dialect=self.dialect)

    async def send(self, request: Request) -> Exchange:
        self.sent.append(request)
        refused = self._refusal(request)
        if refused is not None:
            return self._exchange(request, error=Failure(refused, "refused here", Party.CALLER, 400))
        prompt = self._prompt(request)
        count = request.sampling.max_tokens or 1
        ids, positions = list(prompt), []
        for step in range(count):
            position = self._position(ids, request, decoding=step > 0)
            positions.append(position)
            ids.append(ord(position.sampled.token))
        generated = ids[len(prompt) :]
        owns = self.dialect == "vllm"
        return self._exchange(
            request,
            text=("".join(map(chr, prompt)) if request.echo else "") + "".join(map(chr, generated)),
            finish_reason="length",
            usage=Usage(len(prompt), count),
            prompt_token_ids=tuple(prompt) if owns and request.return_token_ids else None,
            token_ids=tuple(generated) if owns and request.return_token_ids else None,
            top_logprobs=tuple(positions) if self._answers_logprobs(request) else None,
            prompt_logprobs=(None,) * len(prompt) if owns and request.prompt_logprobs else None,
        )

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        self.called.append(path)
        if path == "/v1/models":
            return Reply(200, {"data": list(self.models)})
        if path == "/tokenize" and body and "tokenize" not in self.refuses:
            text = body.get("prompt") or "".join(message["content"] for message in body["messages"])
            return Reply(200, {"tokens": [ord(character) for character in text]})
        return Reply(404, None, {}, Failure(FailureKind.NOT_FOUND, f"{method} {path}", Party.CALLER, 404))

    async def aclose(self) -> None:
        """Nothing is open."""

    def _refusal(self, request: Request) -> FailureKind | None:
        asked = {
            "chat": request.messages is not None,
            "completions": request.messages is None,
            "ids": request.prompt_token_ids is not None,
            "stream": request.stream,
            "tools": request.tools is not None,
            "echo": request.echo,
            "hot": (request.sampling.temperature or 0.0) > 1.0,
        }
        if any(asked.get(name) for name in self.refuses):
            return FailureKind.REFUSED
        if request.logprobs and request.logprobs > self.largest_k and not self.clamps:
            return FailureKind.CAPABILITY_REFUSED
        return None

    def _answers_logprobs(self, request: Request) -> bool:
        return self.gives_logprobs and request.logprobs is not None

    def _prompt(self, request: Request) -> list[int]:
        if request.prompt_token_ids is not None:
            return list(request.prompt_token_ids)
        text = request.prompt or "".join(message["content"] for message in request.messages or ())
        tools = "" if request.tools is None or self.template_drops_tools else repr(request.tools)
        return [ord(character) for character in tools + text]

    def _position(self, ids: list[int], request: Request, *, decoding: bool) -> Position:
        temperature = request.sampling.temperature or 1.0
        scale = temperature if self.processed else 1.0
        logits = [2.0 * math.sin(sum(ids) + 1.7 * token) / scale for token in VOCABULARY]
        norm = math.log(sum(map(math.exp, logits)))
        k = min(request.logprobs or 1, self.largest_k)
        shift = self.too_likely + self.noise * (len(self.sent) % 2)
        shift += self.decode_shift if decoding else 0.0
        shift -= 0.5 if self.k_changes_values and k < self.largest_k else 0.0
        ranked = sorted(zip(logits, VOCABULARY, strict=True), reverse=True)[:k]
        top = tuple(
            self._token(token, self._value(logit - norm + shift, at))
            for at, (logit, token) in enumerate(ranked)
        )
        return Position(top[0], top)

    def _token(self, token: int, logprob: float) -> TokenLogprob:
        return TokenLogprob(
            chr(token), logprob, token if self.dialect == "vllm" else None, chr(token).encode()
        )

    def _value(self, logprob: float, rank: int) -> float:
        if self.zero:
            return 0.0
        return -9999.0 if self.sentinels and rank else logprob

    def _exchange(self, request: Request, **fields: Any) -> Exchange:
        return replace(Exchange(request.id, "tiny", request, AT, Timings(0.0)), **fields)
