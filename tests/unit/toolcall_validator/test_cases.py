from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.unit.toolcall_validator.cases import arguments, faults, quirks, shapes
from tests.unit.toolcall_validator.exchanges import Sample
from toolcall_validator.fault import CODES, Fault
from toolcall_validator.validate import Validator, chunks_of, validate

SAMPLES = (*arguments.SAMPLES, *faults.SAMPLES, *quirks.SAMPLES, *shapes.SAMPLES)
STREAMED = [sample for sample in SAMPLES if sample.streamed]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_each_answer_gets_exactly_its_codes(sample: Sample) -> None:
    found = validate(sample.record)
    assert tuple(dict.fromkeys(fault.code for fault in found)) == sample.codes


def test_the_cases_cover_every_code_of_a_single_answer_and_enough_of_what_is_right() -> None:
    assert {code for sample in SAMPLES for code in sample.codes} == set(CODES) - {"stream.parity"}
    assert len(SAMPLES) >= 120
    assert len(quirks.SAMPLES) >= 30
    assert len({sample.id for sample in SAMPLES}) == len(SAMPLES)


@pytest.mark.parametrize("sample", STREAMED, ids=lambda sample: sample.id)
def test_the_bytes_may_be_split_anywhere(sample: Sample) -> None:
    validator = Validator()
    wire = b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in sample.record["chunks"])
    wire += b"data: [DONE]\n\n"
    whole = validator.validate(sample.record)
    assert validator.validate_stream(sample.record["request"], [wire]) == whole
    chunks = chunks_of([wire])  # the judge sees these alone, so they must be the same at every cut
    assert all(chunks_of([wire[:at], wire[at:]]) == chunks for at in range(len(wire)))
    one_by_one = [wire[at : at + 1] for at in range(len(wire))]
    assert validator.validate_stream(sample.record["request"], one_by_one) == whole


@pytest.mark.parametrize("sample", STREAMED, ids=lambda sample: sample.id)
def test_content_and_arguments_may_be_split_anywhere(sample: Sample) -> None:
    validator = Validator()
    whole = without_chunks(validator.validate(sample.record))
    for chunks in resplit(sample.record["chunks"]):
        assert without_chunks(validator.validate(sample.record | {"chunks": chunks})) == whole


def resplit(chunks: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Each text of each delta, cut in two at every position, one cut at a time."""
    found = []
    for at, chunk in enumerate(chunks):
        for choice in chunk.get("choices") or ():
            for first, second in cuts(choice["delta"]):
                two = [
                    chunk | {"choices": [choice | {"delta": first, "finish_reason": None}]},
                    chunk | {"choices": [choice | {"delta": second}]},
                ]
                found.append([*chunks[:at], *two, *chunks[at + 1 :]])
    return found


def cuts(delta: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    pairs = []
    for field in ("content", "reasoning", "reasoning_content"):
        text = delta.get(field)
        if isinstance(text, str):
            pairs += [(delta | {field: text[:at]}, {field: text[at:]}) for at in range(len(text) + 1)]
    for entry in delta.get("tool_calls") or ():
        text = entry["function"].get("arguments")
        if isinstance(text, str):
            where = {"index": entry["index"]} if "index" in entry else {}
            pairs += [
                (
                    {"tool_calls": [entry | {"function": entry["function"] | {"arguments": text[:at]}}]},
                    {"tool_calls": [where | {"function": {"arguments": text[at:]}}]},
                )
                for at in range(len(text) + 1)
            ]
    return pairs


def without_chunks(found: tuple[Fault, ...]) -> list[tuple[object, ...]]:
    """What must not depend on the cut: everything but the codes of the deltas, and the chunk."""
    return [
        (
            fault.code,
            fault.party,
            fault.call,
            fault.span and (fault.span.field, fault.span.start, fault.span.end),
            fault.dialect,
            fault.detail,
        )
        for fault in found
        if not fault.code.startswith("stream.")
    ]
