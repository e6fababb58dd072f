from dataclasses import replace
from datetime import UTC, datetime

from evals.parts.sieve import Sieve
from ringtrue.records import Exchange, Failure, FailureKind, Request, Timings, Usage

ANSWER = Exchange("p", "acme", Request("p"), datetime(2026, 3, 1, tzinfo=UTC), Timings(0.0))
EXPECTED = (1, 2, 3)


def test_equal_ids_pass_and_others_are_withheld() -> None:
    sieve = Sieve()

    assert sieve.lets_through(replace(ANSWER, prompt_token_ids=EXPECTED), EXPECTED)
    assert not sieve.lets_through(replace(ANSWER, prompt_token_ids=(1, 2)), EXPECTED)
    assert (sieve.answered, sieve.withheld, sieve.counted) == (2, 1, False)


def test_a_failed_answer_is_neither_answered_nor_withheld() -> None:
    sieve = Sieve()
    failed = replace(ANSWER, error=Failure(FailureKind.SERVER_ERROR, "500"))

    assert not sieve.lets_through(failed, EXPECTED)
    assert (sieve.answered, sieve.withheld) == (0, 0)


def test_ids_known_by_their_count_only_are_said_to_be() -> None:
    sieve = Sieve()

    assert sieve.lets_through(replace(ANSWER, usage=Usage(prompt_tokens=3)), EXPECTED)
    assert not sieve.lets_through(replace(ANSWER, usage=Usage(prompt_tokens=4)), EXPECTED)
    assert sieve.basis.counted
    assert sieve.basis.withheld == 1


def test_most_are_withheld_from_more_than_half_on() -> None:
    assert not Sieve().mostly_withheld
    assert not Sieve(answered=4, withheld=2).mostly_withheld
    assert Sieve(answered=4, withheld=3).mostly_withheld


def test_unreadable_answers_are_counted_for_the_judge() -> None:
    assert Sieve(unreadable=2).basis.unusable == {"without_token_ids": 2}
    assert Sieve().basis.unusable == {}
