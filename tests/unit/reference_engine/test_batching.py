from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from reference_engine.batching import BatchLimits, board, choose_batch

LIMITS = BatchLimits(padded_tokens=100, waste=0.1)


@dataclass(frozen=True)
class Waiting:
    length: int
    group: str = "m"
    text: str = ""

    def rides_on(self, other: "Waiting") -> bool:
        return bool(self.text) and self.group == other.group and other.text.startswith(self.text)


def written(text: str, group: str = "m") -> Waiting:
    return Waiting(len(text), group, text)


def test_prompts_of_one_length_share_a_batch_up_to_the_limit():
    assert len(choose_batch([Waiting(20)] * 8, LIMITS)) == 5


def test_prompts_of_other_models_stay_out():
    batch = choose_batch([Waiting(10), Waiting(10, "other"), Waiting(10)], LIMITS)
    assert [request.group for request in batch] == ["m", "m"]


def test_a_prompt_that_would_waste_padding_waits():
    assert choose_batch([Waiting(20), Waiting(5), Waiting(19)], LIMITS) == [Waiting(20), Waiting(19)]


def test_a_prompt_longer_than_the_limit_runs_alone():
    assert choose_batch([Waiting(500), Waiting(500)], LIMITS) == [Waiting(500)]


@given(st.lists(st.integers(1, 120), min_size=1, max_size=30))
def test_every_batch_holds_the_oldest_and_keeps_the_limits(lengths):
    batch = choose_batch([Waiting(length) for length in lengths], LIMITS)
    assert batch[0].length == lengths[0]
    assert LIMITS.fits([request.length for request in batch])


def test_a_prompt_that_another_begins_with_rides_on_it_whichever_came_first():
    for order in (["abc", "abcdef"], ["abcdef", "abc"]):
        waiting = [written(text) for text in order]
        assert {request.text for request in choose_batch(waiting, LIMITS)} == {"abc", "abcdef"}
        assert board(waiting) == [order.index("abcdef")] * 2


def test_equal_prompts_ride_on_one_of_them():
    waiting = [written("abc"), written("abc"), written("abd")]
    assert board(waiting) == [0, 0, 2]


def test_a_rider_takes_no_room():
    waiting = [written("a" * 60), *(written("a" * length) for length in range(1, 50)), written("b" * 60)]
    batch = choose_batch(waiting, LIMITS)
    assert len(batch) == 50
    assert all(set(request.text) == {"a"} for request in batch)


def test_nobody_rides_on_another_model():
    assert board([written("abc"), written("abcdef", "other")]) == [0, 1]


@given(st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=20))
def test_every_rider_sits_on_a_host_that_begins_with_it(texts):
    group = [written(text) for text in texts]
    boarded = board(group)
    for index, host in enumerate(boarded):
        assert boarded[host] == host
        assert texts[host].startswith(texts[index])
