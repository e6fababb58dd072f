from dataclasses import replace
from datetime import UTC, datetime

import pytest

from evals.parts.border.answer import first_token
from probes.border_search import BorderInput
from ringtrue.records import Exchange, Position, Request, Timings, TokenLogprob, Usage

BORDER = BorderInput("p", ({"role": "user", "content": "?"},), (1, 2), (40, 50), (0.3, 0.25), ("The", "A"))
ANSWER = Exchange("p", "acme", Request("p"), datetime(2026, 3, 1, tzinfo=UTC), Timings(0.0))
ONE = Usage(completion_tokens=1)


@pytest.mark.parametrize(("token", "place"), [(40, 0), (50, 1), (60, 2)])
def test_an_id_goes_before_the_text(token: int, place: int) -> None:
    assert first_token(replace(ANSWER, token_ids=(token, 7), text="A"), BORDER) == place


def test_the_sampled_token_of_logprobs_is_an_id_too() -> None:
    sampled = TokenLogprob("token_id:50", -1.0, token_id=50)

    assert first_token(replace(ANSWER, top_logprobs=(Position(sampled, ()),), text="?"), BORDER) == 1


@pytest.mark.parametrize(("text", "place"), [("The", 0), (" A", 1), ("There", 2), ("!", 2)])
def test_the_text_of_one_token_is_compared_whole_and_without_white_space(text: str, place: int) -> None:
    assert first_token(replace(ANSWER, text=text, usage=ONE), BORDER) == place


@pytest.mark.parametrize(("text", "place"), [("The capital", 0), ("A", 1), ("Paris is", 2)])
def test_more_tokens_than_were_asked_for_are_read_by_their_beginning(text: str, place: int) -> None:
    assert first_token(replace(ANSWER, text=text, usage=Usage(completion_tokens=16)), BORDER) == place


@pytest.mark.parametrize("text", ["", " \n", "\ufffd"])
def test_no_text_and_half_a_character_tell_nothing(text: str) -> None:
    assert first_token(replace(ANSWER, text=text, usage=ONE), BORDER) is None
