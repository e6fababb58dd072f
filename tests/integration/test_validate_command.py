"""The command ``validate`` as a process, over what real servers answered and a recording kept."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes.dialects import dialect_named
from probes.http_endpoint import connect
from probes.toolcall_suite.loading import load_suite
from probes.toolcall_suite.prompt import Due
from probes.toolcalls import paired
from reference_engine.engine import Engine
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from ringtrue.interchange import ExchangeWriter
from ringtrue.records import EndpointSpec

# What a server forces needs no model that can call: the small one writes a byte a token.
SUITE = [prompt for prompt in load_suite() if prompt.due is Due.CALL and "turns" not in prompt.id][::6]
CAP = 700
VALIDATE = "from ringtrue.cli import main; main()"


async def record(path: Path, engine: Engine, model: str, name: str, *faults: str) -> None:
    """Append to a recording what a server answers to the suite, plain and streamed."""
    dialect = dialect_named("vllm")
    replica = Replica("m", model, Faults(tool_faults=faults), chat_template=TOOLS_TEMPLATE)
    app = create_app(engine, replica, rng=random.Random(4))  # noqa: S311 - ids of calls
    async with serve_app(app) as url:
        spec = EndpointSpec(name, url, "m", dialect="vllm")
        async with aclosing(connect(spec, {})) as endpoint:
            with ExchangeWriter(path) as writer:
                for prompt in SUITE:
                    for request in paired(prompt, cap=CAP, night=1, dialect=dialect):
                        exchange = await endpoint.send(request)
                        writer.write(replace(exchange, id=f"{name}/{exchange.id}"))


def validate(*options: str, given: bytes | None = None) -> tuple[int, list[Any], str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGTRUE_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", VALIDATE, "validate", *options, "--format", "json"],
        input=given,
        capture_output=True,
        check=False,
        env=environment,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


async def test_an_honest_servers_recording_is_fine_and_a_faulty_ones_names_the_fault(
    small_engine: Engine, roomy_model: str, tmp_path: Path
) -> None:
    honest, both = tmp_path / "honest.jsonl", tmp_path / "both.jsonl"
    await record(honest, small_engine, roomy_model, "honest")
    await record(both, small_engine, roomy_model, "broken", "args.truncated_tail")
    both.write_bytes(honest.read_bytes() + both.read_bytes())

    code, (*lines, last), err = validate(str(honest))
    assert (code, "Traceback" in err) == (0, False), (lines, err)
    assert len(lines) == 2 * len(SUITE)
    assert all(not line["findings"] for line in lines)
    assert (last["schema"], last["pairs"]) == (1, [])
    found = last["metrics"]["honest"]
    assert found["effective_rate"]["value"] == found["call_validity"]["value"] == 1
    assert (found["stream_parity"]["value"], found["stream_parity"]["pairs"]) == (0, len(SUITE))
    assert found["first_attempt_availability"]["value"] == 1

    code, (*lines, last), _ = validate("-", given=both.read_bytes())
    assert code == 1
    blamed = {line["id"].split("/")[0] for line in lines if line["findings"]}
    assert blamed == {"broken"}
    codes = {one["code"] for line in lines for one in line["findings"]}
    assert "args.truncated_tail" in codes
    assert last["metrics"]["broken"]["effective_rate"]["value"] < 1
    [apart] = last["differences"]
    assert (apart["endpoint"], apart["against"]) == ("broken", "honest")
    assert apart["interval"][1] < 0


def test_an_empty_recording_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    code, (last,), err = validate(str(tmp_path / "empty.jsonl"))
    assert (code, last["metrics"]) == (3, {})
    assert "nothing could be judged" in err
