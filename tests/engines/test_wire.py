"""The golden exchanges that the unit tests of the wire read are what real engines say today.

``pytest -m engines tests/engines/test_wire.py --record-wire`` writes them anew.
"""

from __future__ import annotations

import json

import pytest

from tests.engines import wires

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("case", wires.CASES, ids=lambda case: f"{case.engine}-{case.name}")
def test_an_engine_answers_in_the_recorded_shape(case: wires.Case, request: pytest.FixtureRequest) -> None:
    answer = wires.ask(request.getfixturevalue(case.engine), case)
    if request.config.getoption("--record-wire", default=False):
        wires.FOLDER.mkdir(parents=True, exist_ok=True)
        case.file.write_text(json.dumps(answer, ensure_ascii=False, indent=1) + "\n")
    recorded = json.loads(case.file.read_text())
    assert answer["request"] == recorded["request"]
    assert wires.shape(answer) == wires.shape(recorded)


def test_every_golden_exchange_belongs_to_a_case() -> None:
    assert {path.name for path in wires.FOLDER.glob("*.json")} == {case.file.name for case in wires.CASES}
