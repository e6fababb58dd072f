"""``ringtrue demo`` as a user starts it: one process, one JSON object, the verdicts that were planted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

CHECKS = {"logprobs", "context", "tokens", "identity", "wire"}
PLANTED = {
    "honest": {},
    "int4": {"logprobs": ("numerics", None)},
    "template": {"tokens": ("prompt", None)},
    "truncated": {"context": ("context", 2048)},
    "corrupted": {"context": ("context", 2048)},
}
PATIENCE = 900  # seconds; about 150 on two quiet cores


def test_the_demo_finds_what_it_planted_says_how_long_it_took_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("RINGTRUE_")}
    done = subprocess.run(
        [sys.executable, "-c", "from ringtrue.cli import main; main()", "demo", "--format", "json"],
        cwd=tmp_path,
        env=own | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.keys() == {"schema", "verdicts"}
    assert report["schema"] == 1

    verdicts = {(verdict["endpoint"], verdict["check"]): verdict for verdict in report["verdicts"]}
    assert len(verdicts) == len(report["verdicts"])
    assert verdicts.keys() == {(endpoint, check) for endpoint in PLANTED for check in CHECKS}
    for endpoint, planted in PLANTED.items():
        mine = {check: verdicts[endpoint, check] for check in CHECKS}
        faulty = {check: v for check, v in mine.items() if v["verdict"] in {"CHANGED", "WORSE"}}
        assert {check: (v["cause"], v["onset"]) for check, v in faulty.items()} == planted
    assert {verdicts["honest", check]["verdict"] for check in CHECKS} == {"OK"}
    assert verdicts["int4", "logprobs"]["verdict"] == "WORSE"
    assert "explained by smollm2-135m@int4" in verdicts["int4", "logprobs"]["reason"]

    assert "Every verdict is the planted one." in done.stderr
    assert re.search(r"^The demo took \d+ s: 5 endpoints, [\d,]+ tokens of text each\.$", done.stderr, re.M)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("ringtrue*")) == []
