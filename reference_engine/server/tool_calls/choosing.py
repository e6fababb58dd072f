"""Where a prompt is answered by force, and with what."""

from __future__ import annotations

from dataclasses import replace

from reference_engine.server.api_errors import ApiError
from reference_engine.server.bodies import ChatBody
from reference_engine.server.prompting import chat_ids, cut_context
from reference_engine.server.replica import Treatment
from reference_engine.server.tool_calls.decision import calls_of, names_to_call, structured
from reference_engine.server.tool_calls.forced import Forced
from reference_engine.server.tool_calls.intent import last_said
from reference_engine.server.tool_calls.scene import Scene
from reference_engine.server.tool_calls.template import shown_in
from toolcall_validator.asked import Asked, read_request
from toolcall_validator.families import RawCall, render
from toolcall_validator.schemas import Schemas

_CHOICES = ("none", "auto", "required")
_FORMATS = ("text", "json_object", "json_schema")


def asked_of(body: ChatBody) -> Asked:
    """Return what a chat asks for.

    Raises:
        ApiError: 400 for a ``tool_choice`` or a ``response_format`` of another kind.
    """
    choice = body.tool_choice
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind not in (None, *_CHOICES, "function", "allowed_tools") or choice == "function":
        raise ApiError(400, f"this server does not know the tool_choice {kind!r}", param="tool_choice")
    if body.response_format is not None and body.response_format.get("type") not in _FORMATS:
        raise ApiError(400, "this server does not support that response_format", param="response_format")
    return read_request(body.model_dump(exclude_none=True))


def forced_chat(
    body: ChatBody, treatment: Treatment, ids: tuple[int, ...], seed: int, schemas: Schemas
) -> Forced | None:
    """Return what a chat is answered with by force, ``None`` where the model speaks for itself.

    ``ids`` is the rendered prompt: under ``auto`` a tool is called only if the
    template showed the tools, since no model calls what it does not see.

    Raises:
        ApiError: 400 for what cannot be called or met.
    """
    asked = asked_of(body)
    messages = [message.model_dump() for message in body.messages]
    shown = asked.choice == "auto" and bool(asked.tools) and _shows_tools(body, treatment, ids)
    knobs = treatment.faults.knobs
    names = names_to_call(asked, messages, shown=shown, spoiled=knobs.decisions)
    said = last_said(messages)
    if names:
        calls = calls_of(names, asked, said, seed=seed, family=treatment.tool_format, schemas=schemas)
        return _forced(calls, asked, treatment, schemas)
    text = structured(asked, said, seed=seed, schemas=schemas)
    return None if text is None else Forced(text, calls=False)


def forced_completion(
    treatment: Treatment, ids: tuple[int, ...], seed: int, schemas: Schemas
) -> Forced | None:
    """Return the raw text that a rendered chat with tools is continued with, ``None`` for other prompts.

    The prompt is told by what it shows (``template.shown_in``), as a model
    would: declared tools, and a last user message that asks for one of them.
    There is no ``tool_choice`` here, so ``auto`` holds.
    """
    shown = shown_in(treatment.model.codec.decode(ids))
    if shown is None:
        return None
    asked = read_request({"tools": list(shown.tools)})
    said = [{"role": "user", "content": shown.said}] if shown.said else []
    names = names_to_call(asked, said, shown=True)
    if not names:
        return None
    calls = calls_of(names, asked, shown.said, seed=seed, family=treatment.tool_format, schemas=schemas)
    return _forced(calls, asked, treatment, schemas)


def _forced(calls: tuple[RawCall, ...], asked: Asked, treatment: Treatment, schemas: Schemas) -> Forced:
    scene = Scene(asked, schemas, treatment.tool_format)
    written = treatment.faults.knobs.written(calls, scene)
    return Forced(render(treatment.tool_format, written), calls=True)


def _shows_tools(body: ChatBody, treatment: Treatment, ids: tuple[int, ...]) -> bool:
    without = replace(body.chat(body.messages), tools=None)
    bare = chat_ids(treatment.model.codec, without, treatment.faults)
    return cut_context(bare, treatment.faults) != ids
