"""The parts as the settings ask for them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from collector.parts import parts_for
from evals.parts.part import Part
from evals.truth import FloorTable
from probes.toolcall_suite.loading import load_suite
from ringtrue.config import settings_from
from ringtrue.errors import ConfigError
from tests.no_parts import NO_PARTS
from tests.unit.evals.parts.toolcalls.talking import ToolReference
from tests.unit.evals.tiny import ACME

NIGHT = datetime(2026, 3, 1, 2, tzinfo=UTC)


class NoCache:
    async def get(self, _key: str) -> FloorTable | None:
        return None

    async def put(self, _key: str, _table: FloorTable) -> None:
        return None


def parts(at: datetime = NIGHT, reference: dict[str, Any] | None = None, **asked: Any) -> tuple[Part, ...]:
    settings = settings_from(
        {
            "reference": reference or {},
            "parts": NO_PARTS | asked,
            "endpoints": [{"name": "a", "base_url": "http://a/v1", "model": "m"}],
        },
        source="test",
    )
    return parts_for(settings, ToolReference(), NoCache(), alarm=1000.0, at=at)


def ids(part: Part) -> set[str]:
    return {request.id.rpartition("/")[0] for request, _ in part.planned(ACME)}


def test_a_part_that_is_set_to_0_is_left_out() -> None:
    assert parts() == ()
    assert [part.name for part in parts(toolcalls=24)] == ["toolcalls"]


def test_nights_go_round_the_suite_and_stay_comparable() -> None:
    (first,), (second,) = parts(toolcalls=24), parts(NIGHT + timedelta(days=1), toolcalls=24)

    assert first.basis == second.basis
    assert len(ids(first)) == len(ids(second)) == 24
    assert not ids(first) & ids(second)


def test_the_suite_of_the_caller_is_asked_beside_our_own(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}], "id": "mine"}))
    (part,) = parts(toolcalls=1000, toolcall_suite=str(path))

    assert ids(part) == {"mine", *(prompt.id for prompt in load_suite())}


def test_a_bad_line_of_it_ends_the_cycle_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text("{}\n")

    with pytest.raises(ConfigError) as caught:
        parts(toolcalls=24, toolcall_suite=str(path))
    assert caught.value.where == f"{path}:1"


def test_a_format_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parts(reference={"tool_format": "klingon"}, toolcalls=24)
    assert caught.value.where == "reference.tool_format"


def test_every_night_keeps_the_share_of_the_budget_that_is_left(reference: Any) -> None:
    """A whole night may cost 370,000 input tokens, of which curve and other parts take 363,956."""
    settings = settings_from(
        {
            "parts": NO_PARTS | {"toolcalls": settings_default()},
            "endpoints": [{"name": "a", "base_url": "http://a/v1", "model": "m", "dialect": "vllm"}],
            "reference": {"tool_format": "hermes"},
        },
        source="test",
    )
    (spec,) = (endpoint.to_spec() for endpoint in settings.endpoints)
    nights = range(67)
    costs = []
    for night in nights:
        (part,) = parts_for(settings, reference, NoCache(), alarm=1000.0, at=NIGHT + timedelta(days=night))
        costs.append(sum(tokens for _, tokens in part.planned(spec)))
    assert max(costs) <= 370_000 - 363_956


def settings_default() -> int:
    """Return the number of requests that a night asks where nothing else is said."""
    settings = settings_from(
        {"endpoints": [{"name": "a", "base_url": "http://a/v1", "model": "m"}]}, source="test"
    )
    return settings.parts.toolcalls
