"""An endpoint that answers from recorded JSON, read as an answer over HTTP is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from probes.dialects import dialect_named
from probes.failures import Place, failure_of_status
from probes.outcome import read_outcome
from probes.received import Received
from ringtrue.endpoint import Reply
from ringtrue.payload import path_of
from ringtrue.records import EndpointSpec, Exchange, Request, WireChunk
from tokenizer_checks.templates.chat import Chat

AT = datetime(2026, 3, 1, tzinfo=UTC)
HELLO = Chat(({"role": "user", "content": "hi"},))
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}},
}


@dataclass
class RecordedEndpoint:
    """``answers`` by route; a number stands for a refusal with that status, a list for a stream's events."""

    dialect: str
    answers: Mapping[str, Any]
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def spec(self) -> EndpointSpec:
        return EndpointSpec("recorded", "http://h", "m", dialect=self.dialect)

    async def send(self, request: Request) -> Exchange:
        path = path_of(request)
        self.sent.append((path, dialect_named(self.dialect).body(request, "m")))
        status, headers, data = self._answer(path, stream=request.stream)
        received = Received(0.0, status, headers, [WireChunk(1.0, data)], end=1.0)
        outcome = read_outcome(received, request, Place(self.spec, path), now=0.0)
        return outcome.exchange(request, self.spec, at=AT, scheduled=0.0, attempts=())

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        assert method == "POST"
        self.sent.append((path, orjson.loads(orjson.dumps(body))))
        status, headers, data = self._answer(path, stream=False)
        if status != 200:
            failure = failure_of_status(status, headers, data, Place(self.spec, path), now=0.0)
            return Reply(status, None, headers, failure)
        return Reply(status, orjson.loads(data), headers)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _answer(self, path: str, *, stream: bool) -> tuple[int, Mapping[str, str], bytes]:
        answer = self.answers.get(f"{path} stream" if stream else path, 404)
        if isinstance(answer, int):
            return answer, {}, orjson.dumps({"error": {"message": "not here"}})
        if stream:
            events = [b"data: " + orjson.dumps(event) + b"\n\n" for event in answer]
            return 200, {"content-type": "text/event-stream"}, b"".join([*events, b"data: [DONE]\n\n"])
        return 200, {"content-type": "application/json"}, orjson.dumps(answer)


def chat_answer(**fields: Any) -> dict[str, Any]:
    """A plain answer of the chat route with ``fields`` beside the usual ones."""
    message = {"role": "assistant", "content": "Hello"}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    return {
        "id": "a",
        "object": "chat.completion",
        "model": "m",
        "choices": [choice],
        "usage": usage,
    } | fields


def in_choice(answer: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The same answer with ``fields`` in its choice."""
    return {**answer, "choices": [{**answer["choices"][0], **fields}]}


def completion_answer(**fields: Any) -> dict[str, Any]:
    """A plain answer of the completions route with ``fields`` in its choice."""
    choice = {"index": 0, "text": "x", "logprobs": None, "finish_reason": "length", **fields}
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    return {"id": "a", "object": "text_completion", "model": "m", "choices": [choice], "usage": usage}
