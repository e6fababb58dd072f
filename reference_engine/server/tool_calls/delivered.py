"""An answer as it is delivered, before it is spelled for the wire."""

from __future__ import annotations

from dataclasses import dataclass

from toolcall_validator.families import RawCall


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a client gets. A call without ``id`` goes out without one; so does ``finish_reason``."""

    content: str
    reasoning: str = ""
    calls: tuple[RawCall, ...] = ()
    finish_reason: str | None = "stop"
