"""What hostile schemas come to; how long that takes is asked by benchmarks/hostile_schemas.py."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.unit.toolcall_validator.exchanges import call, plain, tool
from tests.unit.toolcall_validator.hostile import Hostile, everything, remote, written
from toolcall_validator.schemas import Schemas, TooCostlyError
from toolcall_validator.validate import Validator

HOSTILE = everything()


def outcome(schema: Any, value: dict[str, Any]) -> str:
    compiled = Schemas().get(schema)
    if compiled.broken:
        return "broken"
    try:
        accepted = compiled.accepts(value)
        assert bool(list(compiled.violations(value))) is not accepted
        assert bool(compiled.explain(value)) is not accepted
    except TooCostlyError:
        return "costly"
    return "valid" if accepted else "invalid"


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.id)
def test_a_hostile_schema_is_refused_or_judged(case: Hostile) -> None:
    found = outcome(*case.make())
    assert found == case.outcome or (case.outcome == "judged" and found in ("valid", "invalid", "broken"))


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.id)
def test_a_refusal_is_the_callers_and_an_answer_beside_it_is_still_judged(case: Hostile) -> None:
    schema, value = case.make()
    exchange = plain(call(written(value), identity=""), asked={"tools": [tool(parameters=schema)]})
    found = {fault.code: fault for fault in Validator().validate(exchange)}
    assert "id.missing" in found
    if case.outcome in ("broken", "costly"):
        assert found["request.broken_schema"].party == "caller"
        assert not any(code.startswith("schema.") for code in found)


def test_nobody_is_asked_for_a_remote_document() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for case in remote(address):
            schema, value = case.make()
            assert outcome(schema, value) == "broken"
            Validator().validate(plain(call(), asked={"tools": [tool(parameters=schema)]}))
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("schema", "value", "keyword"),
    [
        ({"additionalProperties": False}, {"a": 1}, "additionalProperties"),
        ({"unevaluatedProperties": False}, {"a": 1}, "unevaluatedProperties"),
        ({"additionalProperties": False, "properties": {"b": {}}}, {"a": 1}, "additionalProperties"),
        ({"properties": {"a": False}}, {"a": 1}, "falseSchema"),
        ({"properties": {"additionalProperties": False}}, {"additionalProperties": 1}, "falseSchema"),
    ],
)
def test_a_property_too_many_is_named_as_such_however_it_is_forbidden(
    schema: dict[str, Any], value: dict[str, Any], keyword: str
) -> None:
    assert [violation.keyword for violation in Schemas().get(schema).violations(value)] == [keyword]


@pytest.mark.parametrize(
    "item",
    [
        {"pattern": r"^(a|a)*\1$"},
        {"anyOf": [{"type": "integer"}, {"pattern": r"^(a|a)*\1$"}]},
        {"anyOf": [{"oneOf": [{"pattern": r"^(a|a)*\1$"}, {"maxLength": 1}]}, {"type": "integer"}]},
    ],
)
def test_a_pattern_that_ran_out_of_steps_accuses_nobody(item: dict[str, Any]) -> None:
    schema = Schemas().get({"properties": {"a": item}})
    assert schema.accepts({"a": "aaaa"})
    with pytest.raises(TooCostlyError):
        schema.accepts({"a": "a" * 5_000 + "!"})


def test_only_so_many_values_are_tried_as_another_type() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    arguments = {f"k{n}": str(n) for n in range(50)} | {"last": "no number"}
    exchange = plain(call(json.dumps(arguments)), asked={"tools": [tool(parameters=schema)]})
    assert [fault.code for fault in Validator().validate(exchange)] == ["schema.stringified_scalar"]
