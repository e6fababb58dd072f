"""A cycle as a process of its own, with the real reference model: stopped, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from collector.lease import NAME, TTL
from ringtrue.errors import LeaseHeldError
from ringtrue.store import RunStatus, Store, open_store
from tests.no_parts import NO_PARTS_TOML

ANSWERED = 4
"""Requests that get an answer before the server falls silent."""


def answer() -> bytes:
    top = [{"token": letter, "logprob": -3.0, "bytes": [ord(letter)]} for letter in "abcdefghijklmnopqrst"]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "a"},
        "finish_reason": "length",
        "logprobs": {"content": [{**top[0], "top_logprobs": top}]},
    }
    usage = {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41}
    return json.dumps({"id": "x", "model": "m", "choices": [choice], "usage": usage}).encode()


@dataclass
class Provider:
    """A provider that answers a few requests, and then keeps the others waiting until it is closed."""

    url: str = ""
    answered: int = 0
    silent: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def may_answer(self) -> bool:
        with self.lock:
            self.answered += 1
            return self.answered <= ANSWERED


@contextmanager
def provider() -> Iterator[Provider]:
    state = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if not state.may_answer():
                state.silent.set()
                state.closing.wait()
                return
            body = answer()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "ringtrue.toml"


@contextmanager
def running(config: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    config.write_text(
        f'[store]\nurl = "sqlite:///{config.parent}/ringtrue.db"\n'
        '[probe]\nbuckets = [[32, 16]]\nlanguages = ["english"]\n'
        f"{NO_PARTS_TOML}"
        f'[[endpoints]]\nname = "acme"\nbase_url = "{url}"\nmodel = "m"\n'
    )
    process = subprocess.Popen(
        command(config), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def command(config: Path) -> list[str]:
    # As from a terminal: what runs in the background of a script inherits that SIGINT is ignored.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeding}; from ringtrue.cli import main; main()"
    return [sys.executable, "-c", program, "nightly", "--config", str(config)]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RINGTRUE_")}


def opened(config: Path) -> closing[Store]:
    return closing(open_store(f"sqlite:///{config.parent}/ringtrue.db", clock=lambda: datetime.now(UTC)))


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_cycle_ends_cleanly_and_keeps_what_was_measured(config: Path, stop: signal.Signals) -> None:
    with provider() as acme, running(config, acme.url) as process:
        assert acme.silent.wait(300)
        process.send_signal(stop)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    with opened(config) as store:
        (run,) = store.runs()
        kept = store.count_observations(run.id)
    assert run.status is RunStatus.INTERRUPTED
    assert kept > 0
    assert err.splitlines()[-1] == (
        f"Interrupted: run {run.id} keeps {kept} observations and the verdicts of 0 of 1 endpoints"
    )


def test_a_killed_cycle_keeps_what_was_measured_and_its_lease_until_that_runs_out(config: Path) -> None:
    with provider() as acme, running(config, acme.url) as process:
        assert acme.silent.wait(300)
        process.kill()
        process.wait()
    with opened(config) as store:
        with pytest.raises(LeaseHeldError, match=f"pid {process.pid} .*if it has died, its lease ends at"):
            store.acquire_lease(NAME, "second", TTL)
        (run,) = store.runs()
        assert run.status is RunStatus.RUNNING
        assert store.count_observations(run.id) > 0
        store.start_run("next")
        assert [(old.id, old.status) for old in store.runs()][1:] == [(run.id, RunStatus.FAILED)]
