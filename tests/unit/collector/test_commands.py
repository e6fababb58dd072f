from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from collector.choice import choose, one_endpoint, with_seed
from probes.context_curve import LANGUAGES
from probes.dialects import DIALECTS
from ringtrue.alarm import Alarm
from ringtrue.cli import COMMANDS, run
from ringtrue.config import EndpointSettings, ProbeSettings, Settings, load_settings
from ringtrue.errors import ConfigError, UsageError
from ringtrue.records import Cause, Check, Finding, Party, Severity, State, Verdict
from ringtrue.store import open_store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ACME = Verdict("acme", "m", Check.LOGPROBS, State.OK, "fine", "r1")
ZETA = Verdict("zeta", "m", Check.LOGPROBS, State.WORSE, "int4", "r1", cause=Cause.NUMERICS)
GONE = Verdict("gone", "m", Check.LOGPROBS, State.UNKNOWN, "no answer", "r1")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ringtrue.toml"
    endpoints = "".join(
        f'[[endpoints]]\nname = "{name}"\nbase_url = "http://{name}/v1"\nmodel = "m"\n'
        for name in ("acme", "zeta")
    )
    path.write_text(f'[store]\nurl = "sqlite:///{tmp_path}/ringtrue.db"\n{endpoints}')
    return path


@pytest.fixture
def kept(config: Path) -> None:
    """Keep a verdict of each configured endpoint, and of one that is no longer configured."""
    with closing(open_store(load_settings(config).store.url, clock=lambda: NOW)) as store:
        store.start_run("r1")
        store.conclude("r1", [], [ACME, ZETA, GONE])


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Settings, dict[str, Any]]]:
    """Stand in for the session, which loads a model, and return what it was asked to run."""
    asked: list[tuple[Settings, dict[str, Any]]] = []

    def run_session(settings: Settings, **options: Any) -> tuple[Verdict, ...]:
        asked.append((settings, options))
        return (ACME, ZETA)

    module = ModuleType("collector.session")
    module.run_session = run_session  # type: ignore[attr-defined] - a module made by hand
    monkeypatch.setitem(sys.modules, "collector.session", module)
    return asked


def names(report: str) -> list[str]:
    return [verdict["endpoint"] for verdict in json.loads(report)["verdicts"]]


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("options", "shown", "code"),
    [
        ([], ["acme", "zeta"], 1),
        (["--endpoint", "acme"], ["acme"], 0),
        (["--all"], ["acme", "gone", "zeta"], 1),
    ],
)
def test_verdicts_shows_the_configured_endpoints_and_exits_by_them(
    config: Path, capsys: pytest.CaptureFixture[str], options: list[str], shown: list[str], code: int
) -> None:
    assert run(COMMANDS, ["verdicts", "--config", str(config), "--format", "json", *options]) == code
    captured = capsys.readouterr()
    assert names(captured.out) == shown
    assert captured.err == ""


