"""Thirty sets of calls for every format, and the schemas of their functions."""

from __future__ import annotations

import json
from typing import Any

from toolcall_validator.families import RawCall, Schemas

STRING: dict[str, Any] = {"type": "string"}

SCHEMAS: Schemas = {
    "now": {"type": "object", "properties": {}},
    "get_weather": {
        "type": "object",
        "properties": {
            "city": STRING,
            "days": {"type": "integer"},
            "metric": {"type": "boolean"},
            "unit": {"enum": ["C", "F"]},
        },
    },
    "note": {"type": "object", "properties": {"text": STRING, "title": {"type": ["string", "null"]}}},
    "measure": {"type": "object", "properties": {"value": {"type": "number"}, "code": STRING}},
    "tag_all.v2": {"type": "object", "properties": {"tags": {"type": "array", "items": STRING}}},
    "plan": {
        "type": "object",
        "properties": {
            "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}},
            "first": {"$ref": "#/$defs/stop"},
            "options": {"type": "object"},
            "deadline": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        },
        "$defs": {"stop": {"type": "object", "properties": {"name": STRING, "minutes": {"type": "integer"}}}},
    },
}

CALL_SETS: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (("now", {}),),
    (("get_weather", {"city": "Oslo"}),),
    (("get_weather", {"city": "Oslo", "days": 3}),),
    (("get_weather", {"city": "Oslo", "metric": True}),),
    (("get_weather", {"city": "Oslo", "days": -1, "metric": False, "unit": "C"}),),
    (("get_weather", {"city": "東京"}),),
    (("get_weather", {"city": "Zürich 🏔️ “Höngg”"}),),
    (("get_weather", {"city": ""}),),
    (("get_weather", {"city": "5"}),),
    (("get_weather", {"city": "true"}),),
    (("note", {"text": 'She said "no", twice.'}),),
    (("note", {"text": "it's C:\\temp\\new and \\n is two signs"}),),
    (("note", {"text": "first\nsecond\n\n\tthird"}),),
    (("note", {"text": '{"looks": "like JSON"}'}),),
    (("note", {"text": "x", "title": None}),),
    (("note", {"text": "x", "title": "null and void"}),),
    (("note", {"text": "a <tool_call> and a </tool_call> in prose"}),),
    (("note", {"text": "<|tool_call_end|> <|tool_calls_section_end|> <|call|> <|end|>"}),),
    (("note", {"text": "[TOOL_CALLS]x[ARGS]{} <|python_tag|> </think> <think>"}),),
    (("note", {"text": "<b>1 < 2 && 3 > 2</b> </parameter> </arg_value> </invoke>"}),),
    (("note", {"text": 'f(x="1"), g()] }} ]] ```json\n{}\n```'}),),
    (("measure", {"value": 1.5, "code": "007"}),),
    (("measure", {"value": 1e-09, "code": "1e5"}),),
    (("tag_all.v2", {"tags": []}),),
    (("tag_all.v2", {"tags": ["a", "b, c", 'd\n"e"']}),),
    (("plan", {"stops": [{"name": "Ås", "minutes": 5}, {"name": "]", "minutes": 0}], "deadline": None}),),
    (
        (
            "plan",
            {
                "first": {"name": "}", "minutes": 9},
                "options": {"deep": {"er": [1, [2, [{}]]]}},
                "deadline": 4,
            },
        ),
    ),
    (("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})),
    (("now", {}), ("now", {}), ("now", {})),
    (("note", {"text": "</tool_call>"}), ("plan", {"options": {}}), ("now", {}), ("measure", {"value": 2.0})),
)


def raw_calls(calls: tuple[tuple[str, dict[str, Any]], ...]) -> tuple[RawCall, ...]:
    return tuple(RawCall(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls)
