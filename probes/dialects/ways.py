"""Ways to be shown a prompt: what is asked, and where in the answer the token IDs stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from probes.dialects.reading import documents, joined
from probes.dialects.shown import Found, Shown, judge
from probes.dialects.spelling import Spelling
from ringtrue.endpoint import Endpoint
from ringtrue.records import Request, Sampling
from tokenizer_checks.templates.chat import Chat

Find = Callable[[Any], Found]
"""From the JSON of an answer, or of one event of a stream, to what it says of the prompt. Never raises."""

_ONE_TOKEN = Sampling(temperature=0.0, max_tokens=1)


@dataclass(frozen=True, slots=True)
class Asking:
    """One chat as it travels, to be asked of one endpoint, and what other ways have shown of it so far."""

    endpoint: Endpoint
    chat: Chat
    id: str
    vocabulary_size: int | None = None
    earlier: tuple[Shown, ...] = ()

    @property
    def ids(self) -> tuple[int, ...] | None:
        """The IDs that the first way with any showed."""
        return next((shown.ids for shown in self.earlier if shown.ids is not None), None)

    @property
    def text(self) -> str | None:
        """The text of the prompt that the first way with one showed."""
        return next((shown.text for shown in self.earlier if shown.text), None)


class Way(Protocol):
    """One way to be shown a prompt."""

    @property
    def name(self) -> str:
        """Its name: no other way of the dialect has it."""

    @property
    def used(self) -> bool:
        """Whether it shows what an answered request for the chat used."""

    @property
    def generates(self) -> bool:
        """Whether the model is asked for a token: it then costs what a request costs."""

    async def show(self, asking: Asking) -> Shown:
        """Ask; whatever goes wrong becomes the ``problem``, and nothing is raised."""


@dataclass(frozen=True, slots=True)
class Generation:
    """An ordinary request for one token: a chat, or on the completions route what was shown before.

    ``prompt`` is what goes out: ``chat``; ``ids``, those that another way
    showed; or ``text``, that of the prompt.
    """

    name: str
    find: Find
    spelling: Spelling = field(default_factory=Spelling)
    extra: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = "chat"
    stream: bool = False
    return_token_ids: bool = False
    without: str = "the answer holds no token IDs"

    @property
    def used(self) -> bool:
        """True for chats."""
        return self.prompt == "chat"

    @property
    def generates(self) -> bool:
        """Always."""
        return True

    async def show(self, asking: Asking) -> Shown:
        """Send the request, and read its raw answer."""
        refused = self.spelling.refusal(asking.chat) if self.used else self._missing(asking)
        if refused is not None:
            return Shown(self.name, self.used, None, None, problem=refused)
        exchange = await asking.endpoint.send(self.request(asking))
        if exchange.error is not None:
            return Shown(self.name, self.used, None, None, problem=exchange.error.message, exchange=exchange)
        return judge(
            self.name,
            joined([self.find(document) for document in documents(exchange)]),
            used=self.used,
            vocabulary_size=asking.vocabulary_size,
            without=self.without,
            exchange=exchange,
        )

    def request(self, asking: Asking) -> Request:
        """Return the request that ``show`` sends."""
        chat = asking.chat
        by_prompt: dict[str, dict[str, Any]] = {
            "chat": {"messages": chat.messages, "tools": chat.tools},
            "ids": {"prompt_token_ids": asking.ids},
            "text": {"prompt": asking.text},
        }
        fields = self.spelling.fields(chat) if self.used else {}
        return Request(
            id=f"{asking.id}-{self.name}",
            **by_prompt[self.prompt],
            sampling=_ONE_TOKEN,
            stream=self.stream,
            return_token_ids=self.return_token_ids,
            extra={**self.extra, **fields},
        )

    def _missing(self, asking: Asking) -> str | None:
        there = asking.ids if self.prompt == "ids" else asking.text
        return None if there else f"no other way showed {self.prompt} to send"


@dataclass(frozen=True, slots=True)
class Route:
    """A JSON route of the server's own.

    ``body`` makes what is sent, ``None`` where that needs what is ``missing``.
    ``check`` gets what was found and may say what is wrong with it.
    """

    name: str
    path: str
    body: Callable[[Asking], Mapping[str, Any] | None]
    find: Find
    used: bool = False
    generates: bool = False
    spelling: Spelling | None = None
    missing: str = "no other way showed text to send"
    without: str = "the answer holds no token IDs"
    check: Callable[[Asking, Found], str | None] | None = None

    async def show(self, asking: Asking) -> Shown:
        """Call the route."""
        problem = self.spelling.refusal(asking.chat) if self.spelling is not None else None
        body = None if problem else self.body(asking)
        if body is None:
            return Shown(self.name, self.used, None, None, problem=problem or self.missing)
        reply = await asking.endpoint.call("POST", self.path, body)
        if reply.error is not None:
            return Shown(self.name, self.used, None, None, problem=reply.error.message)
        found = self.find(reply.body)
        if self.check is not None:
            found = replace(found, problem=found.problem or self.check(asking, found))
        return judge(
            self.name,
            found,
            used=self.used,
            vocabulary_size=asking.vocabulary_size,
            without=self.without,
        )


@dataclass(frozen=True, slots=True)
class TextRoute:
    """The route by which a server tokenizes plain text as it does prompts, markers read as control tokens.

    ``body`` makes what is sent from the model's name and the text.
    """

    path: str
    body: Callable[[str, str], Mapping[str, Any]]
    find: Find

    async def show(self, endpoint: Endpoint, text: str, *, vocabulary_size: int | None) -> Shown:
        """Call the route."""
        name = "tokenize_text"
        reply = await endpoint.call("POST", self.path, self.body(endpoint.spec.model, text))
        if reply.error is not None:
            return Shown(name, False, None, None, text, reply.error.message)
        found = replace(self.find(reply.body), text=text)
        return judge(name, found, used=False, vocabulary_size=vocabulary_size)


def chat_body(asking: Asking, spelling: Spelling) -> dict[str, Any]:
    """Return model, messages and tools, and what the chat asks for beside them."""
    chat = asking.chat
    body: dict[str, Any] = {
        "model": asking.endpoint.spec.model,
        "messages": [dict(message) for message in chat.messages],
    }
    if chat.tools is not None:
        body["tools"] = [dict(tool) for tool in chat.tools]
    return body | spelling.fields(chat)
