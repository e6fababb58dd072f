from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.errors import UsageError
from tests.unit.toolcall_validator.families.call_sets import CALL_SETS, SCHEMAS, raw_calls
from toolcall_validator.families import FORMATS, LEAKS, Parsed, RawCall, parse, render

WITH_THOUGHTS = tuple(family for family in FORMATS if not family.startswith("llama"))


def values(parsed: Parsed) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in parsed.calls]


@pytest.mark.parametrize("family", FORMATS)
@pytest.mark.parametrize("place", range(len(CALL_SETS)))
def test_what_a_template_writes_is_read_back_whole(family: str, place: int) -> None:
    calls = CALL_SETS[place]
    text = render(family, raw_calls(calls), "Let me look.")

    parsed = parse(family, text, SCHEMAS)

    assert values(parsed) == list(calls)
    assert (parsed.content, parsed.problems, parsed.leftovers) == ("Let me look.", (), ())
    assert all(call.span[0] < call.span[1] <= len(text) for call in parsed.calls)


@pytest.mark.parametrize("family", WITH_THOUGHTS)
@pytest.mark.parametrize("content", ["", "Here it is."])
def test_reasoning_is_read_back_beside_calls_and_without(family: str, content: str) -> None:
    calls = raw_calls(CALL_SETS[27])
    with_calls = parse(family, render(family, calls, content, "Two cities,\n\nso two calls."), SCHEMAS)
    without = parse(family, render(family, (), "It rains.", "No tool."), SCHEMAS)

    assert (with_calls.reasoning, with_calls.content) == ("Two cities,\n\nso two calls.", content)
    assert (len(with_calls.calls), with_calls.problems) == (2, ())
    assert (without.reasoning, without.content, without.calls) == ("No tool.", "It rains.", ())


@pytest.mark.parametrize("family", FORMATS)
def test_identities_are_read_where_the_format_has_them(family: str) -> None:
    call = RawCall("now", "{}", "functions.now:7" if family == "kimi" else "a1B2c3D4e")
    has = family in ("kimi", "mistral", "mistral_list")

    assert parse(family, render(family, [call])).calls[0].id == (call.id if has else None)


@pytest.mark.parametrize("family", ["qwen_xml", "glm", "minimax", "deepseek_dsml", "llama_pythonic"])
@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", ""])
def test_formats_without_json_refuse_broken_arguments(family: str, arguments: str) -> None:
    with pytest.raises(UsageError, match="not a JSON object"):
        render(family, [RawCall("now", arguments)])


def test_an_argument_that_python_cannot_name_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="'my-key'"):
        render("llama_pythonic", [RawCall("now", '{"my-key": 1}')])


def test_an_unknown_family_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="hermes, qwen"):
        parse("herpes", "")


MARKERS = sorted({marker for markers in LEAKS.values() for marker in markers})
GRAMMAR = [
    *MARKERS,
    *(
        '{"name": "f", "arguments": ',
        '{"name": "f", "parameters": ',
        '{"a": 1}',
        '"',
        "{",
        "}",
        "[",
        "]",
        "\\",
    ),
    *("<parameter=a>\n", '<parameter name="a">', '<invoke name="f">', "<function=f>", "</arg_value>"),
    *(
        " to=functions.f<|channel|>commentary json<|message|>",
        "functions.f:0",
        "[f(",
        "a=",
        ")",
        ",",
        ";",
        "'",
    ),
    *('<｜DSML｜invoke name="f">', '<｜DSML｜parameter name="a" string="false">', "</｜DSML｜parameter>"),  # noqa: RUF001
    *("```json\n", "\n```", "NaN", "9" * 5000, "[" * 3000, "\ud800", "f"),
]
BROKEN = st.lists(st.sampled_from(GRAMMAR) | st.text(max_size=4), max_size=14).map("".join)


@given(family=st.sampled_from(sorted(FORMATS)), text=BROKEN)
def test_no_text_raises_and_every_span_lies_in_it(family: str, text: str) -> None:
    parsed = parse(family, text)

    spans = [found.span for found in (*parsed.calls, *parsed.problems, *parsed.leftovers)]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(problem.call is None or problem.call < len(parsed.calls) for problem in parsed.problems)


@given(
    family=st.sampled_from(sorted(FORMATS)),
    text=BROKEN,
    prose=st.text(st.characters(categories=("L", "Nd", "Zs"), include_characters=".,!\n"), max_size=60),
)
def test_prose_in_front_moves_the_spans_and_changes_nothing_else(family: str, text: str, prose: str) -> None:
    ahead = f"{prose}. "
    alone, after = parse(family, text), parse(family, ahead + text)

    assert [(call.name, call.arguments, call.id) for call in after.calls] == [
        (call.name, call.arguments, call.id) for call in alone.calls
    ]
    moved = [
        (trouble.trouble, trouble.call, [at + len(ahead) for at in trouble.span])
        for trouble in alone.problems
    ]
    assert [(trouble.trouble, trouble.call, list(trouble.span)) for trouble in after.problems] == moved


@pytest.mark.parametrize("family", FORMATS)
@pytest.mark.parametrize("place", [2, 12, 27])
def test_a_cut_completion_never_loses_a_call_silently(family: str, place: int) -> None:
    calls = CALL_SETS[place]
    text = render(family, raw_calls(calls))
    whole = parse(family, text, SCHEMAS)
    opened = whole.calls[0].span[0]
    for end in range(opened + 1, len(text)):
        cut = parse(family, text[:end], SCHEMAS)
        complete = [call for call in whole.calls if call.span[1] <= end]
        troubled = {problem.call for problem in cut.problems}
        read = [call for at, call in enumerate(cut.calls) if at not in troubled]
        rest = text[max([opened, *(call.span[1] for call in complete)]) : end].strip(" ;,\n")

        assert read[: len(complete)] == complete
        assert all((call.name, json.loads(call.arguments)) in calls for call in read)
        assert len(read) > len(complete) or not rest or cut.problems or rest in cut.content
