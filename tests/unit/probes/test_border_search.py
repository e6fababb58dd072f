import numpy as np
import pytest

from probes.border_search import SHARE, as_input, border_candidates, border_request, search
from probes.context_curve import CurvePrompt
from probes.dialects import dialect_named
from tests.unit.evals.tiny import SIZE, TinyReference

REFERENCE = TinyReference()
PROMPT = CurvePrompt("8-english-0", 8, "english", ({"role": "user", "content": "A prompt"},), 8)
IDS = REFERENCE.render(PROMPT.messages)


def row(**chances: float) -> np.ndarray:
    """Logprobs with the given probabilities for single characters, by name, and the rest spread evenly."""
    rest = (1 - sum(chances.values())) / (SIZE - len(chances))
    filled = np.full(SIZE, rest)
    for character, chance in chances.items():
        filled[ord(character)] = chance
    return np.log(filled).astype(np.float32)


def test_the_tied_tokens_are_those_close_to_the_likeliest() -> None:
    found = as_input(REFERENCE, PROMPT, IDS, row(a=0.2, b=0.3, c=0.22, d=0.2))

    assert found is not None
    assert [chr(token) for token in found.tokens] == ["b", "c"]
    assert found.texts == ("b", "c")
    assert found.probabilities == pytest.approx((0.3, 0.22))
    assert found.ids == IDS


def test_one_clear_favourite_is_no_tie() -> None:
    assert as_input(REFERENCE, PROMPT, IDS, row(a=0.5, b=0.3)) is None


@pytest.mark.parametrize("token", [200, 260, 32])  # half a character, a special token, white space
def test_ties_that_text_cannot_show_are_left_out(token: int) -> None:
    tied = row(a=0.4)
    tied[token] = tied[ord("a")]

    assert as_input(REFERENCE, PROMPT, IDS, tied) is None


def test_a_tie_of_a_word_and_its_beginning_is_left_out() -> None:
    class Words(TinyReference):
        def decode(self, ids):  # type: ignore[no-untyped-def]
            return {97: "The", 98: " There"}[ids[0]]

        def encode(self, text):  # type: ignore[no-untyped-def]
            return {"The": (97,), " There": (98,)}.get(text, tuple(text.encode()))

    assert as_input(Words(), PROMPT, IDS, row(a=0.4, b=0.4)) is None


async def test_the_search_takes_ties_that_leave_the_most_to_other_tokens() -> None:
    candidates = border_candidates(REFERENCE, 500, seed=1)
    every = await search(REFERENCE, candidates, inputs=500)
    few = await search(REFERENCE, candidates, inputs=5)

    assert len(every) > 5 == len(few)
    assert all(one in every for one in few)
    least = sorted(sum(one.probabilities) for one in every)[:5]
    assert sorted(sum(one.probabilities) for one in few) == least
    assert all(min(one.probabilities) >= SHARE * max(one.probabilities) for one in every)


async def test_the_same_seed_finds_the_same_inputs() -> None:
    found = [await search(REFERENCE, border_candidates(REFERENCE, 200, seed=s), inputs=5) for s in (1, 1, 2)]

    assert found[0] == found[1] != found[2]


def test_every_ask_has_a_session_of_its_own() -> None:
    dialect = dialect_named("vllm")
    asks = [border_request("p", PROMPT.messages, turn=turn, dialect=dialect) for turn in (0, 1)]

    assert len({ask.session for ask in asks}) == len({ask.id for ask in asks}) == 2
    assert all((ask.sampling.temperature, ask.sampling.max_tokens) == (0.0, 1) for ask in asks)
    assert asks[0].return_token_ids
