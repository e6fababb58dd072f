from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcall_validator.schema_cost import MOST_WORK, Cost, depth_of
from toolcall_validator.schemas import MOST_BYTES, MOST_LEVELS, Schemas, TooCostlyError, dialect_of


def nested(levels: int, key: str = "not") -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {key: schema}
    return schema


def doubling(levels: int) -> dict[str, Any]:
    steps = {
        f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}, {"$ref": f"#/$defs/l{n + 1}"}]}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/l0", "$defs": steps | {f"l{levels}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "http://127.0.0.1:9/other.json"}, "Retrieval is disabled"),
        ({"$ref": "file:///etc/hostname"}, "Retrieval is disabled"),
        ({"$schema": "https://example.org/own", "type": "object"}, "Unknown meta-schema"),
        ({"properties": {"a": {"type": "str"}}}, "not valid"),
        ({"pattern": "("}, "regex"),
        ({"$ref": "#/$defs/missing"}, "does not exist"),
        ({"items": [{"type": "string"}]}, "not of types"),
        ([], "neither an object nor a boolean"),
        ("object", "neither an object nor a boolean"),
        ({"enum": ["x" * 64 + str(n) for n in range(MOST_BYTES // 64)]}, "larger than"),
        (nested(MOST_LEVELS + 1), "nested deeper"),
        ({"a": {1, 2}}, "no JSON"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: object, reason: str) -> None:
    assert reason in Schemas().get(schema).broken


def test_equal_schemas_are_compiled_once_and_the_oldest_goes_first() -> None:
    schemas = Schemas(most=2)
    first = schemas.get({"type": "object"})
    assert schemas.get({"type": "object"}) is first
    schemas.get({"type": "array"})
    schemas.get({"type": "string"})
    assert schemas.get({"type": "object"}) is not first


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (None, "2020-12"),
        ("https://json-schema.org/draft/2020-12/schema", "2020-12"),
        ("https://json-schema.org/draft/2019-09/schema", "2019-09"),
        ("http://json-schema.org/draft-07/schema#", "draft-07"),
        ("http://json-schema.org/draft-04/schema", "draft-04"),
        ("https://example.org/own", "https://example.org/own"),
    ],
)
def test_the_dialect_is_what_the_schema_says(address: str | None, name: str) -> None:
    assert dialect_of({"$schema": address} if address else {}) == name


def test_the_dialect_decides_what_a_keyword_means() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "number"}]}
    new = {"prefixItems": [{"type": "number"}]}
    ignored = {"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "number"}]}
    accepted = [Schemas().get(schema).accepts(["a"]) for schema in (old, new, ignored)]
    assert accepted == [False, False, True]


def test_formats_are_annotations_in_every_dialect() -> None:
    for dialect in (
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ):
        assert Schemas().get({"$schema": dialect, "format": "date"}).accepts("no date")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?=(a+)+$)(a+)+$", "(x+x+)+y"])
def test_a_pattern_that_backtracks_for_ever_elsewhere_ends_here(pattern: str) -> None:
    schema = Schemas().get({"properties": {"a": {"pattern": pattern}}})
    assert schema.broken or schema.accepts({"a": "a" * 5_000 + "x" * 5_000 + "!"}) is False


def test_references_that_multiply_are_refused_before_they_are_followed() -> None:
    schema = Schemas().get(doubling(60))
    for ask in (schema.accepts, schema.explain, lambda value: list(schema.violations(value))):
        with pytest.raises(TooCostlyError):
            ask({})
    assert Schemas().get(doubling(8)).accepts({})


def test_a_value_multiplies_as_deep_as_it_is() -> None:
    pair = {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}
    cost = Cost({"properties": {"next": pair}})
    assert cost.at_depth(3) < MOST_WORK < cost.at_depth(30)
    chain = Cost({"type": "object", "properties": {"next": {"$ref": "#"}}})
    assert chain.at_depth(60) < 500


def test_a_recursive_schema_accepts_what_it_describes() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    schema = Schemas().get(tree)
    assert schema.accepts({"children": [{"children": []}]})
    assert not schema.accepts({"children": [{"children": [1]}]})
    assert Schemas().get({"$ref": "#"}).accepts(1)


def test_a_choice_is_resolved_to_the_branch_that_came_closest() -> None:
    schema = Schemas().get(
        {"oneOf": [{"type": "null"}, {"properties": {"a": {"type": "integer"}}, "type": "object"}]}
    )
    assert [(v.keyword, v.path) for v in schema.violations({"a": "x"})] == [("type", ("a",))]


def test_the_explanation_is_a_sentence_also_where_only_a_pattern_fails() -> None:
    assert Schemas().get({"required": ["place"]}).explain({}) == "'place' is a required property"
    assert "does not match" in Schemas().get({"properties": {"a": {"pattern": "^b"}}}).explain({"a": "c"})


def test_what_the_checker_cannot_hold_is_not_accepted() -> None:
    schema = Schemas().get({"properties": {"a": {"pattern": "^b"}}})
    assert not schema.accepts({"a": "\ud800"})
    assert [violation.keyword for violation in schema.violations({"a": "\ud800"})] == ["unreadable"]


def test_depth_counts_levels_up_to_its_limit() -> None:
    assert [depth_of(1), depth_of({}), depth_of({"a": [1]}), depth_of(nested(200), 50)] == [0, 0, 2, 50]


SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "bb", "10"]) | st.just(2.5)
)
INSTANCES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
KEYWORDS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "minimum": st.integers(-3, 3),
            "minLength": st.integers(0, 2),
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "uniqueItems": st.booleans(),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "items": inner,
            "additionalProperties": inner | st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(KEYWORDS, INSTANCES)
def test_both_libraries_agree_and_a_refusal_has_a_reason(schema: dict[str, Any], value: object) -> None:
    compiled = Schemas().get(schema)
    assert not compiled.broken
    accepted = compiled.accepts(value)
    assert accepted == jsonschema.Draft202012Validator(schema).is_valid(value)
    assert bool(list(compiled.violations(value))) is not accepted
    assert bool(compiled.explain(value)) is not accepted
