import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.tokens.id_files import read_ids
from ringtrue.errors import UsageError

EXCHANGE = {
    "id": "one",
    "at": "2026-11-30T10:00:00+00:00",
    "request": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "response": {
        "prompt_token_ids": [1, 2, 3],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    },
}


def _file(tmp_path, content: bytes):
    path = tmp_path / "ids.json"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("field", ["prompt_token_ids", "tokens", "ids", "input_ids"])
def test_a_list_and_an_answer_with_a_list_are_read(tmp_path, field):
    assert read_ids(_file(tmp_path, b"[1, 2, 3]"))["prompt"].ids == (1, 2, 3)
    assert read_ids(_file(tmp_path, orjson.dumps({field: [4, 5]})))["prompt"].ids == (4, 5)


def test_recorded_exchanges_are_read_by_their_id_with_the_chat(tmp_path):
    line = orjson.dumps(EXCHANGE)
    other = orjson.dumps({**EXCHANGE, "id": "two"})

    found = read_ids(_file(tmp_path, line + b"\n\n" + other + b"\n"))

    assert list(found) == ["one", "two"]
    one = found["one"]
    assert (one.ids, one.count) == ((1, 2, 3), 3)
    assert one.chat is not None
    assert one.chat.messages[0]["content"] == "hi"
    assert one.at is not None
    assert one.at.day == 30


def test_an_exchange_without_ids_keeps_its_count(tmp_path):
    answer = {key: value for key, value in EXCHANGE["response"].items() if key != "prompt_token_ids"}

    one = read_ids(_file(tmp_path, orjson.dumps({**EXCHANGE, "response": answer})))["one"]

    assert (one.ids, one.count) == (None, 3)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'["1", 2]', "index 0 but str"),
        (b'[1, "token_id:60"]', "index 1 but str"),
        (b"[1, 2.0]", "index 1 but float"),
        (b"[true]", "index 0 but bool"),
        (b"[1, [2]]", "index 1 but list"),
        (b"[1, null]", "index 1 but NoneType"),
        (b"[1, -1]", "index 1 but -1"),
        (b"[4294967296]", "index 0 but 4,294,967,296"),
        (b'{"tokens": "1 2 3"}', "no list of token IDs"),
        (b'{"text": "hi"}', "holds no token IDs"),
        (b"3", "holds no token IDs"),
        (b"", "holds no token IDs"),
        (b'[1]\n{"request"', "not JSON"),
        (b'{"request": {}}', "not an exchange"),
    ],
)
def test_what_are_no_ids_is_refused_with_its_place(tmp_path, content, why):
    path = _file(tmp_path, content)

    with pytest.raises(UsageError, match=why) as caught:
        read_ids(path)

    assert str(path) in (caught.value.where or "")


def test_a_file_that_can_not_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_ids(tmp_path)


@given(st.binary(max_size=60))
def test_any_bytes_are_ids_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("ids") / "ids.json"
    path.write_bytes(content)
    try:
        found = read_ids(path)
    except UsageError:
        return
    assert all(isinstance(i, int) and i >= 0 for one in found.values() for i in one.ids or ())
