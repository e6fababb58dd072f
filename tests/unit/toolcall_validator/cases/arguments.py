"""Arguments as JSON and against their schema; each plain case also goes through a stream."""

from __future__ import annotations

from tests.unit.toolcall_validator.exchanges import (
    Sample,
    call,
    dumps,
    in_pieces,
    more,
    opening,
    plain,
    stream,
    tool,
)

BAD_ARGUMENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("head", '"place": "Oslo"}', ("args.truncated_head",)),
    ("head_in_key", 'ace": "Oslo", "days": 3}', ("args.truncated_head",)),
    ("head_in_value", 'slo", "days": 3}', ("args.truncated_head",)),
    ("tail", '{"place": "Oslo", "box": {"x": 1', ("args.truncated_tail",)),
    ("tail_in_string", '{"place": "Os', ("args.truncated_tail",)),
    ("tail_in_key", '{"place": "Oslo", "da', ("args.truncated_tail",)),
    ("tail_after_colon", '{"place":', ("args.truncated_tail",)),
    ("tail_after_comma", '{"place": "Oslo",', ("args.truncated_tail",)),
    ("tail_in_literal", '{"place": "Oslo", "exact": tr', ("args.truncated_tail",)),
    ("tail_in_escape", '{"place": "Os\\u00', ("args.truncated_tail",)),
    ("tail_brace", "{", ("args.truncated_tail",)),
    ("lost", "{}", ("args.value_lost",)),
    ("lost_all", "", ("args.value_lost",)),
    ("lost_blank", " \n", ("args.value_lost",)),
    ("twice", '{"place": "Oslo"}{"place": "Oslo"}', ("args.duplicated",)),
    ("twice_spaced", '{"place": "Oslo"} {"place":"Oslo"}', ("args.duplicated",)),
    ("twice_cut", '{"place": "Oslo"}{"place": "Os', ("args.duplicated",)),
    ("quoted", dumps('{"place": "Oslo"}'), ("args.double_encoded",)),
    ("quoted_list", dumps("[1]"), ("args.double_encoded",)),
    ("prose", "the weather in Oslo", ("args.not_json",)),
    ("python", "{'place': 'Oslo'}", ("args.not_json",)),
    ("python_word", '{"place": "Oslo", "exact": True}', ("args.not_json",)),
    ("two_objects", '{"place": "Oslo"}{"place": "Bergen"}', ("args.not_json",)),
    ("extra_brace", '{"place": "Oslo"}}', ("args.not_json",)),
    ("comma", '{"place": "Oslo",}', ("args.not_json",)),
    ("missing_comma", '{"place": "Oslo" "days": 3}', ("args.not_json",)),
    ("list", '[{"place": "Oslo"}]', ("args.not_object",)),
    ("null", "null", ("args.not_object",)),
    ("number", "12", ("args.not_object",)),
    ("string", '"Oslo"', ("args.not_object",)),
    ("nan", '{"place": "Oslo", "box": {"x": NaN}}', ("args.nan",)),
    ("infinity", '{"place": "Oslo", "box": {"x": -Infinity}}', ("args.nan",)),
    ("beyond_double", '{"place": "Oslo", "box": {"x": 1e999}}', ("args.nan",)),
    ("same_key", '{"place": "Oslo", "place": "Bergen"}', ("args.duplicate_key",)),
    ("same_key_inside", '{"place": "Oslo", "box": {"x": 1, "x": 2}}', ("args.duplicate_key",)),
    ("object_as_text", '{"place": "Oslo", "box": "{\\"x\\": 1}"}', ("args.nested_double_encoded",)),
    ("array_as_text", '{"place": "Oslo", "tags": "[\\"a\\"]"}', ("args.nested_double_encoded",)),
    ("integer_as_text", '{"place": "Oslo", "days": "10"}', ("schema.stringified_scalar",)),
    ("boolean_as_text", '{"place": "Oslo", "exact": "True"}', ("schema.stringified_scalar",)),
    ("nullable_as_text", '{"place": "Oslo", "note": "4"}', ("schema.stringified_scalar",)),
    ("text_as_number", '{"place": 7}', ("schema.string_as_number",)),
    ("text_as_number_inside", '{"place": "Oslo", "tags": [1]}', ("schema.string_as_number",)),
    ("required", '{"days": 3}', ("schema.missing_required",)),
    ("additional", '{"place": "Oslo", "sea": 1}', ("schema.additional_property",)),
    ("enum", '{"place": "Oslo", "units": "kelvin"}', ("schema.enum",)),
    ("type", '{"place": "Oslo", "days": [3]}', ("schema.type",)),
    ("fraction", '{"place": "Oslo", "days": 1.5}', ("schema.type",)),
    ("above", '{"place": "Oslo", "days": 15}', ("schema.range",)),
    ("short", '{"place": ""}', ("schema.range",)),
    ("pattern", '{"place": "Oslo", "zip": "12"}', ("schema.pattern",)),
    (
        "several",
        '{"days": 0, "zip": "x", "sea": 1}',
        ("schema.missing_required", "schema.additional_property", "schema.range", "schema.pattern"),
    ),
)

OTHER = {"type": "object", "properties": {"a": {"not": {"const": 1}}}}
NESTED = {"type": "object", "$defs": {"p": {"required": ["x"]}}, "properties": {"p": {"$ref": "#/$defs/p"}}}
UNEVALUATED = {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}

SAMPLES = (
    *(Sample(f"plain-{name}", plain(call(text)), codes) for name, text, codes in BAD_ARGUMENTS),
    *(
        Sample(f"stream-{name}", stream(opening(), *in_pieces(text)), codes)
        for name, text, codes in BAD_ARGUMENTS
    ),
    Sample("as-an-object", plain(call({"place": "Oslo"})), ("args.not_json",)),
    Sample("no-arguments-plain", plain(call("", "ping")), ("args.not_json",)),
    Sample("no-arguments-null", plain(call(None, "ping")), ("args.not_json",)),
    Sample("no-arguments-stream", stream(opening(None, "ping")), ("args.empty_stream",)),
    Sample("no-arguments-stream-empty", stream(opening("", "ping"), more("")), ("args.empty_stream",)),
    Sample("other", plain(call('{"a": 1}', "t"), asked={"tools": [tool("t", OTHER)]}), ("schema.other",)),
    Sample(
        "behind-a-reference",
        plain(call('{"p": {}}', "t"), asked={"tools": [tool("t", NESTED)]}),
        ("schema.missing_required",),
    ),
    Sample(
        "unevaluated",
        plain(call('{"b": 1}', "t"), asked={"tools": [tool("t", UNEVALUATED)]}),
        ("schema.additional_property",),
    ),
    Sample(
        "cut-at-the-cap",
        plain(call('{"place": "Os'), finish="length", asked={"max_tokens": 12}),
        ("args.truncated_tail",),
    ),
    Sample("one-of-two", plain(call(), call("{}", identity="call_b")), ("args.value_lost",)),
    Sample("whatever-the-finish-reason", plain(call("oops"), finish="content_filter"), ("args.not_json",)),
)
