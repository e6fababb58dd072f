"""What every dialect keeps: names, bodies without fields nobody asked for, keys of sessions."""

from __future__ import annotations

import pytest

from probes.cache_key import CacheKeys
from probes.dialects import DIALECTS, dialect_named
from ringtrue.payload import to_body
from ringtrue.records import Request, Sampling

PLAIN = Request(
    id="r", messages=({"role": "user", "content": "hi"},), logprobs=5, sampling=Sampling(max_tokens=1)
)
ASKING = Request(id="r", prompt_token_ids=(1, 2), sampling=Sampling(max_tokens=1), return_token_ids=True)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_plain_request_has_no_field_of_any_dialect_s_own(name: str) -> None:
    assert dialect_named(name).name == name
    assert dialect_named(name).body(PLAIN, "m") == to_body(PLAIN, "m")


@pytest.mark.parametrize("name", DIALECTS)
def test_ids_are_asked_for_where_the_dialect_says_that_they_are_returned(name: str) -> None:
    body = dialect_named(name).body(ASKING, "m")
    own = body.keys() - to_body(ASKING, "m").keys()
    assert own == ({"return_token_ids"} if dialect_named(name).returns_token_ids else set())


@pytest.mark.parametrize("name", DIALECTS)
def test_the_key_of_a_session_goes_out_by_the_best_field_or_by_none(name: str) -> None:
    request = CacheKeys(dialect_named(name)).put(Request(id="r", prompt="x", session="night-7"))
    fields = dialect_named(name).cache_fields("night-7")
    assert request.extra == (fields[0] if fields else {})


@pytest.mark.parametrize("name", DIALECTS)
def test_the_first_way_is_the_chat_and_names_are_unique(name: str) -> None:
    ways = [way.name for way in dialect_named(name).ways]
    assert ways[0] == "chat"
    assert len(set(ways)) == len(ways)
