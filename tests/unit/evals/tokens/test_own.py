from datetime import UTC, datetime, timedelta

import pytest

from evals.tokens.own import ByServer, ByTemplate
from tests.unit.evals.tokens.small_format import small_format
from tests.unit.tokenizer_checks.templates.sources import CHATML
from tokenizer_checks.alignment import nearest
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.spellings import on_wire

DATED = "{{ bos_token }}<|im_start|>system\nToday Date: {{ strftime_now('%d %b %Y') }}<|im_end|>\n" + CHATML
CHAT = Chat(({"role": "user", "content": "Name a town."},))
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("by", [timedelta(seconds=1), timedelta(seconds=-1)])
def test_the_days_on_both_sides_of_a_years_end_are_right(by):
    prompts = small_format(DATED).prompts
    own = ByTemplate(prompts, CHAT, NEW_YEAR + by)

    assert len(own.right) == 3
    for theirs in (NEW_YEAR - timedelta(seconds=2), NEW_YEAR + timedelta(seconds=2)):
        assert prompts.ids(CHAT, theirs) in own.right


def test_a_template_without_a_date_has_one_answer():
    assert len(ByTemplate(small_format().prompts, CHAT, NEW_YEAR).right) == 1


def test_typed_content_may_reach_the_template_as_a_list_or_as_text():
    parts = [{"type": "text", "text": "Name"}, {"type": "text", "text": "a town."}]
    prompts = small_format("{% for m in messages %}{{ m.content }}{% endfor %}").prompts

    own = ByTemplate(prompts, Chat(({"role": "user", "content": parts},)), NEW_YEAR)

    assert {prompts.vocabulary.text(ids) for ids in own.right} == {str(parts), "Name\na town.", "Namea town."}


def test_arguments_that_travelled_as_text_are_an_object_again():
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    chat = Chat((*CHAT.messages, {"role": "assistant", "content": "", "tool_calls": [call]}))
    prompts = small_format().prompts

    assert ByTemplate(prompts, on_wire(chat), NEW_YEAR).right == (prompts.ids(chat, NEW_YEAR),)


def test_a_template_that_raises_has_no_answer_and_says_why():
    own = ByTemplate(small_format("{{ raise_exception('no towns') }}").prompts, CHAT, NEW_YEAR)

    assert own.right == ()
    assert "no towns" in (own.refusal or "")
    assert own.faults((1, 2)) == {}


def test_a_template_without_end_has_no_answer_and_says_why():
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"

    own = ByTemplate(small_format(endless).prompts, CHAT, NEW_YEAR)

    assert own.right == ()
    assert "steps" in (own.refusal or "")


def test_the_faults_are_those_of_the_day_that_was_used():
    prompts = small_format(DATED).prompts
    yesterday = NEW_YEAR - timedelta(days=1)
    used = prompts.faults(CHAT, yesterday)["bos_doubled"]

    assert ByTemplate(prompts, CHAT, NEW_YEAR).faults(used)["bos_doubled"] == used


def test_the_nearest_right_ids_are_the_ones_to_hold_others_against():
    prompts = small_format(DATED).prompts
    own = ByTemplate(prompts, CHAT, NEW_YEAR)
    yesterday = prompts.ids(CHAT, NEW_YEAR - timedelta(days=1))

    assert nearest(own.right, yesterday) == yesterday
    assert nearest(own.right, yesterday[:-1]) == yesterday


def test_another_server_knows_its_ids_or_why_there_are_none():
    assert ByServer((1, 2)).right == ((1, 2),)
    assert ByServer((1, 2)).refusal is None
    assert ByServer(None, "it was silent").refusal == "it was silent"
    assert ByServer(None).right == ()
