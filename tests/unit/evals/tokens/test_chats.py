import orjson
import pytest

from evals.tokens.chats import FEW, MARKED, UNMARKED, choose_chats, known_chats, read_chats
from evals.tokens.pairs import PAIRS
from ringtrue.errors import UsageError


def test_the_few_chats_hold_both_sides_of_every_relation():
    few = {named.name for named in choose_chats((), marker="<|end|>")}

    assert few == {*FEW, MARKED, UNMARKED}
    assert all({pair.first, pair.second} <= few for pair in PAIRS)


def test_the_sides_of_a_relation_differ_in_one_thing():
    held = known_chats()

    assert held["one_tool_without"].messages == held["one_tool"].messages
    assert held["tool_sorted_keys"].tools == held["tool_unsorted_keys"].tools  # equal as objects ...
    as_text = [orjson.dumps(held[name].tools) for name in ("tool_sorted_keys", "tool_unsorted_keys")]
    assert as_text[0] != as_text[1]  # ... and written otherwise
    spaced = held["trailing_space"].messages[0]["content"]
    assert held["trailing_space_stripped"].messages[0]["content"] == spaced[:-1]


def test_all_chats_are_all_that_are_known():
    chats = choose_chats((), everything=True)

    assert [named.name for named in chats] == list(known_chats())


def test_chats_are_chosen_by_name_once_each():
    assert [named.name for named in choose_chats(("digits", "one_user", "digits"))] == ["digits", "one_user"]


def test_an_unknown_name_is_told_with_the_nearest_one():
    with pytest.raises(UsageError, match="Did you mean one_user"):
        choose_chats(("one_usr",))


def test_a_file_of_chat_requests_is_read_with_what_they_ask_of_the_template(tmp_path):
    tool = {"type": "function", "function": {"name": "f"}}
    asked = {
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "he"}],
        "tools": [tool],
        "model": "m",
        "chat_template_kwargs": {"enable_thinking": False},
        "continue_final_message": True,
        "add_generation_prompt": False,
    }
    path = tmp_path / "chats.jsonl"
    path.write_bytes(
        orjson.dumps({"id": "mine", **asked}) + b"\n\n" + orjson.dumps({"request": asked}) + b"\n"
    )

    first, second = read_chats(path)

    assert (first.name, second.name) == ("mine", f"{path}:3")
    assert first.chat == second.chat
    assert first.chat.continue_final
    assert not first.chat.generation_prompt
    assert first.chat.options == {"enable_thinking": False}
    assert first.chat.tools == (tool,)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a chat request"),
        (b'{"prompt": "hi"}', "not a chat request"),
        (b'{"messages": []}', "not a chat request"),
        (b'{"messages": ["hi"]}', "not a chat request"),
        (b'{"messages": [{"role": "user"}], "tools": "f"}', "not a chat request"),
        (b"", "holds no chat"),
    ],
)
def test_a_line_that_is_no_chat_is_named(tmp_path, line, why):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(line)

    with pytest.raises(UsageError, match=why) as caught:
        read_chats(path)

    assert str(path) in (caught.value.where or "")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_chats(tmp_path / "none.jsonl")
