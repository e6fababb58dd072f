"""The protocol of a dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from probes.dialects.ways import TextRoute, Way
from ringtrue.records import Request


class Dialect(Protocol):
    """Turns a request into the body that one kind of server understands."""

    @property
    def name(self) -> str:
        """The name used in configuration."""

    @property
    def returns_token_ids(self) -> bool:
        """Whether the server can say which token IDs it used in the answer to any request."""

    @property
    def returns_prompt_logprobs(self) -> bool:
        """Whether the server can give logprobs at prompt positions."""

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to be shown a chat's prompt, best first (``probes.prompt_ids``)."""

    @property
    def text_route(self) -> TextRoute | None:
        """The route that tokenizes text, ``None`` where the server has none."""

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The JSON body of ``request``; what this dialect cannot ask is left out."""

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:
        """The fields that tell a cache or a balancer that ``key`` is a session of its own, best first.

        A server that refuses one is asked with the next, and then with none (``probes.cache_key``).
        """
