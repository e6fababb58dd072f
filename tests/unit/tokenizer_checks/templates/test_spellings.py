from dataclasses import replace

import orjson
import pytest

from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.fixtures import fixtures
from tokenizer_checks.templates.spellings import as_rendered, on_wire

FIXTURES = {fixture.name: fixture.chat for fixture in fixtures()}


def _called(arguments: object) -> Chat:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return Chat(({"role": "assistant", "content": "", "tool_calls": [call]},))


@pytest.mark.parametrize("name", FIXTURES)
def test_what_travels_comes_back_as_it_is_rendered(name: str) -> None:
    sent = on_wire(FIXTURES[name])

    # Everything on the wire is JSON, and arguments are text.
    assert orjson.loads(orjson.dumps(sent.messages)) == list(sent.messages)
    assert as_rendered(sent)[0] == FIXTURES[name]


def test_arguments_are_text_on_the_wire_and_an_object_in_the_template() -> None:
    chat = _called({"b": "\u00e9", "a": 1})

    assert on_wire(chat) == _called('{"b": "\u00e9", "a": 1}')
    assert as_rendered(on_wire(chat)) == (chat,)


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", ""])
def test_arguments_that_are_no_object_stay_as_they_were_sent(arguments: str) -> None:
    assert as_rendered(_called(arguments)) == (_called(arguments),)


def test_typed_text_is_a_list_or_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chat = Chat(({"role": "user", "content": parts},))

    contents = [one.messages[0]["content"] for one in as_rendered(chat)]

    assert contents == [parts, "a\nb", "ab"]


def test_content_that_is_not_all_text_is_never_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]

    assert len(as_rendered(Chat(({"role": "user", "content": parts},)))) == 1


SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Hi"}
DEVELOPER = {"role": "developer", "content": "Be kind."}


def test_a_developers_message_is_the_systems_to_a_template_that_does_not_know_it() -> None:
    chat = Chat((DEVELOPER, ASKED))

    as_system = Chat(({**DEVELOPER, "role": "system"}, ASKED))
    assert as_rendered(chat, "{{ messages }}") == (chat, as_system)
    assert as_rendered(chat, "{% if m.role == 'developer' %}") == (chat,)
    assert as_rendered(chat) == (chat,)
    assert as_rendered(Chat((SYSTEM, ASKED)), "{{ messages }}") == (Chat((SYSTEM, ASKED)),)


def test_several_messages_of_system_and_developer_become_one_at_the_front() -> None:
    chat = Chat((SYSTEM, ASKED, DEVELOPER))

    merged = {"role": "system", "content": "Be brief.\n\nBe kind."}
    assert as_rendered(chat, "{{ messages }}")[1] == Chat((merged, ASKED))


def test_all_else_of_a_chat_is_kept() -> None:
    chat = replace(_called({"a": 1}), tools=({"x": 1},), generation_prompt=False, options={"y": 2})

    assert as_rendered(on_wire(chat)) == (chat,)


def test_a_tools_own_keys_may_come_in_the_order_of_a_record_and_those_of_its_parameters_stay() -> None:
    parameters = {"type": "object", "required": [], "properties": {"b": {}, "a": {}}}
    function = {"parameters": parameters, "name": "f", "x-own": 1, "description": "Does f."}
    chat = Chat(({"role": "user", "content": "Go"},), ({"type": "function", "function": function},))

    usual, in_order = as_rendered(chat)

    assert usual.tools == chat.tools
    assert in_order.tools is not None
    written = in_order.tools[0]["function"]
    assert list(written) == ["name", "description", "parameters"]
    assert list(written["parameters"]) == list(parameters)
    assert len(as_rendered(in_order)) == 1
