"""Suites read from JSONL: a whole chat request a line, as public verifiers keep them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from probes.toolcall_suite.prompt import Due, ToolPrompt, due_of
from ringtrue.errors import ConfigError
from ringtrue.payload import from_body
from ringtrue.records import Sampling

# How a request is sent is not the suite's to say: the cap, the temperature and the two forms are the part's.
_OURS = frozenset(
    {"id", "expect", "model", "stream", "stream_options", "temperature", "top_p", "seed", "n", "user"}
    | {"max_tokens", "max_completion_tokens", "logprobs", "top_logprobs", "return_token_ids"}
)
_REMEDY = 'A line is a whole chat request, {"messages": [...], "tools": [...], ...}, with "id" or without'


def load_suite() -> tuple[ToolPrompt, ...]:
    """Return our own requests in their order, in which those of one kind lie far apart."""
    name = "suite.jsonl"
    text = files("probes.toolcall_suite").joinpath(name).read_bytes()
    return read_lines(text.splitlines(), source=name)


def read_suite(path: Path) -> tuple[ToolPrompt, ...]:
    """Return the requests of a file of the caller's own.

    Raises:
        ConfigError: it can't be read, holds none, or a line is no chat request; ``where`` names file:line.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", where=f"parts.toolcall_suite: {path}"
        ) from error
    prompts = read_lines(lines, source=str(path))
    if not prompts:
        raise ConfigError("holds no request", where=f"parts.toolcall_suite: {path}", remedy=_REMEDY)
    return prompts


def read_lines(lines: Iterable[bytes], *, source: str) -> tuple[ToolPrompt, ...]:
    """Return the requests of ``lines``, blank ones passed over; one without id is named by its line.

    Raises:
        ConfigError: a line is no chat request, or two have one id; ``where`` names the line.
    """
    prompts: dict[str, ToolPrompt] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{source}:{number}"
        prompt = _prompt(line, number, where)
        if prompt.id in prompts:
            raise ConfigError(f"a second request has the id {prompt.id!r}", where=where)
        prompts[prompt.id] = prompt
    return tuple(prompts.values())


def together(own: Sequence[ToolPrompt], others: Sequence[ToolPrompt]) -> tuple[ToolPrompt, ...]:
    """Return both suites as one, each spread evenly over it, so that every stretch asks of both.

    Raises:
        ConfigError: an id is in both.
    """
    shared = {prompt.id for prompt in own} & {prompt.id for prompt in others}
    if shared:
        raise ConfigError(
            f"the id {min(shared)!r} is one of ringtrue's own requests",
            where="parts.toolcall_suite",
            remedy="Give the request another id, or none",
        )
    placed = [((at + 0.5) / len(suite), prompt) for suite in (own, others) for at, prompt in enumerate(suite)]
    return tuple(prompt for _, prompt in sorted(placed, key=lambda place: place[0]))


def _prompt(line: bytes, number: int, where: str) -> ToolPrompt:
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"no JSON: {error}", where=where, remedy=_REMEDY) from error
    if not isinstance(body, dict) or not _objects(body.get("messages")) or not body["messages"]:
        raise ConfigError("no chat request: messages is no list of objects", where=where, remedy=_REMEDY)
    if body.get("tools") is not None and not _objects(body["tools"]):
        raise ConfigError("tools is no list of objects", where=where, remedy=_REMEDY)
    name = body.get("id", f"user-{number}")
    if not isinstance(name, str) or not name:
        raise ConfigError("id is no text", where=where, remedy=_REMEDY)
    request = from_body(name, {key: value for key, value in body.items() if key not in _OURS})
    request = dataclasses.replace(request, sampling=Sampling(max_tokens=None))
    for what, value, kind in (
        ("tool_choice", request.tool_choice, str | dict),
        ("response_format", request.response_format, dict),
    ):
        if value is not None and not isinstance(value, kind):
            raise ConfigError(f"{what} can't be {value!r}", where=where, remedy=_REMEDY)
    due, tools = _expected(body.get("expect"), where)
    return ToolPrompt(name, request, due or due_of(request), tools)


def _expected(expect: object, where: str) -> tuple[Due | None, tuple[str, ...]]:
    if expect is None:
        return None, ()
    known = {due.value for due in Due}
    if not isinstance(expect, dict) or expect.get("kind") not in known:
        raise ConfigError(f"expect.kind is none of {', '.join(sorted(known))}", where=where)
    tools = expect.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        raise ConfigError("expect.tools is no list of names", where=where)
    return Due(expect["kind"]), tuple(tools)


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
