from __future__ import annotations

import json

import pytest

from ringtrue.records import Party
from toolcall_validator.families import Answered, blame, parse
from toolcall_validator.strict_json import parse_strict

PROVIDER, MODEL, NOBODY = Party.PROVIDER, Party.MODEL, None
SCHEMAS = {"f": {"properties": {"a": {"type": "integer"}, "s": {"type": "string"}}}}


def fits(name: str, arguments: str) -> bool:
    """Stand for a schema: f takes an integer ``a`` and a string ``s``, both optional; g takes anything."""
    given = parse_strict(arguments).value
    kinds = {"a": int, "s": str}
    return name == "g" or (name == "f" and all(type(value) is kinds.get(key) for key, value in given.items()))


def hermes(*calls: str) -> str:
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)


def call(arguments: str, name: str = "f") -> str:
    return f'{{"name": "{name}", "arguments": {arguments}}}'


def kimi(arguments: str, name: str = "f", place: int = 0) -> str:
    return (
        f"<|tool_call_begin|>functions.{name}:{place}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
    )


def section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


ONE, TWO = hermes(call('{"a": 1}')), hermes(call('{"a": 1}'), call('{"s": "x"}'))
F1, FX = ("f", '{"a": 1}'), ("f", '{"s": "x"}')
GLM = "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>"
HARMONY = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"

