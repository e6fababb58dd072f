from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from probes.cache_key import CacheKeys, new_keys
from probes.dialects import dialect_named
from ringtrue.records import Exchange, Failure, FailureKind, Request, Timings

ASKED = Request(id="r", messages=({"role": "user", "content": "hi"},), session="s1", extra={"min_p": 0.1})


def answer(kind: FailureKind | None = None) -> Exchange:
    failure = Failure(kind, "refused") if kind is not None else None
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return Exchange("r", "acme", ASKED, at, Timings(0.0), error=failure)


def test_keys_are_new_for_every_run_and_endpoint_and_the_same_for_the_same() -> None:
    drawn = [new_keys(run, name, count=50) for run in ("r1", "r2") for name in ("a", "b")]
    assert len({key for keys in drawn for key in keys}) == 200
    assert new_keys("r1", "a", count=50) == drawn[0]
    # vLLM takes at most 128 characters and not all of them, OpenAI 64.
    assert all(len(key) == 16 and key.isalnum() for keys in drawn for key in keys)


@pytest.mark.parametrize(
    ("dialect", "fields"), [("vllm", ["cache_salt", None]), ("openai", ["prompt_cache_key", "user", None])]
)
def test_a_refused_field_gives_way_to_the_next_and_at_last_to_none(
    dialect: str, fields: list[str | None]
) -> None:
    keys = CacheKeys(dialect_named(dialect))
    for at, field in enumerate(fields):
        assert keys.field == field
        expected = {"min_p": 0.1} | ({} if field is None else {field: "s1"})
        assert keys.put(ASKED).extra == expected
        assert keys.again(answer(FailureKind.REFUSED)) == (at < len(fields) - 1)


def test_once_answered_a_refusal_is_about_something_else() -> None:
    keys = CacheKeys(dialect_named("openai"))
    assert not keys.again(answer())
    assert keys.settled
    assert not keys.again(answer(FailureKind.REFUSED))
    assert keys.field == "prompt_cache_key"


@pytest.mark.parametrize(
    "kind", [FailureKind.UNREACHABLE, FailureKind.SERVER_ERROR, FailureKind.RATE_LIMITED]
)
def test_other_failures_change_nothing(kind: FailureKind) -> None:
    keys = CacheKeys(dialect_named("openai"))
    assert not keys.again(answer(kind))
    assert not keys.settled
    assert keys.field == "prompt_cache_key"


def test_a_request_without_a_session_gets_no_key() -> None:
    keys = CacheKeys(dialect_named("vllm"))
    assert keys.put(replace(ASKED, session=None)).extra == {"min_p": 0.1}
