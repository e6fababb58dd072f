import numpy as np
import pytest

from logprob_drift.alarms.night_detector import Rule, detect
from logprob_drift.token_only.request_shape import (
    LOG_INPUT,
    RequestShape,
    ShapeNumber,
    shape_finding,
    shape_numbers,
)
from ringtrue.records import Cause, Party, Severity


def test_numbers_of_a_night() -> None:
    night = shape_numbers(
        [RequestShape(100, 2, 1, "chat"), RequestShape(None, 0, 3, "agent"), RequestShape(100, 1, 2, "new")],
        ["chat", "agent", "batch"],
    )

    assert night["input_length"].value == pytest.approx(np.log(100))
    assert night["input_length"].n == 2
    assert night["tools"].value == pytest.approx(1)
    assert night["turns"].value == pytest.approx(2)
    assert [night[f"route:{r}"].value for r in ("chat", "agent", "batch", "other")] == pytest.approx(
        [1 / 3, 1 / 3, 0, 1 / 3]
    )


def test_a_night_without_requests_has_no_numbers() -> None:
    night = shape_numbers([], ["chat"])

    assert {number.value for number in night.values()} == {None}
    assert {number.n for number in night.values()} == {0}


def test_a_change_of_the_callers_alarms_and_is_theirs() -> None:
    rng = np.random.default_rng(0)
    nights = []
    for night in range(40):
        tokens = rng.lognormal(6 + (0.5 if night >= 25 else 0.0), 0.6, 200).astype(int)
        shapes = [RequestShape(int(t), 0, 1, "chat") for t in tokens]
        nights.append(shape_numbers(shapes, ["chat"])["input_length"])
    values = np.array([[night.value for night in nights]], dtype=float)

    alarms = detect(values, LOG_INPUT, Rule(73_000))
    assert alarms.since[0] == 25
    finding = shape_finding(
        "honest",
        "input_length",
        before=float(values[0, :25].mean()),
        after=nights[-1],
        interval=None,
        nights=15,
    )

    assert (finding.cause, finding.party, finding.severity) == (Cause.CALLER, Party.CALLER, Severity.INFO)
    assert finding.effect == pytest.approx(0.5, abs=0.1)


def test_an_unmeasured_night_is_no_finding() -> None:
    with pytest.raises(ValueError, match="not measured"):
        shape_finding(
            "one", "tools", before=1, after=ShapeNumber(None, 0, LOG_INPUT), interval=None, nights=1
        )
