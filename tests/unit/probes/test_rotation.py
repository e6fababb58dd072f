from __future__ import annotations

from collections import Counter

import pytest

from probes.context_curve import LANGUAGES
from probes.rotation import Tonight, prompts_tonight
from ringtrue.errors import ConfigError
from tests.unit.evals.tiny import TinyReference

BUCKETS = ((32, 16), (128, 4), (1024, 1), (2048, 3))
TURNS = 11


def tonight(turn: int, *, turns: int = TURNS, seed: int = 0) -> Tonight:
    return prompts_tonight(TinyReference(), BUCKETS, seed=seed, turn=turn, turns=turns)


def test_lengths_with_fewer_than_four_prompts_take_turns_and_the_others_stay() -> None:
    first, second = tonight(739_000), tonight(739_001)

    assert first.steady == second.steady
    assert Counter(prompt.bucket for prompt in first.steady) == {32: 16, 128: 4}
    assert Counter(prompt.bucket for prompt in first.turning) == {1024: 1, 2048: 3}
    assert not {prompt.id for prompt in first.turning} & {prompt.id for prompt in second.turning}
    assert [prompt.bucket for prompt in first.prompts] == sorted(prompt.bucket for prompt in first.prompts)


def test_as_many_nights_as_there_are_turns_ask_each_prompt_once_in_every_language() -> None:
    asked = [prompt for turn in range(TURNS) for prompt in tonight(turn).turning]

    assert len({prompt.id for prompt in asked}) == 4 * TURNS
    assert {prompt.language for prompt in asked if prompt.bucket == 1024} == set(LANGUAGES)
    assert tonight(3) == tonight(3 + TURNS)


def test_what_prompts_are_drawn_from_is_named_the_same_every_night() -> None:
    assert tonight(1).turns == tonight(2).turns
    assert len({tonight(1).turns, tonight(1, turns=4).turns, tonight(1, seed=1).turns}) == 3


def test_with_one_turn_every_night_asks_the_same() -> None:
    assert tonight(1, turns=1) == tonight(2, turns=1)
    assert tonight(1, turns=1).turning == ()


def test_a_rare_length_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="a bucket of 9000 tokens does not fit"):
        prompts_tonight(TinyReference(), ((32, 16), (9000, 1)), seed=0, turn=0, turns=TURNS)
