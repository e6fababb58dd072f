"""The suite of requests with tools, suites of the caller's own, and how a night asks them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probes.dialects import dialect_named
from probes.toolcall_suite.loading import load_suite, read_suite, together
from probes.toolcall_suite.prompt import Due, ToolPrompt
from probes.toolcalls import bare, of_the_night, paired, raw
from ringtrue.errors import ConfigError
from ringtrue.payload import to_body
from toolcall_validator.families.formats import FORMATS
from toolcall_validator.families.leaks import LEAKS
from toolcall_validator.schemas import Schemas

VLLM = dialect_named("vllm")
SUITE = load_suite()


def bodies(prompt: ToolPrompt) -> dict[str, Any]:
    return to_body(prompt.request, "m")


def tools(prompt: ToolPrompt) -> list[dict[str, Any]]:
    return [tool["function"] for tool in prompt.request.tools or ()]


def kind(prompt: ToolPrompt) -> str:
    return prompt.id.split("-")[1]


def test_the_suite_has_every_kind_of_request() -> None:
    assert len(SUITE) >= 60
    assert len({prompt.id for prompt in SUITE}) == len(SUITE)
    assert Counter(prompt.due for prompt in SUITE) == {Due.CALL: 51, Due.NO_CALL: 9, Due.JSON: 7}
    assert Counter(map(kind, SUITE)) == {
        "auto": 23,
        "required": 12,
        "named": 8,
        "turns": 8,
        "json": 7,
        "parallel": 5,
        "none": 3,
        "bare": 1,
    }
    choices = {
        "named" if isinstance(prompt.request.tool_choice, dict) else prompt.request.tool_choice
        for prompt in SUITE
    }
    assert choices == {"auto", "required", "named", "none", None}


def test_every_schema_of_the_suite_compiles() -> None:
    schemas = Schemas()
    asked = [tool["parameters"] for prompt in SUITE for tool in tools(prompt) if "parameters" in tool]
    formats = [
        prompt.request.response_format["json_schema"]["schema"]
        for prompt in SUITE
        if prompt.request.response_format and "json_schema" in prompt.request.response_format
    ]

    assert [schemas.get(schema).broken for schema in (*asked, *formats) if schemas.get(schema).broken] == []
    assert len(formats) == 6


@pytest.mark.parametrize(
    "shape",
    [
        "$defs",
        "$schema",
        "prefixItems",
        "anyOf",
        "oneOf",
        "enum",
        "const",
        "pattern",
        "null",
        "additionalProperties",
    ],
)
def test_the_suite_has_tools_of_many_shapes(shape: str) -> None:
    assert any(f'"{shape}"' in json.dumps(tools(prompt)) for prompt in SUITE)


def test_the_suite_has_tools_without_arguments_in_all_three_spellings() -> None:
    declared = {tool["name"]: tool for prompt in SUITE for tool in tools(prompt)}

    assert "parameters" not in declared["ping"]
    assert declared["undo"]["parameters"] == {}
    assert declared["list_alarms"]["parameters"] == {"type": "object", "properties": {}}


def test_the_suite_holds_ids_that_other_families_gave() -> None:
    ids = {
        call["id"]
        for prompt in SUITE
        for message in prompt.messages
        for call in message.get("tool_calls", ())
    }

    assert any(id_.startswith("toolu_") for id_ in ids)
    assert any(id_.startswith("functions.") for id_ in ids)
    assert any(id_.startswith("call_") for id_ in ids)


def test_what_is_due_is_declared() -> None:
    for prompt in SUITE:
        names = {tool["name"] for tool in tools(prompt)}
        assert set(prompt.tools) <= names
        assert (prompt.due is Due.CALL) == bool(prompt.tools)


def test_no_request_speaks_in_a_familys_markers() -> None:
    texts = [json.dumps(bodies(prompt), ensure_ascii=False) for prompt in SUITE]

    assert [
        marker for markers in LEAKS.values() for marker in markers if any(marker in t for t in texts)
    ] == []
    assert FORMATS.keys() >= LEAKS.keys()


def test_a_pair_differs_in_the_form_of_its_answer_alone() -> None:
    plain, streamed = paired(SUITE[0], cap=99, night=7, dialect=VLLM)
    one, other = to_body(plain, "m"), to_body(streamed, "m")

    assert other == one | {"stream": True, "stream_options": {"include_usage": True}}
    assert (one["max_tokens"], one["temperature"]) == (99, 0.0)
    assert plain.session == streamed.session == f"{SUITE[0].id}-7"
    assert plain.return_token_ids
    assert not paired(SUITE[0], cap=9, night=7, dialect=dialect_named("openai"))[0].return_token_ids


def test_a_raw_request_sends_the_ids_and_a_bare_one_leaves_the_tools_out() -> None:
    asked = raw(SUITE[0], (1, 2, 3), cap=9, night=0, dialect=VLLM)
    without = bare(SUITE[0], night=0, dialect=VLLM)

    assert to_body(asked, "m")["prompt"] == [1, 2, 3]
    assert "tools" not in to_body(without, "m")
    assert to_body(without, "m")["messages"] == bodies(SUITE[0])["messages"]


def test_the_nights_go_round_and_ask_of_everything() -> None:
    nights = [of_the_night(SUITE, 24, night) for night in range(67)]

    assert Counter(prompt.id for night in nights for prompt in night) == {p.id: 24 for p in SUITE}
    for night in nights:
        found = Counter(map(kind, night))
        assert found["auto"] >= 7
        assert found["required"] >= 4
        assert min(found[name] for name in ("named", "turns", "json")) >= 2
        assert 16 <= sum(prompt.due is Due.CALL for prompt in night) <= 21


def test_a_small_suite_is_asked_whole() -> None:
    assert of_the_night(SUITE[:5], 24, 3) == SUITE[:5]
    with pytest.raises(ConfigError, match="0 requests"):
        of_the_night(SUITE, 0, 1)


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


TOOL = {"type": "function", "function": {"name": "f"}}
HELLO = [{"role": "user", "content": "hello"}]


def test_a_suite_of_the_callers_own_is_read_as_public_verifiers_keep_it(tmp_path: Path) -> None:
    path = write(
        tmp_path / "own.jsonl",
        {
            "messages": HELLO,
            "tools": [TOOL],
            "temperature": 0.6,
            "max_tokens": 9,
            "stream": True,
            "model": "x",
        },
        "",
        {"messages": HELLO, "tools": [TOOL], "tool_choice": "required", "id": "mine"},
        {"messages": HELLO, "tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"messages": HELLO, "tools": [TOOL], "tool_choice": "none"},
        {"messages": HELLO, "response_format": {"type": "json_object"}, "reasoning_effort": "low"},
        {"messages": HELLO, "tools": [TOOL], "expect": {"kind": "call", "tools": ["f"]}},
    )
    found = read_suite(path)

    assert [(prompt.id, prompt.due) for prompt in found] == [
        ("user-1", None),
        ("mine", Due.CALL),
        ("user-4", Due.CALL),
        ("user-5", Due.NO_CALL),
        ("user-6", Due.JSON),
        ("user-7", Due.CALL),
    ]
    plain, _ = paired(found[0], cap=50, night=0, dialect=VLLM)
    body = to_body(plain, "m")
    assert (body["temperature"], body["max_tokens"], body["model"], "stream" in body) == (0.0, 50, "m", False)
    assert found[4].request.extra == {"reasoning_effort": "low"}
    assert found[5].tools == ("f",)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "no JSON"),
        ([1], "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["x"]}, "messages"),
        ({"messages": HELLO, "tools": {}}, "tools"),
        ({"messages": HELLO, "id": 3}, "id is no text"),
        ({"messages": HELLO, "tool_choice": 3}, "tool_choice"),
        ({"messages": HELLO, "response_format": "json"}, "response_format"),
        ({"messages": HELLO, "expect": {"kind": "yes"}}, "expect.kind"),
        ({"messages": HELLO, "expect": {"kind": "call", "tools": "f"}}, "expect.tools"),
        ({"messages": HELLO, "id": "one"}, "a second request"),
    ],
)
def test_a_bad_line_is_named(line: Any, says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", {"messages": HELLO, "id": "one"}, line)

    with pytest.raises(ConfigError, match=says) as caught:
        read_suite(path)
    assert caught.value.where == f"{path}:2"


def test_a_suite_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", write(tmp_path / "empty.jsonl", "", "")):
        with pytest.raises(ConfigError) as caught:
            read_suite(path)
        assert caught.value.where == f"parts.toolcall_suite: {path}"


def test_two_suites_are_asked_side_by_side(tmp_path: Path) -> None:
    mine = read_suite(write(tmp_path / "own.jsonl", *({"messages": HELLO, "id": f"m{i}"} for i in range(67))))
    both = together(SUITE, mine)

    assert len(both) == 134
    assert all(sum(p in mine for p in both[at : at + 24]) == 12 for at in range(0, 110, 2))
    with pytest.raises(ConfigError, match=SUITE[0].id):
        together(SUITE, read_suite(write(tmp_path / "own.jsonl", {"messages": HELLO, "id": SUITE[0].id})))
