"""What a request makes the server write: calls, a structured answer, or nothing of its own."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from reference_engine.server.api_errors import ApiError
from reference_engine.server.tool_calls.intent import described, last_said, tools_asked_for, words_of
from reference_engine.server.tool_calls.patterns import UnwritableError
from reference_engine.server.tool_calls.values import value_for
from toolcall_validator.asked import Asked
from toolcall_validator.families import RawCall
from toolcall_validator.families.rendering import as_json
from toolcall_validator.schemas import Schemas

KNOBS = ("choice.none_violated", "choice.required_violated", "choice.wrong_function")
"""Codes that are faults of the decision itself."""


def names_to_call(
    asked: Asked, messages: Sequence[Mapping[str, Any]], *, shown: bool, spoiled: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the tools that are called, in order.

    ``required`` and a named choice always call; ``auto`` calls when the prompt
    shows the tools and the last user message asks for one (``intent``).
    ``spoiled`` holds codes of ``KNOBS``.

    Raises:
        ApiError: 400 when a call is required and there is nothing to call.
    """
    choice = asked.choice
    if choice == "none":
        choice = "required" if "choice.none_violated" in spoiled and asked.tools else "none"
    if choice in ("required", "named"):
        _require_callable(asked)
        if "choice.required_violated" in spoiled:
            return ()
    elif choice == "none" or not shown:
        return ()
    allowed = [name for name in asked.tools if asked.allowed is None or name in asked.allowed]
    others = [name for name in asked.tools if name not in allowed]
    if others and "choice.wrong_function" in spoiled:
        return (others[0],)
    descriptions = described(asked.body.get("tools") or ())
    wanted = tools_asked_for(last_said(messages), {name: descriptions[name] for name in allowed})
    if choice == "named" or (choice == "required" and not wanted):
        return tuple(allowed[:1])
    return wanted[:1] if asked.body.get("parallel_tool_calls") is False else wanted


def _require_callable(asked: Asked) -> None:
    if not asked.tools:
        raise ApiError(400, "tool_choice requires a call and no tools are given", param="tool_choice")
    if asked.allowed is not None and not asked.allowed & asked.tools.keys():
        named = ", ".join(sorted(asked.allowed))
        raise ApiError(400, f"tool_choice names {named}, which is not among the tools", param="tool_choice")


def calls_of(
    names: Sequence[str], asked: Asked, said: str, *, seed: int, family: str, schemas: Schemas
) -> tuple[RawCall, ...]:
    """Return one call a name, with arguments that meet its schema.

    Raises:
        ApiError: 400 for a schema that does not compile or that cannot be met.
    """
    words = words_of(said)
    past = len(asked.past_ids)
    calls = []
    for place, name in enumerate(names):
        try:
            value = value_for(asked.tools[name].parameters, seed + place, words, schemas)
        except UnwritableError as error:
            raise ApiError(400, f"the parameters of {name} cannot be met: {error}", param="tools") from error
        identity = f"functions.{name}:{past + place}" if family == "kimi" else None
        calls.append(RawCall(name, as_json(value), identity))
    return tuple(calls)


def structured(asked: Asked, said: str, *, seed: int, schemas: Schemas) -> str | None:
    """Return the JSON text that ``response_format`` asks for, ``None`` when it asks for prose.

    Raises:
        ApiError: 400 for a schema that does not compile or that cannot be met.
    """
    if asked.structure is None:
        return None
    words = words_of(said) or ("word",)
    if isinstance(asked.structure, bool):
        return as_json({"answer": random.Random(seed).choice(words)})  # noqa: S311
    try:
        return as_json(value_for(asked.structure, seed, words, schemas))
    except UnwritableError as error:
        raise ApiError(400, f"the response_format cannot be met: {error}", param="response_format") from error
