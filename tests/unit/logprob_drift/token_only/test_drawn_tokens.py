from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp

from logprob_drift.token_only.drawn_tokens import (
    ALARM,
    Draw,
    draw,
    information,
    judge,
    seed_pairs,
)
from logprob_drift.token_only.sampling_alternatives import (
    ALTERNATIVES,
    LEAST,
    Null,
    head_of,
    null_of,
    temperature_information,
)
from ringtrue.records import State

SIZE, PROMPTS = 600, 16
Alter = Callable[[np.ndarray], np.ndarray]


def noisy(row: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
    logits = row + spread * rng.standard_normal(row.size)
    return (logits - logsumexp(logits)).astype(np.float32)


class Prompts:
    """Sixteen prompts whose served rows differ from the reference's by noise, as do the honest rows."""

    def __init__(self, seed: int, spread: float) -> None:
        rng = np.random.default_rng(seed)
        self.nulls: list[Null] = []
        self.cells: list[np.ndarray] = []
        self.served: list[np.ndarray] = []
        for _ in range(PROMPTS):
            row = noisy(np.zeros(SIZE), 3.0, rng)
            head = head_of(row, np.arange(SIZE))
            honest = [noisy(row, spread, rng) for _ in range(2)] if spread else []
            null, cell = null_of(head, head.ids, honest)
            cells = np.full(SIZE, null.rest)
            cells[head.ids] = cell
            self.nulls.append(null)
            self.cells.append(cells)
            self.served.append(noisy(row, spread, rng))
        self.kept: dict[tuple[int, int, int | None], Draw] = {}

    def night(self, n: int, rng: np.random.Generator, alter: Alter = lambda p: p) -> list[Draw]:
        shares = [np.cumsum(alter(np.exp(row.astype(np.float64)))) for row in self.served]
        found: list[Draw] = []
        before: dict[int, int] = {}
        for i in range(n):
            at = i % PROMPTS
            token = int(np.searchsorted(shares[at], rng.random() * shares[at][-1], side="right"))
            cell = int(self.cells[at][min(token, SIZE - 1)])
            key = (at, cell, before.get(at))
            self.kept.setdefault(key, draw(self.nulls[at], cell, before.get(at)))
            found.append(self.kept[key])
            before.pop(at, None)
            if cell != self.nulls[at].rest:
                before[at] = cell
        return found


def largest_e(draws: list[Draw]) -> float:
    paths = np.cumsum([one.evidence for one in draws], axis=0)
    return float((logsumexp(paths, axis=1) - np.log(len(ALTERNATIVES))).max())


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_honest_nights_seldom_reach_the_alarm_however_often_one_looks(spread: float) -> None:
    prompts, rng = Prompts(1, spread), np.random.default_rng(2)
    nights = [largest_e(prompts.night(300, rng)) for _ in range(250)]

    # At a level of 20 at most a twentieth of honest nights may; 250 nights, three standard errors.
    assert np.mean(np.array(nights) >= np.log(20)) <= 0.05 + 3 * (0.05 * 0.95 / 250) ** 0.5
    assert max(nights) < np.log(73_000)


def test_the_e_value_of_one_draw_has_an_expectation_of_one() -> None:
    null = Prompts(3, 0.0).nulls[0]
    p = np.exp(null.p)
    for before in (None, 0, 3):
        gains = np.array([np.exp(draw(null, cell, before).evidence) for cell in range(p.size)])
        assert p @ gains == pytest.approx(np.ones(len(ALTERNATIVES)))


def test_honest_rows_make_no_alternative_grow() -> None:
    null = Prompts(4, 0.05).nulls[0]
    for before in (None, 2):
        gains = np.array([np.exp(draw(null, cell, before).evidence) for cell in range(null.p.size)])
        assert (np.exp(null.honest) @ gains <= 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("alter", "best"),
    [
        (lambda p: p ** (1 / 1.1), "temperature_1.1"),
        (lambda p: p ** (1 / 0.9), "temperature_0.9"),
        (lambda p: p ** (1 / 0.5), "temperature_0.5"),
        (lambda p: np.where(p == p.max(), p, 0.0), "greedy"),
        (lambda p: np.where(p == p.max(), 0.0, p), "no_top"),
        (lambda p: np.where(p >= np.sort(p)[-5], p, 0.0), "top_k_5"),
        (lambda p: np.where(p >= np.sort(p)[-20], p, 0.0), "top_k_20"),
    ],
)
def test_a_fault_is_changed_and_named(alter: Alter, best: str) -> None:
    night = judge(Prompts(5, 0.03).night(1600, np.random.default_rng(6), alter))

    assert night.state is State.CHANGED
    assert night.log_e >= np.log(ALARM)
    assert night.best.name == best


def test_the_first_answer_given_again_and_again_is_a_repetition() -> None:
    prompts = Prompts(7, 0.0)
    first = [int(np.random.default_rng(at).choice(5)) + 1 for at in range(PROMPTS)]
    draws = [draw(prompts.nulls[at], first[at], None) for at in range(PROMPTS)]
    draws += [draw(prompts.nulls[at], first[at], first[at]) for _ in range(3) for at in range(PROMPTS)]

    assert judge(draws).state is State.CHANGED
    assert judge(draws).best.name == "repeats"


def test_honest_draws_are_ok_when_every_alternative_is_excluded_and_unknown_before() -> None:
    draws = Prompts(8, 0.03).night(1200, np.random.default_rng(9))

    early, late = judge(draws[:48]), judge(draws)
    assert early.state is State.UNKNOWN
    assert {"temperature_0.9", "temperature_1.1"} <= {one.name for one in early.open}
    assert early.more is not None
    assert 48 < early.more < 1200
    assert (late.state, late.open, late.more) == (State.OK, (), 0)
    assert late.interval is not None
    assert late.interval.low is not None
    assert late.interval.high is not None
    assert late.interval.low < 1 < late.interval.high
    assert late.temperature == pytest.approx(1, abs=0.1)


def test_a_fault_is_seldom_declared_excluded() -> None:
    prompts, rng = Prompts(10, 0.0), np.random.default_rng(11)
    wrong = 0
    for _ in range(150):
        draws = prompts.night(480, rng, lambda p: p ** (1 / 1.1))
        paths = np.cumsum([one.ratio for one in draws], axis=0)
        at = [one.name for one in ALTERNATIVES].index("temperature_1.1")
        wrong += bool((paths[:, at] <= np.log(0.01)).any())
    assert wrong <= 6  # 1 % promised: more than 6 of 150 has a chance below 0.1 %


def test_the_interval_holds_the_temperature() -> None:
    prompts, rng = Prompts(12, 0.0), np.random.default_rng(13)
    inside = 0
    for _ in range(100):
        interval = judge(prompts.night(320, rng, lambda p: p ** (1 / 1.2))).interval
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        inside += interval.low <= 1.2 <= interval.high
    assert inside >= 95


def test_greedy_draws_have_no_lower_limit_of_the_temperature() -> None:
    draws = Prompts(14, 0.0).night(64, np.random.default_rng(0), lambda p: np.where(p == p.max(), p, 0.0))
    interval = judge(draws).interval

    assert interval is not None
    assert interval.low is None


def test_more_draws_detect_less() -> None:
    draws = Prompts(15, 0.0).night(400, np.random.default_rng(0))
    few, many = judge(draws[:100]).detectable, judge(draws).detectable

    assert few is not None
    assert many is not None
    assert many == pytest.approx(few / 2, rel=0.25)


def test_nothing_drawn_is_unknown() -> None:
    night = judge([])

    assert (night.state, night.n, night.temperature, night.detectable) == (State.UNKNOWN, 0, None, None)


def test_no_single_draw_can_decide() -> None:
    null = Prompts(16, 0.0).nulls[0]
    for cell in range(null.p.size):
        assert judge([draw(null, cell, 0)]).state is State.UNKNOWN
    assert -np.log(LEAST) < np.log(ALARM * len(ALTERNATIVES))


def test_information_by_the_null_is_that_of_the_row() -> None:
    row = noisy(np.zeros(SIZE), 3.0, np.random.default_rng(17))
    head = head_of(row, np.arange(SIZE))

    assert information(null_of(head, head.ids)[0]) == pytest.approx(
        temperature_information(row, np.arange(SIZE)), rel=0.02
    )


@pytest.mark.parametrize(
    ("equal", "honoured"),
    [
        ([True] * 8, True),
        ([False] * 8, False),
        ([True] * 4 + [False] * 4, None),
        ([True] * 7 + [False], True),
    ],
)
def test_equal_seeds_that_give_equal_tokens_are_honoured(equal: list[bool], honoured: bool | None) -> None:
    assert seed_pairs(equal, [0.1] * len(equal)).honoured is honoured


def test_pairs_that_are_equal_by_chance_show_nothing() -> None:
    assert seed_pairs([True] * 8, [0.9] * 8).honoured is None
    with pytest.raises(ValueError, match="chances"):
        seed_pairs([True], [1.0])
