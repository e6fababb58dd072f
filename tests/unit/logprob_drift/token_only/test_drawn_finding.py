from __future__ import annotations

import pytest

from logprob_drift.findings import Basis
from logprob_drift.token_only.drawn_finding import DrawnFrom, drawn_finding
from logprob_drift.token_only.drawn_tokens import DrawnNight, SeedPairs
from logprob_drift.token_only.sampling_alternatives import ALTERNATIVES, Alternative
from ringtrue.records import Cause, Finding, Interval, Severity, State
from ringtrue.verdict import state_of

BY_NAME = {one.name: one for one in ALTERNATIVES}
OWN, ALIKE, ALONE = (
    DrawnFrom(own=True, alike=False),
    DrawnFrom(own=False, alike=True),
    DrawnFrom(False, False),
)


def finding(
    state: State,
    source: DrawnFrom = OWN,
    basis: Basis = Basis(),  # noqa: B008 - frozen
    *,
    best: str = "temperature_1.1",
    temperature: float | None = 1.12,
    interval: Interval | None = Interval(1.07, 1.17, 0.99),  # noqa: B008 - frozen
    still_open: tuple[Alternative, ...] = (),
    more: int | None = 0,
    pairs: SeedPairs | None = None,
) -> Finding:
    n = 0 if temperature is None else 288
    night = DrawnNight(state, n, 9.7, BY_NAME[best], temperature, interval, 0.06, still_open, more)
    return drawn_finding("acme", night, source, basis, pairs=pairs)


@pytest.mark.parametrize(
    ("source", "alternatives"),
    [(OWN, set()), (ALIKE, set()), (ALONE, {Cause.NUMERICS, Cause.IDENTITY})],
)
def test_sampling_is_the_cause_and_what_nothing_vouches_for_stays_possible(
    source: DrawnFrom, alternatives: set[Cause]
) -> None:
    found = finding(State.CHANGED, source)

    assert (found.severity, found.cause, set(found.alternatives)) == (
        Severity.WARN,
        Cause.SAMPLING,
        alternatives,
    )
    assert ("tokens alone can't tell" in found.message) == bool(alternatives)


def test_ids_known_by_their_count_leave_the_prompt_possible_unless_the_list_is_the_null() -> None:
    assert Cause.PROMPT in finding(State.CHANGED, ALIKE, Basis(counted=True)).alternatives
    assert finding(State.CHANGED, OWN, Basis(counted=True)).alternatives == ()


def test_a_change_says_what_it_looks_like_how_sure_it_is_and_the_temperature() -> None:
    assert finding(State.CHANGED).message == (
        "as if the temperature were 1.1 times what was asked: e-value 10^4.2 from 288 sampled tokens held "
        "against the logprobs beside them, alarm at 1,000; temperature 1.12 times what was asked "
        "(1.07 to 1.17)"
    )


def test_ok_states_what_was_excluded() -> None:
    found = finding(State.OK, pairs=SeedPairs(8, 8, 14.0))

    assert state_of(found) is State.OK
    assert "a temperature off by 10 % or more" in found.message
    assert found.message.endswith("the seed is honoured")
    assert found.evidence["seed_pairs_equal"] == 8


def test_unknown_says_what_is_open_and_how_many_more_draws_would_decide() -> None:
    still = (BY_NAME["temperature_0.9"], BY_NAME["temperature_1.1"], BY_NAME["top_p_0.9"])
    found = finding(State.UNKNOWN, still_open=still, more=1_250)

    assert state_of(found) is State.UNKNOWN
    assert "and 1 more are not excluded; about 1,250 more would decide" in found.message
    assert found.evidence["not_excluded"] == [one.name for one in still]


def test_nothing_readable_is_unknown_with_the_answers_that_were_left_out() -> None:
    found = finding(
        State.UNKNOWN,
        basis=Basis(unusable={"without_token_ids": 32}),
        temperature=None,
        interval=None,
        more=None,
        still_open=ALTERNATIVES,
    )

    assert found.message == "no sampled token could be read; 32 answers left out, which could not be read"
    assert found.value is None
    assert found.effect is None


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(None, 0.4, 0.99), "temperature at most 0.40 times"),
        (Interval(2.5, None, 0.99), "temperature at least 2.50 times"),
    ],
)
def test_a_temperature_beyond_what_was_looked_at_has_one_limit(interval: Interval, words: str) -> None:
    assert words in finding(State.CHANGED, interval=interval).message


def test_seeds_that_count_for_nothing_are_said_to() -> None:
    assert "the seed is not honoured" in finding(State.OK, pairs=SeedPairs(8, 0, -20.0)).message
    assert "its pairs don't tell" in finding(State.OK, pairs=SeedPairs(8, 4, 0.0)).message
