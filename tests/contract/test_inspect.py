"""``ringtrue inspect``: its exit codes and its four forms, over real sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from ringtrue.cli import COMMANDS, run
from tests.contract.fault_server import Script, chat_answer, error_script, json_script, refused_port, serve

KEY = "sk-planted-0123456789abcdef"
MODELS = json_script({"data": [{"id": "m"}]})


def with_logprobs(*values: float) -> Script:
    answer = chat_answer()
    top = [{"token": f"t{at}", "logprob": value, "bytes": None} for at, value in enumerate(values)]
    answer["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return json_script(answer)


async def inspect(url: str, *options: str) -> int:
    return await asyncio.to_thread(run, COMMANDS, ["inspect", url, *options])


async def test_logprobs_that_can_be_compared_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    async with serve(MODELS, MODELS, with_logprobs(-0.5, -1.5, -2.5, -3.5)) as server:
        assert await inspect(server.url) == 0
    printed = capsys.readouterr().out
    assert "Its logprobs can be compared (raw)." in printed
    assert "largest k" in printed


async def test_logprobs_that_cannot_be_trusted_exit_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    async with serve(MODELS, MODELS, with_logprobs(0.0, 0.0, 0.0, 0.0)) as server:
        assert await inspect(server.url, "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == 1
    assert report["self_test"]["trusted"] is False
    assert any(reason.startswith("all zero") for reason in report["self_test"]["reasons"])
    assert report["capabilities"]["largest_k"] == 4


@pytest.mark.parametrize(
    ("scripts", "said"),
    [
        ([MODELS, MODELS, json_script(chat_answer())], "the answer has no logprobs"),
        ([error_script(401, f"Incorrect API key provided: {KEY}")], "Check the key in env:PLANTED"),
        ([json_script(b"<html><title>Login</title></html>")], 'a web page came where JSON was due ("Login")'),
        ([json_script({"data": []})], "the server lists no model: name one with --model"),
    ],
    ids=["no logprobs", "401", "html", "no model"],
)
async def test_what_cannot_be_measured_exits_with_3_and_says_why(
    scripts: list[Script], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    async with serve(*scripts) as server:
        assert await inspect(server.url, "--format", "json", "--api-key", "env:PLANTED") == 3
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["self_test"]["trusted"] is None
    assert said in report["self_test"]["reasons"][0]
    assert KEY not in captured.out + captured.err


async def test_an_unreachable_host_is_unknown_at_once_in_every_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = f"http://127.0.0.1:{refused_port()}"
    forms: dict[str, Any] = {}
    for form in ("table", "json", "markdown", "junit"):
        assert await inspect(url, "--model", "m", "--format", form) == 3
        forms[form] = capsys.readouterr().out
    assert all("Connection refused" in text for text in forms.values())
    (case,) = fromstring(forms["junit"]).iter("testcase")  # noqa: S314  our own output
    assert case.find("error") is not None
    assert forms["markdown"].startswith("## ")


async def test_a_wrong_setting_exits_with_2_and_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert await inspect("http://127.0.0.1:1", "--dialect", "vlm") == 2
    assert "unknown dialect 'vlm'" in capsys.readouterr().err
    assert await inspect("http://127.0.0.1:1", "--api-key", KEY) == 2
    assert KEY not in capsys.readouterr().err
