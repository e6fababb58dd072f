"""Requests with tools, and what the small model's server answers, in the interchange format."""

from __future__ import annotations

from reference_engine.server.tool_calls.stream_faults import STREAM_FAULTS
from ringtrue.records import Severity
from toolcall_validator.families import Answered, blame, parse
from toolcall_validator.validate import Validator, chunks_of

MODEL = "kimi-small"  # a Kimi by name, so that the form of ids is judged as well
NOT_ONE_ANSWER = {"stream.parity"}
STREAMED_ONLY = {*STREAM_FAULTS, "args.empty_stream"}


def declared(name, description, parameters):
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


FORECAST = declared(
    "get_forecast",
    "Weather of the coming days at a place.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 40},
            "station": {"type": "string", "pattern": "^[A-Z]{3}-\\d{2}$"},
            "units": {"enum": ["metric", "imperial"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "place": {"$ref": "#/$defs/place"},
            "labels": {"type": "array", "items": {"type": "string"}, "contains": {"const": "rain"}},
            "note": {"type": ["string", "null"]},
        },
        "required": ["city", "station", "units", "days", "place", "labels"],
        "additionalProperties": False,
        "$defs": {
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                "required": ["lat", "lon"],
                "additionalProperties": False,
            }
        },
    },
)
PING = declared("ping", "Checks that the line is open.", {"type": "object", "properties": {}})
ROOMS = declared(
    "list_rooms",
    "Rooms of a building.",
    {"type": "object", "properties": {"building": {"type": "string"}}, "required": ["building"]},
)
ANSWER = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {
            "type": "object",
            "properties": {"colour": {"type": "string"}, "shade": {"type": ["integer", "null"]}},
            "required": ["colour", "shade"],
        },
    },
}
FORECAST_ASKED = {"messages": [{"role": "user", "content": "Please get_forecast for Oslo this weekend."}]}
PING_ASKED = {"messages": [{"role": "user", "content": "Use ping."}], "tools": [PING, ROOMS]}
BOTH_ASKED = {"messages": [{"role": "user", "content": "First list_rooms of the castle, then ping."}]}
TEXT_ASKED = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 6}
REQUIRED = {**TEXT_ASKED, "max_tokens": 900, "tool_choice": "required"}
NAMED = {**BOTH_ASKED, "tool_choice": {"type": "function", "function": {"name": "list_rooms"}}}
STRUCTURED = {**TEXT_ASKED, "max_tokens": 300, "response_format": ANSWER, "tools": None}
HONEST = {
    "auto": FORECAST_ASKED,
    "no arguments": PING_ASKED,
    "parallel": BOTH_ASKED,
    "one at a time": {**BOTH_ASKED, "parallel_tool_calls": False},
    "required": REQUIRED,
    "named": NAMED,
    "required without arguments": {**PING_ASKED, "tool_choice": "required"},
    "none": {**PING_ASKED, "tool_choice": "none", "max_tokens": 6},
    "text": TEXT_ASKED,
    "structured": STRUCTURED,
    "any object": {**STRUCTURED, "response_format": {"type": "json_object"}},
}
ASKED = {
    "args.empty_stream": PING_ASKED,
    "choice.none_violated": {**PING_ASKED, "tool_choice": "none", "max_tokens": 200},
    "choice.required_violated": {**PING_ASKED, "tool_choice": "required", "max_tokens": 200},
    "choice.wrong_function": NAMED,
    "finish.length_hidden": {**FORECAST_ASKED, "max_tokens": 120},
    "id.duplicate": BOTH_ASKED,
    "output.structured_invalid": STRUCTURED,
}


def request_body(fields, **more):
    body = {"model": MODEL, "tools": [FORECAST, PING, ROOMS], "temperature": 0, **fields, **more}
    if body.get("stream"):
        body["stream_options"] = {"include_usage": True}
    return {key: value for key, value in body.items() if value is not None}


async def recorded(client, fields, *, stream, **more):
    """One exchange in the interchange format, made of the bytes that came."""
    body = request_body(fields, stream=stream, **more)
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    if not stream:
        return {"request": body, "response": response.json()}
    chunks, done = chunks_of([response.content])
    return {"request": body, "chunks": chunks, "done": done}


def codes_of(record):
    return {fault.code for fault in Validator().validate(record) if fault.severity is not Severity.INFO}


def message_of(record):
    return record["response"]["choices"][0]["message"]


def calls_of(record):
    return [(c["function"]["name"], c["function"]["arguments"]) for c in message_of(record)["tool_calls"]]


async def raw_text(client, prompt):
    body = {"model": MODEL, "prompt": prompt, "max_tokens": 2_000, "temperature": 0}
    response = await client.post("/v1/completions", json=body)
    return response.json()["choices"][0]["text"]


async def rendered(client, fields):
    body = {key: value for key, value in request_body(fields).items() if key in ("messages", "tools")}
    return (await client.post("/tokenize", json=body)).json()["tokens"]


def blamed(record, raw, family):
    schemas = {
        tool["function"]["name"]: tool["function"]["parameters"] for tool in record["request"]["tools"]
    }
    validator = Validator()

    def fits(name, arguments):
        call = {"id": "functions.f:0", "type": "function", "function": {"name": name, "arguments": arguments}}
        message = {"role": "assistant", "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        found = validator.validate({"request": record["request"], "response": {"choices": [choice]}})
        return not any(fault.code.startswith(("args.", "schema.", "name.")) for fault in found)

    message = message_of(record)
    answered = [Answered(*call) for call in calls_of(record)] if message.get("tool_calls") else []
    shown = (message.get("content") or "") + message.get("reasoning_content", "")
    return blame(parse(family, raw, schemas), answered, fits, shown)
