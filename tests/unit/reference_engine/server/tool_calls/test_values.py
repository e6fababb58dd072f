from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.server.tool_calls.patterns import UnwritableError
from reference_engine.server.tool_calls.values import value_for
from toolcall_validator.schemas import Schemas

TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "left": {"$ref": "#"}, "right": {"$ref": "#"}},
    "required": ["name"],
}
SCHEMAS = (
    {"type": "string", "minLength": 20, "maxLength": 24},
    {"type": "string", "maxLength": 1},
    {"type": "string", "format": "date-time"},
    {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    {"type": "integer", "maximum": -20},
    {"type": "number", "minimum": 0.1, "maximum": 0.2},
    {"type": "number", "multipleOf": 0.25, "minimum": 0.3, "maximum": 0.6},
    {"type": "integer", "multipleOf": 7, "minimum": 50},
    {"enum": ["a", 3, None]},
    {"const": {"a": [1]}},
    {"type": ["null", "boolean"]},
    {"type": "null"},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}, "minItems": 3}]},
    {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}, {"type": "boolean"}]},
    {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    {
        "$ref": "#/$defs/a~1b",
        "$defs": {"a/b": {"type": "array", "prefixItems": [{"const": 1}], "items": False}},
    },
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "string"}, {"type": "number"}],
        "additionalItems": False,
    },
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "contains": {"const": 5}, "items": {"type": "integer"}},
    {"type": "array", "maxItems": 0},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "minProperties": 3, "additionalProperties": {"type": "string"}},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
    {"not": {"type": "integer"}},
    TREE,
)


@given(st.sampled_from(SCHEMAS), st.integers(min_value=0, max_value=2**63), st.lists(st.text(max_size=8)))
def test_a_value_meets_its_schema_and_is_the_same_again(schema, seed, words):
    schemas = Schemas()
    value = value_for(schema, seed, words, schemas)
    assert schemas.get(schema).accepts(value)
    assert value_for(schema, seed, words, schemas) == value


@pytest.mark.parametrize("schema", [None, True, {}])
def test_without_a_schema_there_are_no_arguments(schema):
    assert value_for(schema, 0, (), Schemas()) == {}


def test_optional_properties_are_written_where_there_is_room():
    value = value_for(TREE, 0, ("leaf",), Schemas())
    assert value["left"]["right"]["left"].keys() == {"name"}


def test_strings_are_made_of_the_words():
    assert set(value_for({"type": "string"}, 3, ("oslo",), Schemas()).split()) == {"oslo"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "strange"}, "compile"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "no value"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "without end"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "references"),
        ({"allOf": [False]}, "allows nothing"),
        ({"type": "string", "minLength": 10**9}, "minLength"),
        (
            {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": 1},
                "uniqueItems": True,
                "minItems": 2,
            },
            "no value",
        ),
    ],
)
def test_what_cannot_be_met_is_refused_with_the_reason(schema, reason):
    with pytest.raises(UnwritableError, match=reason):
        value_for(schema, 0, (), Schemas())
