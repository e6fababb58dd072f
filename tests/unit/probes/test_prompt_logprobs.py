from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probes.prompt_logprobs import prompt_request, read_prompt_logprobs
from ringtrue.errors import MeasureError
from ringtrue.records import Exchange, Request, Timings, Usage, WireChunk
from ringtrue.wire import assemble_body

GOLDEN = Path(__file__).parents[2] / "golden" / "wire" / "vllm_completions_prompt_logprobs.json"
IDS = (7, 3, 5, 9)


def _entry(logprob: Any, rank: Any = 1) -> dict[str, Any]:
    return {"logprob": logprob, "rank": rank, "decoded_token": "\ufffd"}


def _positions() -> list[Any]:
    """Three scored tokens at k = 2: one outside the list, one first in it, one second."""
    return [
        None,
        {"3": _entry(-4.0, 17), "8": _entry(-0.5), "1": _entry(-2.0, 2)},
        {"5": _entry(-0.1), "2": _entry(-3.0, 2)},
        {"9": _entry(-1.5, 2), "4": _entry(-0.5)},
    ]


def _exchange(positions: Any, *, ids: tuple[int, ...] = IDS, k: int = 2, **choice: Any) -> Exchange:
    body = {
        "choices": [{"index": 0, "text": "", "prompt_logprobs": positions, **choice}],
        "usage": {"prompt_tokens": len(ids), "completion_tokens": 1},
    }
    return _answered(prompt_request("sequence", ids, k=k, salt="s"), json.dumps(body).encode())


def _answered(request: Request, data: bytes) -> Exchange:
    answer = assemble_body(data)
    halves = (data[:40], data[40:])
    return Exchange(
        request.id,
        "acme",
        request,
        datetime(2026, 3, 1, tzinfo=UTC),
        Timings(0.0),
        wire=tuple(WireChunk(0.0, half) for half in halves),
        usage=answer.usage,
        prompt_token_ids=answer.prompt_token_ids,
    )


def _changed(at: int, entries: Any) -> list[Any]:
    positions = _positions()
    positions[at] = entries
    return positions


def test_the_token_that_stands_there_is_kept_apart_from_the_list() -> None:
    scores = read_prompt_logprobs(_exchange(_positions()), vocabulary_size=100)
    assert scores.top_ids.tolist() == [[8, 1], [5, 2], [4, 9]]
    assert scores.top_logprobs.tolist() == np.float32([[-0.5, -2.0], [-0.1, -3.0], [-0.5, -1.5]]).tolist()
    assert scores.logprobs.tolist() == np.float32([-4.0, -0.1, -1.5]).tolist()
    assert scores.ranks.tolist() == [17, 1, 2]
    seen = np.exp(scores.top_logprobs.astype(np.float64)).sum(axis=1)
    assert np.allclose(scores.tail_mass, 1 - seen, rtol=0, atol=1e-15)


def test_ties_are_ordered_by_id_and_share_a_rank() -> None:
    tied = {"9": _entry(-1.0, 4), "4": _entry(-1.0), "1": _entry(-1.0, 2)}
    scores = read_prompt_logprobs(_exchange(_changed(3, tied)), vocabulary_size=100)
    assert scores.top_ids[2].tolist() == [1, 4]
    assert scores.ranks[2] == 1  # the server counts those it ties with


def test_what_a_real_vllm_sent_is_read_by_id() -> None:
    golden = json.loads(GOLDEN.read_text())
    sent = golden["request"]["body"]
    request = Request("golden", prompt_token_ids=tuple(sent["prompt"]), prompt_logprobs=2)
    data = json.dumps(golden["response"]["json"]).encode()
    scores = read_prompt_logprobs(_answered(request, data), vocabulary_size=49_152)
    assert scores.top_ids.tolist() == [[29, 28], [282, 2240], [260, 4649], [314, 28]]
    assert scores.ranks.tolist() == [3121, 1, 2, 1]
    assert scores.logprobs[0] == np.float32(-11.70806884765625)


