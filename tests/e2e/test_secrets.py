"""A planted key, echoed by servers in every way they know, is in nothing that a user can read afterwards.

Real commands run as processes with every logger at its lowest level, so that
stderr holds the logs of all libraries too. What is left of them is searched
once for the key and once for what stood beside it: the search must be able to
find something.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import ssl
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme

from probes.http_endpoint import connect
from ringtrue.config import load_settings
from tests.contract.fault_server import (
    Act,
    FaultServer,
    Script,
    chat_answer,
    chat_delta,
    error_script,
    json_script,
    refused_port,
    serve,
    stream_script,
)
from tests.no_parts import NO_PARTS_TOML

KEY = "sk-planted/9vQ+Zx3=eT7uR1mW5bK8&dY2cHs6="
BEARER = f"Bearer {KEY}"
SAID = "what the server said"  # stands beside the key in errors, which reports quote
ANSWERED = "what the model answered"  # stands beside it in answers, which only a recording may hold
PROGRAM = "import logging; logging.basicConfig(level=1); from ringtrue.cli import main; main()"
PATIENCE = 300  # seconds, for a process that loads the reference model
REPORTS = {"table", "json", "markdown", "junit"}


def json_escaped_like_php(text: str) -> str:
    return json.dumps(text).replace("/", "\\/")


def json_escaped_like_gson(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if c in "<>&='" else c for c in json.dumps(text))


def answer_with_key() -> Script:
    top = [{"token": f"{BEARER} {at}", "logprob": -0.5 - at, "bytes": None} for at in range(20)]
    answer = chat_answer(f"{ANSWERED} {BEARER}", id=BEARER, model=BEARER, system_fingerprint=BEARER)
    answer |= {"prompt_token_ids": [1, 2, 3]}
    answer["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return json_script(answer, headers={"x-echo": BEARER, "set-cookie": f"session={KEY}"})


def stream_with_key() -> Script:
    event = b"data: " + json.dumps(chat_delta(f"{ANSWERED} {BEARER}", "stop")).encode() + b"\n\n"
    middle = event.index(KEY.encode()) + len(KEY) // 2  # a socket read ends inside the key
    return stream_script(event[:middle], event[middle:], f": {BEARER}\n\n".encode())


def refusal(body: str) -> Script:
    return json_script(f'{{"error": {{"message": {body}}}}}'.encode(), status=400)


def echoes() -> dict[str, Script]:
    """One way of giving a key away per server."""
    said = f"{SAID}: {BEARER}"
    page = f"<html><title>{SAID} {quote(KEY, safe='')}</title>{KEY}</html>".encode()
    whole = json.dumps(chat_answer(f"{ANSWERED} {BEARER}")).encode()
    return {
        "answers": answer_with_key(),
        "streams": stream_with_key(),
        "unauthorized": error_script(401, said, headers={"www-authenticate": BEARER}),
        "rate-limits": error_script(429, said, headers={"retry-after": "0", "x-echo": BEARER}),
        "fails": error_script(500, said),
        "php": refusal(json_escaped_like_php(said)),
        "gson": refusal(json_escaped_like_gson(said)),
        "web-page": Script((page,), headers={"content-type": "text/html"}),
        "moves": Script((), 307, {"location": f"/elsewhere/{KEY}?key={quote(KEY)}"}),
        "breaks": Script((whole[:-20], Act.CLOSE)),
        "no-json": Script((f"{SAID}: {BEARER}".encode(),)),
        "no-http": Script((f"{SAID}: {BEARER}\r\n\r\n".encode(),), raw=True),
        "bad-header": Script((b"HTTP/1.1 200 OK\r\nx-echo\x00: " + BEARER.encode() + b"\r\n\r\n",), raw=True),
        "stream-error": stream_script({"error": {"message": said}}),
    }


def tls() -> ssl.SSLContext:
    """What an authority that nobody trusts has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