def test_verdicts_of_a_store_that_does_not_exist_could_not_be_measured(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(COMMANDS, ["verdicts", "--config", str(config)]) == 3
    assert "ringtrue.db: no such store yet. `ringtrue probe` creates it" in capsys.readouterr().err


@pytest.mark.usefixtures("kept")
def test_a_table_that_is_piped_is_wide_enough_to_keep_its_lines(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(COMMANDS, ["verdicts", "--config", str(config)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line] == ["endpoint", "acme", "zeta", "zeta"]


@pytest.fixture
def alarmed(config: Path) -> None:
    """Keep an alarm that stands against acme, and what the rule of one night found beside it."""
    own = Finding(
        "acme", Check.LOGPROBS, "c", Severity.INFO, Party.UNKNOWN, Cause.UNKNOWN, "within the floor"
    )
    series = replace(own, code="logprobs.series", severity=Severity.WARN, message="no longer as it was")
    alarm = Alarm("r1", "acme", Check.LOGPROBS, "kl_mean@32", NOW, NOW, 900.0, 730.0, 2.4, 0.1)
    changed = replace(ACME, verdict=State.CHANGED, cause=Cause.NUMERICS, reason="no longer as it was")
    with closing(open_store(load_settings(config).store.url, clock=lambda: NOW)) as store:
        store.start_run("r1")
        store.conclude("r1", [own, series], [changed], [alarm])


@pytest.mark.usefixtures("alarmed")
@pytest.mark.parametrize("before", [True, False])
def test_an_accepted_change_is_ok_from_then_on_and_says_from_when_the_baseline_counts(
    config: Path, capsys: pytest.CaptureFixture[str], before: bool
) -> None:
    where = ["--config", str(config)]
    only = ["--endpoint", "acme"]
    assert run(COMMANDS, ["verdicts", *where, *only]) == 1
    capsys.readouterr()
    command = ["verdicts", *where, "accept", "acme"] if before else ["verdicts", "accept", "acme", *where]
    assert run(COMMANDS, [*command, "--by", "ann", "--why", "new kernels", "--format", "json"]) == 0
    captured = capsys.readouterr()
    (shown,) = json.loads(captured.out)["verdicts"]
    assert (shown["verdict"], shown["reason"]) == ("OK", "within the floor")
    assert captured.err == "Accepted: the baseline of acme logprobs begins 2026-03-01\n"
    assert run(COMMANDS, ["verdicts", *where, *only]) == 0
    with closing(open_store(load_settings(config).store.url, clock=lambda: NOW)) as store:
        (alarm,) = store.alarms("acme", Check.LOGPROBS)
    assert (alarm.by, alarm.why) == ("ann", "new kernels")
    assert alarm.closed is not None


@pytest.mark.usefixtures("alarmed")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["acne"], "ENDPOINT: no endpoint is named 'acne'. Did you mean acme?"),
        (["acme", "--check", "tokens"], "acme tokens: no alarm of a series stands here"),
        (["zeta"], "zeta logprobs: no alarm of a series stands here"),
        (["acme", "--check", "xyz"], "Invalid value for '--check'"),
    ],
)
def test_what_can_not_be_accepted_is_a_usage_error(
    config: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    options = ["--config", str(config), "--by", "ann", "--why", "new kernels"]
    assert run(COMMANDS, ["verdicts", "accept", *arguments, *options]) == 2
    assert said in capsys.readouterr().err


def test_accepting_creates_no_store(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["verdicts", "accept", "acme", "--by", "ann", "--why", "so", "--config", str(config)]
    assert run(COMMANDS, arguments) == 3
    assert "no such store yet" in capsys.readouterr().err


def test_options_of_the_list_are_not_passed_over_before_accept(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["verdicts", "--format", "json", "accept", "acme", "--by", "ann", "--why", "so"]
    assert run(COMMANDS, arguments) == 2
    assert "accept: takes its own options. Write them after `accept`" in capsys.readouterr().err


def test_probe_runs_the_named_endpoints_with_the_options_given(
    config: Path, tmp_path: Path, sessions: list[tuple[Settings, dict[str, Any]]]
) -> None:
    record = tmp_path / "x.jsonl"
    arguments = ["--config", str(config), "-e", "zeta", "--seed", "7", "--record", str(record), "--wait"]
    assert run(COMMANDS, ["probe", *arguments]) == 1
    ((settings, options),) = sessions
    assert [endpoint.name for endpoint in settings.endpoints] == ["zeta"]
    assert settings.probe.seed == 7
    assert options == {"record": record, "keep": True, "wait": True}


def test_probe_needs_no_file_for_a_url(
    sessions: list[tuple[Settings, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(COMMANDS, ["probe", "--url", "http://127.0.0.1:8000/v1", "--model", "m", "--no-store"]) == 1
    ((settings, options),) = sessions
    (endpoint,) = settings.endpoints
    assert (endpoint.name, endpoint.model) == ("http://127.0.0.1:8000/v1", "m")
    assert options["keep"] is False


def test_nightly_runs_all_endpoints(config: Path, sessions: list[tuple[Settings, dict[str, Any]]]) -> None:
    assert run(COMMANDS, ["nightly", "--config", str(config)]) == 1
    ((settings, options),) = sessions
    assert [endpoint.name for endpoint in settings.endpoints] == ["acme", "zeta"]
    assert options == {"record": None, "keep": True, "wait": False}


def test_without_a_configuration_the_demo_is_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(COMMANDS, ["nightly"]) == 2
    assert "ringtrue.toml: no such file. Try `ringtrue demo`" in capsys.readouterr().err


def test_an_unknown_endpoint_suggests_a_known_one(config: Path) -> None:
    settings = load_settings(config)
    with pytest.raises(UsageError, match=r"no endpoint is named 'acne'\. Did you mean acme"):
        choose(settings, ["acne"])
    with pytest.raises(UsageError, match="There are: acme, zeta"):
        choose(settings, ["xyz"])


def test_a_url_needs_a_model_and_its_key_is_never_repeated() -> None:
    with pytest.raises(UsageError, match="Add --model NAME"):
        one_endpoint("http://h/v1", None, dialect="openai", api_key=None)
    with pytest.raises(ConfigError, match="write env:NAME") as caught:
        one_endpoint("http://h/v1", "m", dialect="openai", api_key="sk-planted")
    assert "sk-planted" not in str(caught.value)


def test_another_seed_leaves_the_settings_it_came_from_alone(config: Path) -> None:
    settings = load_settings(config)
    assert with_seed(settings, 5).probe.seed == 5
    assert settings.probe.seed == 0


def test_every_dialect_and_language_the_configuration_accepts_exists() -> None:
    dialects = get_args(EndpointSettings.model_fields["dialect"].annotation)
    assert set(dialects) == set(DIALECTS)
    assert ProbeSettings().languages == LANGUAGES