def test_the_request_asks_for_one_token_and_a_cache_of_its_own() -> None:
    request = prompt_request("sequence", IDS, k=5, salt="x1")
    assert (request.prompt_token_ids, request.prompt_logprobs) == (IDS, 5)
    assert (request.sampling.max_tokens, request.sampling.temperature) == (1, 0.0)
    assert request.extra == {"cache_salt": "x1"}
    assert request.return_token_ids


@pytest.mark.parametrize(
    ("at", "entries", "said"),
    [
        (1, None, "nothing is said"),
        (2, {}, "nothing is said"),
        (2, {"5": _entry(-0.1)}, "1 tokens came where the 2 likeliest were asked"),
        (2, {"2": _entry(-0.1), "4": _entry(-3.0)}, "not among those given"),
        (2, {"5": _entry(-0.1), "2": _entry(-3.0), "4": _entry(-4.0), "6": _entry(-5.0)}, "4 tokens came"),
        (2, {"5": _entry(-0.1), "two": _entry(-3.0)}, "something else than its ID"),
        (2, {"5": _entry(-0.1), "2": _entry(None)}, "NaN or no number"),
        (2, {"5": _entry(-0.1), "2": {}}, "NaN or no number"),
        (2, {"5": _entry(-0.1), "2": _entry(-9999.0)}, "minus infinity or a sentinel"),
        (2, {"5": _entry(-9999.0, 50), "2": _entry(-0.1), "4": _entry(-2.0)}, "minus infinity or a sentinel"),
        (2, {"5": _entry(0.3), "2": _entry(-3.0)}, "above 0"),
        (2, {"5": _entry(-0.1), "2": _entry(-0.2)}, "sum to more than 1"),
        (2, {"5": _entry(-0.1), "100": _entry(-3.0)}, "outside the model's vocabulary of 100"),
        (2, {"5": _entry(-1.0, 3), "2": _entry(-0.9), "4": _entry(-2.0)}, "less likely than the unlisted"),
        (2, {"5": _entry(-4.0, None), "2": _entry(-0.9), "4": _entry(-2.0)}, "rank of the unlisted token"),
        (2, {"5": _entry(-4.0, 2), "2": _entry(-0.9), "4": _entry(-2.0)}, "rank of the unlisted token"),
    ],
)
def test_an_impossible_position_is_named(at: int, entries: Any, said: str) -> None:
    with pytest.raises(MeasureError, match=said) as caught:
        read_prompt_logprobs(_exchange(_changed(at, entries)), vocabulary_size=100)
    assert caught.value.where == f"acme, sequence, position {at}"


@pytest.mark.parametrize("positions", [None, "no", []])
def test_an_answer_without_prompt_logprobs_says_who_gives_them(positions: Any) -> None:
    said = "came back scored" if positions == [] else "no prompt_logprobs"
    with pytest.raises(MeasureError, match=said):
        read_prompt_logprobs(_exchange(positions), vocabulary_size=100)


def test_another_number_of_positions_is_refused() -> None:
    with pytest.raises(MeasureError, match="4 tokens were sent and 3 came back scored"):
        read_prompt_logprobs(_exchange(_positions()[:-1]), vocabulary_size=100)


def test_other_tokens_than_were_sent_are_refused() -> None:
    exchange = _exchange(_positions())
    fewer = replace(exchange, prompt_token_ids=IDS[1:])
    with pytest.raises(MeasureError, match="4 tokens were sent and the server used 3"):
        read_prompt_logprobs(fewer, vocabulary_size=100)
    other = replace(exchange, prompt_token_ids=(7, 3, 6, 9))
    with pytest.raises(MeasureError, match="another token") as caught:
        read_prompt_logprobs(other, vocabulary_size=100)
    assert caught.value.where == "acme, sequence, position 2"
    counted = replace(exchange, usage=Usage(prompt_tokens=5))
    with pytest.raises(MeasureError, match="the server used 5"):
        read_prompt_logprobs(counted, vocabulary_size=100)


def test_tokens_from_a_prefix_cache_are_refused() -> None:
    exchange = replace(_exchange(_positions()), usage=Usage(prompt_tokens=4, cached_tokens=2))
    with pytest.raises(MeasureError, match="prefix cache"):
        read_prompt_logprobs(exchange, vocabulary_size=100)
