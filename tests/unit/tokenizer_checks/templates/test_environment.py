from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError

from ringtrue.errors import ModelError
from tests.unit.tokenizer_checks.templates.sources import DATED, SOURCES
from tokenizer_checks.templates.bounds import Bounds
from tokenizer_checks.templates.chat import Chat, Dialect, JsonStyle, Prompt
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.fixtures import Fixture, fixtures

if TYPE_CHECKING:
    from reference_engine.engine import Engine
    from reference_engine.local_reference import LocalReference
    from reference_engine.models.codec import TokenCodec

DAY = datetime(2026, 3, 1, tzinfo=UTC)
HELLO = Chat(({"role": "user", "content": "hello"},))
SMALL = Renderer(Bounds(steps=2_000, characters=20_000))


def render(source: str, chat: Chat = HELLO, now: datetime = DAY, **kwargs: Any) -> str:
    return SMALL.render(Prompt(source, chat, now, **kwargs))


@pytest.fixture(scope="module")
def codec_of_small(small_engine: Engine, small_model: Path) -> TokenCodec:
    return small_engine.load(str(small_model)).codec


def by_transformers(codec: TokenCodec, fixture: Fixture) -> str | None:
    chat = fixture.chat
    try:
        return str(
            codec._tokenizer.apply_chat_template(
                [dict(message) for message in chat.messages],
                tools=list(chat.tools) if chat.tools else None,
                add_generation_prompt=chat.generation_prompt and not chat.continue_final,
                continue_final_message=chat.continue_final,
                tokenize=False,
                **chat.options,
            )
        )
    except (TemplateError, TypeError, ValueError, KeyError):
        return None


def by_us(renderer: Renderer, prompt: Prompt) -> str | None:
    try:
        return renderer.render(prompt)
    except ModelError:
        return None


def test_every_fixture_renders_as_in_transformers_by_the_models_own_template(
    reference: LocalReference,
) -> None:
    codec = reference._loaded.codec
    template, special = codec._tokenizer.chat_template, codec._tokenizer.special_tokens_map
    renderer = Renderer()
    expected = {f.name: by_transformers(codec, f) for f in fixtures()}

    assert {f.name: by_us(renderer, Prompt(template, f.chat, DAY, special)) for f in fixtures()} == expected
    assert sum(text is not None for text in expected.values()) >= 50
    plain = next(f for f in fixtures() if f.name == "five_turns")
    assert codec.render_text(plain.chat.messages) == expected["five_turns"]


@pytest.mark.parametrize("family", SOURCES)
def test_every_fixture_renders_as_in_transformers_by_other_templates(
    codec_of_small: TokenCodec, family: str
) -> None:
    source = SOURCES[family].replace("strftime_now is defined", "false")  # its clock is today's
    codec = codec_of_small.with_template(source)
    special = codec._tokenizer.special_tokens_map
    renderer = Renderer()
    expected = {f.name: by_transformers(codec, f) for f in fixtures()}

    assert {f.name: by_us(renderer, Prompt(source, f.chat, DAY, special)) for f in fixtures()} == expected
    assert sum(text is not None for text in expected.values()) >= 40


def test_the_date_is_the_prompts_and_moves_at_midnight_and_at_the_years_end() -> None:
    days = [
        datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2027, 1, 1, 0, 0, 0, tzinfo=UTC),
        datetime(2027, 1, 1, 23, 59, 59, tzinfo=UTC),
    ]

    texts = [render(DATED, now=day) for day in days]

    assert "Today Date: 31 Dec 2026" in texts[0]
    assert "Today Date: 01 Jan 2027" in texts[1]
    assert texts[1] == texts[2]


def test_reasoning_is_found_under_each_of_its_names() -> None:
    source = "{{ messages[0].reasoning_content }}/{{ messages[0].thinking }}"

    for name in ("reasoning_content", "reasoning", "thinking"):
        assert render(source, Chat(({"role": "user", "content": "", name: "hm"},))) == "hm/hm"


def test_keys_without_a_value_are_not_there() -> None:
    chat = Chat(({"role": "user", "content": "x", "tool_calls": None},))

    assert render("{{ 'tool_calls' in messages[0] }}", chat) == "False"


def test_the_caller_can_override_a_special_token() -> None:
    chat = Chat(HELLO.messages, options={"bos_token": "<b>"})

    assert render("{{ bos_token }}", chat, special={"bos_token": "<s>"}) == "<b>"


def test_json_is_not_escaped_for_html_and_keeps_the_order_of_keys() -> None:
    chat = Chat(({"role": "user", "content": {"z": "<'é/'>&", "a": 1}},))

    assert render("{{ messages[0].content | tojson }}", chat) == '{"z": "<\'é/\'>&", "a": 1}'


def test_other_engines_write_other_json() -> None:
    chat = Chat(({"role": "user", "content": {"z": "<é/>", "a": 1}},))
    style = JsonStyle(sort_keys=True, compact=True, escape_html=True, escape_slashes=True, ascii_only=True)

    text = render("{{ messages[0].content | tojson }}", chat, dialect=Dialect(json=style))

    assert text == '{"a":1,"z":"\\u003c\\u00e9\\/\\u003e"}'


DOUBLE = "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}"
GROW = "\n{% set n = namespace(s='ab') %}{% for i in range(90) %}{% set n.s = OPERATION %}{% endfor %}"
CAPTURE = "\n{% set s %}{% for i in range(1900) %}TEXT{% endfor %}{% endset %}"

