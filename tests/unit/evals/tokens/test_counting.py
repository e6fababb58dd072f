import orjson
import pytest

from evals.tokens.counting import read_counts, requests_of, settled
from evals.tokens.inference import asks_for
from ringtrue.errors import UsageError
from tests.unit.evals.tokens.small_format import small_format


def test_a_request_goes_out_once_a_repetition_with_arguments_as_text():
    asks = asks_for([small_format()])

    requests = requests_of(asks, 2)

    assert len(requests) == 2 * len(asks)
    assert len({request.id for request in requests}) == len(requests)
    assert all(request.sampling.max_tokens == 1 for request in requests)
    called = next(request for request in requests if request.id == "tool_called#0")
    assert called.messages is not None
    assert isinstance(called.messages[1]["tool_calls"][0]["function"]["arguments"], str)


def test_counts_that_vary_are_unmeasured_in_words():
    told = settled({"base": [31, 31], "system": [44, 12], "tool": ["400: no tools", "400: no tools"]})

    assert told.counts == {"base": 31}
    assert told.unmeasured == {
        "system": "the same request was counted as 12 and as 44 tokens",
        "tool": "400: no tools",
    }


def test_a_count_that_was_told_once_is_a_count():
    assert settled({"base": ["timed out", 31]}).counts == {"base": 31}


@pytest.mark.parametrize("wrap", [lambda counts: counts, lambda counts: {"schema": 1, "counts": counts}])
def test_counts_are_read_from_a_file(tmp_path, wrap):
    path = tmp_path / "counts.json"
    path.write_bytes(orjson.dumps(wrap({"base": 31, "system": [40, 41]})))

    told = read_counts(path)

    assert told.counts == {"base": 31}
    assert list(told.unmeasured) == ["system"]


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"{}", b'{"counts": {}}', b'{"a": "3"}', b'{"a": true}', b'{"a": -1}', b'{"a": []}'],
)
def test_what_are_no_counts_is_refused(tmp_path, content):
    path = tmp_path / "counts.json"
    path.write_bytes(content)

    with pytest.raises(UsageError) as caught:
        read_counts(path)

    assert str(path) in (caught.value.where or "")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_counts(tmp_path / "none.json")