PAIRS = [
    # Right, and delivered as it stands: nobody.
    ("hermes", ONE, [F1], "", NOBODY),
    ("hermes", TWO, [F1, FX], "", NOBODY),
    ("hermes", ONE, [("f", '{ "a" : 1.0 }')], "", NOBODY),
    ("hermes", "It rains.", [], "It rains.", NOBODY),
    ("hermes", "Hermes writes <tool_call> tags.", [], "Hermes writes tags.", NOBODY),
    ("hermes", f"Look.\n{ONE}", [F1], "Look.", NOBODY),
    ("kimi", section(kimi('{"a": 1}')), [F1], "", NOBODY),
    ("kimi", kimi('{"a": 1}'), [F1], "", NOBODY),
    ("glm", GLM.format(1), [F1], "", NOBODY),
    ("glm", GLM.format(1).replace("<tool_call>f", "<tool_call>g"), [("g", '{"a": "1"}')], "", NOBODY),
    ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}', [F1], "", NOBODY),
    ("llama_pythonic", "[f(a=1)]", [F1], "", NOBODY),
    ("harmony", HARMONY.format('{"a": 1}'), [F1], "", NOBODY),
    # Right in the raw text, wrong in the answer: the provider.
    ("hermes", ONE, [], ONE, PROVIDER),
    ("hermes", ONE, [], "", PROVIDER),
    ("hermes", TWO, [F1], "", PROVIDER),
    ("hermes", TWO, [FX], "", PROVIDER),
    ("hermes", TWO, [FX, F1], "", PROVIDER),
    ("hermes", ONE, [F1, F1], "", PROVIDER),
    ("hermes", ONE, [("f", '{"a": "1"}')], "", PROVIDER),
    ("hermes", ONE, [("f", '{"a": 1')], "", PROVIDER),
    ("hermes", ONE, [("f", '{"a": 1}{"a": 1}')], "", PROVIDER),
    ("hermes", ONE, [("f", "")], "", PROVIDER),
    ("hermes", ONE, [("f", "{}")], "", PROVIDER),
    ("hermes", ONE, [("f", json.dumps('{"a": 1}'))], "", PROVIDER),
    ("hermes", ONE, [("f", '{"a": true}')], "", PROVIDER),
    ("hermes", ONE, [("f<|channel|>commentary", '{"a": 1}')], "", PROVIDER),
    ("hermes", ONE, [("ff", '{"a": 1}')], "", PROVIDER),
    ("hermes", ONE, [F1], "</tool_call>", PROVIDER),
    ("hermes", f"<think>Hm.</think>{ONE}", [F1], "<think>Hm.</think>", PROVIDER),
    ("hermes", hermes(call('{"s": "a</tool_call>b"}')), [("f", '{"s": "a"}')], "", PROVIDER),
    ("hermes", "It rains.", [F1], "", PROVIDER),
    ("hermes", hermes(call('{"a": }'), call('{"a": 1}')), [], "", PROVIDER),
    ("kimi", section(kimi('{"a": 1}'), kimi('{"s": "x"}', place=1)), [F1], "", PROVIDER),
    ("kimi", section(kimi('{"a": 1}')), [F1], "<|tool_calls_section_end|>", PROVIDER),
    ("glm", GLM.format(1), [("f", '{"a": "1"}')], "", PROVIDER),
    ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}', [("f[ARGS]", '{"a": 1}')], "", PROVIDER),
    ("harmony", HARMONY.format('{"a": 1}'), [], "", PROVIDER),
    # Wrong already in the raw text: the model.
    ("hermes", hermes(call('{"a": "1"}')), [("f", '{"a": "1"}')], "", MODEL),
    ("hermes", hermes(call('{"a": "1"}')), [F1], "", MODEL),
    ("hermes", hermes(call('{"a": 1}', "unknown")), [("unknown", '{"a": 1}')], "", MODEL),
    ("hermes", hermes(call('{"a": NaN}', "g")), [("g", '{"a": NaN}')], "", MODEL),
    ("hermes", hermes(call('{"a": 1, "a": 2}')), [("f", '{"a": 2}')], "", MODEL),
    ("hermes", hermes(call("[1]", "g")), [("g", "[1]")], "", MODEL),
    ("hermes", hermes(call(json.dumps('{"a": 1}'))), [F1], "", MODEL),
    ("hermes", hermes(call('{"a": 1}'))[:-16], [("f", '{"a": 1')], "", MODEL),
    ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": 1', [], '<tool_call>\n{"name"', MODEL),
    ("hermes", hermes(call('{"a": }'), call('{"a": 1}')), [F1], "", MODEL),
    ("hermes", f"<think>{ONE}</think>", [], ONE, MODEL),
    ("hermes", "Fine.</tool_call>", [], "Fine.</tool_call>", MODEL),
    ("kimi", kimi('{"a": 1}'), [], "", MODEL),
    ("kimi", section(), [], "", MODEL),
    ("kimi", section(kimi('{"a": 1}{"a": 1}')), [("f", '{"a": 1}{"a": 1}')], "", MODEL),
    ("glm", GLM.format("one"), [("f", '{"a": "one"}')], "", MODEL),
    ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1', [("f", '{"a": 1}')], "", MODEL),
    ("llama_pythonic", "[f(a=one)]", [], "[f(a=one)]", MODEL),
    ("harmony", HARMONY.format('{"a": 1'), [("f", '{"a": 1')], "", MODEL),
]


@pytest.mark.parametrize(("family", "raw", "answered", "shown", "party"), PAIRS)
def test_the_party_is_right(
    family: str, raw: str, answered: list[tuple[str, str]], shown: str, party: Party | None
) -> None:
    found = parse(family, raw, SCHEMAS if family == "glm" else None)

    assert blame(found, [Answered(*call) for call in answered], fits, shown) is party


def test_a_value_whose_type_nothing_tells_blames_nobody() -> None:
    raw = parse("minimax", '<minimax:tool_call><invoke name="g"><parameter name="a">01</parameter></invoke>')

    assert blame(raw, [Answered("g", '{"a": "01"}')]) is NOBODY


def test_values_nested_too_deep_to_compare_are_compared_as_text() -> None:
    deep = '{"a": ' * 900 + "1" + "}" * 900
    raw = parse("kimi", section(kimi(deep, "g")))

    assert blame(raw, [Answered("g", deep)], fits) is NOBODY
    assert blame(raw, [Answered("g", deep.replace("1", "2"))], fits) is PROVIDER
