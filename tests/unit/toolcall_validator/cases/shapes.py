"""The Responses and Messages shapes."""

from __future__ import annotations

from typing import Any

from tests.unit.toolcall_validator.exchanges import OK, WEATHER, Sample

ASKED = {
    "model": "m",
    "input": "Rain in Oslo?",
    "tools": [{"type": "function", "name": "weather", "parameters": WEATHER}],
}
PROMPT = [{"role": "user", "content": "Rain in Oslo?"}]
MESSAGE_TOOLS = [
    {"name": "weather", "input_schema": WEATHER},
    {"name": "ping", "input_schema": {"type": "object"}},
]


def response(arguments: str = OK, status: str = "completed", **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": arguments} | more
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Oslo."}]}
    return {"object": "response", "status": status, "output": [thought, item], "usage": {"output_tokens": 9}}


def response_events(
    *deltas: str, end: str | None = "completed", name: str = "weather"
) -> list[dict[str, Any]]:
    item = {"type": "function_call", "call_id": "c1", "name": name, "arguments": ""}
    events = [
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Let me look."},
        {"type": "response.output_item.added", "output_index": 1, "item": item},
        *(
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": part}
            for part in deltas
        ),
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "".join(deltas)},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": item | {"arguments": "".join(deltas)},
        },
    ]
    last = {"type": f"response.{end}", "response": {"status": end, "usage": {"output_tokens": 9}}}
    return events + ([last] if end else [])


def message(*blocks: dict[str, Any], stop: str = "tool_use") -> dict[str, Any]:
    return {"type": "message", "content": list(blocks), "stop_reason": stop, "usage": {"output_tokens": 9}}


def use(name: str = "weather", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}


def message_events(*parts: str, name: str = "weather", stop: str | None = "tool_use") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me look."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": use(name)},
        *(
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": p},
            }
            for p in parts
        ),
        {"type": "content_block_stop", "index": 1},
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
    return [*events, end, {"type": "message_stop"}] if stop else events


def responses(answer: dict[str, Any] | list[dict[str, Any]], **asked: Any) -> dict[str, Any]:
    return {"request": ASKED | asked, "chunks" if isinstance(answer, list) else "response": answer}


def messages(answer: dict[str, Any] | list[dict[str, Any]], **asked: Any) -> dict[str, Any]:
    body = {"model": "m", "max_tokens": 90, "messages": PROMPT, "tools": MESSAGE_TOOLS} | asked
    return {"request": body, "chunks" if isinstance(answer, list) else "response": answer}


TEXT = {"type": "text", "text": "<tool_call>{"}
SAMPLES = (
    Sample("responses", responses(response())),
    Sample("responses-stream", responses(response_events(OK[:5], OK[5:]))),
    Sample("responses-lost", responses(response("{}")), ("args.value_lost",)),
    Sample(
        "responses-cut",
        responses(response_events('{"place": "O', end="incomplete")),
        ("args.truncated_tail",),
    ),
    Sample("responses-no-end", responses(response_events(OK, end=None)), ("finish.missing",)),
    Sample("responses-unknown", responses(response_events(OK, name="wether")), ("name.unknown",)),
    Sample("responses-no-id", responses(response(call_id=None)), ("id.missing",)),
    Sample("responses-none", responses(response(), tool_choice="none"), ("choice.none_violated",)),
    Sample("responses-hidden", responses(response(), max_output_tokens=9), ("finish.length_hidden",)),
    Sample("messages", messages(message(use(place="Oslo")))),
    Sample("messages-stream", messages(message_events(OK[:5], OK[5:]))),
    Sample("messages-no-arguments", messages(message_events(name="ping"))),
    Sample("messages-no-arguments-plain", messages(message(use("ping")))),
    Sample("messages-lost", messages(message_events()), ("args.value_lost",)),
    Sample("messages-schema", messages(message(use(place="Oslo", days="3"))), ("schema.stringified_scalar",)),
    Sample(
        "messages-stop", messages(message(use(place="Oslo"), stop="end_turn")), ("finish.stop_with_call",)
    ),
    Sample(
        "messages-any",
        messages(message(stop="end_turn"), tool_choice={"type": "any"}),
        ("choice.required_violated", "output.empty"),
    ),
    Sample("messages-no-stop", messages(message_events(OK, stop=None)), ("finish.missing",)),
    Sample("messages-unclosed", messages(message(TEXT, stop="end_turn")), ("leak.unclosed",)),
    Sample(
        "messages-wrong",
        messages(message(use(place="Oslo")), tool_choice={"type": "tool", "name": "ping"}),
        ("choice.wrong_function",),
    ),
)
