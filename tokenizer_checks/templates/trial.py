"""What no reading of the source can tell: whether what is sent is written. Two small chats are rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ringtrue.errors import ModelError
from ringtrue.records import Severity
from tokenizer_checks.templates.bounds import TooCostlyError
from tokenizer_checks.templates.chat import Chat, Prompt
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.flaw import Flaw, Rule
from tokenizer_checks.templates.reading import Reading

_WORD, _TOOL = "Aldebaran", "find_aldebaran"  # nothing that a template would say by itself
_USER = {"role": "user", "content": "Where is it?"}
_OFFERED: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": _TOOL,
        "description": "Find a star.",
        "parameters": {"type": "object", "properties": {"year": {"type": "integer", "description": "Year"}}},
    },
}
_SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
_LINE = re.compile(r", line (\d+)$")


def try_bounds(reading: Reading, renderer: Renderer) -> Iterator[Flaw]:
    """Yield if one message is enough for the template to run without end, or to write without measure."""
    try:
        _rendered(reading, Chat((_USER,)), renderer)
    except ModelError as error:
        if isinstance(error.__cause__, (TooCostlyError, RecursionError, MemoryError, OverflowError)):
            line = line_of(error) or reading.message_loop()
            yield Flaw(Rule.TEMPLATE_COSTLY, Severity.FAIL, line, error.message)


def line_of(error: ModelError) -> int | None:
    """Return the line of a template that an error names."""
    line = _LINE.search(error.where or "")
    return int(line[1]) if line else None


def try_system(reading: Reading, renderer: Renderer) -> Iterator[Flaw]:
    """Yield if a system message is refused, or left out without a word."""
    system = {"role": "system", "content": f"Speak of {_WORD}."}
    line = reading.message_loop()
    try:
        text = _rendered(reading, Chat((system, _USER)), renderer)
    except ModelError as error:
        if _renders(reading, renderer):
            message = f"a system message is refused: {error.message}"
            yield Flaw(Rule.SYSTEM_REFUSED, Severity.INFO, line, message)
        return
    if _WORD not in text:
        message = "a system message is left out: what a caller sets there doesn't reach the model"
        yield Flaw(Rule.SYSTEM_DROPPED, Severity.WARN, line, message)


def try_tools(reading: Reading, renderer: Renderer) -> Iterator[Flaw]:
    """Yield if the template reads the tools of a request and writes none of them."""
    first = next(reading.uses("tools"), None)
    if first is None:
        return
    try:
        text = _rendered(reading, Chat((_USER,), (_OFFERED,)), renderer)
    except ModelError:
        return  # it refuses, so it drops nothing silently
    if _TOOL not in text:
        message = "the template reads tools, and the name of one that is offered is not in the prompt"
        yield Flaw(Rule.TOOLS_UNWRITTEN, Severity.WARN, first.lineno, message)


def _renders(reading: Reading, renderer: Renderer) -> bool:
    try:
        _rendered(reading, Chat((_USER,)), renderer)
    except ModelError:
        return False
    return True


def _rendered(reading: Reading, chat: Chat, renderer: Renderer) -> str:
    day = datetime(2024, 7, 26)  # noqa: DTZ001  # any day: nothing here depends on it
    return renderer.render(Prompt(reading.source, chat, day, _SPECIAL))
