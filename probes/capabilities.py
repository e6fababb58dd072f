"""What an endpoint can do, found out by asking it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from probes.dialects import dialect_named
from probes.prompt_ids import rendering_ways, show
from ringtrue.endpoint import Endpoint
from ringtrue.records import Exchange, Failure, FailureKind, Request, Sampling
from tokenizer_checks.templates.chat import Chat

_LADDER = (1, 5, 20, 100, 1000)  # values of k; between the last accepted and the first refused we bisect
_BISECTIONS = 4
# llama-cpp-python answers 500 to what it does not know.
_NO = frozenset(
    {FailureKind.NOT_FOUND, FailureKind.REFUSED, FailureKind.CAPABILITY_REFUSED, FailureKind.SERVER_ERROR}
)
_OWNERS: Mapping[str, str] = {"sglang": "sglang", "llamacpp": "llama_cpp"}  # as they write ``owned_by``
_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Tell the time in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing an endpoint can or cannot do; ``available`` is ``None`` when it could not be found out."""

    name: str
    available: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What was found. ``largest_k`` is the most alternatives seen in an answer; lengths in tokens."""

    model: str
    dialect: str
    models: tuple[str, ...]
    context_length: int | None
    largest_k: int | None
    features: tuple[Feature, ...]
    requests: int

    def feature(self, name: str) -> Feature:
        """The feature of that name; raises ``KeyError`` where there is none."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer of ``/v1/models``: names, the promised context, and the dialect it hints at."""

    models: tuple[str, ...] = ()
    context_length: int | None = None
    dialect: str = "openai"
    error: Failure | None = None


async def list_models(endpoint: Endpoint) -> Listing:
    """Ask which models are served; nothing but an ``error`` when that route does not answer.

    SGLang and llama.cpp name themselves as owner of the model. Of the others
    only vLLM, and servers that speak like it, promise a ``max_model_len``.
    """
    reply = await endpoint.call("GET", "/v1/models")
    data = reply.body.get("data") if isinstance(reply.body, dict) else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    mine = next(
        (entry for entry in entries if entry.get("id") == endpoint.spec.model), entries[0] if entries else {}
    )
    lengths = [mine.get(key) for key in ("max_model_len", "context_length", "context_window")]
    return Listing(
        tuple(str(entry["id"]) for entry in entries if "id" in entry),
        next((length for length in lengths if isinstance(length, int)), endpoint.spec.context_length),
        _OWNERS.get(str(mine.get("owned_by")), "vllm" if "max_model_len" in mine else "openai"),
        reply.error,
    )


async def discover(endpoint: Endpoint) -> Capabilities:
    """Find out what an endpoint can do, in about 20 requests of one token each."""
    explorer = _Explorer(endpoint)
    listing = await list_models(endpoint)
    features = [Feature("models", bool(listing.models), listing.error.message if listing.error else "")]
    chat = await explorer.ask("chat")
    features.append(_feature("chat", chat))
    features.append(_feature("stream", await explorer.ask("stream", stream=True)))
    streamed = explorer.last
    features.append(_asked("stream usage", streamed, streamed.usage is not None))
    features.append(_tools(chat, await explorer.ask("tools", tools=(_TOOL,), tool_choice="auto")))
    returning = await explorer.ask("token IDs", return_token_ids=True)
    features.append(_asked("token IDs", returning, returning.prompt_token_ids is not None))
    text = await explorer.complete("completions", prompt="The capital of France is")
    features.append(_feature("completions", text))
    ids = text.prompt_token_ids or returning.prompt_token_ids or (40, 41, 42)
    features.append(_feature("token-ID prompts", await explorer.complete("ids", prompt_token_ids=ids)))
    echo = await explorer.complete("echo", prompt="The capital of France is", echo=True, logprobs=1)
    echoed = echo.text.startswith("The capital") or bool(echo.prompt_logprobs)
    features.append(_asked("echo", echo, echoed))
    scored = await explorer.complete("scored", prompt="The capital of France is", prompt_logprobs=1)
    features.append(_asked("prompt logprobs", scored, scored.prompt_logprobs is not None))
    features.append(await _tokenize(endpoint))
    features.append(await _rendered(endpoint))
    largest_k = await explorer.largest_k()
    features.append(_asked("logprobs", explorer.last_with_logprobs or explorer.last, largest_k is not None))
    return Capabilities(
        endpoint.spec.model,
        endpoint.spec.dialect,
        listing.models,
        listing.context_length,
        largest_k,
        tuple(features),
        explorer.requests + 2 + len(rendering_ways(dialect_named(endpoint.spec.dialect))),
    )