ENDLESS = {
    "loops": "\n{% for i in range(1000) %}{% for j in range(1000) %}x{% endfor %}{% endfor %}",
    "a wide range": "\n{{ range(90000) | list | length }}",
    "doubling macros": "\n" + DOUBLE + "{{ f(60) }}",
    "an endless macro": "\n{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a recursive loop": "\n{% for x in [messages] recursive %}{{ loop([x]) }}{% endfor %}",
    "a doubled text": GROW.replace("OPERATION", "n.s ~ n.s"),
    "an added text": GROW.replace("OPERATION", "n.s + n.s"),
    "a replaced text": "\n{{ ('a' * 2000).replace('a', 'a' * 2000) }}",
    "a replaced text by filter": "\n{{ ('a' * 2000) | replace('a', 'a' * 2000) }}",
    "a joined text": "\n{{ ('a' * 2000) | join('a' * 2000) }}",
    "a joined text by method": "\n{{ ('a' * 2000).join(['a'] * 2000) }}",
    "a multiplied text": "\n{{ 1000000000 * 'x' }}",
    "a multiplied list": "\n{{ [1] * 1000000000 }}",
    "a padded text": "\n{{ 'x'.ljust(1000000000) }}",
    "a centred text": "\n{{ 'x' | center(1000000000) }}",
    "a formatted text": "\n{{ '%999999999d' % 1 }}",
    "a formatted text by method": "\n{{ '{:{}}'.format('x', 999999999) }}",
    "a formatted text by map": "\n{{ '{x:{w}}'.format_map({'x': 'x', 'w': 999999999}) }}",
    "a formatted text by filter": "\n{{ '%*d' | format(999999999, 1) }}",
    "an indented text": "\n{{ 'x' | indent(999999999, true) }}",
    "tabs": "\n{{ '\t'.expandtabs(999999999) }}",
    "a large number": "\n{{ 9 ** 999999999 }}",
    "text in a captured block": CAPTURE.replace("TEXT", "{{ 'twenty-one characters' }}"),
    "literal text in a captured block": CAPTURE.replace("TEXT", "twenty-one characters"),
}


@pytest.mark.parametrize("cause", ENDLESS)
def test_a_template_that_costs_too_much_ends_with_an_error_that_names_it_and_the_line(cause: str) -> None:
    with pytest.raises(ModelError, match=r"the template (runs|makes|writes|calls|indents)") as caught:
        render(ENDLESS[cause], name="costly.jinja")

    assert caught.value.where == "costly.jinja, line 2"


def test_a_bound_is_met_at_the_same_place_every_time() -> None:
    source = "{% for i in range(100) %}{{ i }}{% endfor %}"
    enough = Renderer(Bounds(steps=200))  # 100 for the range, 100 passes
    too_few = Renderer(Bounds(steps=199))

    assert enough.render(Prompt(source, HELLO, DAY)).endswith("99")
    with pytest.raises(ModelError, match="199 steps"):
        too_few.render(Prompt(source, HELLO, DAY))


def test_a_long_chat_stays_within_the_usual_bounds() -> None:
    turns = tuple({"role": ("user", "assistant")[i % 2], "content": "word " * 40} for i in range(2_000))

    assert len(Renderer().render(Prompt(SOURCES["chatml"], Chat(turns), DAY))) > 400_000


REFUSALS = {
    "\n\n{{ raise_exception('roles must alternate') }}": ("line 3", "roles must alternate"),
    "\n{{ settings.level }}": ("line 2", "'settings' is undefined"),
    "\n{{ messages[0].content + 1 }}": ("line 2", "can only concatenate str"),
    "\n{% for %}": ("line 2", "can't be parsed"),
    "\n{{ 'x' | no_such_filter }}": ("line 2", "No filter named"),
    "\n{{ messages.append(1) }}": ("line 2", "unsafe"),
    "\n{{ ''.__class__ }}{{ ''.__class__.x }}": ("line 2", "unsafe"),
    "\n{% set n = namespace(_x=1) %}": ("line 2", "can't hold '_x'"),
    "{% include 'other' %}": ("line 1", "no loader"),
}


@pytest.mark.parametrize("source", REFUSALS)
def test_a_template_that_fails_is_named_with_its_line_and_its_words(source: str) -> None:
    line, words = REFUSALS[source]

    with pytest.raises(ModelError, match=words) as caught:
        render(source, name="strict.jinja")

    assert caught.value.where == f"strict.jinja, {line}"


def test_a_chat_without_messages_is_refused() -> None:
    with pytest.raises(ModelError, match="without messages"):
        render("x", Chat(()))


def test_a_final_message_that_is_not_written_can_not_be_continued() -> None:
    with pytest.raises(ModelError, match="does not write the final message"):
        render("nothing", Chat(HELLO.messages, continue_final=True))
    with pytest.raises(ModelError, match="no text to continue"):
        render("nothing", Chat(({"role": "user", "content": [{"type": "image"}]},), continue_final=True))


def test_compiled_templates_are_forgotten_beyond_the_limit_and_rendered_again() -> None:
    renderer = Renderer(kept=2)

    texts = [renderer.render(Prompt(f"{i % 4}", HELLO, DAY)) for i in range(8)]

    assert texts == list("01230123")


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_content_is_written_as_it_is(content: str, system: str) -> None:
    chat = Chat(({"role": "system", "content": system}, {"role": "user", "content": content}))

    text = render("{% for m in messages %}<{{ m.content }}>{% endfor %}", chat)

    assert text == f"<{system}><{content}>"


def refusal(source: str) -> str | None:
    """Return where a template was refused, ``None`` if it was not."""
    try:
        render(source)
    except ModelError as error:
        return error.where or "nowhere"
    return None


@given(st.text(alphabet="{}%#-| \nabfor=.()[]'\"~+*0123456789", max_size=60))
def test_any_source_renders_or_is_refused_by_name(source: str) -> None:
    refused_at = refusal(source)

    assert refused_at is None or refused_at.startswith("chat template")
