"""The OpenAI-compatible server of one replica."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from reference_engine.engine import Engine
from reference_engine.server.answering import Prompt, generate_answer, generate_pieces
from reference_engine.server.answers import ChatShape, CompletionShape, Envelope, usage
from reference_engine.server.api_errors import ApiError, as_api_error, error_handlers, json_response
from reference_engine.server.bodies import ChatBody, CompletionBody, GenerationBody, TokenizeBody, parse_body
from reference_engine.server.disconnect import unless_disconnected
from reference_engine.server.planning import plan_chat, plan_completion, tokenized
from reference_engine.server.prompting import require_breakable
from reference_engine.server.replica import Replica, Sessions, Treatment
from reference_engine.server.tool_calls.responding import ToolAnswers
from ringtrue.errors import RingtrueError
from ringtrue.secrets import Secret
from toolcall_validator.families.formats import format_of
from toolcall_validator.schemas import Schemas

Sleep = Callable[[float], Awaitable[None]]


def create_app(
    engine: Engine,
    replica: Replica,
    *,
    key: Secret | None = None,
    sleep: Sleep = asyncio.sleep,
    now: Callable[[], float] = time.time,
    rng: random.Random | None = None,
) -> Starlette:
    """Return the ASGI application that serves ``replica``; loads its models, which takes seconds.

    ``key`` is what clients must send as a bearer token. ``rng`` draws the
    seeds of requests that bring none.

    Raises:
        ModelError: a model cannot be used, or has nothing for one of the faults to break.
    """
    return ReplicaServer(engine, replica, key, sleep, now, rng or random.Random()).app()  # noqa: S311  # no secret


class ReplicaServer:
    """The routes of one replica."""

    def __init__(
        self,
        engine: Engine,
        replica: Replica,
        key: Secret | None,
        sleep: Sleep,
        now: Callable[[], float],
        rng: random.Random,
    ) -> None:
        self._engine = engine
        self._replica = replica
        self._key = key
        self._sleep = sleep
        self._now = now
        self._rng = rng
        self._sessions = Sessions(engine, replica)
        self._schemas = Schemas()
        self._tool_answers = ToolAnswers(self._schemas, rng)
        format_of(replica.tool_format)
        replica.faults.knobs.require_writable(replica.tool_format)
        require_breakable(self._sessions.faulty.model.codec, replica.faults)
        # Of the served name alone: a fingerprint of the weights would give every planted fault away.
        self._fingerprint = f"fp_{hashlib.sha256(replica.served_name.encode()).hexdigest()[:12]}"
        self._started = int(now())

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            Route("/health", self.health),
            Route("/v1/models", self.models),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/completions", self.completion, methods=["POST"]),
            Route("/tokenize", self.tokenize, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers=error_handlers())

    async def health(self, _request: Request) -> Response:
        """Answer that the server is up."""
        return json_response({"status": "ok"})

    async def models(self, request: Request) -> Response:
        """List the one model, with the context length it promises."""
        self._authorize(request)
        model = {
            "id": self._replica.served_name,
            "object": "model",
            "created": self._started,
            "owned_by": "ringtrue",
            "max_model_len": self._sessions.faulty.model.context_length,
        }
        return json_response({"object": "list", "data": [model]})

    async def tokenize(self, request: Request) -> Response:
        """Tokenize a prompt or a chat, as the generating routes of this replica do."""
        self._authorize(request)
        body = parse_body(await request.body(), TokenizeBody)
        if body.model is not None:
            self._require_model(body.model)
        treatment = self._sessions.treatment(_session(request, None))
        ids = tokenized(body, treatment)
        limit = treatment.model.context_length
        return json_response({"count": len(ids), "max_model_len": limit, "tokens": list(ids)})

    async def chat(self, request: Request) -> Response:
        """Answer a chat."""
        self._authorize(request)
        body = parse_body(await request.body(), ChatBody)
        treatment = await self._treat(request, body)
        prompts = plan_chat(
            body,
            treatment,
            max_logprobs=self._replica.max_logprobs,
            draw_seed=self._draw_seed,
            schemas=self._schemas,
        )
        if prompts[0].forced is not None or treatment.faults.knobs:
            return await self._respond_whole(request, body, prompts[0])
        return await self._respond(request, body, ChatShape(body), prompts)

    async def completion(self, request: Request) -> Response:
        """Continue one or more prompts."""
        self._authorize(request)
        body = parse_body(await request.body(), CompletionBody)
        treatment = await self._treat(request, body)
        prompts = plan_completion(
            body,
            treatment,
            max_logprobs=self._replica.max_logprobs,
            draw_seed=self._draw_seed,
            schemas=self._schemas,
        )
        return await self._respond(request, body, CompletionShape(body), prompts)

    async def _treat(self, request: Request, body: GenerationBody) -> Treatment:
        self._require_model(body.model)
        treatment = self._sessions.treatment(_session(request, body))
        if treatment.faults.latency_s:
            await self._sleep(treatment.faults.latency_s)
        return treatment

    async def _respond(
        self,
        request: Request,
        body: GenerationBody,
        shape: ChatShape | CompletionShape,
        prompts: list[Prompt],
    ) -> Response:
        envelope = self._envelope(shape, streamed=body.stream)
        if body.stream:
            events = self._events(envelope, shape, prompts, include_usage=_wants_usage(body))
            return StreamingResponse(events, media_type="text/event-stream")
        answers = await unless_disconnected(
            request, asyncio.gather(*(generate_answer(self._engine, prompt) for prompt in prompts))
        )
        return json_response(shape.whole(envelope, answers))

    async def _respond_whole(self, request: Request, body: ChatBody, prompt: Prompt) -> Response:
        """Answer a chat whose answer is known as a whole before its first byte leaves."""
        envelope = self._envelope(ChatShape(body), streamed=body.stream)
        (answer,) = await unless_disconnected(request, asyncio.gather(generate_answer(self._engine, prompt)))
        if not body.stream:
            return json_response(self._tool_answers.body(body, envelope, answer))
        chunks = self._tool_answers.chunks(body, envelope, answer, include_usage=_wants_usage(body))
        return StreamingResponse(_stream_of(chunks), media_type="text/event-stream")

    def _envelope(self, shape: ChatShape | CompletionShape, *, streamed: bool) -> Envelope:
        return Envelope(
            id=f"{shape.prefix}-{uuid.UUID(int=self._rng.getrandbits(128), version=4)}",
            kind=shape.chunk_kind if streamed else shape.kind,
            created=int(self._now()),
            model=self._replica.served_name,
            fingerprint=self._fingerprint,
        )

    async def _events(
        self,
        envelope: Envelope,
        shape: ChatShape | CompletionShape,
        prompts: list[Prompt],
        *,
        include_usage: bool,
    ) -> AsyncIterator[bytes]:
        generated = 0
        try:
            for index, prompt in enumerate(prompts):
                if (opening := shape.first(envelope, prompt, index)) is not None:
                    yield _event(opening)
                offset = 0
                async with aclosing(generate_pieces(self._engine, prompt)) as pieces:
                    async for piece in pieces:
                        yield _event(shape.chunk(envelope, prompt, piece, index=index, offset=offset))
                        generated += 1
                        offset += len(piece.text)
        except RingtrueError as error:
            # The status is sent already: the stream ends with the error, and without [DONE].
            yield _event(as_api_error(error).body())
            return
        if include_usage:
            yield _event(envelope.wrap([], usage=usage(sum(len(p.ids) for p in prompts), generated)))
        yield b"data: [DONE]\n\n"

    def _authorize(self, request: Request) -> None:
        if self._key is None:
            return
        sent = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(sent.encode(), self._key.reveal().encode()):
            raise ApiError(401, "the API key is missing or wrong", code="invalid_api_key")

    def _require_model(self, name: str) -> None:
        if name != self._replica.served_name:
            raise ApiError(
                404,
                f"the model {name!r} does not exist; this server serves {self._replica.served_name!r}",
                param="model",
                code="model_not_found",
            )

    def _draw_seed(self) -> int:
        return self._rng.getrandbits(63)


def _session(request: Request, body: GenerationBody | None) -> str:
    """The key that decides how a session is treated: what the client says, else its connection."""
    stated = (body.prompt_cache_key or body.user) if body is not None else None
    stated = stated or request.headers.get("x-session-id")
    if stated:
        return stated
    return f"{request.client.host}:{request.client.port}" if request.client else ""


def _wants_usage(body: GenerationBody) -> bool:
    return body.stream_options is not None and body.stream_options.include_usage


async def _stream_of(chunks: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield _event(chunk)
    yield b"data: [DONE]\n\n"


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"
