"""The engines under test. Each starts when the first test asks for it and ends with the session."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from reference_engine.models.embedded import embedded_file
from ringtrue.endpoint import Reference
from ringtrue.records import Verdict
from ringtrue.report import Format, render_verdicts
from tests.engines import nights, servers, templates

_VERDICTS = pytest.StashKey[list[Verdict]]()
_CURVES = pytest.StashKey[list[str]]()
_BASELINES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-wire", action="store_true", help="write tests/golden/wire anew from the running engines"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_VERDICTS] = []
    config.stash[_CURVES] = []
    config.stash[_BASELINES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what ringtrue said about the engines, with the figures."""
    verdicts = config.stash[_VERDICTS]
    if verdicts:
        terminalreporter.section("verdicts on real engines")
        render_verdicts(verdicts, Format.TABLE, Console(width=160))
        terminalreporter.section("divergence / noise floor in nats, by prompt length")
        for line in config.stash[_CURVES]:
            terminalreporter.write_line(line)
    if config.stash[_BASELINES]:
        terminalreporter.section("baselines from real engines: divergence from the exact one / noise floor")
        for line in config.stash[_BASELINES]:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def show_baseline(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Show a line at the end of the session."""
    return pytestconfig.stash[_BASELINES].append


@pytest.fixture(scope="session", autouse=True)
def _stopped_as_by_ctrl_c() -> Iterator[None]:
    """A terminated session tears down as an interrupted one does, so that no engine outlives it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def gguf() -> Path:
    return embedded_file()


@pytest.fixture(scope="session")
def weights(gguf: Path) -> Path:
    return servers.exported_weights(gguf)


@pytest.fixture(scope="session")
def vllm(weights: Path) -> Iterator[servers.Server]:
    with servers.vllm(weights, "vllm") as server:
        yield server


@pytest.fixture(scope="session")
def llama_cpp(gguf: Path) -> Iterator[servers.Server]:
    with servers.llama_cpp(gguf, "llama_cpp") as server:
        yield server


@pytest.fixture(params=templates.SERVED)
def vllm_mutated(request: pytest.FixtureRequest, weights: Path, tmp_path: Path) -> Iterator[servers.Server]:
    """vLLM started with ``--chat-template`` and one fault; one server a fault, and one at a time."""
    template = (weights / "chat_template.jinja").read_text()
    faulty = tmp_path / "chat_template.jinja"
    faulty.write_text(templates.mutate(template, request.param))
    with servers.vllm(weights, f"vllm-{request.param}", "--chat-template", str(faulty)) as server:
        yield server


@pytest.fixture(scope="session")
def spend_night(reference: Reference, pytestconfig: pytest.Config) -> nights.SpendNight:
    """Examine a server once; its verdicts are shown at the end of the session."""

    def spend(server: servers.Server, folder: Path, plan: nights.Plan) -> nights.Night:
        night = nights.spend_night(server, reference, folder, plan)
        pytestconfig.stash[_VERDICTS].extend(night.verdicts.values())
        floors = night.curve("kl_floor_mean")
        curve = (
            f"{length}: {one.value:.5f} / {floors[length].value:.5f}"
            for length, one in night.curve("kl_mean").items()
        )
        pytestconfig.stash[_CURVES].append(f"{server.name}  {'  '.join(curve)}")
        return night

    return spend
