# ruff: noqa: RUF001 - the models' own signs

from __future__ import annotations

import json
from typing import Any

import pytest

from toolcall_validator.families import FORMATS, LEAKS, Parsed, Trouble, parse

WEATHER: dict[str, Any] = {
    "get_weather": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
}


def values(parsed: Parsed) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in parsed.calls]


def troubles(parsed: Parsed) -> list[str]:
    return [problem.trouble.value for problem in parsed.problems]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("hermes", '<tool_call>{"arguments": {"city": "Oslo"}, "name": "get_weather"}</tool_call><|im_end|>'),
        (
            "qwen",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
            "</function>\n</tool_call>",
        ),
        (
            "kimi",
            "<|tool_calls_section_begin|>\n<|tool_call_begin|> functions.get_weather:0 "
            '<|tool_call_argument_begin|> {"city": "Oslo"} <|tool_call_end|>\n'
            "<|tool_calls_section_end|><|im_end|>",
        ),
        (
            "glm",
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>"
            "</tool_call><|observation|>",
        ),
        (
            "minimax",
            "<minimax:tool_call><invoke name='get_weather'>\n<parameter name=city>Oslo</parameter>\n"
            "</invoke></minimax:tool_call>[e~[",
        ),
        ("mistral", '[TOOL_CALLS]get_weather{"city": "Oslo"}</s>'),
        ("mistral", '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]'),
        (
            "llama",
            '<|python_tag|>{"type": "function", "name": "get_weather", '
            '"parameters": {"city": "Oslo"}}<|eom_id|>',
        ),
        ("llama_pythonic", "<|python_start|>[get_weather(city='Os\\x6co',)]<|python_end|><|eot|>"),
        (
            "harmony",
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
            '{"city": "Oslo"}<|call|>',
        ),
        ("harmony", '<|channel|>analysis to=functions.get_weather code<|message|>{"city": "Oslo"}'),
        (
            "deepseek",
            '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" '
            'string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        ),
    ],
)
def test_the_spellings_of_models_are_understood(family: str, text: str) -> None:
    parsed = parse(family, text, WEATHER)

    assert values(parsed) == [("get_weather", {"city": "Oslo"})]
    assert (parsed.problems, parsed.leftovers, parsed.content) == ((), (), "")


@pytest.mark.parametrize(
    ("family", "text", "expected"),
    [
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": 1', ["not_json", "unclosed"]),
        ("hermes", '<tool_call>{"name": "f", "arguments": {}}}</tool_call>', ["not_json"]),
        ("hermes", '<tool_call>{"arguments": {}}</tool_call>', ["no_name"]),
        ("hermes", '<tool_call>{"name": "f"}</tool_call>', ["no_arguments"]),
        ("hermes", "<tool_call>", ["no_arguments", "no_name", "not_json", "unclosed"]),
        ("hermes", '{"name": "f", "arguments": {}}</tool_call>', ["stray_marker"]),
        ("qwen", "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>", ["no_envelope"]),
        ("qwen", "<tool_call>\n<function=f>\n<parameter=a>\n1", ["unclosed"]),
        ("qwen", "<tool_call>\n<function=f>\noops\n</function>\n</tool_call>", ["malformed"]),
        (
            "kimi",
            "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
            ["no_envelope"],
        ),
        ("kimi", "<|tool_calls_section_begin|><|tool_calls_section_end|>", ["empty_envelope"]),
        (
            "kimi",
            "<|tool_calls_section_begin|>so<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
            "<|tool_call_end|><|tool_calls_section_end|>",
            ["stray_text"],
        ),
        (
            "kimi",
            "<|tool_calls_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{}<|tool_call_end|>"
            "<|tool_calls_section_end|>",
            ["malformed"],
        ),
        ("glm", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1\n</tool_call>", ["malformed"]),
        ("glm", "<tool_call>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", ["no_name"]),
        (
            "minimax",
            '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1',
            ["unclosed", "unclosed"],
        ),
        ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}{"a": 1}', ["not_json", "unclosed"]),
        ("mistral", "[TOOL_CALLS]", ["no_arguments", "no_name", "unclosed"]),
        ("mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"a"', ["not_json", "unclosed"]),
        ("llama", '{"name": "f", "parameters": {"a": ', ["not_json", "unclosed"]),
        ("llama", "<|python_tag|>print(1)", ["stray_marker"]),
        ("llama_pythonic", '[f(a="x', ["not_json", "unclosed"]),
        ("llama_pythonic", "[f(a=open)]", ["malformed", "not_json"]),
        (
            "harmony",
            "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
            ["no_arguments", "not_json", "unclosed"],
        ),
        ("harmony", "<|channel|>commentary to=python<|message|>print(1)<|call|>", ["stray_text"]),
        ("harmony", "<|message|>hello", ["stray_marker"]),
        (
            "deepseek",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁calls▁end｜>",
            ["no_arguments", "unclosed"],
        ),
        (
            "hermes",
            '<think>hm <tool_call>{"name": "f", "arguments": {}}</tool_call></think>Done',
            ["call_in_reasoning"],
        ),
        (
            "kimi",
            "hm<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
            "<|tool_call_end|><|tool_calls_section_end|></think>Done",
            ["call_in_reasoning"],
        ),
        ("qwen", '<think>hm\n<tool_call>{"name": "f", "arguments": {}}</tool_call>', ["reasoning_unclosed"]),
    ],
)
def test_what_is_wrong_with_the_raw_text_is_named(family: str, text: str, expected: list[str]) -> None:
    assert sorted(troubles(parse(family, text))) == sorted(expected)


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("hermes", "Put the call between <tool_call> and </tool_call>, as JSON."),
        ("llama", 'The record is {"name": "Bob", "age": 3}.'),
        ("llama_pythonic", "See [f(x)] and [1] in the paper."),
        ("qwen", "Qwen writes <function=NAME> first."),
    ],
)
def test_prose_about_a_format_is_content_and_no_call(family: str, text: str) -> None:
    parsed = parse(family, text)

    assert (parsed.calls, parsed.content) == ((), text)


