from __future__ import annotations

import pytest

from probes.dialects import dialect_named
from probes.sampled_tokens import LENGTHS, draw_request, sampled_candidates
from ringtrue.errors import ConfigError
from tests.unit.evals.tiny import TinyReference


def test_candidates_are_short_different_and_the_same_for_the_same_seed() -> None:
    reference = TinyReference()
    prompts = sampled_candidates(reference, 20, seed=1)

    assert len({one.id for one in prompts}) == 20
    assert [one.bucket for one in prompts] == [LENGTHS[0]] * 7 + [LENGTHS[1]] * 7 + [LENGTHS[2]] * 6
    assert all(abs(one.text_tokens - one.bucket) <= 2 for one in prompts)
    assert prompts == sampled_candidates(reference, 20, seed=1)
    assert prompts != sampled_candidates(reference, 20, seed=2)


def test_a_request_asks_for_one_token_at_temperature_one_with_its_own_seed_and_session() -> None:
    (prompt, *_) = sampled_candidates(TinyReference(), 3, seed=0)
    request = draw_request(
        prompt, name="sampled-7", seed=12, session="s7", k=20, dialect=dialect_named("vllm")
    )

    assert (request.id, request.session, request.logprobs) == ("sampled-7", "s7", 20)
    assert (request.sampling.temperature, request.sampling.max_tokens, request.sampling.seed) == (1.0, 1, 12)
    assert request.sampling.top_p is None
    assert request.messages == prompt.messages
    assert request.return_token_ids


def test_an_endpoint_without_logprobs_is_asked_for_none() -> None:
    (prompt, *_) = sampled_candidates(TinyReference(), 3, seed=0)
    request = draw_request(prompt, name="x", seed=1, session="s", k=None, dialect=dialect_named("openai"))

    assert request.logprobs is None
    assert not request.return_token_ids


def test_a_context_that_holds_no_prompt_is_refused_with_the_key() -> None:
    with pytest.raises(ConfigError, match="does not fit"):
        sampled_candidates(TinyReference(context_length=20), 3, seed=0)
