from collections import Counter

import pytest

from probes.answers import Want, load_questions, to_requests
from probes.dialects import dialect_named
from ringtrue.errors import ConfigError

VLLM = dialect_named("vllm")


def requests(count: int = 60, **settings):
    given = {"cap": 256, "temperature": 0.7, "seed": 0, "night": 1, "dialect": VLLM} | settings
    return to_requests(load_questions(count), **given)


def test_there_are_sixty_different_english_questions_as_many_of_each_kind() -> None:
    questions = load_questions(60)
    texts = [question.messages[0]["content"] for question in questions]

    assert len(set(texts)) == len({question.id for question in questions}) == 60
    assert all(text.isascii() and text.strip() == text for text in texts)
    assert set(Counter(question.want for question in questions).values()) == {15}


def test_fewer_questions_are_still_of_every_kind() -> None:
    assert {question.want for question in load_questions(4)} == set(Want)
    assert load_questions(60)[:4] == load_questions(4)


@pytest.mark.parametrize("count", [0, 61])
def test_a_number_of_questions_that_is_not_there_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match=f"{count} questions") as raised:
        load_questions(count)
    assert raised.value.remedy == "Ask for 1 to 60"


def test_every_question_travels_in_a_session_and_with_a_seed_of_its_own() -> None:
    asked = requests()
    seeds = {request.sampling.seed for request in asked}

    assert len({request.session for request in asked}) == len(seeds) == 60
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)
    assert all(request.return_token_ids for request in asked)
    assert not any(request.return_token_ids for request in requests(dialect=dialect_named("openai")))


def test_a_night_differs_from_another_in_its_seeds_alone_and_repeats_to_the_digit() -> None:
    tonight, again, tomorrow = requests(), requests(), requests(night=2)

    assert tonight == again
    assert [r.messages for r in tonight] == [r.messages for r in tomorrow]
    assert [r.session for r in tonight] == [r.session for r in tomorrow]
    assert not {r.sampling.seed for r in tonight} & {r.sampling.seed for r in tomorrow}


def test_the_temperature_is_the_servers_own_where_none_is_set() -> None:
    assert {r.sampling.temperature for r in requests(temperature=None)} == {None}
    assert {(r.sampling.temperature, r.sampling.max_tokens) for r in requests(cap=7)} == {(0.7, 7)}
