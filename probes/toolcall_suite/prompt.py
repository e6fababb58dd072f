"""One request of a suite: a whole chat request and what is due in answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ringtrue.records import Request


class Due(StrEnum):
    """What a sound answer holds."""

    CALL = "call"
    NO_CALL = "no_call"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ToolPrompt:
    """A request as the caller wrote it, without what says how it is sent.

    ``request`` has no cap, no temperature and does not stream: whoever sends
    it decides. ``due`` is ``None`` where nothing says whether a call is due:
    tools under ``auto`` in a line without ``expect``. ``tools`` names those
    that may be called, none for any.
    """

    id: str
    request: Request
    due: Due | None
    tools: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[Mapping[str, Any], ...]:
        """The conversation."""
        return self.request.messages or ()

    @property
    def free(self) -> bool:
        """Whether the server may leave the model to itself: nothing has to be forced upon it."""
        choice = self.request.tool_choice
        return bool(self.request.tools) and choice in (None, "auto") and self.request.response_format is None


def due_of(request: Request) -> Due | None:
    """Return what the request alone says is due."""
    choice = request.tool_choice
    if request.tools and (choice == "required" or isinstance(choice, Mapping)):
        return Due.CALL
    if request.response_format is not None and request.response_format.get("type") != "text":
        return Due.JSON
    return None if request.tools and choice != "none" else Due.NO_CALL
