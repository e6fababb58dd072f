"""How a session gets a cache key of its own, at servers that refuse fields they don't know."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probes.dialects import Dialect
from ringtrue.records import Exchange, FailureKind, Request

_REFUSED = frozenset({FailureKind.REFUSED, FailureKind.CAPABILITY_REFUSED})


def new_keys(*names: str, count: int) -> tuple[str, ...]:
    """Return ``count`` keys that no other ``names`` give: 16 hex digits each.

    With the run's name among them no night uses a key again, so that no cache
    knows it and a balancer that hashes it draws backends anew.
    """
    origin = "\0".join(names)
    return tuple(hashlib.sha256(f"{origin}\0{i}".encode()).hexdigest()[:16] for i in range(count))


class CacheKeys:
    """Puts the keys of sessions into requests to one endpoint, by the best field that it takes.

    A session always has connections of its own and the header
    ``x-session-id``; the fields of the body are the dialect's. ``settled``
    once a request was answered.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.settled = False
        self._dialect = dialect
        self._refused = 0

    def put(self, request: Request) -> Request:
        """Return ``request`` with its session's key in the body."""
        key = request.session
        return request if key is None else replace(request, extra={**request.extra, **self._fields(key)})

    def again(self, exchange: Exchange) -> bool:
        """Return whether the request was refused and may be taken with its key put otherwise, or without."""
        self.settled = self.settled or exchange.error is None
        refused = exchange.error is not None and exchange.error.kind in _REFUSED
        if not refused or self.settled or not self._fields("x"):
            return False
        self._refused += 1
        return True

    @property
    def field(self) -> str | None:
        """The field that carries the key, ``None`` where the server takes none."""
        return next(iter(self._fields("x")), None)

    def _fields(self, key: str) -> Mapping[str, Any]:
        ways = self._dialect.cache_fields(key)
        return ways[self._refused] if self._refused < len(ways) else {}
