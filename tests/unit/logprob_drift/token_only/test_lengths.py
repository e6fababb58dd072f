import numpy as np
import pytest

from logprob_drift.alarms.night_detector import Rule, detect
from logprob_drift.token_only.lengths import (
    LOG_LENGTH,
    cap_hits,
    empty_count,
    length_number,
    prompt_effects,
    reasoning_number,
)

NAN = float("nan")


def test_twenty_per_cent_more_tokens_are_0_18() -> None:
    tokens = np.random.default_rng(0).lognormal(5, 1, 60)
    before, after = length_number(tokens), length_number(1.2 * tokens)

    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(np.log(1.2))


def test_empty_and_unknown_answers_have_no_length() -> None:
    tokens = np.array([10.0, 0.0, NAN, 10.0])

    assert length_number(tokens) == pytest.approx(np.log(10))
    assert (empty_count(tokens).events, empty_count(tokens).n) == (1, 3)
    assert length_number(np.array([0.0, NAN])) is None


def test_a_night_that_lost_its_long_prompts_is_not_shorter() -> None:
    rng = np.random.default_rng(1)
    prompt = np.tile(np.arange(30), 14)
    scale = rng.normal(5, 1.5, 30)
    usual = prompt_effects(np.exp(scale[prompt] + rng.normal(0, 0.2, prompt.size)), prompt, 30)
    short = np.flatnonzero(scale < 5)
    tokens = np.exp(scale[short] + rng.normal(0, 0.2, short.size))

    number = length_number(tokens, short, usual)

    assert number == pytest.approx(0, abs=0.15)


def test_a_prompt_without_a_past_is_taken_as_average() -> None:
    effects = prompt_effects(np.array([10.0, 1000.0, 0.0]), np.array([0, 1, 2]), 3)

    assert effects[2] == pytest.approx(np.log(100))
    assert np.isnan(prompt_effects(np.array([0.0]), np.array([0]), 2)).all()


def test_lengths_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        length_number(np.array([-1.0]))
    with pytest.raises(ValueError, match="usual lengths"):
        length_number(np.array([1.0]), np.array([0]))
    with pytest.raises(ValueError, match="beside"):
        reasoning_number(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="negative"):
        reasoning_number(np.array([-1.0]), np.array([2.0]))


def test_cap_hits_count_only_answers_that_say_why_they_ended() -> None:
    count = cap_hits(["stop", "length", None, "tool_calls"])

    assert (count.events, count.n) == (1, 3)


def test_the_reasoning_share_weighs_answers_alike() -> None:
    assert reasoning_number(np.array([10.0, 900.0, 0.0, NAN]), np.array([10.0, 100.0, 0.0, 5.0])) == (
        pytest.approx((0.5 + 0.9) / 2)
    )
    assert reasoning_number(np.zeros(2), np.zeros(2)) is None


def test_longer_answers_alarm_and_honest_ones_do_not() -> None:
    rng = np.random.default_rng(2)
    streams, nights, changed = 40, 60, 30
    logs = rng.normal(5, 0.3, (streams, nights, 60)) + rng.normal(0, 0.03, (streams, nights, 1))
    logs[20:, changed:] += np.log(1.2)
    values = np.array([[length_number(np.exp(night)) for night in stream] for stream in logs], dtype=float)

    first = detect(values, LOG_LENGTH, Rule(73_000)).first

    assert (first[:20] == -1).all()
    assert (first[20:] >= changed).all()
    assert np.median(first[20:]) - changed + 1 <= 8
