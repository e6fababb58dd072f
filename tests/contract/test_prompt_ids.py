"""Being shown a prompt over real sockets: what a server does wrong is the problem of its way alone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import pytest

from probes.prompt_ids import Shown, best, show
from tests.contract.fakes import endpoint_at
from tests.contract.fault_server import (
    Act,
    FaultServer,
    Script,
    chat_answer,
    error_script,
    json_script,
    refused_port,
    serve,
    stream_script,
)
from tokenizer_checks.templates.chat import Chat

HELLO = Chat(({"role": "user", "content": "hi"},))
IDS = (1, 4093, 2)
TOKENIZED = json_script({"count": 3, "max_model_len": 4096, "tokens": list(IDS)})
ANSWERED = json_script(chat_answer(prompt_token_ids=list(IDS)))
TWO = ("chat", "tokenize")


@asynccontextmanager
async def shown_by(*scripts: Script, dialect: str = "vllm", limits: Any = None, **settings: Any) -> Any:
    async with serve(*scripts) as server, endpoint_at(server.url, dialect=dialect, limits=limits) as endpoint:
        yield await show(endpoint, HELLO, **settings), server


def by_way(shown: tuple[Shown, ...]) -> dict[str, Shown]:
    return {one.way: one for one in shown}


async def test_ids_that_were_used_and_rendered_arrive_as_sent() -> None:
    async with shown_by(ANSWERED, TOKENIZED, ways=TWO) as (shown, server):
        assert [(one.way, one.ids) for one in shown] == [("chat", IDS), ("tokenize", IDS)]
        seen: FaultServer = server
        assert [one.path for one in seen.seen] == ["/v1/chat/completions", "/tokenize"]
        assert seen.seen[0].body["return_token_ids"] is True


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (error_script(400, "unknown field return_token_ids"), "unknown field return_token_ids"),
        (error_script(404, "Not Found"), "No such route"),
        (error_script(500, "out of order"), "out of order"),
        (json_script(b"<html><title>Gateway</title></html>"), "a web page came where JSON was due"),
        (json_script(b"[1, 2"), "not JSON"),
        (json_script([1, 2]), "the answer is a JSON list"),
        (json_script(chat_answer(prompt_token_ids="1,4093,2")), "text where a list of token IDs was due"),
        (
            json_script(chat_answer(prompt_token_ids=["token_id:1"])),
            "text where a token ID was due, at index 0",
        ),
        (
            json_script(chat_answer(prompt_token_ids=[1, 1e99])),
            "a fractional number where a token ID was due",
        ),
        (json_script(chat_answer(prompt_token_ids=[1, 10**30])), "where a token ID was due"),
        (json_script(chat_answer(prompt_token_ids=[1, 60_000])), "60000 at index 1 is no token ID"),
        (Script((b'{"choices": [', Act.RESET)), "broke"),
        (Script((Act.CLOSE,)), "broke"),
    ],
)
async def test_what_goes_wrong_on_one_way_leaves_the_next(first: Script, said: str) -> None:
    async with shown_by(first, TOKENIZED, ways=TWO, vocabulary_size=50_000) as (shown, _):
        chat, tokenized = shown
        assert chat.ids is None
        assert said in (chat.problem or "")
        assert tokenized.ids == IDS
        assert best(shown) is tokenized


async def test_a_server_that_falls_silent_is_given_up_and_the_next_way_asked() -> None:
    limits = {"first_byte_timeout": 0.05, "read_timeout": 0.05}
    async with shown_by(Script((Act.HANG,)), TOKENIZED, ways=TWO, limits=limits) as (shown, _):
        assert shown[0].ids is None
        assert shown[0].problem
        assert shown[1].ids == IDS


async def test_a_stream_shows_its_ids_in_the_first_event_however_the_bytes_are_cut() -> None:
    first = {
        "id": "a",
        "choices": [{"index": 0, "delta": {"role": "assistant"}}],
        "prompt_token_ids": list(IDS),
    }
    last = {"id": "a", "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "length"}]}
    usage = {"id": "a", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    whole = b"".join(part for part in stream_script(first, last, usage).parts if isinstance(part, bytes))
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    script = Script(pieces, 200, {"content-type": "text/event-stream"}, chunked=True)
    async with shown_by(script, ways=("chat_stream",)) as (shown, _):
        assert (shown[0].ids, shown[0].count, shown[0].problem) == (IDS, 3, None)


async def test_a_count_is_kept_where_ids_are_refused() -> None:
    async with shown_by(json_script(chat_answer()), dialect="openai") as (shown, _):
        (one,) = shown
        assert (one.ids, one.count) == (None, 9)
        assert best(shown) is one


async def test_nobody_at_the_address_is_a_problem_of_every_way() -> None:
    async with endpoint_at(f"http://127.0.0.1:{refused_port()}", dialect="vllm") as endpoint:
        shown = await show(endpoint, HELLO)
    assert all(
        "cannot connect" in (one.problem or "") for one in shown if not one.way.startswith("completions")
    )
    assert best(shown) is None


async def test_a_prompt_of_many_tokens_arrives_whole() -> None:
    many = list(range(200_000))
    async with shown_by(json_script(chat_answer(prompt_token_ids=many)), ways=("chat",)) as (shown, _):
        assert shown[0].ids == tuple(many)


async def test_two_ways_of_one_dialect_have_names_and_ids_of_requests_of_their_own() -> None:
    async with shown_by(ANSWERED, TOKENIZED, ways=TWO, id="day-3") as (shown, _):
        assert by_way(shown)["chat"].exchange.id == "day-3-chat"
