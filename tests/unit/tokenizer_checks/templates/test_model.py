from datetime import UTC, datetime

import pytest

from ringtrue.errors import ModelError
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.model import ModelPrompts

TURNS = "{% for m in messages %}<u>{{ m.content }}</u>{% endfor %}"
DATED = "<s>{{ strftime_now('%Y-%m-%d') }}" + TURNS
PLAIN = "<s>" + TURNS + "{% if add_generation_prompt %}<a>{% endif %}"
CHAT = Chat(({"role": "user", "content": "hi"},))
BEFORE_MIDNIGHT = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
AFTER_MIDNIGHT = datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC)
MARKERS = {"<s>": 256, "<u>": 257, "</u>": 258, "<a>": 259}


class ByteFormat:
    """One token a byte, and four markers."""

    special_ids = frozenset(MARKERS.values())
    bos_id = 256
    end_ids = frozenset({258})
    vocabulary_size = 260

    def __init__(self, template: str | None, tool_template: str | None = None) -> None:
        self.special_tokens = {"bos_token": "<s>"}
        self.template = template
        self.tool_template = tool_template or template

    def encode(self, text):
        return tuple(text.encode())

    def encode_prompt(self, text, *, add_special_tokens=True):
        ids = []
        while text:
            marker = next((one for one in MARKERS if text.startswith(one)), None)
            ids += [MARKERS[marker]] if marker else text[0].encode()
            text = text[len(marker or text[0]) :]
        return tuple(ids)

    def decode(self, ids):
        names = {token_id: text for text, token_id in MARKERS.items()}
        return "".join(names.get(i) or chr(i) for i in ids)


def test_the_ids_are_those_of_the_rendered_text():
    ids = ModelPrompts(ByteFormat(PLAIN)).ids(CHAT, AFTER_MIDNIGHT)
    assert ids == (256, 257, *b"hi", 258, 259)


def test_a_template_without_a_date_has_one_rendering():
    assert len(ModelPrompts(ByteFormat(PLAIN)).days(CHAT, AFTER_MIDNIGHT)) == 1


@pytest.mark.parametrize("server", [BEFORE_MIDNIGHT, AFTER_MIDNIGHT])
@pytest.mark.parametrize("ours", [BEFORE_MIDNIGHT, AFTER_MIDNIGHT])
def test_a_server_on_the_other_side_of_midnight_uses_the_expected_ids(server, ours):
    prompts = ModelPrompts(ByteFormat(DATED))
    used = prompts.ids(CHAT, server)
    assert prompts.expected(CHAT, ours, used) == used


def test_a_date_of_last_year_is_not_expected():
    prompts = ModelPrompts(ByteFormat(DATED))
    stuck = prompts.ids(CHAT, datetime(2026, 7, 26, tzinfo=UTC))
    assert prompts.expected(CHAT, AFTER_MIDNIGHT, stuck) != stuck


def test_a_fault_beside_a_date_is_held_against_the_servers_own_day():
    prompts = ModelPrompts(ByteFormat(DATED))
    without_bos = prompts.ids(CHAT, BEFORE_MIDNIGHT)[1:]
    assert prompts.expected(CHAT, AFTER_MIDNIGHT, without_bos) == prompts.ids(CHAT, BEFORE_MIDNIGHT)


def test_faults_are_named_and_each_changes_the_ids():
    prompts = ModelPrompts(ByteFormat(PLAIN))
    honest = prompts.ids(CHAT, AFTER_MIDNIGHT)
    faults = prompts.faults(CHAT, AFTER_MIDNIGHT)
    assert faults["bos_doubled"] == (256, *honest)
    assert honest not in faults.values()


def test_a_request_with_tools_uses_the_template_for_tools():
    prompts = ModelPrompts(ByteFormat(PLAIN, "<s>tools"))
    assert prompts.text(Chat(CHAT.messages, ({"type": "function"},)), AFTER_MIDNIGHT) == "<s>tools"


def test_a_model_without_a_template_says_so():
    with pytest.raises(ModelError, match="no chat template"):
        ModelPrompts(ByteFormat(None)).ids(CHAT, AFTER_MIDNIGHT)


def test_only_the_faults_that_are_asked_for_are_worked_out():
    prompts = ModelPrompts(ByteFormat(PLAIN))
    all_of_them = prompts.faults(CHAT, AFTER_MIDNIGHT)
    assert prompts.faults(CHAT, AFTER_MIDNIGHT, {"bos_doubled"}) == {
        "bos_doubled": all_of_them["bos_doubled"]
    }
    assert prompts.faults(CHAT, AFTER_MIDNIGHT, ()) == {}