@pytest.mark.parametrize("family", ["hermes", "qwen", "kimi", "deepseek", "glm", "minimax"])
def test_reasoning_that_the_prompt_opened_ends_at_its_mark(family: str) -> None:
    parsed = parse(family, "Rain, so I say it.</think>\n\nIt rains.")

    assert (parsed.reasoning, parsed.content, parsed.problems) == ("Rain, so I say it.", "It rains.", ())


def test_text_after_a_call_is_content() -> None:
    parsed = parse("hermes", 'Look.\n<tool_call>{"name": "f", "arguments": {}}</tool_call>\nDone.')

    assert parsed.content == "Look.\n\nDone."


@pytest.mark.parametrize(
    ("raw", "schema", "value"),
    [
        ("5", {"type": "string"}, "5"),
        ("5", {"type": "integer"}, 5),
        ("5", {"type": ["string", "null"]}, "5"),
        ("null", {"type": ["string", "null"]}, None),
        ("None", {"type": ["string", "null"]}, None),
        ("True", {"type": "boolean"}, True),
        ("five", {"type": "integer"}, "five"),
        ("2", {"enum": [1, 2]}, 2),
        ("2", {"enum": ["1", "2"]}, "2"),
        ("2", {"const": "2"}, "2"),
        ("2", {"anyOf": [{"type": "string"}, {"type": "boolean"}]}, "2"),
        ("2", {"oneOf": [{"type": "integer"}, {}]}, 2),
        ("2", {"$ref": "#/$defs/word"}, "2"),
        ("2", {"$ref": "#/$defs/round"}, 2),
        ("2", {"$ref": "https://example.org/word.json"}, 2),
        ('{"a": [1]}', {"type": "object"}, {"a": [1]}),
        ("3.0", {"type": "integer"}, 3.0),
    ],
)
def test_the_schema_says_what_a_bare_value_is(raw: str, schema: dict[str, Any], value: object) -> None:
    definitions = {"word": {"type": "string"}, "round": {"$ref": "#/$defs/round"}}
    schemas = {"f": {"properties": {"a": schema}, "$defs": definitions}}
    text = f"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{raw}</arg_value>\n</tool_call>"

    found = values(parse("glm", text, schemas))
    assert found == [("f", {"a": value})]
    assert type(found[0][1]["a"]) is type(value)


def test_a_parameter_given_twice_stays_twice_for_the_judge_of_json() -> None:
    pair = "<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n"

    assert parse("glm", f"<tool_call>f\n{pair}{pair}</tool_call>").calls[0].arguments == '{"a": 1, "a": 1}'


def test_the_arguments_are_verbatim_where_the_format_holds_json() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"a":1.50,  "b":NaN}}</tool_call>'

    assert parse("hermes", text).calls[0].arguments == '{"a":1.50,  "b":NaN}'


def test_every_format_has_its_leak_table_and_no_marker_is_blank() -> None:
    assert {found.leaks for found in FORMATS.values()} == set(LEAKS)
    assert all(
        len(marker) > 4 for markers in LEAKS.values() for marker in markers if marker not in ("[e~[", "]~b]")
    )


def test_every_trouble_has_a_word_of_its_own() -> None:
    assert len({trouble.value for trouble in Trouble}) == len(Trouble)