def spellings(key: str) -> set[bytes]:
    """The key as it could be written, in pieces long enough to be no chance."""
    encoded = base64.b64encode(f"Bearer {key}".encode()).decode()
    forms = {key, quote(key), quote(key, safe=""), json.dumps(key)[1:-1], encoded}
    forms |= {json_escaped_like_php(key)[1:-1], json_escaped_like_gson(key)[1:-1]}
    return {form[at : at + 14].encode() for form in forms for at in range(len(form) - 13)}


@dataclass
class Traces:
    """Everything that the commands left, by name, and how they ended."""

    left: dict[str, bytes] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)
    prompts: set[str] = field(default_factory=set)

    async def run(self, name: str, folder: Path, *arguments: str, **variables: str) -> None:
        """Run one command; keep its output under its name."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("RINGTRUE_")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, *arguments),
            cwd=folder,
            env=own | {"PLANTED": KEY, "RINGTRUE_DEBUG": "1"} | variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        self.left |= {f"{name} stdout": out, f"{name} stderr": err}
        self.codes[name] = process.returncode or 0

    def saw(self, server: FaultServer) -> None:
        """Keep what a server was asked."""
        for seen in server.seen:
            self.asked.append(seen.headers.get("authorization"))
            if seen.body is not None and "messages" in seen.body:
                self.prompts.add(seen.body["messages"][0]["content"])

    def holding(self, *words: bytes) -> set[str]:
        """The traces in which one of the words stands."""
        return {name for name, data in self.left.items() if any(word in data for word in words)}


def write_config(path: Path, urls: Mapping[str, str], api_key: str = "env:PLANTED") -> None:
    endpoints = "".join(
        f'[[endpoints]]\nname = "{name}"\nbase_url = "{url}"\nmodel = "m"\napi_key = "{api_key}"\n'
        f'dialect = "{"vllm" if name == "answers" else "openai"}"\nlimits = {{ max_attempts = 2 }}\n'
        for name, url in urls.items()
    )
    path.write_text(f'[probe]\nbuckets = [[32, 4]]\nlanguages = ["english"]\n{NO_PARTS_TOML}{endpoints}')


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    folder = tmp_path_factory.mktemp("secrets")
    traces = asyncio.run(leave_traces(folder))
    traces.left |= {path.name: path.read_bytes() for path in folder.iterdir()}
    return traces


async def leave_traces(folder: Path) -> Traces:
    traces = Traces()
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(serve(script)) for name, script in echoes().items()}
        servers["untrusted"] = await stack.enter_async_context(serve(answer_with_key(), tls=tls()))
        urls = {name: server.url for name, server in servers.items()}
        urls["unreachable"] = f"http://127.0.0.1:{refused_port()}/v1"
        write_config(folder / "ringtrue.toml", urls)
        await traces.run("probe", folder, "probe", "--record", "record.jsonl", "--format", "json")
        await traces.run("nightly", folder, "nightly", "--format", "junit", RINGTRUE_PROBE__STREAM="true")
        for form in sorted(REPORTS):
            await traces.run(f"verdicts {form}", folder, "verdicts", "--format", form)
        inspected = ["answers", "streams", "unauthorized", "untrusted"]
        for name, form in zip(inspected, sorted(REPORTS), strict=True):
            options = ("--api-key", "env:PLANTED", "--model", "m", "--format", form)
            await traces.run(f"inspect {name}", folder, "inspect", urls[name], *options)
        for server in servers.values():
            traces.saw(server)
    return traces


def test_every_server_was_sent_the_key_and_every_command_came_to_its_end(traces: Traces) -> None:
    assert set(traces.asked) == {BEARER}
    assert traces.codes == {
        "probe": 1,
        "nightly": 1,
        "verdicts table": 1,
        "verdicts json": 1,
        "verdicts markdown": 1,
        "verdicts junit": 1,
        "inspect answers": 0,
        "inspect streams": 3,
        "inspect unauthorized": 3,
        "inspect untrusted": 3,
    }


def test_the_search_finds_what_stood_beside_the_key(traces: Traces) -> None:
    reports = {"probe stdout", "nightly stdout", *(f"verdicts {form} stdout" for form in REPORTS)}
    assert traces.holding(SAID.encode()) >= {*reports, "inspect unauthorized stdout", "record.jsonl"}
    assert "ringtrue.db" in traces.holding(SAID.encode())
    assert traces.holding(ANSWERED.encode()) == {"record.jsonl"}
    assert traces.holding(b"DEBUG:asyncio") >= {"probe stderr", "nightly stderr", "inspect answers stderr"}
    assert traces.holding(b"HTTP Request: POST") >= {"probe stderr", "nightly stderr"}
    assert "inspect untrusted stdout" in traces.holding(b"TLS failed")
    assert any(spelling in f"{SAID}: {BEARER}".encode() for spelling in spellings(KEY))


def test_the_key_is_in_no_output_log_report_database_or_recording(traces: Traces) -> None:
    assert traces.holding(*spellings(KEY)) == set()


def test_the_recording_holds_the_prompts_and_the_database_no_word_of_them(traces: Traces) -> None:
    recorded = [json.loads(line)["request"] for line in traces.left["record.jsonl"].splitlines()]
    prompts = {request["messages"][0]["content"] for request in recorded}
    assert len(prompts) == 4
    assert prompts <= traces.prompts
    slices = {prompt[at : at + 24].encode() for prompt in prompts for at in range(0, len(prompt) - 24, 8)}
    assert len(slices) > 40
    assert {name for name in traces.holding(*slices) if name.startswith("ringtrue.db")} == set()


def test_the_key_itself_in_a_setting_is_refused_unseen(tmp_path: Path) -> None:
    traces = Traces()
    url = "http://127.0.0.1:9/v1"
    write_config(tmp_path / "key.toml", {"acme": url}, api_key=KEY)
    write_config(tmp_path / "url.toml", {"acme": f"http://{quote(KEY, safe='')}@127.0.0.1:9/v1"})

    async def refuse() -> None:
        for debug in ("0", "1"):
            for name in ("key", "url"):
                arguments = ("nightly", "--config", f"{name}.toml")
                await traces.run(f"{name} {debug}", tmp_path, *arguments, RINGTRUE_DEBUG=debug)
            for command in (("probe", "--url", url), ("inspect", url)):
                options = ("--model", "m", "--api-key", KEY)
                await traces.run(f"{command[0]} {debug}", tmp_path, *command, *options, RINGTRUE_DEBUG=debug)

    asyncio.run(refuse())
    assert {traces.codes[f"{name} 0"] for name in ("key", "url", "probe", "inspect")} == {2}
    assert traces.holding(b"api_key") == {
        f"{name} {debug} stderr" for name in ("key", "url", "probe", "inspect") for debug in ("0", "1")
    }
    assert traces.holding(*spellings(KEY)) == set()


async def test_nothing_that_holds_the_key_shows_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    async with serve(answer_with_key()) as server:
        write_config(tmp_path / "ringtrue.toml", {"answers": server.url})
        settings = load_settings(tmp_path / "ringtrue.toml")
        spec = settings.endpoints[0].to_spec()
        endpoint = connect(spec, {"PLANTED": KEY}, rng=random.Random(0))  # noqa: S311 - jitter
        reply = await endpoint.call("GET", "/v1/models")
        shown = [repr(thing) for thing in (settings, spec, endpoint, endpoint._secret, endpoint._client)]
        await endpoint.aclose()
    assert server.seen[0].headers["authorization"] == BEARER
    assert "env:PLANTED" in shown[0]
    assert "HTTP Request: GET" in caplog.text
    everything = "\n".join([*shown, str(vars(endpoint)), repr(reply), caplog.text]).encode()
    assert ANSWERED.encode() in everything
    assert not any(spelling in everything for spelling in spellings(KEY))
