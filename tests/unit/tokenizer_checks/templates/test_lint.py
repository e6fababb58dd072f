from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.errors import ModelError
from ringtrue.records import Severity
from tests.unit.tokenizer_checks.templates.sources import CHATML, DATED, INST, SOURCES, TOOLLESS
from tokenizer_checks.templates.flaw import Rule
from tokenizer_checks.templates.lint import flaws, lint

if TYPE_CHECKING:
    from reference_engine.local_reference import LocalReference

LOOP = "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}"
PROMPT = "{% if add_generation_prompt %}assistant:{% endif %}"
TOOLS = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"


def found(source: str) -> dict[Rule, int]:
    return {flaw.rule: flaw.line for flaw in lint(source)}


def test_a_template_with_all_its_parts_has_no_flaw() -> None:
    assert lint(CHATML) == ()
    assert lint(TOOLS + LOOP + PROMPT) == ()


CASES = {
    "tools are never read": (LOOP + PROMPT, Rule.TOOLS_IGNORED, 1),
    "tools are read and not written": (
        f"\n{{% if tools %}}You have tools.{{% endif %}}{LOOP}{PROMPT}",
        Rule.TOOLS_UNWRITTEN,
        2,
    ),
    "the system message is left out": (
        TOOLS + "\n{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}" + PROMPT,
        Rule.SYSTEM_DROPPED,
        1,
    ),
    "the system message is refused": (
        "{{ raise_exception('no') if messages[0].role == 'system' }}" + TOOLS + LOOP + PROMPT,
        Rule.SYSTEM_REFUSED,
        1,
    ),
    "no generation prompt": (TOOLS + "\n" + LOOP, Rule.GENERATION_PROMPT_MISSING, 1),
    "a generation prompt always": (TOOLS + LOOP + "\nassistant:", Rule.GENERATION_PROMPT_ALWAYS, 2),
    "the clock": (TOOLS + LOOP + PROMPT + "\n\n{{ strftime_now('%Y') }}", Rule.DATE_CLOCK, 3),
    "a date in the text": (TOOLS + LOOP + PROMPT + "a\nb 26 July 2024", Rule.DATE_FIXED, 2),
    "a date in an expression": (TOOLS + LOOP + PROMPT + "\n{{ '2024-07-26' }}", Rule.DATE_FIXED, 2),
    "an undefined variable": (TOOLS + LOOP + PROMPT + "\n{{ persona }}", Rule.VARIABLE_UNDEFINED, 2),
    "an escaped JSON": (
        LOOP + PROMPT + "\n{% for t in tools or [] %}{{ t | tojson | e }}{% endfor %}",
        Rule.TOJSON_ESCAPED,
        2,
    ),
    "a sorted JSON": (
        LOOP + PROMPT + "\n{% for t in tools or [] %}{{ t | tojson(sort_keys=true) }}{% endfor %}",
        Rule.TOJSON_SORTED,
        2,
    ),
    "an ASCII JSON": (
        LOOP + PROMPT + "\n{% for t in tools or [] %}{{ t | tojson(ensure_ascii=true) }}{% endfor %}",
        Rule.TOJSON_ASCII,
        2,
    ),
    "a lost newline": (TOOLS + LOOP + PROMPT + "\nend: {{ 1 }}\n", Rule.NEWLINE_LOST, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_finds_its_flaw_and_the_line(case: str) -> None:
    source, rule, line = CASES[case]

    assert found(source)[rule] == line


CLEAN = {
    "asked with is defined": "{{ persona if persona is defined }}",
    "asked whether true": "{% if persona and not quiet %}{{ persona }}{% endif %}",
    "with a default": "{{ persona | default('me') }}",
    "set before": "{% set persona = 'me' %}{{ persona }}",
    "a loop's own": "{% for persona in ['me'] %}{{ persona }}{% endfor %}",
    "a macro's argument": "{% macro f(persona) %}{{ persona }}{% endmacro %}{{ f('me') }}",
}


@pytest.mark.parametrize("case", CLEAN)
def test_a_variable_that_is_asked_for_or_set_is_no_flaw(case: str) -> None:
    assert lint(TOOLS + LOOP + PROMPT + CLEAN[case]) == ()


def test_a_newline_behind_a_block_is_not_lost_because_it_is_never_written() -> None:
    assert Rule.NEWLINE_LOST not in found(TOOLS + LOOP + PROMPT + "\n{% if true %}x{% endif %}\n")


def test_the_families_show_what_they_are_known_for() -> None:
    assert found(DATED).keys() == {Rule.TOOLS_IGNORED, Rule.DATE_CLOCK, Rule.DATE_FIXED}
    assert found(INST).keys() == {Rule.GENERATION_PROMPT_MISSING}
    assert found(TOOLLESS).keys() == {Rule.TOOLS_IGNORED}


def test_the_embedded_models_own_template_ignores_tools(reference: LocalReference) -> None:
    assert found(reference._loaded.codec._tokenizer.chat_template).keys() == {Rule.TOOLS_IGNORED}


def test_a_template_that_can_not_be_parsed_is_named_with_the_line() -> None:
    with pytest.raises(ModelError, match="can't be parsed") as caught:
        lint("\n{% if %}", "bad.jinja")

    assert caught.value.where == "bad.jinja, line 2"


def test_a_template_without_end_is_not_tried_for_long() -> None:
    endless = "{% for i in range(9999) %}{% for j in range(9999) %}{{ tools }}{% endfor %}{% endfor %}"

    assert Rule.TOOLS_UNWRITTEN not in found(endless + LOOP + PROMPT)
    assert found("\n" + endless + LOOP + PROMPT)[Rule.TEMPLATE_COSTLY] == 2


def test_a_macro_that_calls_itself_is_a_template_without_end() -> None:
    endless = "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}"

    assert Rule.TEMPLATE_COSTLY in found(endless + TOOLS + LOOP + PROMPT)


def test_a_template_that_can_not_be_parsed_is_one_flaw_where_flaws_are_asked_for() -> None:
    (flaw,) = flaws("\n\n{% for %}")

    assert (flaw.rule, flaw.severity, flaw.line) == (Rule.TEMPLATE_BROKEN, Severity.FAIL, 3)
    assert flaws(CHATML) == lint(CHATML)


def refusal(source: str) -> str | None:
    """Return where a template was refused, ``None`` if it was not."""
    try:
        lint(source)
    except ModelError as error:
        return error.where or "nowhere"
    return None


@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 60), st.integers(0, 60))
def test_a_damaged_template_is_read_or_refused_by_name(family: str, start: int, length: int) -> None:
    lines = SOURCES[family].splitlines(keepends=True)
    refused_at = refusal("".join(lines[:start] + lines[start + length :]))

    assert refused_at is None or refused_at.startswith("chat template")
