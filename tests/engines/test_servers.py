"""An engine that cannot be had is an error with its remedy, and none outlives its test."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from tests.engines import servers, templates

pytestmark = pytest.mark.engines


def test_a_missing_environment_names_the_command_that_sets_it_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(servers, "ROOT", tmp_path)
    with pytest.raises(servers.EngineError, match="make engines"), servers.llama_cpp(tmp_path, "absent"):
        pass


def test_a_server_that_dies_at_start_fails_with_the_end_of_its_log() -> None:
    command = [sys.executable, "-c", "print('no room for the weights'); raise SystemExit(3)"]
    with (
        pytest.raises(servers.EngineError, match=r"ended with 3[\s\S]*no room for the weights"),
        servers.running("dies", command, servers.free_port(), ready="/", environment={}),
    ):
        pass


def test_a_server_ends_with_its_block_and_its_children_with_it() -> None:
    port = servers.free_port()
    grandchild = f"import http.server as h; h.test(h.SimpleHTTPRequestHandler, port={port}, bind='127.0.0.1')"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    command = [sys.executable, "-c", parent]
    with servers.running("parent", command, port, ready="/", environment={}) as server:
        assert httpx.get(server.url, trust_env=False).is_success
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url, trust_env=False)


def test_a_mutation_that_finds_nothing_to_cut_is_an_error() -> None:
    with pytest.raises(ValueError, match="default-system-dropped"):
        templates.mutate("{{ messages }}", "default-system-dropped")