class _Explorer:
    """Sends variations of one short question."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.requests = 0
        self.last_with_logprobs: Exchange | None = None
        self._endpoint = endpoint
        self._base = Request(
            id="inspect",
            messages=({"role": "user", "content": "Say hello."},),
            sampling=Sampling(temperature=0.0, max_tokens=1),
        )

    async def ask(self, name: str, **changes: Any) -> Exchange:
        """The chat question with changes."""
        self.requests += 1
        self.last = await self._endpoint.send(replace(self._base, id=f"inspect-{name}", **changes))
        return self.last

    async def complete(self, name: str, **changes: Any) -> Exchange:
        """The same on the completions route."""
        dialect = dialect_named(self._endpoint.spec.dialect)
        return await self.ask(name, messages=None, return_token_ids=dialect.returns_token_ids, **changes)

    async def largest_k(self) -> int | None:
        """The most alternatives that came back, asking up the ladder and then between its steps."""
        accepted, refused, most = 0, None, None
        for k in _LADDER:
            returned = await self._alternatives(k)
            if returned is None:
                refused = k
                break
            accepted, most = k, max(most or 0, returned)
            if returned < k:
                return most  # the server gives what it has, whatever is asked
        for _ in range(_BISECTIONS):
            if refused is None or not accepted or refused - accepted <= 1:
                break
            k = (accepted + refused) // 2
            returned = await self._alternatives(k)
            if returned is None:
                refused = k
            else:
                accepted, most = k, max(most or 0, returned)
        return most

    async def _alternatives(self, k: int) -> int | None:
        exchange = await self.ask(f"k{k}", logprobs=k)
        if exchange.error is not None or not exchange.top_logprobs:
            return None
        self.last_with_logprobs = exchange
        return len(exchange.top_logprobs[0].top)


def _feature(name: str, exchange: Exchange) -> Feature:
    """Available when the answer came; unknown when what went wrong says nothing about the feature."""
    if exchange.error is None:
        return Feature(name, True)
    return Feature(name, False if exchange.error.kind in _NO else None, exchange.error.message)


def _asked(name: str, exchange: Exchange, came: bool) -> Feature:
    """Available when the answer has what was asked for."""
    found = _feature(name, exchange)
    if not found.available or came:
        return found
    return Feature(name, False, "asked for, not in the answer")


def _tools(without: Exchange, with_tools: Exchange) -> Feature:
    found = _feature("tools", with_tools)
    before, after = without.usage, with_tools.usage
    if (
        found.available
        and before
        and after
        and before.prompt_tokens
        and before.prompt_tokens == after.prompt_tokens
    ):
        return Feature("tools", False, "accepted, but the prompt does not grow: the template drops them")
    return found


async def _rendered(endpoint: Endpoint) -> Feature:
    """Whether the IDs of a chat are shown by a route that only renders it."""
    ways = rendering_ways(dialect_named(endpoint.spec.dialect))
    shown = await show(endpoint, Chat(({"role": "user", "content": "Say hello."},)), ways=ways, id="inspect")
    showing = [one.way for one in shown if one.ids is not None]
    if showing:
        return Feature("rendered IDs", True, f"by {', '.join(showing)}")
    problems = [f"{one.way}: {one.problem}" for one in shown]
    return Feature("rendered IDs", False, "; ".join(problems) or "the dialect knows no route that renders")


async def _tokenize(endpoint: Endpoint) -> Feature:
    reply = await endpoint.call("POST", "/tokenize", {"model": endpoint.spec.model, "prompt": "hello"})
    if reply.error is not None:
        return Feature("tokenize", False if reply.error.kind in _NO else None, reply.error.message)
    tokens = reply.body.get("tokens") if isinstance(reply.body, dict) else None
    return Feature(
        "tokenize", isinstance(tokens, list), "" if isinstance(tokens, list) else "no tokens came back"
    )
